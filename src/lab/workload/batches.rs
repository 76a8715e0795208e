//! Makes batches: from files that are read, decoded and normalised, or with a set load time.
//!
//! Uses one process and one core. Does not depend on queues.

use super::clock::{nanoseconds, now, sleep_until};
use super::image::ImageLoader;
use super::load_time::LoadTime;
use super::settings::{JobSettings, Load};
use super::shuffle::Shuffle;
use crate::error::Hinted;
use crate::units::whole;

/// The source of batches.
#[derive(Debug)]
pub(super) enum BatchMaker {
    Images {
        loader: ImageLoader,
        order: Shuffle,
        batch_size: u64,
    },
    /// The bytes of every batch, and its load time.
    Time(Vec<u8>, LoadTime),
}

impl BatchMaker {
    /// Creates the source for worker number `worker`; the last worker may be slower than the others.
    pub(super) fn new(settings: &JobSettings, worker: u32) -> Self {
        let slower = if worker + 1 == settings.workers {
            settings.slow_worker
        } else {
            1.0
        };
        match settings.load {
            Load::Time(mean) => {
                let mean = mean.mul_f64(slower);
                let time = LoadTime::new(mean, settings.load_jitter, settings.seed);
                Self::Time(vec![0x3f; settings.batch_bytes()], time)
            }
            Load::Files { decodes } => {
                let dataset = settings.dataset.clone();
                let decodes = whole((f64::from(decodes) * slower).round());
                let decodes = u32::try_from(decodes).unwrap_or(u32::MAX);
                let (direct, side) = (settings.direct, settings.image_size);
                Self::Images {
                    order: Shuffle::new(dataset.images, settings.seed),
                    loader: ImageLoader::new(dataset, direct, decodes, side),
                    batch_size: u64::from(settings.batch_size),
                }
            }
        }
    }

    /// Makes batch number `batch` in the given memory.
    pub(super) fn make(&mut self, batch: u64, into: &mut [u8]) -> Result<(), Hinted> {
        match self {
            Self::Time(template, time) => {
                let due = now() + nanoseconds(time.of(batch));
                into.copy_from_slice(template);
                sleep_until(due);
            }
            Self::Images {
                loader,
                order,
                batch_size,
            } => {
                let first = batch * *batch_size;
                let images = bytemuck::cast_slice_mut(into);
                let each = images.len() / usize::try_from(*batch_size).unwrap_or(1).max(1);
                for (sample, image) in (first..).zip(images.chunks_exact_mut(each.max(1))) {
                    loader.load(order.image_at(sample), image)?;
                }
            }
        }
        Ok(())
    }
}
