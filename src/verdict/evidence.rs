//! Facts for and against the kind, in words with their figures.

use super::busy_time::{ALL_BUSY, most_of_the_wait};
use super::context::Context;
use super::device;
use super::level::{HIGH, MODERATE, SLIGHT};
use super::rule::Picture;
use super::rules::Cause;
use super::{Evidence, Kind, Limit, Missing};
use crate::sample::{Gap, LoaderKind, Tier};
use crate::units::Share;

/// Returns the facts about main thread, queue, workers and GPU, with the deciding fact of the cause first.
pub(super) fn evidence(
    context: &Context<'_>,
    kind: Kind,
    limit: Option<Limit>,
    (cause, decisive): (Option<Cause>, Option<Evidence>),
) -> Vec<Evidence> {
    let about = [
        waits(context, kind),
        queue(context, kind, cause),
        workers(context, kind, cause),
        gpu(context, kind),
        gil(context, kind),
        validation(context, kind).filter(|_| cause != Some(Cause::Validation)),
        other_waits(context, kind).filter(|_| cause.is_none()),
    ];
    let mut facts: Vec<Evidence> = decisive.into_iter().collect();
    if kind == Kind::CommunicationBound {
        facts.extend(device::communication(context));
    }
    facts.extend(about.into_iter().flatten());
    facts.extend(device::facts(context, kind, limit));
    // The sort is stable: within each half the facts keep the order above, which is that of strength.
    facts.sort_by_key(|fact| !fact.supports);
    facts
}

impl Evidence {
    pub(super) fn new(
        id: &'static str,
        supports: bool,
        value: f64,
        threshold: impl Into<Option<f64>>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            id,
            supports,
            value,
            threshold: threshold.into(),
            text: text.into(),
        }
    }

    /// Returns a fact that supports the verdict: its value reached the threshold.
    pub(super) fn supporting(id: &'static str, value: f64, threshold: f64, text: String) -> Self {
        Self::new(id, true, value, threshold, text)
    }
}

fn waits(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let wait = context.wait()?.share;
    let much = wait.0 >= MODERATE;
    let supports = much == (kind == Kind::DataBound);
    let text = format!("trainer waits {wait} of the time");
    Some(Evidence::new("wait", supports, wait.0, MODERATE, text))
}

/// Returns what workers and queue look like under this cause.
fn picture(cause: Option<Cause>) -> Picture {
    cause.map_or(Picture::BusyWorkers, |cause| cause.rule().picture)
}

fn queue(context: &Context<'_>, kind: Kind, cause: Option<Cause>) -> Option<Evidence> {
    const OFTEN: f64 = 0.5;
    let empty = context.queue_empty()?;
    let often = empty.0 >= OFTEN;
    if often != (context.queue_empty_at_most()?.0 >= OFTEN) {
        return None;
    }
    let supports = match kind {
        // The trainer waits although batches are ready.
        Kind::DataBound if picture(cause) == Picture::ReadyBatches => !often,
        // Batches are ready, and the workers are blocked in handing them over.
        Kind::DataBound if most_of_the_wait(context, context.rank.receiving).is_some() => {
            return None;
        }
        // Without waits, the empty queue is what makes the difference to compute-bound; with them, it is a sign that
        // loading is too slow.
        Kind::Balanced => often == (context.wait().is_some_and(|wait| wait.share.0 < SLIGHT)),
        Kind::DataBound => often,
        Kind::ComputeBound | Kind::HostBound => !often,
        _ => return None,
    };
    let text = format!("queue empty {empty} of the time");
    Some(Evidence::new("queue-empty", supports, empty.0, OFTEN, text))
}

fn workers(context: &Context<'_>, kind: Kind, cause: Option<Cause>) -> Option<Evidence> {
    let busy = context.mean_share(|worker| worker.busy)?;
    let all = busy.0 >= ALL_BUSY;
    let supports = match (kind, picture(cause)) {
        (Kind::DataBound, Picture::ReadyBatches) | (Kind::ComputeBound, _) => !all,
        (Kind::DataBound, Picture::BusyWorkers) => all,
        // The workers prove nothing, or the cause itself explains why some of them are idle.
        _ => return None,
    };
    let text = if !all && !supports {
        // "busy 90 %" would read as if it supported the verdict.
        format!("workers idle {} of the time", busy.complement())
    } else {
        let hottest = context.hottest();
        let inside =
            hottest.map_or_else(String::new, |(name, share)| format!(": {share} in {name}"));
        format!("workers busy {busy}{inside}")
    };
    let busy = busy.0;
    Some(Evidence::new(
        "workers-busy",
        supports,
        busy,
        ALL_BUSY,
        text,
    ))
}

fn gpu(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let idle = context.gpu_idle()?;
    let much = idle.0 >= HIGH;
    let supports = match kind {
        Kind::DataBound | Kind::HostBound => much,
        Kind::ComputeBound | Kind::Balanced => !much,
        _ => return None,
    };
    let device = context.device_word();
    let source = context
        .reported_idle()
        .map_or("", |_| ", as the job reports");
    let text = format!("{device} idle {idle} of the time{source}");
    Some(Evidence::new("gpu-idle", supports, idle.0, HIGH, text))
}

/// Returns the upper bound that a seldom idle GPU sets for waits that cannot be seen. `None` for one of several ranks:
/// a collective keeps the GPU busy while another rank waits for data.
pub(super) fn at_most_lost(context: &Context<'_>) -> Option<Evidence> {
    let alone =
        context.job.ranks.len() == 1 && context.rank.world_size.is_none_or(|size| size == 1);
    let idle = context.gpu_idle().filter(|idle| alone && idle.0 < HIGH)?;
    let device = context.device_word();
    let text =
        format!("{device} idle {idle} of the time: no more than that is lost waiting for data");
    Some(Evidence::new("gpu-idle", false, idle.0, HIGH, text))
}

/// Returns how the time is divided between training and validation, and whether validation's waits are like the others.
fn validation(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let validation = context.rank.validation?;
    let waiting = Share::of(validation.waiting.0, validation.time.0)?.clamped();
    let supports = (waiting.0 >= MODERATE) == (kind == Kind::DataBound);
    (validation.time.0 >= SLIGHT).then(|| {
        let text = format!(
            "validation takes {} of the time, and {waiting} of that is waiting for its loader",
            validation.time
        );
        Evidence::new("validation", supports, waiting.0, MODERATE, text)
    })
}

/// Returns waits for something other than data.
fn other_waits(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let longest = context.rank.other_waits().next()?;
    let all = context.other_waits();
    (kind == Kind::HostBound && all.0 >= MODERATE).then(|| {
        let text = format!(
            "main thread waits {all} of the time, but not for batches: {}",
            longest.name
        );
        Evidence::supporting("other-waits", all.0, MODERATE, text)
    })
}

/// Returns the waits for the GIL as a fact against the kind: without a GPU that shows idle time, a step that the lock
/// slows down looks like computing.
fn gil(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let slow_step = matches!(kind, Kind::ComputeBound | Kind::Balanced);
    let waits = Cause::Gil
        .check(context, Kind::HostBound)
        .filter(|_| slow_step)?;
    Some(Evidence {
        supports: false,
        ..waits
    })
}

/// Returns the missing signal if the loader's figures are from the previous epoch: between two epochs there may be no
/// loader.
pub(super) fn earlier_epoch(context: &Context<'_>) -> Option<Missing> {
    let loader = context
        .loader
        .filter(|loader| loader.kind != LoaderKind::Other)?;
    let seconds = loader.gone_seconds.filter(|_| !context.job.ended)?;
    let mut others = context.other_loaders();
    let ended = if others.any(|it| it.gone_seconds.is_none()) {
        format!("{} has ended", loader.title())
    } else {
        "no loader now".to_owned()
    };
    let why = format!("{ended}: figures are {seconds:.0} s old");
    let hint = "the next epoch starts its workers again";
    Some(Missing::new("loader", why, hint))
}

/// Returns the missing signal if another process uses a GPU of the rank: then the GPU's idle time is not the rank's.
pub(super) fn shared_gpu(context: &Context<'_>) -> Option<Missing> {
    let used = context.gpus_in_use().into_iter();
    let mut shared = used.filter_map(|used| Some((used.gpu.now.index, used.other?)));
    let (index, other) = shared.next()?;
    let (pid, percent) = (other.pid, other.sm_percent?);
    let why = format!(
        "process {pid} also uses GPU {index} ({percent:.0} %): GPU load does not show what this rank does"
    );
    let hint = "run nothing else on this GPU, or let the job report its steps (docs/probe.md)";
    Some(Missing::new("gpu", why, hint))
}

/// Returns the signals that are not available: because of the access tier, and by the sources' own gaps.
pub(super) fn missing(access: Tier, gaps: &[Gap]) -> Vec<Missing> {
    let right = match access {
        Tier::T0 => Some(Missing::new(
            "same-user",
            "cannot read what another user's process waits for",
            "run pipetop as the job's user or as root",
        )),
        Tier::T1 => Some(Missing::new(
            "attach",
            "no permission to attach: cannot read Python stacks and loader settings",
            "run as root or with CAP_SYS_PTRACE, or `sysctl kernel.yama.ptrace_scope=0`",
        )),
        Tier::T2 | Tier::T3 => None,
    };
    let gaps = gaps.iter().filter(|gap| !gap.is_no_gpu());
    let gaps = gaps.map(|gap| Missing::new(&gap.source, &gap.reason, &gap.hint));
    right.into_iter().chain(gaps).collect()
}
