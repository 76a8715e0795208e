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
    let gpu = if context.gpu_idle().or(context.told_stall()).is_some() {
        1.0
    } else {
        WITHOUT_GPU
    };
    Share(MOST * tier * agreement * recognised * gpu * clear_of_threshold(kind, wait)).clamped()
}

/// Less sure where the interval of the waits reaches over the threshold that the kind rests on.
fn clear_of_threshold(kind: Kind, wait: Estimate) -> f64 {
    let (inside, width) = match kind {
        Kind::DataBound => (wait.high.0 - MODERATE, wait.high.0 - wait.low.0),
        Kind::ComputeBound | Kind::HostBound => (SLIGHT - wait.low.0, wait.high.0 - wait.low.0),
        // Between two thresholds there is always another kind near.
        _ => return 0.8,
    };
    if width <= 0.0 {
        return 1.0;
    }
    0.5 + 0.5 * (inside / width).clamp(0.0, 1.0)
}
