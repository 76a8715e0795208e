//! What the rules look at: one rank, its loader and its GPUs in one window, with the sums that several
//! rules need.
//!
//! Holds no thresholds: those stand in the rules.

use crate::model::rates::{
    CgroupRates, Estimate, GpuRates, JobRates, LoaderRates, RankRates, Rates, WorkerRates,
};
use crate::sample::{LoaderKind, QueueSource};
use crate::units::Share;

/// Workers that are busy less than this share of the time have no busy time to speak of.
const HARDLY_BUSY: f64 = 0.1;

pub(super) struct Case<'a> {
    pub(super) rates: &'a Rates,
    pub(super) job: &'a JobRates,
    pub(super) rank: &'a RankRates,
    /// The loader that the rank takes most batches from; `None` where none was seen.
    pub(super) loader: Option<&'a LoaderRates>,
}

impl<'a> Case<'a> {
    pub(super) fn new(rates: &'a Rates, job: &'a JobRates, rank: &'a RankRates) -> Self {
        let most = |one: &&LoaderRates, other: &&LoaderRates| {
            let batches = |loader: &LoaderRates| loader.batches_per_s.unwrap_or(0.0);
            batches(one)
                .total_cmp(&batches(other))
                .then(one.workers.len().cmp(&other.workers.len()))
                .then(other.id.cmp(&one.id))
        };
        Self {
            rates,
            job,
            rank,
            loader: rank.loaders.iter().max_by(most),
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

    /// The trainer loads its batches itself.
    pub(super) fn loads_in_main(&self) -> bool {
        self.loader
            .is_some_and(|loader| loader.kind == LoaderKind::PytorchMain)
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

    /// GPUs that hold memory of the rank. Empty also in a container where the driver's process numbers are
    /// another namespace's.
    fn gpus_held(&self) -> Vec<&'a GpuRates> {
        let holds = |gpu: &&GpuRates| {
            let mut processes = gpu.now.processes.iter().flatten();
            processes.any(|process| process.pid == self.rank.key.pid)
        };
        self.rates.gpus.iter().filter(holds).collect()
    }

    /// The one GPU that the job may use, or the one in the rank's place where there are as many ranks. `None`
    /// where it could be any.
    fn gpu_in_place(&self) -> Option<&'a GpuRates> {
        let visible = |gpu: &&GpuRates| gpu.now.visible_to_job == Some(true);
        let visible: Vec<&GpuRates> = self.rates.gpus.iter().filter(visible).collect();
        let ranks = &self.job.ranks;
        let place = ranks.iter().position(|rank| rank.key == self.rank.key)?;
        (visible.len() == ranks.len()).then(|| visible[place])
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
        (!read).then(|| busy.rest())
    }

    /// By the job's reports its device rests at the end of each step: while the rank waits, nothing runs.
    pub(super) fn waits_are_idle(&self) -> bool {
        let device = self.rank.device.as_ref();
        self.reported_idle().is_some() && device.is_some_and(|device| device.rests_with_each_step)
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

/// Share of time that these ran no kernel, on average. `None` without a live reading.
fn idle_of<'a>(gpus: impl Iterator<Item = &'a GpuRates>) -> Option<Share> {
    let busy = gpus
        .filter(|gpu| gpu.stale_seconds.is_none())
        .filter_map(|gpu| {
            let util = gpu.util_percent.map(|percent| percent / 100.0);
            gpu.busy.map(|share| share.0).or(util)
        });
    mean(busy).map(|busy| Share(1.0 - busy).clamped())
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
