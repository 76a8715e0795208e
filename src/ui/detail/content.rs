//! The content of a page of details.

use ratatui::text::Line;

/// The content of a page.
pub(in crate::ui) struct Content {
    /// Its subject.
    pub(in crate::ui) name: String,
    /// The time that its figures cover.
    pub(in crate::ui) remark: String,
    pub(in crate::ui) lines: Vec<Line<'static>>,
}

impl Content {
    pub(in crate::ui) fn new(name: &str, remark: &str, lines: Vec<Line<'static>>) -> Self {
        Self {
            name: name.to_owned(),
            remark: remark.to_owned(),
            lines,
        }
    }
}
