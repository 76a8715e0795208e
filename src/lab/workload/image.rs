//! Loads one image as the input of a model: read, decode, crop, normalise.
//!
//! Does not depend on batches or on the caller.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::dataset::{Dataset, SIDE};
use super::read::Reader;
use crate::error::{Explain as _, Hinted};

/// Mean and standard deviation of red, green and blue over `ImageNet`, on a scale of 0 to 1: the values that nearly
/// every vision model is trained with.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];

/// Loads images of one data set; a worker has one and reuses its buffers.
#[derive(Debug)]
pub(super) struct ImageLoader {
    dataset: Dataset,
    reader: Reader,
    /// Rows of red, green and blue.
    pixels: Vec<u8>,
    decodes: u32,
    side: usize,
}

impl ImageLoader {
    /// Creates a loader. `direct` bypasses the page cache. Each image is decoded and normalised `decodes` times; with 0
    /// its file is only read, and the memory is not changed. Only the middle `side` times `side` pixels are kept, at
    /// most the whole image.
    pub(super) fn new(dataset: Dataset, direct: bool, decodes: u32, side: u32) -> Self {
        Self {
            dataset,
            reader: Reader::new(direct),
            pixels: vec![0; 3 * usize::from(SIDE).pow(2)],
            decodes,
            side: side.clamp(1, SIDE.into()) as usize,
        }
    }

    /// Loads image `index` into the beginning of `into`: a plane for each colour, its rows one after the other.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a whole image of the data set.
    pub(super) fn load(&mut self, index: u32, into: &mut [f32]) -> Result<(), Hinted> {
        let path = self.dataset.path(index);
        let file = self.reader.read(&path);
        let path = path.display();
        let file = file.explain(
            format_args!("cannot read {path}"),
            "`pipetop demo` creates missing files when it starts",
        )?;
        for _ in 0..self.decodes {
            decode(file, &mut self.pixels).explain(
                format_args!("{path} is damaged"),
                format!("remove {path}: `pipetop demo` creates it again"),
            )?;
            normalise(&self.pixels, self.side, into);
        }
        Ok(())
    }
}

/// Decodes an image of the data set's size. An error gives the reason, in words without a full stop.
fn decode(file: &[u8], pixels: &mut [u8]) -> Result<(), String> {
    // Without the strict mode, a truncated file would decode to an image with a grey end.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder
        .decode_headers()
        .map_err(|error| error.to_string())?;
    if decoder.dimensions() != Some((SIDE.into(), SIDE.into())) {
        return Err(format!("not {SIDE} by {SIDE} pixels"));
    }
    decoder
        .decode_into(pixels)
        .map_err(|error| error.to_string())
}

/// Writes the middle `side` times `side` pixels as three planes, each value minus the mean and divided by the deviation
/// of its colour.
fn normalise(pixels: &[u8], side: usize, into: &mut [f32]) {
    let width = usize::from(SIDE);
    let from = (width - side) / 2;
    for (channel, plane) in (0..3).zip(into.chunks_exact_mut(side * side)) {
        let scale = 1.0 / (255.0 * DEVIATION[channel]);
        let shift = MEAN[channel] / DEVIATION[channel];
        for (row, line) in plane.chunks_exact_mut(side).enumerate() {
            let start = 3 * ((from + row) * width + from);
            let colours = pixels[start..start + 3 * side].chunks_exact(3);
            for (value, colours) in line.iter_mut().zip(colours) {
                *value = f32::from(colours[channel]) * scale - shift;
            }
        }
    }
}

#[cfg(test)]
mod tests;
