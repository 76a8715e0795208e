//! The order in which images are loaded: shuffled for each epoch, in the same way by every worker.

use fastrand::Rng;

#[derive(Debug)]
pub(super) struct Shuffle {
    seed: u64,
    epoch: Option<u64>,
    /// The order in `epoch`.
    order: Vec<u32>,
}

impl Shuffle {
    /// Creates an order of `images` images, at least one.
    pub(super) fn new(images: u32, seed: u64) -> Self {
        Self {
            seed,
            epoch: None,
            order: (0..images.max(1)).collect(),
        }
    }

    /// Returns the image at `sample`, counted from 0 over all epochs.
    pub(super) fn image_at(&mut self, sample: u64) -> u32 {
        let images = self.order.len() as u64;
        let (epoch, place) = (sample / images, sample % images);
        if self.epoch != Some(epoch) {
            self.epoch = Some(epoch);
            self.order.sort_unstable();
            // `rotate_left` keeps every epoch of one seed different from those of other seeds.
            Rng::with_seed(self.seed.rotate_left(32) ^ epoch).shuffle(&mut self.order);
        }
        usize::try_from(place).map_or(0, |place| self.order[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(images: u32, seed: u64, epoch: u64) -> Vec<u32> {
        let mut shuffle = Shuffle::new(images, seed);
        let first = epoch * u64::from(images);
        (first..first + u64::from(images))
            .map(|sample| shuffle.image_at(sample))
            .collect()
    }

    #[test]
    fn every_image_comes_once_in_an_epoch() {
        for images in [1, 2, 1000] {
            let mut order = epoch(images, 7, 3);
            order.sort_unstable();
            assert_eq!(order, (0..images).collect::<Vec<_>>());
        }
        assert_eq!(Shuffle::new(0, 7).image_at(5), 0);
    }

    #[test]
    fn epochs_and_seeds_differ_and_none_is_sorted() {
        let first = epoch(1000, 7, 0);
        assert_ne!(first, epoch(1000, 7, 1));
        assert_ne!(first, epoch(1000, 8, 0));
        let rising = first.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rising), "{rising} of 999 rise");
    }

    #[test]
    fn workers_that_take_turns_agree() {
        let (mut one, mut other) = (Shuffle::new(10, 1), Shuffle::new(10, 1));
        let in_turn = (0..40).map(|sample| match sample % 2 {
            0 => one.image_at(sample),
            _ => other.image_at(sample),
        });
        let alone: Vec<u32> = (0..4).flat_map(|at| epoch(10, 1, at)).collect();
        assert_eq!(in_turn.collect::<Vec<_>>(), alone);
    }
}
