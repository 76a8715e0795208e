//! One image from its file to the numbers that a model is trained on: read, decode, crop, normalise.
//!
//! Knows nothing of batches or of what asks for an image.

mod decode;
mod read;

pub use decode::Decoder;
pub use read::Reader;

use super::dataset::{Dataset, DatasetError};

/// What was done for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// The length of its file.
    pub read_bytes: u64,
}

/// Loads images of one data set; a worker has one and keeps its buffers.
#[derive(Debug)]
pub struct Loader {
    dataset: Dataset,
    reader: Reader,
    decoder: Decoder,
    decodes: u32,
    side: u32,
}

impl Loader {
    /// `direct` reads past the page cache. Each image is decoded and normalised `decodes` times; with 0 its
    /// file is only read, and the memory stays as it is. The middle `side` pixels are kept, at most all.
    pub fn new(dataset: Dataset, direct: bool, decodes: u32, side: u32) -> Self {
        let side = side.clamp(1, dataset.side());
        Self {
            dataset,
            reader: Reader::new(direct),
            decoder: Decoder::default(),
            decodes,
            side,
        }
    }

    /// Numbers in an image: its three colours, each `side` times `side`.
    pub fn floats(&self) -> usize {
        3 * (self.side as usize).pow(2)
    }

    /// Loads image `index` into the first [`Loader::floats`] of `into`: a plane for each colour, its rows one
    /// after the other.
    ///
    /// # Errors
    /// Where the file cannot be read or is no whole image of the data set.
    pub fn load(&mut self, index: u32, into: &mut [f32]) -> Result<Loaded, DatasetError> {
        let path = self.dataset.path(index);
        let file = match self.reader.read(&path) {
            Ok(file) => file,
            Err(why) => return Err(DatasetError::Unreadable { path, why }),
        };
        for _ in 0..self.decodes {
            let normalised = self
                .decoder
                .decode(file)
                .and_then(|image| image.normalise(self.side, into));
            if let Err(why) = normalised {
                return Err(DatasetError::Damaged { path, why });
            }
        }
        Ok(Loaded {
            read_bytes: file.len() as u64,
        })
    }
}

#[cfg(test)]
mod tests;
