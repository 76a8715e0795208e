//! What a process used between two readings of its counters.
//!
//! Knows nothing of what the process is for.

use std::time::Duration;

use crate::model::interval::{Interval, count_grown, seconds_grown};
use crate::sample::{IoSample, ProcessSample};
use crate::units::{Bytes, BytesPerSecond, ProcessKey, Share};

/// A process that lived less is too young for rates: the kernel counts its CPU time in ticks of 10 ms.
const YOUNGEST: f64 = 0.1;

/// What a process has used up when it starts: the kernel clears these counters at `fork`.
const NEWBORN: ProcessSample = ProcessSample {
    state: None,
    cpu: Some(Duration::ZERO),
    main_cpu: Some(Duration::ZERO),
    main_run_delay: Some(Duration::ZERO),
    io: Some(IoSample {
        rchar: Bytes(0),
        wchar: Bytes(0),
        read_bytes: Bytes(0),
        write_bytes: Bytes(0),
    }),
    major_faults: Some(0),
    threads: None,
    cpus_allowed: None,
    rss: None,
};

/// A process now, and what to count its growth from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delta<'a> {
    older: Option<&'a ProcessSample>,
    newer: &'a ProcessSample,
    /// The time it grew in: the whole interval, or its life where it began within the interval.
    pub(crate) seconds: f64,
}

impl<'a> Delta<'a> {
    /// `older` is the same process, by its key, in the older sample. Without one it counts from its
    /// start, where that is known to lie in the interval.
    pub(crate) fn new(
        older: Option<&'a ProcessSample>,
        newer: &'a ProcessSample,
        key: ProcessKey,
        interval: &Interval,
    ) -> Self {
        let lived = interval
            .start_of(key)
            .filter(|start| older.is_none() && *start >= interval.from)
            .map(|start| interval.to - start)
            .filter(|lived| *lived >= YOUNGEST);
        Self {
            older: older.or(lived.map(|_| &NEWBORN)),
            newer,
            seconds: lived.unwrap_or(interval.seconds),
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

    /// Between two readings that lie so many seconds apart.
    pub(crate) fn between(
        older: &'a ProcessSample,
        newer: &'a ProcessSample,
        seconds: f64,
    ) -> Self {
        Self {
            older: Some(older),
            newer,
            seconds,
        }
    }

    /// What the process used: the one place where this is worked out.
    pub(crate) fn usage(&self) -> Usage {
        let time = |of: fn(&ProcessSample) -> Option<Duration>| self.time(of);
        let share = |of| time(of).and_then(|time| Share::of(time, self.seconds));
        let per_second = |count: Option<f64>| Some(count? / self.seconds);
        let bytes = |of: fn(&IoSample) -> Bytes| {
            let count = self.count(|process| Some(of(process.io.as_ref()?).0));
            per_second(count).map(BytesPerSecond)
        };
        Usage {
            cpu: per_second(time(|process| process.cpu)),
            main_cpu: share(|process| process.main_cpu),
            run_delay: share(|process| process.main_run_delay),
            read: bytes(|io| io.read_bytes),
            write: bytes(|io| io.write_bytes),
            rchar: bytes(|io| io.rchar),
            major_faults_per_s: per_second(self.count(|process| process.major_faults)),
        }
    }
}

/// What a process used, per second. `None` where that was not read, or went backwards.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    /// CPU time of all its threads, in shares of one core.
    pub(crate) cpu: Option<f64>,
    /// Of the main thread: on a CPU, and runnable but not running.
    pub(crate) main_cpu: Option<Share>,
    pub(crate) run_delay: Option<Share>,
    /// From and to block devices, and by read calls from anywhere.
    pub(crate) read: Option<BytesPerSecond>,
    pub(crate) write: Option<BytesPerSecond>,
    pub(crate) rchar: Option<BytesPerSecond>,
    pub(crate) major_faults_per_s: Option<f64>,
}
