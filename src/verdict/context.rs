//! Input of the rules: one rank, its loader and its GPUs in one window, with the sums that several rules need.
//!
//! Holds no thresholds of a single rule: those are in the rules.

use crate::loaders::{KnownLoader, Names};
use crate::model::Overlap;
use crate::model::rates::{
    CgroupRates, Estimate, GpuRates, JobRates, LoaderRates, RankRates, Rates, Used, WorkerRates,
};
use crate::sample::{LoaderKind, QueueSource, SYNCHRONIZE};
use crate::units::{Share, mean};
use crate::verdict::Evidence;
use crate::verdict::level::MODERATE;

/// Busy share of the workers below which their busy time is too short to be divided further.
const MIN_BUSY: f64 = 0.1;

/// Position of the most likely loss between its lower bound (0) and its upper bound (1). A GPU finishes its queued
/// work, and mostly idles while no batch has come: for fifteen jobs on an H200 that lost 5 % or more by their own CUDA
/// events, the position was 0.54 to 1.18, with a median of 0.91.
const LIKELY: f64 = 0.8;

pub(super) struct Context<'a> {
    pub(super) rates: &'a Rates,
    pub(super) job: &'a JobRates,
    pub(super) rank: &'a RankRates,
    /// The loader that represents the rank; `None` if none was seen.
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

    /// Returns the same context with another loader of the rank.
    pub(super) fn of_loader(&self, loader: &'a LoaderRates) -> Self {
        Self {
            rates: self.rates,
            job: self.job,
            rank: self.rank,
            loader: Some(loader),
        }
    }

    /// Returns the other loaders that the rank takes batches from.
    pub(super) fn other_loaders(&self) -> impl Iterator<Item = &'a LoaderRates> {
        let own = self.loader.map(|loader| loader.id);
        let all = self.rank.loaders_in_use().into_iter();
        all.filter(move |loader| Some(loader.id) != own)
    }

    /// Returns the milliseconds that a worker takes for a batch, and the milliseconds from one batch to the next
    /// without the rank's waits. If the rank has several loaders, both are for this loader alone.
    pub(super) fn load_and_step(&self) -> (Option<f64>, Option<f64>) {
        let step = self.rank.step;
        let loader = self
            .loader
            .filter(|_| self.other_loaders().next().is_some());
        let Some(rate) = loader.and_then(|loader| loader.batches_per_s) else {
            return (step.load_ms, step.step_ms);
        };
        let busy: Option<f64> = if self.workers().is_empty() {
            loader.and_then(|loader| loader.wait).map(|wait| wait.0)
        } else {
            let busy = self.workers().iter().map(|worker| Some(worker.busy?.0));
            busy.sum()
        };
        let load = busy.map(|busy| 1000.0 * busy / rate);
        if let Some(step) = loader.and_then(|loader| loader.step_ms) {
            return (load, Some(step));
        }
        let step = self
            .wait()
            .map(|wait| 1000.0 * wait.share.complement().0 / rate);
        (load, step)
    }

    /// Returns what is known of the loader by its name.
    pub(super) fn known_loader(&self) -> Option<&'static KnownLoader> {
        Names::known().loader(self.loader?.name.as_deref()?)
    }

    /// Whether visible workers only pass on what others load, so that their number is not a setting.
    pub(super) fn has_fixed_workers(&self) -> bool {
        let mut workers = self.workers().iter();
        let known = self.known_loader();
        known.is_some_and(|known| workers.any(|worker| known.is_fixed(worker.thread)))
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

    /// Returns the share of time that the rank lacked data: its time in the loader, except while a batch was ready but
    /// another thread held the GIL.
    pub(super) fn without_data(&self) -> Option<Share> {
        let for_gil = self.rank.gil.map_or(0.0, |gil| gil.in_loader.0);
        Some(Share(self.wait()?.share.0 - for_gil).clamped())
    }

    /// Returns the share of time that the main thread waited for something other than a batch, the device or other
    /// ranks, for example for writing a line or a checkpoint.
    pub(super) fn other_waits(&self) -> Share {
        let waits = self.rank.other_waits();
        Share(waits.map(|wait| wait.share.0).sum()).clamped()
    }

    /// Returns evidence if `what` is the longest of the main thread's waits for something other than a batch, and long
    /// enough.
    pub(super) fn mostly_waits_for(&self, what: &str) -> Option<Evidence> {
        let longest = self.rank.other_waits().next()?;
        let share = longest.share;
        (longest.name == what && share.0 >= MODERATE).then(|| {
            let text = format!("main thread waits {share} of the time for {what}");
            Evidence::supporting("main-thread-waits", share.0, MODERATE, text)
        })
    }

    /// Returns whether the trainer loads its batches itself.
    pub(super) fn loads_in_main(&self) -> bool {
        self.loader.is_some_and(|loader| match loader.kind {
            LoaderKind::PytorchMain => true,
            LoaderKind::Other => loader.workers.is_empty(),
            _ => false,
        })
    }

    /// Returns whether the training loop does most of the loading itself, behind a loader of PyTorch.
    pub(super) fn loads_after_loader(&self) -> bool {
        let by_pytorch = self
            .loader
            .is_some_and(|loader| loader.kind != LoaderKind::Other);
        let parts = self.rank.in_loop.zip(self.rank.loading);
        by_pytorch && parts.is_some_and(|(in_loop, loading)| in_loop.0 > loading.0 / 2.0)
    }

    /// Returns the share of time without a ready batch. `None` if the queue cannot be seen, as with a pinning thread,
    /// which empties the pipe at once, or if it is not polled over time but reported once per step.
    pub(super) fn queue_empty(&self) -> Option<Share> {
        let once_a_step = self.loader?.queue?.source == QueueSource::Probe;
        self.queue_empty_any_source().filter(|_| !once_a_step)
    }

    /// Returns the upper bound of [`Self::queue_empty`]: the queue cannot be polled from the end of an epoch until the
    /// workers of the next one are found.
    pub(super) fn queue_empty_at_most(&self) -> Option<Share> {
        self.queue_empty()?;
        Some(self.loader?.queue?.empty_at_most)
    }

    /// Returns the share of time without a ready batch or, if the job reports it, the share of requests that found
    /// none.
    pub(super) fn queue_empty_any_source(&self) -> Option<Share> {
        let loader = self.loader?;
        let pins = matches!(
            loader.kind,
            LoaderKind::PytorchProcesses | LoaderKind::Processes
        );
        if pins && loader.settings.pin_memory == Some(true) {
            return None;
        }
        Some(loader.queue?.empty)
    }

    fn known_gpus(&self) -> Vec<Used<'a>> {
        self.rates.known_gpus(self.rank)
    }

    fn inferred_gpu(&self) -> Option<Used<'a>> {
        self.rates.inferred_gpu(self.rank)
    }

    /// Returns the GPUs that the idle share is based on, if it is read from the driver.
    pub(super) fn gpus_in_use(&self) -> Vec<Used<'a>> {
        let held = self.known_gpus();
        if held.is_empty() {
            return self.inferred_gpu().into_iter().collect();
        }
        held
    }

    /// Returns the share of time that the rank's device ran no kernel: of the GPUs that it certainly uses, as read from
    /// the driver; else as reported by the job for its device, which may be a simulated one on a machine with GPUs;
    /// else of the GPU that it must be using. `None` without any of these.
    pub(super) fn gpu_idle(&self) -> Option<Share> {
        idle_of(self.known_gpus().into_iter())
            .or_else(|| self.reported_idle())
            .or_else(|| idle_of(self.inferred_gpu().into_iter()))
    }

    /// Returns the share of time that the device neither ran a kernel nor copied: while it copies a batch, it does not
    /// lack data.
    pub(super) fn gpu_rest(&self) -> Option<Share> {
        let copies = self.gpu().and_then(|gpu| gpu.copies_only);
        Some(Share(self.gpu_idle()?.0 - copies.unwrap_or_default().0).clamped())
    }

    /// Returns the share of time that the device ran no kernel, as reported by the job. `None` also if the driver shows
    /// it for the GPUs that the rank certainly uses.
    pub(super) fn reported_idle(&self) -> Option<Share> {
        let busy = self.rank.device.as_ref()?.busy?;
        let read = idle_of(self.known_gpus().into_iter()).is_some();
        (!read).then(|| busy.complement())
    }

    /// Returns what its idle share is of: a device that only the job's reports show need not be a GPU.
    pub(super) fn device_word(&self) -> &'static str {
        self.reported_idle().map_or("GPU", |_| "device")
    }

    /// Returns the GPU that the idle share is based on, if it is a single whole GPU, read from the driver and not used by
    /// another process.
    pub(super) fn gpu(&self) -> Option<&'a GpuRates> {
        let held = self.known_gpus();
        let used = match held[..] {
            [one] => one,
            [] if self.reported_idle().is_none() => self.inferred_gpu()?,
            _ => return None,
        };
        let whole = used.instance().is_none() && used.other.is_none();
        (whole && used.gpu.stale_seconds.is_none()).then_some(used.gpu)
    }

    /// Returns a lower bound of the share of time in which the rank waits for data (`wait`) and the GPU is idle
    /// (`idle`). Neither is the case while the main thread waits for the GPU (`synchronized`), which is then busy.
    ///
    /// A wait for the GPU includes copies that were queued before, during which no kernel runs. Their time is not
    /// known, but such a job leaves the GPU without work when it asks for its next batch.
    pub(super) fn least_overlap(&self, wait: Share, synchronized: Share, idle: Share) -> Share {
        // Of several GPUs, one may be idle while another one is waited for.
        let synchronized = self.gpu().map_or(0.0, |_| synchronized.0);
        let least = wait.0 + synchronized + idle.0 - 1.0;
        Share(least.clamp(0.0, wait.0.min(idle.0).max(0.0)))
    }

    /// Returns the narrowest known bounds of the overlap of the rank's waits and its GPU's idle time. `None` also if
    /// the waits that were seen one by one differ from those that were counted.
    pub(super) fn overlap(&self) -> Option<Overlap> {
        let found = self.overlap_of_pieces()?;
        let synchronized = self.rank.time_not_for_data(SYNCHRONIZE);
        let least = self.least_overlap(self.wait()?.share, synchronized, self.gpu_rest()?);
        let low = Share(found.low.0.max(least.0).min(found.high.0));
        Some(Overlap { low, ..found })
    }

    /// Returns the same bounds from the pieces of the GPU's history alone.
    pub(super) fn overlap_of_pieces(&self) -> Option<Overlap> {
        const SAME: f64 = 0.1;
        /// Minimum share of the window that must be covered.
        const MIN_COVERAGE: f64 = 0.5;
        let gpu = self.gpu()?;
        let wait = self.wait()?;
        let mut overlaps = self.rank.overlaps.iter();
        let found = overlaps.find(|overlap| overlap.gpu == gpu.now.index)?;
        let within = wait.low.0 - SAME..=wait.high.0 + SAME;
        let covered = found.seconds >= MIN_COVERAGE * self.rates.seconds;
        (covered && within.contains(&found.wait.0)).then_some(*found)
    }

    /// Returns the overlap of the rank's waits and the idle time of its oscillating GPU, over the time that shows the
    /// oscillation; `slow` means a time longer than the window.
    pub(super) fn oscillation_overlap(&self, slow: bool) -> Option<Overlap> {
        if !slow {
            return self.overlap();
        }
        let gpu = self.gpu()?.now.index;
        let mut found = self.rank.slow_overlaps.iter();
        found.find(|overlap| overlap.gpu == gpu).copied()
    }

    /// Returns the share of time lost, as reported by the job's own events on the device: waits in which the device had
    /// nothing to do.
    pub(super) fn reported_stall(&self) -> Option<Share> {
        self.rank.device.as_ref()?.idle_in_waits
    }

    /// Returns whether, by the job's reports, its device is idle at the end of each step: while the rank waits, nothing
    /// runs.
    pub(super) fn waits_are_idle(&self) -> bool {
        let device = self.rank.device.as_ref();
        self.reported_idle().is_some() && device.is_some_and(|device| device.rests_with_each_step)
    }

    /// Returns the share of time that the main thread was seen in functions whose names match, for example
    /// `all_reduce (torch)`. Polls at which the thread waited for a batch or received one name no function.
    pub(super) fn time_in(&self, is_one: impl Fn(&str) -> bool) -> Share {
        time_in(self.rank, is_one)
    }

    /// Returns the number of CPUs that the job may use: the tightest of online CPUs, affinity, cpuset, quota.
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

    /// Returns the mean of a share over workers; `None` if no worker has it.
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

    /// Returns a share of all workers' time as a share of their busy time. `None` if either is not known, or if they
    /// are hardly busy: a part of very little is not meaningful.
    pub(super) fn of_busy(&self, share: impl Fn(&WorkerRates) -> Option<Share>) -> Option<Share> {
        let both = |worker: &WorkerRates| Some((share(worker)?.0, worker.busy_or_on_cpu()?.0));
        let pairs: Vec<(f64, f64)> = self.workers().iter().filter_map(both).collect();
        let busy: f64 = pairs.iter().map(|(_, busy)| busy).sum();
        if busy < MIN_BUSY * pairs.len() as f64 {
            return None;
        }
        Share::of(pairs.iter().map(|(part, _)| part).sum(), busy)
    }

    /// Returns the CPU time of all workers, in cores.
    pub(super) fn workers_cpu(&self) -> Option<f64> {
        let known: Vec<f64> = self
            .workers()
            .iter()
            .filter_map(|worker| worker.cpu)
            .collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// Returns the function that busy workers were seen in most, over all workers.
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

/// Returns the most likely loss between its bounds.
pub(super) fn likely(least: Share, most: Share) -> Share {
    Share(least.0 + LIKELY * (most.0 - least.0))
}

/// Like [`Context::time_in`], for any rank.
pub(super) fn time_in(rank: &RankRates, is_one: impl Fn(&str) -> bool) -> Share {
    let seen = rank.activity.iter();
    let seen = seen.filter(|activity| is_one(&activity.name));
    let in_waits = || {
        let waits = [rank.waiting, rank.receiving].into_iter().flatten();
        waits.map(|share| share.0).sum::<f64>()
    };
    let named = rank.named.map_or_else(|| 1.0 - in_waits(), |named| named.0);
    Share(named * seen.map(|activity| activity.share.0).sum::<f64>()).clamped()
}

/// Returns the mean share of time that these GPUs ran no kernel. `None` without a current reading.
fn idle_of<'a>(gpus: impl Iterator<Item = Used<'a>>) -> Option<Share> {
    let live = gpus.filter(|used| used.gpu.stale_seconds.is_none());
    mean(live.filter_map(|used| used.busy())).map(|busy| Share(1.0 - busy).clamped())
}
