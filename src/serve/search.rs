//! Finds the jobs to watch, including those that start later, and runs a sampler for each.
//!
//! Does not depend on how their samples are used.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::board::Board;
use crate::background::OwnedThread;
use crate::error::Hinted;
use crate::job::{Candidate, NoTarget, Target};
use crate::sample::Sample;
use crate::source::discovery::Discovery;
use crate::source::sampler::{Common, Options, Sampler};
use crate::units::{Pid, ProcessKey};

/// Pause between two searches of the whole machine.
const PAUSE: Duration = Duration::from_secs(2);

struct Search {
    options: Options,
    common: Common,
    all: bool,
    board: Arc<Board>,
    discovery: Discovery,
    watched: BTreeMap<ProcessKey, JobSampler>,
}

struct JobSampler {
    ranks: Vec<ProcessKey>,
    _sampler: Sampler,
}

/// Watches the jobs that match the target of `options`: one at a time, or `all`. Dropping the returned thread stops the
/// search and all samplers.
///
/// # Errors
/// Returns an error if no thread can be started.
pub(crate) fn search(
    options: Options,
    common: Common,
    all: bool,
    board: Arc<Board>,
) -> Result<OwnedThread, Hinted> {
    board.search_begins();
    let mut round = Search {
        discovery: Discovery::new(&options.proc_root),
        options,
        common,
        all,
        board,
        watched: BTreeMap::new(),
    };
    let thread = OwnedThread::start("search", move |stopped| {
        loop {
            round.search();
            let waited = stopped.recv_timeout(PAUSE);
            if !matches!(waited, Err(mpsc::RecvTimeoutError::Timeout)) {
                return;
            }
        }
    });
    thread.map_err(|error| Hinted::no_thread(&error))
}

impl Drop for Search {
    fn drop(&mut self) {
        // Stop the samplers first.
        self.watched.clear();
        self.board.search_ends();
    }
}

impl Search {
    fn search(&mut self) {
        self.watched.retain(|key, _| self.board.is_watched(*key));
        if self.all || self.watched.is_empty() {
            let found = match self.discovery.find(&self.options.target) {
                Ok(job) => job.into_iter().collect(),
                Err(NoTarget::Several(jobs)) if self.all => jobs,
                // No job matches at present.
                Err(_) => Vec::new(),
            };
            for job in found {
                self.take(&job);
            }
        }
        self.board.searched();
    }

    /// Watches a job if it is new or has ranks that it did not have before.
    fn take(&mut self, job: &Candidate) {
        let Some(first) = job.ranks.first().copied() else {
            return;
        };
        let shares =
            |watched: &JobSampler| job.ranks.iter().any(|rank| watched.ranks.contains(rank));
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
                let watched = JobSampler {
                    ranks,
                    _sampler: sampler,
                };
                self.watched.insert(first, watched);
            }
            // The next search will try again.
            Err(error) => {
                tracing::warn!(pid = %first.pid, "{error}");
                self.board.forget(first);
            }
        }
    }
}

/// Watches the machine itself, without a job.
///
/// # Errors
/// Returns an error if no thread can be started.
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

/// Returns a sampler for this trainer's job only: after its end it does not look for another.
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
    Sampler::start_with(common.clone(), options, job, take)
        .map_err(|error| Hinted::no_thread(&error))
}
