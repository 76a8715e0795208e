//! Finds the jobs to watch, those that begin later too, and keeps a sampler for each.
//!
//! Knows nothing of what is made of their samples.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::board::Board;
use crate::error::Hinted;
use crate::job::{Candidate, NoTarget, Target};
use crate::sample::Sample;
use crate::source::discovery::Discovery;
use crate::source::sampler::{Common, Options, Sampler};
use crate::units::{Pid, ProcessKey};

/// Between two searches of the whole machine.
const PAUSE: Duration = Duration::from_secs(2);

/// Watches until it is dropped.
#[derive(Debug)]
pub(crate) struct Search {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Round {
    options: Options,
    common: Common,
    all: bool,
    board: Arc<Board>,
    discovery: Discovery,
    watched: BTreeMap<ProcessKey, Watched>,
}

struct Watched {
    ranks: Vec<ProcessKey>,
    _sampler: Sampler,
}

impl Search {
    /// Watches the jobs that the target of `options` names: one at a time, or `all`.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub(crate) fn start(
        options: Options,
        common: Common,
        all: bool,
        board: Arc<Board>,
    ) -> Result<Self, Hinted> {
        let (stop, stopped) = mpsc::channel();
        let mut round = Round {
            discovery: Discovery::new(&options.proc_root),
            options,
            common,
            all,
            board,
            watched: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("search".into());
        let thread = thread.spawn(move || {
            loop {
                round.search();
                let waited = stopped.recv_timeout(PAUSE);
                if !matches!(waited, Err(mpsc::RecvTimeoutError::Timeout)) {
                    return;
                }
            }
        });
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.map_err(|error| Hinted::no_thread(&error))?),
        })
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Round {
    /// What nobody watches any more is not to be read.
    fn drop(&mut self) {
        for key in self.watched.keys() {
            self.board.forget(*key);
        }
    }
}

impl Round {
    fn search(&mut self) {
        self.watched.retain(|key, _| self.board.is_watched(*key));
        if self.all || self.watched.is_empty() {
            let found = match self.discovery.find(&self.options.target) {
                Ok(job) => job.into_iter().collect(),
                Err(NoTarget::Several(jobs)) if self.all => jobs,
                // Nothing matches now.
                Err(_) => Vec::new(),
            };
            for job in found {
                self.take(&job);
            }
        }
        self.board.searched();
    }

    /// Watches a job that is new, or that has more ranks than before.
    fn take(&mut self, job: &Candidate) {
        let Some(first) = job.ranks.first().copied() else {
            return;
        };
        let shares = |watched: &Watched| job.ranks.iter().any(|rank| watched.ranks.contains(rank));
        let before = self.watched.iter().find(|(_, watched)| shares(watched));
        if let Some((key, before)) = before.map(|(key, watched)| (*key, watched)) {
            if job.ranks.iter().all(|rank| before.ranks.contains(rank)) {
                return;
            }
            self.watched.remove(&key);
            if key != first {
                self.board.forget(key);
            }
        }
        self.board.begin(first);
        let board = Arc::clone(&self.board);
        let take = move |sample| board.job(first, sample);
        match sampler(
            &self.common,
            &self.options,
            first.pid,
            Some(job.clone()),
            take,
        ) {
            Ok(sampler) => {
                let ranks = job.ranks.clone();
                let watched = Watched {
                    ranks,
                    _sampler: sampler,
                };
                self.watched.insert(first, watched);
            }
            // The next search tries again.
            Err(error) => {
                tracing::warn!(pid = %first.pid, "{error}");
                self.board.forget(first);
            }
        }
    }
}

/// Watches the machine itself: no job, whoever runs.
///
/// # Errors
/// Where no thread can be started.
pub(super) fn machine(
    common: &Common,
    options: &Options,
    board: Arc<Board>,
) -> Result<Sampler, Hinted> {
    sampler(common, options, Pid(0), None, move |sample| {
        board.machine(sample);
        true
    })
}

/// Of this trainer's job alone: after its end no other is looked for.
fn sampler(
    common: &Common,
    options: &Options,
    trainer: Pid,
    job: Option<Candidate>,
    take: impl FnMut(Sample) -> bool + Send + 'static,
) -> Result<Sampler, Hinted> {
    let options = Options {
        target: Target::Launched(trainer),
        ..options.clone()
    };
    Sampler::beside(common.clone(), options, job, take).map_err(|error| Hinted::no_thread(&error))
}
