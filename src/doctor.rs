//! `pipetop doctor`: what can be seen here, what cannot, why, and the command that would change it.
//!
//! Makes checks out of facts and words out of checks; knows no job, and prints nothing itself.

mod checks;
mod facts;
mod terminal;

use std::fmt::{self, Write as _};
use std::path::Path;

use serde::Serialize;

use crate::sample::{Gap, GpuSample};
use crate::units::printable;

pub use checks::checks;
pub use facts::{Facts, Process};
pub use terminal::Terminal;

/// One thing that pipetop would like to see or use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable, kebab-case.
    pub id: &'static str,
    pub state: State,
    /// What was found, in plain words.
    pub found: String,
    /// What would change it: a command where there is one. `None` where nothing needs to or would.
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Ok,
    /// It works, and shows or gives less than it could.
    Limited,
    Missing,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        })
    }
}

/// Looks at the machine. `gpus` opens the driver and reads each GPU once: the one place where NVML comes
/// in. It may hang, and is then left behind.
pub fn examine<G>(proc_root: &Path, sys_root: &Path, terminal: Terminal, gpus: G) -> Vec<Check>
where
    G: FnOnce() -> Result<Vec<GpuSample>, Gap> + Send + 'static,
{
    checks(&Facts::read(proc_root, sys_root, terminal, gpus))
}

/// One line a check, the hint under it, a count at the end.
pub fn text(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let Check {
            id, state, found, ..
        } = check;
        // Names of groups, disks and terminals are not ours.
        let found = printable(found);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{state:<7}  {id:<width$}  {found}");
        if let Some(hint) = &check.hint {
            let _ = writeln!(text, "{:<7}  {:<width$}  -> {hint}", "", "");
        }
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (ok, limited) = (count(State::Ok), count(State::Limited));
    let _ = writeln!(
        text,
        "\n{ok} ok, {limited} limited, {} missing",
        count(State::Missing)
    );
    text
}

/// The schema `pipetop.doctor/1`.
pub fn json(checks: &[Check]) -> serde_json::Value {
    serde_json::json!({
        "schema": "pipetop.doctor/1",
        "version": env!("CARGO_PKG_VERSION"),
        "checks": checks,
    })
}

#[cfg(test)]
mod tests;
