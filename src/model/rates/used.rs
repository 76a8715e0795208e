//! Which GPUs a rank uses, and the evidence for it.
//!
//! Uses the list of processes of each GPU; draws no conclusion from how busy a GPU is.

use super::{GpuRates, RankRates, Rates};
use crate::sample::{GpuProcess, GpuUser, ProcessPlace, UsedBy};
use crate::units::Pid;

/// Minimum percent of the multiprocessors' time at which another process hides what the rank does.
const OTHER_IS_BUSY: f64 = 10.0;

/// A GPU that a rank uses, with the evidence; without a `user`, there is no other GPU that it could be.
#[derive(Debug, Clone, Copy)]
pub struct Used<'a> {
    pub gpu: &'a GpuRates,
    pub user: Option<&'a GpuUser>,
    /// The busiest process on it that is neither a rank nor a worker of the job: because of it, the GPU's load does not
    /// show what the rank does.
    pub other: Option<&'a GpuProcess>,
}

impl Used<'_> {
    /// Returns the part of a partitioned (MIG) GPU that the rank was assigned.
    pub fn instance(&self) -> Option<u32> {
        self.user?.instance
    }

    /// Returns the share of time with a kernel, 0 to 1; for a partitioned GPU, that on the rank's part. `None` if the
    /// driver does not report it, or if another process keeps the GPU busy.
    pub fn busy(&self) -> Option<f64> {
        if self.other.is_some() {
            return None;
        }
        let Some(instance) = self.instance() else {
            let util = self.gpu.util_percent.map(|percent| percent / 100.0);
            return self.gpu.busy.map(|share| share.0).or(util);
        };
        let mut parts = self.gpu.now.instances.iter();
        let place = parts.position(|part| part.gpu_instance == Some(instance))?;
        let part = self.gpu.parts.get(place).copied().flatten();
        part.map(|share| share.0)
    }
}

impl Rates {
    /// Returns the GPUs that the rank certainly uses: by the driver's list, or by the device files that it has open.
    pub fn known_gpus(&self, rank: &RankRates) -> Vec<Used<'_>> {
        self.gpus_used(rank, |by| by >= UsedBy::DeviceFile)
    }

    /// Returns the GPU that the rank must be using: by its environment, else the only one that the job may use, or the
    /// one at the rank's position if there are as many GPUs as ranks. `None` if it could be any.
    pub fn inferred_gpu(&self, rank: &RankRates) -> Option<Used<'_>> {
        if let [used] = self.gpus_used(rank, |by| by < UsedBy::DeviceFile)[..] {
            return Some(used);
        }
        let visible = |gpu: &&GpuRates| gpu.now.visible_to_job == Some(true);
        let visible: Vec<&GpuRates> = self.gpus.iter().filter(visible).collect();
        let ranks = &self.job.as_ref()?.ranks;
        let place = ranks.iter().position(|other| other.key == rank.key)?;
        let gpu = (visible.len() == ranks.len()).then(|| visible[place])?;
        Some(Used {
            gpu,
            user: None,
            other: self.other_process(gpu),
        })
    }

    fn gpus_used(&self, rank: &RankRates, sure: impl Fn(UsedBy) -> bool) -> Vec<Used<'_>> {
        let gpus = self.gpus.iter();
        let used = gpus.filter_map(|gpu| {
            let mut users = gpu.now.users.iter().flatten();
            let user = users.find(|user| user.pid == rank.key.pid && sure(user.by))?;
            Some(Used {
                gpu,
                user: Some(user),
                // The driver does not say how busy a process keeps a part.
                other: self.other_process(gpu).filter(|_| user.instance.is_none()),
            })
        });
        used.collect()
    }

    /// Returns the busiest process on the whole GPU that is neither a rank nor a worker. `None` also where the driver lists
    /// none of the ranks: then its PIDs may be those of another namespace.
    fn other_process<'a>(&self, gpu: &'a GpuRates) -> Option<&'a GpuProcess> {
        let job = self.job.as_ref()?;
        let mut users = gpu.now.users.iter().flatten();
        users.find(|user| user.by == UsedBy::Listed)?;
        let is_own = |pid: Pid| {
            let mut ranks = job.ranks.iter();
            job.key.pid == pid
                || ranks.any(|rank| {
                    rank.key.pid == pid || rank.workers().any(|worker| worker.key.pid == pid)
                })
        };
        let others = gpu.now.processes.iter().flatten().filter(|process| {
            process.place != ProcessPlace::Unknown
                && process
                    .sm_percent
                    .is_some_and(|percent| percent >= OTHER_IS_BUSY)
                && !is_own(process.pid)
        });
        let use_of = |process: &GpuProcess| process.sm_percent.unwrap_or(0.0);
        others.max_by(|one, other| use_of(one).total_cmp(&use_of(other)))
    }
}
