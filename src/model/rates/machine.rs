//! Rates of the machine: host and disks, and what others use of it.

use std::time::Duration;

use crate::model::interval::{count_grown, seconds_grown};
use crate::model::rates::{DiskRates, HostRates, JobRates, Rates};
use crate::sample::{DiskSample, HostSample, PressureSample};
use crate::units::{BytesPerSecond, Share};

pub(super) fn host(older: &HostSample, newer: &HostSample, seconds: f64) -> HostRates {
    let pressure = |of: fn(&PressureSample) -> Option<Duration>| {
        let stalled = seconds_grown(
            older.pressure.as_ref().and_then(of),
            newer.pressure.as_ref().and_then(of),
        )?;
        Share::of(stalled, seconds)
    };
    HostRates {
        cpus: newer.cpus,
        cpu: seconds_grown(older.cpu_busy, newer.cpu_busy)
            .and_then(|busy| Share::of(busy, seconds * f64::from(newer.cpus))),
        mem_total: newer.mem_total,
        mem_available: newer.mem_available,
        pressure_cpu: pressure(|pressure| pressure.cpu),
        pressure_io: pressure(|pressure| pressure.io),
        pressure_memory: pressure(|pressure| pressure.memory),
        others: newer.others.clone(),
        swapped_in_per_s: count_grown(older.swapped_in, newer.swapped_in)
            .map(|pages| pages / seconds),
    }
}

/// Returns one row per disk, except for a new disk or one whose counters went backwards.
pub(super) fn disks(older: &[DiskSample], newer: &[DiskSample], seconds: f64) -> Vec<DiskRates> {
    let row = |newer: &DiskSample| {
        let older = older.iter().find(|older| older.device == newer.device)?;
        disk(older, newer, seconds)
    };
    newer.iter().filter_map(row).collect()
}

fn disk(older: &DiskSample, newer: &DiskSample, seconds: f64) -> Option<DiskRates> {
    let time = |of: fn(&DiskSample) -> Duration| seconds_grown(Some(of(older)), Some(of(newer)));
    let count = |of: fn(&DiskSample) -> u64| count_grown(Some(of(older)), Some(of(newer)));
    let requests = count(|disk| disk.reads)? + count(|disk| disk.writes)?;
    let taken = time(|disk| disk.read_time)? + time(|disk| disk.write_time)?;
    Some(DiskRates {
        device: newer.device.clone(),
        read: BytesPerSecond(count(|disk| disk.read_bytes.0)? / seconds),
        write: BytesPerSecond(count(|disk| disk.write_bytes.0)? / seconds),
        reads_per_s: count(|disk| disk.reads)? / seconds,
        util: Share::of(time(|disk| disk.busy)?, seconds)?,
        await_ms: (requests > 0.0).then(|| 1000.0 * taken / requests),
        queue_depth: time(|disk| disk.queued)? / seconds,
        holds_job_files: newer.holds_job_files,
    })
}

impl Rates {
    /// Returns how many CPUs neither the job nor pipetop uses but others do. `None` if a part is not known.
    pub fn used_by_others(&self, job: &JobRates) -> Option<f64> {
        let busy = self.host.cpu?.0 * f64::from(self.host.cpus);
        let own = self.own_cpu.map_or(0.0, |cpu| cpu.0);
        Some((busy - job.cpu_cores? - own).max(0.0))
    }
}
