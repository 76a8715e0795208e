//! The command's output: a file that the command writes and pipetop only reads, so that the command does not depend on
//! pipetop. The file is kept if the command continues alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, MemfdFlags, OFlags, fallocate, linkat};

use crate::folders;

/// Minimum number of bytes before the read position that a file in memory keeps; it keeps at most about twice as many.
const BEHIND: u64 = 1 << 20;
/// Maximum number of bytes passed on at once.
const CHUNK: usize = 1 << 16;
/// Bytes that a disk must have free for an unnamed file.
const ROOM: u64 = 256 << 20;
/// The file name that `nohup` uses.
const NAME: &str = "nohup.out";

/// The output file.
#[derive(Debug)]
pub struct Log {
    file: File,
    storage: LogStorage,
    /// Read position in bytes.
    offset: u64,
}

/// Where the output file is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LogStorage {
    /// A file named by the user.
    Named(PathBuf),
    /// An unnamed file in this directory, which disappears when the last process closes it.
    Unnamed(PathBuf),
    #[default]
    Memory,
}

/// Where the output of a command that continues alone is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    In(PathBuf),
    /// In memory, as long as the command runs.
    InMemory,
}

impl Log {
    /// Opens a file of the user; output is appended.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or written, or is not a regular file.
    pub fn named(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            let reason = "not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        Ok(Self {
            file,
            offset: data.len(),
            storage: LogStorage::Named(path.to_owned()),
        })
    }

    /// Creates an unnamed file in the first of these directories that supports it and has room, else in memory: a
    /// command whose output cannot be written may fail.
    ///
    /// # Errors
    /// Returns an error if there is no memory for it either.
    pub fn unnamed(directories: &[PathBuf]) -> io::Result<Self> {
        let unnamed = |directory: &PathBuf| {
            if folders::room(directory).is_some_and(|room| room < ROOM) {
                return None;
            }
            let flags = (OFlags::TMPFILE | OFlags::APPEND).bits();
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(flags.cast_signed())
                .mode(0o600)
                .open(directory)
                .ok()?;
            Some(Self {
                file,
                offset: 0,
                storage: LogStorage::Unnamed(directory.clone()),
            })
        };
        if let Some(log) = directories.iter().find_map(unnamed) {
            return Ok(log);
        }
        let file = rustix::fs::memfd_create(c"pipetop-log", MemfdFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(Self {
            file: file.into(),
            offset: 0,
            storage: LogStorage::Memory,
        })
    }

    /// Returns the file for the command to write to.
    ///
    /// # Errors
    /// Returns an error if too many files are open.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Passes to `take` what was written since the last call, piece by piece.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or the first error of `take`.
    pub fn read_new(&mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let length = self.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            take(&buffer[..length])?;
        }
    }

    /// Returns the number of bytes read; 0 if nothing new was written.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.offset)?;
        if length == 0 && self.file.metadata()?.len() < self.offset {
            // The file was truncated.
            self.offset = 0;
        }
        self.offset += length as u64;
        let behind = self.offset.saturating_sub(BEHIND) / BEHIND * BEHIND;
        if self.storage == LogStorage::Memory && behind > 0 {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, hole, 0, behind)?;
        }
        Ok(length)
    }

    pub fn storage(&self) -> &LogStorage {
        &self.storage
    }

    /// Gives the file a permanent name if it has none: `nohup.out`, or a similar one.
    ///
    /// # Errors
    /// Returns an error if no name can be given.
    pub fn keep(&self) -> io::Result<Kept> {
        let directory = match &self.storage {
            LogStorage::Named(path) => return Ok(Kept::In(path.clone())),
            LogStorage::Memory => return Ok(Kept::InMemory),
            LogStorage::Unnamed(directory) => directory,
        };
        let mut failed = io::Error::from(io::ErrorKind::AlreadyExists);
        for path in names(directory) {
            match link(&self.file, &path) {
                Ok(()) => return Ok(Kept::In(path)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl LogStorage {
    /// Returns where [`Log::keep`] would leave the output now, as text for the user.
    pub fn kept_location(&self) -> String {
        match self {
            Self::Named(path) => path.display().to_string(),
            Self::Unnamed(directory) => {
                let free = |path: &PathBuf| path.symlink_metadata().is_err();
                names(directory).into_iter().find(free).map_or_else(
                    || "in no file: the usual names are taken".to_owned(),
                    |path| path.display().to_string(),
                )
            }
            Self::Memory => "in memory, as long as it runs".to_owned(),
        }
    }
}

/// Returns the names to try for a file in this directory, the best first.
fn names(directory: &Path) -> [PathBuf; 2] {
    let ours = format!("nohup-{}.out", std::process::id());
    [NAME, &ours].map(|name| directory.join(name))
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // Any user may link the file through /proc; linking it by the descriptor alone needs root.
    let source = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    linkat(CWD, source, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn all(log: &mut Log) -> String {
        let mut buffer = [0; 5];
        let mut text = vec![];
        loop {
            let length = log.read(&mut buffer).unwrap();
            if length == 0 {
                break;
            }
            text.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn new_log_output_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n").unwrap();
        let mut log = Log::named(&path).unwrap();
        let mut writer = log.writer().unwrap();
        writeln!(writer, "first line").unwrap();
        assert_eq!(all(&mut log), "first line\n");
        assert_eq!(all(&mut log), "");
        writeln!(writer, "second").unwrap();
        assert_eq!(all(&mut log), "second\n");
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "old\nfirst line\nsecond\n"
        );
        // After truncation it is read from its beginning.
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(all(&mut log) + &all(&mut log), "new\n");
        assert_eq!(log.keep().unwrap(), Kept::In(path));
    }

    #[test]
    fn a_temporary_log_gets_an_unused_name() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let entries = std::fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let directories = [PathBuf::from("/proc"), folder.path().to_owned()];
        for expected in ["nohup.out", &format!("nohup-{}.out", std::process::id())] {
            let before = names();
            let mut log = Log::unnamed(&directories).unwrap();
            let location = folder.path().join(expected).display().to_string();
            assert_eq!(log.storage().kept_location(), location);
            assert_eq!(names(), before, "it has a name already");
            let mut writer = log.writer().unwrap();
            writer.write_all(b"hello").unwrap();
            assert_eq!(all(&mut log), "hello");
            let Kept::In(path) = log.keep().unwrap() else {
                panic!("{log:?} is not in the folder");
            };
            assert_eq!(path, folder.path().join(expected));
            writer.write_all(b" again").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello again");
        }
        let log = Log::unnamed(&directories).unwrap();
        assert!(log.keep().is_err());
        let location = log.storage().kept_location();
        assert_eq!(location, "in no file: the usual names are taken");
    }

    #[test]
    fn log_memory_already_read_is_freed() {
        use std::os::unix::fs::MetadataExt;
        let mut log = Log::unnamed(&[]).unwrap();
        let mut writer = log.writer().unwrap();
        let mut buffer = vec![7; 1 << 20];
        for _ in 0..8 {
            writer.write_all(&buffer).unwrap();
            while log.read(&mut buffer).unwrap() > 0 {}
        }
        let held = log.file.metadata().unwrap().blocks() * 512;
        assert!(held <= 3 * BEHIND, "{held} bytes");
        assert_eq!(log.keep().unwrap(), Kept::InMemory);
    }

    #[test]
    fn a_log_must_be_a_regular_file() {
        let error = Log::named(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
    }
}
