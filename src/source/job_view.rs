//! The watched job, read once per interval: its processes, and every counter of each.
//!
//! Sets the targets of the poller. Must not depend on the machine around the job.

mod builtin;
mod other;
mod rank;
mod reports;
mod slots;
mod starter;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::job::{Candidate, Loader, Process, Tree};
use crate::sample::{Gap, JobSample, RankSample, Run, Tier};
use crate::source::clock::Clock;
use crate::source::discovery::Discovery;
use crate::source::poll::{PollTargets, PollerHandle, Seen};
use crate::source::probe::Listener;
use crate::source::process::ProcessReader;
use crate::source::python::PythonError;
use crate::source::run;
use crate::units::ProcessKey;
use rank::RankView;
use reports::Reports;
use starter::Starter;

/// What seldom changes is read every this many intervals.
const THOROUGH: u64 = 5;

/// Reads one job until it ends.
#[derive(Debug)]
pub struct JobView {
    proc_root: PathBuf,
    reader: ProcessReader,
    discovery: Discovery,
    polls: PollerHandle,
    reports: Option<Reports>,
    command: String,
    /// Read once.
    run: Option<Run>,
    ranks: Vec<RankView>,
    starter: Option<Starter>,
    targets: PollTargets,
    frozen: bool,
    tick: u64,
    last: Option<JobSample>,
    gaps: Vec<Gap>,
}

impl JobView {
    /// Starts to watch `job`, which may report its steps to `probe`.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn attach(
        proc_root: &Path,
        clock: Clock,
        job: &Candidate,
        probe: Option<Arc<Listener>>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            proc_root: proc_root.to_owned(),
            reader: ProcessReader::new(proc_root),
            discovery: Discovery::new(proc_root),
            polls: PollerHandle::start(proc_root, clock)?,
            reports: probe.map(|probe| Reports::new(probe, clock)),
            command: job.command.clone(),
            run: None,
            ranks: job.ranks.iter().copied().map(RankView::new).collect(),
            starter: job.starter.map(|key| Starter::new(key, clock)),
            targets: PollTargets::default(),
            frozen: false,
            tick: 0,
            last: None,
            gaps: vec![],
        })
    }

    /// Reads everything. After the job's end, returns the last reading, marked as ended; `None` if the job ended before
    /// the first reading, or cannot be read so far, as a gap says.
    pub fn read(&mut self) -> Option<JobSample> {
        let thorough = self.tick.is_multiple_of(THOROUGH);
        self.tick += 1;
        let keys: Vec<ProcessKey> = self.ranks.iter().map(|rank| rank.key).collect();
        let processes = self.discovery.family(&keys, thorough);
        let tree = Tree::new(&processes);
        let views = self.ranks.iter();
        let views =
            views.filter(|view| tree.get(view.key.pid).is_some_and(|now| goes_on(view, now)));
        let alive: Vec<ProcessKey> = views.map(|view| view.key).collect();
        let alive = |key: &ProcessKey| alive.contains(key);
        if !keys.iter().any(alive) {
            if let Some(gap) = self.discovery.gap() {
                // A process that cannot be read now has not ended.
                self.gaps = vec![gap.clone()];
                return self.last.clone();
            }
            let last = self.last.as_mut()?;
            last.ended = true;
            return Some(last.clone());
        }
        let mut found = Vec::new();
        for view in self.ranks.iter_mut().filter(|view| alive(&view.key)) {
            if let Some(trainer) = tree.get(view.key.pid) {
                found.push(view.follow(&mut self.reader, &tree, trainer, thorough));
            }
        }
        self.publish_polls(&found, alive);
        let seen = self.polls.take();
        self.gaps = python_gaps(&seen);
        self.gaps.extend(self.discovery.gap().cloned());
        self.gaps.extend(
            self.ranks
                .iter()
                .filter_map(|view| view.gap.clone())
                .take(1),
        );
        if let Some(gap) = &seen.gap {
            self.gaps.push(gap.clone());
            // Try again at the next reading.
            self.targets = PollTargets::default();
        }
        let reports = self.reports.as_mut();
        let (reported, gaps) = reports
            .map(|reports| reports.take(&keys))
            .unwrap_or_default();
        self.gaps.extend(gaps);
        let ranks = self
            .ranks
            .iter_mut()
            .filter(|view| alive(&view.key))
            .zip(found);
        let ranks = ranks
            .map(|(view, placed)| {
                let reported = reported.get(&view.key);
                view.sample(&mut self.reader, &tree, &placed, &seen, reported)
            })
            .collect::<Vec<_>>();
        self.find_trainer(&ranks);
        let access = |view: &RankView| match reported.get(&view.key) {
            Some(reported) if reported.fresh => Tier::T3,
            _ => view.tier,
        };
        let access = self.ranks.iter().map(access).min().unwrap_or_default();
        let key = ranks.first()?.key;
        // It may have become another program since it was found. A fresh child's own arguments say nothing.
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

    /// Says whether the job's control group is frozen, which the next polls take into account.
    pub fn set_frozen(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Returns the job's processes as found for the last reading.
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// Returns the gaps of the last reading.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Returns the number of late polls so far.
    pub fn late(&self) -> u64 {
        self.polls.late()
    }

    fn publish_polls(
        &mut self,
        placed: &[Vec<(u64, Loader)>],
        alive: impl Fn(&ProcessKey) -> bool,
    ) {
        let views = self.ranks.iter().filter(|view| alive(&view.key));
        let ranks = views
            .zip(placed)
            // What another user's process is blocked in cannot be read.
            .filter(|(view, _)| view.tier > Tier::T0)
            .map(|(view, loaders)| view.watched(loaders));
        let targets = PollTargets {
            ranks: ranks.collect(),
            frozen: self.frozen,
        };
        if targets != self.targets {
            self.polls.watch(targets.clone());
            self.targets = targets;
        }
    }
}

/// Returns whether this process is still the trainer: it has not ended, nor become another program than Python.
fn goes_on(view: &RankView, now: &Process) -> bool {
    let replaced = view.began_as_python == Some(true) && now.runs_python == Some(false);
    now.key == view.key && now.state != 'Z' && !replaced
}

/// Returns why there are no stacks of a trainer, once for all ranks.
fn python_gaps(seen: &Seen) -> Vec<Gap> {
    let errors = seen
        .mains
        .values()
        .filter_map(|main| main.python_error.as_ref());
    let gap = |error: &PythonError| Gap::new("python", error.to_string(), error.hint());
    errors.map(gap).take(1).collect()
}
