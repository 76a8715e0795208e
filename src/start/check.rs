//! `pipetop config --check`: whether a configuration file can be used, and what is wrong with it.

use std::path::Path;
use std::process::ExitCode;

use crate::config::{ALL_OPTIONS, Config, usual_path};
use crate::error::Hinted;
use crate::loaders::{FILE, Names};
use crate::options::PathArgs;
use crate::setup::{NAMES_HINT, print};
use crate::units::{counted, printable};

/// Checks the given file, or else the one that would be used.
pub(super) fn configuration(file: Option<&Path>, places: &PathArgs) -> Result<ExitCode, Hinted> {
    if let Some(path) = file.filter(|path| path.file_name().is_some_and(|name| name == FILE)) {
        return loaders(path);
    }
    let names = Names::trouble().filter(|_| file.is_none());
    let named = file.or(places.config.as_deref());
    let usual = usual_path().filter(|path| named.is_none() && path.exists());
    let Some(path) = named.or(usual.as_deref()) else {
        if let Some(trouble) = names {
            return Err(Hinted::new(trouble, NAMES_HINT));
        }
        let place = usual_path().map_or_else(String::new, |path| {
            format!(" at {}", printable(&path.display().to_string()))
        });
        let line = format!("no configuration file{place}: using the defaults\n");
        return print(line);
    };
    let errors = Config::check(path);
    if let [only] = errors.as_slice()
        && names.is_none()
    {
        return Err(Hinted::new(only.to_string(), only.hint()));
    }
    let hint = errors.first().map_or(NAMES_HINT, |_| ALL_OPTIONS);
    let lines = errors.iter().map(|error| match error.meant() {
        Some(meant) => format!("{error}; {meant}"),
        None => error.to_string(),
    });
    let mut lines = lines.chain(names);
    if let Some(first) = lines.next() {
        return Err(Hinted::new(first, hint).choices(lines));
    }
    let line = format!("{}: OK\n", printable(&path.display().to_string()));
    print(line)
}

/// Checks a file of loader names.
fn loaders(path: &Path) -> Result<ExitCode, Hinted> {
    let shown = printable(&path.display().to_string());
    let names = Names::read(path).map_err(|trouble| Hinted::new(trouble, NAMES_HINT))?;
    let count = counted(names.loaders.len(), "loader");
    let line = format!("{shown}: OK, {count}\n");
    print(line)
}
