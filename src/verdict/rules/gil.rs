//! Another thread of the trainer holds Python's global interpreter lock, so the main thread cannot continue.

use crate::units::Share;
use crate::verdict::busy_time::most_of_the_wait;
use crate::verdict::context::Context;
use crate::verdict::level::SLIGHT;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "another Python thread holds the GIL",
    checks: &[
        (Kind::DataBound, in_the_loader),
        (Kind::HostBound, check_step),
    ],
    resource: Resource::Other,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "move that thread's work into a process of its own (multiprocessing): threads share one interpreter lock",
            "let it work in calls that release the lock (NumPy, Pillow, torch), and less often",
        ])
    },
};

/// Minimum share of the time that the main thread waits for the lock, for waits outside the loader to count.
const MIN_SHARE: f64 = 0.2;

/// Detects waits for data that are in fact waits for the lock: a batch is there, but cannot be taken.
fn in_the_loader(context: &Context<'_>) -> Option<Evidence> {
    most_of_the_wait(context, Some(context.rank.gil?.in_loader))?;
    waits_for_lock(context, SLIGHT)
}

/// Detects a step that is slow because of the lock. A timer around the loader does not show that.
fn check_step(context: &Context<'_>) -> Option<Evidence> {
    waits_for_lock(context, MIN_SHARE)
}

fn waits_for_lock(context: &Context<'_>, at_least: f64) -> Option<Evidence> {
    let waits = context.rank.gil?;
    let waits = Share(waits.in_loader.0 + waits.outside.0).clamped();
    (waits.0 >= at_least).then(|| {
        let holder = context.rank.gil_holders.first();
        let holder = holder.map_or_else(String::new, |holder| {
            format!(", {} of it for {}", holder.share, holder.name)
        });
        let text = format!("main thread waits for Python's lock (GIL) {waits} of the time{holder}");
        Evidence::supporting("gil", waits.0, at_least, text)
    })
}
