//! The trainer waits for the validation's loader, not for the training's.

use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, most_of_the_wait};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

/// Helps whatever makes the validation's loader slow.
pub(in crate::verdict) const VALIDATE_LESS: &str = "validate less often, or on a part of the data";

pub(super) const RULE: Rule = Rule {
    words: "validation's loader",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Other,
    picture: Picture::IdleWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |situation| {
        let loaders = situation.context.rank.loaders.iter();
        let mut kept = loaders.map(|loader| loader.settings.persistent_workers == Some(true));
        texts(&[
            if kept.all(|kept| kept) {
                "the DataLoader for validation is the slow one: raise its num_workers"
            } else {
                "the DataLoader for validation is the slow one: raise its num_workers, and keep them with persistent_workers=True"
            },
            VALIDATE_LESS,
        ])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let validation = context.rank.validation?;
    let waiting = most_of_the_wait(context, Some(validation.waiting))?;
    let text = format!(
        "the trainer waits {waiting} of the time in validation, which takes {} in all",
        validation.time
    );
    Some(Evidence::supporting(
        "validation-waits",
        waiting.0,
        MIN_SHARE_OF_WAIT,
        text,
    ))
}
