//! Polls, many times a second: what each trainer's main thread and each worker is blocked in, and how
//! full the queues are. A thread of its own counts; the sampler takes the counts along.
//!
//! Knows who is to be polled, not what the counts will mean. Reads only, holds nothing of the job's
//! open but files of `/proc`, and polls less often where its budget is short.

mod beats;
mod beyond;
mod blocked;
mod fed;
mod iterators;
mod loader_threads;
mod loads;
mod main_view;
mod object_queue;
mod poller;
mod python_view;
mod queue;
mod seen;
mod segments;
mod semaphore;
mod thread_numbers;
mod thread_view;
mod trainer_thread;
mod worker_view;

use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::source::clock::Clock;
pub use iterators::MAIN_LOADER;
use poller::Poller;
pub use seen::{
    IteratorSeen, MainSeen, PollTargets, QueueSeen, Seen, WatchedLoader, WatchedRank, WorkerSeen,
};
use seen::{SLOTS, count_activity, lock};

/// The running poller; dropping it ends it.
#[derive(Debug)]
pub struct PollTrace {
    targets: Arc<Mutex<Option<PollTargets>>>,
    seen: Arc<Mutex<Seen>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PollTrace {
    /// Polls nothing yet.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn start(proc_root: &Path, clock: Clock) -> std::io::Result<Self> {
        let targets = Arc::new(Mutex::new(None));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (stop, stopped) = mpsc::channel();
        let poller = Poller::new(proc_root, clock, Arc::clone(&targets), Arc::clone(&seen));
        let thread = std::thread::Builder::new()
            .name("poller".into())
            .spawn(move || poller.run(&stopped))?;
        Ok(Self {
            targets,
            seen,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// From now on, poll at these; counts of those that stay go on.
    pub fn watch(&self, targets: PollTargets) {
        *lock(&self.targets) = Some(targets);
    }

    /// Rounds that began a whole period late, so far.
    pub fn late(&self) -> u64 {
        lock(&self.seen).late
    }

    /// The counts so far; waits that ended are handed over once.
    pub fn take(&self) -> Seen {
        let mut seen = lock(&self.seen);
        let copy = seen.clone();
        for main in seen.mains.values_mut() {
            main.waits.newest.clear();
        }
        copy
    }
}

impl Drop for PollTrace {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}
