//! The real program as a shell sees it: its output and exit codes, mainly for commands that it refuses.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Output, Stdio};

use proptest::prelude::*;
use serde_json::Value;
use support::fake_root::FakeRoot;
use support::waiting::{ToEnd, ended, wait};

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
/// Control characters that a terminal would act on: set its title, clear the screen, reverse the direction of text.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r) R 1 (";
/// Seconds since boot, and start times of a process that started long ago and of a recent one.
const UPTIME: &str = "1000.00 1.00\n";
const OLD: u64 = 100;
const YOUNG: u64 = 99_900;

/// Returns a command that has no configuration except the test's.
fn pipetop(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(PIPETOP);
    command
        .args(args)
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    command
}

fn run(line: &str) -> Output {
    pipetop(line.split_whitespace()).to_end()
}

/// A refusal: nothing on stdout, one error, one hint, and possibly a list between them.
#[derive(Debug)]
struct Refused {
    error: String,
    choices: Vec<String>,
    hint: String,
}

fn refused_with(output: &Output, code: i32) -> Refused {
    let errors = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert_eq!(output.stdout, b"", "{errors}");
    assert_harmless(&errors);
    let mut lines: Vec<&str> = errors.lines().collect();
    let hint = lines.pop().and_then(|line| line.strip_prefix("hint: "));
    let error = lines.first().and_then(|line| line.strip_prefix("error: "));
    let (error, hint) = (error.expect(&errors), hint.expect(&errors));
    assert!(!error.is_empty() && !hint.is_empty(), "{errors}");
    let choices = lines[1..].iter().map(|line| {
        assert!(line.starts_with("  "), "{errors}");
        line.trim().to_owned()
    });
    Refused {
        choices: choices.collect(),
        error: error.to_owned(),
        hint: hint.to_owned(),
    }
}

/// Returns the error and the hint of a refusal with exit code 1 and without a list.
fn refused(args: &[&str]) -> (String, String) {
    let refused = refused_with(&pipetop(args).to_end(), 1);
    assert_eq!(refused.choices, [""; 0]);
    (refused.error, refused.hint)
}

fn assert_harmless(text: &str) {
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(obeyed), "{text:?}");
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// A process of a machine that a temporary tree simulates.
struct Process<'a> {
    pid: u32,
    parent: u32,
    comm: &'a str,
    command: &'a str,
    state: char,
    kernel: bool,
    started: u64,
}

impl Default for Process<'_> {
    fn default() -> Self {
        Self {
            pid: 1,
            parent: 0,
            comm: "init",
            command: "/sbin/init",
            state: 'S',
            kernel: false,
            started: OLD,
        }
    }
}

fn machine(processes: &[Process<'_>]) -> FakeRoot {
    let root = FakeRoot::new();
    root.file("proc/uptime", UPTIME);
    for process in processes {
        let Process {
            pid,
            parent,
            comm,
            state,
            started,
            ..
        } = process;
        let flags = if process.kernel { 0x0020_0000 } else { 0 };
        let stat = format!(
            "{pid} ({comm}) {state} {parent} {pid} {pid} 0 -1 {flags} 9 0 0 0 50 10 0 0 20 0 1 0 {started} 9 9\n"
        );
        let at = |file: &str| format!("proc/{pid}/{file}");
        root.file(&at("stat"), stat)
            .file(&at("cmdline"), process.command.replace(' ', "\0") + "\0")
            .file(&at("environ"), "HOME=/\0")
            .file(
                &at("maps"),
                "00400000-00500000 r-xp 0 00:00 0 /usr/bin/it\n",
            );
    }
    root
}

/// Returns a trainer with one worker, which is named as in newer versions of PyTorch.
fn trainer(pid: u32, command: &str) -> [Process<'_>; 2] {
    [
        Process {
            pid,
            parent: 1,
            comm: "python3",
            command,
            ..Process::default()
        },
        Process {
            pid: pid + 1,
            parent: pid,
            comm: "pt_data_worker",
            command,
            ..Process::default()
        },
    ]
}

fn on(root: &FakeRoot, line: &str) -> Output {
    let (proc, sys) = (root.proc(), root.sys());
    pipetop(line.split_whitespace())
        .args([OsStr::new("--proc-root"), proc.as_os_str()])
        .args([OsStr::new("--sys-root"), sys.as_os_str()])
        .to_end()
}

#[test]
fn a_process_that_is_no_job_is_refused_with_the_reason() {
    let (error, hint) = refused(&["2147483647"]);
    assert_eq!(error, "no process with PID 2147483647");
    assert!(hint.contains("without a target"), "{hint}");

    let mut sleep = Command::new("sleep").arg("60").spawn().expect("it starts");
    let pid = sleep.id().to_string();
    wait("its name", || {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (comm == "sleep\n").then_some(())
    });
    let (error, _) = refused(&[&pid]);
    assert_eq!(
        error,
        format!(
            "process {pid} (sleep) is not a training job: neither its program nor a child's is named python"
        )
    );

    sleep.kill().expect("it runs");
    wait("its end", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.contains(") Z ").then_some(())
    });
    let (error, _) = refused(&[&pid, "--once"]);
    assert_eq!(error, format!("process {pid} (sleep) has exited (zombie)"));
    ended(&mut sleep);
}

#[test]
fn a_thread_of_the_kernel_is_refused() {
    let root = machine(&[Process {
        pid: 2,
        comm: "kthreadd",
        command: "",
        kernel: true,
        ..Process::default()
    }]);
    let refused = refused_with(&on(&root, "2"), 1);
    assert_eq!(refused.error, "process 2 is a kernel thread");
    let comm = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if comm != "kthreadd\n" {
        return skip("no kernel thread is in sight here");
    }
    assert_eq!(self::refused(&["2"]).0, "process 2 is a kernel thread");
}

#[test]
fn a_word_must_be_in_one_training_job() {
    let word = "no-such-job-e1b5";
    let (error, hint) = refused(&[word]);
    assert_eq!(error, format!("no running command line contains `{word}`"));
    assert!(!hint.is_empty());
    // Control characters are removed from the quoted word.
    let (error, _) = refused(&[&format!("{word}\n{EVIL}")]);
    assert!(
        error.starts_with("no running command line contains"),
        "{error}"
    );

    let editor = |pid| Process {
        pid,
        comm: "vim",
        command: "vim train.py",
        ..Process::default()
    };
    let refused = refused_with(&on(&machine(&[editor(10)]), "train.py"), 1);
    assert_eq!(
        refused.error,
        "process 10 (vim) is not a training job: neither its program nor a child's is named python"
    );
    let refused = refused_with(&on(&machine(&[editor(10), editor(20)]), "train.py"), 1);
    assert_eq!(
        refused.error,
        "several command lines contain `train.py`, but none is a training job"
    );
}

#[test]
fn a_python_without_framework_is_refused_once_it_is_old_enough_to_have_loaded_one() {
    let python = |started| Process {
        pid: 4_100_000,
        comm: "python3",
        command: "python3 server.py",
        started,
        ..Process::default()
    };
    let refused = refused_with(&on(&machine(&[python(OLD)]), "4100000 --once"), 1);
    assert_eq!(
        refused.error,
        "process 4100000 (python3) is not a training job: no loader workers, no deep-learning library loaded"
    );
    // A recent one may still be importing, so it is watched.
    let output = on(
        &machine(&[python(YOUNG)]),
        "4100000 --once --json --for 1s --interval 200ms",
    );
    let report = document(&output);
    assert_eq!(report["job"]["pid"], 4_100_000);
    assert_eq!(report["verdict"]["kind"], "warming-up");
    assert_eq!(report["verdict"]["wait_share"], Value::Null);
    // Unless it is named, it is not a candidate yet.
    let refused = refused_with(&on(&machine(&[python(YOUNG)]), "--once"), 1);
    assert_eq!(refused.error, "no training job is running");
}

#[test]
fn a_web_configuration_is_read_before_a_job_is_looked_for() {
    let line = "--once --web.listen-address 127.0.0.1:0 --web.config.file no/web.yml";
    let refused = refused_with(&on(&FakeRoot::new(), line), 1);
    assert!(refused.error.contains("no/web.yml"), "{}", refused.error);
}

#[test]
fn several_jobs_are_listed_without_control_characters() {
    let evil = format!("python3 {EVIL}\ntrain.py");
    let mut jobs = Vec::from(trainer(4_100_000, &evil));
    jobs.extend(trainer(4_100_010, "python3 train.py --epochs 90"));
    jobs.push(Process {
        pid: 4_100_020,
        comm: EVIL,
        command: &evil,
        ..Process::default()
    });
    let root = machine(&jobs);
    for line in ["", "train.py", "--once", "train.py --json"] {
        let refused = refused_with(&on(&root, line), 1);
        assert_eq!(refused.error, "several training jobs are running");
        assert_eq!(refused.hint, "choose one by its PID: `pipetop PID`");
        assert_eq!(refused.choices.len(), 2, "{refused:?}");
        assert!(refused.choices[0].starts_with("4100000    1 rank     1 worker  "));
        assert!(refused.choices[1].ends_with("  train.py --epochs 90"));
    }
    let refused = refused_with(&on(&root, "4100020"), 1);
    assert!(
        refused.error.contains("is not a training job"),
        "{refused:?}"
    );

    let output = on(&root, "4100000 --once --for 1s --interval 200ms");
    assert_eq!(output.status.code(), Some(0));
    assert_harmless(&String::from_utf8(output.stdout).expect("UTF-8"));
    let output = on(&root, "4100000 --once --json --for 1s --interval 200ms");
    assert_harmless(document(&output)["job"]["command"].as_str().expect("known"));
}

#[test]
fn a_stat_file_that_cannot_be_read_or_understood_is_no_process() {
    let root = machine(&trainer(4_100_000, "python3 train.py"));
    for (pid, stat) in [
        (10, "10 (python3) S 1"),
        (11, ""),
        (12, "not a stat file"),
        (13, "13 (a) S x 1 1 0 -1 0 9 0 0 0 50 10 0 0 20 0 1 0 1 9 9"),
        (
            14,
            "14 )python3( S 1 1 1 0 -1 0 9 0 0 0 50 10 0 0 20 0 1 0 1 9 9",
        ),
    ] {
        root.file(&format!("proc/{pid}/stat"), stat);
        let refused = refused_with(&on(&root, &pid.to_string()), 1);
        assert_eq!(refused.error, format!("no process with PID {pid}"));
    }
    root.file("proc/15/stat/is-a-directory", "");
    root.file("proc/99999999999/stat", "99999999999 (a) S 1");
    assert_eq!(
        refused_with(&on(&root, "15"), 1).error,
        "no process with PID 15"
    );
    // The job beside them is still found.
    let report = document(&on(&root, "--once --json --for 1s --interval 200ms"));
    assert_eq!(report["job"]["pid"], 4_100_000);
}

#[test]
fn a_machine_without_processes_has_no_job() {
    let root = FakeRoot::new();
    for line in ["--once", "--once --json"] {
        let refused = refused_with(&on(&root, line), 1);
        assert_eq!(refused.error, "no training job is running");
    }
    assert_eq!(
        refused_with(&on(&root, "1"), 1).error,
        "no process with PID 1"
    );
    let output = on(&root, "--for 1s --interval 200ms");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0));
    assert!(lines.lines().count() >= 2, "{lines}");
    assert!(
        lines
            .lines()
            .all(|line| line.ends_with("s  no training job yet")),
        "{lines}"
    );
}

#[test]
fn usage_errors_suggest_the_correct_form() {
    for (line, error, hint) in [
        ("--nonsense", "unexpected argument '--nonsense'", ""),
        ("--onec", "'--onec'", "--once"),
        ("--for", "--for <DURATION>", ""),
        ("--for soon", "'soon'", "14s"),
        (
            "--for 1x",
            "'1x' for '--for <DURATION>': not a duration",
            "ms, s, min",
        ),
        ("--interval x", "<DURATION>': not a duration", "500ms"),
        ("--for 0s", "out of range", "1s"),
        ("--for -1", "--for <DURATION>", "14s"),
        ("--interval -1", "--interval <DURATION>", "14s"),
        ("--gpu -1", "not a GPU index", "nvidia-smi"),
        ("--record x --record-size -1", "not a size", "64MiB"),
        ("-p -1", "not a valid PID", "pgrep"),
        ("--theme pink", "--theme <NAME>", "colour-blind"),
        ("replay x --theme pink", "--theme <NAME>", "colour-blind"),
        ("--interval 1ms", "out of range", "100ms"),
        ("--for 1s --interval 2s", "shorter", "two intervals"),
        ("--fail-if nonsense", "'nonsense'", "data-bound"),
        ("--fail-if data-bound,", "a value is required", "data-bound"),
        ("--gpu one", "not a GPU index or UUID", "nvidia-smi"),
        ("0", "not a valid PID", "pgrep"),
        ("99999999999", "not a valid PID", "pgrep"),
        ("1 2", "unexpected argument '2'", ""),
        ("--once doctor", "a command takes no target", "--"),
        ("completions tcsh", "'tcsh'", "bash"),
        ("completions", "<SHELL>", "pipetop completions --help"),
        ("demo --workers 0", "out of range", "from 1 to 256"),
        ("demo --workers -1", "out of range", "from 1 to 256"),
        ("demo --slow-worker 0", "out of range", "from 1"),
        ("sweep --workers a", "not a whole number", "from 0 to 256"),
        ("fleet --prometheus nosuch", "needs an address", "http://"),
    ] {
        let refused = refused_with(&run(line), 2);
        assert!(refused.error.contains(error), "{line}: {refused:?}");
        assert!(refused.hint.contains(hint), "{line}: {refused:?}");
        assert_eq!(refused.choices, [""; 0], "{line}");
    }
    let evil = pipetop(["--for", &format!("1s\n{EVIL}")]).to_end();
    refused_with(&evil, 2);
    let evil = pipetop([OsStr::new("--fail-if"), OsStr::new(EVIL)]).to_end();
    refused_with(&evil, 2);
}

#[test]
fn a_configuration_that_is_wrong_is_refused_with_its_place() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("pipetop.toml");
    let name = path.to_str().expect("UTF-8");
    for (text, place) in [
        ("interval = 5\n", "1:12"),
        ("\nascii = \"maybe\"\n", "2:9"),
        ("[keys]\nquit = [\"q\"]\nwin = [\"w\"]\n", "3:1"),
        ("a = = 1\n", "1:5"),
        ("theme = \"\u{1b}[2J\"", "1:10"),
        ("columns = [\"in\", \"in\"]", "1:18"),
        ("[keys]\nquit = []\n", "2:1"),
    ] {
        std::fs::write(&path, text).expect("a file can be written");
        let (error, hint) = refused(&["--config", name]);
        let expected = format!("{name}:{place}: ");
        assert!(error.starts_with(&expected), "{expected} {error}");
        assert!(hint.contains("pipetop config"), "{hint}");
        let checked = refused(&["config", "--check", name]);
        assert_eq!(checked, (error, hint), "both say the same");
    }
    std::fs::write(&path, [0xff, 0xfe]).expect("a file can be written");
    let (error, _) = refused(&["--config", name]);
    assert!(
        error.starts_with(&format!("cannot read {name}: ")),
        "{error}"
    );
    let directory = directory.path().to_str().expect("UTF-8");
    let (error, _) = refused(&["--config", directory]);
    assert!(
        error.starts_with(&format!("cannot read {directory}: ")),
        "{error}"
    );
    let absent = format!("{directory}/absent.toml");
    let (error, _) = refused(&["--config", &absent, "--once"]);
    assert!(
        error.starts_with(&format!("cannot read {absent}: ")),
        "{error}"
    );
}

#[test]
fn a_named_path_must_exist() {
    let (error, hint) = refused(&["--nvml-lib", "/nonexistent/libnvidia-ml.so.1"]);
    assert_eq!(error, "no NVML library /nonexistent/libnvidia-ml.so.1");
    assert!(hint.contains("--nvml-lib"));
    for root in ["/nonexistent", "/proc/1/stat"] {
        let (error, hint) = refused(&["--proc-root", root, "--once"]);
        assert!(
            error.starts_with(&format!("cannot list {root}: ")),
            "{error}"
        );
        assert!(hint.contains("--proc-root"));
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(folder.path().join("notes"), "").expect("a file can be written");
    let root = folder.path().to_str().expect("UTF-8");
    for line in [&["--once"][..], &["--for", "1s"], &["demo", "--once"]] {
        let mut words = vec!["--proc-root", root];
        words.extend(line);
        let (error, hint) = refused(&words);
        assert_eq!(error, format!("{root} is not a proc filesystem"));
        assert!(hint.contains("--proc-root"));
    }
}

/// Returns the one document that was printed.
fn document(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn printed(line: &str) -> String {
    let output = run(line);
    assert_eq!(output.status.code(), Some(0), "{line}");
    assert_eq!(output.stderr, b"", "{line}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn help_and_version_go_to_stdout() {
    let version = format!("pipetop {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed("--version"), version);
    let help = printed("--help");
    for word in ["--once", "--fail-if", "doctor", "Exit codes"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    assert!(printed("help doctor").contains("--json"));
    assert!(printed("run -h").contains("Arguments:\n  <COMMAND>..."));
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef pipetop"),
        ("fish", "complete -c pipetop"),
    ] {
        let script = printed(&format!("completions {shell}"));
        assert!(script.contains(word) && script.contains("headspace"));
        assert!(!script.contains("builtin-"), "{shell}");
    }
    let pages = printed("man");
    for page in ["pipetop", "pipetop-demo", "pipetop-sweep", "pipetop-doctor"] {
        assert!(pages.contains(&format!(".TH {page} 1")), "{page}");
    }
    for page in [&help, &pages] {
        assert!(page.contains("pipetop 48213 "), "{page}");
        assert!(!page.contains("builtin"), "{page}");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("pipetop.toml");
    std::fs::write(&path, printed("config")).expect("a file can be written");
    let root = FakeRoot::new();
    let line = format!("--config {} --once", path.display());
    let refused = refused_with(&on(&root, &line), 1);
    assert_eq!(
        refused.error, "no training job is running",
        "the printed file is right"
    );
}

/// Returns the flags under each heading of a command's help.
fn flags_by_heading(command: &str) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = vec![];
    for line in printed(&format!("{command} --help")).lines() {
        if let Some(heading) = line.strip_suffix(':').filter(|text| !text.starts_with(' ')) {
            groups.push((heading.to_owned(), vec![]));
        }
        let mut words = line.split([' ', ',']);
        let flag = words.find(|word| word.starts_with("--"));
        if let (true, Some(flag), Some((_, flags))) =
            (line.trim_start().starts_with('-'), flag, groups.last_mut())
        {
            flags.push(flag.to_owned());
        }
    }
    groups
}

#[test]
fn each_demo_flag_is_listed_under_its_heading() {
    let groups = flags_by_heading("demo");
    let under = |heading: &str| {
        let group = groups.iter().find(|(name, _)| name == heading);
        group.map_or(&[][..], |(_, flags)| flags)
    };
    let own = [
        "--list",
        "--tour",
        "--calibrate",
        "--no-probe",
        "--remove-dataset",
    ];
    assert_eq!(under("Demo"), own);
    let job = under("Built-in job");
    assert_eq!(job[0], "--preset");
    assert!(job.len() >= 22, "{job:?}");
    assert_eq!(under("Watching")[..2], ["--once", "--json"]);
    let places = ["--config", "--proc-root", "--sys-root", "--nvml-lib"];
    assert_eq!(under("Paths"), places);
    assert_eq!(under("Log"), ["--log-file"]);
    assert_eq!(under("Options"), ["--help"]);
}

#[test]
fn the_bottlenecks_are_listed_in_lines_of_a_terminal() {
    let list = printed("demo --list");
    assert!(list.lines().all(|line| line.len() < 80), "{list}");
    for preset in ["decode", "blog-starved", "slow-worker", "oversubscribed"] {
        let begins = |line: &str| line.split(' ').next() == Some(preset);
        assert_eq!(list.lines().filter(|line| begins(line)).count(), 1);
    }
    assert!(
        list.ends_with(
            "`pipetop demo` shows decode; use `pipetop demo --preset NAME` for another.\n"
        )
    );
}

#[test]
fn where_there_is_no_job_the_built_in_one_is_offered() {
    let refused = refused_with(&on(&FakeRoot::new(), "--once"), 1);
    assert!(refused.hint.contains("`pipetop demo`"), "{refused:?}");
}

#[test]
fn the_doctor_says_what_it_finds_here_and_on_a_bare_machine() {
    let text = printed("doctor");
    assert!(text.lines().count() > 5, "{text}");
    let checks: Value = serde_json::from_str(&printed("doctor --json")).expect("JSON");
    let checks = checks["checks"]
        .as_array()
        .or(checks.as_array())
        .expect("a list");
    assert!(checks.len() > 5);
    let root = FakeRoot::new();
    let bare = on(&root, "doctor");
    assert_eq!(bare.status.code(), Some(0));
    let bare = String::from_utf8(bare.stdout).expect("UTF-8");
    assert_harmless(&bare);
    assert!(bare.lines().count() > 5, "{bare}");
}

/// Runs the command until one line was read, then closes the read end of its stdout.
fn read_one_line(mut command: Command) -> (String, Output) {
    let mut child: Child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::with_capacity(1, child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("it prints");
    drop(stdout);
    (line, child.to_end())
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let root = FakeRoot::new();
    for line in [
        "--help",
        "completions bash",
        "man",
        "config",
        "doctor",
        "--interval 100ms",
    ] {
        let mut command = pipetop(line.split_whitespace());
        if ["doctor", "--interval 100ms"].contains(&line) {
            command.arg("--proc-root").arg(root.proc());
        }
        let (first, output) = read_one_line(command);
        assert!(first.ends_with('\n'), "{line}");
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert_eq!(output.stderr, b"", "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    /// Must hold whatever the files of a process contain.
    #[test]
    fn no_machine_causes_a_panic_or_control_characters(
        stats in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..6),
        tails in prop::collection::vec("[ -9()A-Za-z\u{1b}\n]{0,120}", 1..6),
        environ in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let root = machine(&trainer(4_100_000, "python3 train.py"));
        for (pid, bytes) in (10..).zip(&stats) {
            root.file(&format!("proc/{pid}/stat"), bytes);
        }
        for (pid, tail) in (20..).zip(&tails) {
            root.file(&format!("proc/{pid}/stat"), format!("{pid} ({tail}) S 1 {tail}"));
            root.file(&format!("proc/{pid}/cmdline"), tail);
        }
        root.file("proc/4100000/environ", environ);
        let mut words = String::new();
        for pid in (10..10 + stats.len()).chain(20..20 + tails.len()) {
            let output = on(&root, &pid.to_string());
            prop_assert_eq!(output.status.code(), Some(1));
            write!(words, "{}", String::from_utf8(output.stderr).expect("UTF-8")).expect("a string");
        }
        assert_harmless(&words);
    }
}

#[test]
fn a_configuration_is_checked_and_nothing_else_is_done() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let usual = directory.path().join("pipetop/pipetop.toml");
    let check = |arguments: &[&str]| {
        let mut command = pipetop(["config", "--check"]);
        command
            .args(arguments)
            .env("XDG_CONFIG_HOME", directory.path());
        let done = command.to_end();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stdout).into_owned()
                + &String::from_utf8_lossy(&done.stderr),
        )
    };
    let (code, said) = check(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("no configuration file at "), "{said}");
    assert!(said.contains(usual.to_str().expect("UTF-8")), "{said}");

    std::fs::create_dir(usual.parent().expect("has one")).expect("ours");
    std::fs::write(&usual, printed("config")).expect("a file can be written");
    assert_eq!(check(&[]), (Some(0), format!("{}: OK\n", usual.display())));

    std::fs::write(&usual, "[colours]\nred = \"blue\"\n").expect("a file can be written");
    let (code, said) = check(&[]);
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with(&format!(
            "error: {}:2:1: unknown name `red`",
            usual.display()
        )),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "{said}");
    // Loader names that cannot be used are errors, too, both here and for a command that would otherwise ignore them.
    let names = directory.path().join("pipetop/loaders.toml");
    std::fs::write(&names, "[[loader]]\nnaem = \"mine\"\n").expect("a file can be written");
    let wrong = format!(
        "{}:2: unknown option `naem`; did you mean `name`?",
        names.display()
    );
    let (_, said) = check(&[]);
    assert!(said.contains("unknown name `red`"), "{said}");
    assert!(said.contains(&wrong), "{said}");
    std::fs::remove_file(&usual).expect("ours");
    let (code, said) = check(&[]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with(&format!("error: {wrong}")), "{said}");
    let watched = pipetop(["--once", "--for", "1s"])
        .env("XDG_CONFIG_HOME", directory.path())
        .to_end();
    assert_eq!(watched.status.code(), Some(1));
    let said = String::from_utf8_lossy(&watched.stderr);
    assert!(said.starts_with(&format!("error: {wrong}")), "{said}");
    let mine = "[[loader]]\nname = \"mine\"\nsource = \"measured\"\nwaits = [\"next@mine/\"]\n";
    std::fs::write(&names, mine).expect("a file can be written");
    let checked = check(&[names.to_str().expect("UTF-8")]);
    assert_eq!(
        checked,
        (Some(0), format!("{}: OK, 1 loader\n", names.display()))
    );
    // A relative path counts as none: it would be a different one in each folder.
    for relative in ["pipetop", ""] {
        let checked = pipetop(["config", "--check"])
            .current_dir(directory.path())
            .env("XDG_CONFIG_HOME", relative)
            .env("HOME", "")
            .to_end();
        let said = String::from_utf8_lossy(&checked.stdout);
        assert_eq!(said, "no configuration file: using the defaults\n");
    }
    // A file named on the command line takes precedence over the usual one.
    let other = directory.path().join("other.toml");
    std::fs::write(&other, "theme = \"colour-blind\"").expect("a file can be written");
    let other = other.to_str().expect("UTF-8");
    for arguments in [&[other][..], &["--config", other]] {
        assert_eq!(check(arguments), (Some(0), format!("{other}: OK\n")));
    }
}

#[test]
fn no_file_has_two_roles_if_one_of_them_is_to_write_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let own = folder.path().join("pipetop");
    fs::create_dir(&own).expect("ours");
    for name in ["one", "pipetop/pipetop.toml", "pipetop/loaders.toml"] {
        fs::write(folder.path().join(name), "# mine\n").expect("ours");
    }
    symlink("one", folder.path().join("link")).expect("ours");
    let run = |line: &str| {
        pipetop(line.split_whitespace())
            .current_dir(folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .to_end()
    };
    for (line, clash) in [
        (
            "--once --config one --log-file one",
            "--log-file and --config",
        ),
        ("--record new --log-file ./new", "--log-file and --record"),
        (
            "serve --log-file link --config one",
            "--log-file and --config",
        ),
        (
            "rules --log-file pipetop/pipetop.toml",
            "--log-file and the usual configuration",
        ),
        (
            "rules --log-file pipetop/loaders.toml",
            "--log-file and the user's loaders.toml",
        ),
        (
            "config --check one --log-file one",
            "--log-file and --check",
        ),
        ("run --log one --config one -- true", "--log and --config"),
        ("replay one --once --log-file one", "--log-file and FILE"),
        ("diff link other --log-file one", "--log-file and BEFORE"),
        ("diff other one --log-file one", "--log-file and AFTER"),
        (
            "serve --textfile new --log-file new",
            "--log-file and --textfile",
        ),
        (
            "serve --textfile one --web.config.file one",
            "--textfile and --web.config.file",
        ),
        (
            "fleet --prometheus http://x --token-file one --log-file one",
            "--log-file and --token-file",
        ),
        (
            "demo --record new --log-file new",
            "--log-file and --record",
        ),
        ("sweep --log one --config one -- true", "--log and --config"),
        (
            "headspace --log new --log-file new -- true",
            "--log and --log-file",
        ),
    ] {
        let Refused { error, .. } = refused_with(&run(line), 1);
        assert_eq!(error, format!("{clash} name the same file"), "{line}");
        assert!(!folder.path().join("new").exists(), "{line}");
    }
    for name in ["one", "pipetop/pipetop.toml", "pipetop/loaders.toml"] {
        let text = fs::read_to_string(folder.path().join(name)).expect("ours");
        assert_eq!(text, "# mine\n", "{name}");
    }
    // Two files that are only read may be the same.
    let Refused { error, .. } = refused_with(&run("diff one one --log-file log"), 1);
    assert!(error.contains("neither a recording nor"), "{error}");
}

#[test]
fn no_file_is_written_that_is_used_without_being_named() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let web = "tls_server_config: {cert_file: one, key_file: new}";
    for (name, text) in [("one", "# mine\n"), ("rec.1", "# mine\n"), ("web.yml", web)] {
        fs::write(folder.path().join(name), text).expect("ours");
    }
    for (line, clash) in [
        (
            "serve --textfile new --web.config.file web.yml",
            "--textfile and the key_file of --web.config.file",
        ),
        (
            "serve --log-file one --web.config.file web.yml",
            "--log-file and the cert_file of --web.config.file",
        ),
        (
            "run --record new --log new.1 -- true",
            "--log and the rotated part of --record",
        ),
        (
            "replay rec --log-file rec.1",
            "--log-file and the rotated part of FILE",
        ),
        (
            "diff rec one --log-file rec.1",
            "--log-file and the rotated part of BEFORE",
        ),
    ] {
        let mut command = pipetop(line.split_whitespace());
        let output = command.current_dir(folder.path()).to_end();
        let Refused { error, .. } = refused_with(&output, 1);
        assert_eq!(error, format!("{clash} name the same file"), "{line}");
    }
    for name in ["new", "new.1"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    for name in ["one", "rec.1"] {
        let text = fs::read_to_string(folder.path().join(name)).expect("ours");
        assert_eq!(text, "# mine\n", "{name}");
    }
}
