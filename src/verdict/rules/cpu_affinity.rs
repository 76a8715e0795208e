//! Workers may run on fewer CPUs than the job could use, and use those up.

use crate::verdict::busy_time::{DELAYED, delayed};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "CPU affinity",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::CpuTime,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "let the workers run on all CPUs: reset the affinity in worker_init_fn (os.sched_setaffinity)",
            "an imported library may have narrowed it (OMP_PROC_BIND, KMP_AFFINITY, GOMP_CPU_AFFINITY)",
        ])
    },
};

/// Minimum used share of the CPUs that the workers may run on.
const MIN_USED: f64 = 0.8;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let delay = delayed(context)?;
    let allowed = context
        .workers()
        .iter()
        .filter_map(|worker| worker.cpus_allowed)
        .max()?;
    let could = context.rates.host.cpus;
    let could = context
        .cgroup()
        .and_then(|group| group.cpuset)
        .map_or(could, |set| set.min(could));
    let used = context.workers_cpu()? / f64::from(allowed);
    (allowed < could && delay.0 >= DELAYED && used >= MIN_USED).then(|| {
        let text = format!(
            "workers may run on {allowed} of {could} CPUs and wait for them {delay} of their busy time"
        );
        Evidence::supporting("cpu-affinity", delay.0, DELAYED, text)
    })
}
