//! The host waits for the GPU before it launches more work.

use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "waiting for the GPU at each step",
    checks: &[(Kind::HostBound, check)],
    resource: Resource::Other,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: true,
    advice: |_| {
        texts(&[
            "synchronise only where a result is needed: no torch.cuda.synchronize() in the step",
            "read losses and metrics only every so many steps: .item() and .cpu() wait for the GPU too",
        ])
    },
};

/// Minimum share of the time that the main thread is seen in a call that waits until the GPU has done all of its work.
const MIN_SHARE: f64 = 0.2;

/// Shorter waits, for example in `.item()`, leave no Python function on the stack, so they are not counted.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let share = context.time_in(|name| name.starts_with("synchronize "));
    (share.0 >= MIN_SHARE).then(|| {
        let text = format!("main thread in synchronize {share} of the time");
        Evidence::supporting("synchronize", share.0, MIN_SHARE, text)
    })
}
