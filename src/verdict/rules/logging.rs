//! The main thread waits until a log line is written.

use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "slow logging",
    checks: &[(Kind::HostBound, check)],
    resource: Resource::Other,
    picture: Picture::ReadyBatches,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "log every N steps instead of every step, or from another thread",
            "find what reads the log too slowly: a pipe into another program, a terminal, a network disk",
        ])
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    context.mostly_waits_for("logging")
}
