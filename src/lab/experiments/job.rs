//! One run of the built-in job for an experiment: started, listened to for a while, ended.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Hinted;
use crate::lab::workload::clock::{nanoseconds, now, sleep_until};
use crate::lab::workload::{BuiltinJob, JobSettings, WorkloadError};
use crate::probe::Step;
use crate::setup::listen;
use crate::source::probe::Listener;

/// Between two questions whether there is news, in nanoseconds.
const PAUSE: u64 = 50_000_000;
/// A job that has not reported a step after so long does not work, in nanoseconds.
const LONGEST_START: u64 = 120_000_000_000;

/// A built-in job that reports to us.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) running: BuiltinJob,
    pub(super) listener: Arc<Listener>,
    steps: Vec<Step>,
}

impl Job {
    /// Starts it. On the thread that called, it must end before that does.
    pub(super) fn start(settings: &JobSettings) -> Result<Self, Hinted> {
        let listener = listen("raise the open file limit (ulimit -n)")?;
        let address = OsStr::new(listener.address());
        let running = BuiltinJob::start(settings, Some(address)).map_err(|error| failed(&error))?;
        Ok(Self {
            running,
            listener: Arc::new(listener),
            steps: Vec::new(),
        })
    }

    /// Listens until `enough` says so of the steps so far, oldest first, or the job ends by itself.
    pub(super) fn steps(mut self, enough: impl Fn(&[Step]) -> bool) -> Result<Vec<Step>, Hinted> {
        let began = now();
        loop {
            let ended = self.running.ended();
            if let Some(report) = self.listener.take(self.running.pid()) {
                self.steps.extend(report.steps);
            }
            if ended.is_some() || enough(&self.steps) {
                break;
            }
            if self.steps.is_empty() && now().saturating_sub(began) > LONGEST_START {
                return Err(self.ended_early());
            }
            sleep_until(now() + PAUSE);
        }
        // Steps up to a failure are no measurement.
        if self.steps.is_empty() || self.running.ended() == Some(false) {
            return Err(self.ended_early());
        }
        Ok(self.steps)
    }

    /// Why it did not do what it was started for.
    pub(super) fn ended_early(&mut self) -> Hinted {
        self.running.failure().map_or_else(
            || {
                Hinted::new(
                    "the built-in job made no step",
                    "run `pipetop demo` with the same options to see what it does",
                )
            },
            |error| failed(&error),
        )
    }
}

/// The steps after the start: without those that the queue filled up behind, and half a second of whatever else
/// a start brings.
pub(super) fn steady(steps: &[Step], capacity: u32) -> &[Step] {
    let Some(first) = steps.first() else {
        return steps;
    };
    let after = first.wait_to + nanoseconds(Duration::from_millis(500));
    let filled = 1 + capacity as usize;
    let from = steps
        .iter()
        .position(|step| step.wait_from >= after)
        .map_or(steps.len(), |at| at.max(filled));
    steps.get(from..).unwrap_or_default()
}

pub(super) fn failed(error: &WorkloadError) -> Hinted {
    Hinted::new(error.to_string(), error.hint())
}
