//! The user's settings: command line over file over default, checked and complete.
//!
//! Decides how settings are written; does not depend on the screen, jobs or samples.

mod columns;
mod file;
mod keymap;
mod theme;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use columns::Column;
pub use file::{ALL_OPTIONS, Ascii, ConfigError, INTERVALS, gpu_name};
use keymap::Clash;
pub use keymap::{KeyPress, Keymap, esc_and_key};
pub use theme::{Role, Theme, ThemeName};

use crate::folders;

/// The default file with comments, as `pipetop config` prints it. [`Config::default`] reads it as well, so that the two
/// cannot differ.
pub const DEFAULT_FILE: &str = include_str!("../config/pipetop.toml");

/// All settings, with a value for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Time between two samples.
    pub interval: Duration,
    /// Whether to draw with ASCII characters only.
    pub ascii: bool,
    pub theme: Theme,
    /// Whether to use the mouse: a click focuses a panel, the wheel scrolls it.
    pub mouse: bool,
    pub keys: Keymap,
    /// GPUs to show, by index or UUID; `None` = those that the job may use.
    pub gpus: Option<Vec<String>>,
    /// Columns of the worker table, from the left, after the worker's number.
    pub columns: Vec<Column>,
    /// Maximum size, in bytes, of the samples of a running job that are kept for looking back.
    pub past: usize,
}

/// Settings from the command line; `None` = not given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overrides {
    pub interval: Option<Duration>,
    /// Whether `--ascii` was given.
    pub ascii: bool,
    pub theme: Option<ThemeName>,
    pub gpus: Option<Vec<String>>,
}

/// Settings of the terminal in the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// The first of `LC_ALL`, `LC_CTYPE`, `LANG` that is set and not empty.
    pub locale: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
    /// Whether `NO_COLOR` is set and not empty.
    pub no_color: bool,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn read() -> Self {
        let set = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(|value| value.to_string_lossy().into_owned())
        };
        Self {
            locale: ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set),
            term: set("TERM"),
            no_color: set("NO_COLOR").is_some(),
        }
    }

    /// Whether the terminal can draw a screen, and not only write line after line. Assumed if `TERM` is not set.
    pub fn can_draw(&self) -> bool {
        self.term.as_deref() != Some("dumb")
    }

    /// Whether colours may be used: `NO_COLOR` does not forbid them, and the terminal is not one without colours.
    pub(crate) fn has_colours(&self) -> bool {
        let without = |term: &str| ["dumb", "vt52", "vt100", "vt102", "vt220"].contains(&term);
        !self.no_color && !self.term.as_deref().is_some_and(without)
    }

    pub(crate) fn has_utf8(&self) -> bool {
        self.locale.as_deref().is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
    }

    /// Whether the terminal may be limited to ASCII: no UTF-8 locale, or a console with a small font.
    pub fn needs_ascii(&self) -> bool {
        !self.has_utf8()
            || matches!(
                self.term.as_deref(),
                None | Some("linux" | "dumb" | "vt100")
            )
    }
}

impl Config {
    /// Loads the user's file if there is one, with the command line over it and the defaults under it.
    ///
    /// `path` is from `--config`; without it, the usual file is read, which need not exist.
    pub fn load(
        path: Option<&Path>,
        overrides: &Overrides,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let (path, text) = match path {
            Some(path) => (path.to_owned(), file::read_named(path)?),
            None => match usual_path() {
                Some(path) if path.exists() => {
                    let text = file::read(&path)?;
                    (path, text)
                }
                _ => (PathBuf::new(), String::new()),
            },
        };
        Self::from_text(&path, &text, overrides, environment)
    }

    /// Returns the errors in this file, in order, at most 20.
    pub fn check(path: &Path) -> Vec<ConfigError> {
        let usual = usual_path().is_some_and(|usual| usual == path);
        let text = if usual {
            file::read(path)
        } else {
            file::read_named(path)
        };
        let mut text = match text {
            Ok(text) => text,
            Err(error) => return vec![error],
        };
        let mut errors = vec![];
        // The parser stops at the first error, so its line is emptied and the rest is parsed again.
        while let Err(error) =
            Self::from_text(path, &text, &Overrides::default(), &Environment::default())
        {
            let emptied = error
                .line()
                .and_then(|line| file::without_line(&text, line));
            errors.push(error);
            match emptied {
                Some(rest) if errors.len() < 20 => text = rest,
                _ => break,
            }
        }
        errors.sort_by_key(ConfigError::line);
        errors
    }

    /// Loads the settings from a text; `path` is named in errors.
    pub fn from_text(
        path: &Path,
        text: &str,
        overrides: &Overrides,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let default = file::parse(Path::new("config/pipetop.toml"), DEFAULT_FILE)?;
        let user = file::parse(path, text)?;
        let clash = |(span, message): Clash| ConfigError::at(path, text, span, &message);
        let keys = Keymap::layered(user.keys.unwrap_or_default(), default.keys).map_err(clash)?;
        let columns = user.columns.or(default.columns).map(columns::each_once);
        let columns = columns.transpose().map_err(clash)?.unwrap_or_default();
        let ascii = overrides.ascii
            || match user.ascii.or(default.ascii) {
                Some(Ascii::Always) => true,
                Some(Ascii::Never) => false,
                Some(Ascii::Auto) | None => environment.needs_ascii(),
            };
        let name = if let Some(name) = overrides.theme {
            name
        } else if !environment.has_colours() {
            ThemeName::Mono
        } else {
            user.theme.or(default.theme).unwrap_or(ThemeName::Dark)
        };
        let mut colours = default.colours.unwrap_or_default();
        colours.extend(user.colours.unwrap_or_default());
        if name == ThemeName::Mono {
            colours.clear();
        }
        let interval = overrides
            .interval
            .or(user.interval)
            .or(default.interval)
            .unwrap_or(Duration::from_secs(1));
        let gpus = overrides
            .gpus
            .clone()
            .or_else(|| {
                let names = user.gpu.or(default.gpu)?;
                Some(names.into_iter().map(file::GpuName::into_string).collect())
            })
            .map(distinct)
            .filter(|list| !list.is_empty());
        Ok(Self {
            interval: interval.clamp(*INTERVALS.start(), *INTERVALS.end()),
            ascii,
            theme: Theme::new(name, colours),
            mouse: user.mouse.or(default.mouse).unwrap_or(false),
            keys,
            gpus,
            columns,
            past: user.past.or(default.past).unwrap_or(8 << 20),
        })
    }
}

/// Returns the names without those that were already named.
fn distinct(mut names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

impl Default for Config {
    /// Loads the default file for a terminal that can show everything.
    fn default() -> Self {
        let environment = Environment {
            locale: Some("C.UTF-8".to_owned()),
            term: Some("xterm-256color".to_owned()),
            no_color: false,
        };
        Self::from_text(Path::new(""), "", &Overrides::default(), &environment)
            .expect("the built-in default is tested")
    }
}

/// Returns `$XDG_CONFIG_HOME/pipetop/pipetop.toml`, or the same file under `~/.config`.
pub fn usual_path() -> Option<PathBuf> {
    folders::config().map(|folder| folder.join("pipetop.toml"))
}

#[cfg(test)]
mod tests;
