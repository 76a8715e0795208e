//! Decides the kind: from the share of time waited and the share of time that the GPU was idle.

use super::busy_time::dispatched;
use super::context::{Context, likely};
use super::device::{communication, in_collectives};
use super::level::{HIGH, MODERATE, SLIGHT};
use super::rules::Cause;
use super::waits::Waits;
use super::{Interval, Kind};
use crate::sample::{LoaderKind, SYNCHRONIZE};
use crate::units::Share;

/// Minimum share of time with an empty queue that shows that batches come no faster than they are taken.
const EMPTY: f64 = 0.5;

/// Amount by which the share of waits must exceed the share of time without a ready batch, or with a batch being made,
/// for these signals to contradict each other.
const TOO_MUCH: f64 = 0.25;

/// Returns the share of the time lost to data: waits during which the GPU is idle, too. Without a GPU signal, or if
/// nothing runs on the device while the trainer waits, all waits are lost.
///
/// If the job's own device events report the share, it is taken from them. If waits and idle time are known piece by
/// piece, so are the bounds of their overlap. The totals bound it, too: at least the time that both must have in
/// common, at most the smaller of the two.
pub(super) fn stall(context: &Context<'_>, waits: Waits) -> Interval {
    let wait = waits.estimate();
    let (below, above) = (wait.share.0 - wait.low.0, wait.high.0 - wait.share.0);
    if let Some(reported) = context.reported_stall() {
        return Interval {
            share: reported,
            low: Share(reported.0 - below).clamped(),
            high: Share((reported.0 + above).min(wait.high.0)).clamped(),
        };
    }
    let rest = context.gpu_rest().filter(|_| !context.waits_are_idle());
    let Some(rest) = rest else {
        return wait.into();
    };
    let least = |wait, synchronized| context.least_overlap(wait, synchronized, rest);
    let least_of_all = least(wait.low, context.rank.synchronized_at_least);
    if let (Some(overlap), Some(pieces)) = (context.overlap(), context.overlap_of_pieces()) {
        // The overlap may include a few more waits than the window has.
        let share = likely(overlap.low, overlap.high).0.min(wait.share.0);
        let share = Share(share);
        let low = (pieces.low.0 - below).max(least_of_all.0).min(share.0);
        return Interval {
            share,
            low: Share(low).clamped(),
            high: Share((overlap.high.0 + above).min(wait.high.0)).clamped(),
        };
    }
    let synchronized = context.rank.time_not_for_data(SYNCHRONIZE);
    let most = |wait: Share| wait.0.min(rest.0);
    Interval {
        share: likely(least(wait.share, synchronized), Share(most(wait.share))),
        low: least_of_all,
        high: Share(most(wait.high)),
    }
}

/// Returns the kind. Requires proof that waits would have been seen.
pub(super) fn kind(context: &Context<'_>, proof: Waits) -> Kind {
    let wait = proof.estimate();
    let waits = wait.share.0;
    let Some(idle) = context.gpu_idle() else {
        return match waits {
            waits if waits >= MODERATE && waits_are_hidden(context) => Kind::Balanced,
            waits if waits >= MODERATE => Kind::DataBound,
            waits if waits >= SLIGHT => Kind::Balanced,
            _ if in_collectives(context).is_some() => Kind::CommunicationBound,
            _ if context.other_waits().0 >= MODERATE => Kind::HostBound,
            _ if has_no_reserve(context) => Kind::Balanced,
            _ => Kind::ComputeBound,
        };
    };
    let rests = idle.0 >= MODERATE;
    // The GPU is idle for much of the time that is not lost to data.
    let elsewhere = idle.0 - stall(context, proof).share.0 >= HIGH;
    let lacked = context.without_data().unwrap_or(wait.share);
    if lacked.0 < MODERATE && idle.0 >= HIGH && Cause::Gil.check(context, Kind::HostBound).is_some()
    {
        return Kind::HostBound;
    }
    if waits >= MODERATE {
        // The waits are hidden behind work that is queued on the GPU.
        let hidden = !rests || waits_are_hidden(context);
        return match (hidden, elsewhere) {
            (false, _) => Kind::DataBound,
            (true, true) => Kind::HostBound,
            (true, false) => Kind::Balanced,
        };
    }
    if waits >= SLIGHT && !elsewhere {
        Kind::Balanced
    } else if communication(context).is_some() {
        Kind::CommunicationBound
    } else if idle.0 >= HIGH {
        Kind::HostBound
    } else if has_no_reserve(context) {
        Kind::Balanced
    } else {
        Kind::ComputeBound
    }
}

/// Whether the GPU has work during so much of the waits that less than a moderate share of the time is lost.
fn waits_are_hidden(context: &Context<'_>) -> bool {
    if let Some(reported) = context.reported_stall() {
        return reported.0 < MODERATE;
    }
    let overlap = context.overlap().filter(|_| !context.waits_are_idle());
    overlap.is_some_and(|overlap| overlap.high.0 < MODERATE)
}

/// Whether the queue is empty most of the time: even without waits, the loader then has no reserve.
fn has_no_reserve(context: &Context<'_>) -> bool {
    context
        .queue_empty_any_source()
        .is_some_and(|empty| empty.0 >= EMPTY)
}

/// Returns the contradiction between two signals that cannot both be right. A trainer that waits for a batch finds the
/// queue empty, unless another rank sends the batch, bypassing the queue. A known loader of another library may take
/// turns between several queues, as Grain does between its processes: then the others are not empty. Where the queue
/// cannot be seen, some worker must be making a batch while the trainer waits.
pub(super) fn contradiction(context: &Context<'_>) -> Option<String> {
    let takes_turns = context
        .loader
        .is_some_and(|loader| loader.kind == LoaderKind::Other && loader.name.is_some());
    if takes_turns || dispatched(context.rank).is_some() {
        return None;
    }
    let waiting = context.rank.waiting.filter(|waiting| waiting.0 >= HIGH)?;
    let less = |share: Share, than: f64| share.0 < than - TOO_MUCH;
    if let Some(empty) = context.queue_empty_at_most() {
        return less(empty, waiting.0).then(|| {
            format!(
                "the trainer seems to wait {waiting} of the time, yet its queue is empty only {empty}"
            )
        });
    }
    // While workers start and the pinning thread works, no worker needs to make a batch.
    let parts = [context.rank.startup, context.rank.pinning];
    let without: f64 = parts.into_iter().flatten().map(|part| part.0).sum();
    let busy = some_worker_is_busy(context)?;
    less(busy, waiting.0 - without).then(|| {
        format!(
            "the trainer seems to wait {waiting} of the time, yet its workers make batches only {busy}"
        )
    })
}

/// Returns an upper bound of the share of time in which any worker made a batch. `None` unless all batches come from
/// worker processes of PyTorch's loader that existed and were seen for the whole window.
fn some_worker_is_busy(context: &Context<'_>) -> Option<Share> {
    let loader = context.loader?;
    let alone = context.other_loaders().next().is_none() && loader.gone_seconds.is_none();
    let lasting = loader.workers_started == 0 && loader.kind == LoaderKind::PytorchProcesses;
    if !(alone && lasting) || loader.workers.is_empty() {
        return None;
    }
    let busy: Option<f64> = (loader.workers.iter())
        .map(|worker| Some(worker.busy?.0))
        .sum();
    Some(Share(busy?).clamped())
}
