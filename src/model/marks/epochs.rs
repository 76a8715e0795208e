//! Detects epochs and validations: by the iterators' own counters if they are read, else by workers that are all
//! replaced, and by which loader delivers.
//!
//! The dataset that most batches came from is taken to be the training data.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Mark, MarkKind, Marks};
use crate::model::datasets;
use crate::sample::{LoaderSample, RankSample};
use crate::units::ProcessKey;

/// Batches of a pass, and time since its start, after which the pass is classified.
const MIN_BATCHES: u64 = 5;
const MIN_TIME: Duration = Duration::from_secs(3);
/// Maximum batches that a pass may have had at its first poll to count as seen from its start.
const FIRST_FEW: u64 = 3;
/// Time since passes were first seen, after which another dataset counts as new rather than as noticed late.
const SETTLED: Duration = Duration::from_secs(2);
/// Batches that another loader delivers, without one from the training loader, before that counts as a validation.
const WITHOUT_TRAINING: u64 = 2;

#[derive(Debug, Clone, Default)]
pub(super) struct Epochs {
    /// A pass that is not classified yet: dataset, start, and batches of the dataset before it.
    pending: Option<(u64, Duration, u64)>,
    /// When passes were first seen.
    since: Option<Duration>,
    /// By loader: the workers that it had last.
    workers: BTreeMap<u64, BTreeSet<ProcessKey>>,
    /// By loader: batches since the training loader last delivered one, and since when.
    others: BTreeMap<u64, (u64, Duration)>,
    validating: bool,
}

impl Epochs {
    pub(super) fn apply(
        &mut self,
        at: Duration,
        older: Option<&RankSample>,
        newer: &RankSample,
        marks: &mut Marks,
    ) {
        if newer.passes.is_empty() {
            self.by_workers(at, older, newer, marks);
            if let Some(older) = older {
                self.by_batches(at, older, newer, marks);
            }
        } else {
            self.by_passes(at, older, newer, marks);
        }
    }

    fn by_passes(
        &mut self,
        at: Duration,
        older: Option<&RankSample>,
        newer: &RankSample,
        marks: &mut Marks,
    ) {
        let before = |dataset: u64| {
            let known = older.and_then(|older| older.passes.iter().find(|p| p.dataset == dataset));
            known.copied()
        };
        let settled = at.saturating_sub(*self.since.get_or_insert(at)) >= SETTLED;
        for passes in &newer.passes {
            let begun_at = if let Some(before) = before(passes.dataset) {
                (passes.begun > before.begun).then_some(before.batches)
            } else {
                let begins = older.is_some() && passes.batches <= FIRST_FEW;
                (begins || settled).then_some(0)
            };
            if let Some(batches) = begun_at {
                self.settle(newer, marks);
                self.pending = Some((passes.dataset, at, batches));
            }
        }
        let decided = self.pending.is_some_and(|(dataset, since, before)| {
            let passes = newer.passes.iter().find(|p| p.dataset == dataset);
            passes.is_none_or(|passes| passes.batches - before.min(passes.batches) >= MIN_BATCHES)
                || at.saturating_sub(since) >= MIN_TIME
        });
        if decided {
            self.settle(newer, marks);
        }
    }

    /// Classifies the pass that started last, if that is possible yet, and adds its mark.
    fn settle(&mut self, rank: &RankSample, marks: &mut Marks) {
        let Some((dataset, at, _)) = self.pending else {
            return;
        };
        let mut validations = datasets::validations(&rank.passes);
        let training = datasets::training(&rank.passes);
        let (kind, words) = if training.is_some_and(|passes| passes.dataset == dataset) {
            let words = "epoch: the main loader's iterator started again at 0";
            (MarkKind::Epoch, words)
        } else if validations.any(|passes| passes.dataset == dataset) {
            let words = "validation: the trainer reads other data than in training";
            (MarkKind::Validation, words)
        } else {
            return;
        };
        self.pending = None;
        marks.add(Mark::new(at, kind, words));
    }

    /// Adds a mark if all workers of a loader were replaced.
    fn by_workers(
        &mut self,
        at: Duration,
        older: Option<&RankSample>,
        newer: &RankSample,
        marks: &mut Marks,
    ) {
        let keys = |loader: &LoaderSample| -> BTreeSet<ProcessKey> {
            loader.workers.iter().map(|worker| worker.key).collect()
        };
        if self.workers.is_empty() {
            let there = older.into_iter().flat_map(|older| &older.loaders);
            let there = there.map(|loader| (loader.id, keys(loader)));
            self.workers
                .extend(there.filter(|(_, workers)| !workers.is_empty()));
        }
        for loader in &newer.loaders {
            let now = keys(loader);
            if now.is_empty() {
                continue;
            }
            let count = now.len();
            let first = self.workers.is_empty() && older.is_some();
            let before = self.workers.insert(loader.id, now);
            let now = &self.workers[&loader.id];
            let words = match before {
                Some(before) if before.is_disjoint(now) => match count {
                    1 => "epoch: the loader's worker was restarted".to_owned(),
                    _ => format!("epoch: all {count} workers of the loader were restarted"),
                },
                None if first && count == 1 => "epoch: 1 worker was started".to_owned(),
                None if first => format!("epoch: {count} workers were started"),
                _ => continue,
            };
            marks.add(Mark::new(at, MarkKind::Epoch, words));
        }
    }

    /// Adds a mark if another loader delivers while the one that delivered most is idle.
    fn by_batches(
        &mut self,
        at: Duration,
        older: &RankSample,
        newer: &RankSample,
        marks: &mut Marks,
    ) {
        let count = |loader: &LoaderSample| loader.batches.map(|batches| batches.count);
        let known = newer
            .loaders
            .iter()
            .filter(|loader| loader.batches.is_some() && !loader.nested);
        let Some(training) = known.clone().max_by_key(|loader| count(loader)) else {
            return;
        };
        let grown = |loader: &LoaderSample| {
            let before = older.loader(loader.id).map_or(Some(0), count);
            Some(count(loader)?.saturating_sub(before?))
        };
        if grown(training) != Some(0) {
            self.others.clear();
            self.validating = false;
            return;
        }
        for loader in known.filter(|loader| loader.id != training.id) {
            let Some(more) = grown(loader).filter(|more| *more > 0) else {
                continue;
            };
            let (batches, since) = self.others.entry(loader.id).or_insert((0, at));
            *batches += more;
            if *batches >= WITHOUT_TRAINING && !self.validating {
                self.validating = true;
                let words = "validation: another loader delivers while the main loader is idle";
                marks.add(Mark::new(*since, MarkKind::Validation, words));
            }
        }
    }
}
