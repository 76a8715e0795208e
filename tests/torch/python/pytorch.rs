//! Reads stacks and loader counters of the real PyTorch, with each way of starting workers.

use std::collections::BTreeSet;

use pipetop::testing::source::python::{InLoader, Stacks, ThreadContext, WorkerPhase};
use pipetop::units::Pid;
use support::machine::{Share, each_torch, last_torch};

use super::{Job, TORCH_TIMEOUT, until};

#[test]
fn pytorch_itself() {
    each_torch(Share::Quarter, |python| {
        for method in ["fork", "spawn", "forkserver"] {
            loader_with_workers(&python.path, method);
        }
        loader_in_main(&python.path);
    });
}

fn loader_with_workers(python: &str, method: &str) {
    let mut job = Job::start(python, "train.py", &["--method", method, "--persistent"]);
    job.reaches("ready");
    let mut stacks = job.stacks();
    let iterator = until(TORCH_TIMEOUT, || {
        let main = stacks.main_thread(ThreadContext::default()).ok()?;
        let iterator = main.iterator.filter(|_| main.loader == InLoader::Waiting)?;
        stacks
            .iterator(iterator)
            .ok()
            .filter(|iterator| iterator.read().is_ok_and(|state| state.yielded > 0))
    });
    let settings = iterator.settings();
    assert_eq!(
        (settings.num_workers, settings.prefetch_factor),
        (Some(2), Some(3)),
        "{python} {method}"
    );
    assert_eq!(
        (settings.batch_size, settings.pin_memory),
        (Some(4), Some(false))
    );
    assert_eq!(settings.persistent_workers, Some(true));
    assert_eq!(settings.start_method.as_deref(), Some(method));

    until(TORCH_TIMEOUT, || {
        stacks
            .main_thread(ThreadContext::default())
            .ok()?
            .function
            .filter(|name| name == "train_step (train.py)")
    });
    let found = until(TORCH_TIMEOUT, || {
        stacks
            .find_iterators()
            .ok()
            .filter(|found| !found.is_empty())
    });
    assert_eq!(found[0].address(), iterator.address(), "{python} {method}");
    let before = iterator.read().expect("reads").yielded;
    let after = until(TORCH_TIMEOUT, || {
        iterator
            .read()
            .ok()
            .filter(|state| state.yielded > before + 5)
    });
    assert_eq!(after.pinned, None);

    let numbers: BTreeSet<_> = descendants(job.pid())
        .into_iter()
        .filter_map(|pid| {
            let mut worker = Stacks::attach_like(pid, &stacks).ok()?;
            worker.worker().ok()?.worker_id?;
            let seen = until(TORCH_TIMEOUT, || {
                worker
                    .worker()
                    .ok()
                    .filter(|look| look.phase == WorkerPhase::Busy && look.batch_size.is_some())
            });
            assert!(seen.batch.is_some(), "{python} {method}");
            assert_eq!((seen.num_workers, seen.batch_size), (Some(2), Some(4)));
            until(TORCH_TIMEOUT, || {
                worker
                    .worker()
                    .ok()?
                    .function
                    .filter(|name| name == "decode (train.py)")
            });
            seen.worker_id
        })
        .collect();
    assert_eq!(numbers, BTreeSet::from([0, 1]), "{python} {method}");
}

/// Returns a job that takes as many batches as it can, so that its memory often changes while it is read.
fn quick_job(python: &str) -> (Job, Stacks) {
    let quick = ["--load", "0.00001", "--step", "0"];
    let mut job = Job::start(python, "train.py", &quick);
    job.reaches("ready");
    let stacks = job.stacks();
    (job, stacks)
}

/// Workers free the list of a batch's samples, and use its memory for others, while it is read.
#[test]
fn a_batch_size_is_never_that_of_another_list() {
    last_torch(Share::Half, |python| {
        let (job, stacks) = quick_job(&python.path);
        let mut workers = until(TORCH_TIMEOUT, || {
            let attached = |pid: Pid| Stacks::attach_like(pid, &stacks).ok();
            let mut found: Vec<_> = (descendants(job.pid()).into_iter())
                .filter_map(attached)
                .collect();
            let each_loads =
                |worker: &mut Stacks| worker.worker().is_ok_and(|at| at.batch > Some(100));
            (found.len() == 2 && found.iter_mut().all(each_loads)).then_some(found)
        });
        for worker in &mut workers {
            let sizes: Vec<_> = (0..1_000_000)
                .filter_map(|_| worker.worker().ok()?.batch_size)
                .take(2000)
                .collect();
            assert_eq!(sizes.len(), 2000, "{}", python.path);
            let wrong = sizes.iter().find(|size| **size != 4);
            assert_eq!(wrong, None, "{}", python.path);
        }
    });
}

/// Each batch makes another number of the iterator's counter, and the old one's memory is used again at once.
#[test]
fn a_count_of_batches_is_never_that_of_another_number() {
    last_torch(Share::Half, |python| {
        let (_job, mut stacks) = quick_job(&python.path);
        let iterator = until(TORCH_TIMEOUT, || {
            let main = stacks.main_thread(ThreadContext::default()).ok()?;
            let iterator = stacks.iterator(main.iterator?).ok()?;
            // Small numbers are not freed.
            iterator
                .read()
                .is_ok_and(|state| state.yielded > 500)
                .then_some(iterator)
        });
        let first = iterator.read().expect("reads").yielded;
        let mut counts: Vec<_> = (0..10_000_000)
            .filter_map(|_| Some(iterator.read().ok()?.yielded))
            .take_while(|count| *count < first + 2500)
            .collect();
        counts.dedup();
        let back = counts.windows(2).find(|pair| pair[0] > pair[1]);
        assert_eq!(back, None, "{}", python.path);
        assert!(counts.len() > 200, "{}: {}", python.path, counts.len());
    });
}

fn loader_in_main(python: &str) {
    let mut job = Job::start(python, "train.py", &["--workers", "0"]);
    job.reaches("ready");
    let mut stacks = job.stacks();
    let main = until(TORCH_TIMEOUT, || {
        stacks
            .main_thread(ThreadContext::default())
            .ok()
            .filter(|main| main.loader == InLoader::Loading)
    });
    let iterator = stacks
        .iterator(main.iterator.expect("shown"))
        .expect("reads");
    assert_eq!(iterator.settings().num_workers, Some(0), "{python}");
    until(TORCH_TIMEOUT, || {
        let main = stacks.main_thread(ThreadContext::default()).ok()?;
        main.function
            .filter(|name| main.loader == InLoader::Loading && name == "decode (train.py)")
    });
    until(TORCH_TIMEOUT, || {
        let state = iterator.read().ok()?;
        (state.yielded > 5).then_some(())
    });
}

/// Returns the process's children, their children, and so on.
fn descendants(of: Pid) -> Vec<Pid> {
    let children =
        std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .map(Pid);
    children
        .flat_map(|child| [vec![child], descendants(child)].concat())
        .collect()
}
