use std::fs;

use jpeg_encoder::{ColorType, Encoder};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::lab::workload::dataset;
use crate::units::Bytes;

const SIDE: usize = dataset::SIDE as usize;

fn some_images() -> (TempDir, Dataset) {
    let root = tempfile::tempdir().unwrap();
    let set = dataset::prepare(root.path(), Bytes(200_000), |_, _| ()).unwrap();
    assert!(set.images > 3);
    (root, set)
}

/// Returns a JPEG file of one colour.
fn plain(side: u16, colour: [u8; 3]) -> Vec<u8> {
    let pixels = colour.repeat(usize::from(side).pow(2));
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 100);
    encoder.encode(&pixels, side, side, ColorType::Rgb).unwrap();
    file
}

#[test]
fn a_colour_is_normalised_as_for_every_vision_model() {
    let mut pixels = vec![0; 3 * SIDE * SIDE];
    decode(&plain(dataset::SIDE, [255, 128, 0]), &mut pixels).unwrap();
    let mut planes = vec![9.0; 3 * 32 * 32 + 1];
    normalise(&pixels, 32, &mut planes);
    // (255/255 - 0.485)/0.229, (128/255 - 0.456)/0.224, (0 - 0.406)/0.225; one level of a colour is 0.02.
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
    // The red of a pixel is its column, the green its row.
    let pixels: Vec<u8> = (0..=255)
        .flat_map(|row| (0..=255).flat_map(move |column| [column, row, 0]))
        .collect();
    let mut planes = [0.0; 12];
    normalise(&pixels, 2, &mut planes);
    let plane = |at: usize, channel: usize| {
        let values = planes[at..at + 4].iter();
        let colours =
            values.map(|value| ((value * DEVIATION[channel] + MEAN[channel]) * 255.0).round());
        colours.collect::<Vec<_>>()
    };
    assert_eq!(plane(0, 0), [127.0, 128.0, 127.0, 128.0]);
    assert_eq!(plane(4, 1), [127.0, 127.0, 128.0, 128.0]);
}

#[test]
fn an_image_is_loaded_the_same_however_it_is_read_and_however_often_decoded() {
    let (_root, set) = some_images();
    let load = |direct, decodes, index| {
        let mut loader = ImageLoader::new(set.clone(), direct, decodes, 32);
        let mut planes = vec![0.0; 3 * 32 * 32];
        loader.load(index, &mut planes).unwrap();
        planes
    };
    let planes = load(false, 1, 0);
    // `assert!` keeps the thousands of numbers out of the message.
    assert!(load(true, 1, 0) == planes, "past the page cache");
    assert!(load(false, 3, 0) == planes, "decoded three times");
    assert!(
        load(false, 1, set.images) == planes,
        "after the last the first"
    );
    assert!(load(false, 1, 1) != planes, "another image");
    let untouched = vec![0.0; planes.len()];
    assert!(load(true, 0, 0) == untouched, "read, not decoded");
}

#[test]
fn a_side_larger_than_the_images_is_their_side() {
    let (_root, set) = some_images();
    let mut loader = ImageLoader::new(set, false, 1, 500);
    let mut planes = vec![9.0; 3 * SIDE * SIDE];
    loader.load(0, &mut planes).unwrap();
    assert!(planes.iter().all(|value| *value < 3.0));
}

#[test]
fn a_missing_or_damaged_file_is_named() {
    let (_root, set) = some_images();
    let mut loader = ImageLoader::new(set.clone(), false, 1, 64);
    let mut planes = vec![0.0; 3 * 64 * 64];
    fs::remove_file(set.path(0)).unwrap();
    let error = loader.load(0, &mut planes).unwrap_err();
    assert!(error.message.starts_with("cannot read "), "{error}");
    // A truncated file, one that is not an image, and one of another size.
    let whole = fs::read(set.path(1)).unwrap();
    fs::write(set.path(1), &whole[..whole.len() / 2]).unwrap();
    fs::write(set.path(2), "no image").unwrap();
    fs::write(set.path(3), plain(16, [1, 2, 3])).unwrap();
    for index in 1..4 {
        let error = loader.load(index, &mut planes).unwrap_err();
        let name = set.path(index).display().to_string();
        let damaged = format!("{name} is damaged: ");
        assert!(error.message.starts_with(&damaged), "{error}");
        assert!(error.hint.contains(&name), "{}", error.hint);
    }
}

proptest! {
    #[test]
    fn no_content_crashes_the_decoder(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = plain(dataset::SIDE, [90, 160, 30]);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(cut.index(file.len() + 1));
        let _ = decode(&file, &mut vec![0; 3 * SIDE * SIDE]);
    }
}
