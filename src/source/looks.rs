//! Looks, many times a second: what each trainer's main thread and each worker is blocked in, and how
//! full the queues are. A thread of its own counts; the sampler takes the counts along.
//!
//! Knows who is to be looked at, not what the counts will mean. Reads only, holds nothing of the job's
//! open but files of `/proc`, and looks less often where its budget is short.

mod blocked;
mod iterators;
mod loads;
mod looker;
mod main_view;
mod python_view;
mod queue;
mod seen;
mod semaphore;
mod thread_view;
mod worker_view;

use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::source::clock::Clock;
pub use iterators::{IteratorSeen, MAIN_LOADER};
use looker::Looker;
use seen::count_activity;
pub use seen::{MainSeen, Roster, Seen, WatchedLoader, WatchedRank, WorkerSeen};

/// The running looking thread; dropping it ends it.
#[derive(Debug)]
pub struct Looks {
    roster: Arc<Mutex<Option<Roster>>>,
    seen: Arc<Mutex<Seen>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Looks {
    /// Looks at nobody yet.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn start(proc_root: &Path, clock: Clock) -> std::io::Result<Self> {
        let roster = Arc::new(Mutex::new(None));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (stop, stopped) = mpsc::channel();
        let looker = Looker::new(proc_root, clock, Arc::clone(&roster), Arc::clone(&seen));
        let thread = std::thread::Builder::new()
            .name("looks".into())
            .spawn(move || looker.run(&stopped))?;
        Ok(Self {
            roster,
            seen,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// From now on, look at these; counts of those that stay go on.
    pub fn watch(&self, roster: Roster) {
        *lock(&self.roster) = Some(roster);
    }

    /// Rounds that began a whole period late, so far.
    pub fn late(&self) -> u64 {
        lock(&self.seen).late
    }

    /// The counts so far; waits and loads that ended are handed over once.
    pub fn take(&self) -> Seen {
        let mut seen = lock(&self.seen);
        let copy = seen.clone();
        for main in seen.mains.values_mut() {
            main.waits.clear();
        }
        for loads in seen
            .workers
            .values_mut()
            .filter_map(|worker| worker.loads.as_mut())
        {
            loads.ended.clear();
        }
        copy
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Counters stay usable where a thread panicked while it held them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
