//! What the rules look at: one rank, its loader and its GPUs in one window, with the sums that several
//! rules need.
//!
//! Holds no thresholds of a single rule: those stand in the rules.

use crate::model::Overlap;
use crate::model::rates::{
    CgroupRates, Estimate, GpuRates, JobRates, LoaderRates, RankRates, Rates, Used, WorkerRates,
};
use crate::sample::{LoaderKind, QueueSource};
use crate::units::Share;
use crate::verdict::Evidence;
use crate::verdict::level::MODERATE;

/// Workers that are busy less than this share of the time have no busy time to speak of.
const HARDLY_BUSY: f64 = 0.1;

pub(super) struct Context<'a> {
    pub(super) rates: &'a Rates,
    pub(super) job: &'a JobRates,
    pub(super) rank: &'a RankRates,
    /// The loader that the rank takes most batches from; `None` where none was seen.
    pub(super) loader: Option<&'a LoaderRates>,
}

impl<'a> Context<'a> {
    pub(super) fn new(rates: &'a Rates, job: &'a JobRates, rank: &'a RankRates) -> Self {
        Self {
            rates,
            job,
            rank,
            loader: rank.main_loader(),
        }
    }

    pub(super) fn workers(&self) -> &'a [WorkerRates] {
        self.loader.map_or(&[], |loader| &loader.workers)
    }

    pub(super) fn cgroup(&self) -> Option<&'a CgroupRates> {
        self.job.cgroup.as_ref()
    }

    pub(super) fn wait(&self) -> Option<Estimate> {
        self.rank.wait
    }

    /// Share of time that the rank lacked data: its stays in the loader, without those in which a batch was at hand
    /// and another thread held the interpreter's lock.
    pub(super) fn without_data(&self) -> Option<Share> {
        let for_gil = self.rank.gil.map_or(0.0, |gil| gil.in_loader.0);
        Some(Share(self.wait()?.share.0 - for_gil).clamped())
    }

    /// Share of time that the main thread waited for something that is neither a batch nor the device nor other ranks:
    /// to have written a line or a checkpoint.
    pub(super) fn other_waits(&self) -> Share {
        let waits = self.rank.not_data.iter();
        let own = waits.filter(|wait| !matches!(&*wait.name, "communication" | "synchronize"));
        Share(own.map(|wait| wait.share.0).sum()).clamped()
    }

    /// That this takes more of the main thread's time than anything else it waits for that is no batch, and much of it.
    pub(super) fn mostly_waits_for(&self, what: &str) -> Option<Evidence> {
        let longest = self.rank.not_data.first()?;
        let share = longest.share;
        (longest.name == what && share.0 >= MODERATE).then(|| {
            let text = format!("main thread waits {share} of the time for {what}");
            Evidence::supporting("main-thread-waits", share.0, MODERATE, text)
        })
    }

    /// The trainer loads its batches itself.
    pub(super) fn loads_in_main(&self) -> bool {
        self.loader.is_some_and(|loader| match loader.kind {
            LoaderKind::PytorchMain => true,
            LoaderKind::Other => loader.workers.is_empty(),
            _ => false,
        })
    }

    /// Share of time at which no batch was ready. `None` where the queue cannot be seen, as with a
    /// pinning thread, which empties the pipe at once; and where it was not looked at over time.
    pub(super) fn queue_empty(&self) -> Option<Share> {
        let told_once_a_step = self.loader?.queue?.source == QueueSource::Probe;
        self.found_empty().filter(|_| !told_once_a_step)
    }

    /// The same, or how often the trainer found no batch ready when it came for one.
    pub(super) fn found_empty(&self) -> Option<Share> {
        let loader = self.loader?;
        let pins = loader.kind == LoaderKind::PytorchProcesses;
        if pins && loader.settings.pin_memory == Some(true) {
            return None;
        }
        Some(loader.queue?.empty)
    }

    fn gpus_held(&self) -> Vec<Used<'a>> {
        self.rates.gpus_held(self.rank)
    }

    fn gpu_in_place(&self) -> Option<Used<'a>> {
        self.rates.gpu_in_place(self.rank)
    }

    /// The GPUs that the idle share is of, where it is read from the driver.
    pub(super) fn gpus_in_use(&self) -> Vec<Used<'a>> {
        let held = self.gpus_held();
        if held.is_empty() {
            return self.gpu_in_place().into_iter().collect();
        }
        held
    }

    /// Share of time that the rank's device ran no kernel: of the GPUs that it surely uses, as the driver
    /// reads them; else as the job itself reports of its device, which may be a simulated one on a machine
    /// with GPUs; else of the GPU that it must be using. `None` without any of these.
    pub(super) fn gpu_idle(&self) -> Option<Share> {
        idle_of(self.gpus_held().into_iter())
            .or_else(|| self.reported_idle())
            .or_else(|| idle_of(self.gpu_in_place().into_iter()))
    }

    /// The same, where it is the job that reports it.
    pub(super) fn reported_idle(&self) -> Option<Share> {
        let busy = self.rank.device.as_ref()?.busy?;
        let read = idle_of(self.gpus_held().into_iter()).is_some();
        (!read).then(|| busy.complement())
    }

    /// The GPU that the idle share is of, where it is one, whole and read from the driver.
    pub(super) fn gpu(&self) -> Option<&'a GpuRates> {
        let held = self.gpus_held();
        let used = match held[..] {
            [one] => one,
            [] if self.reported_idle().is_none() => self.gpu_in_place()?,
            _ => return None,
        };
        let whole = used.instance().is_none();
        (whole && used.gpu.stale_seconds.is_none()).then_some(used.gpu)
    }

    /// The rank's waits beside the idle time of its GPU, on one axis of time. `None` also where the waits that
    /// were seen one by one are not those that were counted.
    pub(super) fn overlap(&self) -> Option<Overlap> {
        const SAME: f64 = 0.1;
        /// Share of the window that must be covered.
        const MOST: f64 = 0.5;
        let gpu = self.gpu()?;
        let wait = self.wait()?;
        let mut overlaps = self.rank.overlaps.iter();
        let found = overlaps.find(|overlap| overlap.gpu == gpu.now.index)?;
        let within = wait.low.0 - SAME..=wait.high.0 + SAME;
        let covered = found.seconds >= MOST * self.rates.seconds;
        (covered && within.contains(&found.wait.0)).then_some(*found)
    }

    /// The rank's waits beside the idle time of its GPU that swings, over the time that shows that: `slow` = longer
    /// than the window.
    pub(super) fn beside_swing(&self, slow: bool) -> Option<Overlap> {
        if !slow {
            return self.overlap();
        }
        let gpu = self.gpu()?.now.index;
        let mut found = self.rank.beside_swings.iter();
        found.find(|overlap| overlap.gpu == gpu).copied()
    }

    /// Share of time lost, as the job's own events on the device tell it: waits in which the device had nothing to
    /// do.
    pub(super) fn reported_stall(&self) -> Option<Share> {
        self.rank.device.as_ref()?.idle_in_waits
    }

    /// By the job's reports its device rests at the end of each step: while the rank waits, nothing runs.
    pub(super) fn waits_are_idle(&self) -> bool {
        let device = self.rank.device.as_ref();
        self.reported_idle().is_some() && device.is_some_and(|device| device.rests_with_each_step)
    }

    /// Share of time that the main thread was seen in functions whose name, as `all_reduce (torch)`, is one of
    /// these. The polls with a stack are those outside the loader.
    pub(super) fn time_in(&self, is_one: impl Fn(&str) -> bool) -> Share {
        time_in(self.rank, is_one)
    }

    /// CPUs' worth of time that the job may use: the tightest of online CPUs, affinity, cpuset, quota.
    pub(super) fn cpus(&self) -> Option<f64> {
        let cgroup = self.cgroup();
        let online = (self.rates.host.cpus > 0).then_some(self.rates.host.cpus);
        let counts = [
            online,
            self.job.cpus_allowed,
            cgroup.and_then(|group| group.cpuset),
        ];
        let counts = counts.into_iter().flatten().map(f64::from);
        let quota = cgroup.and_then(|group| group.cpu_quota);
        counts.chain(quota).min_by(f64::total_cmp)
    }

    /// Mean over workers of a share; `None` where no worker has it.
    pub(super) fn mean_share(
        &self,
        share: impl Fn(&WorkerRates) -> Option<Share>,
    ) -> Option<Share> {
        mean(
            self.workers()
                .iter()
                .filter_map(|worker| share(worker).map(|share| share.0)),
        )
        .map(Share)
    }

    /// What a share of all workers' time is of their busy time. `None` where either is not known, and where
    /// they hardly have any: a part of next to nothing says nothing.
    pub(super) fn of_busy(&self, share: impl Fn(&WorkerRates) -> Option<Share>) -> Option<Share> {
        let both = |worker: &WorkerRates| Some((share(worker)?.0, worker.busy?.0));
        let pairs: Vec<(f64, f64)> = self.workers().iter().filter_map(both).collect();
        let busy: f64 = pairs.iter().map(|(_, busy)| busy).sum();
        if busy < HARDLY_BUSY * pairs.len() as f64 {
            return None;
        }
        Share::of(pairs.iter().map(|(part, _)| part).sum(), busy)
    }

    /// CPU time of all workers, in cores.
    pub(super) fn workers_cpu(&self) -> Option<f64> {
        let known: Vec<f64> = self
            .workers()
            .iter()
            .filter_map(|worker| worker.cpu)
            .collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// The function that busy workers were seen in most, over all workers.
    pub(super) fn hottest(&self) -> Option<(&'a str, Share)> {
        let mut sums: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
        let mut workers = 0.0;
        for worker in self
            .workers()
            .iter()
            .filter(|worker| !worker.activity.is_empty())
        {
            workers += 1.0;
            for activity in &worker.activity {
                *sums.entry(&activity.name).or_default() += activity.share.0;
            }
        }
        let (name, sum) = sums
            .into_iter()
            .max_by(|one, other| one.1.total_cmp(&other.1))?;
        Some((name, Share::of(sum, workers)?))
    }
}

/// The same of any rank.
pub(super) fn time_in(rank: &RankRates, is_one: impl Fn(&str) -> bool) -> Share {
    let seen = rank.activity.iter();
    let seen = seen.filter(|activity| is_one(&activity.name));
    let outside = rank.wait.map_or(1.0, |wait| wait.share.complement().0);
    Share(outside * seen.map(|activity| activity.share.0).sum::<f64>()).clamped()
}

/// Share of time that these ran no kernel, on average. `None` without a live reading.
fn idle_of<'a>(gpus: impl Iterator<Item = Used<'a>>) -> Option<Share> {
    let live = gpus.filter(|used| used.gpu.stale_seconds.is_none());
    mean(live.filter_map(|used| used.busy())).map(|busy| Share(1.0 - busy).clamped())
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// The middle value.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
