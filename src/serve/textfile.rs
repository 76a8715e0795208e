//! Metrics in a file for the node exporter's textfile collector: written to a temporary file and renamed, so that no
//! reader sees half of it.
//!
//! Does not depend on the content.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::folders;

/// How the text of the metrics starts.
const START: &str = "# HELP pipetop_";

/// The file with the metrics. Dropping this removes the file: a file that is no longer updated must not be read.
#[derive(Debug)]
pub(super) struct Textfile {
    path: PathBuf,
    /// The file that was last written, kept open so that no other file gets its inode number.
    written: Option<File>,
}

impl Textfile {
    pub(super) fn new(path: PathBuf) -> Self {
        let written = None;
        Self { path, written }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the content of the file.
    ///
    /// # Errors
    /// Returns an error if its folder cannot be written to, or another program writes the file, too.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        if self.is_something_else() {
            return Err(io::Error::other("not a regular file"));
        }
        if self.written.is_none() && is_no_metrics(&self.path) {
            return Err(io::Error::other(
                "it holds something other than pipetop's metrics",
            ));
        }
        if self.is_of_another() {
            return Err(io::Error::other("another program writes it, too"));
        }
        let folder = folders::of_file(&self.path);
        let mut aside = tempfile::Builder::new()
            .prefix(".pipetop-")
            // Readable by all, because the collector runs as another user.
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(folder)
            // The error's own text names the temporary file, which the user does not know.
            .map_err(|error| match (folder.is_dir(), error.kind()) {
                (false, _) => io::Error::other(format!("there is no folder {}", folder.display())),
                // For example in /proc.
                (true, io::ErrorKind::NotFound) => {
                    io::Error::other(format!("no file can be made in {}", folder.display()))
                }
                (true, kind) => io::Error::from(kind),
            })?;
        aside.write_all(text.as_bytes())?;
        self.written = Some(aside.persist(&self.path)?);
        Ok(())
    }

    /// Whether a FIFO, a device or a folder has this name.
    fn is_something_else(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|there| !there.is_file())
    }

    /// Whether another program has replaced the file that was last written.
    fn is_of_another(&self) -> bool {
        let ours = self.written.as_ref().map(File::metadata);
        let (Some(Ok(ours)), Ok(there)) = (ours, fs::metadata(&self.path)) else {
            return false;
        };
        (ours.dev(), ours.ino()) != (there.dev(), there.ino())
    }
}

/// Whether the file holds something other than metrics: the user may have named it by mistake.
fn is_no_metrics(path: &Path) -> bool {
    let mut start = vec![];
    // A missing file counts as empty, and so does one that cannot be read.
    let _ = File::open(path).and_then(|file| file.take(START.len() as u64).read_to_end(&mut start));
    !START.as_bytes().starts_with(&start)
}

impl Drop for Textfile {
    fn drop(&mut self) {
        if self.written.is_some() && !self.is_something_else() && !self.is_of_another() {
            // An error can no longer be reported.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textfile_is_world_readable_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipetop.prom");
        let mut file = Textfile::new(path.clone());
        file.write("first").unwrap();
        file.write("second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o044, 0o044);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        drop(file);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let mut nowhere = Textfile::new(folder.path().join("none/pipetop.prom"));
        assert!(nowhere.write("").is_err());
        let mut in_proc = Textfile::new(PathBuf::from("/proc/pipetop.prom"));
        let error = in_proc.write("").unwrap_err();
        assert_eq!(error.to_string(), "no file can be made in /proc");
    }

    #[test]
    fn a_file_of_the_user_is_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.py");
        for (text, is_ours) in [
            ("a", false),
            ("import torch", false),
            ("", true),
            (START, true),
        ] {
            fs::write(&path, text).unwrap();
            let mut file = Textfile::new(path.clone());
            assert_eq!(file.write(START).is_ok(), is_ours, "{text}");
            drop(file);
            assert_eq!(path.exists(), !is_ours, "{text}");
        }
    }

    #[test]
    fn the_file_of_another_exporter_is_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipetop.prom");
        let [mut first, mut second, mut third] = [&path; 3].map(|path| Textfile::new(path.clone()));
        let second_text = format!("{START} second");
        first.write(START).unwrap();
        second.write(&second_text).unwrap();
        assert!(first.write("again").is_err());
        drop(first);
        assert_eq!(fs::read_to_string(&path).unwrap(), second_text);
        third.write("third").unwrap();
        assert!(second.write("again").is_err());
        drop(third);
        // Nobody else writes it any more.
        second.write("again").unwrap();
    }

    #[test]
    fn other_file_types_are_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("pipetop.prom");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        let mut file = Textfile::new(fifo.clone());
        assert!(file.write("first").is_err());
        drop(file);
        assert!(fifo.exists());
    }
}
