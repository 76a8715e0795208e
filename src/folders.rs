//! Paths of folders (the user's own ones, and the one that contains a file), and the free space on a disk.
//!
//! Neither creates nor reads folders.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the folder of the user's configuration: `$XDG_CONFIG_HOME/pipetop`, otherwise `~/.config/pipetop`. `None`
/// without either.
pub(crate) fn config() -> Option<PathBuf> {
    of_user("XDG_CONFIG_HOME", ".config")
}

/// Returns the folder for data that may be deleted: `$XDG_CACHE_HOME/pipetop`, otherwise `~/.cache/pipetop`. `None`
/// without either.
#[cfg(feature = "lab")]
pub(crate) fn cache() -> Option<PathBuf> {
    of_user("XDG_CACHE_HOME", ".cache")
}

/// Returns the bytes that may still be written to the disk of this path. `None` if its file system does not report
/// them.
pub(crate) fn room(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn of_user(variable: &str, usual: &str) -> Option<PathBuf> {
    named(env::var_os(variable), env::var_os("HOME"), usual)
}

fn named(own: Option<OsString>, home: Option<OsString>, usual: &str) -> Option<PathBuf> {
    // The XDG standard requires relative paths to be ignored: they would mean another folder in each working directory.
    let absolute =
        |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(own)
        .or_else(|| Some(absolute(home)?.join(usual)))
        .map(|folder| folder.join("pipetop"))
}

/// Returns the folder that a file of this path lies in; `.` for a name alone.
pub(crate) fn of_file(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_folder_follows_the_environment() {
        let of = |own: Option<&str>, home: Option<&str>| {
            named(own.map(Into::into), home.map(Into::into), ".cache")
        };
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of(Some("/c"), Some("/h")), path("/c/pipetop"));
        assert_eq!(of(None, Some("/h")), path("/h/.cache/pipetop"));
        assert_eq!(of(Some("relative"), Some("/h")), path("/h/.cache/pipetop"));
        assert_eq!(of(Some(""), Some("")), None);
        assert_eq!(of(None, None), None);
    }

    #[test]
    fn a_name_alone_lies_in_the_current_folder() {
        assert_eq!(of_file(Path::new("a")), Path::new("."));
        assert_eq!(of_file(Path::new("b/a")), Path::new("b"));
        assert_eq!(of_file(Path::new("/a")), Path::new("/"));
    }
}
