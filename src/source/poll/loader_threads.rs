//! The threads of a trainer that load what its main thread takes, polled from time to time.
//!
//! Does not depend on queues: stacks show which of the threads load.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::paced::Paced;
use super::thread_numbers::ThreadNumbers;
use super::thread_view::ThreadView;
use super::worker_view::{count, count_model};
use super::{SLOTS, WorkerSeen, count_activity};
use crate::source::python::{Does, OtherThread, Stacks};
use crate::units::Pid;

/// Shortest time between two polls of all threads.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum number of threads polled.
const MAX_THREADS: usize = 256;

#[derive(Debug)]
pub(super) struct LoaderThreads {
    proc_root: PathBuf,
    process: Pid,
    numbers: ThreadNumbers,
    paced: Paced,
    threads: BTreeMap<Pid, LoaderThread>,
}

#[derive(Debug)]
struct LoaderThread {
    view: ThreadView,
    /// Whether it was seen to load: a thread of a pool may do other work.
    loads: bool,
    seen: WorkerSeen,
}

impl LoaderThreads {
    pub(super) fn new(proc_root: PathBuf, process: Pid) -> Self {
        Self {
            numbers: ThreadNumbers::of(&proc_root, process),
            proc_root,
            process,
            paced: Paced::default(),
            threads: BTreeMap::new(),
        }
    }

    pub(super) fn poll(&mut self, now: Duration, stacks: &mut Stacks) {
        // After an inconsistent read, the next poll tries again.
        let others = self.paced.call(now, PAUSE, || stacks.other_threads());
        let Some(Ok(others)) = others else { return };
        self.numbers.learn(others.iter().map(|other| other.thread));
        let others: BTreeMap<Pid, OtherThread> = others
            .into_iter()
            .filter_map(|other| Some((self.numbers.ours(other.thread)?, other)))
            .collect();
        self.threads.retain(|number, _| others.contains_key(number));
        for (number, other) in &others {
            self.poll_thread(now, *number, other);
        }
    }

    fn poll_thread(&mut self, now: Duration, number: Pid, other: &OtherThread) {
        if !other.loads || self.threads.len() >= MAX_THREADS {
            return;
        }
        if !self.threads.contains_key(&number) {
            let Ok(view) = ThreadView::open(&self.proc_root, self.process, number) else {
                return;
            };
            let new = LoaderThread {
                view,
                loads: false,
                seen: WorkerSeen::default(),
            };
            self.threads.insert(number, new);
        }
        let Some(thread) = self.threads.get_mut(&number) else {
            return;
        };
        let Ok(poll) = thread.view.poll() else {
            self.threads.remove(&number);
            return;
        };
        let seen = &mut thread.seen;
        match &other.does {
            Does::Waits => return,
            Does::Idle => count(&mut seen.tally, poll.blocked, true),
            Does::Works { function, model } => {
                thread.loads = true;
                count(&mut seen.tally, poll.blocked, false);
                count_model(&mut seen.tally, *model);
                if let Some(function) = function {
                    count_activity(&mut seen.activity, function.clone());
                }
            }
        }
        seen.polls.record(now, seen.tally.now, SLOTS);
    }

    /// Returns our number of the thread that its process numbers `own`.
    pub(super) fn ours(&mut self, own: Pid) -> Option<Pid> {
        self.numbers.learn([own]);
        self.numbers.ours(own)
    }

    /// Returns the threads that were seen to load.
    pub(super) fn seen(&self) -> BTreeMap<Pid, WorkerSeen> {
        let threads = self.threads.iter().filter(|(_, thread)| thread.loads);
        threads
            .map(|(number, thread)| (*number, thread.seen.clone()))
            .collect()
    }
}
