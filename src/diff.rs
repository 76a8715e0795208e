//! Compares two runs: is the second faster, by how much, and may that be chance?
//!
//! Works on reports and counts of batches; reads no file and prints nothing.

mod pace;
mod text;

use serde::Serialize;

use crate::report::{Cause, Kind, Report};
use crate::units::Share;

pub(crate) use pace::{BatchSlices, Pace};
pub(crate) use text::text;

/// Longest time in a report, in seconds: 30 years.
const LONGEST: f64 = 1e9;
/// Most batches per second, or in a queue.
const MOST: f64 = 1e9;

/// One of the two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Side {
    /// The file that it was read from.
    pub file: String,
    /// Time that its figures cover, in seconds.
    pub seconds: f64,
    pub kind: Kind,
    pub cause: Option<Cause>,
    /// Batches per second of all ranks. `None` if nothing counted them.
    pub pace: Option<Pace>,
    /// Wait share of the rank that the verdict is about. The figures below are also of that rank.
    pub wait_share: Option<Share>,
    pub wait_interval: Option<[Share; 2]>,
    pub step_ms: Option<f64>,
    pub load_ms: Option<f64>,
    /// Mean number of ready batches.
    pub queue_ready: Option<f64>,
    pub queue_capacity: Option<u32>,
    /// Share of the time in which its GPU ran a kernel. `None` without a GPU figure.
    pub gpu_busy_share: Option<Share>,
    /// Whether that figure is of a device that only the job's reports show, and that need not be a GPU.
    #[serde(skip)]
    pub other_device: bool,
}

impl Side {
    /// Creates one side. `pace` comes from counted batches; without it, the report's rate is used, which has no
    /// interval.
    pub(crate) fn new(file: String, report: &Report, pace: Option<Pace>) -> Self {
        let ranks = report.job.as_ref().map_or(&[][..], |job| &job.ranks);
        let rank = report.judged_rank();
        let judged_wait = report.verdict.wait_interval;
        let step = rank.map(|rank| &rank.step);
        let queue = rank.and_then(|rank| rank.queue.as_ref());
        let reported = || {
            let rates = ranks.iter().map(|rank| rank.step.batches_per_s);
            let rate = rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)?;
            Some(Pace::of_unknown_spread(rate))
        };
        Self {
            file,
            seconds: report.window.seconds,
            kind: report.verdict.kind,
            cause: report.verdict.cause,
            pace: pace.or_else(reported),
            wait_share: rank.and_then(|rank| rank.wait_share),
            // That of the verdict, as in the report: the rank's own interval says only how well its waits could be
            // measured.
            wait_interval: judged_wait.or_else(|| rank.and_then(|rank| rank.wait_interval)),
            step_ms: step.and_then(|step| step.step_ms),
            load_ms: step.and_then(|step| step.load_ms),
            queue_ready: queue.map(|queue| queue.ready),
            queue_capacity: queue.and_then(|queue| queue.capacity),
            gpu_busy_share: report.verdict.gpu_idle_share.map(Share::complement),
            other_device: report.verdict.gpu_idle_share.is_some() && !has_gpu(report),
        }
    }

    /// Returns the name of a figure that no run can have, as in a report that was edited.
    pub(crate) fn impossible(&self) -> Option<&'static str> {
        let share = |share: Option<Share>| share.map(|share| share.0);
        let bounds = self.wait_interval.map(|bounds| bounds.map(|bound| bound.0));
        let [low, high] = bounds.map_or([None; 2], |bounds| bounds.map(Some));
        let figures = [
            ("window.seconds", Some(self.seconds), LONGEST),
            ("batches_per_s", self.pace.map(|it| it.batches_per_s), MOST),
            ("step_ms", self.step_ms, LONGEST * 1000.0),
            ("load_ms", self.load_ms, LONGEST * 1000.0),
            ("queue.ready", self.queue_ready, MOST),
            ("wait_share", share(self.wait_share), 1.0),
            ("wait_interval", high, 1.0),
            ("wait_interval", low, high.unwrap_or(1.0)),
            ("gpu_idle_share", share(self.gpu_busy_share), 1.0),
        ];
        let is_wrong = |(_, figure, most): &(_, Option<f64>, f64)| {
            figure.is_some_and(|figure| !(0.0..=*most).contains(&figure))
        };
        figures.into_iter().find(is_wrong).map(|(name, ..)| name)
    }
}

/// Whether the driver lists the device of the rank that the verdict is about.
fn has_gpu(report: &Report) -> bool {
    let device = report.judged_rank().and_then(|rank| rank.device.as_ref());
    let name = device.and_then(|device| device.name.as_ref());
    let mut gpus = report.gpus.iter();
    gpus.any(|gpu| name.is_none_or(|name| gpu.name.as_ref() == Some(name)))
}

/// The result of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Faster,
    Slower,
    /// The difference may be chance.
    NotToldApart,
    /// The rates, or by how much they vary, are not known.
    Unknown,
}

/// Ratio of the batches per second after and before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Speedup {
    pub ratio: f64,
    /// Its 95 % interval. `None` if it is not known by how much a rate varies.
    pub interval: Option<[f64; 2]>,
}

/// Both sides and the result of the change: the document of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub schema: &'static str,
    pub before: Side,
    pub after: Side,
    pub outcome: Outcome,
    pub speedup: Option<Speedup>,
    /// Why the outcome is unknown; `None` if it is known.
    pub why: Option<String>,
}

impl Comparison {
    pub(crate) fn new(before: Side, after: Side) -> Self {
        let paces = before.pace.zip(after.pace);
        let speedup = paces.map(|(before, after)| Speedup {
            ratio: after.batches_per_s / before.batches_per_s,
            interval: after.over(before),
        });
        let outcome = match speedup.and_then(|speedup| speedup.interval) {
            None => Outcome::Unknown,
            Some([low, _]) if low > 1.0 => Outcome::Faster,
            Some([_, high]) if high < 1.0 => Outcome::Slower,
            Some(_) => Outcome::NotToldApart,
        };
        let why = (outcome == Outcome::Unknown).then(|| unknown(&before, &after));
        Self {
            schema: "pipetop.diff/1",
            before,
            after,
            outcome,
            speedup,
            why,
        }
    }

    /// Returns whether the second run is significantly slower, and by more than this share. `None` if that is unknown.
    pub(crate) fn is_slower_by(&self, share: Share) -> Option<bool> {
        let ratio = self.speedup?.ratio;
        match self.outcome {
            Outcome::Unknown => None,
            Outcome::Slower => Some(ratio < 1.0 - share.0),
            Outcome::Faster | Outcome::NotToldApart => Some(false),
        }
    }
}

fn unknown(before: &Side, after: &Side) -> String {
    let uncounted = [before, after].into_iter().find(|side| side.pace.is_none());
    if let Some(side) = uncounted {
        return format!("no batches were counted in {}", side.file);
    }
    let vague = |side: &&Side| side.pace.is_some_and(|pace| pace.interval.is_none());
    let file = [before, after].into_iter().find(vague);
    let file = file.map_or("one of them", |side| &side.file);
    format!(
        "{file} does not show how much its rate varies: use a recording of at least {} intervals, {} s and {} batches",
        pace::SLICES_ENOUGH + 1,
        pace::SECONDS_ENOUGH,
        pace::BATCHES_ENOUGH
    )
}
