//! Files of the kernel and of control groups: how one is opened and read, and why one could not be.
//!
//! Reads at most a fixed number of bytes, and only regular files, because `--proc-root` may name a folder with anything
//! in it. Keeps nothing open: for files that are read once a second or less. Knows the form of lines with a name, not
//! what files hold.
//!
//! Only the thread that polls the job's tasks tens of times a second keeps files open, with its own readers. In one run
//! of `benches/proc.rs`, CPU time of a reading: `schedstat` kept open 0.29 us, with procfs 1.86 us (6.4 times); `wchan`
//! 1.0 and 2.6 us (2.6 times); `stat` with its parser 1.6 us kept open, 3.4 us opened as here, 4.4 us with procfs (2.7
//! times).

use std::borrow::Cow;
use std::io;
use std::path::Path;

use procfs::FromRead;
use rustix::io::Errno;

use crate::regular_file;
use crate::sample::Gap;
use crate::units;

/// Maximum number of bytes read: more than any file of `/proc` or `/sys` that is read here holds.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Initial size of the buffer in bytes: holds most of the files, so that they are read in one call.
const USUAL: usize = 4096;

/// Why something could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It does not exist, or no longer does. Only this means that a process has ended.
    Gone,
    /// This user has no permission.
    Denied,
    /// This process has no descriptor or no memory left; nothing is known of the file.
    NoResources,
    /// The file exists but cannot be used.
    Broken,
}

impl Failure {
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => return Self::Gone,
            io::ErrorKind::PermissionDenied => return Self::Denied,
            io::ErrorKind::OutOfMemory => return Self::NoResources,
            _ => {}
        }
        match Errno::from_io_error(error) {
            // The process ended after its file was opened.
            Some(Errno::SRCH) => Self::Gone,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::NOBUFS) => {
                Self::NoResources
            }
            _ => Self::Broken,
        }
    }
}

/// Returns the current content of the file. Invalid UTF-8 becomes `U+FFFD`.
pub fn read(path: &Path) -> io::Result<String> {
    let mut buffer = Vec::new();
    Ok(read_with(path, &mut buffer)?.into_owned())
}

/// Like [`read`], with a buffer that is reused.
pub fn read_with<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> io::Result<Cow<'a, str>> {
    buffer.clear();
    buffer.reserve(USUAL);
    regular_file::read(path, MAX_FILE_BYTES, buffer)?;
    Ok(String::from_utf8_lossy(buffer))
}

/// Parses a type of procfs from the text of a file that was opened here: procfs's own readers block on a FIFO and read
/// without a limit. Some of its parsers cut a line at a byte and panic within a character, so only ASCII is parsed.
pub fn parse<T: FromRead>(text: &str) -> Option<T> {
    text.is_ascii()
        .then(|| T::from_read(text.as_bytes()).ok())?
}

/// Returns the rest of the line that begins with this name: of `NSpid:\t7 1`, `7 1`.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// Returns the number after a name and a space: `nr_periods 12`.
pub fn keyed(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find_map(|(key, value)| (key == name).then(|| value.trim().parse().ok())?)
}

/// Returns a gap such as `cannot read /proc/stat: permission denied`.
pub fn unreadable(source: &str, path: &Path, error: &io::Error) -> Gap {
    let hint = match Failure::of(error) {
        Failure::NoResources => "raise the open file limit (`ulimit -n`), or free memory",
        Failure::Gone | Failure::Denied | Failure::Broken => "",
    };
    Gap::new(
        source,
        format!("cannot read {}: {}", printable(path), words(error)),
        hint,
    )
}

/// Returns the gap of a file whose text cannot be parsed.
pub fn unparsable(source: &str, path: &Path) -> Gap {
    unreadable(source, path, &io::ErrorKind::InvalidData.into())
}

/// Formats a path for display. Anyone may name a directory, so escape sequences are removed.
pub fn printable(path: &Path) -> String {
    units::printable(&path.display().to_string())
}

/// Formats an error without the number that the standard library adds.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "unexpected format".to_owned(),
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
    use procfs::process::{Io, Schedstat};

    use super::*;

    #[test]
    fn a_file_is_read_fresh_at_any_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stat");
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let long = "x".repeat(3 * USUAL);
        let mut buffer = Vec::new();
        for text in ["one", &long, "", "two"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), text);
            assert_eq!(read_with(&path, &mut buffer).unwrap(), text);
        }
        std::fs::write(&path, b"a\xffb").unwrap();
        assert_eq!(read(&path).unwrap(), "a\u{fffd}b");
    }

    #[test]
    fn a_gap_says_what_and_why_in_plain_words() {
        let path = Path::new("/proc/stat");
        let gap = |number| unreadable("host", path, &io::Error::from_raw_os_error(number));
        assert_eq!(gap(13).reason, "cannot read /proc/stat: permission denied");
        assert_eq!(gap(3).reason, "cannot read /proc/stat: no such process");
        let none_left = gap(24);
        assert_eq!(
            none_left.reason,
            "cannot read /proc/stat: too many open files"
        );
        assert!(none_left.hint.contains("ulimit -n"), "{}", none_left.hint);
    }

    #[test]
    fn only_missing_files_count_as_gone() {
        let of = |errno: Errno| Failure::of(&errno.into());
        for (errno, expected) in [
            (Errno::NOENT, Failure::Gone),
            (Errno::SRCH, Failure::Gone),
            (Errno::ACCESS, Failure::Denied),
            (Errno::PERM, Failure::Denied),
            (Errno::MFILE, Failure::NoResources),
            (Errno::NFILE, Failure::NoResources),
            (Errno::NOMEM, Failure::NoResources),
            (Errno::AGAIN, Failure::NoResources),
            (Errno::IO, Failure::Broken),
            (Errno::LOOP, Failure::Broken),
        ] {
            assert_eq!(of(errno), expected, "{errno:?}");
        }
        let torn = io::Error::from(io::ErrorKind::InvalidData);
        assert_eq!(Failure::of(&torn), Failure::Broken);
    }

    #[test]
    fn a_text_that_is_torn_or_no_ascii_is_not_parsed() {
        assert!(parse::<Schedstat>("1 2 3\n").is_some());
        assert!(parse::<Schedstat>("1 2").is_none());
        // procfs would cut this in the middle of a character.
        assert!(parse::<Io>("rchar\u{e9} 5\n").is_none());
    }
}
