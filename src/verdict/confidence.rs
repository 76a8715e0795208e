//! Probability that the verdict is right: from the interval of the wait share, and from how often verdicts with the
//! same access and the same way of recognising the loader were right in the runs of docs/accuracy.csv.

use super::context::Context;
use super::level::{MODERATE, SLIGHT};
use super::{Evidence, Interval, Kind};
use crate::model::rates::Estimate;
use crate::sample::{LoaderKind, Tier};
use crate::units::Share;

/// Maximum confidence, with every signal seen and in agreement.
const MAX_CONFIDENCE: f64 = 0.98;
/// Ratio of right verdicts to those that the wait share alone predicts, fitted to the runs; a test repeats the fit.
/// `T1` is from earlier runs: since then all 12 verdicts were right, too few to raise it.
const T1: f64 = 0.85;
const PYTORCH: f64 = 1.0;
const BY_NAME: f64 = 1.0;
const BY_ITS_PLACE: f64 = 1.0;
/// Factors that no run has measured: for access that does not show what the job waits for; for a GPU that cannot be
/// seen, so that its work may hide the waits; and for a GPU that contradicts the waits.
const T0: f64 = 0.3;
const UNSEEN_GPU: f64 = 0.9;
const GPU_DISAGREES: f64 = 0.75;
/// Error of the polled wait share that 95 of 100 verdicts do not exceed, compared with the job's own measurement and
/// not counting chance (docs/accuracy.md).
const OFF: f64 = 0.02;

/// Returns the probability that `kind` is right. `no_gpu` = the machine has none, so nothing hides the waits.
pub(super) fn confidence(
    context: &Context<'_>,
    kind: Kind,
    (wait, stall): (Estimate, Interval),
    evidence: &[Evidence],
    no_gpu: bool,
) -> Share {
    let tier = context.job.access;
    let loader = context
        .loader
        .map(|loader| (loader.kind, loader.name.is_some()));
    let disagrees = |fact: &Evidence| fact.id == "gpu-idle" && !fact.supports;
    let gpu = if evidence.iter().any(disagrees) {
        GPU_DISAGREES
    } else if no_gpu || context.gpu_idle().or(context.reported_stall()).is_some() {
        1.0
    } else {
        UNSEEN_GPU
    };
    let factors = MAX_CONFIDENCE * measured(tier, loader) * gpu;
    let chance = side_probability(kind, wait, off(tier)).min(lost_probability(kind, wait, stall));
    Share(factors * chance).clamped()
}

/// Returns the factor for the access, the kind of loader, and whether it is known by its name.
fn measured(tier: Tier, loader: Option<(LoaderKind, bool)>) -> f64 {
    match (tier, loader) {
        (Tier::T0, _) => T0,
        (Tier::T1, _) => T1,
        (_, Some((LoaderKind::Other, false))) => BY_ITS_PLACE,
        (_, Some((LoaderKind::Other, true))) => BY_NAME,
        // What a job reports itself is exact.
        (Tier::T3, _) => 1.0,
        (Tier::T2, _) => PYTORCH,
    }
}

fn off(tier: Tier) -> f64 {
    if tier == Tier::T3 { 0.0 } else { OFF }
}

/// Returns the probability that the wait share is on this kind's side of the threshold. It is at least one half, since
/// a kind that is decided by other waits or by the GPU may be right for any share. Time that may have been waits could
/// make `compute-bound` wrong: any part of it is then as likely as any other.
fn side_probability(kind: Kind, wait: Estimate, off: f64) -> f64 {
    let above = |threshold: f64| {
        let distance = wait.share.0 - threshold;
        let side = if distance >= 0.0 {
            wait.share.0 - wait.low.0
        } else {
            wait.high.0 - wait.share.0
        };
        normal(distance / side.hypot(off).max(f64::EPSILON))
    };
    let chance = match kind {
        Kind::DataBound => above(MODERATE),
        Kind::ComputeBound | Kind::HostBound => 1.0 - above(SLIGHT),
        Kind::Balanced => above(SLIGHT) - above(MODERATE),
        _ => 0.8,
    };
    let within = (SLIGHT - wait.share.0) / wait.unclear.0.max(f64::EPSILON);
    let most = if kind == Kind::ComputeBound {
        within
    } else {
        1.0
    };
    chance.min(most).max(0.5)
}

/// Returns the probability that waits which are clear by themselves are lost: a GPU may have worked during an unknown part of
/// them, each as likely as any other. At least one half, as in [`side_probability`].
fn lost_probability(kind: Kind, wait: Estimate, stall: Interval) -> f64 {
    let hides = wait.low.0 >= MODERATE && stall.low.0 < MODERATE;
    if kind != Kind::DataBound || !hides {
        return 1.0;
    }
    let lost = (stall.high.0 - MODERATE) / (stall.high.0 - stall.low.0).max(f64::EPSILON);
    lost.clamp(0.5, 1.0)
}

/// Returns the share of the normal distribution below `halves` times half the width of its 95 % interval: a logistic
/// curve, at most 0.01 off.
fn normal(halves: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * 1.96 * halves).exp())
}

#[cfg(test)]
mod tests;
