//! Processes on a GPU: their memory, and their share of its multiprocessors at the driver's last sample of each. Only
//! determines whether the two lists use the same PID namespace; does not map PIDs to the job.

use std::collections::BTreeMap;

use nvml_wrapper::Device;

use super::errors::Troubles;
use super::history::{UtilHistory, now_us};
use super::plausible::pid;
use super::raw;
use crate::sample::{Absent, GpuProcess, GpuSample, ProcessPlace};
use crate::units::{Bytes, Moment};

/// How long the driver keeps samples, in us: an older one does not describe the present.
const KEEP_US: u64 = 10_000_000;
/// `NVML_VALUE_NOT_AVAILABLE`
const NOT_AVAILABLE: u64 = u64::MAX;

#[derive(Debug, Default)]
pub(super) struct GpuProcesses {
    /// Driver time of the newest sample of any process, in us.
    seen: u64,
    /// Time and percent of the newest sample of each process.
    shares: BTreeMap<u32, (u64, f64)>,
}

impl GpuProcesses {
    pub(super) fn read(
        &mut self,
        device: &Device<'_>,
        at: Moment,
        same_namespace: bool,
        history: &UtilHistory,
        (sample, troubles): (&mut GpuSample, &mut Troubles),
    ) {
        if same_namespace {
            self.read_shares(device, at, troubles);
        } else {
            troubles.absent.push(Absent {
                figure: "process_sm".to_owned(),
                reason: "this driver reports per-process samples with host PIDs, but lists processes with PIDs of this namespace"
                    .to_owned(),
            });
        }
        sample.processes = list(device, sample.mem_total, troubles);
        for process in sample.processes.iter_mut().flatten() {
            let number = u32::try_from(process.pid.0).unwrap_or(0);
            if let Some((time, percent)) = self.shares.get(&number) {
                process.sm_percent = Some(*percent);
                process.sm_at = history.place(*time);
            }
        }
    }

    fn read_shares(&mut self, device: &Device<'_>, at: Moment, troubles: &mut Troubles) {
        let now = now_us(at);
        self.seen = self.seen.min(now);
        let answer = device.process_utilization_stats(self.seen);
        let answer = troubles.ask("process_sm", answer).into_iter().flatten();
        let seen = self.seen;
        for share in answer.filter(|share| share.timestamp > seen && share.sm_util <= 100) {
            let newest = self.shares.entry(share.pid).or_default();
            if share.timestamp > newest.0 {
                *newest = (share.timestamp, f64::from(share.sm_util));
            }
            self.seen = self.seen.max(share.timestamp);
        }
        let oldest = self.seen.saturating_sub(KEEP_US);
        self.shares.retain(|_, (time, _)| *time >= oldest);
    }
}

/// Lists the processes on a GPU or a MIG instance. `None` if the driver does not list them, or if most of the list is
/// implausible.
pub(super) fn list(
    device: &Device<'_>,
    mem_total: Option<Bytes>,
    troubles: &mut Troubles,
) -> Option<Vec<GpuProcess>> {
    let given = troubles.ask("processes", raw::processes(device))?;
    let fits = |bytes: &u64| mem_total.is_none_or(|total| *bytes <= total.0);
    let process = |(number, bytes): (u32, u64)| {
        Some(GpuProcess {
            pid: pid(number)?,
            mem: Some(bytes)
                .filter(|bytes| *bytes != NOT_AVAILABLE && fits(bytes))
                .map(Bytes),
            sm_percent: None,
            sm_at: None,
            place: ProcessPlace::Unknown,
        })
    };
    let all = given.len();
    let given = given.iter().map(|info| (info.pid, info.usedGpuMemory));
    let list: Vec<_> = given.filter_map(process).collect();
    // If the driver's structure has another length than the call's, most entries are garbage.
    if all >= 3 && list.len() * 3 <= all {
        troubles.absent.push(Absent {
            figure: "processes".to_owned(),
            reason: "unexpected format of the driver's process list".to_owned(),
        });
        return None;
    }
    Some(list)
}
