//! Resource usage of a process between two readings of its counters.
//!
//! Does not depend on what the process is for.

use std::time::Duration;

use crate::model::interval::{SampleInterval, count_grown};
use crate::sample::{IoSample, ProcessSample};
use crate::units::{Bytes, BytesPerSecond, ProcessKey, Share};

/// Age in seconds below which a process has no rates: the kernel counts its CPU time in ticks of 10 ms.
const MIN_AGE_SECONDS: f64 = 0.1;

/// The counters of a process when it starts: the kernel clears them at `fork`.
const AT_FORK: ProcessSample = ProcessSample {
    state: None,
    cpu: Some(Duration::ZERO),
    children_cpu: Some(Duration::ZERO),
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

/// The counters of a process: nanoseconds on a CPU, those of its main thread, and those that the main thread waited for
/// a CPU; bytes from and to block devices, and of read and write calls; page faults that had to wait for a read.
const COUNTED: [fn(&ProcessSample) -> Option<u64>; 8] = [
    |process| nanos(process.cpu),
    |process| nanos(process.main_cpu),
    |process| nanos(process.main_run_delay),
    |process| Some(process.io?.read_bytes.0),
    |process| Some(process.io?.write_bytes.0),
    |process| Some(process.io?.rchar.0),
    |process| Some(process.io?.wchar.0),
    |process| process.major_faults,
];
/// Indices of some of them.
pub(crate) const CPU: usize = 0;
pub(crate) const READ: usize = 3;
pub(crate) const RCHAR: usize = 5;
pub(crate) const WCHAR: usize = 6;

/// One figure per counter. `None` if it was not read, or went backwards.
pub(crate) type Counts = [Option<f64>; COUNTED.len()];

fn nanos(time: Option<Duration>) -> Option<u64> {
    u64::try_from(time?.as_nanos()).ok()
}

/// The newer reading of a process, and the one to count its growth from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delta<'a> {
    older: Option<&'a ProcessSample>,
    newer: &'a ProcessSample,
    /// Seconds in which the counters grew: the whole interval, or the life of a process that started within the
    /// interval.
    pub(crate) seconds: f64,
}

impl<'a> Delta<'a> {
    /// `older` is the same process, by its key, in the older sample. Without one, growth counts from the process's
    /// start, if that is known to be in the interval.
    pub(crate) fn new(
        older: Option<&'a ProcessSample>,
        newer: &'a ProcessSample,
        key: ProcessKey,
        interval: &SampleInterval,
    ) -> Self {
        let lived = interval
            .start_of(key)
            .filter(|start| older.is_none() && *start >= interval.from)
            .map(|start| interval.to - start)
            .filter(|lived| *lived >= MIN_AGE_SECONDS);
        Self {
            older: older.or(lived.map(|_| &AT_FORK)),
            newer,
            seconds: lived.unwrap_or(interval.seconds),
        }
    }

    /// Returns by how much each count grew, in the order of [`COUNTED`].
    pub(crate) fn grown(&self) -> Counts {
        COUNTED.map(|of| count_grown(of(self.older?), of(self.newer)))
    }

    /// Returns the growth between two readings that are `seconds` apart.
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

    /// Returns what the process used, per second.
    pub(crate) fn usage(&self) -> Usage {
        Usage::new(self.grown().map(|count| Some(count? / self.seconds)))
    }
}

/// What a process used, per second. `None` if that was not read, or went backwards.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    /// CPU time of all its threads, in cores.
    pub(crate) cpu: Option<f64>,
    /// Shares of the time that the main thread was on a CPU, and runnable but not running.
    pub(crate) main_cpu: Option<Share>,
    pub(crate) run_delay: Option<Share>,
    /// Bytes from and to block devices, and by read calls from any source.
    pub(crate) read: Option<BytesPerSecond>,
    pub(crate) write: Option<BytesPerSecond>,
    pub(crate) rchar: Option<BytesPerSecond>,
    pub(crate) major_faults_per_s: Option<f64>,
}

impl Usage {
    /// Returns the usage from the growth of each counter per second.
    pub(crate) fn new(per_second: Counts) -> Self {
        let [cpu, main_cpu, run_delay, read, write, rchar, _, faults] = per_second;
        let seconds = |nanos: Option<f64>| Some(nanos? / 1e9);
        let share = |nanos| seconds(nanos).map(|share| Share(share).clamped());
        Self {
            cpu: seconds(cpu),
            main_cpu: share(main_cpu),
            run_delay: share(run_delay),
            read: read.map(BytesPerSecond),
            write: write.map(BytesPerSecond),
            rchar: rchar.map(BytesPerSecond),
            major_faults_per_s: faults,
        }
    }
}
