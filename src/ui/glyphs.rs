//! The signs that are drawn, in two sets: for terminals with Unicode and for those without.
//!
//! Knows meanings and signs; knows no colour and no figure.

use ratatui::symbols::border;

use crate::config::{Config, Paint};
use crate::model::MarkKind;

/// One set of signs. Every sign is one cell wide.
#[derive(Debug, PartialEq)]
pub(super) struct Glyphs {
    pub(super) border: border::Set<'static>,
    pub(super) rule: &'static str,
    /// Eight heights, lowest first.
    pub(super) levels: [&'static str; 8],
    /// An interval without a reading.
    pub(super) gap: &'static str,
    /// The moment that is looked at, over the past.
    pub(super) cursor: &'static str,
    pub(super) slot_full: &'static str,
    pub(super) slot_empty: &'static str,
    pub(super) bar_full: &'static str,
    pub(super) bar_low: &'static str,
    pub(super) bar_empty: &'static str,
    pub(super) arrow: &'static str,
    pub(super) mark: &'static str,
    pub(super) more: &'static str,
    /// Before a line of a tree that others follow, before the last, and above what is below the first.
    pub(super) branches: [&'static str; 3],
    pub(super) down: &'static str,
    pub(super) up: &'static str,
    /// Another verdict.
    turn: &'static str,
    cpu: &'static str,
    read: &'static str,
    wait: &'static str,
    full: &'static str,
    runnable: &'static str,
    compute: &'static str,
    trouble: &'static str,
    unknown: &'static str,
    /// Only ASCII may be drawn.
    pub(super) ascii: bool,
}

impl Glyphs {
    /// The sign of what happened.
    pub(super) fn happened(&self, kind: MarkKind) -> &'static str {
        match kind {
            MarkKind::JobBegin => "b",
            MarkKind::Epoch => "e",
            MarkKind::Validation => "v",
            MarkKind::Checkpoint => "c",
            MarkKind::Worker => "w",
            MarkKind::Verdict => self.turn,
            MarkKind::JobEnd => "x",
        }
    }

    /// The sign of a meaning.
    pub(super) fn sign(&self, paint: Paint) -> &'static str {
        match paint {
            Paint::Cpu => self.cpu,
            Paint::Read => self.read,
            Paint::Wait => self.wait,
            Paint::Full => self.full,
            Paint::Runnable => self.runnable,
            Paint::Compute => self.compute,
            Paint::Trouble => self.trouble,
            _ => self.unknown,
        }
    }
}

/// The set that the user's terminal can show.
pub(super) fn of(config: &Config) -> &'static Glyphs {
    if config.ascii { &ASCII } else { &UNICODE }
}

pub(super) static UNICODE: Glyphs = Glyphs {
    border: border::PLAIN,
    rule: "─",
    levels: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    gap: " ",
    cursor: "│",
    slot_full: "▮",
    slot_empty: "▯",
    bar_full: "█",
    bar_low: "▄",
    bar_empty: "░",
    arrow: "→",
    mark: "▸",
    more: "…",
    branches: ["├ ", "└ ", "│ "],
    down: "▼",
    up: "▲",
    turn: "◆",
    cpu: "▓",
    read: "▒",
    wait: "·",
    full: "■",
    runnable: "░",
    compute: "█",
    trouble: "!",
    unknown: "?",
    ascii: false,
};

pub(super) static ASCII: Glyphs = Glyphs {
    border: border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    },
    rule: "-",
    levels: ["_", ".", ":", "-", "=", "+", "*", "#"],
    gap: " ",
    cursor: "|",
    slot_full: "#",
    slot_empty: "-",
    bar_full: "#",
    bar_low: "=",
    bar_empty: ".",
    arrow: ">",
    mark: ">",
    more: "~",
    branches: ["|-", "`-", "| "],
    down: "*",
    up: "^",
    turn: "*",
    cpu: "#",
    read: "r",
    wait: ".",
    full: "=",
    runnable: ":",
    compute: "@",
    trouble: "!",
    unknown: "?",
    ascii: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meaning_has_a_sign_of_its_own() {
        use Paint::{Compute, Cpu, Full, Read, Runnable, Trouble, Unknown, Wait};
        for glyphs in [&UNICODE, &ASCII] {
            let mut signs = [Cpu, Read, Wait, Full, Runnable, Compute, Trouble, Unknown]
                .map(|paint| glyphs.sign(paint));
            signs.sort_unstable();
            assert!(signs.windows(2).all(|two| two[0] != two[1]), "{signs:?}");
        }
    }
}
