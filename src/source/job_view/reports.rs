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

/// Reports of all ranks so far.
#[derive(Debug, Default)]
pub(super) struct AllReported {
    ranks: BTreeMap<ProcessKey, RankReported>,
    /// Steps whose times are from another clock.
    misdated: u64,
    /// Datagrams from any sender that were not a message of the job.
    refused: u64,
    /// Why no more reports can be received. `None` while they can.
    broken: Option<Errno>,
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

    /// Takes what these processes reported.
    pub(super) fn take(&mut self, ranks: &[ProcessKey]) -> AllReported {
        let mut all = AllReported {
            refused: self.listener.refused(),
            broken: self.listener.broken(),
            ..AllReported::default()
        };
        for key in ranks {
            let Some(report) = self.listener.take(key.pid) else {
                continue;
            };
            all.misdated = all.misdated.saturating_add(report.misdated);
            let ended = self.ended.entry(*key).or_default();
            *ended += report.steps.len() as u64 + report.dropped;
            let ended = *ended;
            if let Some(mut reported) = self.reported(report, ended) {
                reported.fresh &= all.broken.is_none();
                all.ranks.insert(*key, reported);
            }
        }
        all
    }

    fn reported(&self, report: ProbeReport, ended: u64) -> Option<RankReported> {
        let totals = report.totals;
        let last_number = totals.last_number?;
        let wait = |step: &Step| Wait {
            from: self.timeline.at(step.wait_from),
            to: self.timeline.at(step.wait_to),
            batch: Some(step.number),
            first: None,
            begins: false,
        };
        let last_to = self.timeline.at(totals.last_to);
        let steps = u32::try_from(totals.steps).unwrap_or(u32::MAX).max(1);
        let usual = totals.waited.saturating_add(totals.stepped) / steps;
        let silence = self.clock.since_start().saturating_sub(last_to);
        Some(RankReported {
            fresh: silence <= SILENT_AFTER.max(usual.saturating_mul(SILENT_STEPS)),
            waits: Tail::new(ended, report.steps.iter().map(wait)),
            rank: report.rank,
            queue: totals.queue,
            batches: BatchCount {
                count: last_number.saturating_add(1),
                source: BatchClock::Probe,
            },
            reported: Reported {
                steps: totals.steps,
                lost: totals.lost,
                waited: totals.waited,
                stepped: totals.stepped,
                copy: totals.copy,
                busy: totals.busy,
                idle: totals.idle,
                overrun: totals.overrun,
                first_from: self.timeline.at(totals.first_from),
                last_to,
                device: report.device,
                notice: report.notice,
            },
        })
    }
}

impl AllReported {
    pub(super) fn of(&self, rank: ProcessKey) -> Option<&RankReported> {
        self.ranks.get(&rank)
    }

    /// Returns gaps for reports that cannot be used and for reports that cannot be received any more.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        let gap = |reason, hint: &str| Gap::new("probe", reason, hint);
        let misdated = (self.misdated > 0).then(|| {
            gap(
                format!("{} steps reported with times in the future", self.misdated),
                "use CLOCK_MONOTONIC in nanoseconds (see docs/probe.md)",
            )
        });
        let refused = (self.refused > 0).then(|| {
            gap(
                format!("messages refused so far: {}", self.refused),
                "they were unreadable or another user's; ss -xp lists who has the socket open",
            )
        });
        let broken = self.broken.map(|error| {
            gap(
                format!("the job's reports cannot be received: {}", error.desc()),
                "waits are observed from outside; start the command again for exact ones",
            )
        });
        [misdated, refused, broken].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::probe::{ProbeWriter, now};
    use crate::units::Pid;

    #[test]
    fn lost_reports_are_gaps() {
        let reported = AllReported {
            refused: 3,
            broken: Some(Errno::ENOTSOCK),
            ..AllReported::default()
        };
        let reasons: Vec<String> = reported.gaps().into_iter().map(|gap| gap.reason).collect();
        assert_eq!(
            reasons,
            [
                "messages refused so far: 3",
                "the job's reports cannot be received: Socket operation on non-socket"
            ]
        );
        assert_eq!(AllReported::default().gaps(), []);
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
                if let Some(reported) = reports.take(&[key]).of(key) {
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
