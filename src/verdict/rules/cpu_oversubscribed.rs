//! More workers than the CPUs can run: they wait for CPUs that they themselves use up.

use crate::units::Share;
use crate::verdict::busy_time::{DELAYED, delayed, mostly_cpu};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "too many workers for the CPUs",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::CpuTime,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: true,
    advice,
};

/// If the job needs fewer CPUs than there are, other programs use them: that is another cause.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let delay = delayed(context)?;
    let too_many = context.cpus().is_none_or(|cpus| cpu_wanted(context) > cpus);
    (mostly_cpu(context).is_some() && too_many && delay.0 >= DELAYED).then(|| {
        let text = format!("workers wait for a CPU {delay} of their busy time");
        Evidence::supporting("run-delay", delay.0, DELAYED, text)
    })
}

/// Returns the CPU time, in CPUs, that trainer and workers use or are runnable for.
fn cpu_wanted(context: &Context<'_>) -> f64 {
    let wanted = |cpu: Option<f64>, delay: Option<Share>| {
        cpu.unwrap_or(0.0) + delay.map_or(0.0, |delay| delay.0)
    };
    let workers = context.workers().iter();
    let workers: f64 = workers
        .map(|worker| wanted(worker.cpu, worker.run_delay) + wanted(None, worker.commands))
        .sum();
    let rank = context.rank;
    workers + wanted(rank.main_cpu.map(|cpu| cpu.0), rank.main_run_delay)
}

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let workers = situation.workers;
    let fewer = workers.and_then(|workers| Some((workers.now, workers.cpu_allows?)));
    let fewer = fewer.map(|(now, cpus)| {
        let what = if cpus == 1 { "worker" } else { "workers" };
        let can = format!("the CPUs can run {cpus} {what} at full speed");
        if cpus < now {
            format!("num_workers {now} -> {cpus}: {can}, and any more compete for them")
        } else {
            format!("{can}: any more compete for them")
        }
    });
    let cheaper = situation.cheaper_transforms();
    fewer.into_iter().chain([cheaper]).collect()
}
