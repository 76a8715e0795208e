//! The list of causes in the order in which they are checked; the first that applies is the cause.
//!
//! Holds the list only: everything about one cause is in its own file in `rules/`.

mod checkpoint;
mod collate;
mod cpu_affinity;
mod cpu_oversubscribed;
mod cpu_preprocess;
mod cpu_quota;
mod disk;
mod dispatch;
mod few_shards;
mod gil;
mod head_of_line;
mod in_main;
mod ipc;
mod launch;
mod lock;
mod logging;
mod memory_pressure;
mod metadata;
mod network;
mod noisy_neighbour;
mod omp_threads;
mod page_cache;
mod pin_thread;
mod sampler;
mod small_reads;
mod straggler;
mod swap;
mod sync;
mod transfer;
mod validation;
mod worker_restart;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::busy_time::{MIN_SHARE_OF_WAIT, always_busy};
use super::context::Context;
use super::level::SLIGHT;
use super::rule::{Resource, Rule};
use super::{Evidence, Kind};
use crate::units::Share;

pub(super) use validation::VALIDATE_LESS;

/// Defines [`Cause`] from the list of rule files.
macro_rules! causes {
    ($($cause:ident: $file:ident,)*) => {
        /// Why data comes too slowly, or why the device is idle while batches are ready.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause {
            $($cause,)*
        }

        impl Cause {
            /// Every cause, in the order in which they are checked.
            pub(super) const ALL: &[Self] = &[$(Self::$cause,)*];

            pub(super) fn rule(self) -> &'static Rule {
                match self {
                    $(Self::$cause => &$file::RULE,)*
                }
            }
        }
    };
}

// A cause that another one would hide comes first: what blocks many workers explains more than what each of them is
// busy with.
causes! {
    Dispatch: dispatch,
    Transfer: transfer,
    Gil: gil,
    Validation: validation,
    Sampler: sampler,
    InMain: in_main,
    Collate: collate,
    PinThread: pin_thread,
    WorkerRestart: worker_restart,
    FewShards: few_shards,
    HeadOfLine: head_of_line,
    Ipc: ipc,
    Lock: lock,
    Swap: swap,
    MemoryPressure: memory_pressure,
    PageCache: page_cache,
    Metadata: metadata,
    SmallReads: small_reads,
    Disk: disk,
    Network: network,
    CpuQuota: cpu_quota,
    CpuAffinity: cpu_affinity,
    NoisyNeighbour: noisy_neighbour,
    OmpThreads: omp_threads,
    CpuOversubscribed: cpu_oversubscribed,
    CpuPreprocess: cpu_preprocess,
    Straggler: straggler,
    Logging: logging,
    Checkpoint: checkpoint,
    Sync: sync,
    Launch: launch,
}

impl Cause {
    /// Returns the words on the screen.
    pub fn words(self) -> &'static str {
        self.rule().words
    }

    /// Returns the resource that the job has too little of.
    pub fn resource(self) -> Resource {
        self.rule().resource
    }

    /// Returns the fact that shows this cause for a verdict of this kind. `None` if it does not apply.
    pub(super) fn check(self, context: &Context<'_>, kind: Kind) -> Option<Evidence> {
        let mut checks = self.rule().checks.iter();
        let (_, check) = checks.find(|(explains, _)| *explains == kind)?;
        check(context)
    }
}

/// Returns the first cause that applies, with the deciding fact. `None` also for kinds that have no causes.
pub(super) fn cause(context: &Context<'_>, kind: Kind) -> Option<(Cause, Evidence)> {
    first_of(Cause::ALL.iter(), context, kind)
}

/// Returns the first cause that applies to one of several loaders. [`Cause::Validation`] is left out: it says which
/// loader is slow, not why.
pub(super) fn cause_of_loader(context: &Context<'_>, kind: Kind) -> Option<Cause> {
    let causes = Cause::ALL.iter();
    let causes = causes.filter(|cause| **cause != Cause::Validation);
    first_of(causes, context, kind).map(|(cause, _)| cause)
}

fn first_of<'a>(
    mut causes: impl Iterator<Item = &'a Cause>,
    context: &Context<'_>,
    kind: Kind,
) -> Option<(Cause, Evidence)> {
    // If batches are ready almost always, or during most of the waits, the trainer does not wait for the workers.
    // Workers that always have work limit the job, even if most waits are for the handover.
    let beside = waits_beside_the_queue(context) && always_busy(context) != Some(true);
    let is_ready = |at_most: Share| at_most.0 < SLIGHT || beside;
    let ready = context.queue_empty_at_most().is_some_and(is_ready);
    let blameless = ready || mostly_idle(context);
    causes.find_map(|cause| {
        let may_be = !(blameless && cause.rule().more_workers_help);
        may_be.then(|| Some((*cause, cause.check(context, kind)?)))?
    })
}

/// Whether all workers together load for less than half of the time that the trainer waits: whatever they spend it on, most
/// waits are for something else, such as the handover.
fn mostly_idle(context: &Context<'_>) -> bool {
    let workers = context.workers();
    let busy: Option<f64> = workers.iter().map(|worker| Some(worker.busy?.0)).sum();
    let busy = busy.filter(|_| !workers.is_empty());
    busy.zip(context.wait())
        .is_some_and(|(busy, wait)| busy < wait.share.0 * MIN_SHARE_OF_WAIT)
}

/// Whether the queue was seen empty in less than half of the time that the trainer waits: then it waits for workers to
/// start, for the workers of a validation, or for one batch while others are ready.
fn waits_beside_the_queue(context: &Context<'_>) -> bool {
    let wait = context.wait().zip(context.queue_empty());
    wait.is_some_and(|(wait, empty)| empty.0 < wait.share.0 / 2.0)
}

/// Writes the name in the report, for example `cpu-preprocess`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
