//! `pipetop run` as a user sees it: what the command gets, how both end, and that nothing is left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::run_folder::RunFolder;
use support::waiting::{ToEnd, ended, wait};

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
/// Runs longer than any test waits. The shell waits for background processes: a shell that waits for a foreground
/// program goes on if that program survives the signal, which happens if the signal arrives before the program has
/// begun.
const LONG: &str = "sleep 3000 & sleep 3000 & echo begun; wait; echo never";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_words_arrive_as_they_are_and_the_exit_code_is_the_commands() {
    let place = RunFolder::new();
    for (words, code, out) in [
        (
            &["--", "printf", "%s|", "a b", "--once", ""][..],
            0,
            "a b|--once||",
        ),
        (&["printf", "%s|", "--json"], 0, "--json|"),
        (&["A=1", "B=x=y", "sh", "-c", "echo $A $B"], 0, "1 x=y\n"),
        (&["sh", "-c", "echo; exit 7"], 7, "\n"),
        (&["sh", "-c", "kill -9 $$"], 137, ""),
    ] {
        let run = place.run(words);
        assert_eq!(
            run.status.code(),
            Some(code),
            "{words:?}: {}",
            text(&run.stderr)
        );
        assert_eq!(text(&run.stdout), out, "{words:?}");
    }
    place.assert_nothing_is_left();
}

#[test]
fn a_command_that_fails_before_it_trains_is_one_error_and_one_that_ends_well_none() {
    let place = RunFolder::new();
    let errors = text(&place.run(&["sh", "-c", "exit 2"]).stderr);
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(
        lines[0].starts_with("error: sh -c 'exit 2' ") && lines[0].contains("code 2 before"),
        "{errors}"
    );
    let errors = text(&place.run(&["true"]).stderr);
    assert!(
        errors.starts_with("note: ") && !errors.contains("error"),
        "{errors}"
    );
}

#[test]
fn no_descriptor_of_ours_gets_into_the_command() {
    let place = RunFolder::new();
    let words = ["sh", "-c", "ls /proc/$$/fd"];
    let mut without = Command::new(words[0]);
    let without = without.args(&words[1..]).stdin(Stdio::null());
    let without = without.to_end();
    assert_eq!(text(&place.run(&words).stdout), text(&without.stdout));
}

#[test]
fn the_command_has_the_users_limit_of_open_files_and_pipetop_all_it_may_have() {
    let place = RunFolder::new();
    let inner = "ulimit -Sn; read _ _ _ pipetop _ < /proc/$PPID/stat; grep 'open files' /proc/$pipetop/limits";
    let outer = format!("ulimit -Sn 300 && exec {PIPETOP} run sh -c \"$INNER\"");
    let run = place.run(&[&format!("INNER={inner}"), "sh", "-c", &outer]);
    let text = text(&run.stdout);
    let (own, pipetops) = text.split_once('\n').expect("two lines");
    assert_eq!(own, "300", "{}", self::text(&run.stderr));
    let limits: Vec<&str> = pipetops.split_whitespace().skip(3).take(2).collect();
    assert_eq!(limits[0], limits[1], "{text}");
    assert_ne!(limits[0], "300", "{text}");
}

#[test]
fn a_command_that_cannot_be_run_is_one_line_and_a_hint() {
    let place = RunFolder::new();
    let file = |name: &str, content: &str, mode: u32| {
        let path = place.path().join(name);
        fs::write(&path, content).expect("ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        path.to_str().expect("UTF-8").to_owned()
    };
    let plain = file("plain", "x", 0o644);
    let orphan = file("orphan", "#!/no/such/python\n", 0o755);
    let script = file("train.py", "print(1)\n", 0o644);
    let bare = file("bare", "\u{7f}no program\n", 0o755);
    for (command, code, reason, hint) in [
        (
            "no-such-command",
            127,
            "command not found",
            "check its name",
        ),
        (
            "--onec",
            127,
            "command not found",
            "not an option of pipetop",
        ),
        (
            &orphan,
            127,
            "command not found",
            "the interpreter in its first line",
        ),
        (&plain, 126, "not executable", "chmod +x"),
        (&bare, 126, "not a program", "run its interpreter"),
        (&script, 126, "not executable", "`pipetop run python "),
    ] {
        let run = place.run(&["--", command]);
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "{errors}");
        let [error, advice] = errors.lines().collect::<Vec<_>>()[..] else {
            panic!("{errors}");
        };
        assert!(
            error.starts_with("error: cannot run `") && error.contains(reason),
            "{error}"
        );
        assert!(
            advice.starts_with("hint: ") && advice.contains(hint),
            "{advice}"
        );
    }
    for (words, message) in [
        (&[][..], "COMMAND"),
        (&["--", "A=1"], "no command given"),
        (&["--stop", "--", "true"], "--stop needs --once or --for"),
        (&["--log", "/dev/null", "--", "true"], "not a regular file"),
        (
            &["--log", "/no/such/log", "--", "true"],
            "cannot write to /no/such/log",
        ),
        (
            &["--log", "one", "--record", "./one", "--", "true"],
            "--log and --record name the same file",
        ),
        (
            &["--log", "one", "--log-file", "./one", "--", "true"],
            "--log and --log-file name the same file",
        ),
    ] {
        let run = place.run(words);
        let errors = text(&run.stderr);
        assert!(
            errors.starts_with("error: ") && errors.contains(message),
            "{errors}"
        );
        assert!(matches!(run.status.code(), Some(1 | 2)), "{errors}");
    }
    place.assert_nothing_is_left();
}

#[test]
fn a_command_without_training_is_reported_in_one_line() {
    let place = RunFolder::new();
    for (words, code, reason) in [
        (
            &["--once", "--", "sleep", "1"][..],
            1,
            "no Python was seen below the command",
        ),
        (
            &["--", "sleep", "1"],
            0,
            "no Python was seen below the command",
        ),
        (
            &["--once", "--", "sh", "-c", "sleep 1; exit 5"],
            5,
            "exited with code 5 before training was seen",
        ),
        (&["--once", "--", "true"], 1, "the command"),
    ] {
        let run = place.run(words);
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "{words:?}: {errors}");
        assert!(
            errors.contains(reason) && errors.contains("hint: "),
            "{words:?}: {errors}"
        );
    }
    place.assert_nothing_is_left();
}

#[test]
fn standard_output_is_the_reports_and_the_log_gets_all() {
    let place = RunFolder::new();
    // The command prints until the test has seen enough.
    let talk = "echo out; echo err >&2; while [ ! -e seen ]; do sleep 0.05; done";
    let talk = ["sh", "-c", talk];
    let mut child = place
        .command(&[&["--json", "--interval", "200ms", "--"][..], &talk].concat())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut out = String::new();
    for _ in 0..2 {
        lines.read_line(&mut out).expect("a line");
    }
    fs::write(place.path().join("seen"), "").expect("ours");
    lines.read_to_string(&mut out).expect("UTF-8");
    let run = child.to_end();
    assert!(out.lines().count() >= 2, "{out}");
    for line in out.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    let errors = text(&run.stderr);
    assert!(
        errors.contains("out\n") && errors.contains("err\n"),
        "{errors}"
    );

    let log = place.path().join("log");
    fs::write(&log, "before\n").expect("ours");
    let run = place.run(&[&["--log", log.to_str().expect("UTF-8"), "--"][..], &talk].concat());
    assert_eq!(
        fs::read_to_string(&log).expect("ours"),
        "before\nout\nerr\n"
    );
    assert!(
        text(&run.stdout).contains("out\nerr\n"),
        "{}",
        text(&run.stdout)
    );
    place.assert_nothing_is_left();
}

#[test]
fn standard_input_is_closed_unless_asked_for() {
    let place = RunFolder::new();
    for (words, out) in [(&["cat"][..], ""), (&["--stdin", "cat"], "hello")] {
        let mut command = place.command(words);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        // The command may not read its input.
        let _ = stdin.write_all(b"hello");
        drop(stdin);
        assert_eq!(text(&child.to_end().stdout), out);
    }
}

#[test]
fn input_that_the_command_did_not_get_is_named_if_it_did_not_train() {
    let place = RunFolder::new();
    let input = place.path().join("input");
    let errors = |words: &[&str], stdin: Stdio| {
        let run = place.command(words).stdin(stdin).spawn();
        text(&run.expect("it starts").to_end().stderr)
    };
    let note = "the command did not get what is on standard input\nhint: pass it on with `pipetop run --stdin`\n";
    for (words, bytes, named) in [
        (&["cat"][..], "hello", true),
        (&["sh", "-c", "exit 3"], "hello", true),
        (&["true"], "", false),
        (&["--stdin", "true"], "hello", false),
    ] {
        fs::write(&input, bytes).expect("a file");
        let errors = errors(words, fs::File::open(&input).expect("it is there").into());
        assert_eq!(errors.contains(note), named, "{words:?}: {errors}");
    }
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"hello").expect("it has room");
    let errors = errors(&["true"], reader.into());
    assert!(errors.contains(note), "{errors}");
}

#[test]
fn no_way_of_ending_pipetop_leaves_anything_behind() {
    for signal in [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::KILL,
    ] {
        let place = RunFolder::new();
        let mut child = place
            .command(&["--", "sh", "-c", LONG])
            .spawn()
            .expect("it starts");
        wait("the command", || {
            (place.processes().len() >= 5).then_some(())
        });
        assert_eq!(place.temporary_files(), 1, "the hook's directory");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
        kill_process(pid, signal).expect("it runs");
        let status = ended(&mut child);
        if signal != Signal::KILL {
            assert_eq!(status.code(), Some(128 + signal.as_raw()), "{signal:?}");
        }
        place.assert_nothing_is_left();
    }
}

#[test]
fn ignored_signals_are_inherited_by_the_command() {
    let place = RunFolder::new();
    let script = format!("trap '' HUP; exec {PIPETOP} run -- sh -c 'kill -HUP $$; echo alive'");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .env("TMPDIR", place.temporary());
    let run = command.to_end();
    assert!(
        text(&run.stdout).starts_with("alive\n"),
        "{}",
        text(&run.stderr)
    );
    place.assert_nothing_is_left();
}

#[test]
fn a_command_that_ignores_signals_runs_until_a_second_signal() {
    let place = RunFolder::new();
    let stubborn = "trap '' HUP TERM INT; echo begun; while :; do sleep 0.1; done";
    let mut child = place
        .command(&["--", "sh", "-c", stubborn])
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "begun\n");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    for signal in [Signal::HUP, Signal::TERM, Signal::INT] {
        kill_process(pid, signal).expect("it runs");
    }
    // Further lines show that pipetop still runs.
    line.clear();
    out.read_line(&mut line).expect("a line");
    out.read_line(&mut line).expect("a line");
    assert!(
        child.try_wait().expect("our child").is_none(),
        "the command goes on"
    );
    // pipetop takes the same signal a second time as a sign that the command ignored the first.
    kill_process(pid, Signal::TERM).expect("it runs");
    assert_eq!(ended(&mut child).code(), Some(137));
    place.assert_nothing_is_left();
}

#[test]
fn an_unusable_hook_directory_does_no_harm() {
    let place = RunFolder::new();
    let mut command = place.command(&["--", "sh", "-c", "echo $PYTHONPATH; sleep 1"]);
    let run = command.env("TMPDIR", "/proc").to_end();
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let path = text(&run.stdout);
    let path = path.lines().next().expect("a line");
    // The hook is in memory, if there is a file system for that, and nowhere else.
    assert!(
        path.is_empty() || path.starts_with("/dev/shm/pipetop-"),
        "{path}"
    );
    assert!(
        path.is_empty() || !Path::new(path).exists(),
        "{path} is left"
    );
}

#[test]
fn a_hook_that_may_not_be_written_does_no_harm() {
    let place = RunFolder::new();
    let line = ["--", "sh", "-c", "echo it runs; sleep 1"];
    let unlimited = place.command(&line);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(unlimited.get_program())
        .args(unlimited.get_args())
        .envs(
            unlimited
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(place.path());
    let run = command.to_end();
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let output = text(&run.stdout);
    assert!(output.starts_with("it runs\n"), "{output}");
}

#[test]
fn a_killed_supervisor_is_an_error_and_the_command_continues() {
    let place = RunFolder::new();
    let mut child = place
        .command(&["--", "sh", "-c", LONG])
        .spawn()
        .expect("it starts");
    let find = |what: &str| {
        let processes = place.processes();
        let found = processes
            .into_iter()
            .find(|(_, command)| command.contains(what));
        found.map(|(pid, _)| pid)
    };
    // This line shows that the supervisor has reported that the command runs.
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let watches = lines.any(|line| line.expect("text").contains("no training job yet"));
    assert!(watches);
    let supervisor = wait("the supervisor", || find("builtin-supervisor"));
    kill_process(supervisor, Signal::KILL).expect("it runs");
    let status = ended(&mut child);
    for (pid, _) in place.processes() {
        // The process may have ended with the previous one.
        let _ = kill_process(pid, Signal::KILL);
    }
    wait("its processes to end", || {
        place.processes().is_empty().then_some(())
    });
    // The outputs are complete, as no process has them open any more.
    let errors = text(&child.to_end().stderr);
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("error: pipetop lost the command"),
        "{errors}"
    );
    assert!(
        errors.contains("hint: ") && errors.contains("kill"),
        "{errors}"
    );
}

#[test]
fn the_supervisor_is_for_pipetop_alone() {
    let run = Command::new(PIPETOP)
        .args(["builtin-supervisor", "--control=99"])
        .to_end();
    assert_eq!(run.status.code(), Some(1));
    assert!(
        text(&run.stderr).contains("internal to pipetop"),
        "{}",
        text(&run.stderr)
    );
}

#[test]
fn a_screen_ends_with_its_command_and_prints_the_final_lines() {
    let place = RunFolder::new();
    let words = "for i in $(seq 1 30); do echo line $i; done; sleep 1; exit 7";
    let mut session = place.session(&["--", "sh", "-c", words]);
    session.shows("the output", |screen| screen.contains("line 30"));
    assert_eq!(session.ended().exit_code(), 7);
    session.until("the last words", |text| {
        let after = text.rsplit("\u{1b}[?1049l").next().unwrap_or_default();
        [
            "... 10 earlier lines",
            "line 11\r\n",
            "line 30",
            "note: no Python was seen below the command",
            "exited with code 7",
        ]
        .iter()
        .all(|words| after.contains(words))
    });
    place.assert_nothing_is_left();
}

#[test]
fn quitting_ends_the_command_or_leaves_it_running() {
    let place = RunFolder::new();
    // The usual file for the output is taken when the question is asked, but not yet when the command begins.
    let takes_the_name = format!(": > nohup.out; {LONG}");
    let mut session = place.session(&["--", "sh", "-c", &takes_the_name]);
    session.shows("the output", |screen| screen.contains("begun"));
    session.press("q");
    session.shows("the question", |screen| {
        screen.contains("still running") && screen.contains("/nohup-")
    });
    session.press("\u{1b}");
    session.shows("the screen", |screen| !screen.contains("still running"));
    session.press("q");
    session.shows("the question", |screen| screen.contains("still running"));
    session.press("e");
    assert_eq!(session.ended().exit_code(), 0);
    place.assert_nothing_is_left();

    let place = RunFolder::new();
    let log = place.path().join("log");
    let later = "echo begun; sleep 2; echo later; sleep 3000";
    let log_word = log.to_str().expect("UTF-8");
    let mut session = place.session(&["--log", log_word, "--", "sh", "-c", later]);
    session.shows("the output", |screen| screen.contains("begun"));
    session.press("q");
    session.shows("the question", |screen| screen.contains("still running"));
    session.press("d");
    assert_eq!(session.ended().exit_code(), 0);
    session.until("what is left", |text| {
        // It is no training yet.
        text.contains("is still running as process") && text.contains("to watch it once it trains")
    });
    drop(session);
    wait("what comes later", || {
        fs::read_to_string(&log)
            .ok()
            .filter(|log| log == "begun\nlater\n")
    });
    // Nothing of pipetop is left: neither a process nor the hook's directory.
    wait("pipetop to be gone", || {
        let processes = place.processes();
        let ours = processes
            .iter()
            .any(|(_, command)| command.contains("pipetop"));
        (!ours && place.temporary_files() == 0).then_some(())
    });
    assert!(!place.processes().is_empty(), "the command goes on");
    for (pid, _) in place.processes() {
        // The process may have ended with the previous one.
        let _ = kill_process(pid, Signal::KILL);
    }
    place.assert_nothing_is_left();
}

#[test]
fn a_closed_terminal_ends_the_command() {
    let place = RunFolder::new();
    let mut session = place.session(&["--", "sh", "-c", LONG]);
    session.shows("the output", |screen| screen.contains("begun"));
    session
        .release
        .store(true, std::sync::atomic::Ordering::SeqCst);
    session.writer = None;
    session.master = None;
    place.assert_nothing_is_left();
}

#[test]
fn a_killed_screen_leaves_nothing() {
    let place = RunFolder::new();
    let session = place.session(&["--", "sh", "-c", LONG]);
    session.shows("the output", |screen| screen.contains("begun"));
    session.signal(Signal::KILL);
    drop(session);
    place.assert_nothing_is_left();
}
