//! The control group's CPU quota throttles the workers.

use crate::verdict::busy_time::mostly_cpu;
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "CPU quota",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::CpuTime,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: true,
    advice: |_| {
        texts(&[
            "raise the container's CPU quota",
            "make the transforms cheaper: the available CPUs are used up",
        ])
    },
};

/// Minimum share of throttled scheduler periods.
const THROTTLED: f64 = 0.25;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let group = context.cgroup()?;
    let throttled = group.throttled_periods?;
    (mostly_cpu(context).is_some() && throttled.0 >= THROTTLED).then(|| {
        let quota = group
            .cpu_quota
            .map_or(String::new(), |quota| format!(" of {quota:.1} CPUs"));
        let text =
            format!("the cgroup's quota{quota} throttled {throttled} of the scheduler periods");
        Evidence::supporting("cpu-quota", throttled.0, THROTTLED, text)
    })
}
