//! The data has fewer shards than there are workers, or uneven ones, so some workers have nothing to load, or soon have
//! nothing left.

use crate::model::rates::WorkerRates;
use crate::units::Share;
use crate::verdict::context::Context;
use crate::verdict::level::MODERATE;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "too few or uneven shards",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Other,
    picture: Picture::IdleWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&["split the data into at least as many shards as there are workers, of equal size"])
    },
};

/// Minimum share of workers with nothing to load.
const UNUSED: f64 = 0.25;
/// Busy share below which a worker counts as idle.
const IDLE: f64 = 0.1;
/// The same for a worker that makes less than `FEW` of the batches of the most productive one. With in-order delivery,
/// all make equally many until the data of one ends.
const MOSTLY_IDLE: f64 = 0.4;
const FEW: f64 = 0.4;

fn check(context: &Context<'_>) -> Option<Evidence> {
    // If workers are restarted often, not all exist at once, and those that do have loaded little so far.
    let startup = context.rank.startup;
    if startup.is_some_and(|share| share.0 >= MODERATE) {
        return None;
    }
    let wanted = f64::from(context.loader?.settings.num_workers?);
    let rates = context.workers().iter().map(batches);
    let most = rates.fold(0.0, f64::max);
    // A worker that has never handed over a batch has no count at all.
    let makes_none = |worker: &&WorkerRates| {
        let idle = |below| worker.busy.is_some_and(|busy| busy.0 < below);
        let none = idle(IDLE) && batches(worker) == 0.0;
        let few = idle(MOSTLY_IDLE) && batches(worker) < FEW * most;
        most > 0.0 && (none || few)
    };
    let useful = context
        .workers()
        .iter()
        .filter(|worker| !makes_none(worker));
    let useful = useful.count() as f64;
    let unused = Share::of(wanted - useful, wanted)?;
    (useful > 0.0 && unused.0 >= UNUSED).then(|| {
        let text =
            format!("only {useful:.0} of {wanted:.0} workers have data to load all the time");
        Evidence::supporting("unused-workers", unused.0, UNUSED, text)
    })
}

fn batches(worker: &WorkerRates) -> f64 {
    worker.batches_per_s.unwrap_or(0.0)
}
