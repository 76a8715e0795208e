//! Another rank reads the batches and sends them.

use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, dispatched};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "batches come from another rank",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Other,
    picture: Picture::ReadyBatches,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "look at the rank that reads: its loader, and that loader's workers",
            "let each rank read its own part: DistributedSampler or split_dataset_by_node(), with Accelerate also dispatch_batches=False",
        ])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let waits = dispatched(context.rank)?;
    let text = format!("the rank waits {waits} of the time for batches that another rank sends");
    Some(Evidence::supporting(
        "waits-for-another-rank",
        waits.0,
        MIN_SHARE_OF_WAIT,
        text,
    ))
}
