//! Decides when enough was seen for a verdict: a clear verdict is given at once, an unclear one later.
//!
//! A verdict is clear if it would be the same for all values of the wait share and the GPU's idle share in their
//! intervals. These intervals ([`Bounds`]) are wide enough to be judged repeatedly. They do not cover a period that is
//! longer than the time observed, so a job counts as fed only with a reserve: a queue that is not empty, and workers
//! with time to spare.

use super::classify::kind;
use super::context::Context;
use super::device::time_in_collectives;
use super::level::SLIGHT;
use super::waits::Waits;
use super::worst::worst_rank;
use super::{Kind, WarmingUp};
use crate::model::Progress;
use crate::model::rates::{Bounds, Rates};
use crate::sample::LoaderKind;
use crate::units::Share;

/// Minimum that must have been seen of a job before any verdict.
const MIN_BATCHES: u64 = 5;
const MIN_SECONDS: f64 = 2.0;
/// Enough for a verdict that is not clear.
const BATCHES_ENOUGH: u64 = 20;
const SECONDS_ENOUGH: f64 = 10.0;
/// Seconds by which a sample may come early or late.
const LATE: f64 = 0.1;
/// Probability that the intervals hold at all polls together.
pub(super) const JOINT_LEVEL: f64 = 0.975;

/// Workers busy for less than this share of the time have time to spare.
const MAX_BUSY: f64 = 0.9;
/// For a queue with a reserve: the maximum share of time that it is empty; the minimum occupancy if no worker is seen;
/// and the minimum occupancy if all workers seem busy, since those of some loaders look as if they were loading while
/// they wait at a full queue.
const EMPTY: f64 = 0.1;
const FULL: f64 = 0.5;
const ALWAYS_FULL: f64 = 0.95;

/// Returns whether enough was seen to give a verdict, clear or not.
pub(super) fn is_enough(progress: &Progress) -> bool {
    let batches = progress.batches;
    seconds(progress) >= SECONDS_ENOUGH && batches.is_none_or(|batches| batches >= BATCHES_ENOUGH)
}

/// Returns whole seconds, as they are shown: samples come a little early or late, and `--for 10s` must be enough.
fn seconds(progress: &Progress) -> f64 {
    (progress.seconds + LATE).floor()
}

/// Returns the progress until enough was seen. `batches` are those of the window.
pub(super) fn progress(progress: &Progress, batches: Option<u64>) -> WarmingUp {
    let unclear =
        seconds(progress) >= MIN_SECONDS && batches.is_none_or(|batches| batches >= MIN_BATCHES);
    WarmingUp {
        batches: if unclear { progress.batches } else { batches },
        batches_needed: if unclear { BATCHES_ENOUGH } else { MIN_BATCHES },
        seconds: seconds(progress),
        seconds_needed: if unclear { SECONDS_ENOUGH } else { MIN_SECONDS },
        unclear,
    }
}

/// Returns the same rates with the wider intervals of waits. If nothing shows how much the waits vary, the interval is
/// 0 to 1.
pub(super) fn widened(rates: &Rates) -> Rates {
    let mut rates = rates.clone();
    let ranks = rates.job.iter_mut().flat_map(|job| &mut job.ranks);
    for wait in ranks.filter_map(|rank| rank.wait.as_mut()) {
        (wait.low, wait.high) = wait
            .early
            .map_or((Share::ZERO, Share::ONE), |ends| (ends.low, ends.high));
    }
    rates
}

/// Returns whether the verdict on the rank of `context` would be of this kind for all values of the shares in their
/// intervals.
pub(super) fn is_clear(context: &Context<'_>, progress: &Progress, kind: Kind) -> bool {
    let may_be = match kind {
        Kind::DataBound => true,
        Kind::ComputeBound => is_fed(context, progress),
        // Without a GPU the kind depends on single polls of what the main thread waits for.
        Kind::HostBound => context.gpu_idle().is_some() && is_fed(context, progress),
        // The other kinds lie between two kinds, or depend on single polls.
        _ => false,
    };
    // Waits are seen even if batches are not counted, but the absence of waits takes longer to establish.
    let counted = context.rank.step.batches.is_some() || kind == Kind::DataBound;
    let ends = [|ends: Bounds| ends.low, |ends: Bounds| ends.high];
    let everywhere = || {
        ends.iter().all(|wait| {
            ends.iter()
                .all(|idle| kind_at(context, kind, progress, wait, idle) == Some(kind))
        })
    };
    may_be && counted && idle_has_ends(context) && everywhere()
}

/// Returns whether the bounds of the GPU's idle share are known.
fn idle_has_ends(context: &Context<'_>) -> bool {
    let read = context.gpu_idle().is_some() && context.reported_idle().is_none();
    let mut gpus = context.gpus_in_use().into_iter();
    !read || gpus.all(|used| used.instance().is_none() && used.gpu.early_idle.is_some())
}

/// Returns the kind at these ends of the intervals. `None` if an interval is not known. One rank that waits for data is
/// enough for `data-bound`, so the other ranks then keep their shares.
fn kind_at(
    context: &Context<'_>,
    expected: Kind,
    progress: &Progress,
    wait_end: impl Fn(Bounds) -> Share,
    idle_end: impl Fn(Bounds) -> Share,
) -> Option<Kind> {
    let judged = context.rank.key;
    let mut rates = context.rates.clone();
    for gpu in &mut rates.gpus {
        if let Some(ends) = gpu.early_idle {
            gpu.busy = Some(idle_end(ends).complement());
        }
    }
    let ranks = rates.job.iter_mut().flat_map(|job| &mut job.ranks);
    for rank in ranks.filter(|rank| expected != Kind::DataBound || rank.key == judged) {
        let wait = rank.wait.as_mut()?;
        let ends = wait.early?;
        wait.share = wait_end(ends);
        // The job's reports of its device cover the same steps as its waits, and vary with them.
        let half = (ends.high.0 - ends.low.0) / 2.0;
        let around = |share: Share| {
            idle_end(Bounds {
                low: Share(share.0 - half).clamped(),
                high: Share(share.0 + half).clamped(),
            })
        };
        if let Some(device) = &mut rank.device {
            device.busy = device
                .busy
                .map(|busy| around(busy.complement()).complement());
            device.idle_in_waits = device.idle_in_waits.map(around);
        }
    }
    let job = rates.job.as_ref()?;
    let context = Context::new(&rates, job, worst_rank(job, None)?);
    Some(kind(&context, Waits::of(&context, progress)?))
}

/// Returns whether the loader has a reserve and the main thread waits for almost nothing else.
fn is_fed(context: &Context<'_>, progress: &Progress) -> bool {
    // If workers are restarted with each epoch, a wait for them may come soon.
    let epoch = progress
        .seconds_of_workers
        .is_none_or(|seconds| seconds >= SECONDS_ENOUGH);
    let unseen = context.rank.idle().0;
    let collectives = time_in_collectives(context.job, context.rank).0;
    let other = context.other_waits().0 + collectives + unseen;
    epoch && other < SLIGHT && has_reserve(context)
}

fn has_reserve(context: &Context<'_>) -> bool {
    let queue = context.loader.and_then(|loader| loader.queue);
    if context.loader.map(|loader| loader.kind) == Some(LoaderKind::PytorchMain) {
        // This loader makes each batch when it is needed: there is nothing that could run empty.
        return true;
    }
    let busy = context.mean_share(|worker| worker.busy);
    let empty = context.queue_empty_any_source();
    let full = queue.and_then(|queue| queue.occupancy);
    let full_from = |least: f64| full.is_some_and(|share| share.0 >= least);
    let to_spare = match busy {
        Some(busy) => busy.0 < MAX_BUSY || full_from(ALWAYS_FULL),
        None => full_from(FULL),
    };
    to_spare && empty.is_none_or(|empty| empty.0 < EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The samples of `--for 10s` may come at 9.96 s, while the text shows `10 of 10 s`.
    #[test]
    fn seconds_count_as_they_are_shown() {
        let at = |seconds| Progress {
            seconds,
            batches: Some(118),
            ..Progress::default()
        };
        assert!(is_enough(&at(9.96)) && !is_enough(&at(9.6)));
        assert!(progress(&at(1.96), Some(5)).unclear);
        let shown = progress(&at(1.6), Some(5));
        assert!(!shown.unclear && shown.progress().starts_with("1 of 2 s"));
    }
}
