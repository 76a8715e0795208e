//! Opens files named by the user or found in a folder, if they are regular files: opening a FIFO would block, and a
//! device has no end.
//!
//! Does not depend on the content of a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file for reading. Never blocks.
///
/// # Errors
/// Returns an error if the file cannot be opened or is not a regular file.
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

/// Appends the whole content of a file to `buffer`.
///
/// # Errors
/// Returns an error if the file cannot be opened or read, or is longer than `longest` bytes; then `buffer` holds a part
/// of it.
pub(crate) fn read(path: &Path, longest: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = open(path)?.take(longest + 1).read_to_end(buffer)?;
    if length as u64 > longest {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(())
}

/// Returns the whole content of a text file.
///
/// # Errors
/// Returns the same errors as [`read`], and an error if the content is not UTF-8.
pub(crate) fn read_text(path: &Path, longest: u64) -> io::Result<String> {
    let mut text = Vec::new();
    read(path, longest, &mut text)?;
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text");
    String::from_utf8(text).map_err(not_text)
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
