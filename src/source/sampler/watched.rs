//! The watched job with what is read for it apart from its processes: its control group, and the devices of its files.
//!
//! Does not depend on the rest of the machine or on other jobs.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::Options;
use crate::job::Candidate;
use crate::sample::{Gap, JobSample, PressureSample};
use crate::source::cgroup::Cgroup;
use crate::source::clock::Clock;
use crate::source::discovery::Discovery;
use crate::source::disk::{Storage, storage_of_open_files};
use crate::source::job_view::JobView;
use crate::units::{Pid, ProcessKey};

/// Shortest time between two reads of what seldom changes.
const SLOW_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of workers whose open files are read: those of a loader read the same data.
const WORKERS_READ: usize = 4;

pub(super) struct AttachedJob {
    proc_root: PathBuf,
    sys_root: PathBuf,
    view: JobView,
    cgroup: Cgroup,
    /// Whole devices, by their names in `/proc/diskstats`.
    devices: BTreeSet<String>,
    device_gap: Option<Gap>,
    asked_at: Option<Duration>,
    ended: bool,
    ranks: Vec<ProcessKey>,
}

impl AttachedJob {
    /// Starts to watch `job`; its first rank is `first`.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(super) fn attach(
        options: &Options,
        clock: Clock,
        job: &Candidate,
        first: ProcessKey,
    ) -> io::Result<Self> {
        let (proc_root, sys_root) = (&options.proc_root, &options.sys_root);
        let view = JobView::attach(proc_root, clock, job, options.probe.clone())?;
        Ok(Self {
            proc_root: proc_root.to_owned(),
            sys_root: sys_root.to_owned(),
            view,
            cgroup: Cgroup::new(proc_root, sys_root, first.pid),
            devices: BTreeSet::new(),
            device_gap: None,
            asked_at: None,
            ended: false,
            ranks: job.ranks.clone(),
        })
    }

    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the trainers that the job started with.
    pub(super) fn ranks(&self) -> &[ProcessKey] {
        &self.ranks
    }

    /// Returns the devices that the job has read from, as far as known.
    pub(super) fn devices(&self) -> &BTreeSet<String> {
        &self.devices
    }

    /// Returns the job's processes as found for its last sample.
    pub(super) fn discovery(&self) -> &Discovery {
        self.view.discovery()
    }

    /// Returns the number of late polls so far.
    pub(super) fn late(&self) -> u64 {
        self.view.late()
    }

    /// Returns the job's sample, and the pressure within its control group if known. `None` if the job ended before it
    /// was read once, or cannot be read so far.
    pub(super) fn read(
        &mut self,
        now: Duration,
        gaps: &mut Vec<Gap>,
    ) -> Option<(JobSample, Option<PressureSample>)> {
        let group = self.cgroup.read();
        let frozen = group.cgroup.as_ref().and_then(|group| group.frozen);
        self.view.set_frozen(frozen == Some(true));
        let job = self.view.read();
        gaps.extend_from_slice(self.view.gaps());
        let mut job = job?;
        self.ended = job.ended;
        if job.ended {
            return Some((job, None));
        }
        let recently = |at: Duration| now.saturating_sub(at) < SLOW_PAUSE;
        if !self.asked_at.is_some_and(recently) {
            self.asked_at = Some(now);
            // The workers read the data; a trainer without workers reads it itself.
            let loaders = job.ranks.iter().flat_map(|rank| &rank.loaders);
            let workers = loaders.flat_map(|loader| &loader.workers);
            let workers = workers.map(|worker| worker.key.pid).take(WORKERS_READ);
            self.read_devices(workers.chain([job.key.pid]));
        }
        gaps.extend(group.gaps);
        gaps.extend(self.device_gap.clone());
        job.cgroup = group.cgroup;
        Some((job, group.pressure))
    }

    fn read_devices(&mut self, readers: impl Iterator<Item = Pid>) {
        let device = |holder| match holder {
            Storage::Device(name) => Some(name),
            Storage::FileSystem(_) => None,
        };
        // Processes that end meanwhile are handled at the next call.
        self.device_gap = None;
        for pid in readers {
            match storage_of_open_files(&self.proc_root, &self.sys_root, pid) {
                Ok(found) => self.devices.extend(found.into_iter().filter_map(device)),
                Err(gap) => self.device_gap = Some(gap),
            }
        }
    }
}
