//! The files of one group: its CPU quota and its memory limit, and their effects.
//!
//! Does not depend on the groups above.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::sample::{CgroupSample, Gap};
use crate::source::cgroup::membership::{CgroupVersion, Location};
use crate::source::file::{self, Failure, keyed, unreadable};
use crate::source::host::cpus_in_list;
use crate::units::Bytes;

/// In version 1, "no limit" is a number: the largest that the counter holds, rounded down to a page. It differs with
/// the page size and the kernel, but is always above this.
const NO_LIMIT: u64 = 1 << 62;

/// Reads a limit: `None` if the group has no such file (the controller is not used there) or sets no limit.
fn limit<T>(path: &Path, parse: fn(&str) -> io::Result<Option<T>>) -> Result<Option<T>, Gap> {
    match file::read(path).and_then(|text| parse(text.trim())) {
        Ok(limit) => Ok(limit),
        Err(error) if Failure::of(&error) == Failure::Gone => Ok(None),
        Err(error) => Err(unreadable("cgroup", path, &error)),
    }
}

/// Parses `max` or a number of bytes.
fn bytes(text: &str) -> io::Result<Option<u64>> {
    if text == "max" {
        return Ok(None);
    }
    // Version 1 also wrote -1 and numbers above 2^63 for "no limit".
    let number: i128 = text.parse().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(u64::try_from(number).ok().filter(|&limit| limit < NO_LIMIT))
}

/// Parses `max 100000` or `150000 100000`: microseconds of CPU time in each period.
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

/// Returns the group's CPU quota in CPUs: seconds of CPU time per second.
pub(super) fn cpu_quota(version: CgroupVersion, group: &Path) -> Result<Option<f64>, Gap> {
    match version {
        CgroupVersion::V2 => limit(&group.join("cpu.max"), cpu_max),
        CgroupVersion::V1 => {
            let quota = group.join("cpu.cfs_quota_us");
            // -1 is no limit.
            let Some(us @ 0..) = limit(&quota, |text| number(text).map(Some))? else {
                return Ok(None);
            };
            let period = group.join("cpu.cfs_period_us");
            let read = file::read(&period).and_then(|text| number(text.trim()));
            let quota = read.and_then(|period| cpus(us, period));
            quota
                .map(Some)
                .map_err(|error| unreadable("cgroup", &period, &error))
        }
    }
}

/// Whether the group is frozen, directly or through a group above it. `None` if its file cannot be read.
pub(super) fn is_frozen(place: &Location) -> Option<bool> {
    let (file, frozen) = match place.version {
        CgroupVersion::V1 => ("freezer.state", "FROZEN"),
        CgroupVersion::V2 => ("cgroup.events", "frozen 1"),
    };
    let text = file::read(&place.group().join(file)).ok()?;
    Some(text.lines().any(|line| line == frozen))
}

/// Reads the effects of the quota. Version 1 counts throttled time in nanoseconds, version 2 in microseconds.
pub(super) fn read_throttling(group: &Path, sample: &mut CgroupSample) {
    let Ok(text) = file::read(&group.join("cpu.stat")) else {
        return;
    };
    sample.periods = keyed(&text, "nr_periods");
    sample.throttled_periods = keyed(&text, "nr_throttled");
    sample.throttled = keyed(&text, "throttled_usec")
        .map(Duration::from_micros)
        .or_else(|| keyed(&text, "throttled_time").map(Duration::from_nanos));
}

/// Returns the number of CPUs that the group may use, after the restrictions of the groups above. `None` if the group
/// has no such file.
pub(super) fn cpuset(version: CgroupVersion, group: &Path) -> Option<u32> {
    let name = match version {
        CgroupVersion::V1 => "cpuset.effective_cpus",
        CgroupVersion::V2 => "cpuset.cpus.effective",
    };
    cpus_in_list(&file::read(&group.join(name)).ok()?)
}

/// Returns the memory limit in bytes.
pub(super) fn memory_limit(version: CgroupVersion, group: &Path) -> Result<Option<u64>, Gap> {
    let name = match version {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    };
    limit(&group.join(name), bytes)
}

/// Returns the memory that the group cannot free at once: its usage without the page cache that is not in use. A data
/// set that streams through the cache fills any limit without causing memory pressure.
pub(super) fn memory_used(version: CgroupVersion, group: &Path) -> Option<Bytes> {
    let name = match version {
        CgroupVersion::V1 => "memory.usage_in_bytes",
        CgroupVersion::V2 => "memory.current",
    };
    let used = file::read(&group.join(name)).ok()?;
    let used: u64 = used.trim().parse().ok()?;
    let stat = file::read(&group.join("memory.stat")).ok()?;
    // Version 1's plain figure excludes the groups below.
    let idle = keyed(&stat, "total_inactive_file").or_else(|| keyed(&stat, "inactive_file"))?;
    Some(Bytes(used.saturating_sub(idle)))
}

#[cfg(test)]
mod tests {
    use support::fuzz;

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

    proptest::proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_files_of_a_group(text in fuzz::text([
            "max 100000", "150000 100000", "max", "68719476736", "-1",
            "usage_usec 1\nnr_periods 12\nnr_throttled 3\nthrottled_usec 9\ninactive_file 5\n",
        ])) {
            let _ = bytes(&text);
            proptest::prop_assert!(cpu_max(&text).ok().flatten().is_none_or(|cpus| cpus > 0.0));
            let _ = keyed(&text, "nr_periods");
        }
    }
}
