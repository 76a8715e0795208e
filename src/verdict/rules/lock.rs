//! Workers wait for a lock or a queue that they share: only one of them at a time can do what it guards.

use crate::verdict::busy_time::{MIN_SHARE_OF_BUSY, locked};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "a lock between workers",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Other,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |situation| {
        let hottest = situation.context.hottest();
        let inside = hottest.map_or_else(String::new, |(name, _)| format!(" in {name}"));
        vec![
            format!(
                "hold the lock{inside} more briefly, or fill that queue faster: more workers would only wait too"
            ),
            "give each worker its own file, connection or queue".into(),
        ]
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let share = locked(context)?;
    (share.0 >= MIN_SHARE_OF_BUSY).then(|| {
        let text = format!("workers wait {share} of their busy time for a shared lock or queue");
        Evidence::supporting("lock-wait", share.0, MIN_SHARE_OF_BUSY, text)
    })
}
