//! Combines the rates of a window from those of its parts.

use super::{Rates, gpu, job, machine};
use crate::model::interval::{SampleInterval, seconds_grown};
use crate::model::window::WindowSums;
use crate::sample::Sample;
use crate::units::Share;

/// Minimum time between two samples, in seconds, for rates to be meaningful.
const SHORTEST: f64 = 0.001;

impl Rates {
    /// Returns the rates of the time between two samples, with the sums of what happened between them. `session` has
    /// the sums of a longer time, for what shows only over a longer time. `None` if the time is shorter than a
    /// millisecond or runs backwards.
    pub(in crate::model) fn of(
        older: &Sample,
        sums: &WindowSums,
        newer: &Sample,
        session: &WindowSums,
    ) -> Option<Self> {
        let interval = SampleInterval::new(older, newer);
        if interval.seconds < SHORTEST {
            return None;
        }
        let seconds = interval.seconds;
        let own_cpu = seconds_grown(older.own.cpu, newer.own.cpu);
        let (gpus, slow) = gpu::rows(newer, sums, session);
        let sums = job::JobSums {
            window: sums,
            session,
            slow: &slow,
        };
        Some(Self {
            seconds,
            host: machine::host(&older.host, &newer.host, seconds),
            disks: machine::disks(&older.disks, &newer.disks, seconds),
            gpus,
            job: newer.job.as_ref().map(|job| {
                let same = older.job.as_ref().filter(|older| older.key == job.key);
                job::rates(same, job, sums, &interval)
            }),
            own_cpu: own_cpu.and_then(|cpu| Share::of(cpu, seconds)),
        })
    }
}
