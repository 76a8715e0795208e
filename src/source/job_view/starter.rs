//! The process that started the only rank. It may be the trainer, and the rank a process of its own that loads for it: from
//! outside, a process whose loader has workers looks like a trainer.
//!
//! Does not depend on how the rank hands its batches over.

use std::time::Duration;

use crate::sample::{Passes, Tier};
use crate::source::clock::Clock;
use crate::source::process::ProcessReader;
use crate::units::ProcessKey;

/// Shortest time in which the use of CPUs is compared.
const COMPARED: Duration = Duration::from_secs(1);
/// Share of that time that a main thread is on a CPU if it does more than wait for the end of another process.
const WORKS: f64 = 0.003;

#[derive(Debug)]
pub(super) struct Starter {
    pub(super) key: ProcessKey,
    clock: Clock,
    /// When the time of its main thread on a CPU was read, and that time.
    read: Option<(Duration, Duration)>,
}

impl Starter {
    pub(super) fn new(key: ProcessKey, clock: Clock) -> Self {
        Self {
            key,
            clock,
            read: None,
        }
    }

    /// Whether it trains: its main thread works, and the rank, with these passes through its datasets, has loaded for a
    /// while and was never seen training, or training cannot be seen (`access`). To be called with each reading.
    pub(super) fn trains(
        &mut self,
        reader: &mut ProcessReader,
        passes: &[Passes],
        access: Tier,
    ) -> bool {
        let may_load = !passes.is_empty() || access < Tier::T2;
        if !may_load || passes.iter().any(|passes| passes.trained > 0) {
            return false;
        }
        let now = self.clock.since_start();
        let Some(cpu) = reader.sample(self.key).main_cpu else {
            return false;
        };
        let (then, before) = *self.read.get_or_insert((now, cpu));
        let passed = now.saturating_sub(then);
        if passed < COMPARED {
            return false;
        }
        self.read = Some((now, cpu));
        cpu.saturating_sub(before) >= passed.mul_f64(WORKS)
    }
}
