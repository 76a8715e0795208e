//! Nothing that pipetop prints, records, logs or serves contains a value from a job's environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use support::stand_in::{SECRET, StandIn};
use support::waiting::{ToEnd, wait};

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");

fn pipetop(line: &str) -> Command {
    let mut command = Command::new(PIPETOP);
    command
        .args(line.split_whitespace())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("PIPETOP_LOG", "trace")
        .stdin(Stdio::null());
    command
}

#[test]
fn nothing_of_a_jobs_environment_is_printed_recorded_or_logged() {
    let job = StandIn::start(2);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| folder.path().join(name);
    for how in ["--once", "--once --json", "--json", ""] {
        let line = format!("{} {how} --for 1s --interval 200ms", job.pid());
        let output = pipetop(&line)
            .arg("--record")
            .arg(place(&format!("{how}.rec")))
            .arg("--log-file")
            .arg(place("log"))
            .to_end();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains(SECRET));
        assert!(!String::from_utf8_lossy(&output.stderr).contains(SECRET));
        let recording = place(&format!("{how}.rec"));
        let file = fs::File::open(&recording).expect("it was recorded");
        let text = zstd::decode_all(file).expect("a zstd file");
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("train.py") && !text.contains(SECRET));
        let mode = |path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!((mode(recording), mode(place("log"))), (0o600, 0o600));
    }
    let log = fs::read_to_string(place("log")).expect("a log");
    assert!(log.contains("train.py") && !log.contains(SECRET), "{log}");
}

#[test]
fn nothing_of_a_jobs_environment_is_served() {
    let job = StandIn::start(2);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("pipetop.prom");
    let mut exporter = pipetop(&format!("serve {} --interval 200ms --textfile", job.pid()))
        .arg(&path)
        .spawn()
        .expect("it starts");
    let job_is_served = || {
        let text = fs::read_to_string(&path).ok()?;
        text.contains(&format!("pid=\"{}\"", job.pid()))
            .then_some(text)
    };
    let text = wait("the job's metrics", job_is_served);
    assert!(!text.contains(SECRET), "{text}");
    exporter.kill().expect("it runs");
    exporter.wait().expect("it ends");
}
