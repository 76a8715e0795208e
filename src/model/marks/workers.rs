//! Detects single workers that end or are replaced while the others of their loader keep running.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Mark, MarkKind, Marks};
use crate::sample::{LoaderSample, RankSample};
use crate::units::ProcessKey;

/// How long the others must outlive a worker for it to count as having ended alone: at the end of an epoch all workers
/// end, shortly after each other.
const MIN_OUTLIVED: Duration = Duration::from_millis(1500);

#[derive(Debug, Clone, Default)]
pub(super) struct Workers {
    /// Living workers with their ids, by rank and loader.
    living: BTreeMap<(ProcessKey, u64), BTreeMap<ProcessKey, u32>>,
    gone: Vec<EndedWorker>,
}

/// A worker that has ended.
#[derive(Debug, Clone)]
struct EndedWorker {
    loader: (ProcessKey, u64),
    worker: ProcessKey,
    id: u32,
    since: Duration,
    /// The workers that were alive then and still are.
    others: Vec<ProcessKey>,
}

fn living(loader: &LoaderSample) -> BTreeMap<ProcessKey, u32> {
    let alive = |state: Option<char>| state.is_some_and(|state| !matches!(state, 'Z' | 'X'));
    let workers = loader.workers.iter();
    let workers = workers.filter(|worker| alive(worker.process.state));
    workers.map(|worker| (worker.key, worker.id)).collect()
}

impl Workers {
    pub(super) fn apply(&mut self, at: Duration, rank: &RankSample, marks: &mut Marks) {
        for loader in &rank.loaders {
            let place = (rank.key, loader.id);
            let now = living(loader);
            let before = self.living.insert(place, now.clone()).unwrap_or_default();
            let others: Vec<_> = before
                .keys()
                .filter(|key| now.contains_key(key))
                .copied()
                .collect();
            let gone = before.iter().filter(|(key, _)| !now.contains_key(key));
            self.gone.extend(
                gone.filter(|_| !others.is_empty())
                    .map(|(key, id)| EndedWorker {
                        loader: place,
                        worker: *key,
                        id: *id,
                        since: at,
                        others: others.clone(),
                    }),
            );
        }
        let there = |loader: &LoaderSample| (rank.key, loader.id);
        self.living.retain(|place, _| {
            place.0 != rank.key || rank.loaders.iter().any(|loader| there(loader) == *place)
        });
        let living = &self.living;
        self.gone.retain_mut(|gone| {
            let Some(now) = living.get(&gone.loader) else {
                return false;
            };
            gone.others.retain(|other| now.contains_key(other));
            let outlived = at.saturating_sub(gone.since) >= MIN_OUTLIVED;
            if outlived && !gone.others.is_empty() {
                marks.add(Mark::new(gone.since, MarkKind::Worker, words(gone, now)));
            }
            !outlived && !gone.others.is_empty()
        });
    }

    /// Returns the words about workers that ended shortly before the job did.
    pub(super) fn ended_before_the_job(&self) -> String {
        self.gone.first().map_or_else(String::new, |gone| {
            format!(
                "; worker {} (pid {}) ended before it",
                gone.id, gone.worker.pid
            )
        })
    }
}

fn words(gone: &EndedWorker, now: &BTreeMap<ProcessKey, u32>) -> String {
    let (id, pid) = (gone.id, gone.worker.pid);
    let replacement = now
        .iter()
        .find(|(key, other)| **other == id && !gone.others.contains(key));
    match replacement {
        Some((key, _)) => format!("worker {id} was restarted: pid {pid}, now {}", key.pid),
        None => format!(
            "worker {id} (pid {pid}) ended, {} others are still running",
            gone.others.len()
        ),
    }
}
