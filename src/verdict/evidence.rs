//! The facts that speak for the kind and those that speak against it, in words with their numbers.

use super::case::Case;
use super::kinds::{HIGH, MODERATE};
use super::{Cause, Evidence, Kind, Limit, Missing, causes, device};
use crate::sample::{Gap, Tier};

/// Facts about main thread, queue, workers and GPU, the deciding fact of the cause first.
pub(super) fn evidence(
    case: &Case<'_>,
    kind: Kind,
    limit: Option<Limit>,
    (cause, decisive): (Option<Cause>, Option<Evidence>),
) -> Vec<Evidence> {
    let about = [
        waits(case, kind),
        queue(case, kind, cause),
        workers(case, kind, cause),
        gpu(case, kind),
        gil(case, kind),
    ];
    let mut facts: Vec<Evidence> = decisive.into_iter().collect();
    if kind == Kind::CommunicationBound {
        facts.extend(device::communication(case));
    }
    facts.extend(about.into_iter().flatten());
    facts.extend(device::facts(case, kind, limit));
    // Stable: within each half the order above, which is the order of strength.
    facts.sort_by_key(|fact| !fact.supports);
    facts
}

fn fact(id: &'static str, supports: bool, value: f64, threshold: f64, text: String) -> Evidence {
    Evidence {
        id,
        supports,
        value,
        threshold: Some(threshold),
        text,
    }
}

fn waits(case: &Case<'_>, kind: Kind) -> Option<Evidence> {
    let wait = case.wait()?.share;
    let much = wait.0 >= MODERATE;
    let supports = much == (kind == Kind::DataBound);
    Some(fact(
        "wait",
        supports,
        wait.0,
        MODERATE,
        format!("trainer in the loader {wait} of the time"),
    ))
}

fn queue(case: &Case<'_>, kind: Kind, cause: Option<Cause>) -> Option<Evidence> {
    const OFTEN: f64 = 0.5;
    let empty = case.queue_empty()?;
    let often = empty.0 >= OFTEN;
    let supports = match kind {
        // Batches that are ready and still waited for are slow to hand over.
        Kind::DataBound if cause == Some(Cause::Ipc) => !often,
        Kind::DataBound | Kind::Balanced => often,
        Kind::ComputeBound | Kind::HostBound => !often,
        _ => return None,
    };
    Some(fact(
        "queue-empty",
        supports,
        empty.0,
        OFTEN,
        format!("queue empty {empty} of the time"),
    ))
}

fn workers(case: &Case<'_>, kind: Kind, cause: Option<Cause>) -> Option<Evidence> {
    const BUSY: f64 = 0.9;
    let busy = case.mean_share(|worker| worker.busy)?;
    let all = busy.0 >= BUSY;
    let supports = match (kind, cause) {
        // Here idle workers belong to the cause.
        (Kind::DataBound, Some(Cause::HeadOfLine | Cause::FewShards | Cause::WorkerRestart)) => {
            return None;
        }
        (Kind::DataBound, Some(Cause::Ipc)) | (Kind::ComputeBound, _) => !all,
        (Kind::DataBound, _) => all,
        _ => return None,
    };
    let text = if !all && !supports {
        // "busy 90 %" would read as if it spoke for them.
        format!("workers idle {} of the time", busy.rest())
    } else {
        let hottest = case.hottest();
        let inside =
            hottest.map_or_else(String::new, |(name, share)| format!(": {share} in {name}"));
        format!("workers busy {busy}{inside}")
    };
    Some(fact("workers-busy", supports, busy.0, BUSY, text))
}

fn gpu(case: &Case<'_>, kind: Kind) -> Option<Evidence> {
    let idle = case.gpu_idle()?;
    let much = idle.0 >= HIGH;
    let supports = match kind {
        Kind::DataBound | Kind::HostBound => much,
        Kind::ComputeBound | Kind::Balanced => !much,
        _ => return None,
    };
    let text = if case.reported_idle().is_some() {
        format!("device idle {idle} of the time, by the job's own report")
    } else {
        format!("GPU idle {idle} of the time")
    };
    Some(fact("gpu-idle", supports, idle.0, HIGH, text))
}

/// A step that is slow by the interpreter's lock looks like one that computes where no GPU shows that it rests.
fn gil(case: &Case<'_>, kind: Kind) -> Option<Evidence> {
    let slow_step = matches!(kind, Kind::ComputeBound | Kind::Balanced);
    let waits = causes::gil(case).filter(|_| slow_step)?;
    Some(Evidence {
        supports: false,
        ..waits
    })
}

/// Signals that are not there: by the access tier, and by the sources' own gaps.
pub(super) fn missing(access: Tier, gaps: &[Gap]) -> Vec<Missing> {
    let right = match access {
        Tier::T0 => Some(Missing {
            id: "same-user".into(),
            why: "what another user's process waits for cannot be read".into(),
            hint: "run pipetop as the user of the job, or as root".into(),
        }),
        Tier::T1 => Some(Missing {
            id: "attach".into(),
            why: "no right to attach: Python stacks and the loader's settings cannot be read"
                .into(),
            hint: "run as root or with CAP_SYS_PTRACE, or `sysctl kernel.yama.ptrace_scope=0`"
                .into(),
        }),
        Tier::T2 | Tier::T3 => None,
    };
    let gaps = gaps.iter().map(|gap| Missing {
        id: gap.source.clone(),
        why: gap.reason.clone(),
        hint: gap.hint.clone(),
    });
    right.into_iter().chain(gaps).collect()
}
