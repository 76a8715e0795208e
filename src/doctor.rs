//! `pipetop doctor`: what pipetop can see on this machine, what it cannot, why, and how to fix it.
//!
//! Turns facts into checks, and checks into text. Does not depend on a job; prints nothing itself.

mod check;
mod checks;
mod facts;
mod terminal;

use std::fmt::Write as _;

use crate::units::printable;

pub(crate) use check::{Check, CheckState};
pub(crate) use checks::checks;
pub(crate) use facts::Facts;
pub(crate) use terminal::Terminal;

/// Formats one line per check, the hint below it, and a count at the end.
pub(crate) fn text(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let Check {
            id, state, found, ..
        } = check;
        // Names of groups, disks and terminals come from outside.
        let found = printable(found);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{state:<7}  {id:<width$}  {found}");
        if let Some(hint) = &check.hint {
            let _ = writeln!(text, "{:<7}  {:<width$}  -> {hint}", "", "");
        }
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (ok, limited) = (count(CheckState::Ok), count(CheckState::Limited));
    let _ = writeln!(
        text,
        "\n{ok} ok, {limited} limited, {} missing",
        count(CheckState::Missing)
    );
    text
}

/// Returns JSON with the schema `pipetop.doctor/1`.
pub(crate) fn json(checks: &[Check]) -> serde_json::Value {
    serde_json::json!({
        "schema": "pipetop.doctor/1",
        "version": env!("CARGO_PKG_VERSION"),
        "checks": checks,
    })
}

#[cfg(test)]
mod tests;
