//! Programs outside the job use the CPUs that its workers or its trainer wait for.

use crate::units::Share;
use crate::verdict::busy_time::{DELAYED, FULL, delayed, most_of_the_wait};
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

/// Minimum share of the machine's CPUs used by others at which they slow the job down.
const MIN_OTHERS: f64 = 0.2;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let waits = workers_wait(context).or_else(|| trainer_waits(context))?;
    let cpus = f64::from(context.rates.host.cpus);
    let others = used_by_others(context)?;
    let full = context.rates.host.cpu? >= FULL;
    (full && others >= MIN_OTHERS * cpus).then(|| {
        let text = format!("other programs use {others:.1} of {cpus} CPUs; {waits}");
        Evidence::supporting("others-cpu", others / cpus, MIN_OTHERS, text)
    })
}

fn workers_wait(context: &Context<'_>) -> Option<String> {
    let delay = delayed(context).filter(|delay| delay.0 >= DELAYED)?;
    Some(format!("workers wait for a CPU {delay} of their busy time"))
}

/// Returns the words if a trainer that spends most of its waits receiving batches, or working on them, lacks a CPU.
fn trainer_waits(context: &Context<'_>) -> Option<String> {
    let rank = context.rank;
    let at_batches = Share(rank.receiving?.0 + rank.loading?.0);
    let at_batches = most_of_the_wait(context, Some(at_batches))?;
    let delay = rank
        .main_run_delay
        .filter(|delay| delay.0 >= at_batches.0 / 2.0)?;
    Some(format!(
        "batches are ready, but the trainer waits for a CPU {delay} of the time"
    ))
}

fn used_by_others(context: &Context<'_>) -> Option<f64> {
    context.rates.used_by_others(context.job)
}

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let context = situation.context;
    let others = used_by_others(context).unwrap_or_default();
    let seen = &context.rates.host.others;
    let named = seen
        .iter()
        .map(|program| format!("{} ({:.1})", program.name, program.cpus));
    let mut who: Vec<String> = named.collect();
    // A program may start and end between two listings.
    if who.is_empty() {
        who.push("`top` lists them".to_owned());
    } else if seen.iter().map(|program| program.cpus).sum::<f64>() < others / 2.0 {
        who.push("and short-lived others".to_owned());
    }
    let who = who.join(", ");
    vec![
        format!("stop or move the programs that use the other {others:.1} CPUs: {who}"),
        "reserve CPUs for the job (Slurm --cpus-per-task, Kubernetes requests, taskset)".into(),
    ]
}
