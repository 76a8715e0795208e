//! Which kind it is: from the share of time waited and the share of time that the GPU idled.

use super::case::Case;
use super::causes::gil;
use super::device::{communication, in_collectives};
use super::{Interval, Kind, Level};
use crate::model::rates::Estimate;
use crate::units::Share;

/// Below this share of the time nothing is lost; to the next slightly, to the next moderately.
/// The published rules cluster on 5 % and 20 % of the step time (`XProf`, PyTorch Profiler, `TraceML`).
pub(super) const SLIGHT: f64 = 0.05;
pub(super) const MODERATE: f64 = 0.10;
pub(super) const HIGH: f64 = 0.20;

/// Of the time: from here on an empty queue says that batches come no faster than they are taken.
const EMPTY: f64 = 0.5;

pub(super) fn level(lost: Share) -> Level {
    match lost.0 {
        lost if lost < SLIGHT => Level::None,
        lost if lost < MODERATE => Level::Slight,
        lost if lost < HIGH => Level::Moderate,
        _ => Level::High,
    }
}

/// Share of the time lost to data: waits in which the GPU idles, too. Without a GPU signal, and where nothing
/// runs on the device while the trainer waits, the waits.
///
/// Where the job's own events on the device tell it, that is it. Where waits and idle time are known piece by piece, their overlap is bounded piece by piece. Else only as
/// a whole: at least what both must share, at most the smaller of them.
pub(super) fn stall(case: &Case<'_>, wait: Estimate) -> Interval {
    let (below, above) = (wait.share.0 - wait.low.0, wait.high.0 - wait.share.0);
    if let Some(told) = case.told_stall() {
        return Interval {
            share: told,
            low: Share(told.0 - below).clamped(),
            high: Share((told.0 + above).min(wait.high.0)).clamped(),
        };
    }
    let idle = case.gpu_idle().filter(|_| !case.waits_are_idle());
    let Some(idle) = idle else {
        return Interval {
            share: wait.share,
            low: wait.low,
            high: wait.high,
        };
    };
    if let Some(overlap) = case.overlap() {
        return Interval {
            share: Share(f64::midpoint(overlap.low.0, overlap.high.0)),
            low: Share(overlap.low.0 - below).clamped(),
            high: Share((overlap.high.0 + above).min(wait.high.0)).clamped(),
        };
    }
    let least = |wait: Share| (wait.0 + idle.0 - 1.0).max(0.0);
    let most = |wait: Share| wait.0.min(idle.0);
    Interval {
        share: Share(f64::midpoint(least(wait.share), most(wait.share))),
        low: Share(least(wait.low)),
        high: Share(most(wait.high)),
    }
}

/// The kind, where the waits are known.
pub(super) fn kind(case: &Case<'_>, wait: Estimate) -> Kind {
    let waits = wait.share.0;
    let Some(idle) = case.gpu_idle() else {
        return match waits {
            waits if waits >= MODERATE && hides_the_waits(case) => Kind::Balanced,
            waits if waits >= MODERATE => Kind::DataBound,
            waits if waits >= SLIGHT => Kind::Balanced,
            _ if in_collectives(case).is_some() => Kind::CommunicationBound,
            _ if at_the_edge(case) => Kind::Balanced,
            _ => Kind::ComputeBound,
        };
    };
    let rests = idle.0 >= MODERATE;
    let lacked = case.without_data().unwrap_or(wait.share);
    if lacked.0 < MODERATE && idle.0 >= HIGH && gil(case).is_some() {
        return Kind::HostBound;
    }
    if waits >= MODERATE {
        // The waits are hidden behind work that is queued on the GPU.
        let hidden = !rests || hides_the_waits(case);
        // It rests at other times.
        let elsewhere = idle.0 - stall(case, wait).share.0 >= HIGH;
        return match (hidden, elsewhere) {
            (false, _) => Kind::DataBound,
            (true, true) => Kind::HostBound,
            (true, false) => Kind::Balanced,
        };
    }
    if waits >= SLIGHT {
        Kind::Balanced
    } else if communication(case).is_some() {
        Kind::CommunicationBound
    } else if idle.0 >= HIGH {
        Kind::HostBound
    } else if at_the_edge(case) {
        Kind::Balanced
    } else {
        Kind::ComputeBound
    }
}

/// Surely next to none of the waits find the GPU without work.
fn hides_the_waits(case: &Case<'_>) -> bool {
    if let Some(told) = case.told_stall() {
        return told.0 < SLIGHT;
    }
    let overlap = case.overlap().filter(|_| !case.waits_are_idle());
    overlap.is_some_and(|overlap| overlap.high.0 < SLIGHT)
}

/// Hardly a wait, but no reserve either: the queue is empty most of the time.
fn at_the_edge(case: &Case<'_>) -> bool {
    case.found_empty().is_some_and(|empty| empty.0 >= EMPTY)
}

/// Signals that cannot both be right. Whoever waits for a batch finds the queue empty.
pub(super) fn contradiction(case: &Case<'_>) -> Option<String> {
    let waiting = case.rank.waiting?;
    let empty = case.queue_empty()?;
    (waiting.0 >= HIGH && empty.0 < waiting.0 - 0.25).then(|| {
        format!(
            "the trainer seems to wait {waiting} of the time, yet its queue is empty only {empty}"
        )
    })
}
