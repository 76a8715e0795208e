//! The building blocks of pages: headings, labelled sentences, bars of shares, the functions a thread was seen in.
//!
//! Must not depend on particular figures.

use ratatui::text::Line;

use crate::config::Role::{self, Dim, Key, Text, Title, Trouble, Unknown};
use crate::model::rates::{Activity, LoaderRates};
use crate::sample::{LoaderKind, Tier};
use crate::ui::line_builder::LineBuilder;
use crate::ui::{View, format};
use crate::units::{Share, whole};

/// Cells of a share in percent.
const SHARE: usize = 6;

/// Returns the heading of a part of a page.
pub(in crate::ui) fn heading(view: &View<'_>, width: u16, text: &str) -> Line<'static> {
    view.row(width).text(Title, text).line()
}

/// Returns a part of a page: its heading, and these lines below it.
pub(in crate::ui) fn section(
    view: &View<'_>,
    width: u16,
    text: &str,
    lines: impl IntoIterator<Item = Line<'static>>,
) -> Vec<Line<'static>> {
    let heading = heading(view, width, text);
    std::iter::once(heading).chain(lines).collect()
}

/// Returns a sentence behind its label, on as many lines as it needs; `cells` is the width of the label.
pub(super) fn labelled(
    view: &View<'_>,
    width: u16,
    cells: usize,
    label: &str,
    text: &str,
) -> Vec<Line<'static>> {
    let known = text != format::UNKNOWN;
    let paint = if known { Text } else { Unknown };
    view.paragraph(width, cells, (Key, label), (paint, text))
}

/// Returns a label, a share, and the share as a bar in the rest of the line; if the share is unknown, the reason.
pub(super) fn bar(
    view: &View<'_>,
    width: u16,
    label: (&str, usize),
    paint: Role,
    share: Result<Share, &str>,
) -> Line<'static> {
    let sign = match paint {
        Dim | Text => view.glyphs().bar_full,
        Trouble => view.glyphs().bar_low,
        paint => view.glyphs().sign(paint),
    };
    signed_bar(view, width, label, (paint, sign), share)
}

/// Like [`bar`], drawn with this sign.
pub(super) fn signed_bar(
    view: &View<'_>,
    width: u16,
    (label, cells): (&str, usize),
    (paint, sign): (Role, &str),
    share: Result<Share, &str>,
) -> Line<'static> {
    let mut row = view.row(width);
    row.padded(Text, label, cells);
    match share {
        // A share that is shown as 0 has no colour and no bar.
        Ok(share) if share.0 < 0.005 => {
            row.right(Dim, &share.to_string(), SHARE);
        }
        Ok(share) => {
            row.right(paint, &share.to_string(), SHARE).space(2);
            let room = row.left();
            row.text(paint, &sign.repeat(length(share, room)));
        }
        Err(why) => {
            row.right(Unknown, format::UNKNOWN, SHARE);
            row.space(2).sentence(Dim, why);
        }
    }
    row.line()
}

/// Draws a bar in the rest of the row; `part` is its length relative to the longest bar of its kind.
pub(super) fn bar_of(row: &mut LineBuilder<'_>, part: f64) {
    let cells = length(Share(part), row.left());
    // Half as high as the bar of a share: many bars of full height below each other would look like a wall.
    let sign = row.glyphs().bar_low;
    row.text(Text, &sign.repeat(cells));
}

/// Returns how many cells a share of the room takes. A share above 0 takes at least one.
fn length(share: Share, room: usize) -> usize {
    let cells = whole((share.clamped().0 * room as f64).round());
    cells.max(usize::from(share.0 > 0.001)).min(room)
}

/// Returns why no function is known.
fn no_functions(view: &View<'_>) -> &'static str {
    let job = view.job();
    let builtin = |loader: &LoaderRates| loader.kind == LoaderKind::Builtin;
    if view.loader().is_some_and(builtin) {
        "no stacks: this job runs no Python"
    } else if job.is_some_and(|job| job.access >= Tier::T2) {
        "no stacks seen yet"
    } else {
        "no stacks: they need permission to attach (access T2), or a job started by pipetop"
    }
}

/// Returns the functions that a thread was seen in most often.
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
