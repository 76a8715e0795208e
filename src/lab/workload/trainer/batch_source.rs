//! Where the trainer's batches come from: the loader, or a few of its batches again and again, to see what
//! training would be with loading for free.

use crate::lab::workload::error::WorkloadError;
use crate::lab::workload::message::ReadyBatch;
use crate::lab::workload::settings::JobSettings;
use crate::lab::workload::worker_pool::WorkerPool;
use crate::launch::Cache;

#[derive(Debug)]
pub(super) struct BatchSource {
    loader: WorkerPool,
    /// The batch that was fetched, while it is not released.
    current: Option<Current>,
    fetched: u64,
    cache: Option<Cache>,
    cached: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
enum Current {
    Loaded(ReadyBatch),
    Cached(usize),
}

impl BatchSource {
    pub(super) fn start(settings: &JobSettings) -> Result<Self, WorkloadError> {
        Ok(Self {
            loader: WorkerPool::start(settings)?,
            current: None,
            fetched: 0,
            cache: settings.cache,
            cached: vec![],
        })
    }

    /// Batches that can be fetched without waiting.
    pub(super) fn ready(&self) -> u32 {
        self.loader.ready()
    }

    /// Waits for the next batch.
    pub(super) fn fetch(&mut self) -> Result<(), WorkloadError> {
        if !self.fetch_cached() {
            let ready = self.loader.next()?;
            self.fetched_from_loader(ready);
        }
        Ok(())
    }

    /// Fetches the next batch if that needs no waiting, and says whether it did.
    pub(super) fn fetch_if_ready(&mut self) -> Result<bool, WorkloadError> {
        if self.fetch_cached() {
            return Ok(true);
        }
        let ready = self.loader.next_if_ready()?;
        if let Some(ready) = ready {
            self.fetched_from_loader(ready);
        }
        Ok(ready.is_some())
    }

    /// The bytes of the batch that was fetched; nothing once it is released.
    pub(super) fn batch(&self) -> &[u8] {
        match self.current {
            Some(Current::Loaded(ready)) => self.loader.batch(ready),
            Some(Current::Cached(at)) => self.cached.get(at).map_or(&[], Vec::as_slice),
            None => &[],
        }
    }

    /// The batch is on the device: its place can be used again.
    pub(super) fn release(&mut self) {
        if let Some(Current::Loaded(ready)) = self.current.take() {
            self.loader.release(ready);
        }
    }

    fn fetch_cached(&mut self) -> bool {
        let enough = self.cache.is_some_and(|cache| self.fetched >= cache.after);
        if !enough || self.cached.is_empty() {
            return false;
        }
        let turn = self.fetched % self.cached.len() as u64;
        self.fetched += 1;
        // Below the length of a vector, so it fits.
        self.current = usize::try_from(turn).ok().map(Current::Cached);
        true
    }

    fn fetched_from_loader(&mut self, ready: ReadyBatch) {
        self.fetched += 1;
        self.current = Some(Current::Loaded(ready));
        // The newest before the end of loading are kept.
        let kept = self.cache.filter(|cache| {
            self.fetched <= cache.after && self.fetched + u64::from(cache.batches) > cache.after
        });
        if kept.is_some() {
            self.cached.push(self.loader.batch(ready).to_vec());
        }
    }
}
