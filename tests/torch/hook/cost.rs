//! What the hook costs, each time against the same without it in the same run: blocks of both in turns, and the median.

use pipetop::testing::launch::LoaderOverrides;
use support::machine::{Share, each_interpreter, each_torch};
use support::measured::median_of;

use super::stand::{Run, Stand, job, short, spawn};
use super::stub::{ITERATOR, with_stub};
use support::waiting::ToEnd;

/// The most that [`cost`] may be: 5 us where it takes 0.15 us to read the clock twice and keep what it says.
const MOST: f64 = 33.0;
/// Microseconds that the hook may add to a step of 12 ms, whatever it does: 1 %.
const MOST_OF_A_STEP: f64 = 120.0;

/// The hook's time for a batch, as a multiple of what a loop takes for it that times itself by hand.
fn cost(python: &str, more: &str) -> (f64, Run) {
    // Blocks of a quarter of a millisecond to one: who takes the CPU away takes it from a few of them.
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
        let totals = run.report().totals;
        // Where the machine is busy, the reader comes late and much is lost.
        assert!(totals.steps >= 5_000, "it was timed: {totals:?}");
        assert!(cost < MOST, "{python}: {cost} times by hand");
    });
}

#[test]
fn a_batch_costs_hardly_more_where_a_gpu_is_timed() {
    // What the events themselves take is left out: it is the driver's.
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
        assert!(cost < MOST, "{python}: {cost} times by hand");
    });
}

#[test]
fn steps_take_as_long_as_without_it() {
    each_torch(Share::Whole, |python| {
        let python = &python.path;
        let more = median_of(3, || {
            let run = Stand::new().run(&mut job(python, "in_pairs"));
            let seen = run.truth().seen.expect("two of each");
            let [with, without]: [[f64; 2]; 2] = serde_json::from_value(seen).expect("numbers");
            println!("{python}: ns and sleeps of a call {without:?}, with the hook {with:?}");
            assert!(run.report().totals.steps >= 140, "they were timed");
            assert!(with[1] < without[1] + 0.5, "it waits for nothing");
            (with[0] - without[0]) / 1e3
        });
        println!("{python}: {more:.1} us more a step");
        assert!(more < MOST_OF_A_STEP, "{python}: {more} us more a step");
    });
}

#[test]
fn a_python_that_loads_no_torch_starts_as_quickly() {
    // Processor time since the process began, so that it hardly matters what else runs.
    const SCRIPT: &str = "import time; print(time.process_time_ns())";
    each_interpreter(Share::Whole, |python| {
        let stand = Stand::new();
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
        // Each pair in a row, so that the machine's state meets both.
        let more = median_of(25, || {
            let without = milliseconds(false);
            let with = milliseconds(true);
            println!("{python}: {without:.2} ms until it runs, with the hook {with:.2} ms");
            with - 1.05 * without
        });
        assert!(more < 3.0, "{python}: {more} ms and a twentieth more");
    });
}
