//! How long a GPU idles while the trainer waits, on a simulated GPU: the script knows when the GPU was idle.

use pipetop::testing::probe::Step;

use super::stand::{Run, each_python};
use super::stub::{ITERATOR, with_stub};

/// `train(batches, wait, host, kernel)`: a wait for each batch, then a launched kernel and time on the host, in
/// milliseconds. Prints at the end how long the GPU idled in each wait, in nanoseconds.
const LOOP: &str = "
import json, os, time
import torch.cuda as cuda
class Slow(list):
    def pop(self):
        time.sleep(self.wait / 1e3)
        return super().pop()
idle = []
def train(batches, wait, host, kernel, after=lambda batch: None):
    slow = Slow(reversed(range(batches)))
    slow.wait = wait
    came = max(time.monotonic_ns(), cuda.free_at)
    iterator = iter(d.DataLoader(slow))
    while True:
        batch = next(iterator, None)
        if batch is None: break
        idle.append(max(0, time.monotonic_ns() - came))
        cuda.launch(kernel / 1e3)
        time.sleep(host / 1e3)
        after(batch)
        came = max(time.monotonic_ns(), cuda.free_at)
";

fn run(python: &str, script: &str) -> (Run, Vec<u64>) {
    let script = format!("{LOOP}\n{script}\nprint(json.dumps(idle))");
    let run = with_stub(python, ITERATOR, &script);
    let (code, text, errors) = run.words();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let truth: Vec<u64> = serde_json::from_str(&text).expect("a list");
    let report = run.report();
    assert_eq!(report.totals.steps, truth.len() as u64);
    let numbers = report.steps.iter().map(|step| step.number);
    assert!(numbers.eq(0..truth.len() as u64), "each, in their order");
    (run, truth)
}

/// Returns for the steps with a reported idle time: their number, and the reported and the true sum in milliseconds.
fn idle_sums<'a>(steps: impl IntoIterator<Item = &'a Step>, truth: &[u64]) -> (usize, f64, f64) {
    let pairs: Vec<(u64, u64)> = steps
        .into_iter()
        .zip(truth)
        .filter_map(|(step, true_idle)| Some((step.idle?, *true_idle)))
        .collect();
    let ms = |sum: u64| sum as f64 / 1e6;
    let sum = |of: fn(&(u64, u64)) -> u64| ms(pairs.iter().map(of).sum());
    (pairs.len(), sum(|pair| pair.0), sum(|pair| pair.1))
}

fn close(told: f64, true_idle: f64, steps: usize) {
    println!("idle in {steps} waits: {told:.2} ms, truly {true_idle:.2} ms");
    let allowed = 0.05 * true_idle + 0.3 * steps as f64;
    assert!(
        (told - true_idle).abs() < allowed,
        "{told}, truly {true_idle}"
    );
}

#[test]
fn a_gpu_that_is_waited_for_idles_in_every_wait() {
    each_python(|python| {
        let script = "cuda.start(); train(30, 5, 0, 3, lambda batch: cuda.wait())";
        let (run, truth) = run(python, script);
        let report = run.report();
        let (steps, told, true_idle) = idle_sums(&report.steps, &truth);
        close(told, true_idle, steps);
        assert!(steps >= 28 && told > 5.0 * 28.0, "all but the first");
        assert_eq!(report.device.as_deref(), Some("Fake GPU"));
        assert_eq!(report.notice, None);
    });
}

#[test]
fn computing_during_a_wait_is_not_idle_time() {
    each_python(|python| {
        // A kernel of 8 ms, of which 7 ms are left when the trainer asks for the next batch.
        let (run, truth) = run(python, "cuda.start(); train(30, 12, 1, 8)");
        let report = run.report();
        let (steps, told, true_idle) = idle_sums(&report.steps, &truth);
        close(told, true_idle, steps);
        let waited = report.totals.waited.as_secs_f64() * 1e3;
        assert!(
            steps >= 27 && told < 0.7 * waited,
            "{told} of {waited} waited"
        );
    });
}

#[test]
fn a_gpu_that_falls_behind_delays_no_report() {
    each_python(|python| {
        let (run, truth) = run(python, "cuda.start(); train(100, 1, 0, 8)");
        let report = run.report();
        let (steps, told, true_idle) = idle_sums(&report.steps, &truth);
        close(told, true_idle, steps);
        assert!((5..60).contains(&steps), "of 100: {steps}");
        assert_eq!(report.notice, None);
    });
}

#[test]
fn starting_a_loader_counts_as_idle_time() {
    // On a busy machine, the script may ask for the first batch more than 1 ms after the start. The start would then
    // count as over, without idle time.
    let script = "
import pipetop_hook_device
pipetop_hook_device._AT_ONCE = 1_000_000_000
cuda.start()
begin = d.DataLoader.__iter__.__wrapped__
def slow(self):
    time.sleep(0.05)
    return begin(self)
d.DataLoader.__iter__.__closure__[0].cell_contents = slow
for _ in range(4): train(5, 1, 4, 1)";
    each_python(|python| {
        let (run, truth) = run(python, script);
        let (steps, told, true_idle) = idle_sums(&run.report().steps, &truth);
        assert!(steps >= 17, "{steps} of 20");
        close(told, true_idle, steps);
        assert!(told >= 150.0, "three of the four starts: {told}");
    });
}

#[test]
fn a_gpu_is_not_touched_before_the_script_uses_it_and_not_in_a_capture() {
    let script = "
def change(batch):
    if batch == 10: cuda.start()
    cuda.capturing = 20 <= batch < 30
train(50, 5, 1, 1, change)";
    each_python(|python| {
        let (run, _) = run(python, script);
        let report = run.report();
        assert_eq!(report.notice, None);
        assert_eq!(report.device.as_deref(), Some("Fake GPU"));
        let told: Vec<u64> = report
            .steps
            .iter()
            .filter(|step| step.idle.is_some())
            .map(|step| step.number)
            .collect();
        let expected: Vec<u64> = (17..21).chain(31..49).collect();
        assert!(
            expected.iter().all(|number| told.contains(number)),
            "{told:?}"
        );
        assert!(
            told.iter()
                .all(|number| (11..=20).contains(number) || *number >= 30)
        );
    });
}

#[test]
fn a_gpu_that_cannot_be_timed_costs_its_times_alone() {
    each_python(|python| {
        let script = "cuda.start(); cuda.records_left = 21; train(30, 2, 2, 1)";
        let (run, _) = run(python, script);
        let report = run.report();
        let notice = report.notice.as_deref().expect("it says why");
        assert!(notice.contains("out of events"), "{notice}");
        let told = |step: &&Step| step.idle.is_some();
        let steps = report.steps.iter().filter(told).count();
        assert!((5..=11).contains(&steps), "{steps}");
    });
}

#[test]
fn a_forked_child_frees_nothing_of_its_parent() {
    let script = "
cuda.start()
def fork(batch):
    if batch == 10 and not os.fork():
        cuda.started = False
        child = iter(d.DataLoader([1, 2]))
        while next(child, None): pass
        os._exit(0)
train(20, 3, 0, 1, fork)
os.wait()";
    each_python(|python| {
        let script = format!("{LOOP}\n{script}");
        let run = with_stub(python, ITERATOR, &script);
        assert_eq!(run.words(), (Some(0), String::new(), String::new()));
        assert_eq!(run.reports.len(), 2, "the child has steps of its own");
        let report = &run.reports[&run.pid];
        assert_eq!((report.totals.steps, &report.notice), (20, &None));
    });
}
