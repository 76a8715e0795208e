//! Programs outside the job use the CPUs that its workers wait for.

use crate::units::Share;
use crate::verdict::busy_time::{DELAYED, delayed};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "other programs use the CPUs",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::CpuTime,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice,
};

/// Busy share of the machine's CPUs, from which on none is free.
const FULL: Share = Share(0.9);
/// Share of the machine's CPUs that others use, from which on they slow the job down.
const MUCH: f64 = 0.2;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let delay = delayed(context)?;
    let cpus = f64::from(context.rates.host.cpus);
    let others = used_by_others(context)?;
    let full = context.rates.host.cpu? >= FULL;
    (full && delay.0 >= DELAYED && others >= MUCH * cpus).then(|| {
        let text = format!(
            "other programs use {others:.1} of {cpus} CPUs; workers are runnable but not running {delay} of their busy time"
        );
        Evidence::supporting("others-cpu", others / cpus, MUCH, text)
    })
}

fn used_by_others(context: &Context<'_>) -> Option<f64> {
    context.rates.used_by_others(context.job)
}

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let context = situation.context;
    let others = used_by_others(context).unwrap_or_default();
    let named = context.rates.host.others.iter();
    let named: Vec<String> = named
        .map(|program| format!("{} ({:.1})", program.name, program.cpus))
        .collect();
    let who = if named.is_empty() {
        "`top` lists them".to_owned()
    } else {
        named.join(", ")
    };
    vec![
        format!("stop or move the programs that use the other {others:.1} CPUs: {who}"),
        "reserve CPUs for the job (Slurm --cpus-per-task, Kubernetes requests, taskset)".into(),
    ]
}
