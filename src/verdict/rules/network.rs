//! Workers, or a main thread that loads its batches itself, wait for a network: a socket, or a network file system.

use super::in_main::load_ahead;
use crate::verdict::busy_time::{MIN_SHARE_OF_BUSY, MIN_SHARE_OF_WAIT, network_in_main};
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
    if let Some(share) = network_in_main(context) {
        let text = format!("the main thread waits for the network {share} of the time");
        return Some(Evidence::supporting(
            "network-wait",
            share.0,
            MIN_SHARE_OF_WAIT,
            text,
        ));
    }
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
    let ahead = network_in_main(situation.context).map(|_| load_ahead(situation.context).into());
    let cache = "cache the data on a local disk, or fetch larger parts at once".into();
    let advice = ahead.into_iter().chain([cache]);
    advice.chain(situation.more_workers()).collect()
}
