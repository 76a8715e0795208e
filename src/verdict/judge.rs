//! The order of judgement: is there enough to judge, is it moving, do the signals agree, which kind,
//! why, what to do. And the patience that keeps a verdict from flickering.

use super::advice::advice;
use super::classify::{contradiction, kind, stall};
use super::confidence::confidence;
use super::context::Context;
use super::device::limit;
use super::early;
use super::evidence::{earlier_epoch, evidence, missing};
use super::level::SLIGHT;
use super::rule::Situation;
use super::rules::{Cause, cause};
use super::waits::{Waits, is_unclear, unclear, unseen, works_unseen};
use super::what_if::what_if;
use super::workers::{headspace, workers};
use super::worst::worst_rank;
use super::{Evidence, Interval, Kind, Level, Missing, Verdict};
use crate::model::rates::{RankRates, Rates};
use crate::model::{Model, Progress};
use crate::sample::Gap;
use crate::units::{ProcessKey, Share};

/// A new kind, another cause or another rank must hold in so many judgements before it replaces what was said.
const PATIENCE: u32 = 2;
/// Without a batch for so many times the usual pause, and at least so long, a job is stuck.
const STALLED_PAUSES: f64 = 20.0;
const STALLED_SECONDS: f64 = 10.0;

/// What may not change without patience.
type What = (Kind, Option<Cause>, Option<ProcessKey>);

/// Judges again and again, and changes its mind only with patience.
#[derive(Debug, Clone, Default)]
pub struct Judge {
    said: Option<Verdict>,
    other: Option<(What, u32)>,
}

impl Judge {
    pub fn new() -> Self {
        Self::default()
    }

    /// The verdict on the model's window.
    pub fn judge(&mut self, model: &Model) -> Verdict {
        let gaps = model.sample().map_or(&[][..], |sample| &sample.gaps);
        let named = self.said.as_ref().and_then(|said| said.rank_key);
        let job = model.window().and_then(|rates| rates.job.as_ref());
        let ranks = job.map_or(&[][..], |job| &job.ranks);
        if !ranks.iter().any(|rank| Some(rank.key) == named) {
            // Of another job, or of a rank that has ended.
            *self = Self::default();
        }
        let said = self.said.as_ref();
        let fresh = assess_after(said, model.window(), &model.progress(), gaps);
        self.settle(fresh)
    }

    /// Takes `fresh` over, unless it says another kind, cause or rank than before for the first time, or that what was
    /// clear is not clear any more.
    fn settle(&mut self, fresh: Verdict) -> Verdict {
        if let Some(said) = &self.said
            && is_settled(said.kind)
            && said.kind != Kind::Stalled
            && said.rank_key == fresh.rank_key
            && fresh.warming_up.is_some_and(|so_far| so_far.unclear)
        {
            return said.clone();
        }
        let said = self.said.as_ref().filter(|said| {
            what(said) != what(&fresh)
                && is_settled(said.kind)
                && is_settled(fresh.kind)
                // That nothing moves is seen at once, and that it moves again.
                && said.kind != Kind::Stalled
                && fresh.kind != Kind::Stalled
        });
        if let Some(said) = said {
            let times = match self.other {
                Some((other, times)) if other == what(&fresh) => times + 1,
                _ => 1,
            };
            if times < PATIENCE {
                self.other = Some((what(&fresh), times));
                return said.clone();
            }
        }
        self.other = None;
        self.said = Some(fresh.clone());
        fresh
    }
}

fn what(verdict: &Verdict) -> What {
    (verdict.kind, verdict.cause, verdict.rank_key)
}

/// The verdict on one window. Pure: the same window gives the same verdict.
pub fn assess(rates: Option<&Rates>, progress: &Progress, gaps: &[Gap]) -> Verdict {
    assess_after(None, rates, progress, gaps)
}

/// The same after what was said before: a kind that was given is not doubted as long as it is the most likely one, nor the
/// rank that it was given for as long as no other loses clearly more.
fn assess_after(
    said: Option<&Verdict>,
    rates: Option<&Rates>,
    progress: &Progress,
    gaps: &[Gap],
) -> Verdict {
    let Some((rates, job)) = rates.and_then(|rates| Some((rates, rates.job.as_ref()?))) else {
        return undecided(Kind::WarmingUp, progress, vec![]);
    };
    let mut missing = missing(job.access, gaps);
    let named = said.and_then(|said| said.rank_key);
    let Some(rank) = worst_rank(job, named) else {
        return undecided(Kind::Unknown, progress, missing);
    };
    let context = Context::new(rates, job, rank);
    missing.extend(earlier_epoch(&context));
    if is_stopped(rank) || is_stuck(progress) {
        return stalled(&context, progress, missing);
    }
    if early::is_enough(progress) {
        return judged(&context, progress, missing, previous(said, rank));
    }
    let widened = early::widened(rates);
    let in_rates = widened.job.as_ref();
    let Some((job, rank)) = in_rates.and_then(|job| Some((job, worst_rank(job, named)?))) else {
        return undecided(Kind::WarmingUp, progress, missing);
    };
    let context = Context::new(&widened, job, rank);
    let warming_up = undecided(Kind::WarmingUp, progress, missing.clone());
    let so_far = early::so_far(progress, rank.step.batches);
    if so_far.unclear {
        let previous = previous(said, rank);
        let mut verdict = judged(&context, progress, missing, previous);
        if previous == Some(verdict.kind) || early::is_clear(&context, progress, verdict.kind) {
            verdict.confidence = Share(verdict.confidence.0 * early::HOLDS);
            return verdict;
        }
    }
    Verdict {
        warming_up: Some(so_far),
        ..with_rank(&context, warming_up)
    }
}

/// The kind that was given for this rank.
fn previous(said: Option<&Verdict>, rank: &RankRates) -> Option<Kind> {
    let said = said.filter(|said| said.rank_key == Some(rank.key))?;
    is_settled(said.kind).then_some(said.kind)
}

fn is_settled(kind: Kind) -> bool {
    !matches!(kind, Kind::WarmingUp | Kind::Unknown)
}

/// The verdict that what was seen so far gives, however little that is.
fn judged(
    context: &Context<'_>,
    progress: &Progress,
    missing: Vec<Missing>,
    previous: Option<Kind>,
) -> Verdict {
    let rank = context.rank;
    let Some(wait) = rank.wait else {
        return with_rank(context, undecided(Kind::Unknown, progress, missing));
    };
    if let Some(text) = contradiction(context) {
        let mut verdict = with_rank(context, undecided(Kind::Unknown, progress, missing));
        verdict.evidence.push(against("contradiction", text));
        return verdict;
    }
    let Some(waits) = Waits::of(context, progress) else {
        let mut verdict = with_rank(context, undecided(Kind::Unknown, progress, missing));
        verdict.missing.insert(0, unseen(context));
        return verdict;
    };
    let kind = kind(context, waits);
    if let (Kind::ComputeBound | Kind::Balanced, Some(unseen)) = (kind, works_unseen(context)) {
        let mut verdict = with_rank(context, undecided(Kind::Unknown, progress, missing));
        verdict.missing.insert(0, unseen);
        return verdict;
    }
    // Early, each end is tried.
    // A GPU that hardly rests loses next to nothing, whatever the main thread waits for.
    let vouched_for = context.gpu_idle().is_some_and(|idle| idle.0 < SLIGHT);
    if is_unclear(&wait) && !vouched_for && early::is_enough(progress) && previous != Some(kind) {
        let text = format!(
            "the wait share may be anywhere from {} to {}",
            wait.low, wait.high
        );
        let mut verdict = with_rank(context, undecided(Kind::Unknown, progress, missing));
        verdict.missing.insert(0, unclear(&wait));
        verdict.evidence.push(against("wait-unclear", text));
        return verdict;
    }
    let stall = stall(context, waits);
    let found = cause(context, kind);
    let (cause, decisive) = found.map_or((None, None), |(cause, fact)| (Some(cause), Some(fact)));
    let limit = (kind == Kind::ComputeBound)
        .then(|| limit(context))
        .flatten();
    let evidence = evidence(context, kind, limit, (cause, decisive));
    let headspace = Some(headspace(context, stall));
    let helps = cause.is_none_or(|cause| cause.rule().more_workers_help);
    let workers = workers(context, kind == Kind::DataBound && helps);
    let situation = Situation {
        context,
        workers,
        stall,
    };
    let confidence = confidence(context, kind, wait, &evidence);
    let verdict = Verdict {
        kind,
        cause,
        level: Level::of(stall.share),
        stall: Some(stall),
        confidence,
        headspace,
        workers,
        what_if: what_if(context, kind, cause, workers),
        period_batches: rank.period_batches,
        limit,
        advice: advice(&situation, (kind, limit), cause),
        evidence,
        warming_up: None,
        ..undecided(kind, progress, missing)
    };
    with_rank(context, verdict)
}

fn is_stopped(rank: &RankRates) -> bool {
    matches!(rank.state, Some('T' | 't'))
}

fn is_stuck(progress: &Progress) -> bool {
    let (Some(without), Some(usual)) = (progress.seconds_without_batch, progress.usual_pause)
    else {
        return false;
    };
    without >= STALLED_SECONDS.max(STALLED_PAUSES * usual)
}

fn stalled(context: &Context<'_>, progress: &Progress, missing: Vec<Missing>) -> Verdict {
    let mut verdict = with_rank(context, undecided(Kind::Stalled, progress, missing));
    let (text, advice) = if is_stopped(context.rank) {
        verdict.confidence = Share(0.98);
        let text = format!(
            "process {} is stopped by a signal or a debugger",
            context.rank.key.pid
        );
        (
            text,
            format!("resume it with `kill -CONT {}`", context.rank.key.pid),
        )
    } else {
        verdict.confidence = Share(0.8);
        let seconds = progress.seconds_without_batch.unwrap_or_default();
        let text = format!("no batch was taken for {seconds:.0} s");
        (
            text,
            "look at what the main thread and the workers are blocked in".into(),
        )
    };
    verdict.evidence.push(Evidence {
        id: "no-progress",
        supports: true,
        value: progress.seconds_without_batch.unwrap_or(progress.seconds),
        threshold: None,
        text,
    });
    verdict.advice.push(advice);
    verdict
}

fn against(id: &'static str, text: String) -> Evidence {
    Evidence {
        id,
        supports: false,
        value: 1.0,
        threshold: None,
        text,
    }
}

fn undecided(kind: Kind, progress: &Progress, missing: Vec<Missing>) -> Verdict {
    Verdict {
        kind,
        cause: None,
        level: Level::None,
        rank: None,
        rank_key: None,
        wait: None,
        gpu_idle: None,
        stall: None,
        confidence: Share::ZERO,
        headspace: None,
        workers: None,
        what_if: Err("there is no verdict yet".to_owned()),
        period_batches: None,
        limit: None,
        evidence: vec![],
        missing,
        advice: vec![],
        seconds: progress.seconds,
        batches: None,
        warming_up: (kind == Kind::WarmingUp)
            .then(|| early::so_far(progress, progress.batches.and(Some(0)))),
    }
}

/// Fills in what is known of the rank, whatever the kind.
fn with_rank(context: &Context<'_>, verdict: Verdict) -> Verdict {
    Verdict {
        rank: context.rank.rank,
        rank_key: Some(context.rank.key),
        wait: context.wait().map(|wait| Interval {
            share: wait.share,
            low: wait.low,
            high: wait.high,
        }),
        gpu_idle: context.gpu_idle(),
        seconds: context.rates.seconds,
        batches: context.rank.step.batches,
        ..verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::literals::key;

    #[test]
    fn another_cause_or_rank_is_said_when_it_was_found_twice() {
        let found = |cause, pid| Verdict {
            cause,
            rank_key: Some(key(pid)),
            ..undecided(Kind::DataBound, &Progress::default(), vec![])
        };
        let mut judge = Judge::new();
        let mut said = |cause, pid| {
            let said = judge.settle(found(cause, pid));
            (said.cause, said.rank_key.unwrap().pid.0)
        };
        let cpu = Some(Cause::CpuPreprocess);
        assert_eq!(said(cpu, 100), (cpu, 100));
        assert_eq!(said(None, 100), (cpu, 100));
        assert_eq!(said(cpu, 100), (cpu, 100));
        assert_eq!(said(cpu, 101), (cpu, 100));
        assert_eq!(said(cpu, 101), (cpu, 101));
        assert_eq!(said(None, 101), (cpu, 101));
        assert_eq!(said(None, 101), (None, 101));
    }
}
