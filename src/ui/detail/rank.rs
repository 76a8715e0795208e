//! One trainer process: what its main thread does, how long its steps take and how the times are distributed.

use ratatui::text::Line;

use super::figures::{bar, functions, labelled, section};
use crate::config::Role::{self, Compute, Cpu, Full, Read, Runnable, Trouble};
use crate::model::rates::RankRates;
use crate::model::steps::{Bin, Spread};
use crate::sample::Tier;
use crate::ui::panel::{Content, side_by_side, stacked};
use crate::ui::{View, format};
use crate::units::Share;

/// Cells of the labels.
const LABEL: usize = 12;
/// Most lines of a histogram.
const BINS: usize = 10;
/// Least width at which two parts are side by side.
const WIDE: u16 = 100;

pub(in crate::ui) fn content(view: &View<'_>, width: u16) -> Content {
    let Some(rank) = view.rank() else {
        let lines = labelled(view, width, 0, "", "no rank found yet");
        return Content::new("rank", "", lines);
    };
    let number = view.rank_number();
    let name = format!("rank {number}  pid {}", rank.key.pid);
    let half = if width < WIDE { width } else { (width - 4) / 2 };
    let time = stacked([figures(view, rank, half), main_thread(view, rank, half)]);
    let inside = functions(view, half, &rank.activity);
    let inside = section(view, half, "ITS MAIN THREAD WAS SEEN IN", inside);
    let steps = match spreads(view, rank, half) {
        Err(why) => {
            let why = labelled(view, width, 5, format::UNKNOWN, &why);
            section(view, width, "SINGLE STEPS", why)
        }
        Ok((basis, steps, waits)) => {
            let mut lines = both(view, width, steps, waits, half);
            lines.extend(labelled(view, width, 0, "", &basis));
            lines
        }
    };
    let lines = stacked([both(view, width, time, inside, half), steps]);
    Content::new(&name, &view.span(), lines)
}

/// Puts two parts side by side if there is room, otherwise one below the other.
fn both(
    view: &View<'_>,
    width: u16,
    one: Vec<Line<'static>>,
    other: Vec<Line<'static>>,
    half: u16,
) -> Vec<Line<'static>> {
    if half < width {
        side_by_side(view, width, &one, &other, half)
    } else {
        stacked([one, other])
    }
}

fn figures(view: &View<'_>, rank: &RankRates, width: u16) -> Vec<Line<'static>> {
    let step = rank.step;
    let every = step.batches_per_s.filter(|rate| *rate > 0.0);
    let pace = format::known(every.map(|rate| {
        let every = format::millis(Some(1000.0 / rate));
        format!(
            "{} a second, one every {every}",
            format::per_second(Some(rate))
        )
    }));
    let parts = format!(
        "step {}, wait {}, load {}",
        format::millis(step.step_ms),
        format::millis(step.wait_ms),
        format::millis(step.load_ms)
    );
    let period = rank.period_batches.map_or_else(
        || "none in the waits".to_owned(),
        |period| format!("a wait every {period} batches"),
    );
    let startup = rank.startup.filter(|share| share.0 >= 0.005).map(|share| {
        (
            "starts",
            format!("{share} of the time waiting for workers to start"),
        )
    });
    let queue = view.loader().and_then(|loader| loader.queue).map(|queue| {
        let ready = format::ready(queue);
        let text = format!("{ready} ready, empty {} of the time", queue.empty);
        ("queue", text)
    });
    let device = rank.device.as_ref().map(|device| {
        let name = device.name.as_deref().unwrap_or("a device");
        (
            "device",
            format!("{name}, busy {}", format::percent(device.busy)),
        )
    });
    let validation = rank.validation.filter(|of| of.time.0 >= 0.005).map(|of| {
        let (time, waiting) = (of.time, of.waiting);
        let text = format!("{time} of the time, {waiting} waiting for its loader; included above");
        ("validation", text)
    });
    let figures = [("batches", pace), ("each", parts), ("pattern", period)];
    let rest = [validation, startup, queue, device].into_iter().flatten();
    let all = figures.into_iter().chain(rest);
    all.flat_map(|(label, text)| labelled(view, width, LABEL, label, &text))
        .collect()
}

/// Returns what the main thread spends its time on.
fn main_thread(view: &View<'_>, rank: &RankRates, width: u16) -> Vec<Line<'static>> {
    const CELLS: usize = 24;
    let unseen = "run pipetop as the job's user";
    let parts: [(&str, Role, Option<Share>); 7] = [
        ("waiting for a batch", Trouble, rank.waiting),
        ("receiving a batch", Full, rank.receiving),
        ("loading a batch itself", Cpu, rank.loading),
        ("on a disk", Read, rank.disk),
        ("stopped", Trouble, rank.stopped),
        ("on a CPU, total", Compute, rank.main_cpu),
        ("runnable, not running", Runnable, rank.main_run_delay),
    ];
    let parts = parts
        .map(|(label, paint, share)| bar(view, width, (label, CELLS), paint, share.ok_or(unseen)));
    section(view, width, "ITS MAIN THREAD'S TIME", parts)
}

type Parts = (String, Vec<Line<'static>>, Vec<Line<'static>>);

/// Returns both histograms and how many steps they cover, or why there are none.
fn spreads(view: &View<'_>, rank: &RankRates, width: u16) -> Result<Parts, String> {
    /// Least number of steps for a histogram.
    const MIN_STEPS: usize = 20;
    let steps = view.steps.rank(rank.key);
    let (kept, all) = steps.map_or((0, 0), |steps| (steps.len(), steps.all()));
    // If only few of many steps are known, they are not typical: the histogram would show the long waits.
    let enough = kept >= MIN_STEPS && 2 * kept as u64 >= all;
    let steps = steps.filter(|_| enough).ok_or_else(|| match all {
        0 => "no complete wait for a batch was seen: batches are ready in time, or waits are invisible"
            .to_owned(),
        all => format!(
            "only {kept} of {all} steps could be told apart; at least {MIN_STEPS} and half are needed. Waits below 10 ms (more \
             on a busy machine) are not seen from outside; with `pipetop run` the job reports each step"
        ),
    })?;
    let job = view.job();
    let is_exact = job.is_some_and(|job| job.access == Tier::T3);
    let precision = if is_exact {
        "as the job reports them"
    } else {
        "sampled: waits below 10 ms count as none"
    };
    let means = match steps.means() {
        0 => String::new(),
        means => format!(", {means} of them averaged with neighbours"),
    };
    let basis = format!("the newest {kept} of {all} steps{means}, {precision}");
    let histogram = |name: &str, paint, spread: &Spread| {
        let bins = spread.bins(BINS).into_iter().map(|bin| {
            let share = Share::of(bin.count as f64, spread.len() as f64);
            bar(view, width, (&label(&bin), 16), paint, share.ok_or(""))
        });
        let marks = marks(view, spread, width);
        section(view, width, name, std::iter::once(marks).chain(bins))
    };
    Ok((
        basis,
        histogram("STEPS, WITHOUT THE WAIT", Compute, &steps.steps()),
        histogram("WAITS FOR A BATCH", Trouble, &steps.waits()),
    ))
}

/// Formats quantiles: `p50 38 ms   p90 42 ms   p99 61 ms`.
fn marks(view: &View<'_>, spread: &Spread, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    for (name, share) in [
        ("p50 ", 0.5),
        ("p90 ", 0.9),
        ("p99 ", 0.99),
        ("longest ", 1.0),
    ] {
        let time = format::millis(spread.quantile(share));
        row.figure(3, name, &time);
    }
    row.line()
}

/// Formats the range of a bin: `  38-40 ms`, `from 60 ms`.
fn label(bin: &Bin) -> String {
    let whole = bin.to_ms.is_none_or(|to| to - bin.from_ms >= 0.95);
    let decimals = usize::from(!whole);
    match bin.to_ms {
        Some(to) => format!("{:.decimals$}-{to:.decimals$} ms", bin.from_ms),
        None => format!("from {:.decimals$} ms", bin.from_ms),
    }
}
