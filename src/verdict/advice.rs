//! What to change: by cause or, if there is none, by kind.

use std::iter;

use super::busy_time::{ALL_BUSY, MIN_SHARE_OF_BUSY, MIN_SHARE_OF_WAIT, most_of_the_wait};
use super::context::Context;
use super::level::MODERATE;
use super::rule::Situation;
use super::rules::{Cause, VALIDATE_LESS, cause_of_loader};
use super::workers::{gain, workers};
use super::{Interval, Kind, Limit};
use crate::model::rates::LoaderRates;
use crate::sample::LoaderKind;
use crate::units::Share;

const ONE_ITERATOR: &str = "take all batches from one iterator: now each pass ends after a batch, as with next(iter(loader)) in each step";

/// Maximum busy share at which workers have time that they cannot use.
const MOST_BUSY: f64 = 0.75;

/// Workers whose busy share is at most this part of the share of waits work only during them.
const MOST_OF_WAIT: f64 = 1.1;

/// Returns the advice for each loader that the rank waits for, with the loader's name if there are several.
pub(super) fn advice_of_all(
    context: &Context<'_>,
    verdict: (Kind, Option<Limit>),
    found: Option<Cause>,
    stall: Interval,
) -> Vec<String> {
    let of_one = |context: &Context<'_>, found: Option<Cause>, stall| {
        let helps = found.is_none_or(|cause| cause.rule().more_workers_help);
        let workers = workers(context, verdict.0 == Kind::DataBound && helps);
        let situation = Situation {
            context,
            workers,
            stall,
        };
        let all = advice(&situation, verdict, found);
        if verdict.0 != Kind::DataBound || !passes_end_after_a_batch(context) {
            return all;
        }
        // Other advice is for loaders that are iterated over: what each pass costs is not what each batch costs.
        let kept = !matches!(found, Some(Cause::WorkerRestart | Cause::Sampler));
        let also = all.into_iter().filter(|_| kept);
        iter::once(ONE_ITERATOR.into()).chain(also).collect()
    };
    let others: Vec<_> = context.other_loaders().collect();
    let main = context.loader.filter(|_| verdict.0 == Kind::DataBound);
    let Some(main) = main.filter(|_| !others.is_empty()) else {
        return of_one(context, found, stall);
    };
    let in_validation = found == Some(Cause::Validation);
    // A shorter wait would gain little, and is uncertain: polls decide which loader it was for.
    let waited_for = |loader: &LoaderRates| loader.wait.is_some_and(|wait| wait.0 >= MODERATE);
    let others = others.into_iter().filter(|loader| waited_for(loader));
    let main_too = !in_validation || waited_for(main);
    let mut all: Vec<_> = main_too.then_some(main).into_iter().chain(others).collect();
    // It is not always known which loader belongs to validation.
    if in_validation && !all.iter().any(|loader| loader.validates) {
        return of_one(context, found, stall);
    }
    all.sort_by_key(|loader| in_validation && !loader.validates);
    let mut lines: Vec<(usize, String)> = all
        .into_iter()
        .flat_map(|loader| {
            let context = context.of_loader(loader);
            let found = if loader.id == main.id && !in_validation {
                found
            } else {
                cause_of_loader(&context, verdict.0)
            };
            // The most that can be gained from a loader is its part of the waits.
            let part = loader.wait.zip(context.wait());
            let part = part.and_then(|(own, all)| Share::of(own.0, all.share.0));
            let stall = part.map_or(stall, |part| stall.times(part));
            let less = (in_validation && loader.validates).then(|| VALIDATE_LESS.into());
            let own = of_one(&context, found, stall).into_iter().chain(less);
            let part = if loader.validates {
                " (validation)"
            } else {
                ""
            };
            let titled = own.map(move |line| format!("{}{part}: {line}", loader.title()));
            titled.enumerate()
        })
        .collect();
    // The first advice for every loader comes before the second for any.
    lines.sort_by_key(|(place, _)| *place);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns the advice, most useful first.
fn advice(
    situation: &Situation<'_>,
    (kind, limit): (Kind, Option<Limit>),
    cause: Option<Cause>,
) -> Vec<String> {
    if let Some(cause) = cause {
        let own = (cause.rule().advice)(situation);
        let says_so = cause == Cause::WorkerRestart;
        let also = each_epoch(situation.context);
        let also = also.filter(|_| kind == Kind::DataBound && !says_so);
        let words = cause
            .rule()
            .more_workers_help
            .then(|| loader_advice(situation.context));
        let words = words.into_iter().flatten();
        return own.into_iter().chain(also).chain(words).collect();
    }
    match kind {
        Kind::DataBound => {
            let known = situation.context.known_loader().is_some();
            let ahead = load_ahead(situation.context).filter(|_| !known);
            let more = match (situation.more_workers(), ahead) {
                (more, _) if known => more.into_iter().chain(loader_advice(situation.context)).collect(),
                (more, Some(ahead)) => iter::once(ahead).chain(more).collect(),
                (Some(more), None) => iter::once(more).chain(any_order(situation)).collect(),
                (None, None) => larger_reserve_advice(situation),
            };
            let sleeps = may_share_a_limit(situation.context).filter(|_| !more.is_empty());
            let mut all: Vec<_> = each_epoch(situation.context).into_iter().chain(more).chain(sleeps).collect();
            if all.is_empty() {
                all.extend(without_settings(situation).map(Into::into));
            }
            all
        }
        Kind::ComputeBound => {
            let model = "optimise the model or its step: instant loading would gain almost nothing";
            let about = limit.map(|limit| match limit {
                Limit::Compute => "the GPU's multiprocessors are busy: use a smaller data type, or compute less",
                Limit::Memory => {
                    "the GPU's memory bandwidth is the limit: fuse operations (torch.compile), or use a smaller data type"
                }
                Limit::SmallKernels => {
                    "the kernels are too small to fill the GPU: use larger batches, torch.compile, or CUDA graphs"
                }
            });
            [model].into_iter().chain(about).map(Into::into).collect()
        }
        Kind::CommunicationBound => vec![
            "find the rank that arrives last: the others wait for it in each collective".into(),
            "communicate less often, or in parallel with the step: larger buckets, gradient accumulation with no_sync()"
                .into(),
        ],
        Kind::HostBound => vec![
            "look at the host side of the step: launches, synchronisation, logging, locks".into(),
        ],
        _ => vec![],
    }
}

/// Returns advice for loaders of which no setting helps.
fn without_settings(situation: &Situation<'_>) -> Option<&'static str> {
    if situation.context.workers().is_empty() {
        return Some("find out why batches arrive late: pipetop cannot see what loads them");
    }
    let unknown = situation.is_load_unknown();
    unknown.then_some(
        "load more at once, or do less for each batch: how long one takes to load is not known",
    )
}

/// Returns advice if workers of the program's own, which fill no queue, work only during the waits: they load the batch that the
/// trainer waits for, and none ahead.
fn load_ahead(context: &Context<'_>) -> Option<String> {
    let loader = context
        .loader
        .filter(|loader| loader.kind == LoaderKind::Other && loader.queue.is_none());
    let busy = loader.and_then(|_| context.mean_share(|worker| worker.busy))?;
    let only_waited_for = busy.0 < ALL_BUSY && busy.0 <= MOST_OF_WAIT * context.wait()?.share.0;
    only_waited_for.then(|| "load the next batch during the step: the workers are idle then".into())
}

/// Returns advice if each epoch begins with a wait. It is given in addition to the advice for a cause.
fn each_epoch(context: &Context<'_>) -> Option<String> {
    let all = keep_workers(context).or_else(|| longer_epochs(context));
    all.filter(|_| !passes_end_after_a_batch(context))
}

fn passes_end_after_a_batch(context: &Context<'_>) -> bool {
    context.loader.and_then(|loader| loader.longest_pass) == Some(1)
}

/// Returns advice if the trainer mostly waits for the first batch of each epoch, although its workers are kept.
fn longer_epochs(context: &Context<'_>) -> Option<String> {
    let first = most_of_the_wait(context, context.rank.first_batches)?;
    let kept = context.loader?.settings.persistent_workers == Some(true);
    kept.then(|| {
        format!(
            "use longer epochs: {first} of the time goes to each epoch's first batch; ConcatDataset([data] * 10) merges ten epochs"
        )
    })
}

/// Returns a warning about adding workers if they sleep for much of their busy time: what they wait for is not seen.
fn may_share_a_limit(context: &Context<'_>) -> Option<String> {
    let asleep = context.of_busy(|worker| worker.asleep);
    let asleep = asleep.filter(|share| share.0 >= MIN_SHARE_OF_BUSY)?;
    Some(format!(
        "workers sleep {asleep} of their busy time: if a shared rate limit causes it, more workers do not help"
    ))
}

/// Returns advice if workers are restarted again and again.
fn keep_workers(context: &Context<'_>) -> Option<String> {
    let startup = context.rank.startup.filter(|share| share.0 >= MODERATE)?;
    let kept = context.loader?.settings.persistent_workers == Some(true);
    (!kept).then(|| {
        format!(
            "persistent_workers=True, with one DataLoader for all: restarting workers each epoch takes {startup} of the time"
        )
    })
}

/// Returns how to load more at once, in the loader's own terms.
fn loader_advice(context: &Context<'_>) -> Vec<String> {
    let known = context.known_loader();
    let more = known.and_then(|known| known.more.as_ref());
    let buffer = known.and_then(|known| known.buffer.as_ref());
    let more = more.map(|more| format!("load more at once: {more}"));
    let buffer =
        buffer.map(|buffer| format!("if single batches are slow, use a larger reserve: {buffer}"));
    more.into_iter().chain(buffer).collect()
}

/// Returns advice if loading is fast enough on average, but the trainer waits for batches that take longer than others.
fn larger_reserve_advice(situation: &Situation<'_>) -> Vec<String> {
    let loader = situation.context.loader;
    let (Some(workers), Some(loader)) = (situation.workers, loader) else {
        return vec![];
    };
    let busy = situation.context.mean_share(|worker| worker.busy);
    let slow = busy.is_none_or(|busy| busy.0 >= MODERATE);
    // Without both times, it is not known how fast loading is.
    let (Some(_), Some(step_ms)) = situation.context.load_and_step() else {
        return vec![];
    };
    // A reserve that is never used up is large enough.
    let empty = situation.context.queue_empty_at_most();
    let enough = empty.is_some_and(|empty| empty.0 < MODERATE);
    // The window may cut a validation, so its load and step times are inexact: if it mostly waits, loading is too slow.
    let validation = situation.context.rank.validation;
    let waits = validation.is_some_and(|it| it.waiting.0 >= MIN_SHARE_OF_WAIT * it.time.0);
    // Workers that are almost always idle are not slow, and a reserve does not extend into the next epoch.
    if enough
        || longer_epochs(situation.context).is_some()
        || !slow
        || (loader.validates && waits)
        || workers.match_step.is_none_or(|wanted| wanted > workers.now)
    {
        return vec![];
    }
    let reserve = loader.settings.prefetch_factor.and_then(|factor| {
        let more = factor.saturating_mul(4);
        let batches = workers.now.saturating_mul(more - factor);
        let seconds = f64::from(batches) * step_ms / 1e3;
        let gain = covered(situation, seconds)?;
        Some(format!(
            "prefetch_factor {factor} -> {more} (a larger reserve covers slow batches): {gain}; {batches} more batches in memory"
        ))
    });
    reserve
        .into_iter()
        .chain(in_any_order(situation, f64::INFINITY))
        .collect()
}

/// Returns advice if the workers are too few, but are idle for some of the time even so: they have loaded all that they may
/// load ahead of a slow batch.
fn any_order(situation: &Situation<'_>) -> Option<String> {
    let busy = situation.context.mean_share(|worker| worker.busy)?;
    let at_most = 1.0 / busy.0.max(0.01);
    (busy.0 <= MOST_BUSY).then(|| in_any_order(situation, at_most))?
}

/// Returns the advice to take batches as they come, in which the job becomes at most `at_most` times as fast.
fn in_any_order(situation: &Situation<'_>, at_most: f64) -> Option<String> {
    let gain = gain(situation.stall, at_most);
    (situation.context.loader?.settings.in_order == Some(true)).then(|| {
        format!(
            "in_order=False (PyTorch 2.6 and newer) lets ready batches pass a slow one: {gain}; the order then varies"
        )
    })
}

/// Returns the gain from a reserve that lasts this many seconds longer. `None` if it is too small, as for waits that
/// are much longer than that.
fn covered(situation: &Situation<'_>, seconds: f64) -> Option<String> {
    let part = match situation.context.rank.wait_seconds {
        Some(length) if length > seconds => seconds / length,
        _ => 1.0,
    };
    let covered = situation.stall.times(Share(part));
    (covered.share.0 >= MODERATE).then(|| gain(covered, f64::INFINITY))
}
