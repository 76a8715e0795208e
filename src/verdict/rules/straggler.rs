//! This rank waits for data much longer than the other ranks of the job, which then wait for it.

use crate::units::{Share, median};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "one rank is slower",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Other,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: true,
    advice: |_| {
        texts(&["look at this rank's data and its share of the CPUs: the others wait for it"])
    },
};

/// Minimum difference of the wait shares of this rank and of the others.
const MIN_DIFFERENCE: f64 = 0.2;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let own = context.wait()?.share.0;
    let others = context
        .job
        .ranks
        .iter()
        .filter(|rank| rank.key != context.rank.key);
    let others = median(others.filter_map(|rank| Some(rank.wait?.share.0)))?;
    (own - others >= MIN_DIFFERENCE).then(|| {
        let text = format!("other ranks wait {} of the time", Share(others));
        Evidence::supporting("straggler", own - others, MIN_DIFFERENCE, text)
    })
}
