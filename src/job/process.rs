//! A process as far as it is known, and who loads for whom.
//!
//! Pure. Knows nothing of jobs: which processes make up one is for [`super::candidates`].

use std::collections::BTreeMap;

use super::tree::ProcessTree;
use crate::units::{Pid, ProcessKey};

/// Name that PyTorch (2.5 and newer) gives the main thread of a loader worker.
pub(super) const WORKER_COMM: &str = "pt_data_worker";
/// Names that the built-in job gives the main threads of its trainer and of its workers.
pub const BUILTIN_TRAINER: &str = "pipetop-trainer";
pub const BUILTIN_WORKER: &str = "pipetop-worker";
/// How the command line of that trainer begins: there from its start, before it takes its name.
pub const BUILTIN_COMMAND: &str = "pipetop builtin-trainer ";
/// Bytes that a worker of the built-in job writes for each batch, and nothing else.
pub const BUILTIN_MESSAGE: usize = 64;

/// What discovery needs to know of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub key: ProcessKey,
    pub parent: Pid,
    /// The kernel's name of its main thread, at most 15 bytes, control characters replaced.
    pub comm: String,
    /// Arguments joined by spaces, control characters replaced; empty where it cannot be read.
    pub command: String,
    pub state: char,
    /// A thread of the kernel: has no memory of its own.
    pub kernel: bool,
    /// `RANK`, `WORLD_SIZE` and `LOCAL_RANK` of its environment; `None` where unset or unreadable.
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    pub local_rank: Option<u32>,
    /// Its program is a Python interpreter, whatever it calls itself. `None` where that is denied.
    pub runs_python: Option<bool>,
    /// Has a deep-learning framework's library mapped. `None` where it was not looked at or denied.
    pub framework: Option<bool>,
    /// Has an NVIDIA GPU open. `None` where it was not looked at or denied.
    pub gpu: Option<bool>,
    /// Open pipe ends, by descriptor. `None` where it was not looked at or denied.
    pub pipes: Option<Vec<PipeEnd>>,
}

/// One descriptor of a process that is an end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PipeEnd {
    pub fd: i32,
    /// Inode of the pipe: the same number in every process that holds an end.
    pub inode: u64,
    pub write: bool,
}

impl Process {
    /// A Python interpreter: by its program, by its name or by its command line. The last two are what the process
    /// says of itself.
    pub fn is_python(&self) -> bool {
        if self.runs_python == Some(true) {
            return true;
        }
        let program = self.command.split(' ').next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        program.starts_with("python")
            || self.comm.starts_with("python")
            || self.comm.starts_with("pt_")
    }

    /// The trainer of the built-in job.
    pub fn is_builtin_trainer(&self) -> bool {
        self.comm == BUILTIN_TRAINER || self.command.starts_with(BUILTIN_COMMAND)
    }

    /// Can train or load, as far as its name tells.
    pub fn may_train(&self) -> bool {
        self.is_python() || self.is_builtin_trainer() || self.comm == BUILTIN_WORKER
    }

    /// Started by `multiprocessing` to run something else than a worker's loop.
    pub(super) fn is_multiprocessing_service(&self) -> bool {
        self.command.contains("multiprocessing.resource_tracker")
    }

    /// Started by `multiprocessing` from a fresh interpreter, or a server that forks such.
    pub(super) fn is_fresh_child(&self) -> bool {
        self.command.contains("multiprocessing.spawn")
            || self.command.contains("multiprocessing.forkserver")
    }

    /// Serves as the parent of processes that others start, and runs nothing else.
    pub(super) fn is_fork_server(&self) -> bool {
        self.command.contains("multiprocessing.forkserver") && self.comm != WORKER_COMM
    }

    pub(super) fn writes(&self, inode: u64) -> bool {
        self.pipes
            .iter()
            .flatten()
            .any(|pipe| pipe.write && pipe.inode == inode)
    }
}

/// All processes by number, and who started whom.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    by_pid: BTreeMap<Pid, &'a Process>,
    started: ProcessTree,
}

impl<'a> Tree<'a> {
    pub fn new(processes: &'a [Process]) -> Self {
        let number = |process: &'a Process| (process.key.pid, process);
        let links = processes.iter();
        Self {
            by_pid: processes.iter().map(number).collect(),
            started: links
                .map(|process| (process.key.pid, process.parent))
                .collect(),
        }
    }

    pub fn get(&self, pid: Pid) -> Option<&'a Process> {
        self.by_pid.get(&pid).copied()
    }

    pub fn children(&self, pid: Pid) -> impl Iterator<Item = &'a Process> + '_ {
        let children = self.started.children(pid).iter();
        children.filter_map(|child| self.get(*child))
    }

    /// The process and everything below it, parents before children.
    pub fn descendants(&self, root: Pid) -> Vec<&'a Process> {
        let below = self.started.descendants(root);
        let all = std::iter::once(root).chain(below);
        all.filter_map(|pid| self.get(pid)).collect()
    }

    /// What `process` has started: its children, and those of its fork servers in their place.
    pub(super) fn started(&self, process: &Process) -> Vec<&'a Process> {
        let children = self.children(process.key.pid);
        let started = children.flat_map(|child| {
            if child.is_fork_server() {
                self.children(child.key.pid).collect()
            } else {
                vec![child]
            }
        });
        started.collect()
    }

    /// Who has started `process`, by itself or through a fork server.
    pub(super) fn starter(&self, process: &Process) -> Option<&'a Process> {
        let above = self.get(process.parent)?;
        if above.is_fork_server() {
            return self.get(above.parent);
        }
        Some(above)
    }

    /// Worker processes that load for `trainer`: children, or grandchildren through a fork server.
    pub fn workers(&self, trainer: &Process) -> Vec<&'a Process> {
        let mut workers = self.started(trainer);
        workers.retain(|child| self.is_worker(child, trainer));
        workers.sort_by_key(|worker| (worker.key.start_ticks, worker.key.pid));
        workers
    }

    /// The trainer that `process` loads for, where it is a worker.
    pub fn trainer_of(&self, process: &Process) -> Option<&'a Process> {
        let above = self.starter(process)?;
        self.is_worker(process, above).then_some(above)
    }

    /// Loads for `trainer`, and is no trainer with workers of its own.
    fn is_worker(&self, child: &Process, trainer: &Process) -> bool {
        let has_workers = || {
            let started = self.started(child);
            started.iter().any(|worker| is_worker(worker, child))
        };
        is_worker(child, trainer) && (child.comm == WORKER_COMM || !has_workers())
    }
}

/// A child that loads for `trainer`, as far as can be told from outside: named so by newer versions of PyTorch; else
/// a copy (or a fresh interpreter) that holds a queue of the trainer's.
fn is_worker(child: &Process, trainer: &Process) -> bool {
    if child.state == 'Z' {
        return false;
    }
    if trainer.is_builtin_trainer() {
        return child.comm == BUILTIN_WORKER;
    }
    if !trainer.is_python() || child.is_multiprocessing_service() {
        return false;
    }
    if child.comm == WORKER_COMM {
        return true;
    }
    if child.command.is_empty() || (child.command != trainer.command && !child.is_fresh_child()) {
        return false;
    }
    // A fresh interpreter inherits no descriptor of the trainer's GPU: it has opened it itself.
    if child.is_fresh_child() && child.gpu == Some(true) {
        return false;
    }
    shares_a_queue(child, trainer).unwrap_or(true)
}

/// Whether `child` can put something into a `multiprocessing.Queue` of `parent`. `None` where descriptors are denied.
/// The pipes by which `multiprocessing` starts a process and sees its end are no queues: each side has one end.
pub(super) fn shares_a_queue(child: &Process, parent: &Process) -> Option<bool> {
    child.pipes.as_ref().and(parent.pipes.as_ref())?;
    let mut ends = parent.pipes.iter().flatten();
    Some(ends.any(|end| !end.write && parent.writes(end.inode) && child.writes(end.inode)))
}
