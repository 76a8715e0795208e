//! Shares and thresholds that several rules use: how the workers spend their busy time, and what the trainer waits for.

use super::context::Context;
use super::level::SLIGHT;
use crate::model::rates::{RankRates, WorkerRates};
use crate::units::{Share, mean};

/// Minimum part of the waits that an explanation must cover to count for all of them.
pub(super) const MIN_SHARE_OF_WAIT: f64 = 0.5;

/// Minimum part of the workers' busy time for one kind of sleep to count as what slows them down.
pub(super) const MIN_SHARE_OF_BUSY: f64 = 0.4;

/// Minimum busy share at which workers have no time left: only more or faster workers would yield more.
pub(super) const ALL_BUSY: f64 = 0.9;

/// Minimum share of busy time, runnable but not running, that shows a shortage of CPUs.
pub(super) const DELAYED: f64 = 0.3;

/// Minimum busy share of the machine's CPUs at which none is free.
pub(super) const FULL: Share = Share(0.9);

/// Share of the workers' busy time on a CPU or waiting for one, below which CPUs are not the bottleneck.
pub(super) const MOSTLY_CPU: f64 = 0.5;

/// Returns `part`, a share of the time, if it is most of the time that the trainer waits.
pub(super) fn most_of_the_wait(context: &Context<'_>, part: Option<Share>) -> Option<Share> {
    most_of_the_wait_of(context.rank, part)
}

/// Returns the share of time that the rank waits for batches from another rank, if that is most of its waits.
pub(super) fn dispatched(rank: &RankRates) -> Option<Share> {
    most_of_the_wait_of(rank, rank.dispatched)
}

/// Returns the share of time that a main thread which loads its batches itself waits for the network, if that is most
/// of its waits.
pub(super) fn network_in_main(context: &Context<'_>) -> Option<Share> {
    let share = context.rank.network.filter(|_| context.loads_in_main());
    most_of_the_wait(context, share)
}

fn most_of_the_wait_of(rank: &RankRates, part: Option<Share>) -> Option<Share> {
    let of_wait = Share::of(part?.0, rank.wait?.share.0)?;
    part.filter(|_| of_wait.0 >= MIN_SHARE_OF_WAIT)
}

/// Whether something else slows down the main thread's work on ready batches, which takes `part` of the time: a
/// shortage of CPUs, stopped or fully busy workers, or a disk.
pub(super) fn is_held_up(context: &Context<'_>, part: Share) -> bool {
    // A trainer without a CPU receives slowly, and workers without one answer slowly. So do workers that wait for a
    // disk in a page fault: the thread that answers needs the GIL, which the faulting thread holds.
    let delay = context.rank.main_run_delay;
    let trainer = delay.is_some_and(|delay| delay.0 >= part.0 / 2.0);
    let workers = delayed(context).is_some_and(|delay| delay.0 >= DELAYED);
    // It explains no more of the receiving than it lasts.
    let delays = context.workers().iter();
    let delays: f64 = delays.filter_map(|worker| Some(worker.run_delay?.0)).sum();
    let workers = workers && delays >= part.0 / 2.0;
    // Workers that are always busy are the limit, however long receiving takes: Python code that computes holds the
    // GIL, too.
    let on_cpu = || context.mean_share(WorkerRates::busy_or_on_cpu);
    let no_time_left = always_busy(context).unwrap_or_else(|| on_cpu().is_some());
    // A stopped worker does not answer at all.
    let stopped = |worker: &WorkerRates| worker.stopped.is_some_and(|stopped| stopped.0 >= SLIGHT);
    let stopped = context.workers().iter().any(stopped);
    trainer || workers || stopped || no_time_left || mostly_disk(context).is_some()
}

/// Whether the workers have work all the time, or all the time in which their loader is in use. `None` if that is not known.
pub(super) fn always_busy(context: &Context<'_>) -> Option<bool> {
    let busy = context.mean_share(|worker| worker.busy)?;
    Some(busy.0 + busy_in_turn(context) >= ALL_BUSY)
}

/// Returns how busy the workers are of the loaders that take turns with this one, as training and validation do: in their
/// turns, its own workers have nothing to do.
fn busy_in_turn(context: &Context<'_>) -> f64 {
    let validates = context.loader.is_some_and(|loader| loader.validates);
    let others = context.other_loaders();
    let others = others.filter(|other| other.validates != validates);
    let busy = |other| context.of_loader(other).mean_share(|worker| worker.busy);
    others.filter_map(busy).map(|busy| busy.0).sum()
}

/// Returns the share of the workers' busy time runnable but not running.
pub(super) fn delayed(context: &Context<'_>) -> Option<Share> {
    context.of_busy(|worker| worker.run_delay)
}

/// Returns the share of the workers' busy time in which they wait for a lock or a queue that processes share.
pub(super) fn locked(context: &Context<'_>) -> Option<Share> {
    context.of_busy(|worker| worker.locked)
}

/// Returns the share of the workers' busy time in which they or their commands are on a CPU or wait for one. `None` also if
/// it is below [`MOSTLY_CPU`].
pub(super) fn mostly_cpu(context: &Context<'_>) -> Option<Share> {
    let on_cpu = |worker: &WorkerRates| {
        let running = worker.cpu?.min(1.0);
        let besides = [worker.run_delay, worker.commands].into_iter().flatten();
        Some(Share(running + besides.map(|share| share.0).sum::<f64>()).clamped())
    };
    context
        .of_busy(on_cpu)
        .filter(|share| share.0 >= MOSTLY_CPU)
}

/// Returns the share of the workers' busy time blocked on a disk. `None` also if it is below [`MIN_SHARE_OF_BUSY`].
///
/// Workers that read mapped files block in page faults. A fault that waits for a lock of the address space rather than
/// for the page itself looks like any other sleep.
pub(super) fn mostly_disk(context: &Context<'_>) -> Option<Share> {
    let faults = mapped_reads(context).is_some();
    let blocked = |worker: &WorkerRates| {
        let asleep = worker.asleep.filter(|_| faults).unwrap_or_default();
        Some(Share(worker.disk?.0 + asleep.0))
    };
    context
        .of_busy(blocked)
        .filter(|share| share.0 >= MIN_SHARE_OF_BUSY)
}

/// Returns the mean major page faults per second of a worker, if the workers read mapped files (Arrow, safetensors,
/// memmap): they fetch bytes from disk without read calls. `None` if they do not, or if that is not known.
pub(super) fn mapped_reads(context: &Context<'_>) -> Option<f64> {
    /// Minimum number of faults per second: a disk that needs 0.1 s for one fault is slow enough to wait for.
    const MANY_FAULTS: f64 = 10.0;
    /// Maximum ratio of the bytes from read calls to the bytes from disk.
    const BY_CALLS: f64 = 0.1;
    let of =
        |figure: fn(&WorkerRates) -> Option<f64>| mean(context.workers().iter().filter_map(figure));
    let faults = of(|worker| worker.major_faults_per_s)?;
    let fetched = of(|worker| Some(worker.read?.0))?;
    let by_calls = of(|worker| Some(worker.rchar?.0))?;
    (faults >= MANY_FAULTS && by_calls <= BY_CALLS * fetched).then_some(faults)
}
