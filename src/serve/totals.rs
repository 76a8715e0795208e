//! Seconds, batches and bytes of a job since attaching: the source of counters.
//!
//! The interval of each sample is added, so readers may come at any interval. What cannot be seen adds nothing, and a
//! counter that was never known is absent. Does no I/O.

use std::collections::BTreeMap;

use crate::engine::State;
use crate::model::Progress;
use crate::model::rates::{GpuRates, LoaderRates, RankRates, Rates, WorkerRates};
use crate::sample::{COMMUNICATION, GpuSample, SYNCHRONIZE};
use crate::units::{ProcessKey, Share};
use crate::verdict::Lost;

/// If at least this share of an interval was polled, the whole interval counts as seen.
const MOSTLY_SEEN: f64 = 0.8;

/// Seconds by state, cause or kind.
pub(super) type Seconds = BTreeMap<String, f64>;

/// Totals of one job.
#[derive(Debug, Clone, Default)]
pub(super) struct JobTotals {
    /// By trainer.
    pub(super) ranks: BTreeMap<ProcessKey, RankTotals>,
    /// By the kind of the verdict.
    pub(super) verdicts: Seconds,
    /// The kernel's own counter of the time without CPU because of the quota.
    pub(super) cpu_throttled: Option<f64>,
}

/// Totals of one rank. `None`, or no entry, if it was never known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RankTotals {
    /// Seconds of its main thread by state. The sum is the time in which its waits could be seen.
    pub(super) main: Seconds,
    /// Time lost to data, by cause.
    pub(super) stall: Seconds,
    pub(super) stall_uncertainty: Option<f64>,
    pub(super) batches: Option<f64>,
    pub(super) queue_empty: Option<f64>,
    /// Batches ready at the last poll.
    pub(super) queue_ready: Option<u32>,
    /// Seconds of all its workers together, by state.
    pub(super) workers: Seconds,
    /// Seconds in which they were working on a batch.
    pub(super) load: Option<f64>,
    /// Bytes from block devices, and by read calls from any source.
    pub(super) storage_read: Option<f64>,
    pub(super) read: Option<f64>,
}

impl JobTotals {
    /// Adds the interval between the last two samples.
    pub(super) fn add(&mut self, state: &State) {
        let Some(rates) = state.model.latest() else {
            return;
        };
        let Some(job) = rates.job.as_ref().filter(|job| !job.ended) else {
            return;
        };
        let cgroup = state
            .model
            .sample()
            .and_then(|sample| sample.job.as_ref()?.cgroup.as_ref());
        let throttled = cgroup.and_then(|group| group.throttled);
        self.cpu_throttled = throttled.map(|time| time.as_secs_f64());
        let seconds = seen(rates);
        let verdict = state.verdict();
        if let Some(verdict) = verdict {
            add_to(&mut self.verdicts, &verdict.kind.to_string(), seconds);
        }
        let cause = verdict.and_then(|verdict| verdict.cause);
        let cause = cause.map_or_else(|| "unknown".to_owned(), |cause| cause.to_string());
        let window = state.model.window();
        let progress = state.model.progress();
        self.ranks
            .retain(|key, _| job.ranks.iter().any(|rank| rank.key == *key));
        for rank in &job.ranks {
            let lost = window.and_then(|window| lost(window, rank.key, &progress));
            let totals = self.ranks.entry(rank.key).or_default();
            totals.add(rank, seconds, lost, &cause);
        }
    }
}

/// Returns how many seconds of the interval were seen. Nothing was seen while pipetop itself was stopped.
fn seen(rates: &Rates) -> f64 {
    let ranks = rates.ranks().iter();
    let polled = ranks.filter_map(|rank| Some(rank.polled?.0));
    match polled.reduce(f64::max) {
        // The counts of polls are read a little earlier or later than the sample.
        Some(part) if part < MOSTLY_SEEN => part * rates.seconds,
        _ => rates.seconds,
    }
}

/// Returns what the rank loses in the verdict's window, which is longer and shows the loss better than a single
/// interval.
fn lost(window: &Rates, key: ProcessKey, progress: &Progress) -> Option<Lost> {
    let rank = window.job.as_ref()?.rank(key)?;
    Lost::of(window, rank, progress)
}

impl RankTotals {
    fn add(&mut self, rank: &RankRates, seconds: f64, lost: Option<Lost>, cause: &str) {
        if let (Some(lost), Some(wait)) = (lost, rank.wait) {
            let seen = seconds * wait.unknown.complement().0;
            let waited = wait.share.0 * seen;
            self.spent(rank, seen, waited);
            // Of this interval's waits, as large a part is lost as of those in the window.
            let part =
                Share::of(lost.stall.share.0, lost.wait.0).map_or(0.0, |part| part.0.min(1.0));
            add_to(&mut self.stall, cause, waited * part);
            let half = (lost.stall.high.0 - lost.stall.low.0) / 2.0;
            more(&mut self.stall_uncertainty, Some(half * seen));
        }
        more(
            &mut self.batches,
            rank.step.batches.map(|batches| batches as f64),
        );
        let queue = rank.main_loader().and_then(|loader| loader.queue);
        self.queue_ready = queue.map(|queue| queue.ready);
        more(
            &mut self.queue_empty,
            queue.map(|queue| queue.empty.0 * seconds),
        );
        for loader in &rank.loaders {
            self.load(loader, seconds);
        }
    }

    /// Adds the time of the main thread by state; `waited` is that of its waits for data.
    fn spent(&mut self, rank: &RankRates, seen: f64, waited: f64) {
        let mut rest = seen - waited;
        let mut take = |share: f64| {
            // An empty sum of floats is -0: adding 0 removes the sign.
            let taken = (share * seen).clamp(0.0, rest) + 0.0;
            rest -= taken;
            taken
        };
        let sync = [COMMUNICATION, SYNCHRONIZE].map(|what| rank.time_not_for_data(what).0);
        let sync = take(sync.iter().sum());
        let stopped = rank.stopped.unwrap_or_default().0;
        let other: f64 = rank.other_waits().map(|wait| wait.share.0).sum();
        let other = take(other + rank.idle().0 + stopped);
        for (state, seconds) in [
            ("data_wait", waited),
            ("step", rest),
            ("sync", sync),
            ("other", other),
        ] {
            add_to(&mut self.main, state, seconds);
        }
    }

    fn load(&mut self, loader: &LoaderRates, seconds: f64) {
        for worker in &loader.workers {
            if let Some(busy) = worker.busy {
                more(&mut self.load, Some(busy.0 * seconds));
                for (state, share) in states(worker, busy) {
                    add_to(&mut self.workers, state, share * seconds);
                }
            }
            let bytes = |rate: Option<crate::units::BytesPerSecond>| Some(rate?.0 * seconds);
            more(&mut self.storage_read, bytes(worker.read));
            more(&mut self.read, bytes(worker.rchar));
        }
    }
}

fn states(worker: &WorkerRates, busy: Share) -> [(&'static str, f64); 6] {
    let share = |share: Option<Share>| share.unwrap_or_default().0;
    let [disk, network, handover, other] =
        [worker.disk, worker.network, worker.handover, worker.asleep].map(share);
    let stopped = share(worker.stopped);
    let cpu = (busy.0 - disk - network - handover - other).max(0.0);
    [
        ("idle", worker.idle().unwrap_or_default().0),
        ("cpu", cpu),
        ("disk", disk),
        ("network", network),
        ("handover", handover),
        ("other", other + stopped),
    ]
}

/// Totals of one GPU. `None`, or no entry, if it was never known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct GpuTotals {
    pub(super) busy: Option<f64>,
    /// Seconds in which it could be seen whether it was busy.
    pub(super) observed: Option<f64>,
    /// The driver's own counter.
    pub(super) energy_joules: Option<f64>,
    /// Seconds with a lowered clock, by reason.
    pub(super) held_back: Seconds,
}

/// Adds an interval to the totals of each GPU, by index.
pub(super) fn add_gpus(totals: &mut BTreeMap<u32, GpuTotals>, state: &State) {
    let Some(rates) = state.model.latest() else {
        return;
    };
    let known = |now: &GpuSample| now.gap.is_none();
    let current = |gpu: &&GpuRates| gpu.stale_seconds.is_none() && known(&gpu.now);
    let seconds = seen(rates);
    for gpu in rates.gpus.iter().filter(current) {
        let totals = totals.entry(gpu.now.index).or_default();
        totals.energy_joules = gpu.now.energy_joules;
        for reason in gpu.now.throttle.iter().flatten() {
            add_to(&mut totals.held_back, reason, seconds);
        }
        let util = gpu.util_percent.map(|percent| Share(percent / 100.0));
        if let Some(busy) = gpu.busy.or(util) {
            more(&mut totals.busy, Some(busy.clamped().0 * seconds));
            more(&mut totals.observed, Some(seconds));
        }
    }
}

fn add_to(totals: &mut Seconds, what: &str, seconds: f64) {
    *totals.entry(what.to_owned()).or_default() += seconds;
}

fn more(total: &mut Option<f64>, grown: Option<f64>) {
    if let Some(grown) = grown {
        *total = Some(total.unwrap_or_default() + grown);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::Engine;
    use crate::sample::literals::{first_loader, first_rank, key, machine, training};
    use crate::sample::{Sample, Tail};

    fn after(samples: impl IntoIterator<Item = Sample>) -> JobTotals {
        let mut engine = Engine::new(Duration::from_secs(10));
        let mut totals = JobTotals::default();
        for sample in samples {
            totals.add(engine.push(sample));
        }
        totals
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn seconds_add_up_however_long_the_intervals_are() {
        for at in [
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            vec![1.0, 1.5, 4.5, 5.0, 9.0],
        ] {
            let totals = after(at.into_iter().map(training));
            let rank = &totals.ranks[&key(100)];
            // Eight seconds, three fifths of them waits.
            close(rank.main.values().sum(), 8.0);
            close(rank.main["data_wait"], 4.8);
            close(rank.main["step"], 3.2);
            close(rank.batches.unwrap(), 80.0);
            close(rank.queue_empty.unwrap(), 6.0);
            close(rank.workers.values().sum(), 16.0);
            close(rank.workers["idle"], 1.6);
            close(rank.load.unwrap(), 14.4);
            close(rank.read.unwrap(), 1.6e9);
            close(totals.verdicts.values().sum(), 8.0);
            assert!(rank.stall.values().sum::<f64>() <= 4.8 + 1e-9);
        }
    }

    #[test]
    fn time_in_which_pipetop_was_stopped_is_not_made_up() {
        let seen = after([1.0, 2.0, 3.0].map(training));
        let mut late = training(3.0);
        late.at = training(60.0).at;
        let mut polled = training(4.0);
        polled.at = late.at;
        let stopped = after([training(1.0), training(2.0), training(3.0), polled]);
        let of = |totals: &JobTotals| totals.ranks[&key(100)].main.values().sum::<f64>();
        close(of(&seen), 2.0);
        // In the last 57 seconds there were polls of only one second.
        close(of(&stopped), 3.0);
        close(stopped.verdicts.values().sum(), 3.0);
        close(stopped.ranks[&key(100)].workers.values().sum(), 6.0);
    }

    #[test]
    fn unseen_waits_are_not_counted_as_zero() {
        let blind = |at: u32| {
            let mut sample = training(f64::from(at));
            first_rank(&mut sample).main = None;
            first_loader(&mut sample).queue = None;
            first_loader(&mut sample).workers.clear();
            sample
        };
        let totals = after((1..9).map(blind));
        let rank = &totals.ranks[&key(100)];
        assert!(rank.main.is_empty() && rank.stall.is_empty(), "{rank:?}");
        assert_eq!((rank.queue_empty, rank.load, rank.read), (None, None, None));
    }

    #[test]
    fn without_a_gpu_every_wait_is_lost() {
        let alone = |at: u32| {
            let mut sample = training(f64::from(at));
            sample.gpus.clear();
            sample
        };
        let totals = after((1..9).map(alone));
        let rank = &totals.ranks[&key(100)];
        close(rank.stall.values().sum(), rank.main["data_wait"]);
        assert!(rank.stall_uncertainty.unwrap() > 0.0);
    }

    #[test]
    fn a_gpu_is_busy_for_a_part_of_the_time_that_was_seen() {
        let mut engine = Engine::new(Duration::from_secs(10));
        let mut totals = BTreeMap::new();
        for at in 1..6 {
            add_gpus(&mut totals, engine.push(machine(f64::from(at))));
        }
        close(totals[&0].observed.unwrap(), 4.0);
        close(totals[&0].busy.unwrap(), 1.6);
    }

    #[test]
    fn a_gpu_that_tells_its_energy_alone_is_not_idle() {
        let mut engine = Engine::new(Duration::from_secs(10));
        let mut totals = BTreeMap::new();
        for at in 1..6 {
            let mut sample = machine(f64::from(at));
            let gpu = &mut sample.gpus[0];
            (gpu.util_percent, gpu.util_samples) = (None, Tail::default());
            gpu.energy_joules = Some(100.0 * f64::from(at));
            gpu.throttle = Some(vec!["power cap".to_owned()]);
            add_gpus(&mut totals, engine.push(sample));
        }
        assert_eq!((totals[&0].busy, totals[&0].observed), (None, None));
        close(totals[&0].energy_joules.unwrap(), 500.0);
        close(totals[&0].held_back["power cap"], 4.0);
    }
}
