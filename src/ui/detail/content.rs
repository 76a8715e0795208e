//! What a page of details says.

use ratatui::text::Line;

/// What a page says.
pub(super) struct Content {
    /// What it is about.
    pub(super) name: String,
    /// What its figures cover.
    pub(super) remark: String,
    pub(super) lines: Vec<Line<'static>>,
}

impl Content {
    pub(super) fn new(name: &str, remark: &str, lines: Vec<Line<'static>>) -> Self {
        Self {
            name: name.to_owned(),
            remark: remark.to_owned(),
            lines,
        }
    }
}
