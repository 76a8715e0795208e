//! The load time of a batch if it is set, in place of real loading: its mean and its variation.
//!
//! Pure: the same seed and batch give the same time, whichever worker loads it.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, LogNormal};

/// Load times around a mean. Log-normal: never below zero, and with the long tail of real loading.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadTime {
    mean: Duration,
    /// Distribution of the factor on the mean. `None` = always the mean.
    factor: Option<LogNormal<f64>>,
    seed: u64,
}

impl LoadTime {
    /// Creates the distribution. `jitter` is the standard deviation divided by the mean.
    pub(super) fn new(mean: Duration, jitter: f64, seed: u64) -> Self {
        let factor = (jitter > 0.0)
            .then(|| LogNormal::from_mean_cv(1.0, jitter).ok())
            .flatten();
        Self { mean, factor, seed }
    }

    /// Returns the load time of batch number `batch`.
    pub(super) fn of(&self, batch: u64) -> Duration {
        let Some(factor) = self.factor else {
            return self.mean;
        };
        let mut chance = ChaCha8Rng::seed_from_u64(self.seed);
        chance.set_stream(batch);
        let factor = factor.sample(&mut chance);
        Duration::try_from_secs_f64(self.mean.as_secs_f64() * factor).unwrap_or(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_deviation(jitter: f64) -> (f64, f64) {
        let times = LoadTime::new(Duration::from_millis(100), jitter, 7);
        let times: Vec<f64> = (0..20_000)
            .map(|batch| times.of(batch).as_secs_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
        (mean, (variance / times.len() as f64).sqrt())
    }

    #[test]
    fn times_vary_around_their_mean_as_configured() {
        for jitter in [0.05, 0.5, 1.0] {
            let (mean, deviation) = mean_and_deviation(jitter);
            assert!((mean - 0.1).abs() < 0.004, "{jitter}: mean {mean}");
            assert!(
                (deviation / mean - jitter).abs() < 0.1 * jitter + 0.01,
                "{jitter}: {deviation}"
            );
        }
        let (mean, deviation) = mean_and_deviation(0.0);
        assert!((mean - 0.1).abs() < 1e-9 && deviation < 1e-9);
    }

    #[test]
    fn a_batch_takes_the_same_time_in_any_worker() {
        let times = |seed| LoadTime::new(Duration::from_millis(100), 0.5, seed);
        assert_eq!(times(1).of(42), times(1).of(42));
        assert_ne!(times(1).of(42), times(2).of(42));
        assert_ne!(times(1).of(42), times(1).of(43));
    }
}
