//! The one axis of time that every panel draws on: how much of the past it shows, and where on it a moment lies.
//!
//! Knows lengths of time and cells; no figure.

use std::time::Duration;

use ratatui::layout::Rect;

use super::layout::{self, Chrome};
use super::{View, format, history};
use crate::model::Axis;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
/// Seconds that keys step through.
const SPANS: [f64; 11] = [
    10.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    3.0 * HOUR,
    12.0 * HOUR,
    24.0 * HOUR,
];

/// How much of the past is shown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Zoom {
    /// As much as the history panel has cells for readings.
    #[default]
    Automatic,
    /// So many seconds.
    Span(f64),
    /// All that there is.
    Whole,
}

impl Zoom {
    /// The next closer or wider one; `automatic` is what that is in seconds now.
    #[must_use]
    pub fn next(self, wider: bool, automatic: f64) -> Self {
        let other = |span: &f64| (*span / automatic - 1.0).abs() > 0.02;
        let mut steps: Vec<(f64, Self)> = SPANS
            .into_iter()
            .filter(other)
            .map(|span| (span, Self::Span(span)))
            .collect();
        steps.push((automatic, Self::Automatic));
        steps.push((f64::INFINITY, Self::Whole));
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let now = match self {
            Self::Automatic => automatic,
            Self::Span(seconds) => seconds,
            Self::Whole => f64::INFINITY,
        };
        let mut steps = steps.into_iter();
        let next = if wider {
            steps.find(|(span, _)| *span > now)
        } else {
            steps.rfind(|(span, _)| *span < now)
        };
        next.map_or(self, |(_, zoom)| zoom)
    }
}

/// What is shown on a screen of this size where the user has not chosen, in seconds: a reading a cell.
pub fn automatic(view: &View<'_>, screen: Rect) -> f64 {
    let boxed = layout::chrome(screen) == Chrome::Boxed;
    history::cells(screen.width, boxed).max(1) as f64 * view.config.interval.as_secs_f64()
}

/// What is shown, in seconds.
pub(super) fn seconds(view: &View<'_>) -> f64 {
    let automatic = automatic(view, view.screen);
    match view.state.zoom {
        Zoom::Automatic => automatic,
        Zoom::Span(seconds) => seconds,
        Zoom::Whole => {
            let there = view.history.span().map_or(0.0, |(from, to)| to - from);
            // By doubling, so that the picture stays as it is for as long as it holds all.
            let mut all = automatic;
            while all < there {
                all *= 2.0;
            }
            all
        }
    }
}

/// As panels say it: `last 2 min`.
pub(super) fn words(view: &View<'_>) -> String {
    let name = match view.state.zoom {
        Zoom::Whole => "all",
        _ => "last",
    };
    let length = format::span(seconds(view));
    match ends_ago(view) {
        Some(ago) => format!("{length} until {} ago", format::ago(ago.as_secs())),
        None => format!("{name} {length}"),
    }
}

/// Part of what is shown up to which the moment that is looked at may lie from the end, before the axis goes
/// back; and by which part it then goes.
const FAR: f64 = 0.95;
const TURN: f64 = 0.5;

/// The axis in so many cells; `None` where there is nothing to draw.
pub(super) fn of(view: &View<'_>, cells: usize) -> Option<Axis> {
    let seconds = seconds(view);
    view.history.axis(end(view, seconds), seconds, cells)
}

/// Where the axis ends while the past is looked at. It goes back as a page is turned: the moment moves over it,
/// not it under the moment.
fn end(view: &View<'_>, seconds: f64) -> Option<Duration> {
    let past = view.past?;
    let before = past.until.saturating_sub(past.at.since_start).as_secs_f64();
    let turns = ((before - FAR * seconds) / (TURN * seconds))
        .ceil()
        .max(0.0);
    let back = Duration::try_from_secs_f64(turns * TURN * seconds).ok()?;
    Some(past.until.saturating_sub(back))
}

/// How long before now the axis ends; `None` where it ends with what was newest when the screen was frozen.
fn ends_ago(view: &View<'_>) -> Option<Duration> {
    let past = view.past?;
    let end = end(view, seconds(view)).filter(|end| *end < past.until)?;
    Some((past.at.since_start + past.ago).saturating_sub(end))
}

/// Of so many cells, that of the moment that is looked at, where it is not simply the newest.
pub(super) fn cursor(view: &View<'_>, cells: usize) -> Option<usize> {
    let past = view.past.filter(|past| past.at.since_start < past.until)?;
    view.history.cell(&of(view, cells)?, past.at.since_start)
}

/// The newest readings alone, one in each cell, whatever else is shown.
pub(super) fn newest(view: &View<'_>, cells: usize) -> Option<Axis> {
    let seconds = cells as f64 * view.config.interval.as_secs_f64();
    let until = view.past.map(|past| past.at.since_start);
    view.history.axis(until, seconds, cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_step_through_all_lengths_and_stop_at_the_ends() {
        let mut zoom = Zoom::Automatic;
        let mut wider = Vec::new();
        for _ in 0..12 {
            zoom = zoom.next(true, 98.0);
            wider.push(zoom);
        }
        let minutes = |minutes: f64| Zoom::Span(60.0 * minutes);
        assert_eq!(wider[..3], [minutes(2.0), minutes(5.0), minutes(10.0)]);
        assert_eq!(
            wider[7..],
            [
                minutes(24.0 * 60.0),
                Zoom::Whole,
                Zoom::Whole,
                Zoom::Whole,
                Zoom::Whole
            ]
        );
        let mut closer = Vec::new();
        for _ in 0..13 {
            zoom = zoom.next(false, 98.0);
            closer.push(zoom);
        }
        assert_eq!(
            closer[7..],
            [
                minutes(2.0),
                Zoom::Automatic,
                minutes(1.0),
                Zoom::Span(30.0),
                Zoom::Span(10.0),
                Zoom::Span(10.0)
            ]
        );
        // What is as good as one of them stands in its place.
        assert_eq!(Zoom::Automatic.next(true, 120.0), minutes(5.0));
        assert_eq!(minutes(5.0).next(false, 119.0), Zoom::Automatic);
    }
}
