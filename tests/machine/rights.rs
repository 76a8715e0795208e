//! Tests that need permissions not available on every machine: another user's job, and disks mounted for a test.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pipetop::testing::lab::workload::dataset::prepare;
use pipetop::testing::launch::Log;
use pipetop::units::Bytes;
use serde_json::Value;
use support::for_everyone;
use support::machine::{is_root, skip};
use support::stand_in::StandIn;
use support::traces::{Place, files};
use support::waiting::ToEnd;

#[test]
fn without_a_thread_left_there_is_one_error_that_names_the_limit() {
    if !is_root() {
        return skip("a limit of threads: needs root to become a user who has one");
    }
    let job = StandIn::start(1);
    let (_directory, program) = for_everyone(&support::pipetop()).expect("a copy");
    for how in ["--once", ""] {
        let output = Command::new("prlimit")
            .arg("--nproc=1")
            .arg(&program)
            .args([&job.pid().to_string(), "--for", "1s"])
            .args(how.split_whitespace())
            .uid(65534)
            .gid(65534)
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .to_end();
        assert_eq!(output.status.code(), Some(1), "{how}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let [error, hint] = errors.lines().collect::<Vec<_>>()[..] else {
            panic!("one error and one hint: {errors}");
        };
        assert!(
            error.starts_with("error: cannot start a thread: "),
            "{error}"
        );
        assert!(hint.contains("ulimit -u"), "{hint}");
    }
}

#[test]
fn another_users_job_is_watched_as_far_as_its_rights_go() {
    if !is_root() {
        return skip("another user's job: needs root to become another user");
    }
    let job = StandIn::start(2);
    let (_directory, program) = for_everyone(&support::pipetop()).expect("a copy");
    let output = Command::new(program)
        .args([&job.pid().to_string(), "--once", "--json"])
        .args(["--for", "1s", "--interval", "200ms"])
        .uid(65534)
        .gid(65534)
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .to_end();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(report["window"]["access"], "T0");
    let trainer = &report["job"]["ranks"][0];
    assert_eq!(trainer["workers"].as_array().map(Vec::len), Some(2));
    assert_eq!(trainer["queue"], Value::Null);
    assert_eq!(report["verdict"]["wait_share"], Value::Null);
    let missing = report["verdict"]["missing"].as_array().expect("a list");
    let hinted = missing
        .iter()
        .filter_map(|signal| signal["hint"].as_str())
        .any(|hint| hint.contains("root") || hint.contains("sudo") || hint.contains("owner"));
    assert!(hinted, "{missing:#?}");
}

/// Returns what follows `name` in a file of `contrib`.
fn contrib(file: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
    let text = fs::read_to_string(path.join(file)).expect("a file");
    let found = text.lines().find_map(|line| line.split_once(name));
    found.expect("a line with this name").1.to_owned()
}

#[test]
fn the_rights_in_contrib_suffice_for_other_users_jobs() {
    if !is_root() {
        return skip("another user's job: needs root to become another user");
    }
    let of_unit = contrib("pipetop.service", "AmbientCapabilities=");
    let of_unit: Vec<&str> = of_unit.split(' ').collect();
    let of_set = contrib("daemonset.yml", "add: [");
    let of_set = of_set.trim_end_matches("]}").split(", ");
    let of_set: Vec<String> = of_set.map(|name| format!("CAP_{name}")).collect();
    assert_eq!(of_unit, of_set);
    let added = of_unit.iter().map(|name| {
        let name = name.trim_start_matches("CAP_").to_lowercase();
        format!(",+{name}")
    });
    let only = added.collect::<Vec<_>>().concat();
    let job = StandIn::start(2);
    let (_directory, program) = for_everyone(&support::pipetop()).expect("a copy");
    let output = Command::new("setpriv")
        .args("--reuid 65534 --regid 65534 --clear-groups".split(' '))
        .args(["inh-caps", "ambient-caps", "bounding-set"].map(|of| format!("--{of}=-all{only}")))
        .arg(program)
        .args([&job.pid().to_string(), "--once", "--json"])
        .args(["--for", "1s", "--interval", "200ms"])
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .to_end();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(report["window"]["access"], "T2");
    assert_ne!(report["job"]["ranks"][0]["queue"], Value::Null);
}

/// Mounts a tmpfs with the options `$1` on `$0`, and runs the remaining arguments.
const ON_DISK: &str = "mount -t tmpfs -o \"$1\" none \"$0\" || exit 77; shift; exec \"$@\"";
/// The exit code of `ON_DISK` if nothing can be mounted.
const NO_MOUNT: i32 = 77;

/// Returns a command with a disk with these options at `folder`. The program to run there, and its arguments, are to be
/// added.
fn with_disk(folder: &Path, options: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", ON_DISK])
        .arg(folder)
        .arg(options);
    command
}

/// Runs the command. Returns `None`, and prints why, if nothing can be mounted here.
fn ran(mut command: Command) -> Option<std::process::Output> {
    match command.output() {
        Ok(ran) if ran.status.code() == Some(NO_MOUNT) || ran.stderr.starts_with(b"unshare: ") => {
            let errors = String::from_utf8_lossy(&ran.stderr);
            skip(&format!("no file system can be mounted here: {errors}"));
            None
        }
        Ok(ran) => Some(ran),
        Err(error) => {
            skip(&format!("no `unshare` here: {error}"));
            None
        }
    }
}

#[test]
fn a_proc_of_another_namespace_is_refused() {
    // In the new namespace, this /proc shows numbers that belong to other processes or to none.
    for line in ["--once --for 1s", "run -- true", "serve"] {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--pid", "--fork"])
            .arg(support::pipetop())
            .args(line.split(' '));
        let Some(ran) = ran(command) else {
            return;
        };
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{line}: {errors}");
        let wanted = "error: /proc belongs to another PID namespace";
        assert!(errors.starts_with(wanted), "{line}: {errors}");
    }
}

#[test]
fn a_proc_that_is_not_mounted_is_called_so() {
    for line in ["--once --for 1s", "run -- true", "serve"] {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-c"])
            .arg("mount -t tmpfs none /proc && exec \"$0\" $1")
            .arg(support::pipetop())
            .arg(line);
        let Some(ran) = ran(command) else {
            return;
        };
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{line}: {errors}");
        let wanted = "error: /proc is empty: no procfs is mounted there\n";
        assert!(errors.starts_with(wanted), "{line}: {errors}");
    }
}

#[test]
fn a_full_disk_is_one_error_and_nothing_is_left() {
    // One disk is too small, which its free space shows; the other accepts no more files, which only writing shows.
    for (options, size, said) in [
        ("size=1m", "4MiB", "needed"),
        ("size=64m,nr_inodes=20", "2MiB", "no space"),
    ] {
        let place = Place::new();
        let left = place.path().join("left");
        let line = format!("demo --dataset-size {size} --once --for 1s");
        let list = "left=$0; cache=$1; shift; \"$@\"; code=$?; \
                    find \"$cache\" ! -type d >\"$left\"; exit $code";
        let mut command = with_disk(&place.cache(), options);
        command
            .args(["sh", "-c", list])
            .arg(&left)
            .arg(place.cache())
            .arg(support::pipetop())
            .args(place.arguments(&line))
            .envs(place.environment());
        let Some(ran) = ran(command) else {
            return;
        };
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{errors}");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "");
        let lines = errors.lines().filter(|line| !line.starts_with("creat"));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), 2, "one error and one hint: {errors}");
        assert!(
            lines[0].starts_with("error: ")
                && lines[0].contains(said)
                && !lines[0].contains(" 0 B needed"),
            "{errors}"
        );
        assert!(
            lines[1].starts_with("hint: ") && lines[1].contains("--dataset-size"),
            "{errors}"
        );
        assert_eq!(fs::read_to_string(&left).expect("a list"), "");
        place.assert_nothing_left(&[], 0);
    }
}

#[test]
fn a_recording_that_fills_the_disk_is_a_warning_at_once_and_an_error_at_the_end() {
    let job = StandIn::start(2);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut command = with_disk(folder.path(), "size=4k");
    command
        .arg(support::pipetop())
        .args([&job.pid().to_string(), "--for", "5s", "--interval", "100ms"])
        .arg("--record")
        .arg(folder.path().join("recording"));
    let Some(ran) = ran(command) else {
        return;
    };
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{errors}");
    let said: Vec<&str> = errors.lines().collect();
    assert_eq!(said.len(), 3, "{errors}");
    assert!(
        said[0].starts_with("warning: recording stopped"),
        "{errors}"
    );
    assert!(said[1].starts_with("error: recording stopped"), "{errors}");
    let lines = String::from_utf8_lossy(&ran.stdout);
    assert!(lines.lines().count() > 10, "watching goes on: {lines}");
}

#[test]
fn a_full_disk_takes_neither_a_recording_nor_the_output_of_a_command() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut command = with_disk(folder.path(), "size=4k");
    let script = "cd $1; head -c 4096 /dev/zero >fill; $0 run --record new -- true; echo \"code $?\"; \
                  $0 run --log log --no-hook -- sh -c 'echo hello; exit 0'; echo \"code $?\"; ls";
    command
        .args(["sh", "-c", script])
        .arg(support::pipetop())
        .arg(folder.path());
    let Some(ran) = ran(command) else {
        return;
    };
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(errors.contains("error: cannot record to new"), "{errors}");
    let full = "warning: no space left on the disk of log: the command's output may be cut off";
    assert!(errors.contains(full), "{errors}");
    let said = String::from_utf8_lossy(&ran.stdout);
    // The second command keeps its own exit code, and no empty recording is left to obstruct the next one.
    assert_eq!(said, "code 1\ncode 0\nfill\nlog\n", "{errors}");
}

#[test]
fn output_that_a_disk_has_little_room_for_is_kept_in_memory() {
    let Some(disk) = disk(
        "output_that_a_disk_has_little_room_for_is_kept_in_memory",
        "size=64m",
    ) else {
        return;
    };
    let log = Log::unnamed(&[disk]).expect("memory");
    assert_eq!(
        log.storage().kept_location(),
        "in memory, as long as it runs"
    );
}

/// Set in the inner run of a test below: the mounted disk.
const SMALL_DISK: &str = "PIPETOP_TEST_SMALL_DISK";

/// Returns the disk in the inner run; in the outer run, starts the test again on a disk with `options` and returns
/// `None`.
fn disk(test: &str, options: &str) -> Option<PathBuf> {
    if let Some(disk) = env::var_os(SMALL_DISK) {
        return Some(disk.into());
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut command = with_disk(folder.path(), options);
    command
        .arg(env::current_exe().expect("a path"))
        .args(["--exact", &format!("rights::{test}"), "--nocapture"])
        .env(SMALL_DISK, folder.path());
    let ran = ran(command)?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && said.contains("1 passed"),
        "{said}{errors}"
    );
    None
}

#[test]
fn a_disk_that_gets_full_is_left_as_it_was() {
    // There is room for the bytes but not for the files, which the free space does not show.
    let options = "size=8m,nr_inodes=20";
    let Some(disk) = disk("a_disk_that_gets_full_is_left_as_it_was", options) else {
        return;
    };
    prepare(&disk, Bytes(120_000), |_, _| ()).expect("there is room for three");
    let before = files(&disk);
    let mut most = 0;
    let full = prepare(&disk, Bytes(1_000_000), |done, _| most = most.max(done));
    let error = full.expect_err("there is no room for 24");
    assert!(error.message.starts_with("no space for"), "{error}");
    assert!(error.hint.contains("--dataset-size"), "{}", error.hint);
    assert!(most > 0, "some were made before");
    assert_eq!(files(&disk), before, "what was there before stays");
}

#[test]
fn a_disk_that_is_too_small_is_not_filled() {
    let Some(disk) = disk("a_disk_that_is_too_small_is_not_filled", "size=1m") else {
        return;
    };
    let mut made = 0;
    let full = prepare(&disk, Bytes(4 << 20), |_, _| made += 1);
    let error = full.expect_err("there is no room");
    assert_eq!(made, 0, "nothing is made");
    assert!(error.message.contains(": 4.0 MiB needed, "), "{error}");
    let free = error.message.rsplit_once(", ").map(|(_, free)| free);
    assert!(free == Some("1.0 MiB free"), "{error}");
    let images = files(&disk)
        .into_iter()
        .filter(|path| path.extension().is_some());
    assert_eq!(images.collect::<Vec<_>>(), Vec::<PathBuf>::new());
}
