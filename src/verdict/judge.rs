//! The order of judgement: is there enough to judge, is it moving, do the signals agree, which kind, why, what to do.
//! Also delays changes, to keep a verdict from flickering.

use super::advice::advice_of_all;
use super::classify::{contradiction, kind, stall};
use super::confidence::confidence;
use super::context::Context;
use super::device::limit;
use super::early;
use super::evidence::{at_most_lost, earlier_epoch, evidence, missing, shared_gpu};
use super::level::SLIGHT;
use super::rules::{Cause, cause};
use super::standstill::Standstill;
use super::waits::{
    Waits, anywhere, idles, is_unclear, nothing_runs, unclassified_cpu, unclear, unseen,
    was_stopped, workers_compute,
};
use super::what_if::what_if;
use super::workers::{headspace, workers};
use super::worst::worst_rank;
use super::{Evidence, Interval, Kind, Level, Missing, Verdict};
use crate::model::rates::{RankRates, Rates};
use crate::model::{Model, Progress};
use crate::sample::Gap;
use crate::units::{ProcessKey, Share};

/// Number of judgements in a row in which a new kind, cause or rank must hold before it replaces the old one.
const MIN_TIMES: u32 = 2;
/// Id of the evidence for a lack of progress; its value is the seconds without a batch.
pub(super) const NO_PROGRESS: &str = "no-progress";

/// The parts of a verdict that may change only after several judgements: kind, cause and rank.
type VerdictKey = (Kind, Option<Cause>, Option<ProcessKey>);

/// Judges repeatedly, and changes its verdict only after several judgements.
#[derive(Debug, Clone, Default)]
pub struct Judge {
    previous: Option<Verdict>,
    other: Option<(VerdictKey, u32)>,
}

impl Judge {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the verdict on the model's window.
    pub fn judge(&mut self, model: &Model) -> Verdict {
        let gaps = model.sample().map_or(&[][..], |sample| &sample.gaps);
        let named = self
            .previous
            .as_ref()
            .and_then(|previous| previous.rank_key);
        let job = model.window().and_then(|rates| rates.job.as_ref());
        let ranks = job.map_or(&[][..], |job| &job.ranks);
        if !ranks.iter().any(|rank| Some(rank.key) == named) {
            // The old verdict is on another job, or on a rank that has ended.
            *self = Self::default();
        }
        let previous = self.previous.as_ref();
        let fresh = assess_after(previous, model.window(), &model.progress(), gaps);
        self.settle(fresh)
    }

    /// Returns `fresh`, unless its kind, cause or rank changed for the first time, or it is unclear after a clear
    /// verdict: then returns the old verdict.
    fn settle(&mut self, fresh: Verdict) -> Verdict {
        if let Some(previous) = &self.previous
            && is_settled(previous.kind)
            && previous.kind != Kind::Stalled
            && previous.rank_key == fresh.rank_key
            && fresh.warming_up.is_some_and(|so_far| so_far.unclear)
        {
            return previous.clone();
        }
        let previous = self.previous.as_ref().filter(|previous| {
            verdict_key(previous) != verdict_key(&fresh)
                && is_settled(previous.kind)
                && is_settled(fresh.kind)
                // A stall, and its end, are shown at once.
                && previous.kind != Kind::Stalled
                && fresh.kind != Kind::Stalled
        });
        if let Some(previous) = previous {
            let times = match self.other {
                Some((other, times)) if other == verdict_key(&fresh) => times + 1,
                _ => 1,
            };
            if times < MIN_TIMES {
                self.other = Some((verdict_key(&fresh), times));
                return previous.clone();
            }
        }
        self.other = None;
        self.previous = Some(fresh.clone());
        fresh
    }
}

fn verdict_key(verdict: &Verdict) -> VerdictKey {
    (verdict.kind, verdict.cause, verdict.rank_key)
}

/// Returns the verdict on one window. The same window always has the same verdict.
pub fn assess(rates: Option<&Rates>, progress: &Progress, gaps: &[Gap]) -> Verdict {
    assess_after(None, rates, progress, gaps)
}

/// Returns the verdict on one window, given the previous verdict. If the most likely kind is still the previous one, it
/// is kept even if the waits have become somewhat less clear; the previous rank is kept as long as no other loses
/// clearly more.
fn assess_after(
    previous: Option<&Verdict>,
    rates: Option<&Rates>,
    progress: &Progress,
    gaps: &[Gap],
) -> Verdict {
    let Some((rates, job)) = rates.and_then(|rates| Some((rates, rates.job.as_ref()?))) else {
        return undecided(Kind::WarmingUp, progress, vec![]);
    };
    let mut missing = missing(job.access, gaps);
    let no_gpu = gaps.iter().any(Gap::is_no_gpu);
    let named = previous.and_then(|previous| previous.rank_key);
    let Some(rank) = worst_rank(job, named) else {
        return undecided(Kind::Unknown, progress, missing);
    };
    let context = Context::new(rates, job, rank);
    missing.extend(earlier_epoch(&context));
    missing.extend(shared_gpu(&context));
    if let Some(still) = Standstill::of(&context, progress) {
        return stalled(&context, progress, still, missing);
    }
    if early::is_enough(progress) {
        let previous_kind = previous_kind(previous, rank);
        return judged(&context, progress, (missing, no_gpu), previous_kind);
    }
    let widened = early::widened(rates);
    let in_rates = widened.job.as_ref();
    let Some((job, rank)) = in_rates.and_then(|job| Some((job, worst_rank(job, named)?))) else {
        return undecided(Kind::WarmingUp, progress, missing);
    };
    let context = Context::new(&widened, job, rank);
    let warming_up = undecided(Kind::WarmingUp, progress, missing.clone());
    let so_far = early::progress(progress, rank.step.batches);
    if so_far.unclear {
        let previous_kind = previous_kind(previous, rank);
        let mut verdict = judged(&context, progress, (missing, no_gpu), previous_kind);
        if previous_kind == Some(verdict.kind) || early::is_clear(&context, progress, verdict.kind)
        {
            verdict.confidence = Share(verdict.confidence.0 * early::JOINT_LEVEL);
            return verdict;
        }
    }
    Verdict {
        warming_up: Some(so_far),
        ..with_rank(&context, warming_up)
    }
}

/// Returns the kind of the verdict before, if it was on this rank.
fn previous_kind(previous: Option<&Verdict>, rank: &RankRates) -> Option<Kind> {
    let previous = previous.filter(|previous| previous.rank_key == Some(rank.key))?;
    is_settled(previous.kind).then_some(previous.kind)
}

fn is_settled(kind: Kind) -> bool {
    !matches!(kind, Kind::WarmingUp | Kind::Unknown)
}

/// Returns the verdict on what was seen so far, however little that is. The pair holds the missing signals, and whether
/// the machine has no GPU.
fn judged(
    context: &Context<'_>,
    progress: &Progress,
    (missing, no_gpu): (Vec<Missing>, bool),
    previous_kind: Option<Kind>,
) -> Verdict {
    let rank = context.rank;
    let Some(wait) = rank.wait else {
        // The main thread was polled, but nothing shows whether it was in a loader.
        let why = (rank.waiting.is_some())
            .then(|| was_stopped(context).unwrap_or_else(|| unseen(context)));
        return unknown(context, progress, missing, why);
    };
    if let Some(text) = contradiction(context) {
        let mut verdict = with_rank(context, undecided(Kind::Unknown, progress, missing));
        verdict.evidence.push(against("contradiction", text));
        return verdict;
    }
    let Some(waits) = Waits::of(context, progress) else {
        let mut verdict = unknown(context, progress, missing, Some(unseen(context)));
        // If waits would not have been seen, their share is unknown, not zero.
        verdict.wait = None;
        return verdict;
    };
    if let Some(unknown_waits) = idles(context).or_else(|| workers_compute(context)) {
        let mut verdict = unknown(context, progress, missing, Some(unknown_waits));
        verdict.wait = None;
        return verdict;
    }
    let kind = kind(context, waits);
    let unclassified = || unclassified_cpu(context).or_else(|| nothing_runs(context));
    let unseen = match kind {
        // The waits that were seen suffice for this kind. For the others, a stop makes the share of waits too low, and
        // the GPU idles during it.
        Kind::DataBound => None,
        Kind::ComputeBound | Kind::Balanced => was_stopped(context).or_else(unclassified),
        _ => was_stopped(context),
    };
    if unseen.is_some() {
        return unknown(context, progress, missing, unseen);
    }
    // Early verdicts are checked by `is_clear` instead, at both ends of the intervals. If the GPU is almost never idle,
    // almost nothing is lost, whatever the main thread waits for.
    let vouched_for = context.gpu_idle().is_some_and(|idle| idle.0 < SLIGHT);
    if is_unclear(&wait)
        && !vouched_for
        && early::is_enough(progress)
        && (previous_kind != Some(kind) || wait.is_lost())
    {
        let text = format!("the wait share may be {}", anywhere(&wait));
        let why = unclear(context, &wait);
        let mut verdict = unknown(context, progress, missing, Some(why));
        verdict.evidence.insert(0, against("wait-unclear", text));
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
    let confidence = confidence(context, kind, (wait, stall), &evidence, no_gpu);
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
        advice: advice_of_all(context, (kind, limit), cause, stall),
        evidence,
        warming_up: None,
        ..undecided(kind, progress, missing)
    };
    let mut verdict = with_rank(context, verdict);
    if !vouched_for {
        // The kind rests on this share, so it is shown even where only the previous verdict or the early bounds settle
        // the kind.
        verdict.wait = Some(wait.into());
    }
    verdict
}

fn stalled(
    context: &Context<'_>,
    progress: &Progress,
    still: Standstill,
    missing: Vec<Missing>,
) -> Verdict {
    let mut verdict = with_rank(context, undecided(Kind::Stalled, progress, missing));
    verdict.confidence = still.confidence;
    let seconds = progress.seconds_without_batch.unwrap_or(progress.seconds);
    let fact = Evidence::new(NO_PROGRESS, true, seconds, None, still.text);
    verdict.evidence.push(fact);
    verdict.advice.push(still.advice);
    verdict
}

/// Returns the verdict `unknown`, with the reason why waits cannot be told from other time.
fn unknown(
    context: &Context<'_>,
    progress: &Progress,
    mut missing: Vec<Missing>,
    why: Option<Missing>,
) -> Verdict {
    if let Some(why) = why {
        missing.insert(0, why);
    }
    let mut verdict = with_rank(context, undecided(Kind::Unknown, progress, missing));
    verdict.evidence.extend(at_most_lost(context));
    verdict
}

fn against(id: &'static str, text: String) -> Evidence {
    Evidence::new(id, false, 1.0, None, text)
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
        // Batches from before the window do not count for the verdict, but the rates beside it show them: none would
        // contradict these.
        warming_up: (kind == Kind::WarmingUp)
            .then(|| early::progress(progress, progress.batches.filter(|batches| *batches == 0))),
    }
}

/// Adds what is known of the rank, for any kind.
fn with_rank(context: &Context<'_>, verdict: Verdict) -> Verdict {
    // If waits would not have been seen, their share is unknown, not zero.
    let known = context.wait().filter(|wait| wait.point().is_some());
    Verdict {
        rank: context.rank.rank,
        rank_key: Some(context.rank.key),
        wait: known.map(Interval::from),
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
    use crate::verdict::tests::scenarios;

    #[test]
    fn a_window_that_begins_does_not_deny_the_batches_before_it() {
        let so_far = |batches| {
            let progress = Progress {
                batches,
                ..Progress::default()
            };
            let verdict = assess(None, &progress, &[]);
            verdict.warming_up.map(|so_far| so_far.progress())
        };
        assert_eq!(so_far(Some(3)).as_deref(), Some("0 of 2 s"));
        let none = "0 of 2 s, 0 of 5 batches";
        assert_eq!(so_far(Some(0)).as_deref(), Some(none));
    }

    #[test]
    fn a_loader_that_ended_beside_another_is_named() {
        let (_, mut rates, _) = (scenarios::all().into_iter())
            .find(|(path, ..)| path.ends_with("two_slow_loaders.toml"))
            .unwrap();
        let progress = Progress {
            seconds: 12.0,
            batches: Some(100),
            ..Progress::default()
        };
        let mut gone = |which: fn(bool) -> bool| {
            let rank = &mut rates.job.as_mut().unwrap().ranks[0];
            let main = rank.main_loader().unwrap().id;
            for loader in &mut rank.loaders {
                loader.gone_seconds = which(loader.id == main).then_some(2.0);
            }
            let missing = assess(Some(&rates), &progress, &[]).missing;
            let loader = missing.into_iter().find(|it| it.id == "loader");
            loader.map(|it| it.why)
        };
        assert_eq!(gone(|_| false), None);
        let ended = gone(|is_main| is_main).unwrap();
        assert!(
            ended.starts_with("loader ") && ended.ends_with(" has ended: figures are 2 s old"),
            "{ended}"
        );
        assert_eq!(
            gone(|_| true).as_deref(),
            Some("no loader now: figures are 2 s old")
        );
    }

    #[test]
    fn a_kind_that_stays_has_the_figure_that_it_rests_on() {
        let (_, mut rates, before) = (scenarios::all().into_iter())
            .find(|(path, ..)| path.ends_with("blog_starved.toml"))
            .unwrap();
        rates.gpus.clear();
        let mut stayed = 0;
        for (seconds, unclear) in [5.0, 12.0]
            .into_iter()
            .flat_map(|seconds| [0.05, 0.15, 0.25].map(|unclear| (seconds, unclear)))
        {
            let wait = rates.job.as_mut().unwrap().ranks[0].wait.as_mut().unwrap();
            (wait.share, wait.low, wait.high) = (Share(0.15), Share(0.05), Share(0.3));
            wait.unclear = Share(unclear);
            let progress = Progress {
                seconds,
                batches: Some(100),
                ..Progress::default()
            };
            let verdict = assess_after(Some(&before), Some(&rates), &progress, &[]);
            let stays = verdict.kind == Kind::DataBound;
            stayed += u32::from(stays && unclear > 0.1);
            assert_eq!(
                stays,
                verdict.wait.is_some() && verdict.stall.is_some(),
                "{seconds} s, {unclear}"
            );
        }
        assert!(stayed > 0, "none was unclear");
    }

    #[test]
    fn another_cause_or_rank_must_be_found_twice() {
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
