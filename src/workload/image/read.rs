//! Reads whole files, from the page cache or past it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{Advice, OFlags, fadvise};

/// What direct reads must begin at in memory and be a multiple of: the largest block of usual disks.
const BLOCK: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As every program reads.
    Cached,
    /// From the disk into our memory, not through the page cache.
    Direct,
    /// Where the file system refuses that: what the page cache holds of a file is dropped before it is read.
    Dropped,
}

/// Reads files into a buffer that it keeps.
#[derive(Debug)]
pub struct Reader {
    way: Way,
    buffer: Vec<u8>,
}

impl Reader {
    /// `direct` reads past the page cache.
    pub fn new(direct: bool) -> Self {
        Self {
            way: if direct { Way::Direct } else { Way::Cached },
            buffer: Vec::new(),
        }
    }

    /// The content of a file.
    pub fn read(&mut self, path: &Path) -> io::Result<&[u8]> {
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

    /// Where in the buffer the content begins, and its length.
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

/// How file systems say that they have no direct reads.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidInput | ErrorKind::Unsupported
    )
}
