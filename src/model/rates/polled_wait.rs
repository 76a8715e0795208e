//! The wait share of a rank by polls of its main thread, and whether they would have seen its waits.
//!
//! Does not depend on how the interval is computed.

use std::collections::VecDeque;

use crate::model::rates::sequential::Blocks;
use crate::model::rates::tally::MainGrown;
use crate::model::rates::{Estimate, estimate};
use crate::model::window::RankSums;
use crate::sample::{LoaderKind, LoaderSample, RankSample};
use crate::units::Share;

/// Minimum seconds between two batches for polls of the main thread to see each wait separately.
const MIN_BATCH_SECONDS: f64 = 0.15;
/// Minimum share of the time stopped at which the rest is too short to show anything.
const STOPPED: f64 = 0.9;

/// Returns the wait share by polls of the main thread. Without stacks, `delay` is the share of time that it was ready
/// without a CPU.
pub(super) fn estimate(
    polled: &MainGrown,
    newer: &RankSample,
    sums: &RankSums,
    delay: Option<Share>,
) -> Estimate {
    let fed = !newer.loaders.is_empty()
        && newer
            .loaders
            .iter()
            .all(|loader| loader.kind != LoaderKind::PytorchMain);
    // If batches come faster than polls can separate the waits, or if no wait was seen to end, each batch counts as one
    // wait.
    let rate = sums.batches().per_second();
    let period = rate.map(|rate| 1.0 / rate);
    let merged = period.is_some_and(|period| period < MIN_BATCH_SECONDS);
    let nothing = VecDeque::new();
    let (waits, episodes) = if merged || sums.waits_ended == 0 {
        (&nothing, sums.batches().whole().unwrap_or(0))
    } else {
        (&sums.waits, sums.waits_ended)
    };
    let other = |loader: &LoaderSample| loader.kind == LoaderKind::Other;
    let unseen = if newer.loaders.iter().any(other) || polled.tally.in_generator > 0 {
        estimate::Unclassified::Unknown
    } else if fed {
        delay.map_or(
            estimate::Unclassified::Workers,
            estimate::Unclassified::WorkersNoStacks,
        )
    } else {
        estimate::Unclassified::Loads
    };
    // If batches come too fast to be separated, workers in step make bursts of one batch each.
    let workers: usize = newer
        .loaders
        .iter()
        .map(|loader| loader.workers.len())
        .sum();
    let bursts = sums.batches().known().unwrap_or(0.0) / workers.max(1) as f64;
    let least = if merged { bursts } else { 0.0 };
    let blocks = Blocks::of_waits(&sums.waits, least);
    estimate::wait(&polled.with_delays(rate), waits, episodes, unseen, &blocks)
}

/// Whether the wait share is known. `exact` means that the job reports it itself; `stopped` is the share of the time in
/// which the job was stopped.
pub(super) fn is_known(
    wait: &Estimate,
    exact: bool,
    stopped: Option<Share>,
    newer: &RankSample,
) -> bool {
    // An interval from 0 to 1 means that waits cannot be seen, not that there were none.
    let seen = wait.low > Share::ZERO || wait.high < Share::ONE;
    let seen = seen && (exact || is_seen(wait, &newer.loaders));
    // Nothing is known of the waits that the job would have had while it was stopped.
    seen && stopped.is_none_or(|it| it.0 < STOPPED)
}

/// Whether waits would have been seen. A child process that looks like a worker but has given no batch does not show
/// that there were none: waits for another loader are not seen.
fn is_seen(wait: &Estimate, loaders: &[LoaderSample]) -> bool {
    let in_use = |loader: &LoaderSample| {
        let counted = loader.batches.is_some_and(|batches| batches.count > 0);
        let by_children = [LoaderKind::PytorchProcesses, LoaderKind::Processes];
        counted || !by_children.contains(&loader.kind)
    };
    wait.share > Share::ZERO || loaders.iter().any(in_use)
}
