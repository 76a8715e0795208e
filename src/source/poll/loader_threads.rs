//! The threads of a trainer that load what its main thread takes, polled now and then.
//!
//! Knows nothing of queues: which of the threads load is read from their stacks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::thread_numbers::ThreadNumbers;
use super::thread_view::ThreadView;
use super::worker_view::count;
use super::{SLOTS, WorkerSeen, count_activity};
use crate::source::clock::thread_cpu;
use crate::source::python::{Does, OtherThread, Stacks};
use crate::units::Pid;

/// Between two polls at all of them, at least.
const PAUSE: Duration = Duration::from_millis(200);
/// And this many times as long as such a poll takes: a job may have thousands of threads.
const REST: u32 = 250;
/// Threads that are polled, at most.
const MOST: usize = 256;

#[derive(Debug)]
pub(super) struct LoaderThreads {
    proc_root: PathBuf,
    process: Pid,
    numbers: ThreadNumbers,
    /// When the next poll is due.
    due: Duration,
    threads: BTreeMap<Pid, LoaderThread>,
}

#[derive(Debug)]
struct LoaderThread {
    view: ThreadView,
    /// It was seen to load: one of a pool may work for something else.
    loads: bool,
    seen: WorkerSeen,
}

impl LoaderThreads {
    pub(super) fn new(proc_root: PathBuf, process: Pid) -> Self {
        Self {
            numbers: ThreadNumbers::of(&proc_root, process),
            proc_root,
            process,
            due: Duration::ZERO,
            threads: BTreeMap::new(),
        }
    }

    pub(super) fn poll(&mut self, now: Duration, stacks: &mut Stacks) {
        if now < self.due {
            return;
        }
        let before = thread_cpu();
        self.poll_all(now, stacks);
        let took = thread_cpu().saturating_sub(before);
        self.due = now + PAUSE.max(took.saturating_mul(REST));
    }

    fn poll_all(&mut self, now: Duration, stacks: &mut Stacks) {
        // Torn: the next poll tells.
        let Ok(others) = stacks.other_threads() else {
            return;
        };
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
        if !other.loads || self.threads.len() >= MOST {
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
            Does::Works(function) => {
                thread.loads = true;
                count(&mut seen.tally, poll.blocked, false);
                if let Some(function) = function {
                    count_activity(&mut seen.activity, function.clone());
                }
            }
        }
        seen.polls.see(now, seen.tally.now, SLOTS);
    }

    /// Our number of a thread that its process calls `own`.
    pub(super) fn ours(&mut self, own: Pid) -> Option<Pid> {
        self.numbers.learn([own]);
        self.numbers.ours(own)
    }

    /// Those that were seen to load.
    pub(super) fn seen(&self) -> BTreeMap<Pid, WorkerSeen> {
        let threads = self.threads.iter().filter(|(_, thread)| thread.loads);
        threads
            .map(|(number, thread)| (*number, thread.seen.clone()))
            .collect()
    }
}
