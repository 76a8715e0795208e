//! One check and its state.

use std::fmt;

use serde::Serialize;

/// One thing that pipetop can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// Stable name in kebab-case.
    pub id: &'static str,
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// How to fix it, as a command if there is one. `None` if nothing is wrong or nothing helps.
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CheckState {
    Ok,
    /// Works, but shows less than it could.
    Limited,
    Missing,
}

impl fmt::Display for CheckState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

pub(super) fn ok(found: impl Into<String>) -> Check {
    Check {
        id: "",
        state: CheckState::Ok,
        found: found.into(),
        hint: None,
    }
}

pub(super) fn limited(found: impl Into<String>, hint: &str) -> Check {
    Check {
        id: "",
        state: CheckState::Limited,
        found: found.into(),
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
    }
}
