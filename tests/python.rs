//! Stacks and loader counters read out of real Python processes that run on meanwhile.
//!
//! A stand-in of PyTorch's classes shows how each Python version lays them out in memory: it runs with
//! the interpreters of `PIPETOP_PYTHONS` (colon-separated; `python3` by default). The real PyTorch runs
//! with those of `PIPETOP_TORCH_PYTHONS`; where none of them has it the test says so and passes, unless
//! `PIPETOP_REQUIRE_TORCH=1`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pipetop::source::python::{
    InLoader, IteratorState, LoaderIterator, PythonError, Stacks, WorkerPhase,
};
use pipetop::units::Pid;

const TORCH_AT_MOST: Duration = Duration::from_secs(90);

/// A Python process that dies with the test.
struct Job {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Job {
    fn start(python: &str, script: &str, arguments: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/python")
            .join(script);
        let mut child = Command::new(python)
            .arg(script)
            .args(arguments)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the interpreter starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, lines }
    }

    fn stand_in(python: &str, mode: &str) -> Self {
        Self::start(python, "stand_in/main.py", &[mode])
    }

    /// Waits until the script says that it has come to `state`, where it stays.
    fn reaches(&mut self, state: &str) {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the script writes");
        assert_eq!(line.trim_end(), state);
    }

    fn go_on(&self) {
        let mut input = self.child.stdin.as_ref().expect("piped");
        input.write_all(b"\n").expect("the script reads");
    }

    fn pid(&self) -> Pid {
        Pid(self.child.id().cast_signed())
    }

    fn stacks(&self) -> Stacks {
        Stacks::attach(self.pid()).expect("attaches")
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // The workers are in the same process group; without their trainer they would end by themselves
        // only after seconds.
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

fn interpreters(variable: &str) -> Vec<String> {
    match std::env::var(variable) {
        Ok(list) => list
            .split(':')
            .filter(|one| !one.is_empty())
            .map(str::to_owned)
            .collect(),
        Err(_) => vec!["python3".to_owned()],
    }
}

/// The interpreters that are there: a machine without Python skips, and says so.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn pythons() -> Vec<String> {
    let (found, absent): (Vec<_>, Vec<_>) = interpreters("PIPETOP_PYTHONS")
        .into_iter()
        .partition(|python| runs(python, "pass"));
    if !absent.is_empty() {
        eprintln!("skipped: no Python at {absent:?}");
    }
    found
}

fn runs(python: &str, code: &str) -> bool {
    let status = Command::new(python)
        .args(["-c", code])
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn counts(iterator: &LoaderIterator) -> (u64, u64, u64, u64) {
    let state = iterator.read().expect("reads");
    let workers = state.workers.expect("has workers");
    (
        state.yielded,
        workers.next,
        workers.sent,
        workers.outstanding,
    )
}

#[test]
fn a_trainer_is_seen_waiting_and_training_and_its_iterator_counts() {
    for python in pythons() {
        let mut job = Job::stand_in(&python, "plain");
        job.reaches("waiting");
        let mut stacks = job.stacks();
        let main = stacks.main_thread().expect("reads");
        assert_eq!(
            (main.loader, main.function),
            (InLoader::Waiting, None),
            "{python}"
        );
        let iterator = stacks
            .iterator(main.iterator.expect("shown"))
            .expect("reads");
        assert_eq!(counts(&iterator), (0, 0, 24, 24), "{python}");
        assert_eq!(iterator.parked(), Ok(0));
        assert_eq!(
            iterator.read().map(|state| state.pinned),
            Ok(Some(3)),
            "{python}"
        );
        let settings = iterator.settings();
        assert_eq!(settings.num_workers, Some(8));
        assert_eq!(settings.prefetch_factor, Some(3));
        assert_eq!(settings.pin_memory, Some(false));
        assert_eq!(settings.persistent_workers, Some(false));
        assert_eq!(settings.in_order, Some(true));
        assert_eq!(settings.batch_size, Some(32));

        for batches in [1, 101, 201, 301, 401] {
            job.go_on();
            job.reaches("training");
            let main = stacks.main_thread().expect("reads");
            assert_eq!(main.loader, InLoader::Outside, "{python}");
            assert_eq!(main.function.as_deref(), Some("train_step (main.py)"));
            assert_eq!(
                counts(&iterator),
                (batches, batches, 24 + batches, 24),
                "{python}"
            );
            assert_eq!(iterator.parked(), Ok(2), "{python}");
            job.go_on();
            job.reaches("waiting");
        }
    }
}

#[test]
fn the_iterator_is_found_while_the_trainer_computes() {
    for python in pythons() {
        for mode in ["plain", "enumerated", "persistent"] {
            let mut job = Job::stand_in(&python, mode);
            job.reaches("waiting");
            job.go_on();
            job.reaches("training");
            let found = job.stacks().find_iterators().expect("reads");
            assert_eq!(found.len(), 1, "{python} {mode}");
            assert_eq!(counts(&found[0]).1, 1, "{python} {mode}");
        }
    }
}

#[test]
fn an_iterator_that_was_dropped_is_gone() {
    for python in pythons() {
        let mut job = Job::stand_in(&python, "epochs");
        job.reaches("waiting");
        let mut stacks = job.stacks();
        let iterator = stacks.find_iterators().expect("reads").remove(0);
        job.go_on();
        job.reaches("between");
        assert_eq!(
            iterator.read(),
            Err(PythonError::IteratorGone(job.pid())),
            "{python}"
        );
        assert_eq!(stacks.find_iterators().expect("reads").len(), 0, "{python}");
    }
}

#[test]
fn a_loader_without_workers_is_seen_loading() {
    for python in pythons() {
        let mut job = Job::stand_in(&python, "single");
        job.reaches("loading");
        let mut stacks = job.stacks();
        let main = stacks.main_thread().expect("reads");
        assert_eq!(main.loader, InLoader::Loading, "{python}");
        let iterator = stacks
            .iterator(main.iterator.expect("shown"))
            .expect("reads");
        job.go_on();
        job.reaches("training");
        let one = IteratorState {
            yielded: 1,
            workers: None,
            pinned: None,
        };
        assert_eq!(iterator.read(), Ok(one), "{python}");
    }
}

#[test]
fn a_worker_shows_its_number_its_batch_and_what_it_does() {
    for python in pythons() {
        let mut job = Job::stand_in(&python, "worker");
        job.reaches("busy");
        let mut stacks = job.stacks();
        let worker = stacks.worker().expect("reads");
        assert_eq!(worker.phase, WorkerPhase::Busy, "{python}");
        assert_eq!((worker.worker_id, worker.num_workers), (Some(3), Some(8)));
        assert_eq!(worker.persistent_workers, Some(true));
        assert_eq!((worker.batch, worker.batch_size), (Some(41), Some(32)));
        assert_eq!(worker.function.as_deref(), Some("pause (pause.py)"));
        let in_loop = worker.in_loop.expect("shown");
        let first = in_loop.batch(None).expect("reads").expect("in work");
        assert_eq!(first.number, 41, "{python}");
        job.go_on();
        job.reaches("busy");
        assert_eq!(in_loop.batch(Some(first)), Ok(None), "{python}");
        let worker = stacks.worker().expect("reads");
        assert_eq!(
            (worker.batch, worker.phase),
            (None, WorkerPhase::Preparing),
            "{python}"
        );
        assert_eq!(worker.in_loop, Some(in_loop), "{python}: it stays there");
        job.go_on();
        job.reaches("busy");
        let again = in_loop.batch(None).expect("reads").expect("in work");
        assert_eq!(again.number, first.number, "{python}");
        assert_ne!(again, first, "{python}: the same number in another epoch");
        job.go_on();
        job.reaches("busy");
        let large = in_loop.batch(Some(again)).expect("reads").expect("in work");
        assert_eq!(large.number, 1 << 40, "{python}");
        drop(job);
        assert!(
            in_loop.batch(Some(large)).is_err(),
            "{python}: it has ended"
        );
    }
}

/// The futex that the main thread sleeps on.
fn futex(pid: Pid) -> Option<usize> {
    const FUTEX: &str = if cfg!(target_arch = "x86_64") {
        "202"
    } else {
        "98"
    };
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut words = call.split_whitespace();
    let address = words.by_ref().next().filter(|number| *number == FUTEX);
    address.and_then(|_| usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok())
}

#[test]
fn a_main_thread_that_waits_for_the_interpreters_lock_is_seen_with_who_holds_it() {
    for python in pythons() {
        let mut job = Job::stand_in(&python, "contended");
        job.reaches("running");
        let mut stacks = job.stacks();
        assert!(stacks.knows_gil(), "{python}");
        until(TORCH_AT_MOST, || {
            futex(job.pid()).filter(|futex| stacks.waits_for_gil(*futex))
        });
        let holder = until(TORCH_AT_MOST, || stacks.gil_holder().ok().flatten());
        assert_eq!(holder, "burn (main.py)", "{python}");
    }
}

#[test]
fn a_wait_for_another_lock_is_none_for_the_interpreters() {
    for python in pythons() {
        let mut job = Job::stand_in(&python, "locked");
        job.reaches("running");
        let stacks = job.stacks();
        assert!(stacks.knows_gil(), "{python}");
        let waits: Vec<_> = (0..50)
            .map(|_| until(TORCH_AT_MOST, || futex(job.pid())))
            .collect();
        // The last steps into the wait may still be taken.
        assert!(!stacks.waits_for_gil(waits[49]), "{python}");
    }
}

#[test]
fn torn_reads_are_errors_and_the_end_of_the_process_too() {
    for python in pythons() {
        let mut job = Job::stand_in(&python, "busy");
        job.reaches("running");
        let mut stacks = job.stacks();
        let looks: Vec<_> = (0..2000).map(|_| stacks.main_thread()).collect();
        let right = looks.iter().filter(|look| look.is_ok()).count();
        assert!(right > 1000, "{python}: {right} of 2000 looks");
        for look in looks {
            assert!(
                matches!(look, Ok(_) | Err(PythonError::Torn(_))),
                "{python}: {look:?}"
            );
        }
        let pid = job.pid();
        drop(job);
        assert_eq!(stacks.main_thread(), Err(PythonError::Gone(pid)));
        assert_eq!(Stacks::attach(pid).err(), Some(PythonError::Gone(pid)));
    }
}

#[test]
fn what_is_no_python_is_told_apart() {
    let mut sleep = Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("sleep starts");
    let pid = Pid(sleep.id().cast_signed());
    // Until it has exec'ed it still is a copy of this test.
    until(Duration::from_secs(10), || {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|comm| comm == "sleep\n")
            .then_some(())
    });
    assert_eq!(Stacks::attach(pid).err(), Some(PythonError::NotPython(pid)));
    sleep.kill().expect("ends");
    sleep.wait().expect("ends");
}

/// Runs itself as another user where the test is root.
#[test]
fn a_missing_right_is_told_with_what_would_give_it() {
    if rustix::process::geteuid().is_root() {
        let name = "a_missing_right_is_told_with_what_would_give_it";
        let this = std::env::current_exe().expect("known");
        match Command::new(this)
            .args(["--exact", name])
            .uid(65534)
            .gid(65534)
            .status()
        {
            Ok(status) => assert!(status.success()),
            Err(error) => eprintln!("skipped: another user cannot run this test: {error}"),
        }
        return;
    }
    let error = Stacks::attach(Pid(1)).expect_err("process 1 belongs to root");
    assert_eq!(error, PythonError::NoRight(Pid(1)));
    assert!(error.hint().contains("ptrace_scope"));
}

#[test]
fn pytorch_itself() {
    let (with, without): (Vec<_>, Vec<_>) = interpreters("PIPETOP_TORCH_PYTHONS")
        .into_iter()
        .partition(|python| runs(python, "import torch"));
    if !without.is_empty() {
        let required = std::env::var("PIPETOP_REQUIRE_TORCH").is_ok_and(|value| value == "1");
        assert!(!required, "no PyTorch in {without:?}");
        eprintln!("skipped: no PyTorch in {without:?}");
    }
    for python in with {
        for method in ["fork", "spawn", "forkserver"] {
            loader_with_workers(&python, method);
        }
        loader_in_main(&python);
    }
}

fn loader_with_workers(python: &str, method: &str) {
    let mut job = Job::start(python, "train.py", &["--method", method, "--persistent"]);
    job.reaches("ready");
    let mut stacks = job.stacks();
    let iterator = until(TORCH_AT_MOST, || {
        let main = stacks.main_thread().ok()?;
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

    until(TORCH_AT_MOST, || {
        stacks
            .main_thread()
            .ok()?
            .function
            .filter(|name| name == "train_step (train.py)")
    });
    let found = until(TORCH_AT_MOST, || {
        stacks
            .find_iterators()
            .ok()
            .filter(|found| !found.is_empty())
    });
    assert_eq!(found[0].address(), iterator.address(), "{python} {method}");
    let before = iterator.read().expect("reads").yielded;
    let after = until(TORCH_AT_MOST, || {
        iterator
            .read()
            .ok()
            .filter(|state| state.yielded > before + 5)
    });
    let workers = after.workers.expect("has workers");
    assert_eq!(after.pinned, None);
    assert!(workers.outstanding <= 6, "{after:?}");
    assert!(
        (5..=7).contains(&(workers.sent - workers.next)),
        "{after:?}"
    );

    let numbers: BTreeSet<_> = descendants(job.pid())
        .into_iter()
        .filter_map(|pid| {
            let mut worker = Stacks::attach_like(pid, &stacks).ok()?;
            worker.worker().ok()?.worker_id?;
            let seen = until(TORCH_AT_MOST, || {
                worker
                    .worker()
                    .ok()
                    .filter(|look| look.phase == WorkerPhase::Busy && look.batch.is_some())
            });
            assert_eq!((seen.num_workers, seen.batch_size), (Some(2), Some(4)));
            until(TORCH_AT_MOST, || {
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

fn loader_in_main(python: &str) {
    let mut job = Job::start(python, "train.py", &["--workers", "0"]);
    job.reaches("ready");
    let mut stacks = job.stacks();
    let main = until(TORCH_AT_MOST, || {
        stacks
            .main_thread()
            .ok()
            .filter(|main| main.loader == InLoader::Loading)
    });
    let iterator = stacks
        .iterator(main.iterator.expect("shown"))
        .expect("reads");
    assert_eq!(iterator.settings().num_workers, Some(0), "{python}");
    until(TORCH_AT_MOST, || {
        let main = stacks.main_thread().ok()?;
        main.function
            .filter(|name| main.loader == InLoader::Loading && name == "decode (train.py)")
    });
    until(TORCH_AT_MOST, || {
        iterator
            .read()
            .ok()
            .filter(|state| state.yielded > 5 && state.workers.is_none())
    });
}

/// Children, theirs included.
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

/// Looks again and again until there is an answer.
#[expect(
    clippy::disallowed_methods,
    reason = "a test against processes that keep their own time"
)]
fn until<T>(at_most: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < at_most, "not seen within {at_most:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
