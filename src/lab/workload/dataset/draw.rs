//! Draws images that take about as long to decode as photographs: a gradient of two colours with sensor noise. The same
//! number gives the same image.

use std::io;

use fastrand::Rng;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// Mean size of an image file.
pub(super) const USUAL_BYTES: u64 = 37_200;
/// JPEG quality of cameras and common data sets.
const QUALITY: u8 = 95;
/// Largest amount that the noise adds or subtracts, of 255.
const NOISE: u32 = 16;

/// Returns the file of image `index`.
pub(super) fn jpeg(index: u32) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder
        .encode(&pixels(index), SIDE, SIDE, ColorType::Rgb)
        .map_err(io::Error::other)?;
    Ok(file)
}

/// Returns rows of red, green and blue.
fn pixels(index: u32) -> Vec<u8> {
    let mut rng = Rng::with_seed(index.into());
    let mut colour = || [(); 3].map(|()| rng.u32(NOISE..255 - NOISE));
    let (top, bottom) = (colour(), colour());
    let side = u32::from(SIDE);
    let mut pixels = Vec::with_capacity(3 * usize::from(SIDE).pow(2));
    for y in 0..side {
        let row = [0, 1, 2].map(|at: usize| (top[at] * (side - y) + bottom[at] * y) / side);
        for _ in 0..side {
            let colours = row.map(|value| value + rng.u32(..=2 * NOISE) - NOISE);
            pixels.extend(colours.map(|value| u8::try_from(value).unwrap_or(u8::MAX)));
        }
    }
    pixels
}

/// Pixels along each side of an image.
pub const SIDE: u16 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_image_and_another_another() {
        assert_eq!(jpeg(3).unwrap(), jpeg(3).unwrap());
        assert_ne!(jpeg(3).unwrap(), jpeg(4).unwrap());
    }

    #[test]
    fn files_are_about_as_long_as_is_said() {
        let bytes: usize = (0..20).map(|index| jpeg(index).unwrap().len()).sum();
        let ratio = bytes as f64 / 20.0 / USUAL_BYTES as f64;
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }
}
