//! Metrics in a file for the node exporter's textfile collector: written to a temporary file and renamed, so that no
//! reader sees half of it.
//!
//! Does not depend on the content.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Dropping it removes the file: a file that is no longer updated must not be read.
#[derive(Debug)]
pub(super) struct Textfile(PathBuf);

impl Textfile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Replaces the content of the file.
    ///
    /// # Errors
    /// Returns an error if its folder cannot be written to.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        if self.is_something_else() {
            return Err(io::Error::other("not a regular file"));
        }
        let folder = self.0.parent().filter(|folder| *folder != Path::new(""));
        let mut aside = tempfile::Builder::new()
            .prefix(".pipetop-")
            // The collector runs as another user.
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        aside.write_all(text.as_bytes())?;
        aside.persist(&self.0)?;
        Ok(())
    }

    /// A FIFO, a device or a folder has this name.
    fn is_something_else(&self) -> bool {
        fs::metadata(&self.0).is_ok_and(|there| !there.is_file())
    }
}

impl Drop for Textfile {
    fn drop(&mut self) {
        if !self.is_something_else() {
            // It cannot be reported any more.
            let _ = fs::remove_file(&self.0);
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
        let file = Textfile::new(path.clone());
        file.write("first").unwrap();
        file.write("second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o044, 0o044);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        drop(file);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let nowhere = Textfile::new(folder.path().join("none/pipetop.prom"));
        assert!(nowhere.write("").is_err());
    }

    #[test]
    fn other_file_types_are_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("pipetop.prom");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        let file = Textfile::new(fifo.clone());
        assert!(file.write("first").is_err());
        drop(file);
        assert!(fifo.exists());
    }
}
