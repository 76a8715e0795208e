//! What the ranks of the watched job reported about their own steps, in the form of the sample.
//!
//! Does not depend on how reports are received or on what was seen of the job from outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;

use crate::probe::Step;
use crate::sample::{BatchClock, BatchCount, Gap, QueueTally, Reported, Tail, Wait};
use crate::source::clock::Clock;
use crate::source::probe::{Listener, ProbeClock, ProbeReport};
use crate::units::ProcessKey;

/// A process that has not ended a step for this long, and for this many times its usual step, no longer counts as
/// reporting.
const SILENT_AFTER: Duration = Duration::from_secs(10);
const SILENT_STEPS: u32 = 3;

#[derive(Debug)]
pub(super) struct Reports {
    listener: Arc<Listener>,
    clock: Clock,
    timeline: ProbeClock,
    /// Number of ended steps by rank, including those dropped before they were taken.
    ended: BTreeMap<ProcessKey, u64>,
}

/// Reports of one rank so far.
#[derive(Debug)]
pub(super) struct RankReported {
    /// Whether its newest step is recent.
    pub(super) fresh: bool,
    pub(super) reported: Reported,
    /// Waits of the steps that ended since the last call.
    pub(super) waits: Tail<Wait>,
    pub(super) rank: Option<u32>,
    pub(super) queue: Option<QueueTally>,
    pub(super) batches: BatchCount,
}

impl Reports {
    pub(super) fn new(listener: Arc<Listener>, clock: Clock) -> Self {
        Self {
            listener,
            clock,
            timeline: ProbeClock::new(clock),
            ended: BTreeMap::new(),
        }
    }

    /// Takes the reports of these processes, with gaps for reports that cannot be used, and one if no more can be
    /// received.
    pub(super) fn take(
        &mut self,
        ranks: &[ProcessKey],
    ) -> (BTreeMap<ProcessKey, RankReported>, Vec<Gap>) {
        let (mut all, mut misdated) = (BTreeMap::new(), 0_u64);
        let broken = self.listener.broken();
        for key in ranks {
            let Some(report) = self.listener.take(key.pid) else {
                continue;
            };
            misdated = misdated.saturating_add(report.misdated);
            let ended = self.ended.entry(*key).or_default();
            *ended += report.steps.len() as u64 + report.dropped;
            let ended = *ended;
            if let Some(mut reported) = self.reported(report, ended) {
                reported.fresh &= broken.is_none();
                all.insert(*key, reported);
            }
        }
        (all, gaps(misdated, self.listener.refused(), broken))
    }

    fn reported(&self, report: ProbeReport, ended: u64) -> Option<RankReported> {
        let last_number = report.last_number?;
        let at = |time| self.timeline.at(time);
        let wait = |step: &Step| Wait {
            from: at(Duration::from_nanos(step.wait_from)),
            to: at(Duration::from_nanos(step.wait_to)),
            batch: Some(step.number),
            first: None,
            begins: false,
        };
        let reported = Reported {
            first_from: at(report.totals.first_from),
            last_to: at(report.totals.last_to),
            device: report.device,
            notice: report.notice,
            ..report.totals
        };
        let steps = u32::try_from(reported.steps).unwrap_or(u32::MAX).max(1);
        let usual = reported.waited.saturating_add(reported.stepped) / steps;
        let silence = self.clock.since_start().saturating_sub(reported.last_to);
        Some(RankReported {
            fresh: silence <= SILENT_AFTER.max(usual.saturating_mul(SILENT_STEPS)),
            reported,
            waits: Tail::new(ended, report.steps.iter().map(wait)),
            rank: report.rank,
            queue: report.queue,
            batches: BatchCount {
                count: last_number.saturating_add(1),
                source: BatchClock::Probe,
            },
        })
    }
}

/// `misdated`: steps whose times are from another clock. `refused`: datagrams from any sender that were not a message of
/// the job.
fn gaps(misdated: u64, refused: u64, broken: Option<Errno>) -> Vec<Gap> {
    let gap = |reason, hint: &str| Gap::new("probe", reason, hint);
    let misdated = (misdated > 0).then(|| {
        gap(
            format!("{misdated} steps reported with times in the future"),
            "use CLOCK_MONOTONIC in nanoseconds (see docs/probe.md)",
        )
    });
    let refused = (refused > 0).then(|| {
        gap(
            format!("messages refused so far: {refused}"),
            "they were unreadable or another user's; ss -xp lists who has the socket open",
        )
    });
    let broken = broken.map(|error| {
        gap(
            format!("the job's reports cannot be received: {}", error.desc()),
            "waits are observed from outside; start the command again for exact ones",
        )
    });
    [misdated, refused, broken].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::probe::{ProbeWriter, now};
    use crate::units::Pid;

    #[test]
    fn lost_reports_are_gaps() {
        let reasons = gaps(0, 3, Some(Errno::ENOTSOCK)).into_iter();
        let reasons: Vec<String> = reasons.map(|gap| gap.reason).collect();
        assert_eq!(
            reasons,
            [
                "messages refused so far: 3",
                "the job's reports cannot be received: Socket operation on non-socket"
            ]
        );
        assert_eq!(gaps(0, 0, None), []);
    }

    #[test]
    fn reports_are_old_as_soon_as_no_more_can_come() {
        let listener = Arc::new(Listener::bind().unwrap());
        let mut writer = ProbeWriter::connect(OsStr::new(listener.address()), None).unwrap();
        let key = ProcessKey {
            pid: Pid(std::process::id().cast_signed()),
            start_ticks: 0,
        };
        let mut reports = Reports::new(Arc::clone(&listener), Clock::start());
        let step = |number| Step {
            number,
            wait_from: now(),
            wait_to: now(),
            step_to: now(),
            ..Step::default()
        };
        let mut number = 0;
        let mut fresh = || {
            loop {
                writer.step(&step(number));
                writer.flush();
                number += 1;
                if let Some(reported) = reports.take(&[key]).0.get(&key) {
                    return reported.fresh;
                }
                std::thread::yield_now();
            }
        };
        assert!(fresh());
        listener.simulate_failure(Errno::ENOTSOCK);
        assert!(!fresh());
    }
}
