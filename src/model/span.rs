//! The time between two samples, and how far the counters of a process grew in it.
//!
//! Knows nothing of what the counters are for.

use std::time::Duration;

use crate::sample::{ProcessSample, Sample};
use crate::units::ProcessKey;

/// A process that lived less is too young for rates: the kernel counts its CPU time in ticks of 10 ms.
const YOUNGEST: f64 = 0.1;

/// What a process has used up when it starts: the kernel clears these counters at `fork`.
const NEWBORN: ProcessSample = ProcessSample {
    state: None,
    cpu: Some(Duration::ZERO),
    main_cpu: Some(Duration::ZERO),
    main_run_delay: Some(Duration::ZERO),
    io: Some(crate::sample::IoSample {
        rchar: crate::units::Bytes(0),
        wchar: crate::units::Bytes(0),
        read_bytes: crate::units::Bytes(0),
        write_bytes: crate::units::Bytes(0),
    }),
    major_faults: Some(0),
    threads: None,
    cpus_allowed: None,
    rss: None,
};

/// The time between two samples, in seconds since pipetop started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) seconds: f64,
    /// Ticks between boot and pipetop's start, and ticks per second.
    clock: Option<(u64, u64)>,
}

impl Span {
    pub(crate) fn new(older: &Sample, newer: &Sample) -> Self {
        Self {
            from: older.at.since_start.as_secs_f64(),
            to: newer.at.since_start.as_secs_f64(),
            seconds: newer.at.seconds_since(&older.at),
            clock: newer
                .host
                .boot_ticks_at_start
                .zip(newer.host.ticks_per_second.filter(|ticks| *ticks > 0)),
        }
    }

    /// Starts of processes can be placed in this time.
    pub(crate) fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// When a process started, in seconds since pipetop started; negative where it was there before.
    pub(crate) fn start_of(&self, process: ProcessKey) -> Option<f64> {
        let (boot, per_second) = self.clock?;
        Some((process.start_ticks as f64 - boot as f64) / per_second as f64)
    }
}

/// A process now, and what to count its growth from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth<'a> {
    older: Option<&'a ProcessSample>,
    newer: &'a ProcessSample,
    /// The time it grew in: the whole span, or its life where it began within the span.
    pub(crate) seconds: f64,
}

impl<'a> Growth<'a> {
    /// `older` is the same process, by its key, in the older sample. Without one it counts from its
    /// start, where that is known to lie in the span.
    pub(crate) fn new(
        older: Option<&'a ProcessSample>,
        newer: &'a ProcessSample,
        key: ProcessKey,
        span: &Span,
    ) -> Self {
        let lived = span
            .start_of(key)
            .filter(|start| older.is_none() && *start >= span.from)
            .map(|start| span.to - start)
            .filter(|lived| *lived >= YOUNGEST);
        Self {
            older: older.or(lived.map(|_| &NEWBORN)),
            newer,
            seconds: lived.unwrap_or(span.seconds),
        }
    }

    /// Seconds by which a time grew.
    pub(crate) fn time(&self, of: impl Fn(&ProcessSample) -> Option<Duration>) -> Option<f64> {
        seconds_grown(of(self.older?), of(self.newer))
    }

    /// By how much a count grew.
    pub(crate) fn count(&self, of: impl Fn(&ProcessSample) -> Option<u64>) -> Option<f64> {
        count_grown(of(self.older?), of(self.newer))
    }
}

/// Seconds by which a counted time grew; `None` where a side is missing or it went backwards.
pub(crate) fn seconds_grown(older: Option<Duration>, newer: Option<Duration>) -> Option<f64> {
    Some(newer?.checked_sub(older?)?.as_secs_f64())
}

/// By how much a count grew; `None` where a side is missing or it went backwards.
pub(crate) fn count_grown(older: Option<u64>, newer: Option<u64>) -> Option<f64> {
    Some(newer?.checked_sub(older?)? as f64)
}
