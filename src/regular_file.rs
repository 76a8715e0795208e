//! Opens files named by the user or found in a folder, if they are regular files: opening a FIFO would block, and a
//! device has no end. Only a pipe that the user names is read, too, as of `/dev/stdin` or of `<(...)` in a shell.
//!
//! Does not depend on the content of a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl};

/// Opens a file for reading. Never blocks.
///
/// # Errors
/// Returns an error if the file cannot be opened or is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = open_any(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(irregular())
    }
}

/// Opens a file for reading, whatever it is. Does not block.
fn open_any(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(path)
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Appends the whole content of a file to `buffer`.
///
/// # Errors
/// Returns an error if the file cannot be opened or read, or is longer than `longest` bytes; then `buffer` holds a part
/// of it.
pub(crate) fn read(path: &Path, longest: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    read_whole(&open(path)?, longest, buffer)
}

fn read_whole(file: &File, longest: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = file.take(longest + 1).read_to_end(buffer)?;
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
    as_text(text)
}

/// Returns the whole content of a text file or of a pipe that the user has named. Waits for those who write to the pipe,
/// and for nobody if there are none.
///
/// # Errors
/// Returns the same errors as [`read_text`].
pub(crate) fn read_named_text(path: &Path, longest: u64) -> io::Result<String> {
    let file = open_any(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        fcntl_setfl(&file, OFlags::empty())?;
    } else if !kind.is_file() {
        return Err(irregular());
    }
    let mut text = Vec::new();
    read_whole(&file, longest, &mut text)?;
    as_text(text)
}

fn as_text(text: Vec<u8>) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text");
    String::from_utf8(text).map_err(not_text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

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

    #[test]
    fn a_pipe_that_is_named_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        assert_eq!(read_named_text(&fifo, 9).unwrap(), "", "nobody writes");
        let (ours, mut theirs) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", ours.as_raw_fd());
        let writer = std::thread::spawn(move || {
            for part in ["in", "ter", "val"] {
                theirs.write_all(part.as_bytes()).unwrap();
                std::thread::yield_now();
            }
        });
        assert_eq!(read_named_text(Path::new(&path), 9).unwrap(), "interval");
        writer.join().unwrap();
        for irregular in [Path::new("/dev/zero"), folder.path()] {
            let error = read_named_text(irregular, 9).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
