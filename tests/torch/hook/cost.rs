//! The cost of the hook: blocks with and without it alternate in one run, and the medians are compared.

use pipetop::testing::launch::LoaderOverrides;
use support::machine::{Share, each_interpreter, last_torch};
use support::measured::median_of;

use super::stand::{HookSession, Run, job, short, spawn};
use super::stub::{ITERATOR, with_stub};
use support::waiting::ToEnd;

/// Limit of [`cost`]: 5 us per batch. By hand, reading the clock twice and storing the result takes 0.15 us.
const MAX_COST: f64 = 33.0;
/// Most microseconds that the hook may add to a step of 12 ms in any mode: 1 %.
const MAX_SHARE_OF_STEP: f64 = 120.0;

/// Returns the hook's time per batch, as a multiple of that of a loop that times itself by hand.
fn cost(python: &str, more: &str) -> (f64, Run) {
    // Each block takes between 0.25 and 1 ms, so that losing the CPU affects only a few of them.
    let script = "
import multiprocessing, statistics, time
import torch.cuda as cuda
class Quick(d._BaseDataLoaderIter):
    _num_workers = _prefetch_factor = 2
    _task_info = {0: (0, 1), 1: (0, 1), 2: (0,)}
    _rcvd_idx = 0
    _data_queue = multiprocessing.Queue()
def loop(quick):
    for _ in quick: pass
def by_hand(quick):
    steps = []
    came = time.monotonic_ns()
    for _ in quick:
        had = time.monotonic_ns()
        steps.append((came, had))
        came = time.monotonic_ns()
def nothing(quick): pass
events = nothing
MORE
with_it = d._BaseDataLoaderIter.__next__
without = with_it.__wrapped__
def block(run, next):
    Quick.__next__ = next
    quick = Quick([1] * 250)
    start = time.perf_counter()
    run(quick)
    return (time.perf_counter() - start) / 250 * 1e6
hook, hand = [], []
for _ in range(400):
    bare = block(loop, without)
    hook.append(block(loop, with_it) - bare - block(events, without))
    hand.append(block(by_hand, without) - bare)
hook, hand = statistics.median(hook), statistics.median(hand)
print(hook, hand, file=sys.stderr)
print(hook / hand)";
    let run = with_stub(python, ITERATOR, &script.replace("MORE", more));
    let (_, text, errors) = run.words();
    println!("{python}: us a batch with the hook and by hand: {errors}");
    let cost = text.trim().parse();
    (cost.unwrap_or_else(|_| panic!("{text}{errors}")), run)
}

#[test]
fn a_batch_costs_little() {
    each_interpreter(Share::Whole, |python| {
        let (cost, run) = cost(python, "");
        let totals = &run.report().totals;
        // On a busy machine, reports are read late and many are lost.
        assert!(totals.steps >= 5_000, "it was timed: {totals:?}");
        assert!(cost < MAX_COST, "{python}: {cost} times by hand");
    });
}

#[test]
fn a_batch_costs_hardly_more_where_a_gpu_is_timed() {
    // The time of the events themselves is subtracted, as it is the driver's.
    let script = "
cuda.start()
came, had = cuda.Event(True), cuda.Event(True)
def events(quick):
    for _ in quick.batches:
        cuda.is_current_stream_capturing(); came.record()
        cuda.is_current_stream_capturing(); had.record()
        had.query(); came.query(); came.elapsed_time(had)";
    each_interpreter(Share::Whole, |python| {
        let (cost, run) = cost(python, script);
        let report = run.report();
        let told = report.steps.iter().filter(|step| step.idle.is_some());
        assert!(told.count() >= 5_000, "it was timed");
        assert!(cost < MAX_COST, "{python}: {cost} times by hand");
    });
}

#[test]
fn steps_take_as_long_as_without_it() {
    last_torch(Share::Third, |python| {
        let python = &python.path;
        let more = median_of(3, || {
            let run = HookSession::new().run(&mut job(python, "in_pairs"));
            let seen = run.truth().seen.expect("two of each");
            let [with, without]: [[f64; 2]; 2] = serde_json::from_value(seen).expect("numbers");
            println!("{python}: ns and sleeps of a call {without:?}, with the hook {with:?}");
            assert!(run.report().totals.steps >= 140, "they were timed");
            assert!(with[1] < without[1] + 0.5, "it waits for nothing");
            (with[0] - without[0]) / 1e3
        });
        println!("{python}: {more:.1} us more a step");
        assert!(more < MAX_SHARE_OF_STEP, "{python}: {more} us more a step");
    });
}

#[test]
fn a_python_that_loads_no_torch_starts_as_quickly() {
    // CPU time since the process began, which depends little on other load.
    const SCRIPT: &str = "import time; print(time.process_time_ns())";
    each_interpreter(Share::Third, |python| {
        let stand = HookSession::new();
        let environment = stand
            .hook
            .environment(stand.listener.address(), &LoaderOverrides::default());
        let milliseconds = |hooked: bool| {
            let mut command = short(python, SCRIPT);
            command.env_remove("PYTHONDONTWRITEBYTECODE");
            if hooked {
                command.envs(environment.clone());
            }
            let output = spawn(&mut command).to_end();
            let text = String::from_utf8_lossy(&output.stdout);
            text.trim().parse::<f64>().expect("a time") / 1e6
        };
        // The two runs of a pair follow each other, so that the state of the machine is the same for both.
        let more = median_of(25, || {
            let without = milliseconds(false);
            let with = milliseconds(true);
            println!("{python}: {without:.2} ms until it runs, with the hook {with:.2} ms");
            with - 1.05 * without
        });
        assert!(more < 3.0, "{python}: {more} ms and a twentieth more");
    });
}
