//! What the ranks of the watched job reported of their own steps, in the form of the sample.
//!
//! Knows nothing of how it came here, nor of what was seen of the job from outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::probe::Step;
use crate::sample::{BatchClock, BatchCount, Gap, QueueTally, Reported, Wait};
use crate::source::clock::Clock;
use crate::source::probe::{Listener, Report, Timeline};
use crate::units::ProcessKey;

/// Who has ended no step for so long, and for so many times its usual step, is no longer taken to report.
const SILENT: Duration = Duration::from_secs(10);
const SILENT_STEPS: u32 = 3;

#[derive(Debug)]
pub(super) struct Reports {
    listener: Arc<Listener>,
    clock: Clock,
    timeline: Timeline,
}

/// What every rank told by now.
#[derive(Debug, Default)]
pub(super) struct AllTold {
    ranks: BTreeMap<ProcessKey, Told>,
    /// Steps whose times are of another clock.
    misdated: u64,
}

/// What one rank told by now.
#[derive(Debug)]
pub(super) struct Told {
    /// Its newest step is not long ago.
    pub(super) fresh: bool,
    pub(super) reported: Reported,
    /// Of the steps that ended since this was last asked for.
    pub(super) waits: Vec<Wait>,
    pub(super) rank: Option<u32>,
    pub(super) queue: Option<QueueTally>,
    pub(super) batches: BatchCount,
}

impl Reports {
    pub(super) fn new(listener: Arc<Listener>, clock: Clock) -> Self {
        Self {
            listener,
            clock,
            timeline: Timeline::new(clock),
        }
    }

    /// Takes what these processes reported.
    pub(super) fn take(&self, ranks: &[ProcessKey]) -> AllTold {
        let mut all = AllTold::default();
        for key in ranks {
            let Some(report) = self.listener.take(key.pid) else {
                continue;
            };
            all.misdated = all.misdated.saturating_add(report.misdated);
            if let Some(told) = self.told(report) {
                all.ranks.insert(*key, told);
            }
        }
        all
    }

    fn told(&self, report: Report) -> Option<Told> {
        let totals = report.totals;
        let last_number = totals.last_number?;
        let wait = |step: &Step| Wait {
            from: self.timeline.at(step.wait_from),
            to: self.timeline.at(step.wait_to),
            batch: Some(step.number),
        };
        let last_to = self.timeline.at(totals.last_to);
        let steps = u32::try_from(totals.steps).unwrap_or(u32::MAX).max(1);
        let usual = totals.waited.saturating_add(totals.stepped) / steps;
        let silence = self.clock.since_start().saturating_sub(last_to);
        Some(Told {
            fresh: silence <= SILENT.max(usual.saturating_mul(SILENT_STEPS)),
            waits: report.steps.iter().map(wait).collect(),
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

impl AllTold {
    pub(super) fn of(&self, rank: ProcessKey) -> Option<&Told> {
        self.ranks.get(&rank)
    }

    /// What was told and cannot be used.
    pub(super) fn gaps(&self) -> Option<Gap> {
        (self.misdated > 0).then(|| Gap {
            source: "probe".into(),
            reason: format!(
                "{} steps were reported with times that lie in the future",
                self.misdated
            ),
            hint: "the protocol's clock is CLOCK_MONOTONIC in nanoseconds (docs/probe.md)".into(),
        })
    }
}
