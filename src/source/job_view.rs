//! The watched job, read once per interval: its processes and every counter of each, its control group, and the devices of
//! its files.
//!
//! Sets the targets of the poller. Must not depend on the rest of the machine or on other jobs.

mod builtin;
mod other;
mod rank;
mod reports;
mod slots;
mod starter;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::job::{Candidate, Tree};
use crate::sample::{Gap, JobSample, PressureSample, RankSample, Run, Tier};
use crate::source::cgroup::Cgroup;
use crate::source::clock::Clock;
use crate::source::discovery::Discovery;
use crate::source::disk::devices_of_open_files;
use crate::source::poll::{PollTargets, PollerHandle, Seen};
use crate::source::probe::Listener;
use crate::source::process::ProcessReader;
use crate::source::processes::others;
use crate::source::run;
use crate::units::{Pid, ProcessKey};
use rank::RankView;
use reports::Reports;
use starter::Starter;

/// Figures that seldom change are read every this many intervals.
const THOROUGH: u64 = 5;

/// Shortest time between two reads of the files that are open.
const SLOW_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of workers whose open files are read: the workers of a loader read the same data.
const WORKERS_READ: usize = 4;

/// Reads one job until it ends.
#[derive(Debug)]
pub struct JobView {
    proc_root: PathBuf,
    sys_root: PathBuf,
    reader: ProcessReader,
    discovery: Discovery,
    polls: PollerHandle,
    reports: Option<Reports>,
    cgroup: Cgroup,
    command: String,
    /// Read once.
    run: Option<Run>,
    /// The trainers that the job started with.
    first_ranks: Vec<ProcessKey>,
    ranks: Vec<RankView>,
    starter: Option<Starter>,
    targets: PollTargets,
    tick: u64,
    last: Option<JobSample>,
    /// Gaps of the last reading of its processes.
    gaps: Vec<Gap>,
    /// Whole devices, by their names in `/proc/diskstats`.
    devices: BTreeSet<String>,
    device_gap: Option<Gap>,
    devices_read_at: Option<Duration>,
}

impl JobView {
    /// Starts to watch `job`, whose first rank is `first`, and which may report its steps to `probe`.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn attach(
        proc_root: &Path,
        sys_root: &Path,
        clock: Clock,
        (job, first): (&Candidate, ProcessKey),
        probe: Option<Arc<Listener>>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            proc_root: proc_root.to_owned(),
            sys_root: sys_root.to_owned(),
            reader: ProcessReader::new(proc_root),
            discovery: Discovery::new(proc_root),
            polls: PollerHandle::start(proc_root, clock)?,
            reports: probe.map(|probe| Reports::new(probe, clock)),
            cgroup: Cgroup::new(proc_root, sys_root, first.pid),
            command: job.command.clone(),
            run: None,
            first_ranks: job.ranks.clone(),
            ranks: job.ranks.iter().copied().map(RankView::new).collect(),
            starter: job.starter.map(|key| Starter::new(key, clock)),
            targets: PollTargets::default(),
            tick: 0,
            last: None,
            gaps: vec![],
            devices: BTreeSet::new(),
            device_gap: None,
            devices_read_at: None,
        })
    }

    /// Reads everything; also returns the pressure within the job's control group, if known. After the job's end,
    /// returns the last reading, marked as ended. Returns `None` if the job ended before the first reading, or could
    /// not be read so far, which a gap reports.
    pub fn read(
        &mut self,
        now: Duration,
        gaps: &mut Vec<Gap>,
    ) -> Option<(JobSample, Option<PressureSample>)> {
        let group = self.cgroup.read();
        let frozen = group.cgroup.as_ref().and_then(|group| group.frozen);
        let job = self.read_processes(frozen == Some(true));
        gaps.extend_from_slice(&self.gaps);
        let mut job = job?;
        if job.ended {
            return Some((job, None));
        }
        let recently = |at: Duration| now.saturating_sub(at) < SLOW_PAUSE;
        if !self.devices_read_at.is_some_and(recently) {
            self.devices_read_at = Some(now);
            // The workers read the data; a trainer without workers reads it itself.
            let workers = job.ranks.iter().flat_map(RankSample::workers);
            let workers = workers.map(|worker| worker.key.pid).take(WORKERS_READ);
            self.read_devices(workers.chain([job.key.pid]));
        }
        gaps.extend(group.gaps);
        gaps.extend(self.device_gap.clone());
        job.cgroup = group.cgroup;
        Some((job, group.pressure))
    }

    /// `frozen`: whether the job's control group is frozen, which the next polls take into account.
    fn read_processes(&mut self, frozen: bool) -> Option<JobSample> {
        let thorough = self.tick.is_multiple_of(THOROUGH);
        self.tick += 1;
        let keys: Vec<ProcessKey> = self.ranks.iter().map(|rank| rank.key).collect();
        let processes = self.discovery.family(&keys, thorough);
        let tree = Tree::new(&processes);
        let mut found = Vec::new();
        for view in &mut self.ranks {
            if let Some(trainer) = tree.get(view.key.pid).filter(|now| view.is(now)) {
                let loaders = view.follow(&mut self.reader, &tree, trainer, thorough);
                found.push((view, trainer, loaders));
            }
        }
        if found.is_empty() {
            if let Some(gap) = self.discovery.gap() {
                // A process that cannot be read now has not ended.
                self.gaps = vec![gap.clone()];
                return self.last.clone();
            }
            let last = self.last.as_mut()?;
            last.ended = true;
            return Some(last.clone());
        }
        // What another user's process is blocked in cannot be read.
        let readable = found.iter().filter(|(view, ..)| view.tier > Tier::T0);
        let targets = PollTargets {
            ranks: readable
                .map(|(view, trainer, loaders)| view.watched(trainer, loaders))
                .collect(),
            frozen,
        };
        if targets != self.targets {
            self.polls.watch(targets.clone());
            self.targets = targets;
        }
        let seen = self.polls.take();
        self.gaps = python_gap(&seen).into_iter().collect();
        self.gaps.extend(self.discovery.gap().cloned());
        self.gaps
            .extend(found.iter().find_map(|(view, ..)| view.gap.clone()));
        if let Some(gap) = &seen.gap {
            self.gaps.push(gap.clone());
            // Try again at the next reading.
            self.targets = PollTargets::default();
        }
        let reports = self.reports.as_mut();
        let (reported, unusable) = reports
            .map(|reports| reports.take(&keys))
            .unwrap_or_default();
        self.gaps.extend(unusable);
        let ranks = found.into_iter().map(|(view, trainer, loaders)| {
            let reported = reported.get(&view.key);
            view.sample(&mut self.reader, &tree, trainer, &loaders, &seen, reported)
        });
        let ranks: Vec<RankSample> = ranks.collect();
        self.find_trainer(&ranks);
        let access = |view: &RankView| match reported.get(&view.key) {
            Some(reported) if reported.fresh => Tier::T3,
            _ => view.tier,
        };
        let access = self.ranks.iter().map(access).min().unwrap_or_default();
        let key = ranks.first()?.key;
        // The process may have become another program since it was found. A fresh child's own arguments say nothing.
        if let Some(trainer) = tree.get(key.pid)
            && !(trainer.command.is_empty() || trainer.is_fresh_child())
        {
            trainer.command.clone_into(&mut self.command);
        }
        let read = || run::read(&self.proc_root, &mut self.reader, key);
        let run = self.run.get_or_insert_with(read).clone();
        let sample = JobSample {
            run: Some(run),
            cpus_allowed: ranks
                .iter()
                .filter_map(|rank| rank.process.cpus_allowed)
                .max(),
            ranks,
            ..JobSample::new(key, self.command.clone(), access)
        };
        let others = others(&sample, &self.discovery, &self.reader);
        let sample = JobSample { others, ..sample };
        self.last = Some(sample.clone());
        Some(sample)
    }

    /// Watches the starter of the only rank from the next reading on, if it turns out that the starter trains.
    fn find_trainer(&mut self, ranks: &[RankSample]) {
        let (Some(starter), [rank], [view]) = (&mut self.starter, ranks, &self.ranks[..]) else {
            return;
        };
        if starter.trains(&mut self.reader, &rank.passes, view.tier) {
            self.ranks = vec![RankView::new(starter.key)];
            self.starter = None;
        }
    }

    fn read_devices(&mut self, readers: impl Iterator<Item = Pid>) {
        // Processes that end meanwhile are handled at the next call.
        self.device_gap = None;
        for pid in readers {
            match devices_of_open_files(&self.proc_root, &self.sys_root, pid) {
                Ok(found) => self.devices.extend(found),
                Err(gap) => self.device_gap = Some(gap),
            }
        }
    }

    pub fn ended(&self) -> bool {
        self.last.as_ref().is_some_and(|job| job.ended)
    }

    pub fn first_ranks(&self) -> &[ProcessKey] {
        &self.first_ranks
    }

    /// Returns the devices that the job has read from, as far as known.
    pub fn devices(&self) -> &BTreeSet<String> {
        &self.devices
    }

    /// Returns the job's processes as found for the last reading.
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// Returns the number of late polls so far.
    pub fn late(&self) -> u64 {
        self.polls.late()
    }
}

/// Returns why there are no stacks of a trainer, once for all ranks.
fn python_gap(seen: &Seen) -> Option<Gap> {
    let mut mains = seen.mains.values();
    let error = mains.find_map(|main| main.python_error.as_ref())?;
    Some(Gap::new("python", error.to_string(), error.hint()))
}
