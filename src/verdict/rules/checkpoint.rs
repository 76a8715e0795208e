//! The main thread waits until a checkpoint or another file is written.

use crate::sample::WRITTEN_FILE;
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "writing files",
    checks: &[(Kind::HostBound, check)],
    resource: Resource::Other,
    picture: Picture::ReadyBatches,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "save checkpoints and other files less often, or to a faster disk",
            "save in the background: torch.distributed.checkpoint.async_save, or a thread that writes an in-memory copy",
        ])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let waits = ["checkpoint", WRITTEN_FILE];
    waits.iter().find_map(|what| context.mostly_waits_for(what))
}
