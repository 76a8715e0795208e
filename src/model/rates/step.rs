//! Rates of a rank's steps: how many, how long, and how long one batch takes to load.
//!
//! Does not decide what a wait is.

use crate::model::rates::reported::Grown;
use crate::model::rates::{Estimate, LoaderRates, StepRates, loader};
use crate::model::window::RankSums;
use crate::sample::RankSample;
use crate::units::{Share, whole};

/// Returns the rates of the rank's steps: the `exact` ones that it reports, else those of polls.
pub(super) fn rates(
    rank: &RankSample,
    exact: Option<&Grown>,
    (sums, wait, no_step): (&RankSums, Option<Estimate>, Share),
    loading: Option<Share>,
    loaders: &[LoaderRates],
) -> StepRates {
    let step = match exact {
        Some(reported) => self::reported(reported, loading, loaders),
        None => polled(sums, wait, no_step, loading, loaders),
    };
    // A job goes on reporting while there are no workers, as between two epochs.
    let of_workers = (rank.reported.as_ref()).and_then(|_| loader::load_ms_of_workers(loaders));
    StepRates {
        load_ms: of_workers.or(step.load_ms),
        ..step
    }
}

fn reported(reported: &Grown, loading: Option<Share>, loaders: &[LoaderRates]) -> StepRates {
    let batches_per_s = reported.per_second();
    let period_ms = batches_per_s.map(|rate| 1000.0 / rate);
    let batches = whole(reported.steps + reported.lost) as u64;
    StepRates {
        batches: Some(batches),
        batches_per_s,
        step_ms: Some(1000.0 * reported.stepped / reported.steps),
        wait_ms: Some(1000.0 * reported.waited / reported.steps),
        load_ms: loader::load_ms(loaders, loading, period_ms),
    }
}

fn polled(
    sums: &RankSums,
    wait: Option<Estimate>,
    no_step: Share,
    loading: Option<Share>,
    loaders: &[LoaderRates],
) -> StepRates {
    let batches_per_s = sums.batches().per_second();
    let period_ms = batches_per_s
        .filter(|rate| *rate > 0.0)
        .map(|rate| 1000.0 / rate);
    let part = |share: Option<Share>| Some(share?.0 * period_ms?);
    // If all of the time was a wait, no step was seen: the step's length is unknown, not 0.
    let wait = wait.and_then(|wait| wait.point());
    let stepping = wait.map(|wait| Share(wait.complement().0 - no_step.0));
    StepRates {
        batches: sums.batches().whole(),
        batches_per_s,
        step_ms: part(stepping.filter(|share| *share > Share::ZERO)),
        wait_ms: part(wait),
        load_ms: loader::load_ms(loaders, loading, period_ms),
    }
}
