//! Reads stacks and loader counters of real, running Python processes.
//!
//! A stand-in of PyTorch's classes shows their memory layout in each Python version: it runs with the interpreters of
//! `PIPETOP_PYTHONS`.

mod pytorch;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pipetop::testing::source::python::{
    InLoader, IteratorState, LoaderIterator, PythonError, Stacks, ThreadContext, WorkerPhase,
};
use pipetop::units::Pid;
use support::for_everyone;
use support::machine::{Share, each_interpreter, is_root};

use crate::job::NOBODY;
use support::waiting::{ToEnd, ended};

const TORCH_TIMEOUT: Duration = Duration::from_secs(90);

/// A Python process that dies with the test.
struct Job {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Job {
    fn start(python: &str, script: &str, arguments: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/torch/python")
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

    /// Waits until the script reports that it has reached `state`, where it stays.
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

/// Runs `body` with each Python. A stand-in needs little of the machine.
fn each_python(body: impl Fn(&str) + Sync) {
    each_interpreter(Share::Quarter, body);
}

fn yielded(iterator: &LoaderIterator) -> u64 {
    iterator.read().expect("reads").yielded
}

#[test]
fn a_trainer_is_seen_waiting_and_training_and_its_iterator_counts() {
    each_python(|python| {
        let mut job = Job::stand_in(python, "plain");
        job.reaches("waiting");
        let mut stacks = job.stacks();
        let main = stacks.main_thread(ThreadContext::default()).expect("reads");
        assert_eq!(
            (main.loader, main.function.as_deref()),
            (InLoader::Waiting, None),
            "{python}"
        );
        assert_eq!(
            stacks.main_if_unchanged(ThreadContext::default()).as_ref(),
            Some(&main)
        );
        let iterator = stacks
            .iterator(main.iterator.expect("shown"))
            .expect("reads");
        assert_eq!(yielded(&iterator), 0, "{python}");
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
            let main = stacks.main_thread(ThreadContext::default()).expect("reads");
            assert_eq!(main.loader, InLoader::Outside, "{python}");
            assert_eq!(main.function.as_deref(), Some("train_step (main.py)"));
            assert_eq!(yielded(&iterator), batches, "{python}");
            job.go_on();
            job.reaches("waiting");
        }
    });
}

#[test]
fn the_iterator_is_found_while_the_trainer_computes() {
    each_python(|python| {
        for mode in ["plain", "enumerated", "persistent", "script"] {
            let mut job = Job::stand_in(python, mode);
            job.reaches("waiting");
            job.go_on();
            job.reaches("training");
            let found = job.stacks().find_iterators().expect("reads");
            assert_eq!(found.len(), 1, "{python} {mode}");
            assert_eq!(yielded(&found[0]), 1, "{python} {mode}");
            assert_eq!(found[0].result_pipe(), Ok(Some(77)), "{python} {mode}");
        }
    });
}

#[test]
fn an_iterator_that_was_dropped_is_gone() {
    each_python(|python| {
        let mut job = Job::stand_in(python, "epochs");
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
    });
}

#[test]
fn a_loader_without_workers_is_seen_loading() {
    each_python(|python| {
        let mut job = Job::stand_in(python, "single");
        job.reaches("loading");
        let mut stacks = job.stacks();
        let main = stacks.main_thread(ThreadContext::default()).expect("reads");
        assert_eq!(main.loader, InLoader::Loading, "{python}");
        let iterator = stacks
            .iterator(main.iterator.expect("shown"))
            .expect("reads");
        job.go_on();
        job.reaches("training");
        let one = IteratorState {
            yielded: 1,
            pinned: None,
        };
        assert_eq!(iterator.read(), Ok(one), "{python}");
    });
}

#[test]
fn a_worker_shows_its_number_its_batch_and_what_it_does() {
    each_python(|python| {
        let mut job = Job::stand_in(python, "worker");
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
    });
}

/// Returns the futex that the main thread sleeps on.
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
    each_python(|python| {
        let mut job = Job::stand_in(python, "contended");
        job.reaches("running");
        let mut stacks = job.stacks();
        assert!(stacks.has_gil(), "{python}");
        until(TORCH_TIMEOUT, || {
            futex(job.pid()).filter(|futex| stacks.waits_for_gil(*futex))
        });
        let holder = until(TORCH_TIMEOUT, || stacks.gil_holder().ok().flatten());
        assert_eq!(holder, "burn (main.py)", "{python}");
    });
}

#[test]
fn a_wait_for_another_lock_is_none_for_the_interpreters() {
    each_python(|python| {
        let mut job = Job::stand_in(python, "locked");
        job.reaches("running");
        let stacks = job.stacks();
        assert!(stacks.has_gil(), "{python}");
        let waits: Vec<_> = (0..50)
            .map(|_| until(TORCH_TIMEOUT, || futex(job.pid())))
            .collect();
        // The first readings may show the thread on its way into the wait.
        assert!(!stacks.waits_for_gil(waits[49]), "{python}");
    });
}

#[test]
fn torn_reads_are_errors_and_the_end_of_the_process_too() {
    each_python(|python| {
        let mut job = Job::stand_in(python, "busy");
        job.reaches("running");
        let mut stacks = job.stacks();
        let polls: Vec<_> = (0..2000)
            .map(|_| stacks.main_thread(ThreadContext::default()))
            .collect();
        let right = polls.iter().filter(|look| look.is_ok()).count();
        assert!(right > 1000, "{python}: {right} of 2000 looks");
        for look in polls {
            assert!(
                matches!(look, Ok(_) | Err(PythonError::Torn(_))),
                "{python}: {look:?}"
            );
        }
        let pid = job.pid();
        drop(job);
        assert_eq!(
            stacks.main_thread(ThreadContext::default()),
            Err(PythonError::Gone(pid))
        );
        assert_eq!(stacks.main_if_unchanged(ThreadContext::default()), None);
        assert_eq!(Stacks::attach(pid).err(), Some(PythonError::Gone(pid)));
    });
}

#[test]
fn other_programs_are_distinguished_from_python() {
    let mut sleep = Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("sleep starts");
    let pid = Pid(sleep.id().cast_signed());
    // Until it has exec'ed, it is still a copy of this test.
    until(Duration::from_secs(10), || {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|comm| comm == "sleep\n")
            .then_some(())
    });
    assert_eq!(Stacks::attach(pid).err(), Some(PythonError::NotPython(pid)));
    sleep.kill().expect("ends");
    ended(&mut sleep);
}

/// Runs itself as another user if the test is root.
#[test]
fn a_missing_permission_is_reported_with_the_remedy() {
    if is_root() {
        // Another user may not have access to the folder of the tests.
        let this = std::env::current_exe().expect("known");
        let (_directory, this) = for_everyone(&this).expect("a copy");
        let name = format!(
            "{}::a_missing_permission_is_reported_with_the_remedy",
            module_path!().split_once("::").expect("a module").1
        );
        let output = Command::new(this)
            .args(["--exact", &name])
            .uid(NOBODY)
            .gid(NOBODY)
            .to_end();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    }
    let error = Stacks::attach(Pid(1)).expect_err("process 1 belongs to root");
    assert_eq!(error, PythonError::NoRight(Pid(1)));
    assert!(error.hint().contains("ptrace_scope"));
}

/// A C function in any statement is recognised by the name in the call, or not at all.
#[test]
fn a_function_written_in_c_is_known_by_what_is_called() {
    each_python(|python| {
        let mut job = Job::start(python, "calls.py", &[]);
        let mut stacks = None;
        let context = ThreadContext {
            accelerated: true,
            ..ThreadContext::default()
        };
        loop {
            let mut line = String::new();
            job.lines.read_line(&mut line).expect("the script writes");
            let Some((means, source)) = line.trim_end().split_once('\t') else {
                assert_eq!(line, "end\n", "{python}");
                break;
            };
            let stacks = stacks.get_or_insert_with(|| job.stacks());
            // The thread may not have reached the call yet.
            let mut read = || stacks.main_thread(context).ok()?.device;
            let known = if means.is_empty() {
                let mut asleep = (0..20).map(|_| until(TORCH_TIMEOUT, || futex(job.pid())));
                asleep.find_map(|_| read())
            } else {
                Some(until(TORCH_TIMEOUT, &mut read))
            };
            let known = known.unwrap_or_default();
            assert_eq!(known, means, "{python}: {source}");
            let none = stacks.main_thread(ThreadContext::default());
            assert_eq!(none.expect("reads").device, None, "{python}: {source}");
            job.go_on();
        }
    });
}

/// Polls until there is an answer.
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
