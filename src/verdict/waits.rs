//! Whether the waits of a rank can be seen at all. If they cannot be seen, that does not mean that there are none.
//!
//! [`Waits`] is the proof that they can: every kind except `unknown`, `warming-up` and `stalled` needs one, and only
//! evidence makes one.

use super::Missing;
use super::busy_time::FULL;
use super::context::Context;
use super::device::starved_in_backward;
use super::level::{HIGH, MODERATE, SLIGHT};
use crate::model::Progress;
use crate::model::rates::{Estimate, LoaderRates, RankRates, WorkerRates};
use crate::sample::{CELLS, LoaderKind, Tier};
use crate::units::Share;

/// Hint for the user: how to make waits visible that are not seen.
const LET_IT_REPORT: &str =
    "start the job with `pipetop run`, or let it report its steps (docs/probe.md)";
/// Id of the missing signal if waits for data are not seen.
pub(super) const DATA_WAITS: &str = "data-waits";
/// Words for a main thread that is in an event loop, in no function of its program.
pub(super) const IDLES: &str = "the main thread waits for events";
pub(super) const BETWEEN_CELLS: &str = ", as between two notebook cells";
/// Maximum number of the main thread's functions to list, and the minimum share of the time of each.
const MAX_FUNCTIONS: usize = 3;
const MIN_SHARE: f64 = 0.1;

/// Width of the wait share's interval above which it is unclear.
const UNCLEAR: f64 = 0.5;

/// Returns whether the share of the waits is unclear: the interval is wide, or too many polls do not show whether the
/// main thread was in a loader. If the lower bound is moderate or higher, a wide interval does not matter: the kind is
/// the same for any higher share.
pub(super) fn is_unclear(wait: &Estimate) -> bool {
    let wide = wait.high.0 - wait.low.0 > UNCLEAR && wait.low.0 < MODERATE;
    wide || wait.point().is_none()
}

/// The wait share of a rank whose waits would have been seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits(Estimate);

impl Waits {
    /// Returns `None` without a loader whose waits are recognised, or if nothing shows that the rank takes batches from
    /// it: neither a count of batches nor a wait.
    pub(super) fn of(context: &Context<'_>, progress: &Progress) -> Option<Self> {
        let wait = context.wait()?;
        // A loader of another library is only known because the main thread was seen to request batches from it, and
        // recently.
        let met = context.loader?.kind == LoaderKind::Other;
        let counts = [context.rank.step.batches, progress.batches];
        let counted = counts.into_iter().flatten().any(|batches| batches > 0);
        (met || counted || wait.low.0 >= SLIGHT).then_some(Self(wait))
    }

    pub(super) fn estimate(self) -> Estimate {
        self.0
    }
}

/// Returns the missing signal if there is no proof: what the main thread was seen in, and what would show more.
pub(super) fn unseen(context: &Context<'_>) -> Missing {
    let (why, hint) = match context.loader {
        None => (
            "no known loader was seen",
            "let the job report its steps (docs/probe.md)",
        ),
        Some(_) => ("no batch was seen to leave the loader", LET_IT_REPORT),
    };
    let seen = main_functions(context);
    let why = format!("{why}: waits for data cannot be told from other work{seen}");
    Missing::new(DATA_WAITS, why, hint)
}

/// Returns the functions that the main thread was seen in most, in words that end a sentence.
fn main_functions(context: &Context<'_>) -> String {
    let functions = context.rank.activity.iter();
    let seen = functions.map(|one| (context.time_in(|name| name == one.name), &one.name));
    let often = seen
        .filter(|(share, _)| share.0 >= MIN_SHARE)
        .take(MAX_FUNCTIONS);
    let seen = often.map(|(share, name)| format!("{share} of the time in {name}"));
    let seen: Vec<String> = seen.collect();
    match &seen[..] {
        [] => String::new(),
        seen => format!("; the main thread spends {}", seen.join(", ")),
    }
}

/// Returns the missing signal if nothing of the rank runs for much of the time, and nothing shows what it waits for:
/// that time is not computing.
pub(super) fn nothing_runs(context: &Context<'_>) -> Option<Missing> {
    let starved = starved_in_backward(context.rank).0;
    let blocked = context.rank.blocked?.0 - starved.max(starved_beside_ready_batches(context).0);
    let blocked = Some(Share(blocked)).filter(|blocked| blocked.0 >= HIGH)?;
    let unclear = context.rank.wait.as_ref().is_none_or(is_unclear);
    let waits = if unclear {
        "its main thread waits, but waits for data cannot be told from other work"
    } else {
        "its main thread waits, but not in the loader"
    };
    context.gpu_idle().is_none().then(|| {
        let seen = main_functions(context);
        let why = format!("the process is blocked {blocked} of the time: {waits}{seen}");
        Missing::new("main-thread", why, "look at what that function waits for")
    })
}

/// Returns the share of time in which the threads that the main thread waits for may have lacked a CPU, on a full machine.
/// That time counts as a slow step only if batches are ready all the time, so that none of it is a wait for data.
fn starved_beside_ready_batches(context: &Context<'_>) -> Share {
    let empty = context.queue_empty_at_most();
    let ready = empty.is_some_and(|empty| empty.0 < SLIGHT);
    let host = &context.rates.host;
    let full = host.cpu.is_some_and(|cpu| cpu >= FULL);
    let lacked = host.pressure_cpu.filter(|_| ready && full);
    lacked.unwrap_or_default()
}

/// Returns the missing signal if the main thread is in an event loop for much of the time, or for enough to hide the
/// waits. It does not train there itself, so all shares of the time are too low; and what it awaits is not seen.
pub(super) fn idles(context: &Context<'_>) -> Option<Missing> {
    let idle = context.rank.idle();
    let seen = context.wait().is_some_and(|wait| wait.low.0 >= MODERATE);
    let hides = idle.0 >= MODERATE && !seen;
    (idle.0 >= HIGH || hides).then(|| {
        let (what, hint) = if is_notebook(context.rank) {
            let what = format!("{BETWEEN_CELLS}, or while one awaits");
            (what, "watch it while it trains")
        } else {
            let what = ": whether it awaits data is not seen".to_owned();
            (what, "let the job report its steps (docs/probe.md)")
        };
        Missing::new(
            "main-thread",
            format!("{IDLES} {idle} of the time{what}"),
            hint,
        )
    })
}

/// Whether the main thread's event loop mostly waits for the next cell of a notebook.
pub(super) fn is_notebook(rank: &RankRates) -> bool {
    2.0 * rank.time_not_for_data(CELLS).0 >= rank.idle().0
}

/// Minimum share of their busy time in which workers train or run a model, if they make the steps and not batches.
const WORKERS_TRAIN: f64 = 0.1;
const WORKERS_INFER: f64 = 0.5;
/// Maximum share of the time in which stacks show a model to a main thread that leaves the steps to its workers.
const LEAVES_STEPS: f64 = 0.01;

/// Returns the missing signal if workers of the program's own train, or run a model that the main thread does not run: what
/// it waits for may then be steps and not batches, as in an evolution strategy or of a parameter server.
pub(super) fn workers_compute(context: &Context<'_>) -> Option<Missing> {
    context.wait().filter(|wait| wait.share.0 >= SLIGHT)?;
    let own =
        |loader: &&LoaderRates| matches!(loader.kind, LoaderKind::Other | LoaderKind::Processes);
    let workers = &context.loader.filter(own)?.workers;
    let sum = |of: fn(&WorkerRates) -> Option<Share>| {
        let all = workers.iter().filter_map(|worker| Some(of(worker)?.0));
        all.sum::<f64>()
    };
    let busy = sum(|worker| worker.busy);
    let [trains, infers] = [sum(|worker| worker.trains), sum(|worker| worker.infers)];
    let leaves = (context.rank.computing).is_some_and(|computing| computing.0 < LEAVES_STEPS);
    let what = if busy > 0.0 && trains >= WORKERS_TRAIN * busy {
        "train"
    } else if busy > 0.0 && trains + infers >= WORKERS_INFER * busy && leaves {
        "run a model"
    } else {
        return None;
    };
    let why = format!(
        "the workers {what}: whether the main thread waits for data or for steps is unknown"
    );
    Some(Missing::new(DATA_WAITS, why, LET_IT_REPORT))
}

/// Returns the missing signal if the trainer was stopped for much of the time, and runs again.
pub(super) fn was_stopped(context: &Context<'_>) -> Option<Missing> {
    let stopped = context.rank.stopped.filter(|it| it.0 >= HIGH)?;
    let why = format!("the process was stopped {stopped} of the time");
    Some(Missing::new("main-thread", why, "watch it while it runs"))
}

/// Returns the missing signal if the main thread uses a CPU, and neither its stack nor a GPU shows whether that is for
/// the step or for batches.
pub(super) fn unclassified_cpu(context: &Context<'_>) -> Option<Missing> {
    let cpu = context.rank.main_cpu.filter(|cpu| cpu.0 >= HIGH)?;
    let blind = context.job.access == Tier::T1 && context.gpu_idle().is_none();
    blind.then(|| {
        let why = format!(
            "the main thread is on a CPU {cpu} of the time: without Python stacks or a GPU, work on batches cannot be told \
             from the step"
        );
        Missing::new("main-thread", why, LET_IT_REPORT)
    })
}

pub(super) fn anywhere(wait: &Estimate) -> String {
    format!("anywhere from {} to {}", wait.low, wait.high)
}

/// Returns the missing signal if the share of the waits is unclear.
pub(super) fn unclear(context: &Context<'_>, wait: &Estimate) -> Missing {
    let mut missing = too_wide(context.job.access, wait);
    missing.why += &main_functions(context);
    missing
}

/// Returns why the interval is wide.
fn too_wide(access: Tier, wait: &Estimate) -> Missing {
    // Without stacks, the loader is known, but not what the main thread waits for.
    if access == Tier::T1 && wait.unclear.0 > HIGH && wait.unknown == Share::ZERO {
        let why = format!(
            "the main thread waits for another thread {} of the time: without Python stacks, waits for data cannot be told \
             from other work",
            wait.unclear
        );
        return Missing::new(DATA_WAITS, why, LET_IT_REPORT);
    }
    // Without this time, the interval would be narrow enough.
    let unknown = Share(wait.unknown.0.max(wait.unclear.0));
    let why = if unknown > Share::ZERO && wait.high.0 - wait.low.0 - unknown.0 <= UNCLEAR {
        format!("{unknown} of the time, waits for data cannot be told from other work")
    } else {
        let range = anywhere(wait);
        format!("too little was seen: the waits' share may be {range}")
    };
    let hint = "watch for longer, or let the job report its steps (docs/probe.md)";
    Missing::new(DATA_WAITS, why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_recognised_loader_is_no_time_without_waits() {
        let wait = |low, unknown| Estimate {
            share: Share(low),
            low: Share(low),
            high: Share(low + unknown),
            polls: 1000,
            unknown: Share(unknown),
            unclear: Share(unknown),
            early: None,
        };
        assert!(!is_unclear(&wait(0.0, 0.08)));
        assert!(is_unclear(&wait(0.0, 0.15)));
        assert!(!is_unclear(&wait(0.4, 0.3)));
    }

    #[test]
    fn a_wide_interval_has_its_own_reason() {
        let why = |unknown| {
            let wait = Estimate {
                share: Share(0.01),
                low: Share::ZERO,
                high: Share(0.85),
                polls: 1000,
                unknown: Share(unknown),
                unclear: Share(unknown),
                early: None,
            };
            too_wide(Tier::T2, &wait).why
        };
        let unrecognised = "80 % of the time, waits for data cannot be told from other work";
        assert_eq!(why(0.8), unrecognised);
        assert!(why(0.1).starts_with("too little was seen: "));
        // The loader was recognised all the time.
        let asleep = Estimate {
            high: Share(0.37),
            unclear: Share(0.26),
            ..Estimate::default()
        };
        let why = |access| too_wide(access, &asleep).why;
        let blind = "the main thread waits for another thread 26 %";
        assert!(why(Tier::T1).starts_with(blind), "{}", why(Tier::T1));
        let seen = "26 % of the time, waits for data cannot be told from other work";
        assert_eq!(why(Tier::T2), seen);
    }
}
