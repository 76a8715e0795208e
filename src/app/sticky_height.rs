//! The room that the verdict keeps: a fact that comes and goes must not move every panel below it each time.
//!
//! Knows how many lines there were; not what they say.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::verdict::Kind;

/// Lines stay for so long after something was last said in them.
const KEPT: Duration = Duration::from_secs(30);

/// The lines of one kind of verdict on one size of screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StickyHeight {
    screen: Rect,
    kind: Option<Kind>,
    lines: u16,
    /// When all of them were last needed, and how many were since.
    at: Duration,
    since: u16,
}

impl StickyHeight {
    /// How many lines are kept.
    pub(super) fn lines(self) -> u16 {
        self.lines
    }

    /// So many are needed at this moment.
    pub(super) fn need(&mut self, screen: Rect, kind: Option<Kind>, lines: u16, now: Duration) {
        // What is said before there is a verdict goes for good.
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
        } else if now.saturating_sub(self.at) > KEPT {
            (self.lines, self.at, self.since) = (self.since, now, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Rect = Rect::new(0, 0, 120, 40);

    /// The lines that are kept where so many are needed, one second after the other.
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
    fn what_comes_and_goes_has_its_place() {
        let noisy = [4, 6, 5, 4, 6, 4, 5, 5, 6].into_iter().cycle().take(100);
        let kept = kept(noisy);
        assert_eq!(kept[0], 4);
        assert!(kept[1..].iter().all(|lines| *lines == 6), "{kept:?}");
    }

    #[test]
    fn what_is_gone_leaves_its_place_in_the_end() {
        let once = kept([6, 4, 5, 4].into_iter().chain([4; 100]));
        // The most that was needed since, and what is needed at last.
        assert_eq!((once[30], once[31], once[61], once[62]), (6, 5, 5, 4));
    }

    #[test]
    fn another_verdict_or_screen_has_room_of_its_own() {
        let mut sticky = StickyHeight::default();
        let now = Duration::from_secs(1);
        sticky.need(SCREEN, Some(Kind::DataBound), 6, now);
        sticky.need(SCREEN, Some(Kind::ComputeBound), 3, now);
        assert_eq!(sticky.lines(), 3);
        sticky.need(Rect::new(0, 0, 80, 24), Some(Kind::ComputeBound), 2, now);
        assert_eq!(sticky.lines(), 2);
    }

    #[test]
    fn what_is_said_before_there_is_a_verdict_keeps_nothing() {
        let mut sticky = StickyHeight::default();
        for lines in [4, 2] {
            sticky.need(SCREEN, Some(Kind::WarmingUp), lines, Duration::ZERO);
            assert_eq!(sticky.lines(), lines);
        }
    }
}
