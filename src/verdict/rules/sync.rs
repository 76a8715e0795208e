//! The host waits for the GPU before it launches more work.

use crate::sample::SYNCHRONIZE;
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
            "read losses and metrics only every N steps: .item() and .cpu() wait for the GPU too",
        ])
    },
};

/// Minimum share of the time that the main thread is seen in a call that waits until the GPU has done all of its work.
const MIN_SHARE: f64 = 0.2;

/// Waits in functions without a Python frame, such as `Tensor.item`, are counted by the name that the caller uses.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let share = context.rank.time_not_for_data(SYNCHRONIZE);
    (share.0 >= MIN_SHARE).then(|| {
        let text = format!("main thread waits {share} of the time for the GPU");
        Evidence::supporting("synchronize", share.0, MIN_SHARE, text)
    })
}
