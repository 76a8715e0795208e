//! The room reserved for the verdict: a fact that appears and disappears must not move the panels below each time.
//!
//! Holds line counts only; does not depend on the text.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::verdict::Kind;

/// How long lines are reserved after they were last used.
const RESERVED_FOR: Duration = Duration::from_secs(30);

/// The lines reserved for one kind of verdict on one size of screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StickyHeight {
    screen: Rect,
    kind: Option<Kind>,
    lines: u16,
    /// When all reserved lines were last needed, and the most lines needed since then.
    at: Duration,
    since: u16,
}

impl StickyHeight {
    /// Returns the number of reserved lines.
    pub(super) fn lines(self) -> u16 {
        self.lines
    }

    /// Records that this many lines are needed now.
    pub(super) fn need(&mut self, screen: Rect, kind: Option<Kind>, lines: u16, now: Duration) {
        // Lines needed while warming up are not reserved for the verdict that follows.
        let early = kind == Some(Kind::WarmingUp);
        let another = early || (self.screen, self.kind) != (screen, kind);
        self.since = self.since.max(lines);
        if another || lines >= self.lines {
            *self = Self {
                screen,
                kind,
                lines,
                at: now,
                since: 0,
            };
        } else if now.saturating_sub(self.at) > RESERVED_FOR {
            (self.lines, self.at, self.since) = (self.since, now, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Rect = Rect::new(0, 0, 120, 40);

    /// Returns the reserved lines when these counts are needed, one per second.
    fn kept(needed: impl IntoIterator<Item = u16>) -> Vec<u16> {
        let mut sticky = StickyHeight::default();
        let kept = (0..).zip(needed).map(|(second, lines)| {
            let now = Duration::from_secs(second);
            sticky.need(SCREEN, Some(Kind::DataBound), lines, now);
            sticky.lines()
        });
        kept.collect()
    }

    #[test]
    fn reserved_lines_outlive_a_fact() {
        let noisy = [4, 6, 5, 4, 6, 4, 5, 5, 6].into_iter().cycle().take(100);
        let kept = kept(noisy);
        assert_eq!(kept[0], 4);
        assert!(kept[1..].iter().all(|lines| *lines == 6), "{kept:?}");
    }

    #[test]
    fn reserved_lines_expire() {
        let once = kept([6, 4, 5, 4].into_iter().chain([4; 100]));
        // When the six lines expire, the most lines needed since then are reserved; later, the current need.
        assert_eq!((once[30], once[31], once[61], once[62]), (6, 5, 5, 4));
    }

    #[test]
    fn another_verdict_or_screen_resets_reserved_lines() {
        let mut sticky = StickyHeight::default();
        let now = Duration::from_secs(1);
        sticky.need(SCREEN, Some(Kind::DataBound), 6, now);
        sticky.need(SCREEN, Some(Kind::ComputeBound), 3, now);
        assert_eq!(sticky.lines(), 3);
        sticky.need(Rect::new(0, 0, 80, 24), Some(Kind::ComputeBound), 2, now);
        assert_eq!(sticky.lines(), 2);
    }

    #[test]
    fn text_before_the_first_verdict_reserves_no_lines() {
        let mut sticky = StickyHeight::default();
        for lines in [4, 2] {
            sticky.need(SCREEN, Some(Kind::WarmingUp), lines, Duration::ZERO);
            assert_eq!(sticky.lines(), lines);
        }
    }
}
