//! How much memory a verdict takes: what is kept for later is kept within a limit.

use super::Verdict;
use crate::model::rates::footprint::{list, text};

impl Verdict {
    /// Bytes that this verdict takes, with all that belongs to it.
    pub fn footprint(&self) -> usize {
        size_of::<Self>()
            + list(&self.evidence, |fact| text(&fact.text))
            + list(&self.missing, |one| {
                text(&one.id) + text(&one.why) + text(&one.hint)
            })
            + list(&self.advice, text)
            + match &self.what_if {
                Ok(rows) => list(rows, |_| 0),
                Err(why) => text(why),
            }
    }
}
