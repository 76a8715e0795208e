//! One check and its state.

use std::fmt;

use serde::Serialize;

/// One thing that pipetop can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// Stable, kebab-case.
    pub id: &'static str,
    pub state: State,
    /// What was found.
    pub found: String,
    /// How to fix it: a command where there is one. `None` if nothing is wrong or nothing helps.
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    Ok,
    /// Works, but shows less than it could.
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

pub(super) fn ok(id: &'static str, found: impl Into<String>) -> Check {
    Check {
        id,
        state: State::Ok,
        found: found.into(),
        hint: None,
    }
}

pub(super) fn limited(id: &'static str, found: impl Into<String>, hint: &str) -> Check {
    Check {
        id,
        state: State::Limited,
        found: found.into(),
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
    }
}
