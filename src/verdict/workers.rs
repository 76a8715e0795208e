//! How many workers would match the step, how many the CPUs can feed, and what free loading would bring.

use super::context::Context;
use super::{Headspace, Interval, WorkerAdvice};

/// What free loading would bring: all of the lost share.
pub(super) fn headspace(context: &Context<'_>, stall: Interval) -> Headspace {
    let step = context.rank.step;
    let now = step
        .batches_per_s
        .filter(|rate| *rate > 0.0)
        .map(|rate| 1000.0 / rate);
    let free = stall.share.complement().0;
    Headspace {
        // A job that only waits has no finite bound; a hundredfold is already beside the point.
        speedup_max: 1.0 / free.max(0.01),
        step_ms_now: now,
        step_ms_free: now.map(|now| now * free),
    }
}

/// How many workers would match the step, and how many the CPUs allow; another number is advised only where more
/// would help.
pub(super) fn workers(context: &Context<'_>, more_would_help: bool) -> Option<WorkerAdvice> {
    let loader = context.loader?;
    let now = loader.settings.num_workers.or_else(|| threads(context))?;
    let step = context.rank.step;
    // What a worker spends waiting for a CPU is no work: other workers would not take it over.
    let delayed = context
        .of_busy(|worker| worker.run_delay)
        .unwrap_or_default();
    let match_step = step.load_ms.zip(step.step_ms).and_then(|(load, step)| {
        let workers = load * delayed.complement().0 / step.max(0.001);
        // A rounding error above a whole number asks for no further worker.
        whole((workers - 0.02).ceil().max(1.0))
    });
    let cpu_allows = cpu_allows(context);
    let wanted = match_step.map(|wanted| cpu_allows.map_or(wanted, |cpus| wanted.min(cpus)));
    Some(WorkerAdvice {
        now,
        match_step,
        cpu_allows,
        advised: wanted.filter(|wanted| more_would_help && *wanted > now),
    })
}

/// How many threads of the trainer load. `None` where processes do, or nobody was seen to.
fn threads(context: &Context<'_>) -> Option<u32> {
    let workers = context.workers();
    let all = !workers.is_empty() && workers.iter().all(|worker| worker.thread);
    all.then(|| u32::try_from(workers.len()).ok()).flatten()
}

/// One thread at a time runs Python. Threads that use more than a CPU in all do most of their work outside of it.
const ONE_AT_A_TIME: f64 = 1.0;

/// Threads load, and Python's lock may be what keeps them to one CPU.
pub(super) fn take_turns(context: &Context<'_>) -> bool {
    let cpu = context.workers_cpu();
    threads(context).is_some() && cpu.is_some_and(|cpu| cpu <= ONE_AT_A_TIME)
}

/// Workers that the CPUs can feed, beside the trainer and the other ranks: whole ones, and at least one.
fn cpu_allows(context: &Context<'_>) -> Option<u32> {
    whole(cpu_feeds(context)?.floor().max(1.0))
}

/// The same to a fraction: CPU time that is left, in workers' worth. `None` where CPUs are not what limits them.
pub(super) fn cpu_feeds(context: &Context<'_>) -> Option<f64> {
    let per_worker = cpu_per_worker(context)?;
    let ranks = context.job.ranks.len().max(1) as f64;
    let trainer = context.rank.main_cpu.map_or(0.0, |cpu| cpu.0);
    let mut left = (context.cpus()? / ranks - trainer).max(0.0);
    if take_turns(context) {
        left = left.min(ONE_AT_A_TIME);
    }
    Some(left / per_worker)
}

/// CPUs that a worker uses while it has work, one at most. `None` where that is not known, or next to nothing.
pub(super) fn cpu_per_worker(context: &Context<'_>) -> Option<f64> {
    let busy: f64 = context
        .workers()
        .iter()
        .filter_map(|worker| Some(worker.busy?.0))
        .sum();
    // What they would use if they got it.
    let delayed = context
        .workers()
        .iter()
        .filter_map(|worker| Some(worker.run_delay?.0));
    let per_worker = (context.workers_cpu()? + delayed.sum::<f64>()) / busy.max(0.01);
    // With less, it is not the CPU what limits them.
    (per_worker >= 0.1).then_some(per_worker.min(1.0))
}

/// A count that was computed as a float. `None` beyond what a machine can have.
fn whole(count: f64) -> Option<u32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    (0.0..1e6).contains(&count).then_some(count as u32)
}

/// Another number of workers and what it brings. `None` where none is advised.
pub(super) fn more_workers(
    context: &Context<'_>,
    workers: Option<WorkerAdvice>,
    headspace: Option<Headspace>,
) -> Option<String> {
    let workers = workers?;
    let name = match threads(context) {
        Some(_) => "loader threads",
        None => "num_workers",
    };
    let advised = workers.advised?;
    let gain = headspace.map_or(1.0, |space| space.speedup_max);
    // More workers bring as much as they are more, and no more than free loading would.
    let gain = gain.min(f64::from(advised) / f64::from(workers.now.max(1)));
    let limit = match (workers.match_step, workers.cpu_allows) {
        (Some(wanted), Some(cpus)) if cpus < wanted => {
            format!("all that the CPUs allow; {wanted} would match the step")
        }
        (_, Some(cpus)) => format!("matches the step; the CPUs allow {cpus}"),
        _ => "matches the step".into(),
    };
    Some(format!(
        "{name} {} -> {advised} ({limit}): up to {gain:.1}x faster",
        workers.now
    ))
}
