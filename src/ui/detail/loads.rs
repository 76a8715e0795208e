//! The last batches of a worker, newest first: the load time of each, with its bounds, as bars on one scale.
//!
//! Where batches are delivered in order, one that took far longer than the rest holds up the others.

use ratatui::text::Line;

use super::figures::{bar_of, heading, labelled, section};
use crate::config::Role::{Dim, Text};
use crate::model::rates::{LoadRates, LoaderRates, WorkerRates};
use crate::sample::{BatchLoad, LoaderKind, Tier, UnderWay};
use crate::ui::panel::side_by_side;
use crate::ui::{View, format};

const NAME: &str = "ITS LATEST BATCHES";
/// Cells of a batch's number, of its load time and of the bounds of that time.
const BATCH: usize = 14;
const TIME: usize = 7;
const BOUNDS: usize = 15;

/// Returns the batches in one column, or in two from the width `wide` on.
pub(super) fn lines(
    view: &View<'_>,
    loader: &LoaderRates,
    worker: &WorkerRates,
    width: u16,
    wide: u16,
) -> Vec<Line<'static>> {
    let seen = worker.loads.as_ref();
    let Some(loads) = seen.filter(|loads| !loads.last.is_empty() || loads.under_way.is_some())
    else {
        let (mean, why) = (mean(worker), why(view, loader, seen));
        let text = format!("{mean}single times are n/a: {why}");
        return section(view, width, NAME, labelled(view, width, 0, "", &text));
    };
    let title = match loads.median_and_longest() {
        Some((median, longest)) => format!(
            "{NAME}  newest first; median {}, longest {}",
            format::millis(Some(median)),
            format::millis(Some(longest))
        ),
        None => NAME.to_owned(),
    };
    let mut lines = vec![heading(view, width, &title)];
    let two = width >= wide && rows(loads) > 1;
    let half = if two { (width - 4) / 2 } else { width };
    let all = bars(view, loads, half);
    lines.extend(if two {
        let (left, right) = all.split_at(all.len().div_ceil(2));
        side_by_side(view, width, left, right, half)
    } else {
        all
    });
    if loads.short > 0 {
        let text = format!(
            "and in the {} at least {} more, too short to time",
            view.span(),
            loads.short
        );
        lines.push(view.row(width).sentence(Dim, &text).line());
    }
    lines
}

fn rows(loads: &LoadRates) -> usize {
    loads.last.len() + usize::from(loads.under_way.is_some())
}

/// Returns a bar for the batch in work and for each finished one.
fn bars(view: &View<'_>, loads: &LoadRates, width: u16) -> Vec<Line<'static>> {
    let so_far = loads.under_way.map(|now| f64::from(now.for_ms));
    let ended = || loads.last.iter().map(BatchLoad::middle_ms);
    let longest = ended().chain(so_far).fold(1.0, f64::max);
    let under_way = |now: UnderWay| {
        let time = f64::from(now.for_ms);
        line(view, width, now.batch, time, "so far", time / longest)
    };
    let ended = loads.last.iter().map(|load| {
        let time = load.middle_ms();
        line(view, width, load.batch, time, &bounds(load), time / longest)
    });
    loads
        .under_way
        .map(under_way)
        .into_iter()
        .chain(ended)
        .collect()
}

fn line(
    view: &View<'_>,
    width: u16,
    batch: u64,
    time_ms: f64,
    bounds: &str,
    share: f64,
) -> Line<'static> {
    let mut row = view.row(width);
    row.padded(Dim, &format!("batch {batch}"), BATCH);
    row.right(Text, &time(time_ms), TIME).space(2);
    row.padded(Dim, bounds, BOUNDS);
    bar_of(&mut row, share);
    row.line()
}

/// Formats a time in whole milliseconds: polls are no more precise.
fn time(ms: f64) -> String {
    if ms < 19.95 {
        format!("{ms:.0} ms")
    } else {
        format::millis(Some(ms))
    }
}

/// Formats the bounds of a time, `(363-463)`, in the unit of the time itself.
fn bounds(load: &BatchLoad) -> String {
    let (low, high) = (f64::from(load.low_ms), f64::from(load.high_ms));
    if load.middle_ms() < 9999.5 {
        format!("({low:.0}-{high:.0})")
    } else {
        format!("({:.1}-{:.1})", low / 1000.0, high / 1000.0)
    }
}

/// Returns the average, which is known even if single times are not.
fn mean(worker: &WorkerRates) -> String {
    let load = worker.load_ms;
    load.map_or_else(String::new, |load| {
        format!("{} each on average; ", format::millis(Some(load)))
    })
}

/// Returns why no single time is known.
fn why(view: &View<'_>, loader: &LoaderRates, seen: Option<&LoadRates>) -> String {
    let job = view.job();
    let may_read = job.is_some_and(|job| job.access >= Tier::T2);
    match seen {
        Some(loads) if loads.short > 0 => format!(
            "in the {} at least {} were too short to time",
            view.span(),
            loads.short
        ),
        Some(_) => "no batch was seen from start to end yet".to_owned(),
        None if loader.kind == LoaderKind::Builtin => {
            "the current batch is read from Python's memory, and this job runs no Python".to_owned()
        }
        None if may_read => "its stack has not shown the current batch yet".to_owned(),
        None => "the current batch is read from its memory: that needs permission to attach (access T2), or a job started by pipetop"
            .to_owned(),
    }
}
