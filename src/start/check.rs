//! `pipetop config --check`: whether a configuration file can be used, and what is wrong where it cannot.

use std::path::Path;
use std::process::ExitCode;

use super::print;
use crate::cli::Places;
use crate::config::{Config, Environment, Overrides, usual_path};
use crate::error::Hinted;
use crate::units::printable;

/// Checks the file that was named, else the one that would be in use.
pub(super) fn configuration(file: Option<&Path>, places: &Places) -> Result<ExitCode, Hinted> {
    let named = file.or(places.config.as_deref());
    let usual = usual_path().filter(|path| named.is_none() && path.exists());
    let Some(path) = named.or(usual.as_deref()) else {
        let place = usual_path().map_or_else(String::new, |path| {
            format!(" at {}", printable(&path.display().to_string()))
        });
        let line = format!("there is no configuration file{place}: the defaults are in use\n");
        return print(&mut std::io::stdout(), line.as_bytes());
    };
    Config::load(Some(path), &Overrides::default(), &Environment::read())
        .map_err(|error| Hinted::new(error.to_string(), error.hint()))?;
    let line = format!("{} is right\n", printable(&path.display().to_string()));
    print(&mut std::io::stdout(), line.as_bytes())
}
