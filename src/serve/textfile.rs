//! Metrics in a file for the node exporter's textfile collector: written aside and renamed, so that nobody reads half of it.
//!
//! Knows nothing of what is in it.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Dropping it removes the file: what nobody keeps up to date is not to be read.
#[derive(Debug)]
pub(super) struct Textfile(PathBuf);

impl Textfile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Replaces what it holds.
    ///
    /// # Errors
    /// Where its folder cannot be written to.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let folder = self.0.parent().filter(|folder| *folder != Path::new(""));
        let mut aside = tempfile::Builder::new()
            .prefix(".pipetop-")
            // The collector is another user's.
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        aside.write_all(text.as_bytes())?;
        aside.persist(&self.0)?;
        Ok(())
    }
}

impl Drop for Textfile {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_may_read_it_and_nothing_stays() {
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
}
