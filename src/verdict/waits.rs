//! Whether the waits of a rank can be seen at all. Waits that cannot be seen are not zero waits.
//!
//! [`Waits`] is the proof: every kind but `unknown`, `warming-up` and `stalled` needs one, and only evidence makes one.

use super::Missing;
use super::context::Context;
use super::level::{HIGH, MODERATE, SLIGHT};
use crate::model::Progress;
use crate::model::rates::Estimate;
use crate::sample::{LoaderKind, Tier};
use crate::units::Share;

/// An interval of the wait share that is wider says nothing.
const UNCLEAR: f64 = 0.5;

/// The share of the waits may be nearly anything, or whether they are many hangs on polls that do not show whether the main
/// thread was in a loader. From so many waits on the kind is the same, however many more they are.
pub(super) fn is_unclear(wait: &Estimate) -> bool {
    let wide = wait.high.0 - wait.low.0 > UNCLEAR || wait.unclear.0 > HIGH;
    wide && wait.low.0 < MODERATE
}

/// The wait share of a rank whose waits would have been seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits(Estimate);

impl Waits {
    /// `None` without a loader whose waits are recognised, and where nothing shows that the rank takes batches from
    /// it: neither a count of batches nor a wait.
    pub(super) fn of(context: &Context<'_>, progress: &Progress) -> Option<Self> {
        let wait = context.wait()?;
        // Another library's is known by nothing but that the main thread was seen to ask it for batches, and lately.
        let met = context.loader?.kind == LoaderKind::Other;
        let counts = [context.rank.step.batches, progress.batches];
        let counted = counts.into_iter().flatten().any(|batches| batches > 0);
        (met || counted || wait.low.0 >= SLIGHT).then_some(Self(wait))
    }

    pub(super) fn estimate(self) -> Estimate {
        self.0
    }
}

/// What is missing where there is no proof: what the main thread was seen in, and what would tell more.
pub(super) fn unseen(context: &Context<'_>) -> Missing {
    let (why, hint) = match context.loader {
        None => (
            "no known loader was seen",
            "let the job report its steps (docs/probe.md)",
        ),
        Some(_) => (
            "no batch was seen to leave the loader",
            "start the job with `pipetop run`, or let it report its steps (docs/probe.md)",
        ),
    };
    let seen = context.rank.activity.first();
    let seen = seen.map_or_else(String::new, |activity| {
        format!(
            "; the main thread was seen in {}, {} of its stacks",
            activity.name, activity.share
        )
    });
    Missing {
        id: "data-waits".into(),
        why: format!("{why}: waits for data cannot be distinguished from other work{seen}"),
        hint: hint.into(),
    }
}

/// The main thread uses a CPU, and neither its stack nor a GPU tells whether for the step or for batches.
pub(super) fn works_unseen(context: &Context<'_>) -> Option<Missing> {
    let cpu = context.rank.main_cpu.filter(|cpu| cpu.0 >= HIGH)?;
    let blind = context.job.access == Tier::T1 && context.gpu_idle().is_none();
    blind.then(|| Missing {
        id: "main-thread".into(),
        why: format!(
            "the main thread is on a CPU {cpu} of the time: without Python stacks or a GPU, work on batches cannot be \
             distinguished from the step"
        ),
        hint: "start the job with `pipetop run`, or let it report its steps (docs/probe.md)".into(),
    })
}

/// What is missing where the share of the waits may be nearly anything.
pub(super) fn unclear(wait: &Estimate) -> Missing {
    // Without stacks, the loader is known and what it waits for is not.
    if wait.unclear.0 > HIGH && wait.unknown == Share::ZERO {
        return Missing {
            id: "data-waits".into(),
            why: format!(
                "the main thread waits for another thread {} of the time: without Python stacks, waits for data cannot be \
                 distinguished from other work",
                wait.unclear
            ),
            hint: "start the job with `pipetop run`, or let it report its steps (docs/probe.md)"
                .into(),
        };
    }
    // Without the time in which the loader was not recognised, the interval would be clear.
    let unrecognised = wait.high.0 - wait.low.0 - wait.unknown.0 <= UNCLEAR;
    let why = if unrecognised {
        format!(
            "the loader was not recognised in {} of this time: there, waits for data cannot be distinguished from other \
             work",
            wait.unknown
        )
    } else {
        format!(
            "too little was seen of the waits: their share may be anywhere from {} to {}",
            wait.low, wait.high
        )
    };
    Missing {
        id: "data-waits".into(),
        why,
        hint: "watch for longer, or let the job report its steps (docs/probe.md)".into(),
    }
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
        assert!(!is_unclear(&wait(0.0, 0.15)));
        assert!(is_unclear(&wait(0.0, 0.3)));
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
            unclear(&wait).why
        };
        assert!(
            why(0.8).contains("was not recognised in 80 %"),
            "{}",
            why(0.8)
        );
        assert!(why(0.8).contains("waits for data cannot be distinguished from other work"));
        assert!(why(0.1).starts_with("too little was seen of the waits"));
        let blind = Estimate {
            unclear: Share(0.6),
            ..Estimate::default()
        };
        let why = unclear(&blind).why;
        assert!(
            why.starts_with("the main thread waits for another thread 60 %"),
            "{why}"
        );
    }
}
