//! Batches are ready, but getting them from the workers to the trainer takes long.

use crate::verdict::busy_time::{
    DELAYED, MOST_OF_THE_WAIT, delayed, most_of_the_wait, mostly_disk,
};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "handing batches over",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Handover,
    picture: Picture::ReadyBatches,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "hand over fewer, larger tensors: stack or pack them in collate_fn",
            "use torch.multiprocessing.set_sharing_strategy('file_system')",
        ])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let receiving = most_of_the_wait(context, context.rank.receiving)?;
    // A trainer that gets no CPU is slow at receiving, and workers that get none are slow to answer. So are workers
    // that wait for a disk in a page fault: the thread that answers needs the GIL, which the faulting one holds.
    let delay = context.rank.main_run_delay;
    let trainer_held_up = delay.is_some_and(|delay| delay.0 >= receiving.0 / 2.0);
    let workers_held_up = delayed(context).is_some_and(|delay| delay.0 >= DELAYED);
    let held_up = trainer_held_up || workers_held_up || mostly_disk(context).is_some();
    (!context.loads_in_main() && !held_up).then(|| {
        let text =
            format!("the trainer spends {receiving} of the time receiving batches that are ready");
        Evidence::supporting("receiving", receiving.0, MOST_OF_THE_WAIT, text)
    })
}
