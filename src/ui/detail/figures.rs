//! What pages are made of: headings, sentences behind labels, shares as bars, the functions a thread was seen in.
//!
//! Knows how a line looks, and no figure.

use ratatui::text::Line;

use crate::config::Role::{self, Dim, Key, Text, Title, Unknown};
use crate::model::rates::{Activity, LoaderRates};
use crate::sample::{LoaderKind, Tier};
use crate::ui::line_builder::LineBuilder;
use crate::ui::{View, format};
use crate::units::Share;

/// Cells that a share takes.
const SHARE: usize = 6;

/// The name of a part of a page.
pub(super) fn heading(view: &View<'_>, width: u16, text: &str) -> Line<'static> {
    let mut row = view.row(width);
    row.text(Title, text);
    row.line()
}

/// A sentence behind its label, in as many lines as it takes; `cells` are the label's.
pub(super) fn labelled(
    view: &View<'_>,
    width: u16,
    cells: usize,
    label: &str,
    text: &str,
) -> Vec<Line<'static>> {
    let parts = format::wrap(text, usize::from(width).saturating_sub(cells));
    let line = |(place, part): (usize, &String)| {
        let mut row = view.row(width);
        row.padded(Key, if place == 0 { label } else { "" }, cells);
        let paint = if part == format::UNKNOWN {
            Unknown
        } else {
            Text
        };
        row.sentence(paint, part);
        row.line()
    };
    parts.iter().enumerate().map(line).collect()
}

/// A label, a share, and the share as a bar in what is left; of a share that is not known, why.
pub(super) fn bar(
    view: &View<'_>,
    width: u16,
    (label, cells): (&str, usize),
    paint: Role,
    share: Result<Share, &str>,
) -> Line<'static> {
    let mut row = view.row(width);
    row.padded(Text, label, cells);
    match share {
        Ok(share) => {
            // What does not happen has no colour.
            let figure = if share.0 < 0.005 { Dim } else { paint };
            row.right(figure, &share.to_string(), SHARE).space(2);
            let room = row.left();
            let sign = match paint {
                Dim | Text => view.glyphs().bar_full,
                paint => view.glyphs().sign(paint),
            };
            row.text(paint, &sign.repeat(length(share, room)));
        }
        Err(why) => {
            row.right(Unknown, format::UNKNOWN, SHARE);
            row.space(2).sentence(Dim, why);
        }
    }
    row.line()
}

/// A part of the longest of its kind as a bar in what is left of the row.
pub(super) fn bar_of(row: &mut LineBuilder<'_>, part: f64) {
    let cells = length(Share(part), row.left());
    // Half as high as a share's: so many below each other would be a wall.
    let sign = row.glyphs().bar_low;
    row.text(Text, &sign.repeat(cells));
}

/// Cells that a share of the room takes; what there is at all is seen.
fn length(share: Share, room: usize) -> usize {
    let cells = share.clamped().0 * room as f64;
    (1..=room)
        .rev()
        .find(|count| *count as f64 <= cells.round())
        .unwrap_or(usize::from(share.0 > 0.001 && room > 0))
}

/// Why no function is known.
fn no_functions(view: &View<'_>) -> &'static str {
    let job = view.figures().and_then(|rates| rates.job.as_ref());
    let builtin = |loader: &LoaderRates| loader.kind == LoaderKind::Builtin;
    if view.loader().is_some_and(builtin) {
        "no stacks: this job runs no Python"
    } else if job.is_some_and(|job| job.access >= Tier::T2) {
        "no stacks seen yet"
    } else {
        "no stacks: they need permission to attach (access T2), or a job started by pipetop"
    }
}

/// The functions that a thread was seen in most.
pub(super) fn functions(view: &View<'_>, width: u16, activity: &[Activity]) -> Vec<Line<'static>> {
    if activity.is_empty() {
        return labelled(view, width, 5, format::UNKNOWN, no_functions(view));
    }
    let longest = activity
        .iter()
        .map(|activity| format::width(&activity.name));
    let cells = longest.max().unwrap_or(0).min(usize::from(width) / 2) + 1;
    let line = |activity: &Activity| {
        let label = (&*activity.name, cells);
        bar(view, width, label, Role::Cpu, Ok(activity.share))
    };
    activity.iter().map(line).collect()
}
