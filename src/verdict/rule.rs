//! What a rule is: all that the program knows of one cause, which stands in one file of `rules/`.
//!
//! Knows no cause by name.

use super::context::Context;
use super::workers::more_workers;
use super::{Evidence, Interval, Kind, WorkerAdvice};

/// Returns the fact that decides; `None` where the cause does not apply, and where its signal is missing.
pub(super) type Check = fn(&Context<'_>) -> Option<Evidence>;

/// One cause. Its name in the report comes from the list in `rules.rs`.
#[derive(Debug)]
pub(super) struct Rule {
    /// As the screen says it.
    pub(super) words: &'static str,
    /// The kinds of verdict that it explains, each with its check.
    pub(super) checks: &'static [(Kind, Check)],
    pub(super) resource: Resource,
    pub(super) picture: Picture,
    /// Whether more workers would help.
    pub(super) more_workers_help: bool,
    /// Whether load and step time alone tell what another number of workers would change.
    pub(super) what_if: bool,
    /// What to change, most useful first.
    pub(super) advice: fn(&Situation<'_>) -> Vec<String>,
}

/// What the job has too little of. The screen gives each its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Bytes from a disk or a network.
    Input,
    /// CPU work in the workers or in the main thread.
    Cpu,
    /// CPUs to run on.
    CpuTime,
    /// The way from the workers to the trainer.
    Handover,
    Memory,
    /// None of these.
    Other,
}

/// What workers and queue look like under a cause. A fact that belongs to this picture does not speak against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picture {
    /// Workers busy, queue empty: the usual one.
    BusyWorkers,
    /// Some workers idle, queue empty.
    IdleWorkers,
    /// Workers idle, batches ready in the queue.
    ReadyBatches,
}

/// What advice can refer to.
pub(super) struct Situation<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) workers: Option<WorkerAdvice>,
    /// The share of time that is lost, which is what there is to gain.
    pub(super) stall: Interval,
}

impl Situation<'_> {
    /// Another number of workers and what it brings. `None` where none is advised.
    pub(super) fn more_workers(&self) -> Option<String> {
        more_workers(self.context, self.workers, self.stall)
    }

    /// Make the function cheaper that takes most of the workers' time.
    pub(super) fn cheaper_transforms(&self) -> String {
        match self.context.hottest() {
            Some((name, _)) => format!("make {name} cheaper, or do it once before training"),
            None => "make the transforms cheaper, or do them once before training".into(),
        }
    }
}

/// Advice that is the same in every situation.
pub(super) fn texts(advice: &[&str]) -> Vec<String> {
    advice.iter().map(|text| (*text).to_owned()).collect()
}
