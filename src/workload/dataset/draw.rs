//! Draws images that look like photographs to a decoder: light that falls off, things with edges, textures at
//! all scales, and the noise of a sensor. The same number gives the same image.

use std::io;

use fastrand::Rng;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// As cameras and the usual data sets have it.
const QUALITY: u8 = 95;
/// Cells along a side, and how much they change the brightness (of 255): half the scale, half the change.
const TEXTURES: [(usize, f32); 5] = [(4, 48.0), (8, 24.0), (16, 16.0), (32, 12.0), (64, 10.0)];
/// Things in an image.
const THINGS: usize = 7;
/// Most that the sensor adds or takes away, of 255: in the best light, and in the worst.
const NOISE: [f32; 2] = [8.0, 26.0];

/// Bytes of a file with an image of `side` pixels, on the average.
pub(super) fn usual_bytes(side: u32) -> u64 {
    u64::from(side).pow(2) * 62 / 100
}

/// The file of image `index`.
pub(super) fn jpeg(index: u32, side: u32) -> io::Result<Vec<u8>> {
    let side = u16::try_from(side).map_err(io::Error::other)?;
    let pixels = pixels(index, usize::from(side));
    let mut file = Vec::with_capacity(pixels.len() / 2);
    let mut encoder = Encoder::new(&mut file, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder
        .encode(&pixels, side, side, ColorType::Rgb)
        .map_err(io::Error::other)?;
    Ok(file)
}

/// Rows of red, green and blue.
fn pixels(index: u32, side: usize) -> Vec<u8> {
    let mut rng = Rng::with_seed(u64::from(index));
    let (sky, ground) = (colour(&mut rng), colour(&mut rng));
    let texture = Texture::new(&mut rng);
    let things: [Thing; THINGS] = std::array::from_fn(|_| Thing::new(&mut rng));
    let grain = NOISE[0] + (NOISE[1] - NOISE[0]) * rng.f32();
    let mut pixels = Vec::with_capacity(side * side * 3);
    let mut row = vec![sky; side];
    for y in 0..side {
        let down = y as f32 / side as f32;
        row.fill(std::array::from_fn(|channel| {
            between(sky[channel], ground[channel], down)
        }));
        for thing in &things {
            thing.paint(down, &mut row);
        }
        let light = texture.row(down);
        for (x, colour) in row.iter().enumerate() {
            let light = at(&light, x as f32 / side as f32);
            let noise = rng.u32(..).to_le_bytes();
            for (value, noise) in colour.iter().zip(noise) {
                let noise = f32::from(noise) / 127.5 - 1.0;
                pixels.push(nearest(value + light + grain * noise));
            }
        }
    }
    pixels
}

type Colour = [f32; 3];

fn colour(rng: &mut Rng) -> Colour {
    std::array::from_fn(|_| 48.0 + 160.0 * rng.f32())
}

fn between(a: f32, b: f32, share: f32) -> f32 {
    a + (b - a) * share
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is too dark or too bright becomes black or white"
)]
fn nearest(value: f32) -> u8 {
    value as u8
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what lies before a row is its start, and no row is longer than a file may be wide"
)]
fn whole(value: f32) -> usize {
    value as usize
}

/// A disc or a box of one colour; lengths are shares of the image's side.
struct Thing {
    x: f32,
    y: f32,
    /// Half of its width and height.
    reach: [f32; 2],
    round: bool,
    colour: Colour,
}

impl Thing {
    fn new(rng: &mut Rng) -> Self {
        Self {
            x: rng.f32(),
            y: rng.f32(),
            reach: [(); 2].map(|()| 0.04 + 0.2 * rng.f32()),
            round: rng.bool(),
            colour: colour(rng),
        }
    }

    /// Colours what it covers of the row at `down`.
    fn paint(&self, down: f32, row: &mut [Colour]) {
        let off = (down - self.y) / self.reach[1];
        if off.abs() >= 1.0 {
            return;
        }
        let narrowed = if self.round {
            (1.0 - off * off).sqrt()
        } else {
            1.0
        };
        let half = self.reach[0] * narrowed;
        let place = |x: f32| whole(x * row.len() as f32).min(row.len());
        let (from, to) = (place(self.x - half), place(self.x + half));
        row[from..to].fill(self.colour);
    }
}

/// Brightness at the corners of a grid, rougher and rougher the closer one looks.
struct Texture {
    rows: Vec<Vec<f32>>,
}

impl Texture {
    fn new(rng: &mut Rng) -> Self {
        let mut texture = Self {
            rows: vec![vec![0.0; 2]; 2],
        };
        for (cells, change) in TEXTURES {
            let share = |corner| corner as f32 / cells as f32;
            let finer = |corner| {
                let coarse = texture.row(share(corner));
                let mut rough =
                    |along| at(&coarse, share(along)) + change * (2.0 * rng.f32() - 1.0);
                (0..=cells).map(&mut rough).collect()
            };
            texture.rows = (0..=cells).map(finer).collect();
        }
        texture
    }

    /// The corners' brightness moved to the height `down`, 0 to 1.
    fn row(&self, down: f32) -> Vec<f32> {
        let place = down * (self.rows.len() - 1) as f32;
        let above = whole(place).min(self.rows.len() - 2);
        let share = place - above as f32;
        let pairs = self.rows[above].iter().zip(&self.rows[above + 1]);
        pairs.map(|(a, b)| between(*a, *b, share)).collect()
    }
}

/// What lies at `along`, 0 to 1, of a row of corners.
fn at(corners: &[f32], along: f32) -> f32 {
    let place = along * (corners.len() - 1) as f32;
    let left = whole(place).min(corners.len() - 2);
    between(corners[left], corners[left + 1], place - left as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_image_and_another_another() {
        assert_eq!(jpeg(3, 64).unwrap(), jpeg(3, 64).unwrap());
        assert_ne!(jpeg(3, 64).unwrap(), jpeg(4, 64).unwrap());
        for side in [16, 17, 64, 255] {
            assert_eq!(pixels(1, side).len(), 3 * side * side);
        }
    }

    #[test]
    fn an_image_is_neither_flat_nor_mere_noise() {
        let image = pixels(0, 128);
        // Neighbours along a row are alike, places far from each other are not.
        let difference = |apart: usize| {
            let pairs = image.iter().zip(&image[3 * apart..]);
            let total: f32 = pairs.map(|(a, b)| f32::from(a.abs_diff(*b))).sum();
            total / image.len() as f32
        };
        assert!((2.0..30.0).contains(&difference(1)), "{}", difference(1));
        assert!(difference(40) > 1.5 * difference(1), "{}", difference(40));
    }
}
