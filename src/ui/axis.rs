//! The time axis shared by all panels: how much of the past it covers, and the cell of each moment.
//!
//! Holds durations and cells only, no figures.

use std::time::Duration;

use ratatui::layout::Rect;

use super::layout::{self, BorderStyle};
use super::zoom::Zoom;
use super::{View, format};
use crate::model::Axis;

/// Returns the default length of the axis on a screen of this size, in seconds: one reading per cell.
pub fn automatic(view: &View<'_>, screen: Rect) -> f64 {
    let boxed = layout::border(screen) == BorderStyle::Boxed;
    cells(screen.width, boxed).max(1) as f64 * view.config.interval.as_secs_f64()
}

/// Factor by which the axis of a young job grows once a cell holds more than one reading. It grows seldom, so that
/// figures seldom move to another cell, and in small steps, so that it fills the width.
const GROWTH: f64 = 1.05;

/// Returns the length of the axis on a screen of this size, in seconds: the chosen span, or less while there is less
/// to show.
pub fn length(view: &View<'_>, screen: Rect) -> f64 {
    let available_seconds = available_seconds(view).max(view.config.interval.as_secs_f64());
    let mut length = match view.state.zoom {
        Zoom::Automatic | Zoom::Whole => automatic(view, screen),
        Zoom::Span(seconds) => seconds,
    };
    while view.state.zoom == Zoom::Whole && length < available_seconds {
        length *= 2.0;
    }
    // Each reading has a cell or more: the axis fills the width, whatever its length.
    if available_seconds < length.min(automatic(view, screen)) {
        return available_seconds;
    }
    while length / GROWTH >= available_seconds {
        length /= GROWTH;
    }
    length
}

/// Returns the length of the axis in seconds.
fn seconds(view: &View<'_>) -> f64 {
    length(view, view.screen)
}

/// Returns how many seconds there are to show.
fn available_seconds(view: &View<'_>) -> f64 {
    view.history.span().map_or(0.0, |(from, to)| {
        view.past.map_or(to, |past| past.until.as_secs_f64()) - from
    })
}

/// Returns the time that is drawn, as panels name it: `last 2 min`.
pub(super) fn words(view: &View<'_>) -> String {
    let available_seconds = available_seconds(view);
    if available_seconds <= 0.0 {
        return "nothing yet".to_owned();
    }
    let drawn = format::span(seconds(view).min(available_seconds));
    if let Some(ago) = ends_ago(view) {
        return format!("{drawn} until {} ago", format::ago(ago.as_secs()));
    }
    match view.state.zoom {
        Zoom::Whole => format!("all {drawn}"),
        Zoom::Span(chosen) if chosen > available_seconds && format::span(chosen) != drawn => {
            format!("{drawn} of {}", format::span(chosen))
        }
        Zoom::Automatic | Zoom::Span(_) => format!("last {drawn}"),
    }
}

/// The axis moves back when the shown moment is further from its end than this part of its length.
const PAGE_AT: f64 = 0.95;
/// The part of its length by which it then moves.
const PAGE_STEP: f64 = 0.5;

/// Returns the axis with this many cells; `None` if there is nothing to draw.
pub(super) fn of(view: &View<'_>, cells: usize) -> Option<Axis> {
    let seconds = seconds(view);
    view.history.axis(end(view, seconds), seconds, cells)
}

/// Returns where the axis ends while a past moment is shown; `None` for now. The axis moves back page by page, so that
/// the cursor moves over the axis instead of the axis scrolling under it.
fn end(view: &View<'_>, seconds: f64) -> Option<Duration> {
    let past = view.past?;
    let before = past.until.saturating_sub(past.at.since_start).as_secs_f64();
    let turns = ((before - PAGE_AT * seconds) / (PAGE_STEP * seconds))
        .ceil()
        .max(0.0);
    let back = Duration::try_from_secs_f64(turns * PAGE_STEP * seconds).ok()?;
    // The first page begins where the history does, and is full if there is enough history to fill it.
    let (first, _) = view.history.span()?;
    let full = Duration::try_from_secs_f64(first + seconds).ok()?;
    Some(past.until.saturating_sub(back).max(full.min(past.until)))
}

/// Returns how long before now the axis ends; `None` if it ends with the newest reading at the time of the pause.
fn ends_ago(view: &View<'_>) -> Option<Duration> {
    let past = view.past?;
    let end = end(view, seconds(view)).filter(|end| *end < past.until)?;
    Some((past.at.since_start + past.ago).saturating_sub(end))
}

/// Returns the cell of the shown moment among this many; `None` if the newest moment is shown.
pub(super) fn cursor(view: &View<'_>, cells: usize) -> Option<usize> {
    let past = view.past.filter(|past| past.at.since_start < past.until)?;
    view.history.cell(&of(view, cells)?, past.at.since_start)
}

/// Returns an axis of the newest readings alone, one in each cell, whatever span is chosen.
pub(super) fn newest(view: &View<'_>, cells: usize) -> Option<Axis> {
    let seconds = cells as f64 * view.config.interval.as_secs_f64();
    let until = view.past.map(|past| past.at.since_start);
    view.history.axis(until, seconds, cells)
}

/// How many times finer the lens is than the axis.
const FINER: f64 = 10.0;

/// Returns the end of the axis at ten times the resolution, up to the newest reading or the shown moment. Its cells are
/// shorter than a reading unless much of the past is shown. They can then be filled from polls only, so the lens is no
/// longer than the polled time, whose start and end `polled` holds.
pub(super) fn lens(view: &View<'_>, cells: usize, polled: (f64, f64)) -> Option<Axis> {
    let seconds = match view.state.zoom {
        Zoom::Automatic => automatic(view, view.screen),
        Zoom::Span(seconds) => seconds,
        Zoom::Whole => seconds(view),
    };
    let until = view.past.map(|past| past.at.since_start);
    let polled = until.map_or(polled.1, |until| until.as_secs_f64().min(polled.1)) - polled.0;
    let mut seconds = seconds / FINER;
    if polled > 0.0 && seconds < cells as f64 * view.config.interval.as_secs_f64() {
        seconds = seconds.min(polled).min(available_seconds(view));
    }
    view.history.axis(until, seconds, cells)
}

/// Cells for the names on the left and for the figures on the right.
pub(super) const LABEL: usize = 7;

pub(super) const FIGURE: usize = 11;

/// Returns how many cells the past has on a screen of this width.
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
        // A span about as long as the automatic one is replaced by it.
        assert_eq!(Zoom::Automatic.next(true, 120.0, 120.0), minutes(5.0));
        assert_eq!(minutes(5.0).next(false, 119.0, 300.0), Zoom::Automatic);
        // While the job is young, zooming in skips spans that it does not fill.
        assert_eq!(minutes(5.0).next(false, 98.0, 24.5), Zoom::Span(10.0));
    }
}
