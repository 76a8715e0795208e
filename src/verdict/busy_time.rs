//! What the workers' busy time is spent on, and what the trainer's waits are: shares and thresholds that several
//! rules use.

use super::context::{Context, mean};
use crate::model::rates::{RankRates, WorkerRates};
use crate::units::Share;

/// From this part of the waits on, one explanation stands for all of them.
pub(super) const MOST_OF_THE_WAIT: f64 = 0.5;

/// From this part of the workers' busy time on, one kind of sleep is what slows them down.
pub(super) const MOST_OF_BUSY: f64 = 0.4;

/// Share of busy time runnable but not running, from which on CPUs are short.
pub(super) const DELAYED: f64 = 0.3;

/// On a CPU or waiting for one, of the workers' busy time: below this, CPUs are not what is short.
pub(super) const MOSTLY_CPU: f64 = 0.5;

/// `part` where it makes up most of the time that the trainer waits, both as shares of the time.
pub(super) fn most_of_the_wait(context: &Context<'_>, part: Option<Share>) -> Option<Share> {
    most_of_the_wait_of(context.rank, part)
}

/// Waits for batches that another rank reads and sends, where they make up most of the time that this one waits.
pub(super) fn dispatched(rank: &RankRates) -> Option<Share> {
    most_of_the_wait_of(rank, rank.dispatched)
}

fn most_of_the_wait_of(rank: &RankRates, part: Option<Share>) -> Option<Share> {
    let of_wait = Share::of(part?.0, rank.wait?.share.0)?;
    part.filter(|_| of_wait.0 >= MOST_OF_THE_WAIT)
}

/// Runnable without running, of the workers' busy time.
pub(super) fn delayed(context: &Context<'_>) -> Option<Share> {
    context.of_busy(|worker| worker.run_delay)
}

/// On a CPU or waiting for one, of the workers' busy time. `None` also where that is less than most of it.
pub(super) fn mostly_cpu(context: &Context<'_>) -> Option<Share> {
    let on_cpu = |worker: &WorkerRates| {
        let running = Share(worker.cpu?.min(1.0));
        Some(Share(running.0 + worker.run_delay.map_or(0.0, |delay| delay.0)).clamped())
    };
    context
        .of_busy(on_cpu)
        .filter(|share| share.0 >= MOSTLY_CPU)
}

/// Blocked on a disk, of the workers' busy time. `None` also where that is less than most of it.
///
/// Workers that read mapped files block in page faults. A fault that waits for a lock of the address space, and not
/// for the page itself, looks like any other sleep.
pub(super) fn mostly_disk(context: &Context<'_>) -> Option<Share> {
    let faults = mapped_reads(context).is_some();
    let blocked = |worker: &WorkerRates| {
        let asleep = worker.asleep.filter(|_| faults).unwrap_or_default();
        Some(Share(worker.disk?.0 + asleep.0))
    };
    context
        .of_busy(blocked)
        .filter(|share| share.0 >= MOST_OF_BUSY)
}

/// Major page faults a second of one worker, where it reads mapped files (Arrow, safetensors, memmap): it fetches
/// bytes from disk that no read call asked for. `None` where workers do not, and where that is not known.
pub(super) fn mapped_reads(context: &Context<'_>) -> Option<f64> {
    /// A disk that needs 0.1 s for one fault is slow enough to wait for.
    const MANY_FAULTS: f64 = 10.0;
    /// Of the bytes that come from disk: as much may come by read calls.
    const BY_CALLS: f64 = 0.1;
    let of =
        |figure: fn(&WorkerRates) -> Option<f64>| mean(context.workers().iter().filter_map(figure));
    let faults = of(|worker| worker.major_faults_per_s)?;
    let fetched = of(|worker| Some(worker.read?.0))?;
    let by_calls = of(|worker| Some(worker.rchar?.0))?;
    (faults >= MANY_FAULTS && by_calls <= BY_CALLS * fetched).then_some(faults)
}
