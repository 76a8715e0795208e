//! What feeds a trainer apart from PyTorch's loaders, as one more loader of its rank.
//!
//! Does not depend on how stacks are read.

use std::collections::BTreeMap;
use std::mem;

use crate::job::{Loader, Process, Tree};
use crate::sample::{BatchClock, BatchCount, LoaderKind, LoaderSample, PollTrace, WorkerSample};
use crate::source::poll::{MAIN_LOADER, MainSeen, Seen};
use crate::source::process::ProcessReader;
use crate::source::python::Asks;
use crate::source::shared_memory::SegmentClock;
use crate::units::{Pid, ProcessKey};

/// Number used for a loader that is only known from the main thread's stacks.
const OTHER_LOADER: u64 = MAIN_LOADER - 2;

/// Returns the kind of a loader whose workers are child processes. They are PyTorch's if its iterator or its shared
/// memory counts their batches (`counted`), or if the name or the stack of one shows it. Other programs, too, may fork
/// children that write to a pipe.
pub(super) fn kind(tree: &Tree<'_>, loader: &Loader, seen: &Seen, counted: bool) -> LoaderKind {
    if counted || is_pytorchs(tree, loader, seen) {
        LoaderKind::PytorchProcesses
    } else {
        LoaderKind::Processes
    }
}

/// Whether the workers were seen past their start and outside the loop of PyTorch's workers. Shared memory does not
/// show that they are PyTorch's: any process that sends tensors to another one has such a count.
pub(super) fn is_elsewhere(tree: &Tree<'_>, loader: &Loader, seen: &Seen) -> bool {
    let mut workers = loader
        .workers
        .iter()
        .filter_map(|key| seen.workers.get(key));
    workers.any(|worker| worker.elsewhere) && !is_pytorchs(tree, loader, seen)
}

/// Returns the batches that PyTorch's workers made and the trainer took.
pub(super) fn taken(segments: &SegmentClock) -> Option<BatchCount> {
    segments.taken().map(|count| BatchCount {
        count,
        source: BatchClock::SharedMemory,
    })
}

/// Whether the name or the stack of one of the workers shows that it is PyTorch's.
fn is_pytorchs(tree: &Tree<'_>, loader: &Loader, seen: &Seen) -> bool {
    let by_stack = |key: &ProcessKey| {
        let seen = seen.workers.get(key);
        seen.is_some_and(|worker| worker.id.is_some() || worker.loads.is_some())
    };
    let by_name = |key: &ProcessKey| tree.get(key.pid).is_some_and(Process::is_pytorch_worker);
    let mut workers = loader.workers.iter();
    workers.any(|key| by_stack(key) || by_name(key))
}

/// Assigns what feeds the main thread to the loader with workers that is not PyTorch's; if there is none, adds a loader
/// without worker processes. If only a place in the training loop is known and there is a loader of PyTorch, that place
/// belongs to it. `threads` returns the threads of the trainer that load: they count if there are no worker processes.
pub(super) fn add(
    loaders: &mut Vec<LoaderSample>,
    placed: &[(u64, Loader)],
    main: &MainSeen,
    threads: impl FnOnce() -> Vec<WorkerSample>,
) {
    let name = match main.asks {
        Some(Asks::Loader(name)) => Some(name.to_owned()),
        None | Some(Asks::Site) => None,
    };
    let in_main = |loader: &LoaderSample| loader.kind == LoaderKind::PytorchMain;
    if let Some(at) = loaders.iter().position(in_main) {
        if main.handed_over {
            return load_in_threads(loaders, at, name, main, threads);
        }
        loaders[at].name = main.behind.map(str::to_owned);
    }
    let pytorch = |loader: &LoaderSample| is_pytorch(loader, main);
    if main.asks.is_none() && main.queue.is_none() {
        return;
    }
    if name.is_none() && loaders.iter().any(pytorch) {
        return;
    }
    // A stage after PyTorch's loader passes on batches that are already counted in that loader.
    let counted = |loader: &LoaderSample| pytorch(loader) && loader.batches.is_some();
    let counted = loaders.iter().any(counted);
    let taken = main.queue.filter(|_| !counted).and_then(|(taken, _)| taken);
    let batches = taken.map(|count| BatchCount {
        count,
        source: BatchClock::Queue,
    });
    let queue = main.queue.and_then(|(_, queue)| queue);
    let Some(at) = loaders.iter().position(|loader| !pytorch(loader)) else {
        return loaders.push(LoaderSample {
            name,
            queue,
            batches,
            workers: threads(),
            ..LoaderSample::new(OTHER_LOADER, LoaderKind::Other)
        });
    };
    let loader = &mut loaders[at];
    loader.kind = LoaderKind::Other;
    loader.name = name;
    // Which of its pipes carries batches is a guess, unless the main thread was seen to wait for it.
    let mut seen = placed.iter().filter(|(_, placed)| placed.pipe_is_seen);
    if !seen.any(|(id, _)| *id == loader.id) {
        loader.queue = None;
    }
    loader.batches = batches;
    loader.queue = queue.or(loader.queue);
}

/// Turns the loader at `at`, one of PyTorch's without workers, into one of threads: they run it, and the main thread
/// takes its batches from them. Its iterator counts the batches.
fn load_in_threads(
    loaders: &mut Vec<LoaderSample>,
    at: usize,
    name: Option<String>,
    main: &MainSeen,
    threads: impl FnOnce() -> Vec<WorkerSample>,
) {
    let loader = &mut loaders[at];
    loader.kind = LoaderKind::Other;
    loader.name = name.or(main.behind.map(str::to_owned));
    loader.settings.num_workers = None;
    loader.queue = main.queue.and_then(|(_, queue)| queue);
    // If there is a pool of processes, the threads only pass on what those load.
    let by_processes = |loader: &LoaderSample| loader.kind == LoaderKind::Processes;
    let pool = loaders.iter().position(by_processes);
    loaders[at].workers = pool.map_or_else(threads, |pool| mem::take(&mut loaders[pool].workers));
    if let Some(pool) = pool {
        loaders.remove(pool);
    }
}

/// Whether the loader is PyTorch's: its workers are in the loop of PyTorch's workers, or its batches are counted. Any
/// process that sends tensors to another one has a count by shared memory, so that does not suffice if the main thread
/// takes batches elsewhere.
fn is_pytorch(loader: &LoaderSample, main: &MainSeen) -> bool {
    let by_tensors = |count: BatchCount| {
        count.source == BatchClock::SharedMemory && main.asks == Some(Asks::Site)
    };
    let by_loop = loader.workers.iter().any(|worker| worker.loads.is_some());
    let counted = loader.batches.is_some_and(|count| !by_tensors(count));
    by_loop || counted || main.iterators.contains_key(&loader.id)
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

/// Returns the polls, by the name of what the main thread waited for.
pub(super) fn by_name(seen: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    let seen = seen.iter();
    seen.map(|(means, polls)| ((*means).to_owned(), *polls))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::literals::{key, worker};
    use crate::source::poll::WorkerSeen;

    #[test]
    fn children_that_nothing_shows_to_be_pytorchs_are_of_an_unknown_loader() {
        let child = |comm: &str| Process {
            key: key(7),
            comm: comm.to_owned(),
            ..Process::default()
        };
        let loader = Loader {
            pipe: None,
            pipe_is_seen: false,
            workers: vec![key(7)],
        };
        let of = |comm: &str, seen: &Seen, counted| {
            let processes = [child(comm)];
            kind(&Tree::new(&processes), &loader, seen, counted)
        };
        let nothing = Seen::default();
        assert_eq!(of("python", &nothing, false), LoaderKind::Processes);
        assert_eq!(of("python", &nothing, true), LoaderKind::PytorchProcesses);
        assert_eq!(
            of("pt_data_worker", &nothing, false),
            LoaderKind::PytorchProcesses
        );
        let in_its_loop = WorkerSeen {
            id: Some(0),
            ..WorkerSeen::default()
        };
        let mut seen = Seen::default();
        seen.workers.insert(key(7), in_its_loop);
        assert_eq!(of("python", &seen, false), LoaderKind::PytorchProcesses);
    }

    #[test]
    fn children_that_work_in_another_loop_are_not_pytorchs() {
        let loader = Loader {
            pipe: None,
            pipe_is_seen: false,
            workers: vec![key(7), key(8)],
        };
        let of = |comm: &str, each: [WorkerSeen; 2]| {
            let processes = [Process {
                key: key(7),
                comm: comm.to_owned(),
                ..Process::default()
            }];
            let seen = Seen {
                workers: (7..).map(key).zip(each).collect(),
                ..Seen::default()
            };
            is_elsewhere(&Tree::new(&processes), &loader, &seen)
        };
        let unseen = WorkerSeen::default;
        let elsewhere = || WorkerSeen {
            elsewhere: true,
            ..WorkerSeen::default()
        };
        let in_its_loop = || WorkerSeen {
            id: Some(0),
            ..WorkerSeen::default()
        };
        assert!(of("python", [elsewhere(), unseen()]));
        assert!(!of("python", [unseen(), unseen()]));
        // A worker that has only just started is outside the loop, too.
        assert!(!of("python", [elsewhere(), in_its_loop()]));
        assert!(!of("pt_data_worker", [elsewhere(), unseen()]));
    }

    #[test]
    fn what_other_threads_load_is_not_loaded_in_the_main_thread() {
        let kind = |handed_over| {
            let mut in_main = LoaderSample::new(MAIN_LOADER, LoaderKind::PytorchMain);
            in_main.settings.num_workers = Some(0);
            let mut loaders = vec![in_main];
            let main = MainSeen {
                handed_over,
                behind: Some("Keras"),
                ..MainSeen::default()
            };
            add(&mut loaders, &[], &main, Vec::new);
            let [loader] = &loaders[..] else {
                panic!("{loaders:?}");
            };
            (
                loader.kind,
                loader.settings.num_workers,
                loader.name.clone(),
            )
        };
        let named = Some("Keras".to_owned());
        assert_eq!(kind(true), (LoaderKind::Other, None, named.clone()));
        assert_eq!(kind(false), (LoaderKind::PytorchMain, Some(0), named));
    }

    #[test]
    fn processes_load_what_threads_hand_to_a_loader_in_the_main_thread() {
        let loaders = |handed_over| {
            let mut pool = LoaderSample::new(1, LoaderKind::Processes);
            pool.workers = vec![worker(1.0, 0)];
            let mut loaders = vec![
                pool,
                LoaderSample::new(MAIN_LOADER, LoaderKind::PytorchMain),
            ];
            let main = MainSeen {
                handed_over,
                ..MainSeen::default()
            };
            add(&mut loaders, &[], &main, Vec::new);
            let each = loaders.iter();
            let each = each.map(|loader| (loader.kind, loader.workers.len()));
            each.collect::<Vec<_>>()
        };
        assert_eq!(loaders(true), [(LoaderKind::Other, 1)]);
        let beside = [(LoaderKind::Processes, 1), (LoaderKind::PytorchMain, 0)];
        assert_eq!(loaders(false), beside);
    }

    #[test]
    fn tensors_that_are_sent_do_not_make_a_loader_pytorchs() {
        let kind = |asks, source| {
            let batches = Some(BatchCount { count: 9, source });
            let mut loaders = vec![LoaderSample {
                batches,
                ..LoaderSample::new(1, LoaderKind::PytorchProcesses)
            }];
            let main = MainSeen {
                asks,
                ..MainSeen::default()
            };
            add(&mut loaders, &[], &main, Vec::new);
            assert_eq!(loaders.len(), 1);
            (loaders[0].kind, loaders[0].batches.is_some())
        };
        let sent = BatchClock::SharedMemory;
        assert_eq!(kind(Some(Asks::Site), sent), (LoaderKind::Other, false));
        let by_its_iterator = kind(Some(Asks::Site), BatchClock::Iterator);
        assert_eq!(by_its_iterator, (LoaderKind::PytorchProcesses, true));
        // Without stacks, nothing shows another place.
        assert_eq!(kind(None, sent), (LoaderKind::PytorchProcesses, true));
    }
}
