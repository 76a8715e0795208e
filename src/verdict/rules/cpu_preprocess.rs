//! Workers are busy computing: decoding, augmenting, tokenising.

use super::in_main::may_have_processes;
use crate::model::rates::WorkerRates;
use crate::units::Share;
use crate::verdict::busy_time::{MOSTLY_CPU, mostly_cpu};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation};
use crate::verdict::workers::gil_limited;
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "CPU preprocessing",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Cpu,
    picture: Picture::BusyWorkers,
    more_workers_help: true,
    what_if: true,
    advice,
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let wanted = mostly_cpu(context)?;
    let cpu = context.of_busy(on_cpu);
    // Show the same figure that was compared.
    let (share, how) = match cpu.filter(|cpu| cpu.0 >= MOSTLY_CPU) {
        Some(cpu) => (cpu, "are on the CPU"),
        None => (wanted, "are on a CPU or wait for one"),
    };
    let mut text = format!("workers {how} {share} of their busy time");
    if let Some((name, share)) = context.hottest() {
        text = format!("{text}, {share} in {name}");
    }
    Some(Evidence::supporting(
        "worker-cpu",
        share.0,
        MOSTLY_CPU,
        text,
    ))
}

/// Returns the share of time in which a worker or its command was on a CPU. A command's share includes its waits for
/// one.
fn on_cpu(worker: &WorkerRates) -> Option<Share> {
    let commands = worker.commands.unwrap_or_default();
    Some(Share(worker.cpu?.min(1.0) + commands.0).clamped())
}

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let processes = gil_limited(situation.context).then(|| in_processes(situation.context).into());
    let more = situation.more_workers().or(processes).into_iter();
    more.chain([situation.cheaper_transforms()]).collect()
}

fn in_processes(context: &Context<'_>) -> &'static str {
    if may_have_processes(context) {
        "set num_workers to 1 or more, to load in processes: only one thread at a time can run Python"
    } else {
        "load in processes: only one thread at a time can run Python"
    }
}
