//! Polls many times a second what each trainer's main thread and each worker is blocked in, and how full the queues
//! are. Counts in a thread of its own; the sampler takes the counts.
//!
//! Must not depend on what the counts mean. Only reads, keeps no files of the job open except those in `/proc`, and
//! polls less often if its budget is exceeded.

mod beats;
mod blocked;
mod datasets;
mod fed;
mod gil_wait;
mod iterators;
mod loader_threads;
mod loads;
mod main_view;
mod moves;
mod object_queue;
mod paced;
mod poller;
mod priority;
mod python_view;
mod queue;
mod seen;
mod segments;
mod semaphore;
mod thread_numbers;
mod thread_view;
mod tracked_iterator;
mod trainer_thread;
mod turns;
mod visible_waits;
mod waits;
mod waits_on;
mod worker_view;

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::background::{OwnedThread, lock};
use crate::source::clock::Clock;
pub(super) use blocked::only_waits;
pub use iterators::MAIN_LOADER;
use poller::Poller;
pub use seen::{
    IteratorSeen, MainSeen, PollTargets, QueueSeen, Seen, WatchedLoader, WatchedRank, WorkerSeen,
};
use seen::{SLOTS, count_activity};

/// The running poller. Dropping it stops it.
#[derive(Debug)]
pub struct PollerHandle {
    targets: Arc<Mutex<Option<PollTargets>>>,
    seen: Arc<Mutex<Seen>>,
    _thread: OwnedThread,
}

impl PollerHandle {
    /// Starts the thread. It polls nothing until [`Self::watch`].
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn start(proc_root: &Path, clock: Clock) -> std::io::Result<Self> {
        let targets = Arc::new(Mutex::new(None));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let poller = Poller::new(proc_root, clock, Arc::clone(&targets), Arc::clone(&seen));
        Ok(Self {
            targets,
            seen,
            _thread: OwnedThread::start("poller", move |stopped| poller.run(stopped))?,
        })
    }

    /// Sets what is polled from now on. Counts of targets that stay are kept.
    pub fn watch(&self, targets: PollTargets) {
        *lock(&self.targets) = Some(targets);
    }

    /// Returns the number of rounds so far that began a whole period late.
    pub fn late(&self) -> u64 {
        lock(&self.seen).late
    }

    /// Returns the counts so far. Each wait that ended is returned only once.
    pub fn take(&self) -> Seen {
        let mut seen = lock(&self.seen);
        let copy = seen.clone();
        for main in seen.mains.values_mut() {
            main.waits.newest.clear();
        }
        copy
    }
}
