//! The trainer's main thread loads its batches itself: `num_workers=0`.

use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, most_of_the_wait};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "loading in the main thread",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Cpu,
    picture: Picture::BusyWorkers,
    more_workers_help: true,
    what_if: false,
    advice: |_| {
        texts(&[
            "load in worker processes: set num_workers to 1 or more",
            "then watch again to see how many workers match the step",
        ])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let loading = most_of_the_wait(context, context.rank.loading)?;
    context.loads_in_main().then(|| {
        let text = format!("the main thread loads batches itself {loading} of the time");
        Evidence::supporting("loads-in-main", loading.0, MIN_SHARE_OF_WAIT, text)
    })
}
