//! Opens what a user names or a folder holds, where it is a regular file: a FIFO would block whoever opens it, and a
//! device never ends.
//!
//! Knows nothing of what is in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens it to read. Never blocks.
///
/// # Errors
/// Where it cannot be opened, and where it is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        let reason = "not a regular file";
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
    }
}

/// Appends its whole content to `buffer`.
///
/// # Errors
/// Where it cannot be opened or read, and where it is longer than `longest` bytes: then `buffer` holds a part.
pub(crate) fn read(path: &Path, longest: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = open(path)?.take(longest + 1).read_to_end(buffer)?;
    if length as u64 > longest {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, fifo) = (folder.path().join("file"), folder.path().join("fifo"));
        std::fs::write(&file, "12345").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        let mut text = vec![];
        read(&file, 5, &mut text).unwrap();
        assert_eq!(text, b"12345");
        let kind = |path: &Path| read(path, 4, &mut vec![]).unwrap_err().kind();
        assert_eq!(kind(&file), io::ErrorKind::FileTooLarge);
        for irregular in [&fifo, Path::new("/dev/zero"), folder.path()] {
            assert_eq!(kind(irregular), io::ErrorKind::InvalidInput);
        }
    }
}
