//! The past in fixed memory: one ring per figure, one value per interval, gaps kept as gaps.
//!
//! Knows nothing of how a figure is measured or drawn.

use std::collections::{BTreeMap, VecDeque};

use crate::model::rates::{RankRates, Rates};
use crate::sample::WorkerNow;
use crate::units::{ProcessKey, Share};

/// Intervals that the history keeps.
pub const HISTORY: usize = 3600;

/// Intervals after which a place without a worker is forgotten.
const FORGET: usize = 300;

/// One ring per figure that the screen draws over time.
#[derive(Debug, Clone)]
pub struct History {
    /// Of the rank shown first: share of the interval spent waiting for data.
    pub wait: Ring<Share>,
    /// Mean ready batches of its busiest loader, as a share of the capacity.
    pub queue: Ring<Share>,
    /// Mean ready batches of its busiest loader.
    pub ready: Ring<f64>,
    /// Utilisation in percent, by position in `Sample::gpus`.
    pub gpu_util: Vec<Ring<f64>>,
    /// Bytes read per second by the job from block devices.
    pub disk_read: Ring<f64>,
    /// By worker place (rank index, loader index, worker id), so that a re-made worker keeps it.
    pub workers: BTreeMap<WorkerPlace, Ring<WorkerNow>>,
}

/// Where a worker stands on screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerPlace {
    pub rank: ProcessKey,
    pub loader: u64,
    pub id: u32,
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    pub fn new() -> Self {
        Self {
            wait: Ring::new(HISTORY),
            queue: Ring::new(HISTORY),
            ready: Ring::new(HISTORY),
            gpu_util: Vec::new(),
            disk_read: Ring::new(HISTORY),
            workers: BTreeMap::new(),
        }
    }

    /// Adds one interval; without rates it is a gap in every ring.
    pub fn push(&mut self, rates: Option<&Rates>) {
        let job = rates.and_then(|rates| rates.job.as_ref());
        let rank = job.and_then(|job| job.ranks.first());
        let queue = rank
            .and_then(RankRates::busiest_loader)
            .and_then(|loader| loader.queue);
        self.wait
            .push(rank.and_then(|rank| rank.wait).map(|wait| wait.share));
        self.queue.push(queue.and_then(|queue| queue.occupancy));
        self.ready.push(queue.map(|queue| queue.mean_ready));
        self.disk_read
            .push(job.and_then(|job| job.read).map(|read| read.0));
        let gpus = rates.map_or(&[][..], |rates| &rates.gpus);
        if self.gpu_util.len() < gpus.len() {
            self.gpu_util.resize(gpus.len(), Ring::new(HISTORY));
        }
        for (position, ring) in self.gpu_util.iter_mut().enumerate() {
            ring.push(gpus.get(position).and_then(|gpu| gpu.util_percent));
        }
        self.push_workers(rates);
    }

    fn push_workers(&mut self, rates: Option<&Rates>) {
        let ranks = rates
            .and_then(|rates| rates.job.as_ref())
            .map_or(&[][..], |job| &job.ranks);
        let mut now = BTreeMap::new();
        for rank in ranks {
            for loader in &rank.loaders {
                for worker in &loader.workers {
                    // Of two at one place, the one that started last is there now.
                    let place = WorkerPlace {
                        rank: rank.key,
                        loader: loader.id,
                        id: worker.id,
                    };
                    now.insert(place, worker.now);
                }
            }
        }
        for place in now.keys() {
            self.workers
                .entry(*place)
                .or_insert_with(|| Ring::new(HISTORY));
        }
        self.workers.retain(|place, ring| {
            ring.push(now.get(place).copied());
            ring.len() < FORGET || ring.last(FORGET).any(|now| now.is_some())
        });
    }

    /// Forgets what was the job's; the machine's past stays.
    pub(crate) fn forget_job(&mut self) {
        *self = Self {
            gpu_util: std::mem::take(&mut self.gpu_util),
            ..Self::new()
        };
    }
}

/// The newest `capacity` values, oldest first. `None` is an interval without a reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring<T> {
    values: VecDeque<Option<T>>,
    capacity: usize,
}

impl<T: Copy> Ring<T> {
    pub fn new(capacity: usize) -> Self {
        Self {
            values: VecDeque::with_capacity(capacity),
            capacity,
        }
    }

    pub fn push(&mut self, value: Option<T>) {
        if self.values.len() == self.capacity {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The newest `count` values, oldest first.
    pub fn last(&self, count: usize) -> impl ExactSizeIterator<Item = Option<T>> + '_ {
        let skip = self.values.len().saturating_sub(count);
        self.values.range(skip..).copied()
    }
}
