//! Workers wait for a network: a socket, or a network file system.

use crate::verdict::busy_time::MIN_SHARE_OF_BUSY;
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "network",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Input,
    picture: Picture::BusyWorkers,
    more_workers_help: true,
    what_if: false,
    advice,
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let share = context.of_busy(|worker| worker.network)?;
    (share.0 >= MIN_SHARE_OF_BUSY).then(|| {
        let inside = context.hottest();
        let inside =
            inside.map_or_else(String::new, |(name, share)| format!(", {share} in {name}"));
        let text = format!("workers wait for the network {share} of their busy time{inside}");
        Evidence::supporting("network-wait", share.0, MIN_SHARE_OF_BUSY, text)
    })
}

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let cache = "cache the data on a local disk, or fetch larger parts at once".into();
    [cache]
        .into_iter()
        .chain(situation.more_workers())
        .collect()
}
