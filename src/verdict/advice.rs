//! What to change: the cause says it; where there is none, the kind.

use super::context::Context;
use super::level::MODERATE;
use super::rule::Situation;
use super::rules::Cause;
use super::workers::gain;
use super::{Kind, Limit};
use crate::loaders::{KnownLoader, Names};

/// What to do, most useful first.
pub(super) fn advice(
    situation: &Situation<'_>,
    (kind, limit): (Kind, Option<Limit>),
    cause: Option<Cause>,
) -> Vec<String> {
    if let Some(cause) = cause {
        let own = (cause.rule().advice)(situation);
        let says_so = cause == Cause::WorkerRestart;
        let also = keep_workers(situation.context);
        let also = also.filter(|_| kind == Kind::DataBound && !says_so);
        let words = cause
            .rule()
            .more_workers_help
            .then(|| in_its_words(situation.context));
        let words = words.into_iter().flatten();
        return own.into_iter().chain(also).chain(words).collect();
    }
    match kind {
        Kind::DataBound => match situation.more_workers() {
            more if names(situation.context).is_some() => {
                more.into_iter().chain(in_its_words(situation.context)).collect()
            }
            Some(more) => vec![more],
            None => outlast_slow_batches(situation),
        },
        Kind::ComputeBound => {
            let model = "optimise the model or its step: instant loading would gain almost nothing";
            let about = limit.map(|limit| match limit {
                Limit::Compute => "its multiprocessors are busy: use a smaller data type, or compute less",
                Limit::Memory => {
                    "its memory is the limit: fuse operations (torch.compile), or use a smaller data type"
                }
                Limit::SmallKernels => {
                    "its kernels are too small to fill it: use larger batches, torch.compile, or CUDA graphs"
                }
            });
            [model].into_iter().chain(about).map(Into::into).collect()
        }
        Kind::CommunicationBound => vec![
            "look for the rank that comes last: the others wait for it in each collective".into(),
            "communicate less often, or in parallel with the step: larger buckets, gradient accumulation with no_sync()"
                .into(),
        ],
        Kind::HostBound => vec![
            "look at the host side of the step: launches, synchronisation, logging, locks".into(),
        ],
        _ => vec![],
    }
}

/// Workers that start over and over: worth a word beside another cause, too.
fn keep_workers(context: &Context<'_>) -> Option<String> {
    let startup = context.rank.startup.filter(|share| share.0 >= MODERATE)?;
    let kept = context.loader?.settings.persistent_workers == Some(true);
    (!kept).then(|| {
        format!(
            "persistent_workers=True: {startup} of the time goes to starting workers in each epoch"
        )
    })
}

/// What is known of the loader by its name.
fn names(context: &Context<'_>) -> Option<&'static KnownLoader> {
    Names::known().loader(context.loader?.name.as_deref()?)
}

/// More loading at once, in the loader's own words.
fn in_its_words(context: &Context<'_>) -> Vec<String> {
    let known = names(context);
    let more = known.and_then(|known| known.more.as_ref());
    let buffer = known.and_then(|known| known.buffer.as_ref());
    let more = more.map(|more| format!("load more at once: {more}"));
    let buffer =
        buffer.map(|buffer| format!("if single batches are slow, use a larger reserve: {buffer}"));
    more.into_iter().chain(buffer).collect()
}

/// Loading is fast enough on average, and yet the trainer waits: for the batches that take longer than others.
fn outlast_slow_batches(situation: &Situation<'_>) -> Vec<String> {
    let loader = situation.context.loader;
    let (Some(workers), Some(loader)) = (situation.workers, loader) else {
        return vec![];
    };
    if workers.match_step.is_none_or(|wanted| wanted > workers.now) {
        return vec![];
    }
    let gain = gain(situation.stall, f64::INFINITY);
    let reserve = loader.settings.prefetch_factor.map(|factor| {
        let more = factor.saturating_mul(4);
        let batches = workers.now.saturating_mul(more - factor);
        format!(
            "prefetch_factor {factor} -> {more} (loading is fast enough on average; a larger reserve covers slow batches): {gain}; memory for {batches} more batches"
        )
    });
    let any_order = (loader.settings.in_order == Some(true)).then(|| {
        format!(
            "in_order=False (PyTorch 2.6 and newer) lets ready batches pass a slow one: {gain}; the order then differs from run to run"
        )
    });
    reserve.into_iter().chain(any_order).collect()
}
