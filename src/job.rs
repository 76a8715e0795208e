//! Which processes are the job: who trains, who loads for whom, and which job is meant.
//!
//! Pure: works on [`Process`] facts that a source read. Knows nothing of how they are read, of rates or
//! of screens.

mod candidates;
mod loaders;

use std::collections::BTreeMap;

use crate::units::{Pid, ProcessKey};

pub use candidates::{Candidate, NoTarget, Target, below, candidates, resolve};
pub use loaders::{Loader, ResultPipe, loaders};

/// Name that PyTorch (2.5 and newer) gives the main thread of a loader worker.
pub const WORKER_COMM: &str = "pt_data_worker";
/// Names that the built-in job gives the main threads of its trainer and of its workers.
pub const BUILTIN_TRAINER: &str = "pipetop-trainer";
pub const BUILTIN_WORKER: &str = "pipetop-worker";
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
    /// `RANK` and `WORLD_SIZE` of its environment; `None` where unset or unreadable.
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    /// Has a deep-learning framework's library mapped. `None` where it was not looked at or denied.
    pub framework: Option<bool>,
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
    /// A Python interpreter by its name or by its command line.
    pub fn is_python(&self) -> bool {
        let program = self.command.split(' ').next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        program.starts_with("python")
            || self.comm.starts_with("python")
            || self.comm.starts_with("pt_")
    }

    /// The trainer of the built-in job.
    pub fn is_builtin_trainer(&self) -> bool {
        self.comm == BUILTIN_TRAINER
    }

    /// Can train or load, as far as its name tells.
    pub fn may_train(&self) -> bool {
        self.is_python() || self.is_builtin_trainer() || self.comm == BUILTIN_WORKER
    }

    /// Started by `multiprocessing` to run something else than a worker's loop.
    fn is_multiprocessing_service(&self) -> bool {
        self.command.contains("multiprocessing.resource_tracker")
    }

    /// Started by `multiprocessing` from a fresh interpreter, or a server that forks such.
    fn is_fresh_child(&self) -> bool {
        self.command.contains("multiprocessing.spawn")
            || self.command.contains("multiprocessing.forkserver")
    }

    fn reads(&self, inode: u64) -> bool {
        self.pipes
            .iter()
            .flatten()
            .any(|pipe| !pipe.write && pipe.inode == inode)
    }

    fn writes(&self, inode: u64) -> bool {
        self.pipes
            .iter()
            .flatten()
            .any(|pipe| pipe.write && pipe.inode == inode)
    }
}

/// All processes by number, with their children.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    by_pid: BTreeMap<Pid, &'a Process>,
    children: BTreeMap<Pid, Vec<Pid>>,
}

impl<'a> Tree<'a> {
    pub fn new(processes: &'a [Process]) -> Self {
        let mut tree = Self::default();
        for process in processes {
            tree.by_pid.insert(process.key.pid, process);
            tree.children
                .entry(process.parent)
                .or_default()
                .push(process.key.pid);
        }
        tree
    }

    pub fn get(&self, pid: Pid) -> Option<&'a Process> {
        self.by_pid.get(&pid).copied()
    }

    pub fn children(&self, pid: Pid) -> impl Iterator<Item = &'a Process> + '_ {
        self.children
            .get(&pid)
            .into_iter()
            .flatten()
            .filter_map(|child| self.get(*child))
    }

    /// The process and everything below it, parents before children.
    pub fn descendants(&self, root: Pid) -> Vec<&'a Process> {
        let mut found: Vec<&Process> = self.get(root).into_iter().collect();
        let mut next = 0;
        while next < found.len() {
            let pid = found[next].key.pid;
            // A damaged tree could name a process its own ancestor: each is taken once.
            for child in self.children(pid) {
                if !found.iter().any(|known| known.key.pid == child.key.pid) {
                    found.push(child);
                }
            }
            next += 1;
        }
        found
    }

    /// Worker processes that load for `trainer`: children, or grandchildren through a fork server.
    pub fn workers(&self, trainer: &Process) -> Vec<&'a Process> {
        let mut workers = Vec::new();
        for child in self.children(trainer.key.pid) {
            if child.command.contains("multiprocessing.forkserver") && child.comm != WORKER_COMM {
                workers.extend(
                    self.children(child.key.pid)
                        .filter(|grandchild| is_worker(grandchild, trainer)),
                );
            } else if is_worker(child, trainer) {
                workers.push(child);
            }
        }
        workers.sort_by_key(|worker| (worker.key.start_ticks, worker.key.pid));
        workers
    }

    /// The trainer that `process` loads for, where it is a worker.
    pub fn trainer_of(&self, process: &Process) -> Option<&'a Process> {
        let mut above = self.get(process.parent)?;
        if above.command.contains("multiprocessing.forkserver") {
            above = self.get(above.parent)?;
        }
        is_worker(process, above).then_some(above)
    }
}

/// A child that runs PyTorch's worker loop for `trainer`, as far as can be told from outside: named so
/// by newer versions; before, a copy (or a fresh interpreter) that writes to a pipe the trainer reads.
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
    match (&child.pipes, &trainer.pipes) {
        (Some(ends), Some(_)) => {
            ends.iter().any(|end| end.write && trainer.reads(end.inode))
                && ends
                    .iter()
                    .any(|end| !end.write && trainer.writes(end.inode))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
