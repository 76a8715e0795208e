//! All rates of one window, put together from those of its parts.

use super::{Rates, gpu, job, machine};
use crate::model::interval::{Interval, seconds_grown};
use crate::model::window::WindowSums;
use crate::sample::Sample;
use crate::units::Share;

/// Seconds; what lies closer together says nothing about a rate.
const SHORTEST: f64 = 0.001;

impl Rates {
    /// The rates of the time between two samples, with what passed between them. What takes longer than this time to
    /// be seen is in `session`, the sums of a longer one. `None` where the time is shorter than a millisecond or runs
    /// backwards.
    pub(in crate::model) fn of(
        older: &Sample,
        sums: &WindowSums,
        newer: &Sample,
        session: &WindowSums,
    ) -> Option<Self> {
        let interval = Interval::new(older, newer);
        if interval.seconds < SHORTEST {
            return None;
        }
        let seconds = interval.seconds;
        let own_cpu = seconds_grown(older.own.cpu, newer.own.cpu);
        let (gpus, slow) = gpu::rows(newer, sums, session);
        let sums = job::Sums {
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
            own_rss: newer.own.rss,
            own_late: newer.own.late.saturating_sub(older.own.late),
        })
    }
}
