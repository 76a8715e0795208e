//! The trainer's main thread works on batches that its loader has made: it regroups, collates or transforms them, or reads
//! the samples that they name.

use super::in_main::load_ahead;
use crate::units::Share;
use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, is_held_up, most_of_the_wait};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "work on batches in the main thread",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Cpu,
    picture: Picture::ReadyBatches,
    more_workers_help: false,
    what_if: false,
    advice: |situation| {
        let move_it = if situation.context.loads_in_main() {
            load_ahead(situation.context)
        } else {
            "move that work into the workers: into collate_fn, or into the dataset"
        };
        texts(&[move_it, "do it on the GPU, in parallel with the step"])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    // A thread that is ready to run but has no CPU looks like one that works.
    let delay = context.rank.main_run_delay.unwrap_or_default();
    let works = Share(context.rank.loading?.0 - delay.0).clamped();
    let loading = most_of_the_wait(context, Some(works))?;
    let by_workers = !context.loads_in_main() && !context.workers().is_empty();
    let takes_batches = by_workers || context.loads_after_loader();
    (takes_batches && !is_held_up(context, loading)).then(|| {
        let text = format!(
            "the main thread works on batches itself {loading} of the time, where the training loop asks for the next"
        );
        Evidence::supporting("collates-in-main", loading.0, MIN_SHARE_OF_WAIT, text)
    })
}
