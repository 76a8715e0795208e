//! Reads whole files, from the page cache or bypassing it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{Advice, OFlags, fadvise};

/// Alignment and size unit of direct reads: the largest block of common disks.
const BLOCK: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the page cache, like every program.
    Cached,
    /// From the disk directly into our memory.
    Direct,
    /// If the file system refuses direct reads: drops a file from the page cache before reading it.
    Dropped,
}

/// Reads files into a buffer that it reuses.
#[derive(Debug)]
pub(super) struct Reader {
    way: Way,
    buffer: Vec<u8>,
}

impl Reader {
    /// Creates a reader. `direct` bypasses the page cache.
    pub(super) fn new(direct: bool) -> Self {
        Self {
            way: if direct { Way::Direct } else { Way::Cached },
            buffer: Vec::new(),
        }
    }

    /// Returns the content of a file.
    pub(super) fn read(&mut self, path: &Path) -> io::Result<&[u8]> {
        if self.way == Way::Direct {
            match self.read_direct(path) {
                Err(error) if is_refusal(&error) => self.way = Way::Dropped,
                read => {
                    let (start, length) = read?;
                    return Ok(&self.buffer[start..start + length]);
                }
            }
        }
        let mut file = File::open(path)?;
        if self.way == Way::Dropped {
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        self.buffer.clear();
        file.read_to_end(&mut self.buffer)?;
        Ok(&self.buffer)
    }

    /// Reads directly; returns where in the buffer the content begins, and its length.
    fn read_direct(&mut self, path: &Path) -> io::Result<(usize, usize)> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(OFlags::DIRECT.bits().cast_signed());
        let mut file = options.open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let space = length.next_multiple_of(BLOCK);
        if self.buffer.len() < space + BLOCK {
            self.buffer.resize(space + BLOCK, 0);
        }
        let address = self.buffer.as_ptr().addr();
        let start = address.next_multiple_of(BLOCK) - address;
        let aligned = &mut self.buffer[start..start + space];
        let mut filled = 0;
        while filled < length {
            match file.read(&mut aligned[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((start, filled.min(length)))
    }
}

/// Whether the file system rejects direct reads.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidInput | ErrorKind::Unsupported
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_way_to_read_gives_the_same() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        let (mut cached, mut direct) = (Reader::new(false), Reader::new(true));
        // Lengths around the edges of blocks, and a shorter file after a longer one.
        for length in [0, 1, 4095, 4096, 4097, 100_000, 8192, 17] {
            let content: Vec<u8> = (0..=250).cycle().take(length).collect();
            fs::write(&path, &content).unwrap();
            assert_eq!(cached.read(&path).unwrap(), content, "{length}");
            assert_eq!(direct.read(&path).unwrap(), content, "{length}");
        }
    }

    #[test]
    fn files_are_read_where_direct_io_is_rejected() {
        // The proc file system has no direct reads.
        let path = Path::new("/proc/self/mounts");
        let mut reader = Reader::new(true);
        assert_eq!(reader.read(path).unwrap(), fs::read(path).unwrap());
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "after").unwrap();
        assert_eq!(reader.read(&file).unwrap(), b"after");
    }
}
