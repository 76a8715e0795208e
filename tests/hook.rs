//! What the hook in Python reports, against what each script measured of itself, and that no script notices it.
//!
//! The loops run on the real PyTorch with every interpreter of `PIPETOP_TORCH_PYTHONS` (colon-separated;
//! `python3` by default) that has it; where none has, the test says so and passes, unless
//! `PIPETOP_REQUIRE_TORCH=1`. What needs no torch runs with those of `PIPETOP_PYTHONS`.

#![expect(
    clippy::disallowed_methods,
    reason = "real processes are waited for and timed"
)]
#![expect(clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "figures for who runs with --nocapture")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pipetop::launch::Hook;
use pipetop::probe::Writer;
use pipetop::source::probe::{Listener, Report};
use pipetop::units::Pid;
use tempfile::TempDir;

/// What the script says at its end.
#[derive(Debug, serde::Deserialize)]
struct Truth {
    /// Nanoseconds.
    waited: u64,
    batches: u64,
    digest: String,
    random: f64,
    hooked: bool,
    error: Option<String>,
    child: Option<i32>,
}

/// What was heard of one script and what it left behind.
struct Run {
    pid: Pid,
    output: Output,
    reports: BTreeMap<Pid, Report>,
}

impl Run {
    fn truth(&self) -> Truth {
        let text = String::from_utf8_lossy(&self.output.stdout);
        let errors = String::from_utf8_lossy(&self.output.stderr);
        assert!(self.output.status.success(), "{text}\n{errors}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{errors}"))
    }

    /// The report of the script's own process: nobody else may have written.
    fn report(&self) -> &Report {
        let writers: Vec<_> = self.reports.keys().collect();
        assert_eq!(writers, [&self.pid], "only the trainer writes");
        &self.reports[&self.pid]
    }

    fn notice(&self) -> Option<&str> {
        self.reports.get(&self.pid)?.notice.as_deref()
    }

    fn words(&self) -> (Option<i32>, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Output {
            status,
            stdout,
            stderr,
        } = &self.output;
        (status.code(), text(stdout), text(stderr))
    }
}

/// A listener and the hook, in a directory of its own for temporary files.
struct Stand {
    listener: Listener,
    hook: Hook,
    folder: TempDir,
}

impl Stand {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            listener: Listener::bind().expect("a socket"),
            hook: Hook::install_in(folder.path()).expect("installed"),
            folder,
        }
    }

    /// Runs the command to its end, under the hook.
    fn run(&self, command: &mut Command) -> Run {
        command.envs(self.hook.environment(self.listener.address()));
        let child = spawn(command);
        let pid = Pid(child.id().cast_signed());
        let output = child.wait_with_output().expect("our child");
        Run {
            pid,
            output,
            reports: self.heard(),
        }
    }

    /// What everybody has written. Datagrams come in the order in which they were sent: once the listener
    /// knows ours it knows all before it.
    fn heard(&self) -> BTreeMap<Pid, Report> {
        let own = Pid(std::process::id().cast_signed());
        let address = OsStr::new(self.listener.address());
        let mut writer = Writer::connect(address, None).expect("the listener is there");
        until("the listener hears us", || {
            writer.notice("the end");
            self.listener.writers().contains(&own)
        });
        let writers = self.listener.writers().into_iter();
        writers
            .filter(|pid| *pid != own)
            .filter_map(|pid| Some((pid, self.listener.take(pid)?)))
            .collect()
    }
}

fn spawn(command: &mut Command) -> std::process::Child {
    command
        .env_remove("RANK")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the interpreter starts")
}

fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{what}: not within 20 s"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn listed(variable: &str) -> Vec<String> {
    let list = std::env::var(variable).unwrap_or_else(|_| "python3".to_owned());
    let each = list.split(':').filter(|one| !one.is_empty());
    each.map(str::to_owned).collect()
}

fn pythons() -> Vec<String> {
    listed("PIPETOP_PYTHONS")
}

/// Those that have torch.
fn torches() -> &'static [String] {
    static FOUND: OnceLock<Vec<String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let has_torch = |python: &String| {
            let mut command = Command::new(python);
            let output = command.args(["-c", "import torch"]).output();
            output.is_ok_and(|output| output.status.success())
        };
        let (with, without): (Vec<_>, Vec<_>) = listed("PIPETOP_TORCH_PYTHONS")
            .into_iter()
            .partition(has_torch);
        let must = std::env::var_os("PIPETOP_REQUIRE_TORCH").is_some_and(|value| value == "1");
        for python in without {
            assert!(
                !must,
                "PIPETOP_REQUIRE_TORCH=1, but {python} cannot import torch"
            );
            let line =
                format!("skipped: {python} cannot import torch (set PIPETOP_TORCH_PYTHONS)\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        with
    })
}

fn job(python: &str, situation: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/job.py");
    let mut command = Command::new(python);
    command.arg(script).arg(situation);
    command
}

fn short(python: &str, script: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-c", script]);
    command
}

/// Runs the situation with each torch and compares what was reported with what the script measured.
fn exact(situation: &str) -> Vec<(Run, Truth)> {
    let runs = torches().iter().map(|python| {
        let stand = Stand::new();
        let run = stand.run(&mut job(python, situation));
        let truth = run.truth();
        let report = run.report();
        let totals = report.totals;
        assert!(truth.hooked);
        assert_eq!(report.notice, None);
        assert_eq!((totals.steps, totals.lost), (truth.batches, 0), "{python}");
        assert!(
            report
                .steps
                .iter()
                .map(|step| step.number)
                .eq(0..truth.batches)
        );
        // Each step begins where the one before it ended, or later: after an epoch.
        let each = report.steps.iter().zip(report.steps.iter().skip(1));
        assert!(
            each.clone()
                .all(|(older, newer)| older.step_to <= newer.wait_from)
        );
        let waited = totals.waited.as_nanos();
        let (truly, off) = (
            u128::from(truth.waited),
            waited.abs_diff(truth.waited.into()),
        );
        let allowed = truly / 100 + u128::from(truth.batches) * 1_000_000;
        let ms = |ns: u128| ns as f64 / 1e6;
        let line = format!(
            "{situation}, {python}: waited {:.3} ms, truly {:.3} ms, {} batches",
            ms(waited),
            ms(truly),
            truth.batches
        );
        println!("{line}");
        assert!(off <= allowed, "{line}");
        (run, truth)
    });
    runs.collect()
}

/// Batches that lay ready on average, and the most that can.
fn ready(run: &Run) -> (f64, Option<u32>) {
    let queue = run.report().totals.queue.expect("ready batches are told");
    (queue.ready_sum as f64 / queue.looks as f64, queue.capacity)
}

#[test]
fn in_the_main_process() {
    for (run, truth) in exact("main") {
        assert_eq!(truth.batches, 30);
        assert_eq!(run.report().totals.queue, None, "there is no queue");
    }
}

#[test]
fn forked_workers() {
    for (run, _) in exact("fork") {
        let most = run
            .report()
            .steps
            .iter()
            .filter_map(|step| step.ready)
            .max();
        assert!(most <= Some(4), "{most:?} of 4");
        assert_eq!(ready(&run).1, Some(4));
    }
}

#[test]
fn spawned_workers() {
    exact("spawn");
}

#[test]
fn workers_of_a_fork_server() {
    exact("forkserver");
}

#[test]
fn persistent_workers_and_two_epochs() {
    for (_, truth) in exact("persistent") {
        assert_eq!(truth.batches, 60);
    }
}

#[test]
fn fresh_workers_in_each_epoch() {
    for (_, truth) in exact("fresh") {
        assert_eq!(truth.batches, 60);
    }
}

#[test]
fn two_loaders_that_take_turns_are_one_count() {
    for (_, truth) in exact("interleaved") {
        assert_eq!(truth.batches, 2 * (20 + 4 * 4));
    }
}

#[test]
fn ready_batches_are_many_before_a_slow_trainer_and_none_before_a_quick_one() {
    for (run, _) in exact("full") {
        let (mean, capacity) = ready(&run);
        assert!(mean > 2.5 && capacity == Some(4), "{mean} of {capacity:?}");
    }
    for (run, _) in exact("empty") {
        let (mean, _) = ready(&run);
        assert!(mean < 1.0, "{mean}");
    }
}

#[test]
fn a_loop_that_is_left_early_tells_its_last_step() {
    for (_, truth) in exact("left") {
        assert_eq!(truth.batches, 7);
    }
}

#[test]
fn a_loader_within_a_loader_has_no_steps_of_its_own() {
    exact("nested");
    exact("nested_in_workers");
}

#[test]
fn a_script_with_its_own_next_keeps_it() {
    for (_, truth) in exact("replaced") {
        assert_eq!(truth.batches, 10);
    }
    for python in torches() {
        let run = Stand::new().run(&mut job(python, "replaced_whole"));
        let truth = run.truth();
        assert_eq!(truth.batches, 10);
        assert!(run.reports.is_empty(), "nothing was timed, nothing is told");
    }
}

#[test]
fn a_forked_trainer_tells_of_its_own_steps_alone() {
    for python in torches() {
        let run = Stand::new().run(&mut job(python, "processes"));
        let child = Pid(run.truth().child.expect("it had a child"));
        let steps = |pid: Pid| {
            let report = run.reports.get(&pid).expect("it has written");
            let numbers = report.steps.iter().map(|step| step.number);
            assert!(numbers.eq(0..report.totals.steps), "{:?}", report.steps);
            (report.totals.steps, report.totals.lost)
        };
        assert_eq!(run.reports.len(), 2);
        assert_eq!((steps(run.pid), steps(child)), ((10, 0), (14, 0)));
    }
}

#[test]
fn what_the_data_set_raises_reaches_the_script() {
    for (run, truth) in exact("broken") {
        assert_eq!(truth.error.as_deref(), Some("number 6 is broken"));
        assert_eq!(run.report().totals.steps, 9);
    }
}

#[test]
fn a_thread_that_reads_ahead_is_not_taken_for_the_trainer() {
    for python in torches() {
        let run = Stand::new().run(&mut job(python, "thread"));
        assert_eq!(run.truth().batches, 10);
        assert_eq!(run.report().totals.steps, 0);
        let notice = run.notice().expect("it says why");
        assert!(notice.contains("thread"), "{notice}");
    }
}

#[test]
fn batches_their_order_and_the_random_state_are_the_same_without_it() {
    for python in torches() {
        for situation in ["main", "fork"] {
            let with = Stand::new().run(&mut job(python, situation)).truth();
            let without = spawn(&mut job(python, situation));
            let output = without.wait_with_output().expect("our child");
            let without: Truth = serde_json::from_slice(&output.stdout).expect("its truth");
            assert!(with.hooked && !without.hooked);
            let same = |truth: &Truth| (truth.digest.clone(), truth.random.to_bits());
            assert_eq!(same(&with), same(&without));
        }
    }
}

#[test]
fn a_rank_says_which_one_it_is() {
    for python in torches() {
        let stand = Stand::new();
        // `run` takes RANK away.
        let mut command = Command::new("env");
        command.arg("RANK=3").arg(python);
        command.args(job(python, "left").get_args());
        let run = stand.run(&mut command);
        assert_eq!(run.report().rank, Some(3));
    }
}

#[test]
fn a_job_goes_on_where_nobody_listens_and_where_the_hook_is_gone() {
    for python in torches() {
        let Stand {
            listener,
            hook,
            folder: _folder,
        } = Stand::new();
        let environment = hook.environment(listener.address());
        drop(listener);
        let run = |hooked: bool| {
            let child = spawn(job(python, "fork").envs(environment.clone()));
            let output = child.wait_with_output().expect("our child");
            let truth: Truth = serde_json::from_slice(&output.stdout).expect("its truth");
            assert_eq!((truth.batches, truth.hooked), (30, hooked));
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        };
        run(true);
        drop(hook);
        run(false);
    }
}

/// A stand-in of torch, in a directory that is on the path.
fn stub(folder: &Path, dataloader: &str) {
    let data = folder.join("torch/utils/data");
    fs::create_dir_all(&data).expect("a folder");
    for package in ["torch", "torch/utils"] {
        fs::write(folder.join(package).join("__init__.py"), "").expect("written");
    }
    fs::write(data.join("__init__.py"), "def get_worker_info(): pass\n").expect("written");
    fs::write(data.join("dataloader.py"), dataloader).expect("written");
}

/// Runs `script` after `import torch.utils.data.dataloader as d` with this stand-in of that module.
fn with_stub(python: &str, dataloader: &str, script: &str) -> Run {
    let stand = Stand::new();
    let folder = stand.folder.path().join("stub");
    stub(&folder, dataloader);
    let script = format!(
        "import sys\nsys.path.insert(0, '{}')\nimport torch.utils.data.dataloader as d\n{script}",
        folder.display()
    );
    stand.run(&mut short(python, &script))
}

const ITERATOR: &str = "
class _BaseDataLoaderIter:
    def __init__(self, batches): self.batches = batches
    def __next__(self):
        if not self.batches: raise StopIteration
        return self.batches.pop()
    def __iter__(self): return self
";

#[test]
fn a_torch_that_the_hook_does_not_know_is_left_alone_and_pipetop_is_told() {
    for python in pythons() {
        let run = with_stub(&python, "it = 7\n", "print(d.it)");
        assert_eq!(
            run.words(),
            (Some(0), "7\n".to_owned(), String::new()),
            "{python}"
        );
        let notice = run.notice().expect("it says why");
        assert!(notice.contains("_BaseDataLoaderIter"), "{notice}");

        // It fails with the first batch: nothing can refer weakly to such an iterator.
        let slots = ITERATOR.replace(
            "    def __init__",
            "    __slots__ = ['batches']\n    def __init__",
        );
        let script = "print(list(d._BaseDataLoaderIter([1, 2])), list(d._BaseDataLoaderIter([3])))";
        let run = with_stub(&python, &slots, script);
        assert_eq!(
            run.words(),
            (Some(0), "[2, 1] [3]\n".to_owned(), String::new())
        );
        let report = run.report();
        assert_eq!(report.totals.steps, 0);
        let notice = report.notice.as_deref().expect("it says why");
        assert!(notice.contains("stepped aside: TypeError"), "{notice}");

        // And where nothing is wrong the stand-in is timed.
        let run = with_stub(&python, ITERATOR, script);
        assert_eq!(
            run.words(),
            (Some(0), "[2, 1] [3]\n".to_owned(), String::new())
        );
        let report = run.report();
        assert_eq!((report.totals.steps, &report.notice), (3, &None));
    }
}

#[test]
fn a_module_looks_as_if_the_hook_were_not_there() {
    for python in pythons() {
        let script = "
c = d._BaseDataLoaderIter.__next__
print(type(d.__loader__).__name__, d.__spec__.loader is d.__loader__, 'exec_module' in vars(d.__loader__))
print(c.__name__, c.__qualname__, c.__module__)
try: d._BaseDataLoaderIter(None).__next__(7)
except TypeError as error: print(error)
import importlib
importlib.reload(d)
print(list(d._BaseDataLoaderIter([5])), hasattr(d._BaseDataLoaderIter.__next__, 'timed_by_pipetop'))";
        let run = with_stub(&python, ITERATOR, script);
        let (code, text, errors) = run.words();
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "SourceFileLoader True False");
        let name = "__next__ _BaseDataLoaderIter.__next__ torch.utils.data.dataloader";
        assert_eq!(lines[1], name);
        assert!(lines[2].contains("positional argument"), "{text}");
        assert_eq!(lines[3], "[5] True");
    }
}

/// The same command with and without the hook, with this on `PYTHONPATH` before: what it prints must agree.
fn same_with_and_without(python: &str, arguments: &[&str], before: Option<&Path>) -> String {
    let stand = Stand::new();
    let command = || {
        let mut command = Command::new(python);
        command.args(arguments).env_remove("PYTHONPATH");
        command
    };
    let mut without = command();
    let mut with = command();
    let environment = stand.hook.environment(stand.listener.address());
    with.envs(environment);
    // What the environment of this test holds is not what the script is to find.
    let mut path = stand.hook.path().as_os_str().to_owned();
    if let Some(before) = before {
        without.env("PYTHONPATH", before);
        path.push(":");
        path.push(before);
    }
    with.env("PYTHONPATH", path);
    let finish = |mut command: Command| {
        let child = spawn(&mut command);
        let output = child.wait_with_output().expect("our child");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (without, with) = (finish(without), finish(with));
    assert_eq!(with, without, "{python} {arguments:?}");
    assert!(stand.heard().is_empty(), "no step, no word");
    with.1 + &with.2
}

const LOOK: &str = "import sys; own = sys.modules.get('sitecustomize')
print(own and (own.__file__, own.__spec__.name, own.mark), [p for p in sys.path if 'pipetop-' in p])
print(sys.path, sorted(name for name in sys.modules if 'sitecustomize' in name))
try: import sitecustomize
except ImportError as error: print(error, error.name)
else: print(sitecustomize.__file__)";

#[test]
fn the_sitecustomize_of_the_user_is_run_in_its_own_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |text: &str| fs::write(folder.path().join("sitecustomize.py"), text).expect("written");
    for python in pythons() {
        write(
            "import sys\nmark = 'mine'\nprint('run', __name__, sys.modules[__name__].__file__)\n",
        );
        let text = same_with_and_without(&python, &["-c", LOOK], Some(folder.path()));
        assert_eq!(text.matches("run sitecustomize").count(), 1, "{text}");
        assert!(text.contains("'mine'"), "{text}");

        write("mark = undefined\n");
        let text = same_with_and_without(&python, &["-c", "print('goes on')"], Some(folder.path()));
        assert!(
            text.contains("goes on") && text.contains("Error in sitecustomize"),
            "{text}"
        );

        write("import a_module_that_is_not_there\n");
        same_with_and_without(&python, &["-c", "print('goes on')"], Some(folder.path()));
    }
}

#[test]
fn python_without_any_sitecustomize_or_without_site_starts_as_ever() {
    for python in pythons() {
        let script = LOOK.replace("own.mark", "0");
        same_with_and_without(&python, &["-c", &script], None);
        for flags in ["-S", "-I", "-E", "-s"] {
            // Where Python looks at PYTHONPATH and not at site it sees our folder: that is all.
            same_with_and_without(&python, &[flags, "-c", "print('runs')"], None);
        }
    }
}

const WATCHED: &str = "
import time
try:
    from pipetop_hook import watch
except ImportError:
    watch = iter
def batches():
    for number in range(20):
        time.sleep(0.004)
        yield number
seen = []
for batch in watch(batches()):
    seen.append(batch)
    time.sleep(0.001)
for batch in watch([20, 21]):
    seen.append(batch)
print(seen == list(range(22)))";

#[test]
fn any_iterable_can_be_watched_and_without_pipetop_the_script_runs_as_well() {
    for python in pythons() {
        let stand = Stand::new();
        let run = stand.run(&mut short(&python, WATCHED));
        assert_eq!(run.words(), (Some(0), "True\n".to_owned(), String::new()));
        let totals = run.report().totals;
        assert_eq!((totals.steps, totals.lost), (22, 0));
        assert!(totals.waited >= Duration::from_millis(80), "{totals:?}");
        assert!(totals.stepped >= Duration::from_millis(20), "{totals:?}");
        let alone = spawn(&mut short(&python, WATCHED)).wait_with_output();
        assert_eq!(alone.expect("our child").stdout, b"True\n");
    }
}

#[test]
fn a_batch_costs_less_than_five_microseconds() {
    // The quickest of many rounds: what the hook costs, and not what else runs.
    let script = "
import multiprocessing, time
class Quick(d._BaseDataLoaderIter):
    _num_workers = _prefetch_factor = 2
    _task_info = {0: (0, 1), 1: (0, 1), 2: (0,)}
    _rcvd_idx = 0
    _data_queue = multiprocessing.Queue()
def best(plain):
    if plain: Quick.__next__ = d._BaseDataLoaderIter.__next__.__wrapped__
    times = []
    for _ in range(60):
        quick = Quick([1] * 2000)
        start = time.perf_counter()
        for _ in quick: pass
        times.append((time.perf_counter() - start) / 2000)
    return min(times) * 1e6
hooked = best(False)
print(hooked - best(True))";
    for python in pythons() {
        let run = with_stub(&python, ITERATOR, script);
        let (_, text, errors) = run.words();
        let cost: f64 = text
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("{text}{errors}"));
        println!("{python}: {cost:.2} us a batch");
        let totals = run.report().totals;
        assert!(
            totals.steps + totals.lost >= 100_000,
            "it was timed: {totals:?}"
        );
        assert!(cost < 5.0, "{python}: {cost} us a batch");
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
        for _ in 0..25 {
            run(&mut without, false);
            run(&mut with, true);
        }
        let (with, without) = (with as f64 / 1e6, without as f64 / 1e6);
        println!("{python}: {without:.2} ms until it runs, with the hook {with:.2} ms");
        assert!(with < without + 3.0, "{with} ms, {without} ms");
    }
}

#[test]
fn nothing_is_left_behind() {
    for python in pythons() {
        let Stand {
            listener,
            hook,
            folder,
        } = Stand::new();
        let mut command = short(&python, WATCHED);
        command.env_remove("PYTHONDONTWRITEBYTECODE");
        command.envs(hook.environment(listener.address()));
        let child = spawn(&mut command);
        assert!(
            child
                .wait_with_output()
                .expect("our child")
                .status
                .success()
        );
        assert!(
            hook.path().join("__pycache__").exists(),
            "Python keeps what it compiles"
        );
        drop(hook);
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    }
}
