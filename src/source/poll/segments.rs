//! The shared memory that a trainer holds, by loader: which batches of its workers it has taken.
//!
//! Decides when to poll; does not interpret the names of segments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::WatchedLoader;
use super::paced::InVain;
use crate::source::shared_memory::SegmentClock;

/// Shortest time between two polls: after a wait, when the trainer holds the batch that it waited for, and otherwise.
pub(super) const MIN_INTERVAL_AFTER_WAIT: Duration = Duration::from_millis(100);
pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Segments {
    descriptors: PathBuf,
    /// Keyed by loader.
    pub(super) clocks: BTreeMap<u64, SegmentClock>,
    polled: Duration,
    /// Batches may come by a pipe, without any segment.
    in_vain: InVain,
}

impl Segments {
    /// Creates the reader. `process`: the process's folder below a proc root.
    pub(super) fn of(process: &Path) -> Self {
        Self {
            descriptors: process.join("fd"),
            clocks: BTreeMap::new(),
            polled: Duration::ZERO,
            in_vain: InVain::default(),
        }
    }

    pub(super) fn follow(&mut self, loaders: &[WatchedLoader]) {
        self.clocks
            .retain(|id, _| loaders.iter().any(|loader| loader.id == *id));
        for loader in loaders {
            let clock = self.clocks.entry(loader.id).or_default();
            clock.follow(loader.workers.iter().map(|worker| worker.pid));
        }
    }

    /// Reads which segments the trainer holds, if the last poll was at least `pause` ago; seldom if none are found.
    pub(super) fn poll(&mut self, now: Duration, pause: Duration) {
        let pause = self.in_vain.pause(pause);
        if self.clocks.is_empty() || now.saturating_sub(self.polled) < pause {
            return;
        }
        self.polled = now;
        let entries = std::fs::read_dir(&self.descriptors)
            .into_iter()
            .flatten()
            .flatten();
        let targets: Vec<PathBuf> = entries
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .collect();
        for clock in self.clocks.values_mut() {
            clock.poll(targets.iter().map(PathBuf::as_path));
        }
        let found = self.clocks.values().any(SegmentClock::has_any);
        self.in_vain.record(found);
    }
}
