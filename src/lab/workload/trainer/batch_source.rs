//! The source of the trainer's batches: the loader, or a few of its batches that are reused, to measure training as if
//! loading took no time.

use crate::error::Hinted;
use crate::lab::workload::message::BatchMessage;
use crate::lab::workload::settings::JobSettings;
use crate::lab::workload::worker_pool::WorkerPool;
use crate::probe::Cached;

#[derive(Debug)]
pub(super) struct BatchSource {
    loader: WorkerPool,
    /// The batch that was fetched, until it is released.
    current: Option<Current>,
    fetched: u64,
    cache: Option<Cached>,
    cached: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
enum Current {
    Loaded(BatchMessage),
    Cached(usize),
}

impl BatchSource {
    pub(super) fn start(settings: &JobSettings) -> Result<Self, Hinted> {
        Ok(Self {
            loader: WorkerPool::start(settings)?,
            current: None,
            fetched: 0,
            cache: settings.cache,
            cached: vec![],
        })
    }

    /// Returns how many batches can be fetched without waiting.
    pub(super) fn ready(&self) -> u32 {
        self.loader.ready()
    }

    /// Fetches the next batch. If it is not ready, waits for it if `wait` is set, and otherwise returns `false`.
    pub(super) fn fetch(&mut self, wait: bool) -> Result<bool, Hinted> {
        if self.fetch_cached() {
            return Ok(true);
        }
        let Some(ready) = self.loader.next(wait)? else {
            return Ok(false);
        };
        self.fetched += 1;
        self.current = Some(Current::Loaded(ready));
        // The cache is filled with the last batches before loading stops.
        let kept = self.cache.filter(|cache| {
            self.fetched <= cache.from && self.fetched + u64::from(cache.batches) > cache.from
        });
        if kept.is_some() {
            self.cached.push(self.loader.batch(ready).to_vec());
        }
        Ok(true)
    }

    /// Returns the bytes of the batch that was fetched; empty once it is released.
    pub(super) fn batch(&self) -> &[u8] {
        match self.current {
            Some(Current::Loaded(ready)) => self.loader.batch(ready),
            Some(Current::Cached(at)) => self.cached.get(at).map_or(&[], Vec::as_slice),
            None => &[],
        }
    }

    /// Releases the batch, which is on the device now: its slot can be reused.
    pub(super) fn release(&mut self) {
        if let Some(Current::Loaded(ready)) = self.current.take() {
            self.loader.release(ready);
        }
    }

    fn fetch_cached(&mut self) -> bool {
        let enough = self.cache.is_some_and(|cache| self.fetched >= cache.from);
        if !enough || self.cached.is_empty() {
            return false;
        }
        let turn = self.fetched % self.cached.len() as u64;
        self.fetched += 1;
        // It is less than the length of a vector, so it fits.
        self.current = usize::try_from(turn).ok().map(Current::Cached);
        true
    }
}
