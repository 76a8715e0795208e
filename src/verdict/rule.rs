//! A rule: everything that is specific to one cause. Each cause has its rule in one file of `rules/`.
//!
//! Does not refer to any cause by name.

use super::context::Context;
use super::workers::more_workers;
use super::{Evidence, Interval, Kind, WorkerAdvice};

/// Returns the deciding fact; `None` if the cause does not apply or its signal is missing.
pub(super) type Condition = fn(&Context<'_>) -> Option<Evidence>;

/// One cause. Its name in the report comes from the list in `rules.rs`.
#[derive(Debug)]
pub(super) struct Rule {
    /// Words on the screen.
    pub(super) words: &'static str,
    /// The kinds of verdict that it explains, each with its check.
    pub(super) checks: &'static [(Kind, Condition)],
    pub(super) resource: Resource,
    pub(super) picture: Picture,
    /// Whether more workers would help.
    pub(super) more_workers_help: bool,
    /// Whether load and step time alone determine the effect of another number of workers.
    pub(super) what_if: bool,
    /// What to change, most useful first.
    pub(super) advice: fn(&Situation<'_>) -> Vec<String>,
}

/// The resource that the job has too little of. The screen has a colour for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Bytes from a disk or a network.
    Input,
    /// CPU work in the workers or in the main thread.
    Cpu,
    /// CPUs to run on.
    CpuTime,
    /// The transfer from the workers to the trainer.
    Handover,
    Memory,
    /// None of these.
    Other,
}

/// State of workers and queue under a cause. A fact that matches it does not count against the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picture {
    /// Workers busy, queue empty: the usual one.
    BusyWorkers,
    /// Some workers idle, queue empty.
    IdleWorkers,
    /// Workers idle, batches ready in the queue.
    ReadyBatches,
}

/// Input of the advice.
pub(super) struct Situation<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) workers: Option<WorkerAdvice>,
    /// The share of time that is lost, which is the most that can be gained.
    pub(super) stall: Interval,
}

impl Situation<'_> {
    /// Returns the advised number of workers and its effect. `None` if none is advised.
    pub(super) fn more_workers(&self) -> Option<String> {
        more_workers(self.context, self.workers, self.stall)
    }

    /// Whether it is not known how many workers the step needs.
    pub(super) fn is_load_unknown(&self) -> bool {
        self.workers
            .is_none_or(|workers| workers.match_step.is_none())
    }

    /// Returns the advice to make the function cheaper that takes most of the workers' time.
    pub(super) fn cheaper_transforms(&self) -> String {
        match self.context.hottest() {
            Some((name, _)) => format!("make {name} cheaper, or precompute it"),
            None => "make the transforms cheaper, or do them once before training".into(),
        }
    }
}

/// Returns advice that is the same in every situation.
pub(super) fn texts(advice: &[&str]) -> Vec<String> {
    advice.iter().map(|text| (*text).to_owned()).collect()
}
