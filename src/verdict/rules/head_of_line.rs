//! One slow worker holds up the others: batches are delivered in order, and a worker gets its next task only when
//! a batch was taken.

use crate::model::rates::WorkerRates;
use crate::units::{Share, median};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "one slow worker holds up the others",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Other,
    picture: Picture::IdleWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "in_order=False (PyTorch 2.6 and newer) lets the other workers' batches pass",
            "balance the work: spread the slow samples or the slow shard",
        ])
    },
};

/// Minimum shares of the time: the slow worker busy, and the others idle.
const BUSY: f64 = 0.75;
const IDLE: f64 = 0.5;
/// Minimum ratio of the slow worker's busy time to that of the others.
const SLOWER: f64 = 3.0;
/// Maximum ratio of the slow worker's batches to those of the others: with in-order delivery, all make equally many,
/// and a worker that makes more has more data.
const MORE_BATCHES: f64 = 1.5;

fn check(context: &Context<'_>) -> Option<Evidence> {
    if context.loader?.settings.in_order == Some(false) {
        return None;
    }
    let mut workers: Vec<(f64, &WorkerRates)> = context
        .workers()
        .iter()
        .filter_map(|worker| Some((worker.busy?.0, worker)))
        .collect();
    workers.sort_by(|one, other| other.0.total_cmp(&one.0));
    let ((busiest, slow), rest) = workers.split_first()?;
    let others = median(rest.iter().map(|(busy, _)| *busy))?;
    let slower = busiest / others.max(0.01);
    let usual = median(rest.iter().filter_map(|(_, worker)| worker.batches_per_s));
    let made = slow.batches_per_s.zip(usual);
    let more = made.is_some_and(|(own, usual)| own > MORE_BATCHES * usual);
    (*busiest >= BUSY && 1.0 - others >= IDLE && slower >= SLOWER && !more).then(|| {
        let id = slow.id;
        let text = format!(
            "worker {id} is busy {} of the time, the others idle {}: batches are delivered in order",
            Share(*busiest),
            Share(1.0 - others)
        );
        Evidence::supporting("head-of-line", 1.0 - others, IDLE, text)
    })
}
