//! The settings of a simulation.

use std::time::Duration;

use crate::error::Hinted;

/// Most loaders, and most batches that one of them may have under way or ready.
pub const MAX_WORKERS: u32 = 1024;

pub(super) const MAX_PREFETCHED: u32 = 100;

/// Most batches of a run, whatever the settings.
pub const MAX_BATCHES: u64 = 100_000_000;

/// Highest variation of load times: beyond it they say nothing about loaders.
const MAX_JITTER: f64 = 10.0;

/// The settings of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationSettings {
    /// Loaders, 1 to [`MAX_WORKERS`].
    pub workers: u32,
    /// Most batches that each loader has under way or ready, 1 to [`MAX_PREFETCHED`].
    pub prefetch_factor: u32,
    /// Mean time of a loader to make a batch.
    pub load: Duration,
    /// Standard deviation of the load time divided by its mean; load times are log-normal. 0 = always the mean.
    pub load_jitter: f64,
    /// Time of a step, always the same.
    pub step: Duration,
    /// The trainer takes batches by index, rather than in the order in which they become ready.
    pub in_order: bool,
    /// Events happen at ticks of this length. `None` = exactly when they are due.
    pub clock: Option<Duration>,
    /// Each loader starts with a different part of its first batch done, so that they do not start in step.
    pub desync: bool,
    /// Simulated time, from the start of the loaders.
    pub span: Duration,
}

/// The defaults: loaders that are far too slow for their trainer.
impl Default for SimulationSettings {
    fn default() -> Self {
        Self {
            workers: 7,
            prefetch_factor: 2,
            load: Duration::from_secs(2),
            load_jitter: 0.0,
            step: Duration::from_millis(100),
            in_order: true,
            clock: None,
            desync: false,
            span: Duration::from_secs(30),
        }
    }
}

impl SimulationSettings {
    /// Returns how many batches fit into the queue.
    pub fn capacity(&self) -> u64 {
        u64::from(self.workers) * u64::from(self.prefetch_factor)
    }

    /// Whether another seed would give another run.
    pub fn has_chance(&self) -> bool {
        self.load_jitter > 0.0 || self.desync
    }

    /// Returns the rate in batches per second that loaders and trainer cannot exceed on average; infinite if neither
    /// takes any time.
    pub fn bound(&self) -> f64 {
        let loaders = f64::from(self.workers) / self.load.as_secs_f64();
        loaders.min(1.0 / self.step.as_secs_f64())
    }

    /// Returns about how many batches a run can make at most.
    pub fn batches_at_most(&self) -> f64 {
        self.bound() * self.span.as_secs_f64()
    }

    /// Checks whether a run with these settings has a meaning.
    ///
    /// # Errors
    /// Returns an error with what is wrong, and what would be right.
    pub fn check(&self) -> Result<(), Hinted> {
        let refuse = |message: &str, hint: &str| Err(Hinted::new(message, hint));
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return refuse("--workers is out of range", "use a number from 1 to 1024");
        }
        if !(1..=MAX_PREFETCHED).contains(&self.prefetch_factor) {
            let hint = "use a number from 1 to 100; PyTorch's default is 2";
            return refuse("--prefetch-factor is out of range", hint);
        }
        if !(0.0..=MAX_JITTER).contains(&self.load_jitter) {
            let hint = "use standard deviation / mean, from 0 to 10, as in --load-jitter 0.05";
            return refuse("--load-jitter is out of range", hint);
        }
        if self.span.is_zero() {
            return refuse(
                "there is no time to simulate",
                "use a longer time, as in --for 30s",
            );
        }
        if self.clock.is_some_and(|clock| clock.is_zero()) {
            return refuse(
                "--clock-ms must not be 0",
                "omit --clock-ms for exact times",
            );
        }
        if self.clock.is_some_and(|clock| clock >= self.span) {
            return refuse(
                "--clock-ms must be shorter than --for",
                "use many ticks, as in --clock-ms 100 --for 30s",
            );
        }
        if self.batches_at_most() > MAX_BATCHES as f64 {
            return refuse(
                "too many batches to simulate",
                "use longer step or load times, or a shorter --for: the limit is 100 million",
            );
        }
        Ok(())
    }
}
