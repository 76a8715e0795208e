//! A temporary tree that simulates a machine's `/proc` and `/sys`.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The tree. Its `proc` and `sys` are the roots for the sources.
pub struct FakeRoot(TempDir);

impl FakeRoot {
    #[expect(clippy::new_without_default, reason = "it makes folders")]
    pub fn new() -> Self {
        let root = Self(tempfile::tempdir().expect("the temporary tree can be written"));
        std::fs::create_dir(root.proc()).expect("the temporary tree can be written");
        std::fs::create_dir(root.sys()).expect("the temporary tree can be written");
        root
    }

    pub fn proc(&self) -> PathBuf {
        self.0.path().join("proc")
    }

    pub fn sys(&self) -> PathBuf {
        self.0.path().join("sys")
    }

    /// Writes a file such as `proc/stat` or `sys/block/sda/size`. An existing one is overwritten in place, as when a
    /// counter increases.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a path within the tree"))
            .expect("the temporary tree can be written");
        std::fs::write(path, content).expect("the temporary tree can be written");
        self
    }

    pub fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a path within the tree"))
            .expect("the temporary tree can be written");
        std::os::unix::fs::symlink(target, path).expect("the temporary tree can be written");
        self
    }

    /// Writes several files of one directory.
    pub fn files(&self, directory: &str, files: &[(&str, &str)]) -> &Self {
        for (name, content) in files {
            self.file(&format!("{directory}/{name}"), content);
        }
        self
    }

    pub fn remove(&self, path: &str) -> &Self {
        std::fs::remove_file(self.0.path().join(path)).expect("the temporary tree can be written");
        self
    }
}
