//! Batches are ready, but getting them from the workers to the trainer takes long.

use crate::sample::LoaderKind;
use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, is_held_up, most_of_the_wait};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "receiving batches",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Handover,
    picture: Picture::ReadyBatches,
    more_workers_help: false,
    what_if: false,
    advice,
};

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let kind = situation.context.loader.map(|loader| loader.kind);
    if matches!(kind, Some(LoaderKind::Other | LoaderKind::Processes)) {
        return texts(&[
            "hand over fewer, larger arrays, or leave them in shared memory and hand over their names",
        ]);
    }
    texts(&[
        "hand over fewer, larger tensors: stack or pack them in collate_fn",
        "use torch.multiprocessing.set_sharing_strategy('file_system')",
    ])
}

fn check(context: &Context<'_>) -> Option<Evidence> {
    let receiving = most_of_the_wait(context, context.rank.receiving)?;
    (!context.loads_in_main() && !is_held_up(context, receiving)).then(|| {
        let text =
            format!("the trainer spends {receiving} of the time receiving batches that are ready");
        Evidence::supporting("receiving", receiving.0, MIN_SHARE_OF_WAIT, text)
    })
}
