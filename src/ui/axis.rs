//! The one axis of time that every panel draws on: how much of the past it shows, and where on it a moment lies.
//!
//! Knows lengths of time and cells; no figure.

use std::time::Duration;

use ratatui::layout::Rect;

use super::layout::{self, BorderStyle};
use super::zoom::Zoom;
use super::{View, format};
use crate::model::Axis;

/// What is shown on a screen of this size where the user has not chosen, in seconds: a reading a cell.
pub fn automatic(view: &View<'_>, screen: Rect) -> f64 {
    let boxed = layout::border(screen) == BorderStyle::Boxed;
    cells(screen.width, boxed).max(1) as f64 * view.config.interval.as_secs_f64()
}

/// By how much the axis of a young job grows at a time: seldom, so that the picture seldom moves, and a little, so that it
/// fills its room.
const GROWTH: f64 = 1.25;

/// The length of the axis on a screen of this size, in seconds. It holds all that is chosen, and what there is less
/// than that.
pub fn length(view: &View<'_>, screen: Rect) -> f64 {
    let there = there(view).max(view.config.interval.as_secs_f64());
    let mut length = match view.state.zoom {
        Zoom::Automatic | Zoom::Whole => automatic(view, screen),
        Zoom::Span(seconds) => seconds,
    };
    while view.state.zoom == Zoom::Whole && length < there {
        length *= 2.0;
    }
    while length / GROWTH >= there {
        length /= GROWTH;
    }
    length
}

/// The length of the axis, in seconds.
fn seconds(view: &View<'_>) -> f64 {
    length(view, view.screen)
}

/// The seconds that there are to show.
fn there(view: &View<'_>) -> f64 {
    view.history.span().map_or(0.0, |(from, to)| {
        view.past.map_or(to, |past| past.until.as_secs_f64()) - from
    })
}

/// The time that is drawn, as panels name it: `last 2 min`.
pub(super) fn words(view: &View<'_>) -> String {
    let there = there(view);
    if there <= 0.0 {
        return "nothing yet".to_owned();
    }
    let drawn = format::span(seconds(view).min(there));
    if let Some(ago) = ends_ago(view) {
        return format!("{drawn} until {} ago", format::ago(ago.as_secs()));
    }
    match view.state.zoom {
        Zoom::Whole => format!("all {drawn}"),
        Zoom::Span(chosen) if chosen > there && format::span(chosen) != drawn => {
            format!("{drawn} of {}", format::span(chosen))
        }
        Zoom::Automatic | Zoom::Span(_) => format!("last {drawn}"),
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
    // The first page begins where the past does, and is full where there is enough to fill it.
    let (first, _) = view.history.span()?;
    let full = Duration::try_from_secs_f64(first + seconds).ok()?;
    Some(past.until.saturating_sub(back).max(full.min(past.until)))
}

/// How long before now the axis ends; `None` where it ends with what was newest when the screen was paused.
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

/// By how much the lens is finer than the axis.
const FINER: f64 = 10.0;

/// The end of the axis ten times as fine: up to the newest, or to the moment that is looked at.
pub(super) fn lens(view: &View<'_>, cells: usize) -> Option<Axis> {
    let seconds = match view.state.zoom {
        Zoom::Automatic => automatic(view, view.screen),
        Zoom::Span(seconds) => seconds,
        Zoom::Whole => seconds(view),
    };
    let until = view.past.map(|past| past.at.since_start);
    view.history.axis(until, seconds / FINER, cells)
}

/// Cells for the names on the left and the figures on the right.
pub(super) const LABEL: usize = 7;

pub(super) const FIGURE: usize = 11;

/// Cells that the past has on a screen of this width.
pub(super) fn cells(width: u16, boxed: bool) -> usize {
    let around = if boxed { 4 } else { 2 };
    usize::from(width).saturating_sub(around + LABEL + FIGURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_step_through_all_lengths_and_stop_at_the_ends() {
        let mut zoom = Zoom::Automatic;
        let mut wider = Vec::new();
        for _ in 0..12 {
            zoom = zoom.next(true, 98.0, f64::INFINITY);
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
            zoom = zoom.next(false, 98.0, f64::INFINITY);
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
        assert_eq!(Zoom::Automatic.next(true, 120.0, 120.0), minutes(5.0));
        assert_eq!(minutes(5.0).next(false, 119.0, 300.0), Zoom::Automatic);
        // While the job is young, lengths that it does not fill are no steps on the way in.
        assert_eq!(minutes(5.0).next(false, 98.0, 24.5), Zoom::Span(10.0));
    }
}
