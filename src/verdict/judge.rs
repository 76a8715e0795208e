//! The order of judgement: is there enough to judge, is it moving, do the signals agree, which kind,
//! why, what to do. And the patience that keeps a verdict from flickering.

use super::advice::{advice, headspace, workers};
use super::case::Case;
use super::causes::cause;
use super::confidence::confidence;
use super::device::{limit, time_in_collectives};
use super::evidence::{evidence, missing};
use super::kinds::{HIGH, SLIGHT, contradiction, kind, level, stall};
use super::what_if::what_if;
use super::{Evidence, Interval, Kind, Level, Missing, Verdict, WarmingUp};
use crate::model::rates::{JobRates, RankRates, Rates};
use crate::model::{Model, Progress};
use crate::sample::Gap;
use crate::units::Share;

/// What must have been seen of a job before a verdict.
const BATCHES_NEEDED: u64 = 20;
const SECONDS_NEEDED: f64 = 10.0;
/// A new kind must hold in so many judgements before it replaces one that was said.
const PATIENCE: u32 = 2;
/// Without a batch for so many times the usual pause, and at least so long, a job is stuck.
const STALLED_PAUSES: f64 = 20.0;
const STALLED_SECONDS: f64 = 10.0;

/// Judges again and again, and changes its mind only with patience.
#[derive(Debug, Default)]
pub struct Judge {
    said: Option<Verdict>,
    other: Option<(Kind, u32)>,
}

impl Judge {
    pub fn new() -> Self {
        Self::default()
    }

    /// The verdict on the model's window.
    pub fn judge(&mut self, model: &Model) -> Verdict {
        let gaps = model.sample().map_or(&[][..], |sample| &sample.gaps);
        let fresh = assess(model.window(), &model.progress(), gaps);
        self.settle(fresh)
    }

    /// Takes `fresh` over, unless it says another kind than before for the first time.
    fn settle(&mut self, fresh: Verdict) -> Verdict {
        let settled = |kind: Kind| !matches!(kind, Kind::WarmingUp | Kind::Unknown);
        let said = self.said.as_ref().filter(|said| {
            said.kind != fresh.kind
                && settled(said.kind)
                && settled(fresh.kind)
                && said.rank_key == fresh.rank_key
                // That nothing moves is seen at once, and that it moves again.
                && said.kind != Kind::Stalled
                && fresh.kind != Kind::Stalled
        });
        if let Some(said) = said {
            let times = match self.other {
                Some((kind, times)) if kind == fresh.kind => times + 1,
                _ => 1,
            };
            if times < PATIENCE {
                self.other = Some((fresh.kind, times));
                return said.clone();
            }
        }
        self.other = None;
        self.said = Some(fresh.clone());
        fresh
    }
}

/// The verdict on one window. Pure: the same window gives the same verdict.
pub fn assess(rates: Option<&Rates>, progress: &Progress, gaps: &[Gap]) -> Verdict {
    let Some((rates, job)) = rates.and_then(|rates| Some((rates, rates.job.as_ref()?))) else {
        return undecided(Kind::WarmingUp, progress, vec![]);
    };
    let missing = missing(job.access, gaps);
    let Some(rank) = worst_rank(job) else {
        return undecided(Kind::Unknown, progress, missing);
    };
    let case = Case::new(rates, job, rank);
    if is_stopped(rank) || is_stuck(progress) {
        return stalled(&case, progress, missing);
    }
    let warm = progress.seconds >= SECONDS_NEEDED
        && progress
            .batches
            .is_none_or(|batches| batches >= BATCHES_NEEDED);
    let Some(wait) = rank.wait else {
        let kind = if warm { Kind::Unknown } else { Kind::WarmingUp };
        return with_rank(&case, undecided(kind, progress, missing));
    };
    if !warm {
        return with_rank(&case, undecided(Kind::WarmingUp, progress, missing));
    }
    if let Some(text) = contradiction(&case) {
        let mut verdict = with_rank(&case, undecided(Kind::Unknown, progress, missing));
        verdict.evidence.push(against("contradiction", text));
        return verdict;
    }
    // From so many waits on the kind is the same, however many more they are.
    if wait.high.0 - wait.low.0 > 0.5 && wait.low.0 < HIGH {
        let text = format!(
            "the wait share lies anywhere from {} to {}",
            wait.low, wait.high
        );
        let mut verdict = with_rank(&case, undecided(Kind::Unknown, progress, missing));
        verdict.evidence.push(against("wait-unclear", text));
        return verdict;
    }
    let kind = kind(&case, wait);
    let stall = stall(&case, wait);
    let found = cause(&case, kind);
    let (cause, decisive) = found.map_or((None, None), |(cause, fact)| (Some(cause), Some(fact)));
    let limit = (kind == Kind::ComputeBound).then(|| limit(&case)).flatten();
    let evidence = evidence(&case, kind, limit, (cause, decisive));
    let headspace = Some(headspace(&case, stall));
    let workers = workers(&case, kind, cause);
    let confidence = confidence(&case, kind, wait, &evidence);
    let verdict = Verdict {
        kind,
        cause,
        level: level(stall.share),
        stall: Some(stall),
        confidence,
        headspace,
        workers,
        what_if: what_if(&case, kind, cause, workers),
        period_batches: rank.period_batches,
        limit,
        advice: advice(&case, (kind, limit), cause, workers, headspace),
        evidence,
        warming_up: None,
        ..undecided(kind, progress, missing)
    };
    with_rank(&case, verdict)
}

/// The rank that loses most: by its waits for data; where no rank has any to speak of, by those for the others.
/// Where neither is known, the first.
fn worst_rank(job: &JobRates) -> Option<&RankRates> {
    let share = |rank: &RankRates| rank.wait.map_or(-1.0, |wait| wait.share.0);
    let fed = job.ranks.iter().all(|rank| share(rank) < SLIGHT);
    let lost = |rank: &RankRates| match time_in_collectives(rank) {
        with_others if fed && with_others.0 >= SLIGHT => 1.0 + with_others.0,
        _ => share(rank),
    };
    // `max_by` takes the last of equals: reversed, that is the lowest rank.
    job.ranks
        .iter()
        .rev()
        .max_by(|one, other| lost(one).total_cmp(&lost(other)))
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

fn stalled(case: &Case<'_>, progress: &Progress, missing: Vec<Missing>) -> Verdict {
    let mut verdict = with_rank(case, undecided(Kind::Stalled, progress, missing));
    let (text, advice) = if is_stopped(case.rank) {
        verdict.confidence = Share(0.98);
        let text = format!(
            "process {} is stopped by a signal or a debugger",
            case.rank.key.pid
        );
        (
            text,
            format!("`kill -CONT {}` lets it go on", case.rank.key.pid),
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
        what_if: Err("there is no verdict to go by".to_owned()),
        period_batches: None,
        limit: None,
        evidence: vec![],
        missing,
        advice: vec![],
        seconds: progress.seconds,
        batches: None,
        warming_up: (kind == Kind::WarmingUp).then_some(WarmingUp {
            batches: progress.batches,
            batches_needed: BATCHES_NEEDED,
            seconds: progress.seconds,
            seconds_needed: SECONDS_NEEDED,
        }),
    }
}

/// Fills in what is known of the rank, whatever the kind.
fn with_rank(case: &Case<'_>, verdict: Verdict) -> Verdict {
    Verdict {
        rank: case.rank.rank,
        rank_key: Some(case.rank.key),
        wait: case.wait().map(|wait| Interval {
            share: wait.share,
            low: wait.low,
            high: wait.high,
        }),
        gpu_idle: case.gpu_idle(),
        seconds: case.rates.seconds,
        batches: case.rank.step.batches,
        ..verdict
    }
}
