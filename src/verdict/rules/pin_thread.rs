//! The trainer waits while its pinning thread works on a batch: that thread receives each batch from the workers and
//! copies it.

use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, most_of_the_wait};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "the pin-memory thread",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Handover,
    picture: Picture::ReadyBatches,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "make batches cheaper to hand over: a few large tensors, not nested lists or dictionaries of small ones",
            "send fewer bytes: uint8 instead of float32, and convert on the GPU",
            "or try pin_memory=False, which copies on the main thread instead",
        ])
    },
};

/// There is one such thread, and it shares Python's lock with the main thread: more workers do not help.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let pinning = most_of_the_wait(context, context.rank.pinning)?;
    let text = format!(
        "the trainer waits {pinning} of the time while the pin-memory thread works on a batch"
    );
    Some(Evidence::supporting(
        "pin-thread",
        pinning.0,
        MIN_SHARE_OF_WAIT,
        text,
    ))
}
