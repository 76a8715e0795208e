//! Whether a job stands still, how long it has been without a batch, and why.

use super::context::Context;
use super::waits::{BETWEEN_CELLS, IDLES, idles, is_notebook};
use crate::model::Progress;
use crate::model::rates::RankRates;
use crate::sample::WorkerNow;
use crate::units::Share;

/// A job is stuck if it has no batch for this many times its usual pause, and for at least this many seconds.
const STALLED_PAUSES: f64 = 20.0;
const STALLED_SECONDS: f64 = 10.0;
/// Minimum share of the time stopped at which a process that no signal has stopped counts as frozen.
const FROZEN: f64 = 0.8;
/// Confidence if it is known what stopped the job, and if it only seems stuck: that may be a long step.
const KNOWN: Share = Share(0.98);
const STUCK: Share = Share(0.8);

/// A main thread that is on a CPU for at least this share of the time works, unless it is in one function for at least the second
/// share of the polls: a wait for other ranks or for a device may use a CPU, too.
const ON_A_CPU: f64 = 0.5;
const IN_ONE_FUNCTION: f64 = 0.8;

/// Why a job stands still, and what to do.
pub(super) struct Standstill {
    pub(super) confidence: Share,
    pub(super) text: String,
    pub(super) advice: String,
}

impl Standstill {
    /// Returns `None` if the rank makes progress, or may do so.
    pub(super) fn of(context: &Context<'_>, progress: &Progress) -> Option<Self> {
        // If a process cannot be read, nothing is known of it, not even that it exists.
        let state = context.rank.state?;
        let pid = context.rank.key.pid;
        let with = |confidence, text: String, advice: String| {
            Some(Self {
                confidence,
                text,
                advice,
            })
        };
        match state {
            'T' => {
                let text = format!("process {pid} is stopped by a signal");
                return with(KNOWN, text, format!("resume it with `kill -CONT {pid}`"));
            }
            't' => {
                let text = format!("process {pid} is stopped by a debugger");
                let advice = "continue it in the debugger, or detach the debugger";
                return with(KNOWN, text, advice.to_owned());
            }
            _ => {}
        }
        let group = context.cgroup();
        let is_known = group.is_some_and(|group| group.frozen == Some(true));
        let may_be = group.is_none_or(|group| group.frozen.is_none());
        let is_frozen = is_known || (may_be && is_frozen(context.rank, progress));
        if !is_frozen && (!is_stuck(progress) || works(context.rank)) {
            return None;
        }
        let seconds = progress.seconds_without_batch.unwrap_or_default();
        let text = format!("no batch was taken for {seconds:.0} s");
        if let Some(idle) = idles(context) {
            let like = if is_notebook(context.rank) {
                BETWEEN_CELLS
            } else {
                ""
            };
            return with(STUCK, format!("{text}: {IDLES}{like}"), idle.hint);
        }
        if is_frozen {
            let confidence = if is_known { KNOWN } else { STUCK };
            let advice = "unpause its container, or thaw its control group";
            let text = match seconds.round() {
                1.0.. => format!("{text}: its control group is frozen"),
                _ => "its control group is frozen".to_owned(),
            };
            return with(confidence, text, advice.to_owned());
        }
        let loaders = context.rank.loaders.iter();
        let mut workers = loaders.flat_map(|loader| &loader.workers);
        if let Some(worker) = workers.find(|worker| worker.now == WorkerNow::Stopped) {
            let (id, pid) = (worker.id, worker.key.pid);
            let text = format!("{text}: worker {id} ({pid}) is stopped by a signal or a debugger");
            let advice = format!("resume it with `kill -CONT {pid}`, or in its debugger");
            return with(STUCK, text, advice);
        }
        let look = "look at what the main thread and the workers are blocked in";
        with(STUCK, text, look.to_owned())
    }
}

/// Whether the rank was stopped for most of the window, with no batch since then.
fn is_frozen(rank: &RankRates, progress: &Progress) -> bool {
    let without = progress.seconds_without_batch.unwrap_or_default();
    rank.stopped.is_some_and(|it| it.0 >= FROZEN)
        && without >= FROZEN * progress.seconds.min(STALLED_SECONDS)
}

/// Whether the main thread does various things, such as to generate samples with the model between two epochs.
fn works(rank: &RankRates) -> bool {
    let seen = rank.activity.iter().map(|activity| activity.share.0);
    let one = seen.clone().fold(0.0, f64::max);
    rank.main_cpu.is_some_and(|cpu| cpu.0 >= ON_A_CPU)
        && one > 0.0
        && one < IN_ONE_FUNCTION * seen.sum::<f64>()
}

fn is_stuck(progress: &Progress) -> bool {
    let (Some(without), Some(usual)) = (progress.seconds_without_batch, progress.usual_pause)
    else {
        return false;
    };
    without >= STALLED_SECONDS.max(STALLED_PAUSES * usual)
}
