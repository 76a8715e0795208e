//! The order in which images are loaded: shuffled anew for each epoch.
//!
//! Pure, and without a table: any worker computes any place in it, whatever the number of images.

/// More rounds shuffle better; so many are known to be enough for a shuffle that nobody attacks.
const ROUNDS: u64 = 4;

/// The image that comes at `sample`, counted from 0 over all epochs: in every run of `images` samples that
/// makes an epoch each image comes once, in an order that follows from `seed` and the epoch alone. 0 where
/// there are no images.
pub fn image_at(images: u32, seed: u64, sample: u64) -> u32 {
    let images = images.max(1);
    let (epoch, place) = (sample / u64::from(images), sample % u64::from(images));
    let key = mixed(seed ^ mixed(epoch));
    // A Feistel network is one-to-one on a power of four. What falls beyond the images is sent through again:
    // that walk ends inside, since it must come back to `place` at last.
    let bits = u32::BITS - (images - 1).leading_zeros();
    let half = bits.div_ceil(2).max(1);
    let mut place = place;
    loop {
        place = shuffled(place, half, key);
        match u32::try_from(place) {
            Ok(image) if image < images => return image,
            _ => {}
        }
    }
}

/// One-to-one on numbers of two times `half` bits.
fn shuffled(number: u64, half: u32, key: u64) -> u64 {
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (number >> half, number & mask);
    for round in 0..ROUNDS {
        (left, right) = (right, left ^ (mixed(key ^ (right << 8 | round)) & mask));
    }
    left << half | right
}

/// The bits of a number in a thorough mess: the output step of the generator `SplitMix64`.
fn mixed(number: u64) -> u64 {
    let mut mess = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mess = (mess ^ mess >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mess = (mess ^ mess >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mess ^ mess >> 31
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn epoch(images: u32, seed: u64, epoch: u64) -> Vec<u32> {
        let first = epoch * u64::from(images);
        (first..first + u64::from(images))
            .map(|sample| image_at(images, seed, sample))
            .collect()
    }

    proptest! {
        #[test]
        fn every_image_comes_once_in_an_epoch(images in 1_u32..3000, seed: u64, at in 0_u64..1 << 30) {
            let mut order = epoch(images, seed, at);
            order.sort_unstable();
            prop_assert_eq!(order, (0..images).collect::<Vec<_>>());
        }

        #[test]
        fn huge_sets_stay_inside(images: u32, seed: u64, sample: u64) {
            let image = image_at(images, seed, sample);
            prop_assert!(image < images.max(1));
            prop_assert_eq!(image, image_at(images, seed, sample));
        }
    }

    #[test]
    fn epochs_and_seeds_differ_and_none_is_sorted() {
        let first = epoch(1000, 7, 0);
        assert_ne!(first, epoch(1000, 7, 1));
        assert_ne!(first, epoch(1000, 8, 0));
        assert_eq!(first, epoch(1000, 7, 0));
        let rising = first.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rising), "{rising} of 999 rise");
    }

    #[test]
    fn each_place_is_as_likely_for_each_image() {
        // 4000 epochs of 10 images: each image should come first some 400 times.
        let mut first = [0_u32; 10];
        for at in 0..4000 {
            first[epoch(10, 1, at)[0] as usize] += 1;
        }
        assert!(
            first.iter().all(|times| (320..480).contains(times)),
            "{first:?}"
        );
    }
}
