//! JPEG to pixels, and pixels to the numbers that a model is trained on.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Mean and standard deviation of red, green and blue over `ImageNet`, of 1: what nearly every vision model is
/// trained with.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];

/// Decodes images into a buffer that it keeps.
#[derive(Debug, Default)]
pub struct Decoder {
    pixels: Vec<u8>,
}

/// A decoded image: rows of red, green and blue.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    pub pixels: &'a [u8],
    pub width: usize,
    pub height: usize,
}

impl Decoder {
    /// # Errors
    /// Where `file` is no whole JPEG image: why, in words without a full stop.
    pub fn decode(&mut self, file: &[u8]) -> Result<Image<'_>, String> {
        // Else a file that was cut off gives an image with a grey end.
        let options = DecoderOptions::default()
            .set_strict_mode(true)
            .jpeg_set_out_colorspace(ColorSpace::RGB);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        decoder
            .decode_headers()
            .map_err(|error| error.to_string())?;
        let no_size = || "an image without a size".to_owned();
        let size = decoder.output_buffer_size().ok_or_else(no_size)?;
        let info = decoder.info().ok_or_else(no_size)?;
        self.pixels.resize(size, 0);
        decoder
            .decode_into(&mut self.pixels)
            .map_err(|error| error.to_string())?;
        Ok(Image {
            pixels: &self.pixels,
            width: usize::from(info.width),
            height: usize::from(info.height),
        })
    }
}

impl Image<'_> {
    /// Writes the middle `side` times `side` pixels as three planes, each value less the mean and over the
    /// deviation of its colour.
    ///
    /// # Errors
    /// Where the image or `into` is too small: why, in words without a full stop.
    pub fn normalise(&self, side: u32, into: &mut [f32]) -> Result<(), String> {
        let side = side as usize;
        let Self {
            pixels,
            width,
            height,
        } = *self;
        let plane = side * side;
        if width < side || height < side || pixels.len() < 3 * width * height {
            return Err(format!(
                "{width}x{height} pixels, where {side}x{side} are wanted"
            ));
        }
        let Some(into) = into.get_mut(..3 * plane).filter(|_| plane > 0) else {
            return Err(format!("no room for {side}x{side} pixels"));
        };
        let (left, top) = ((width - side) / 2, (height - side) / 2);
        for (channel, plane) in into.chunks_exact_mut(plane).enumerate() {
            let scale = 1.0 / (255.0 * DEVIATION[channel]);
            let shift = MEAN[channel] / DEVIATION[channel];
            for (row, line) in plane.chunks_exact_mut(side).enumerate() {
                let start = 3 * ((top + row) * width + left);
                let colours = pixels[start..start + 3 * side].chunks_exact(3);
                for (value, colours) in line.iter_mut().zip(colours) {
                    *value = f32::from(colours[channel]) * scale - shift;
                }
            }
        }
        Ok(())
    }
}
