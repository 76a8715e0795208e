//! The process that started the only rank. It may be the trainer, and the rank a process that only loads for it: from
//! outside, a process whose loader has workers looks like a trainer.
//!
//! Does not depend on how the rank hands its batches over.

use std::time::Duration;

use crate::sample::{Passes, Tier};
use crate::source::clock::Clock;
use crate::source::process::ProcessReader;
use crate::units::ProcessKey;

/// Shortest time over which the use of CPUs is compared.
const COMPARED: Duration = Duration::from_secs(1);
/// Minimum share of that time on a CPU of a main thread that does more than wait for the end of another process.
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

    /// Whether it trains: its main thread works, and the rank with these passes may only load for it. Must be called at
    /// each reading.
    pub(super) fn trains(
        &mut self,
        reader: &mut ProcessReader,
        passes: &[Passes],
        access: Tier,
    ) -> bool {
        if !may_only_load(passes, access) {
            return false;
        }
        let now = self.clock.since_start();
        let cpu = reader.sample(self.key).main_cpu;
        cpu.is_some_and(|cpu| self.works(now, cpu))
    }

    /// Whether its main thread does more than wait. `cpu`: the CPU time that this thread has used until `now`.
    fn works(&mut self, now: Duration, cpu: Duration) -> bool {
        let (then, before) = *self.read.get_or_insert((now, cpu));
        let passed = now.saturating_sub(then);
        if passed < COMPARED {
            return false;
        }
        self.read = Some((now, cpu));
        cpu.saturating_sub(before) >= passed.mul_f64(WORKS)
    }
}

/// Whether the rank may only load: it was seen to load (`passes` through its datasets), and never to train. Without
/// Python stacks, below T2, neither can be seen.
fn may_only_load(passes: &[Passes], access: Tier) -> bool {
    let loads = !passes.is_empty() || access < Tier::T2;
    loads && passes.iter().all(|passes| passes.trained == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Pid;

    fn starter() -> Starter {
        let key = ProcessKey {
            pid: Pid(10),
            start_ticks: 100,
        };
        Starter::new(key, Clock::start())
    }

    #[test]
    fn it_works_if_it_uses_a_cpu_of_late() {
        let mut starter = starter();
        let mut works = |at: u64, cpu: u64| {
            starter.works(Duration::from_millis(at), Duration::from_millis(cpu))
        };
        // CPU time used before pipetop started, for example for imports, says nothing.
        assert!(!works(0, 9000));
        assert!(!works(500, 9200), "too short");
        assert!(works(1000, 9200));
        assert!(!works(2000, 9202));
        assert!(!works(3000, 9204), "not since the last reading");
        assert!(works(4000, 9207));
    }

    #[test]
    fn a_rank_that_was_seen_training_does_not_only_load() {
        let passes = |trained| Passes {
            trained,
            ..Passes::default()
        };
        for (passes, access, only_loads) in [
            (&[passes(0)][..], Tier::T2, true),
            (&[passes(0), passes(3)], Tier::T2, false),
            (&[], Tier::T2, false),
            (&[], Tier::T1, true),
        ] {
            assert_eq!(may_only_load(passes, access), only_loads, "{passes:?}");
        }
    }
}
