//! Tests the page that describes the probe protocol: its Python writer runs against the real listener.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pipetop::sample::{BatchClock, JobSample, LoaderKind, Tier};
use pipetop::testing::engine::Engine;
use pipetop::testing::job::{Candidate, Target};
use pipetop::testing::probe::VARIABLE;
use pipetop::testing::source::probe::{Listener, ProbeReport};
use pipetop::testing::source::process::ProcessReader;
use pipetop::testing::source::sampler::{Options, Sampler};
use pipetop::units::Pid;
use support::machine::{Share, each_interpreter};
use support::waiting::ended;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/probe.md");
    fs::read_to_string(path).expect("the page is there")
}

/// Returns the Python blocks of the page, in order.
fn blocks(page: &str) -> Vec<&str> {
    let begins = page.split("```python\n").skip(1);
    begins
        .map(|rest| rest.split_once("```").expect("each block ends").0)
        .collect()
}

/// Starts `script` with this Python, reporting to `listener`.
fn start(python: &str, listener: &Listener, script: &str) -> Child {
    Command::new(python)
        .args(["-c", script])
        .env(VARIABLE, listener.address())
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts")
}

fn heard(listener: &Listener, mut child: Child) -> ProbeReport {
    let pid = Pid(child.id().cast_signed());
    assert!(ended(&mut child).success());
    // The reports are in the socket until the listening thread reads them.
    let mut all: Option<ProbeReport> = None;
    let (_keep, never) = mpsc::channel::<()>();
    for _ in 0..2000 {
        if let Some(mut report) = listener.take(pid) {
            let mut steps = all.take().map(|before| before.steps).unwrap_or_default();
            steps.append(&mut report.steps);
            let done = report.last_number == Some(49);
            all = Some(ProbeReport { steps, ..report });
            if done {
                break;
            }
        }
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
    all.expect("something was heard")
}

#[test]
fn the_python_writer_of_the_page_works() {
    each_interpreter(Share::Quarter, |python| {
        let listener = Listener::bind().expect("a socket");
        let page = page();
        let [writer, around] = blocks(&page)[..] else {
            panic!("the page has two blocks of Python");
        };
        let lines = writer.lines().filter(|line| !line.trim().is_empty());
        assert!(lines.count() <= 12, "it promises few lines");
        // A loader that needs 2 ms per batch, and a step of 1 ms.
        let script = format!(
            "{writer}
def batches():
    for number in range(50):
        time.sleep(0.002)
        yield number
loader = batches()
def train(batch):
    time.sleep(0.001)
{around}"
        );
        let report = heard(&listener, start(python, &listener, &script));
        let totals = &report.totals;
        assert_eq!((totals.steps, totals.lost), (50, 0));
        assert_eq!(report.steps.len(), 50);
        assert!(report.steps.iter().map(|step| step.number).eq(0..50));
        assert!(totals.waited >= Duration::from_millis(100), "{totals:?}");
        assert!(totals.stepped >= Duration::from_millis(50), "{totals:?}");
        assert_eq!(
            (totals.busy, report.queue, report.misdated),
            (None, None, 0)
        );
    });
}

#[test]
fn the_writer_of_the_page_counts_what_it_cannot_send() {
    each_interpreter(Share::Quarter, |python| {
        let listener = Listener::bind().expect("a socket");
        let page = page();
        let script = format!(
            "{}
now = time.monotonic_ns()
real, sent = probe, []
class Full:
    def send(self, data):
        if len(sent) in (3, 4):
            sent.append(None)
            raise BlockingIOError()
        sent.append(data)
        real.setblocking(True)
        return real.send(data)
probe = Full()
for number in range(50):
    report(number, now, now, now, 'ready=2 busy=0')
assert lost == 2, lost",
            blocks(&page)[0]
        );
        let report = heard(&listener, start(python, &listener, &script));
        assert_eq!((report.totals.steps, report.totals.lost), (48, 2));
        assert!(report.queue.is_some_and(|queue| queue.ready_sum == 96));
    });
}

/// A process that ends with the test.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Watches a job until it has taken this many batches. Returns the engine, the last sample, and the number of waits in
/// all samples.
fn watch(listener: &Arc<Listener>, pid: Pid, enough: u64) -> (Engine, JobSample, u64) {
    let stat = ProcessReader::new(Path::new("/proc")).stat(pid);
    let key = stat.expect("it runs").key;
    let options = Options {
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        nvml_lib: Some("/nonexistent/libnvidia-ml.so".into()),
        gpus: None,
        interval: Duration::from_millis(200),
        target: Target::Pid(pid),
        probe: Some(Arc::clone(listener)),
        recorder: None,
        tee: None,
        lacking: vec![],
    };
    let found = Candidate {
        ranks: vec![key],
        command: "python train.py".to_owned(),
        workers: 0,
        starter: None,
    };
    let (send, samples) = mpsc::channel();
    let sampler = Sampler::start(options, Some(found), move |sample| {
        send.send(sample).is_ok()
    });
    let sampler = sampler.expect("a thread");
    let mut engine = Engine::new(Duration::MAX);
    let (mut waits, mut last) = (0, None);
    for sample in samples {
        let at = sample.at.since_start;
        let job = sample.job.clone().expect("it is watched");
        waits = job.ranks[0].waits.count.expect("they have numbers");
        last = Some(job);
        let step = engine
            .push(sample)
            .model
            .window()
            .and_then(|rates| rates.job.as_ref());
        let batches = step.and_then(|job| job.ranks[0].step.batches);
        if batches.is_some_and(|batches| batches >= enough) || at > Duration::from_secs(20) {
            break;
        }
    }
    drop(sampler);
    (engine, last.expect("samples"), waits)
}

#[test]
fn a_watched_job_that_reports_is_known_exactly() {
    each_interpreter(Share::Quarter, |python| {
        let listener = Arc::new(Listener::bind().expect("a socket"));
        let page = page();
        let [writer, around] = blocks(&page)[..] else {
            panic!("the page has two blocks of Python");
        };
        // 6 ms of waiting and 2 ms of work, or more on a busy machine.
        let script = format!(
            "{writer}
def batches():
    while True:
        time.sleep(0.006)
        yield 0
loader = batches()
def train(batch):
    time.sleep(0.002)
{around}"
        );
        let job = Job(start(python, &listener, &script));
        let pid = Pid(job.0.id().cast_signed());
        let (engine, job, waits) = watch(&listener, pid, 100);
        assert_eq!(job.access, Tier::T3);
        let rank = &job.ranks[0];
        let reported = rank.reported.as_ref().expect("it reports");
        assert_eq!((waits, reported.lost), (reported.steps, 0));
        assert!(rank.waits.newest.iter().all(|wait| wait.from <= wait.to));
        let loader = &rank.loaders[0];
        // `Other` if stacks have shown in time where the loop takes its batches.
        let reported_or_seen = [LoaderKind::Reported, LoaderKind::Other];
        assert!(rank.loaders.len() == 1 && reported_or_seen.contains(&loader.kind));
        let count = loader.batches.expect("counted");
        assert_eq!(
            (count.count, count.source),
            (reported.steps, BatchClock::Probe)
        );
        let rates = engine.state().model.window().expect("a window");
        let rank = &rates.job.as_ref().expect("the job").ranks[0];
        let wait = rank.wait.expect("known");
        // Agrees exactly with the steps of the window.
        let (step_ms, wait_ms) = (
            rank.step.step_ms.unwrap_or(0.0),
            rank.step.wait_ms.unwrap_or(0.0),
        );
        assert!((wait.share.0 - wait_ms / (wait_ms + step_ms)).abs() < 1e-9);
        assert!(wait_ms >= 6.0 && step_ms >= 2.0, "{wait_ms} {step_ms}");
        assert!(wait.high.0 - wait.low.0 < 0.2, "{wait:?}");
        assert_eq!(
            wait.polls,
            rank.step.batches.unwrap_or(0),
            "steps, not looks"
        );
    });
}

#[test]
fn every_field_of_the_page_is_read() {
    let page = page();
    let example = page
        .split("```text\n")
        .nth(1)
        .and_then(|rest| rest.split_once("```"))
        .expect("the example")
        .0;
    let message =
        pipetop::testing::probe::Message::parse(example.as_bytes()).expect("it is a message");
    assert_eq!(
        (message.pid, message.rank, message.capacity),
        (4242, Some(0), Some(8))
    );
    assert_eq!(message.device.as_deref(), Some("NVIDIA H200"));
    assert!(message.notice.is_some());
    let step = message.steps[0];
    assert_eq!(
        (step.number, step.ready, step.copy),
        (17, Some(3), Some(1_200_000))
    );
    assert_eq!(step.busy, Some(98_000_000));
    let unread = ["pid", "lost", "rank", "capacity", "ready", "copy", "busy"];
    assert!(
        unread
            .iter()
            .all(|key| page.contains(&format!("| `{key}` |")))
    );
}
