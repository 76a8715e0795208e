//! The hook: a few small Python files in a private directory, which every Python below the launched command finds
//! through `PYTHONPATH` and which report the steps of PyTorch's `DataLoader` by the probe protocol.
//!
//! Holds the files and installs them; must not depend on the launcher or the listener.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::loaders::Names;
use crate::probe::{self, Cached};

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
/// The environment variable that tells the hook what to do besides reporting.
const SETTINGS_VARIABLE: &str = "PIPETOP_HOOK";
/// The variable with the folders that Python searches first.
const SEARCH_PATH: &str = "PYTHONPATH";
/// Attempts to remove the directory: a Python that is starting may write into it meanwhile.
const ATTEMPTS: u8 = 8;

/// Changes that the hook makes in the launched Pythons, for an experiment. None by default.
///
/// The settings replace those of the script in every `DataLoader`; its other settings stay, and with them the order of
/// the batches. If there are to be no workers, the settings that need workers are removed, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoaderOverrides {
    /// `num_workers`. `None` = as set by the script; the same for the other fields.
    pub workers: Option<u32>,
    /// `prefetch_factor`, at least 1; ignored without workers.
    pub prefetch: Option<u32>,
    /// `pin_memory`.
    pub pin: Option<bool>,
    /// Reuses batches that are already loaded, as if loading were free. `None` = loads each batch.
    pub cache: Option<Cached>,
}

impl fmt::Display for LoaderOverrides {
    /// Formats the settings as the hook parses them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.workers.map(|workers| format!("workers={workers}")),
            self.prefetch.map(|prefetch| format!("prefetch={prefetch}")),
            self.pin.map(|pin| format!("pin={}", u8::from(pin))),
            self.cache
                .map(|Cached { batches, from }| format!("cache={batches} after={from}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(&words.join(" "))
    }
}

/// The installed hook. Dropping it removes the directory: Pythons that have loaded the hook keep it, later ones run
/// without it.
#[derive(Debug)]
pub struct Hook {
    directory: TempDir,
    /// The path as Python writes it: absolute, without links.
    path: PathBuf,
}

impl Hook {
    /// Writes the files into a new directory below the one for temporary files, for this user alone.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written, or has a colon in its path, which separates the entries of
    /// `PYTHONPATH`.
    pub fn install() -> io::Result<Self> {
        Self::install_in(&std::env::temp_dir())
    }

    /// Like [`Hook::install`], below `parent`.
    ///
    /// # Errors
    /// Returns the same errors as [`Hook::install`].
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
            fs::write(path.join(name), with_names(text))?;
        }
        Ok(Self { directory, path })
    }

    /// Returns the directory of the files.
    #[cfg(feature = "testing")]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the variables that the launched command needs in addition to our environment, so that it reports to
    /// `probe_address`, which has the form of [`crate::probe::VARIABLE`].
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
            // Set even if empty: the settings of an outer launch must not apply here.
            (SETTINGS_VARIABLE.into(), overrides.to_string().into()),
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

/// Placeholder for the names of the methods that hand over a batch. A list of names is written in Python as in JSON.
const HAND_OVER: &str = "_HAND_OVER = []";

fn with_names(text: &str) -> String {
    let names: Vec<&str> = Names::known().hand_over().collect();
    text.replace(
        HAND_OVER,
        &format!("_HAND_OVER = {}", serde_json::json!(names)),
    )
}

/// Returns `first`, followed by the previous path. Python treats an empty `PYTHONPATH` as none, but an empty entry in
/// it as the current directory.
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
    fn hook_files_are_private_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let hook = Hook::install_in(parent.path()).unwrap();
        let path = hook.path().to_owned();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        for (name, text) in FILES {
            assert_eq!(
                fs::read_to_string(path.join(name)).unwrap(),
                with_names(text)
            );
        }
        let first = fs::read_to_string(path.join("sitecustomize.py")).unwrap();
        assert!(
            first.contains(r#"_HAND_OVER = ["spdl.pipeline._pipeline:"#),
            "{first}"
        );
        // What Python does when it caches compiled files.
        fs::create_dir(path.join("__pycache__")).unwrap();
        fs::write(path.join("__pycache__/sitecustomize.pyc"), "x").unwrap();
        drop(hook);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_unusable_folder_is_an_error_without_leftovers() {
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
    fn our_directory_is_first_in_the_search_path() {
        let join = |before: Option<&str>| search_path(Path::new("/x"), before.map(OsStr::new));
        assert_eq!(join(None), "/x");
        assert_eq!(join(Some("")), "/x");
        assert_eq!(join(Some("/a:/b")), "/x:/a:/b");
        assert_eq!(join(Some(":/b")), "/x::/b");
    }

    #[test]
    fn the_command_gets_the_search_path_and_the_address() {
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
    fn overrides_are_encoded_as_words() {
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
            cache: Some(Cached {
                batches: 8,
                from: 30,
            }),
        };
        assert_eq!(encoded(all), "workers=4 prefetch=2 pin=0 cache=8 after=30");
    }
}
