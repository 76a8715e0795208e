//! Files of the kernel: one that is read again and again, opened once; and one that is read once.
//!
//! Knows nothing of what is in it.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::sample::Gap;
use crate::units;

/// More than any file of `/proc` or `/sys` that is read here; what is longer is not one.
const LONGEST: usize = 8 << 20;

/// A file of `/proc`, `/sys` or a control group that stays open between two readings.
#[derive(Debug)]
pub struct KernelFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl KernelFile {
    /// Opens nothing yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            file: None,
            buffer: Vec::new(),
        }
    }

    /// What is in the file now. After an error the next reading opens it anew.
    pub fn read(&mut self) -> io::Result<&str> {
        if let Err(error) = self.fill() {
            self.file = None;
            return Err(error);
        }
        std::str::from_utf8(&self.buffer).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn fill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            closed => closed.insert(File::open(&self.path)?),
        };
        fill(file, &mut self.buffer)
    }

    /// The gap that stands for a failed reading of this file, without a hint.
    pub fn gap(&self, source: &str, error: &io::Error) -> Gap {
        unreadable(source, &self.path, error)
    }
}

/// What is in a file that is not read again, into `buffer`. Bytes that are no UTF-8 become `U+FFFD`.
pub fn read_once<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> io::Result<Cow<'a, str>> {
    fill(&File::open(path)?, buffer)?;
    Ok(String::from_utf8_lossy(buffer))
}

/// Reads a file from its start to its end, whatever length it says it has; in one call where the buffer
/// has held as much before.
fn fill(file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut length = 0;
    buffer.resize(buffer.capacity(), 0);
    loop {
        if buffer.len() == length {
            buffer.resize((length * 2).max(1024), 0);
        }
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    buffer.truncate(length);
    Ok(())
}

/// `cannot read /proc/stat: permission denied`
pub fn unreadable(source: &str, path: &Path, error: &io::Error) -> Gap {
    Gap {
        source: source.to_owned(),
        reason: format!("cannot read {}: {}", printable(path), words(error)),
        hint: String::new(),
    }
}

/// A path for the eye: anyone may name a directory, and no escape sequence of theirs reaches a terminal.
pub fn printable(path: &Path) -> String {
    units::printable(&path.display().to_string())
}

/// An error as one reads it, without the number that the standard library adds.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "not understood".to_owned(),
        _ => {
            let text = error.to_string().to_lowercase();
            match text.split_once(" (os error") {
                Some((words, _)) => words.to_owned(),
                None => text,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_anew_through_one_descriptor_whatever_its_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stat");
        let mut file = KernelFile::new(&path);
        assert_eq!(file.read().unwrap_err().kind(), io::ErrorKind::NotFound);
        let long = "x".repeat(5000);
        for text in ["one", &long, "", "two"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(file.read().unwrap(), text);
        }
        std::fs::write(&path, b"\xff\xfe").unwrap();
        assert_eq!(file.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_gap_says_what_and_why_in_plain_words() {
        let path = Path::new("/proc/stat");
        let reason =
            |number| unreadable("host", path, &io::Error::from_raw_os_error(number)).reason;
        assert_eq!(reason(13), "cannot read /proc/stat: permission denied");
        assert_eq!(reason(3), "cannot read /proc/stat: no such process");
    }
}
