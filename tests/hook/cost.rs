//! What the hook costs.

use crate::measured::measured;
use crate::stand::{Run, Stand, job, pythons, short, spawn, torches};
use crate::stub::{ITERATOR, with_stub};

/// Microseconds that the hook takes for a batch: the quickest of many rounds, so that it does not matter what
/// else runs. More of them where they are more than `most`.
fn cost(python: &str, more: &str, most: f64) -> (f64, Run) {
    measured(|| once(python, more), |(cost, _)| *cost < most)
}

fn once(python: &str, more: &str) -> (f64, Run) {
    let script = "
import multiprocessing, time
import torch.cuda as cuda
class Quick(d._BaseDataLoaderIter):
    _num_workers = _prefetch_factor = 2
    _task_info = {0: (0, 1), 1: (0, 1), 2: (0,)}
    _rcvd_idx = 0
    _data_queue = multiprocessing.Queue()
def best(run):
    times = []
    for _ in range(400):
        quick = Quick([1] * 250)
        start = time.perf_counter()
        run(quick)
        times.append((time.perf_counter() - start) / 250)
    return min(times) * 1e6
def loop(quick):
    for _ in quick: pass
MORE
hooked = best(loop)
Quick.__next__ = d._BaseDataLoaderIter.__next__.__wrapped__
print(hooked - best(loop) - events)";
    let run = with_stub(python, ITERATOR, &script.replace("MORE", more));
    let (_, text, errors) = run.words();
    let cost = text.trim().parse();
    (cost.unwrap_or_else(|_| panic!("{text}{errors}")), run)
}

#[test]
fn a_batch_costs_less_than_five_microseconds() {
    for python in pythons() {
        let (cost, run) = cost(&python, "events = 0", 5.0);
        println!("{python}: {cost:.2} us a batch");
        let totals = run.report().totals;
        // Where the machine is busy, the reader comes late and much is lost.
        assert!(totals.steps >= 5_000, "it was timed: {totals:?}");
        assert!(cost < 5.0, "{python}: {cost} us a batch");
    }
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
        had.query(); came.query(); came.elapsed_time(had)
events = best(events)";
    for python in &pythons() {
        // Before 3.11 Python takes twice as long for everything.
        let new = with_stub(python, ITERATOR, "assert sys.version_info >= (3, 11)");
        let most = if new.output.status.success() {
            5.0
        } else {
            10.0
        };
        let (cost, run) = cost(python, script, most);
        println!("{python}: {cost:.2} us a batch with a GPU");
        let report = run.report();
        let told = report.steps.iter().filter(|step| step.idle.is_some());
        assert!(told.count() >= 5_000, "it was timed");
        assert!(cost < most, "{python}: {cost} us a batch");
    }
}

#[test]
fn steps_take_as_long_as_without_it() {
    for python in torches() {
        // Another look where the machine was busy with something else in just one of the two.
        let close = (0..3).any(|_| {
            let run = Stand::new().run(&mut job(python, "in_pairs"));
            let seen = run.truth().seen.expect("two times");
            let times: [f64; 2] = serde_json::from_value(seen).expect("two numbers");
            let [with, without] = times.map(|nanoseconds| nanoseconds / 1e6);
            println!("{python}: steps of {without:.3} ms, with the hook {with:.3} ms");
            assert!(run.report().totals.steps >= 140, "they were timed");
            without > 12.0 && with < 1.01 * without
        });
        assert!(close, "{python}: one step in a hundred is lost");
    }
}

#[test]
fn a_python_that_loads_no_torch_starts_as_quickly() {
    // Processor time since the process began, so that it does not matter what else runs.
    const SCRIPT: &str = "import time; print(time.process_time_ns())";
    for python in pythons() {
        let stand = Stand::new();
        let environment = stand.hook.environment(stand.listener.address());
        let (mut with, mut without) = (u64::MAX, u64::MAX);
        let run = |best: &mut u64, hooked: bool| {
            let mut command = short(&python, SCRIPT);
            command.env_remove("PYTHONDONTWRITEBYTECODE");
            if hooked {
                command.envs(environment.clone());
            }
            let output = spawn(&mut command).wait_with_output().expect("our child");
            let text = String::from_utf8_lossy(&output.stdout);
            *best = text.trim().parse::<u64>().expect("a time").min(*best);
        };
        // The quickest of each, in turns, so that the machine's state meets both.
        let milliseconds = || {
            for _ in 0..25 {
                run(&mut without, false);
                run(&mut with, true);
            }
            let (with, without) = (with as f64 / 1e6, without as f64 / 1e6);
            println!("{python}: {without:.2} ms until it runs, with the hook {with:.2} ms");
            [with, without]
        };
        let is_quick = |[with, without]: &[f64; 2]| *with < 1.05 * without + 3.0;
        let found = measured(milliseconds, is_quick);
        assert!(is_quick(&found), "with and without the hook: {found:?} ms");
    }
}
