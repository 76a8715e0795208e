//! The command's output: a file that the command writes to and pipetop only reads, so that the command does not
//! depend on pipetop. The file is kept when the command goes on alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, MemfdFlags, OFlags, fallocate, linkat};

/// Bytes before the read position that a file in memory keeps, at most about twice as many.
const BEHIND: u64 = 1 << 20;
/// The most that is handed on at once.
const CHUNK: usize = 1 << 16;
/// The name that `nohup` uses.
const NAME: &str = "nohup.out";

/// The output file.
#[derive(Debug)]
pub struct Log {
    file: File,
    storage: Storage,
    /// In bytes: how far the file was read.
    offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Storage {
    /// The user's own.
    Named(PathBuf),
    /// In this directory, without a name: it goes when the last process closes it.
    Unnamed(PathBuf),
    Memory,
}

/// Where the output of a command that goes on alone is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    In(PathBuf),
    /// In memory, for as long as the command runs.
    InMemory,
}

impl Log {
    /// A file of the user's, which is written to at its end.
    ///
    /// # Errors
    /// Where it cannot be made or written to, or is no regular file.
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
            storage: Storage::Named(path.to_owned()),
        })
    }

    /// A file without a name in the first of these directories that can have one, else in memory.
    ///
    /// # Errors
    /// Where there is no memory for it either.
    pub fn unnamed(directories: &[PathBuf]) -> io::Result<Self> {
        let unnamed = |directory: &PathBuf| {
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
                storage: Storage::Unnamed(directory.clone()),
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
            storage: Storage::Memory,
        })
    }

    /// The end that the command writes to.
    ///
    /// # Errors
    /// Where too many files are open.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Hands to `take` what was written since the last call, piece by piece.
    ///
    /// # Errors
    /// Where the file cannot be read, and those of `take`, which end it.
    pub fn read_on(&mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let length = self.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            take(&buffer[..length])?;
        }
    }

    /// The length of what was read; 0 where nothing was written since.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.offset)?;
        if length == 0 && self.file.metadata()?.len() < self.offset {
            // It was truncated.
            self.offset = 0;
        }
        self.offset += length as u64;
        let behind = self.offset.saturating_sub(BEHIND) / BEHIND * BEHIND;
        if self.storage == Storage::Memory && behind > 0 {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, hole, 0, behind)?;
        }
        Ok(length)
    }

    /// Where [`Log::keep`] would leave the output, in words.
    pub fn to_be_kept(&self) -> String {
        match &self.storage {
            Storage::Named(path) => path.display().to_string(),
            Storage::Unnamed(directory) => directory.join(NAME).display().to_string(),
            Storage::Memory => "kept in memory".to_owned(),
        }
    }

    /// Gives the file a name that lasts, where it has none: `nohup.out`, or one like it.
    ///
    /// # Errors
    /// Where none can be given.
    pub fn keep(&self) -> io::Result<Kept> {
        let directory = match &self.storage {
            Storage::Named(path) => return Ok(Kept::In(path.clone())),
            Storage::Memory => return Ok(Kept::InMemory),
            Storage::Unnamed(directory) => directory,
        };
        let ours = format!("nohup-{}.out", std::process::id());
        let mut failed = io::Error::from(io::ErrorKind::AlreadyExists);
        for name in [NAME, &ours] {
            let path = directory.join(name);
            match link(&self.file, &path) {
                Ok(()) => return Ok(Kept::In(path)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // Through /proc any user may; by the descriptor alone only root may.
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
    fn what_is_written_meanwhile_is_read_once() {
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
        // After it was truncated, it is read from its beginning.
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(all(&mut log) + &all(&mut log), "new\n");
        assert_eq!(log.keep().unwrap(), Kept::In(path));
    }

    #[test]
    fn a_file_without_a_name_gets_one_that_nobody_has() {
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
        assert!(Log::unnamed(&directories).unwrap().keep().is_err());
    }

    #[test]
    fn memory_behind_the_reader_is_given_back() {
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
    fn what_is_no_file_is_no_log() {
        let error = Log::named(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
    }
}
