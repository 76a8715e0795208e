use std::fs;
use std::path::Path;

use jpeg_encoder::{ColorType, Encoder};
use proptest::prelude::*;
use tempfile::TempDir;

use super::super::dataset::{self, Plan};
use super::*;

fn set(images: u32, side: u32) -> (TempDir, Dataset) {
    let root = tempfile::tempdir().unwrap();
    let set = dataset::prepare(root.path(), Plan::new(images, side), |_, _| ()).unwrap();
    (root, set)
}

/// A JPEG file of one colour.
fn plain(width: u16, height: u16, colour: [u8; 3]) -> Vec<u8> {
    let pixels = colour.repeat(usize::from(width) * usize::from(height));
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 100);
    encoder
        .encode(&pixels, width, height, ColorType::Rgb)
        .unwrap();
    file
}

#[test]
fn a_colour_is_normalised_as_for_every_vision_model() {
    let file = plain(48, 32, [255, 128, 0]);
    let mut decoder = Decoder::default();
    let image = decoder.decode(&file).unwrap();
    assert_eq!((image.width, image.height), (48, 32));
    let mut planes = vec![9.0; 3 * 32 * 32 + 1];
    image.normalise(32, &mut planes).unwrap();
    // (255/255 - 0.485)/0.229, (128/255 - 0.456)/0.224, (0 - 0.406)/0.225; a step of a colour is 0.02.
    for (plane, expected) in planes.chunks_exact(32 * 32).zip([2.249, 0.205, -1.804]) {
        assert!(
            plane.iter().all(|value| (value - expected).abs() < 0.06),
            "{expected}"
        );
    }
    assert_eq!(
        planes[3 * 32 * 32].to_bits(),
        9_f32.to_bits(),
        "no more than the image"
    );
}

#[test]
fn the_middle_is_kept() {
    // The value of a pixel is its place: row 10 x 6 + column, in the red plane.
    let (width, height) = (6, 4);
    let pixels: Vec<u8> = (0..height)
        .flat_map(|row| (0..width).flat_map(move |column| [row * 10 + column, 0, 0]))
        .collect();
    let image = decode::Image {
        pixels: &pixels,
        width: usize::from(width),
        height: usize::from(height),
    };
    let mut planes = [0.0; 12];
    image.normalise(2, &mut planes).unwrap();
    let red = planes[..4]
        .iter()
        .map(|value| ((value * 0.229 + 0.485) * 255.0).round());
    assert_eq!(red.collect::<Vec<_>>(), [12.0, 13.0, 22.0, 23.0]);
}

#[test]
fn what_is_too_small_is_said() {
    let image = decode::Image {
        pixels: &[0; 12],
        width: 2,
        height: 2,
    };
    assert!(
        image
            .normalise(3, &mut [0.0; 27])
            .unwrap_err()
            .contains("2x2")
    );
    assert!(image.normalise(2, &mut [0.0; 11]).is_err());
    assert!(image.normalise(0, &mut []).is_err());
}

#[test]
fn every_way_to_read_gives_the_same() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    let (mut cached, mut direct) = (Reader::new(false), Reader::new(true));
    // Around the edges of blocks, and shorter after longer.
    for length in [0, 1, 4095, 4096, 4097, 100_000, 8192, 17] {
        let content: Vec<u8> = (0..=250).cycle().take(length).collect();
        fs::write(&path, &content).unwrap();
        assert_eq!(cached.read(&path).unwrap(), content, "{length}");
        assert_eq!(direct.read(&path).unwrap(), content, "{length}");
    }
}

#[test]
fn where_direct_reads_are_refused_it_is_read_all_the_same() {
    // The proc file system has none.
    let path = Path::new("/proc/self/mounts");
    let mut reader = Reader::new(true);
    assert_eq!(reader.read(path).unwrap(), fs::read(path).unwrap());
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "after").unwrap();
    assert_eq!(reader.read(&file).unwrap(), b"after");
}

#[test]
fn an_image_is_loaded_the_same_however_it_is_read_and_however_often_decoded() {
    let (_root, set) = set(3, 48);
    let load = |direct, decodes, index| {
        let mut loader = Loader::new(set.clone(), direct, decodes, 32);
        let mut planes = vec![0.0; loader.floats()];
        let loaded = loader.load(index, &mut planes).unwrap();
        assert_eq!(
            loaded.read_bytes,
            fs::metadata(set.path(index)).unwrap().len()
        );
        planes
    };
    let planes = load(false, 1, 0);
    assert_eq!(planes.len(), 3 * 32 * 32);
    // Without the thousands of numbers in the message.
    assert!(load(true, 1, 0) == planes, "past the page cache");
    assert!(load(false, 3, 0) == planes, "decoded three times");
    assert!(load(false, 1, 3) == planes, "after the last the first");
    assert!(load(false, 1, 1) != planes, "another image");
    let untouched = vec![0.0; planes.len()];
    assert!(load(true, 0, 0) == untouched, "read, not decoded");
    // As of a photograph: neither flat nor out of range.
    let mean = planes.iter().sum::<f32>() / planes.len() as f32;
    let spread = planes
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f32>();
    let deviation = (spread / planes.len() as f32).sqrt();
    assert!((0.2..1.5).contains(&deviation), "{deviation}");
}

#[test]
fn a_side_larger_than_the_images_is_their_side() {
    let (_root, set) = set(1, 32);
    let mut loader = Loader::new(set, false, 1, 500);
    let mut planes = vec![0.0; loader.floats()];
    assert_eq!(planes.len(), 3 * 32 * 32);
    loader.load(0, &mut planes).unwrap();
}

#[test]
fn a_file_that_is_gone_or_damaged_is_named() {
    let (_root, set) = set(4, 64);
    let mut loader = Loader::new(set.clone(), false, 1, 64);
    let mut planes = vec![0.0; loader.floats()];
    fs::remove_file(set.path(0)).unwrap();
    let error = loader.load(0, &mut planes).unwrap_err();
    assert!(matches!(error, DatasetError::Unreadable { .. }), "{error}");
    // Cut off, another's, and of another size.
    let whole = fs::read(set.path(1)).unwrap();
    fs::write(set.path(1), &whole[..whole.len() / 2]).unwrap();
    fs::write(set.path(2), "no image").unwrap();
    fs::write(set.path(3), plain(16, 16, [1, 2, 3])).unwrap();
    for index in 1..4 {
        let error = loader.load(index, &mut planes).unwrap_err();
        assert!(matches!(error, DatasetError::Damaged { .. }), "{error}");
        let name = set.path(index).display().to_string();
        assert!(error.to_string().contains(&name) && error.hint().contains(&name));
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

proptest! {
    #[test]
    fn no_content_ends_the_decoder(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = plain(24, 24, [90, 160, 30]);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(cut.index(file.len() + 1));
        let mut decoder = Decoder::default();
        let mut planes = vec![0.0; 3 * 16 * 16];
        if let Ok(image) = decoder.decode(&file) {
            prop_assert_eq!(image.pixels.len(), 3 * image.width * image.height);
            let _ = image.normalise(16, &mut planes);
        }
    }
}
