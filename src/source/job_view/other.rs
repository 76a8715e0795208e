//! What feeds a trainer apart from PyTorch's loaders, as one more loader of its rank.
//!
//! Does not depend on how stacks are read.

use std::collections::BTreeMap;

use crate::job::Loader;
use crate::sample::{BatchClock, BatchCount, LoaderKind, LoaderSample, PollTrace, WorkerSample};
use crate::source::poll::{MAIN_LOADER, MainSeen};
use crate::source::process::ProcessReader;
use crate::source::python::Asks;
use crate::units::Pid;

/// Number used for a loader that is only known from the main thread's stacks.
const OTHER_LOADER: u64 = MAIN_LOADER - 2;

/// Assigns what feeds the main thread to the loader with workers that is not PyTorch's, or else adds a loader without
/// worker processes. If only the place in the training loop is known and there is a loader of PyTorch, it is part of that.
/// `threads` returns the threads of the trainer that load: they count if there are no worker processes.
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
    // A stage after PyTorch's loader passes on batches that are already counted there.
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
            // Which of its pipes carries batches is a guess, unless the main thread was seen to wait for it.
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

/// Returns the threads of a trainer that load.
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

/// Returns the polls at which the main thread waited for something other than a batch, by what that was.
pub(super) fn not_data(main: &MainSeen) -> BTreeMap<String, u64> {
    let seen = main.not_data.iter();
    seen.map(|(means, polls)| ((*means).to_owned(), *polls))
        .collect()
}
