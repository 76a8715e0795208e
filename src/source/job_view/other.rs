//! What feeds a trainer beside PyTorch's loaders, as one more loader of its rank.
//!
//! Knows what the stacks have shown, not how they are read.

use std::collections::BTreeMap;

use crate::job::Loader;
use crate::sample::{BatchClock, BatchCount, LoaderKind, LoaderSample, PollTrace, WorkerSample};
use crate::source::poll::{MAIN_LOADER, MainSeen};
use crate::source::process::ProcessReader;
use crate::source::python::Asks;
use crate::units::Pid;

/// The number of a loader that is known by the main thread's stacks alone.
const OTHER_LOADER: u64 = MAIN_LOADER - 2;

/// Gives what feeds the main thread to the workers that were found, where they are no PyTorch's; else it is a loader
/// without any. What is known by its place in the training loop alone is a part of PyTorch's loader, where there is one.
/// `threads` gives those of the trainer that load: they count where no processes do.
pub(super) fn add(
    loaders: &mut Vec<LoaderSample>,
    placed: &[(u64, Loader)],
    main: &MainSeen,
    threads: impl FnOnce() -> Vec<WorkerSample>,
) {
    let name = match main.asks {
        None if main.queue.is_none() => return,
        Some(Asks::Loader(name)) => Some(name.to_owned()),
        None | Some(Asks::Site) => None,
    };
    let is_pytorch = |loader: &LoaderSample| {
        let by_loop = loader.workers.iter().any(|worker| worker.loads.is_some());
        by_loop || loader.batches.is_some() || main.iterators.contains_key(&loader.id)
    };
    if name.is_none() && loaders.iter().any(is_pytorch) {
        return;
    }
    // A stage behind PyTorch's loader hands on what that counts.
    let counted = loaders.iter().any(|loader| loader.batches.is_some());
    let count = main
        .queue
        .filter(|_| !counted)
        .map(|(count, _)| BatchCount {
            count,
            source: BatchClock::Queue,
        });
    let queue = main.queue.and_then(|(_, queue)| queue);
    match loaders.iter_mut().find(|loader| !is_pytorch(loader)) {
        Some(loader) => {
            loader.kind = LoaderKind::Other;
            loader.name = name;
            // Which of its pipes hands over batches is a guess, unless the main thread was seen to wait at it.
            let mut seen = placed.iter().filter(|(_, placed)| placed.pipe_is_seen);
            if !seen.any(|(id, _)| *id == loader.id) {
                loader.queue = None;
            }
            loader.batches = count;
            loader.queue = queue.or(loader.queue);
        }
        None => loaders.push(LoaderSample {
            name,
            queue,
            batches: count,
            workers: threads(),
            ..LoaderSample::new(OTHER_LOADER, LoaderKind::Other)
        }),
    }
}

/// The threads of a trainer that load.
pub(super) fn threads(
    reader: &mut ProcessReader,
    trainer: Pid,
    main: &MainSeen,
    new_polls: impl Fn(&PollTrace) -> PollTrace,
) -> Vec<WorkerSample> {
    let threads = main.threads.iter().filter_map(|(number, seen)| {
        let (key, process) = reader.thread_as_worker(trainer, *number)?;
        Some(WorkerSample {
            key,
            id: 0,
            thread: true,
            process,
            tally: Some(seen.tally).filter(|tally| tally.polls > 0),
            batches: None,
            activity: seen.activity.clone(),
            loads: None,
            polls: new_polls(&seen.polls),
        })
    });
    let mut threads: Vec<WorkerSample> = threads.collect();
    threads.sort_by_key(|thread| (thread.key.start_ticks, thread.key.pid));
    for (id, thread) in (0..).zip(&mut threads) {
        thread.id = id;
    }
    threads
}

/// Polls at which the main thread waited for something that is no batch, by what that is.
pub(super) fn not_data(main: &MainSeen) -> BTreeMap<String, u64> {
    let seen = main.not_data.iter();
    seen.map(|(means, polls)| ((*means).to_owned(), *polls))
        .collect()
}
