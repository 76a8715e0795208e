//! The hook: a few small Python files in a private directory, which every Python below the launched command
//! finds by `PYTHONPATH` and which report the steps of PyTorch's `DataLoader` by the probe protocol.
//!
//! Holds the files and their place; knows nothing of who launches and of who listens.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::probe;

const FILES: [(&str, &str); 4] = [
    ("sitecustomize.py", include_str!("hook/sitecustomize.py")),
    ("pipetop_hook.py", include_str!("hook/pipetop_hook.py")),
    (
        "pipetop_hook_device.py",
        include_str!("hook/pipetop_hook_device.py"),
    ),
    (
        "pipetop_hook_trial.py",
        include_str!("hook/pipetop_hook_trial.py"),
    ),
];
/// The environment variable in which the hook finds what it is to do besides reporting.
const WISHES: &str = "PIPETOP_HOOK";
/// Where Python looks first.
const SEARCH_PATH: &str = "PYTHONPATH";
/// A Python that starts meanwhile may write into the directory while it is removed.
const ATTEMPTS: u8 = 8;

/// What the hook changes in the launched Pythons, for an experiment. By default nothing.
///
/// The settings are those of every `DataLoader` that they make, in place of the script's; its other settings
/// stay, and with them the order of the batches. What has no meaning without workers is left out with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoaderOverrides {
    /// `num_workers`. `None` = as the script says, as below.
    pub workers: Option<u32>,
    /// `prefetch_factor`, from 1 on; without workers there is none.
    pub prefetch: Option<u32>,
    /// `pin_memory`.
    pub pin: Option<bool>,
    /// Hands out batches that are there already, as if loading were free. `None` = loads each.
    pub cache: Option<Cache>,
}

/// Batches that are handed out again and again, in turn and without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// The last so many that were loaded, from 1 on.
    pub batches: u32,
    /// Once a process has had so many.
    pub after: u64,
}

impl fmt::Display for LoaderOverrides {
    /// As the hook reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.workers.map(|workers| format!("workers={workers}")),
            self.prefetch.map(|prefetch| format!("prefetch={prefetch}")),
            self.pin.map(|pin| format!("pin={}", u8::from(pin))),
            self.cache
                .map(|Cache { batches, after }| format!("cache={batches} after={after}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(&words.join(" "))
    }
}

/// The installed hook. Dropping it removes the directory: Pythons that have loaded it go on, later ones do
/// without.
#[derive(Debug)]
pub struct Hook {
    directory: TempDir,
    /// As Python spells it: absolute, without links.
    path: PathBuf,
}

impl Hook {
    /// Writes the files into a new directory below the one for temporary files, for this user alone.
    ///
    /// # Errors
    /// Where it cannot be written to, or has a colon in its name, which parts the entries of `PYTHONPATH`.
    pub fn install() -> io::Result<Self> {
        Self::install_in(&std::env::temp_dir())
    }

    /// The same below `parent`.
    ///
    /// # Errors
    /// As with [`Hook::install`].
    pub fn install_in(parent: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("pipetop-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        let path = directory.path().canonicalize()?;
        if path.as_os_str().as_bytes().contains(&b':') {
            let reason = format!(
                "the path {} contains a colon, which PYTHONPATH does not allow",
                parent.display()
            );
            return Err(io::Error::new(ErrorKind::InvalidInput, reason));
        }
        for (name, text) in FILES {
            fs::write(path.join(name), text)?;
        }
        Ok(Self { directory, path })
    }

    /// Where the files lie.
    #[cfg(feature = "testing")]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the launched command must find in its environment, beside what we have in ours, so that it
    /// reports to `probe_address`, which is [`crate::probe::VARIABLE`]'s form of an address.
    pub fn environment(
        &self,
        probe_address: &str,
        overrides: &LoaderOverrides,
    ) -> Vec<(OsString, OsString)> {
        let before = std::env::var_os(SEARCH_PATH);
        vec![
            (
                SEARCH_PATH.into(),
                search_path(&self.path, before.as_deref()),
            ),
            (probe::VARIABLE.into(), probe_address.into()),
            // Also where it is empty: what an outer launch wished is not for this one.
            (WISHES.into(), overrides.to_string().into()),
        ]
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        for _ in 0..ATTEMPTS {
            match fs::remove_dir_all(self.directory.path()) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                _ => break,
            }
        }
    }
}

/// `first`, and then what was there. Python takes an empty `PYTHONPATH` for none, but an empty entry in it
/// for the current directory.
fn search_path(first: &Path, before: Option<&OsStr>) -> OsString {
    let mut path = first.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_there_for_this_user_alone_and_go_with_the_hook() {
        let parent = tempfile::tempdir().unwrap();
        let hook = Hook::install_in(parent.path()).unwrap();
        let path = hook.path().to_owned();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        for (name, text) in FILES {
            assert_eq!(fs::read_to_string(path.join(name)).unwrap(), text);
        }
        // As Python does when it keeps what it has compiled.
        fs::create_dir(path.join("__pycache__")).unwrap();
        fs::write(path.join("__pycache__/sitecustomize.pyc"), "x").unwrap();
        drop(hook);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_does_not_do_is_an_error_that_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        assert!(Hook::install_in(&parent.path().join("missing")).is_err());
        let colon = parent.path().join("a:b");
        fs::create_dir(&colon).unwrap();
        let error = Hook::install_in(&colon).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(
            error.to_string().contains("a:b contains a colon"),
            "{error}"
        );
        assert_eq!(fs::read_dir(&colon).unwrap().count(), 0);
    }

    #[test]
    fn our_directory_comes_before_those_that_were_there() {
        let join = |before: Option<&str>| search_path(Path::new("/x"), before.map(OsStr::new));
        assert_eq!(join(None), "/x");
        assert_eq!(join(Some("")), "/x");
        assert_eq!(join(Some("/a:/b")), "/x:/a:/b");
        assert_eq!(join(Some(":/b")), "/x::/b");
    }

    #[test]
    fn the_command_is_told_where_to_look_and_where_to_report() {
        let parent = tempfile::tempdir().unwrap();
        let hook = Hook::install_in(parent.path()).unwrap();
        let environment = hook.environment("@a", &LoaderOverrides::default());
        let [(path, folders), (probe, address), (words, wishes)] = &environment[..] else {
            panic!("{environment:?}");
        };
        assert_eq!(path, "PYTHONPATH");
        assert!(
            folders
                .as_bytes()
                .starts_with(hook.path().as_os_str().as_bytes())
        );
        assert_eq!(
            (probe.to_str(), address.to_str()),
            (Some("PIPETOP_PROBE"), Some("@a"))
        );
        assert_eq!(
            (words.to_str(), wishes.to_str()),
            (Some("PIPETOP_HOOK"), Some(""))
        );
    }

    #[test]
    fn what_an_experiment_changes_is_told_in_words() {
        let parent = tempfile::tempdir().unwrap();
        let hook = Hook::install_in(parent.path()).unwrap();
        let encoded = |overrides: LoaderOverrides| {
            let mut environment = hook.environment("@a", &overrides);
            environment.pop().unwrap().1.into_string().unwrap()
        };
        let workers = LoaderOverrides {
            workers: Some(0),
            ..LoaderOverrides::default()
        };
        assert_eq!(encoded(workers), "workers=0");
        let all = LoaderOverrides {
            workers: Some(4),
            prefetch: Some(2),
            pin: Some(false),
            cache: Some(Cache {
                batches: 8,
                after: 30,
            }),
        };
        assert_eq!(encoded(all), "workers=4 prefetch=2 pin=0 cache=8 after=30");
    }
}
