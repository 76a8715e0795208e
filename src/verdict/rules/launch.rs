//! The host launches work more slowly than the GPU completes it.

use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "slow kernel launches",
    checks: &[(Kind::HostBound, check)],
    resource: Resource::Other,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: true,
    advice: |_| {
        texts(&[
            "give the GPU more work at a time: larger batches, torch.compile, or CUDA graphs",
            "keep Python out of the step: log, measure and check only every N steps",
        ])
    },
};

/// Minimum share of the time that the main thread is on a CPU, while the GPU is idle for part of it.
const MIN_CPU: f64 = 0.8;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let cpu = context.rank.main_cpu?;
    (cpu.0 >= MIN_CPU).then(|| {
        let text = format!("main thread on a CPU {cpu} of the time");
        Evidence::supporting("main-thread-busy", cpu.0, MIN_CPU, text)
    })
}
