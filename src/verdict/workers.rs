//! The number of workers that would match the step, the number that the CPUs can feed, and the gain from free loading.

use super::busy_time::{MIN_SHARE_OF_BUSY, delayed, locked};
use super::context::Context;
use super::{Headspace, Interval, WorkerAdvice};
use crate::sample::LoaderKind;
use crate::units::Share;

/// Maximum ratio of the advised number of workers to the present one, where CPUs do not limit it: a disk, a server or memory
/// may.
const AT_ONCE: u32 = 4;

/// Returns the gain from free loading: all of the lost share.
pub(super) fn headspace(context: &Context<'_>, stall: Interval) -> Headspace {
    let step = context.rank.step;
    let now = step
        .batches_per_s
        .filter(|rate| *rate > 0.0)
        .map(|rate| 1000.0 / rate);
    let free = stall.share.complement().0;
    Headspace {
        speedup_max: speedup(stall.share),
        step_ms_now: now,
        step_ms_free: now.map(|now| now * free),
    }
}

/// Returns how many workers would match the step, and how many the CPUs allow. Advises another number only if more
/// would help.
pub(super) fn workers(context: &Context<'_>, more_would_help: bool) -> Option<WorkerAdvice> {
    let loader = context.loader?;
    let now = loader.settings.num_workers.or_else(|| seen(context))?;
    // The time in which a worker waits for a CPU or for another worker is no work: other workers would not do it.
    let held_up = [delayed(context), locked(context)].into_iter().flatten();
    let held_up = Share(held_up.map(|share| share.0).sum()).clamped();
    let match_step = load_per_step(context).and_then(|steps| {
        let workers = steps * held_up.complement().0;
        // Do not add a worker because of a rounding error above a whole number.
        whole((workers - 0.02).ceil().max(1.0))
    });
    let cpu_allows = cpu_allows(context);
    let most = cpu_allows.unwrap_or(AT_ONCE.saturating_mul(now.max(1)));
    let wanted = match_step.map(|wanted| wanted.min(most));
    let more_would_help = more_would_help && !context.has_fixed_workers();
    Some(WorkerAdvice {
        now,
        match_step,
        cpu_allows,
        advised: wanted.filter(|wanted| more_would_help && *wanted > now),
    })
}

/// Returns the ratio of a worker's load time to the step time. If batches are not counted, it is the ratio of the
/// workers' summed busy shares to the trainer's share of time outside of waits: both are spent on the same batches.
fn load_per_step(context: &Context<'_>) -> Option<f64> {
    if let (Some(load), Some(step)) = context.load_and_step() {
        return Some(load / step.max(0.001));
    }
    seen(context)?;
    let busy = context.workers().iter().map(|worker| worker.busy);
    let busy: Option<f64> = busy.map(|busy| Some(busy?.0)).sum();
    let stepping = context.wait()?.share.complement().0;
    Some(busy? / stepping.max(0.01))
}

/// Returns how many workers were seen. `None` if none was.
fn seen(context: &Context<'_>) -> Option<u32> {
    let workers = u32::try_from(context.workers().len()).ok();
    workers.filter(|workers| *workers > 0)
}

/// Whether all workers are threads of the trainer.
fn threads(context: &Context<'_>) -> bool {
    let workers = context.workers();
    !workers.is_empty() && workers.iter().all(|worker| worker.thread)
}

/// Only one thread at a time runs Python. If the threads use more CPUs than this in total, they do most of their work
/// outside of Python.
const ONE_AT_A_TIME: f64 = 1.0;

/// Returns whether threads load and Python's lock may limit them to one CPU.
pub(super) fn gil_limited(context: &Context<'_>) -> bool {
    let cpu = context.workers_cpu();
    threads(context) && cpu.is_some_and(|cpu| cpu <= ONE_AT_A_TIME)
}

/// Minimum part of the CPU time that one more worker could use, at which it is worth adding.
const LEAST_OF_A_CPU: f64 = 0.5;

/// Returns the number of workers that the CPUs can feed, in addition to the trainer and the other ranks: a whole
/// number, at least one. The last one may get only part of the CPU time that it could use.
fn cpu_allows(context: &Context<'_>) -> Option<u32> {
    whole(
        (cpu_feeds(context)? + 1.0 - LEAST_OF_A_CPU)
            .floor()
            .max(1.0),
    )
}

/// Returns the same number with its fraction: the remaining CPU time over that of a worker. `None` if CPUs do not limit
/// the workers.
fn cpu_feeds(context: &Context<'_>) -> Option<f64> {
    let per_worker = cpu_per_worker(context)?;
    let ranks = context.job.ranks.len().max(1) as f64;
    let trainer = context.rank.main_cpu.map_or(0.0, |cpu| cpu.0);
    let others = context.other_loaders().flat_map(|loader| &loader.workers);
    let others: f64 = others.filter_map(|worker| worker.cpu).sum();
    let mut left = (context.cpus()? / ranks - trainer - others).max(0.0);
    if gil_limited(context) {
        left = left.min(ONE_AT_A_TIME);
    }
    Some(left / per_worker)
}

/// Returns [`cpu_feeds`], limited also by the CPU time that other programs leave.
pub(super) fn cpu_feeds_now(context: &Context<'_>) -> Option<f64> {
    let allowed = cpu_feeds(context)?;
    let host = &context.rates.host;
    let ranks = context.job.ranks.len().max(1) as f64;
    let unused = host
        .cpu
        .map(|busy| f64::from(host.cpus) * busy.complement().0 / ranks);
    let within_reach = unused
        .zip(context.workers_cpu())
        .zip(cpu_per_worker(context));
    let within_reach = within_reach.map(|((unused, own), each)| (unused.max(0.0) + own) / each);
    Some(within_reach.map_or(allowed, |reach| reach.min(allowed)))
}

/// Returns the CPUs that a worker uses while it has work, at most one. `None` if not known, or almost zero.
fn cpu_per_worker(context: &Context<'_>) -> Option<f64> {
    let busy: f64 = context
        .workers()
        .iter()
        .filter_map(|worker| Some(worker.busy?.0))
        .sum();
    // CPU time that the workers would use if they got it, and that of their commands.
    let besides = context.workers().iter();
    let besides = besides.flat_map(|worker| [worker.run_delay, worker.commands]);
    let besides: f64 = besides.flatten().map(|share| share.0).sum();
    let per_worker = (context.workers_cpu()? + besides) / busy.max(0.01);
    // With less than this, CPUs do not limit the workers.
    (per_worker >= 0.1).then_some(per_worker.min(1.0))
}

/// Converts a count that was computed as a float. `None` if it is more than a machine can have.
fn whole(count: f64) -> Option<u32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    (0.0..1e6).contains(&count).then_some(count as u32)
}

/// Returns how many times as fast the job is without this share of its time. A job that only waits has no finite bound,
/// so the result is at most 100.
fn speedup(share: Share) -> f64 {
    1.0 / share.complement().0.max(0.01)
}

/// Returns the gain, limited to `at_most`, for example `up to 2.6x faster (2.4-2.6)`. With an interval that goes higher, it
/// is `up to about 2.6x faster (2.4-2.9)`.
pub(super) fn gain(stall: Interval, at_most: f64) -> String {
    let up_to = |share| format!("{:.1}", speedup(share).min(at_most));
    let (low, middle, high) = (up_to(stall.low), up_to(stall.share), up_to(stall.high));
    let about = if middle == high { "" } else { "about " };
    let range = (low != high).then(|| format!(" ({low}-{high})"));
    format!("up to {about}{middle}x faster{}", range.unwrap_or_default())
}

/// Minimum ratio of two gains at which both are stated.
const MORE: f64 = 1.1;

/// Returns the advised number of workers with its gain and its cost. `None` if none is advised, or if it would gain almost
/// nothing: what is slow is then something else.
pub(super) fn more_workers(
    context: &Context<'_>,
    workers: Option<WorkerAdvice>,
    stall: Interval,
) -> Option<String> {
    let (loader, workers) = (context.loader?, workers?);
    let name = match (threads(context), loader.kind) {
        (true, _) => "loader threads",
        (false, LoaderKind::Other | LoaderKind::Processes) => "loader processes",
        (false, _) => "num_workers",
    };
    let (now, advised) = (workers.now, workers.advised?);
    let most = |fed| most_gain(now, advised, fed);
    let (beside, alone) = (most(cpu_feeds_now(context)), most(cpu_feeds(context)));
    let reached = |most: f64| speedup(stall.share).min(most);
    let gain = match (reached(beside), reached(alone)) {
        (_, alone) if alone < MORE => return None,
        (now, alone) if alone < MORE * now => gain(stall, beside),
        (now, _) if now < MORE => {
            let gain = gain(stall, alone);
            format!("{gain}, but not while other programs use the CPUs")
        }
        (_, reached) => {
            let gain = gain(stall, beside);
            format!("{gain}, {reached:.1}x without other programs")
        }
    };
    let limit = match (workers.match_step, workers.cpu_allows) {
        (Some(wanted), Some(cpus)) if cpus < wanted => {
            format!("all that the CPUs allow; the step needs {wanted}")
        }
        (Some(wanted), None) if advised < wanted => {
            format!("then watch again; the step needs {wanted}")
        }
        (_, Some(cpus)) => format!("enough for the step; the CPUs allow {cpus}"),
        _ => "enough for the step".into(),
    };
    let reserve = loader.settings.prefetch_factor.map(|factor| {
        let batches = factor.saturating_mul(advised.saturating_sub(now));
        format!("; {batches} more batches in memory")
    });
    let cost = reserve.unwrap_or_default();
    let served = context.of_busy(|worker| worker.network);
    let condition = match served {
        Some(share) if share.0 >= MIN_SHARE_OF_BUSY => " if the server keeps up",
        _ => "",
    };
    Some(format!(
        "{name} {now} -> {advised} ({limit}): {gain}{condition}{cost}"
    ))
}

/// Returns the ratio of what the advised workers load to what the present ones load, if the CPUs can feed `fed`
/// workers.
fn most_gain(now: u32, advised: u32, fed: Option<f64>) -> f64 {
    let at_work = |workers: u32| fed.map_or(workers.into(), |fed| fed.min(workers.into()));
    at_work(advised) / at_work(now.max(1)).max(0.01)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_with_an_interval_is_no_exact_limit() {
        let of = |low, share, high| {
            let [low, share, high] = [low, share, high].map(Share);
            gain(Interval { share, low, high }, 2.2)
        };
        assert_eq!(of(0.5, 0.5, 0.5), "up to 2.0x faster");
        assert_eq!(of(0.375, 0.5, 0.63), "up to about 2.0x faster (1.6-2.2)");
        assert_eq!(of(0.375, 0.6, 0.7), "up to 2.2x faster (1.6-2.2)");
    }
}
