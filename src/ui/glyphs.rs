//! The signs on screen, in two sets: for terminals with Unicode and for those without.
//!
//! Maps meanings to signs; does not depend on colours or figures.

use ratatui::symbols::border;

use crate::config::{Config, Role};
use crate::model::MarkKind;
use crate::sample::WorkerNow;
use crate::units::whole;

/// One set of signs. Every sign is one cell wide; only the arrow is two.
#[derive(Debug, PartialEq)]
pub(crate) struct Glyphs {
    pub(crate) border: border::Set<'static>,
    pub(crate) rule: &'static str,
    /// Eight heights, lowest first.
    pub(crate) levels: [&'static str; 8],
    /// The cursor at the shown moment, drawn over the past.
    pub(crate) cursor: &'static str,
    /// A batch that begins directly after another.
    pub(crate) begin: &'static str,
    /// A light line behind a graph, at a threshold.
    pub(crate) light: &'static str,
    pub(crate) slot_full: &'static str,
    pub(crate) slot_empty: &'static str,
    pub(crate) bar_full: &'static str,
    pub(crate) bar_low: &'static str,
    /// The arrow from one part of the pipeline to the next.
    pub(crate) arrow: &'static str,
    pub(crate) mark: &'static str,
    pub(crate) more: &'static str,
    /// Tree guides: before a line with siblings below it, before the last sibling, and beside the children of the first
    /// kind.
    pub(crate) branches: [&'static str; 3],
    down: &'static str,
    up: &'static str,
    /// The verdict changed.
    turn: &'static str,
    /// One for each of [`SIGNED`], and one for unknown.
    signs: [&'static str; 8],
    /// Only ASCII characters may be drawn.
    pub(crate) ascii: bool,
}

/// The sign of an interval without a reading, in both sets.
pub(crate) const GAP: &str = " ";

/// The roles with a sign.
const SIGNED: [Role; 7] = [
    Role::Cpu,
    Role::Read,
    Role::Wait,
    Role::Full,
    Role::Runnable,
    Role::Compute,
    Role::Trouble,
];

impl Glyphs {
    /// Returns the sign of a mark.
    pub(crate) fn mark_sign(&self, kind: MarkKind) -> &'static str {
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

    /// Returns the arrow of a sort order, which may be reversed.
    pub(crate) fn order(&self, reversed: bool) -> &'static str {
        if reversed { self.up } else { self.down }
    }

    /// Returns the height that stands for a share. The last eighth stays free, so that rows do not run into each other.
    pub(crate) fn level(&self, share: f64) -> &'static str {
        self.levels[whole((share.clamp(0.0, 1.0) * (self.levels.len() - 2) as f64).round())]
    }

    /// Returns the sign of a role.
    pub(crate) fn sign(&self, paint: Role) -> &'static str {
        let place = SIGNED.iter().position(|role| *role == paint);
        self.signs[place.unwrap_or(SIGNED.len())]
    }
}

/// Returns the set for the user's terminal.
pub(crate) fn of(config: &Config) -> &'static Glyphs {
    if config.ascii { &ASCII } else { &UNICODE }
}

pub(crate) static UNICODE: Glyphs = Glyphs {
    border: border::PLAIN,
    rule: "─",
    levels: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    cursor: "│",
    begin: "▐",
    light: "┈",
    slot_full: "▮",
    slot_empty: "▯",
    bar_full: "█",
    bar_low: "▄",
    arrow: "─▸",
    mark: "▸",
    more: "…",
    branches: ["├ ", "└ ", "│ "],
    down: "▼",
    up: "▲",
    turn: "◆",
    signs: ["▓", "▒", "▁", "■", "░", "█", "!", "·"],
    ascii: false,
};

pub(crate) static ASCII: Glyphs = Glyphs {
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
    cursor: "|",
    begin: "|",
    light: "-",
    slot_full: "#",
    slot_empty: "-",
    bar_full: "#",
    bar_low: "=",
    arrow: "->",
    mark: ">",
    more: "~",
    branches: ["|-", "`-", "| "],
    down: "*",
    up: "^",
    turn: "*",
    signs: ["#", "r", "_", "=", ":", "@", "!", "?"],
    ascii: true,
};

/// Returns the role, word and sign of a worker's state.
pub(super) fn doing(now: WorkerNow, glyphs: &Glyphs) -> (Role, &'static str, &'static str) {
    let (paint, word) = match now {
        WorkerNow::Unknown => (Role::Unknown, "n/a"),
        WorkerNow::Idle => (Role::Wait, "idle"),
        WorkerNow::Cpu => (Role::Cpu, "cpu"),
        WorkerNow::Runnable => (Role::Runnable, "runnable"),
        WorkerNow::Read => (Role::Read, "read"),
        WorkerNow::Network => (Role::Read, "network"),
        WorkerNow::Handover => (Role::Full, "full"),
        // Half as high: less than working, more than idle.
        WorkerNow::Sleep if !glyphs.ascii => return (Role::Wait, "asleep", glyphs.bar_low),
        WorkerNow::Sleep => return (Role::Wait, "asleep", "z"),
        WorkerNow::Stopped => (Role::Trouble, "stopped"),
        WorkerNow::Starting => return (Role::Cpu, "starting", "+"),
        WorkerNow::Gone => (Role::Trouble, "gone"),
    };
    (paint, word, glyphs.sign(paint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meaning_has_a_sign_of_its_own() {
        for glyphs in [&UNICODE, &ASCII] {
            let mut signs = glyphs.signs;
            signs.sort_unstable();
            assert!(signs.windows(2).all(|two| two[0] != two[1]), "{signs:?}");
        }
    }
}
