//! A rank's loaders: workers that put their batches into the same pipe belong to one loader.

use std::collections::HashSet;

use super::Process;
use crate::units::ProcessKey;

/// Workers that feed one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// The result pipe; `None` if descriptors cannot be read.
    pub pipe: Option<ResultPipe>,
    /// Whether the trainer was seen waiting on the pipe; otherwise it is the most likely of several.
    pub pipe_is_seen: bool,
    /// Ordered by start time.
    pub workers: Vec<ProcessKey>,
}

/// The pipe that the trainer reads batches from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultPipe {
    pub inode: u64,
    /// The trainer's descriptor of the read end.
    pub fd: i32,
}

/// Groups `workers` (ordered by start) by the result pipe that they share with `trainer`.
///
/// A `multiprocessing.Queue` is a pipe whose two ends both stay open in trainer and worker. A loader opens its result
/// queue, then an index queue for each worker; a forked worker inherits all that were open before. So the first worker
/// of a loader adds two or more new queues, of which its index queue was opened last and the result queue before that;
/// each further worker adds one. `polled` are the descriptors on which the trainer was seen waiting for a batch: these
/// need no guess.
pub fn loaders(trainer: &Process, workers: &[&Process], polled: &[i32]) -> Vec<Loader> {
    if workers.is_empty() {
        return Vec::new();
    }
    if trainer.pipes.is_none() || workers.iter().any(|worker| worker.pipes.is_none()) {
        let workers = workers.iter().map(|worker| worker.key).collect();
        return vec![Loader {
            pipe: None,
            pipe_is_seen: false,
            workers,
        }];
    }
    // A forked worker holds the queues of all workers before it. With n workers, n * n queues are looked up, hence the
    // set.
    let queues = queues(trainer);
    let mut known: HashSet<u64> = HashSet::new();
    let mut found: Vec<(ResultPipe, Vec<&Process>)> = Vec::new();
    for worker in workers {
        let written = written(worker);
        let mut new: Vec<&ResultPipe> = queues
            .iter()
            .filter(|queue| written.contains(&queue.inode) && !known.contains(&queue.inode))
            .collect();
        new.sort_by_key(|queue| queue.fd);
        let shared = found
            .iter()
            .rposition(|(pipe, _)| written.contains(&pipe.inode));
        match (new.as_slice(), shared) {
            ([] | [_], Some(loader)) => found[loader].1.push(worker),
            ([.., result, _], _) => {
                let seen = new.iter().find(|queue| polled.contains(&queue.fd));
                found.push((**seen.unwrap_or(result), vec![worker]));
            }
            ([only], None) => found.push((**only, vec![worker])),
            ([], None) => continue,
        }
        known.extend(written);
    }
    found
        .into_iter()
        .map(|(pipe, workers)| Loader {
            pipe: Some(pipe),
            pipe_is_seen: polled.contains(&pipe.fd),
            workers: workers.iter().map(|worker| worker.key).collect(),
        })
        .collect()
}

/// Returns the pipes of which the trainer holds both ends.
fn queues(trainer: &Process) -> Vec<ResultPipe> {
    let written = written(trainer);
    let ends = trainer.pipes.iter().flatten();
    ends.filter(|end| !end.write && written.contains(&end.inode))
        .map(|end| ResultPipe {
            inode: end.inode,
            fd: end.fd,
        })
        .collect()
}

/// Returns the inodes of the pipes of which the process holds the write end.
fn written(process: &Process) -> HashSet<u64> {
    let ends = process.pipes.iter().flatten();
    ends.filter(|end| end.write).map(|end| end.inode).collect()
}
