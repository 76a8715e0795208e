//! The trainer waits for workers that are restarted with each epoch.

use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, most_of_the_wait};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "workers restart each epoch",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Other,
    picture: Picture::IdleWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |situation| {
        let settings = situation.context.loader.map(|loader| &loader.settings);
        let kept = settings.and_then(|settings| settings.persistent_workers) == Some(true);
        texts(&[
            if kept {
                "make the DataLoader once, outside the loop over epochs: its workers end with it"
            } else {
                "persistent_workers=True keeps the workers from one epoch to the next, if all use one DataLoader"
            },
            "make epochs longer, or the dataset quicker to import and to pickle",
        ])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let startup = most_of_the_wait(context, context.rank.startup)?;
    let text = format!("{startup} of the time goes to starting workers");
    Some(Evidence::supporting(
        "worker-start",
        startup.0,
        MIN_SHARE_OF_WAIT,
        text,
    ))
}
