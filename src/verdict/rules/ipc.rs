//! Batches are ready, but getting them from the workers to the trainer takes long.

use crate::verdict::busy_time::{
    ALL_BUSY, DELAYED, MIN_SHARE_OF_WAIT, delayed, most_of_the_wait, mostly_disk,
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
    // A trainer without a CPU receives slowly, and workers without one answer slowly. So do workers that wait for a
    // disk in a page fault: the thread that answers needs the GIL, which the faulting one holds.
    let delay = context.rank.main_run_delay;
    let trainer_held_up = delay.is_some_and(|delay| delay.0 >= receiving.0 / 2.0);
    let workers_held_up = delayed(context).is_some_and(|delay| delay.0 >= DELAYED);
    // Busy all the time, they are the limit however long it takes to receive: what computes in Python holds the GIL, too.
    let busy = context.mean_share(|worker| worker.busy);
    let no_time_left = busy.is_some_and(|busy| busy.0 >= ALL_BUSY);
    let held_up =
        trainer_held_up || workers_held_up || no_time_left || mostly_disk(context).is_some();
    (!context.loads_in_main() && !held_up).then(|| {
        let text =
            format!("the trainer spends {receiving} of the time receiving batches that are ready");
        Evidence::supporting("receiving", receiving.0, MIN_SHARE_OF_WAIT, text)
    })
}
