//! Draws images that look like photographs to a decoder: light that falls off, things with edges, textures at
//! all scales, and the noise of a sensor. The same number gives the same image.

use std::io;

use fastrand::Rng;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// As cameras and the usual data sets have it.
const QUALITY: u8 = 93;
/// Cells along a side, and how much they change the brightness (of 255): half the scale, half the change.
const TEXTURES: [(u32, f32); 5] = [(4, 48.0), (8, 24.0), (16, 16.0), (32, 12.0), (64, 10.0)];
/// Things in an image.
const THINGS: usize = 7;
/// Most that the sensor adds or takes away, of 255.
const NOISE: f32 = 10.0;

/// Bytes of a file with an image of `side` pixels, on the average.
pub(super) fn usual_bytes(side: u32) -> u64 {
    u64::from(side).pow(2) * 64 / 100
}

/// The file of image `index`.
pub(super) fn jpeg(index: u32, side: u32) -> io::Result<Vec<u8>> {
    let side = u16::try_from(side).map_err(io::Error::other)?;
    let pixels = pixels(index, u32::from(side));
    let mut file = Vec::with_capacity(pixels.len() / 2);
    let mut encoder = Encoder::new(&mut file, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder
        .encode(&pixels, side, side, ColorType::Rgb)
        .map_err(io::Error::other)?;
    Ok(file)
}

/// Rows of red, green and blue.
fn pixels(index: u32, side: u32) -> Vec<u8> {
    let mut rng = Rng::with_seed(u64::from(index));
    let sky = colour(&mut rng);
    let ground = colour(&mut rng);
    let textures = TEXTURES.map(|(cells, change)| Texture::new(&mut rng, side, cells, change));
    let things: [Thing; THINGS] = std::array::from_fn(|_| Thing::new(&mut rng, side as f32));
    let mut pixels = Vec::with_capacity((side * side * 3) as usize);
    let mut light = vec![0.0; side as usize];
    for y in 0..side {
        light.fill(0.0);
        for texture in &textures {
            texture.add_row(y, &mut light);
        }
        let down = y as f32 / side as f32;
        let horizon = mix(sky, ground, down);
        for (x, light) in light.iter().enumerate() {
            let covering = things
                .iter()
                .rev()
                .find(|thing| thing.covers(x as f32, y as f32));
            let base = covering.map_or(horizon, |thing| thing.colour);
            let noise = rng.u32(..);
            for (channel, base) in base.iter().enumerate() {
                let noise = (noise >> (8 * channel) & 0xff) as f32 / 127.5 - 1.0;
                // A float that is out of range becomes the nearest that fits.
                pixels.push((base + light + NOISE * noise) as u8);
            }
        }
    }
    pixels
}

type Colour = [f32; 3];

fn colour(rng: &mut Rng) -> Colour {
    std::array::from_fn(|_| 48.0 + 160.0 * rng.f32())
}

fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    std::array::from_fn(|channel| a[channel] + (b[channel] - a[channel]) * share)
}

/// A disc or a box of one colour.
struct Thing {
    centre: [f32; 2],
    /// Half of its width and height.
    reach: [f32; 2],
    round: bool,
    colour: Colour,
}

impl Thing {
    fn new(rng: &mut Rng, side: f32) -> Self {
        Self {
            centre: [rng.f32() * side, rng.f32() * side],
            reach: [0; 2].map(|_| (0.04 + 0.2 * rng.f32()) * side),
            round: rng.bool(),
            colour: colour(rng),
        }
    }

    fn covers(&self, x: f32, y: f32) -> bool {
        let right = ((x - self.centre[0]) / self.reach[0]).abs();
        let down = ((y - self.centre[1]) / self.reach[1]).abs();
        if self.round {
            right * right + down * down < 1.0
        } else {
            right.max(down) < 1.0
        }
    }
}

/// Random brightness at the corners of a grid, and what lies between them.
struct Texture {
    corners: Vec<f32>,
    /// Corners along a side.
    width: usize,
    /// Pixels from one corner to the next.
    cell: f32,
}

impl Texture {
    fn new(rng: &mut Rng, side: u32, cells: u32, change: f32) -> Self {
        let width = cells as usize + 2;
        Self {
            corners: (0..width * width)
                .map(|_| change * (2.0 * rng.f32() - 1.0))
                .collect(),
            width,
            cell: side as f32 / cells as f32,
        }
    }

    /// Adds the texture of row `y`.
    fn add_row(&self, y: u32, light: &mut [f32]) {
        let down = y as f32 / self.cell;
        let above = &self.corners[down as usize * self.width..][..self.width];
        let below = &self.corners[(down as usize + 1) * self.width..][..self.width];
        let share = down.fract();
        for (x, light) in light.iter_mut().enumerate() {
            let right = x as f32 / self.cell;
            let (corner, along) = (right as usize, right.fract());
            let left_side = above[corner] + (below[corner] - above[corner]) * share;
            let right_side = above[corner + 1] + (below[corner + 1] - above[corner + 1]) * share;
            *light += left_side + (right_side - left_side) * along;
        }
    }
}
