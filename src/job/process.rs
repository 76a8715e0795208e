//! The known facts of a process, and which process loads for which.
//!
//! Pure. Does not depend on jobs: [`super::candidates`] decides which processes make up one.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::ProcessTree;
use crate::units::{Pid, ProcessKey};

/// Name that PyTorch (2.5 and newer) gives the main thread of a loader worker.
pub(super) const WORKER_COMM: &str = "pt_data_worker";
/// Names that the built-in job gives the main threads of its trainer and of its workers.
pub const BUILTIN_TRAINER: &str = "pipetop-trainer";
pub const BUILTIN_WORKER: &str = "pipetop-worker";
/// Start of that trainer's command line. It is there before the trainer's main thread has its name.
pub const BUILTIN_COMMAND: &str = "pipetop builtin-trainer ";
/// Bytes that a worker of the built-in job writes for each batch; it writes nothing else.
pub const BUILTIN_MESSAGE: usize = 64;
/// Number of forked copies of one process whose pipes are read to identify them; further copies are taken to be the
/// same. Each copy holds the pipes of those before it, so the time to read all of them grows with the square of their
/// number.
const COPIES: usize = 16;

/// The facts that discovery needs about a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    pub key: ProcessKey,
    pub parent: Pid,
    /// The kernel's name of its main thread, at most 15 bytes, control characters replaced.
    pub comm: String,
    /// Arguments joined by spaces, control characters replaced; empty if they cannot be read.
    pub command: String,
    pub state: char,
    /// Whether it is a kernel thread, which has no memory of its own.
    pub kernel: bool,
    /// `RANK`, `WORLD_SIZE` and `LOCAL_RANK` of its environment; `None` if unset or unreadable.
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    pub local_rank: Option<u32>,
    /// Whether its program is a Python interpreter, independent of its name. `None` if that cannot be read.
    pub runs_python: Option<bool>,
    /// Pages that it had in memory when an interpreter was last looked for in its maps; 0 = never.
    pub pages_looked_at: u64,
    /// Whether it has a deep-learning framework's library mapped. `None` if not read or not permitted.
    pub framework: Option<bool>,
    /// Whether it has an NVIDIA GPU open. `None` if not read or not permitted.
    pub gpu: Option<bool>,
    /// Whether its main thread was waiting for a child, for descriptors or for a time in every sample. `None` if not
    /// read or not clear: it is read only for notebook kernels, and if both the process and one that it started have
    /// loaded a framework.
    pub only_waits: Option<bool>,
    /// Open pipe ends, by descriptor. `None` if not read or not permitted.
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
    /// Whether it has the name that PyTorch gives a loader worker.
    pub fn is_pytorch_worker(&self) -> bool {
        self.comm == WORKER_COMM
    }

    /// Whether it is a Python interpreter, by its program, its name or its command line. The process can set the last
    /// two itself.
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

    /// Whether it runs the cells of a notebook.
    pub(crate) fn is_notebook_kernel(&self) -> bool {
        self.command.contains("ipykernel")
    }

    /// Whether it is the trainer of the built-in job.
    pub fn is_builtin_trainer(&self) -> bool {
        self.comm == BUILTIN_TRAINER || self.command.starts_with(BUILTIN_COMMAND)
    }

    /// Whether it can train or load, judged by its name.
    pub fn may_train(&self) -> bool {
        self.is_python() || self.is_builtin_trainer() || self.comm == BUILTIN_WORKER
    }

    /// Whether it is the resource tracker of `multiprocessing`, which is not a worker.
    pub(super) fn is_multiprocessing_service(&self) -> bool {
        self.command.contains("multiprocessing.resource_tracker")
    }

    /// Whether `multiprocessing` or joblib's loky started it as a fresh interpreter, or it is a fork server or a process
    /// that one forked.
    pub(crate) fn is_fresh_child(&self) -> bool {
        let starts = [
            "multiprocessing.spawn",
            "multiprocessing.forkserver",
            "loky.backend.popen_loky",
        ];
        starts.iter().any(|start| self.command.contains(start))
    }

    /// Whether it may be a part of what started it, and not a rank: a fresh interpreter without GPU and workers.
    pub(crate) fn may_be_part(&self, tree: &Tree<'_>) -> bool {
        self.is_fresh_child() && self.gpu != Some(true) && tree.workers(self).is_empty()
    }

    pub(super) fn writes(&self, inode: u64) -> bool {
        self.pipes
            .iter()
            .flatten()
            .any(|pipe| pipe.write && pipe.inode == inode)
    }
}

/// All processes by PID, with their parents.
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

    /// Returns the process and everything below it, parents before children.
    pub fn descendants(&self, root: Pid) -> Vec<&'a Process> {
        let below = self.started.descendants(root);
        let all = std::iter::once(root).chain(below);
        all.filter_map(|pid| self.get(pid)).collect()
    }

    /// Whether the process is a fork server, which only forks the processes that its parent starts. These keep its
    /// command line.
    pub(super) fn is_fork_server(&self, process: &Process) -> bool {
        let above = self.get(process.parent);
        process.command.contains("multiprocessing.forkserver")
            && process.comm != WORKER_COMM
            && above.is_none_or(|above| above.command != process.command)
    }

    /// Returns what `process` has started: its children, with fork servers replaced by their children.
    pub fn started(&self, process: &Process) -> Vec<&'a Process> {
        let children = self.children(process.key.pid);
        let started = children.flat_map(|child| {
            if self.is_fork_server(child) {
                self.children(child.key.pid).collect()
            } else {
                vec![child]
            }
        });
        started.collect()
    }

    /// Returns the process that has started `process`, directly or through a fork server.
    pub(crate) fn starter(&self, process: &Process) -> Option<&'a Process> {
        let above = self.get(process.parent)?;
        if self.is_fork_server(above) {
            return self.get(above.parent);
        }
        Some(above)
    }

    /// Returns the worker processes that load for `trainer`: children, or grandchildren through a fork server.
    pub fn workers(&self, trainer: &Process) -> Vec<&'a Process> {
        let mut workers = self.started(trainer);
        workers.retain(|child| self.is_worker(child, trainer));
        workers.sort_by_key(|worker| (worker.key.start_ticks, worker.key.pid));
        workers
    }

    /// Returns the processes that are known to be workers without reading their pipes: by their name, or as copies of
    /// one process beyond the first sixteen.
    pub fn spare_copies(&self) -> BTreeSet<ProcessKey> {
        let mut spare = BTreeSet::new();
        for parent in self.by_pid.values() {
            let is_copy = |child: &&Process| {
                child.command == parent.command
                    && !child.is_fresh_child()
                    && self.started.children(child.key.pid).is_empty()
            };
            let copies = self.children(parent.key.pid).filter(is_copy).enumerate();
            let known = copies.filter(|(at, copy)| copy.is_pytorch_worker() || *at >= COPIES);
            spare.extend(known.map(|(_, copy)| copy.key));
        }
        spare
    }

    /// Returns the trainer that `process` loads for, if it is a worker.
    pub fn trainer_of(&self, process: &Process) -> Option<&'a Process> {
        let above = self.starter(process)?;
        self.is_worker(process, above).then_some(above)
    }

    /// Whether `child` loads for `trainer`, and is not itself a trainer with workers.
    fn is_worker(&self, child: &Process, trainer: &Process) -> bool {
        let has_workers = || {
            let started = self.started(child);
            started.iter().any(|worker| is_worker(worker, child))
        };
        is_worker(child, trainer) && (child.comm == WORKER_COMM || !has_workers())
    }
}

/// Whether `child` appears to load for `trainer`: newer versions of PyTorch give it the name of a worker; otherwise it
/// is a copy of the trainer (or a fresh interpreter) that holds one of the trainer's queues.
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
    // A fresh interpreter does not inherit the trainer's descriptor of the GPU, so it has opened the GPU itself.
    if child.is_fresh_child() && child.gpu == Some(true) {
        return false;
    }
    shares_a_queue(child, trainer).unwrap_or(true)
}

/// Whether `child` can put something into a `multiprocessing.Queue` of `parent`. `None` if descriptors cannot be read.
/// The pipes with which `multiprocessing` starts a process and detects its end are not queues: each side holds one end.
pub(super) fn shares_a_queue(child: &Process, parent: &Process) -> Option<bool> {
    child.pipes.as_ref().and(parent.pipes.as_ref())?;
    let mut ends = parent.pipes.iter().flatten();
    Some(ends.any(|end| !end.write && parent.writes(end.inode) && child.writes(end.inode)))
}
