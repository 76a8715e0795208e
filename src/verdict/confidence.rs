//! How sure: agreement of independent signals, the width of the estimate, and how deep one can look.

use super::context::Context;
use super::level::{MODERATE, SLIGHT};
use super::{Evidence, Kind};
use crate::model::rates::Estimate;
use crate::sample::{LoaderKind, Tier};
use crate::units::Share;

/// With everything seen and agreeing, and never more.
const MOST: f64 = 0.98;
/// A loader that is known by its functions' names, and one that is known by its place in the training loop alone.
const BY_NAME: f64 = 0.95;
const BY_ITS_PLACE: f64 = 0.85;
/// Where the GPU cannot be seen: the waits may be hidden behind its work.
const WITHOUT_GPU: f64 = 0.9;
/// How far the wait share that is seen may be from the one that a job measures of itself, beside what chance moves: 95 of
/// 100 verdicts were nearer (docs/accuracy.md).
const OFF: f64 = 0.035;

pub(super) fn confidence(
    context: &Context<'_>,
    kind: Kind,
    wait: Estimate,
    evidence: &[Evidence],
) -> Share {
    let tier = match context.job.access {
        Tier::T0 => 0.3,
        Tier::T1 => 0.9,
        Tier::T2 | Tier::T3 => 1.0,
    };
    let families = |supports: bool| {
        let known = ["wait", "queue-empty", "workers-busy", "gpu-idle"];
        evidence
            .iter()
            .filter(|fact| known.contains(&fact.id) && fact.supports == supports)
            .count()
    };
    let (agree, against) = (families(true) as f64, families(false) as f64);
    let agreement = if agree + against == 0.0 {
        0.5
    } else {
        // Each signal against weighs half: it may have another explanation.
        1.0 - 0.5 * against / (agree + against)
    };
    let recognised = match context.loader.map(|loader| (loader.kind, &loader.name)) {
        Some((LoaderKind::Other, None)) => BY_ITS_PLACE,
        Some((LoaderKind::Other, Some(_))) => BY_NAME,
        _ => 1.0,
    };
    let gpu = if context.gpu_idle().or(context.reported_stall()).is_some() {
        1.0
    } else {
        WITHOUT_GPU
    };
    let off = match context.job.access {
        Tier::T3 => 0.0,
        Tier::T0 | Tier::T1 | Tier::T2 => OFF,
    };
    let clear = clear_of_threshold(kind, wait, off);
    Share(MOST * tier * agreement * recognised * gpu * clear).clamped()
}

/// The chance that the share of the waits is one that this kind rests on. Not below a half: a kind that other waits or
/// the GPU decide may stand whatever the share is.
fn clear_of_threshold(kind: Kind, wait: Estimate, off: f64) -> f64 {
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
    chance.max(0.5)
}

/// The normal distribution's share below so many halves of its 95 % interval: the logistic curve, at most 0.01 off.
fn normal(halves: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * 1.96 * halves).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(low: f64, share: f64, high: f64) -> Estimate {
        Estimate {
            share: Share(share),
            low: Share(low),
            high: Share(high),
            polls: 800,
            unknown: Share::ZERO,
            unclear: Share::ZERO,
            early: None,
        }
    }

    #[test]
    fn a_share_at_a_threshold_is_one_of_two_kinds() {
        let chance = |kind, share| clear_of_threshold(kind, wait(share, share, share), OFF);
        for kind in [Kind::DataBound, Kind::Balanced] {
            assert!(chance(kind, 0.1) < 0.51, "{kind:?}");
        }
        assert!(chance(Kind::DataBound, 0.15) > 0.99);
        assert!(chance(Kind::ComputeBound, 0.0) > 0.99);
        assert!((0.8..0.9).contains(&chance(Kind::Balanced, 0.075)));
    }

    #[test]
    fn an_interval_counts_on_the_side_of_the_threshold() {
        let chance = |kind, wait| clear_of_threshold(kind, wait, OFF);
        assert!(chance(Kind::ComputeBound, wait(0.0, 0.01, 0.4)) < 0.7);
        assert!(chance(Kind::DataBound, wait(0.2, 0.25, 0.9)) > 0.99);
        assert!(chance(Kind::DataBound, wait(0.0, 0.25, 0.3)) < 0.9);
    }

    #[test]
    fn what_a_job_reports_is_not_off() {
        let near = wait(0.105, 0.11, 0.115);
        assert!(clear_of_threshold(Kind::DataBound, near, OFF) < 0.8);
        assert!(clear_of_threshold(Kind::DataBound, near, 0.0) > 0.99);
    }
}
