//! The files of one group: its CPU quota and its memory limit, and what both did.
//!
//! Knows one directory; knows nothing of the groups above it.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::sample::{CgroupSample, Gap};
use crate::source::cgroup::place::Version;
use crate::source::file::KernelFile;
use crate::units::Bytes;

/// "No limit" is a number in version 1: the largest that the counter holds, rounded down to a page. It
/// differs with the page size and the kernel, but always lies above this.
const NO_LIMIT: u64 = 1 << 62;

#[derive(Debug)]
pub(super) struct CpuFiles {
    limit: CpuLimit,
    stat: KernelFile,
}

#[derive(Debug)]
enum CpuLimit {
    /// `cpu.max`
    V2(KernelFile),
    /// `cpu.cfs_quota_us`, `cpu.cfs_period_us`
    V1(KernelFile, KernelFile),
}

#[derive(Debug)]
pub(super) struct MemoryFiles {
    limit: KernelFile,
    used: KernelFile,
    stat: KernelFile,
}

/// A limit file's value: `None` where the group has no such file (the controller is not used there) or sets
/// no limit.
fn limit<T>(
    file: &mut KernelFile,
    parse: fn(&str) -> io::Result<Option<T>>,
) -> Result<Option<T>, Gap> {
    match file.read().and_then(|text| parse(text.trim())) {
        Ok(limit) => Ok(limit),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file.gap("cgroup", &error)),
    }
}

/// `max`, or a number of bytes.
fn bytes(text: &str) -> io::Result<Option<u64>> {
    if text == "max" {
        return Ok(None);
    }
    // Version 1 wrote -1 and numbers above 2^63 as "no limit" too.
    let number: i128 = text.parse().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(u64::try_from(number).ok().filter(|&limit| limit < NO_LIMIT))
}

/// `max 100000` or `150000 100000`: microseconds of CPU time in each period.
fn cpu_max(text: &str) -> io::Result<Option<f64>> {
    match text.split_once(' ') {
        Some(("max", _)) => Ok(None),
        Some((quota, period)) => cpus(number(quota)?, number(period)?).map(Some),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn cpus(quota: i64, period: i64) -> io::Result<f64> {
    if quota > 0 && period > 0 {
        Ok(quota as f64 / period as f64)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

impl CpuFiles {
    pub(super) fn new(version: Version, group: &Path) -> Self {
        let file = |name: &str| KernelFile::new(group.join(name));
        Self {
            limit: match version {
                Version::V1 => CpuLimit::V1(file("cpu.cfs_quota_us"), file("cpu.cfs_period_us")),
                Version::V2 => CpuLimit::V2(file("cpu.max")),
            },
            stat: file("cpu.stat"),
        }
    }

    /// CPUs' worth of time per second.
    pub(super) fn quota(&mut self) -> Result<Option<f64>, Gap> {
        match &mut self.limit {
            CpuLimit::V2(max) => limit(max, cpu_max),
            CpuLimit::V1(quota, period) => {
                // -1 is no limit.
                let Some(us @ 0..) = limit(quota, |text| number(text).map(Some))? else {
                    return Ok(None);
                };
                let read = period.read().and_then(|text| number(text.trim()));
                match read.and_then(|period| cpus(us, period)) {
                    Ok(cpus) => Ok(Some(cpus)),
                    Err(error) => Err(period.gap("cgroup", &error)),
                }
            }
        }
    }

    /// Version 1 counts throttled time in nanoseconds, version 2 in microseconds.
    pub(super) fn read_stat(&mut self, sample: &mut CgroupSample) {
        let Ok(text) = self.stat.read() else { return };
        sample.periods = keyed(text, "nr_periods");
        sample.throttled_periods = keyed(text, "nr_throttled");
        sample.throttled = keyed(text, "throttled_usec")
            .map(Duration::from_micros)
            .or_else(|| keyed(text, "throttled_time").map(Duration::from_nanos));
    }
}

impl MemoryFiles {
    pub(super) fn new(version: Version, group: &Path) -> Self {
        let (limit, used) = match version {
            Version::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            Version::V2 => ("memory.max", "memory.current"),
        };
        Self {
            limit: KernelFile::new(group.join(limit)),
            used: KernelFile::new(group.join(used)),
            stat: KernelFile::new(group.join("memory.stat")),
        }
    }

    /// In bytes.
    pub(super) fn limit(&mut self) -> Result<Option<u64>, Gap> {
        limit(&mut self.limit, bytes)
    }

    /// What the group cannot give back at once: its usage less the page cache that is not in use. A data set
    /// that streams through the cache fills any limit and presses on nothing.
    pub(super) fn used(&mut self) -> Option<Bytes> {
        let used: u64 = self.used.read().ok()?.trim().parse().ok()?;
        let stat = self.stat.read().ok()?;
        // Version 1's plain figure leaves out the groups below.
        let idle = keyed(stat, "total_inactive_file").or_else(|| keyed(stat, "inactive_file"))?;
        Some(Bytes(used.saturating_sub(idle)))
    }
}

/// The number behind a name: `nr_periods 12`.
fn keyed(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find_map(|(key, value)| (key == name).then(|| value.trim().parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_has_many_spellings() {
        let none = [
            "max",
            "-1",
            "9223372036854771712",
            "9223372036854710272",
            "9223372036854775807",
            "18446744073709551615",
        ];
        for text in none {
            assert_eq!(bytes(text).unwrap(), None, "{text}");
        }
        assert_eq!(bytes("68719476736").unwrap(), Some(68_719_476_736));
        assert!(bytes("").is_err());
        assert_eq!(cpu_max("max 100000").unwrap(), None);
        assert_eq!(cpu_max("150000 100000").unwrap(), Some(1.5));
        for wrong in ["", "150000", "0 0", "1 0", "x 100000", "-5 100000"] {
            assert!(cpu_max(wrong).is_err(), "{wrong}");
        }
    }
}
