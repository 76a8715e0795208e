//! The exporter as a scraper sees it: over plain sockets, and in a file.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::session::Session;
use support::stand_in::StandIn;
use support::traces::{Member, Place};
use support::waiting::{ToEnd, wait};

use crate::plain::{Plain, refused};

/// A small job that needs hardly any CPU, and its number of workers.
const DEMO: &str = "demo --workers 2 --batch-size 2 --image-size 32 --step-ms 100 --dataset-size 256KiB --device sim";
const WORKERS: usize = 2;
/// Hash of the password `U*U`: a test vector of bcrypt.
const HASH: &str = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";

fn command(line: &str) -> Command {
    let mut command = Command::new(support::pipetop());
    command
        .arg("serve")
        .args(line.split_whitespace())
        .args(["--interval", "200ms"])
        // The dynamic loader searches for this name and does not find it.
        .args(["--nvml-lib", "libpipetop-has-no-such.so.1"])
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

fn run(line: &str) -> Output {
    command(line).to_end()
}

/// Sends a request without reading the answer.
fn ask(address: &str, line: &str, accept: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).expect("it listens");
    let request = format!("{line} HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n");
    client.write_all(request.as_bytes()).expect("it reads");
    client
}

/// Returns head and body of the answer.
fn answer(address: &str, line: &str, accept: &str) -> (String, String) {
    let mut text = String::new();
    let mut client = ask(address, line, accept);
    client.read_to_string(&mut text).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.to_lowercase(), body.to_owned())
}

/// The running exporter. Dropping it ends it.
struct Exporter {
    child: Child,
    /// The address it listens on.
    address: String,
}

impl Exporter {
    fn start(line: &str) -> Self {
        let mut command = command(line);
        command.args(["--web.listen-address", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut said = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut said).expect("UTF-8");
        let address = said.trim_end().strip_prefix("serving http://");
        let address = address.and_then(|address| address.strip_suffix("/metrics"));
        let address = address.expect("where it listens").to_owned();
        Self { child, address }
    }

    fn answer(&self, line: &str, accept: &str) -> (String, String) {
        answer(&self.address, line, accept)
    }

    fn status(&self, line: &str) -> String {
        let (head, _) = self.answer(line, "*/*");
        head.split(' ').nth(1).expect("a status").to_owned()
    }

    fn metrics(&self) -> String {
        self.answer("GET /metrics", "*/*").1
    }

    fn ended(mut self) -> Option<i32> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it runs");
        wait("the end", || self.child.try_wait().expect("ours")).code()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a web configuration file with this text and mode.
fn web_config(folder: &Path, text: &str, mode: u32) -> String {
    let path = folder.join("web.yml");
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
    format!("--all --web.config.file {}", path.display())
}

fn trainer(members: &[Member]) -> &Member {
    members.iter().find(|one| one.is_trainer).expect("one")
}

#[test]
fn a_job_that_starts_later_is_served_until_it_ends() {
    let exporter = Exporter::start("--all");
    wait("ready", || {
        (exporter.status("GET /-/ready") == "200").then_some(())
    });
    let place = Place::new();
    let _demo = Plain::start(&place, DEMO);
    let members = place.running(WORKERS);
    let pid = trainer(&members).pid;
    let named = format!("pid=\"{pid}\"");
    let run = wait("the job", || {
        let metrics = exporter.metrics();
        let info = metrics.lines().find(|line| line.contains(&named))?;
        Some(info.split('"').nth(1)?.to_owned())
    });
    let waits =
        format!("pipetop_rank_seconds_total{{run=\"{run}\",rank=\"0\",state=\"data_wait\"}} ");
    wait("its waits", || {
        exporter.metrics().contains(&waits).then_some(())
    });
    // The report is served at several paths.
    let (head, body) = exporter.answer(&format!("GET /report?pid={pid}"), "*/*");
    assert!(head.contains("content-type: application/json"), "{head}");
    let report: Value = serde_json::from_str(&body).expect("a document");
    assert_eq!(report["schema"], "pipetop.report/1");
    assert_eq!(report["job"]["pid"], pid);
    let all: Value = serde_json::from_str(&exporter.answer("GET /report", "*/*").1).expect("one");
    let mut all = all.as_array().expect("a list").iter();
    assert!(all.any(|report| report["job"]["pid"] == pid));
    trainer(&members).kill();
    wait("no series of it", || {
        let metrics = exporter.metrics();
        (!metrics.contains(&run)).then_some(())
    });
    assert_eq!(exporter.status(&format!("GET /report?pid={pid}")), "404");
    assert_eq!(exporter.ended(), Some(0));
}

#[test]
fn each_path_has_its_answer() {
    let exporter = Exporter::start("--all");
    for (line, status) in [
        ("GET /", "200"),
        ("GET /-/healthy", "200"),
        ("HEAD /metrics", "200"),
        ("GET /metrics/", "404"),
        ("GET /nothing", "404"),
        ("POST /metrics", "405"),
        ("GET /report?pid=x", "400"),
        ("GET /report?pid=2147483647", "404"),
    ] {
        assert_eq!(exporter.status(line), status, "{line}");
    }
    let (head, body) = exporter.answer("GET /metrics", "application/openmetrics-text");
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"), "{body}");
    let (head, body) = exporter.answer("GET /metrics", "*/*");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        body.contains("pipetop_build_info{") && !body.contains("# EOF"),
        "{body}"
    );
}

#[test]
fn stalled_clients_do_not_block_others() {
    let place = Place::new();
    let _demo = Plain::start(&place, DEMO);
    let members = place.running(WORKERS);
    let exporter = Exporter::start(&trainer(&members).pid.to_string());
    let silent: Vec<TcpStream> = (0..20)
        .map(|_| ask(&exporter.address, "GET /metrics", "*/*"))
        .collect();
    // More connections than are served at a time: the oldest are closed.
    let mut mute: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(&exporter.address).expect("it listens"))
        .collect();
    assert_eq!(exporter.status("GET /"), "200");
    assert_eq!(mute[0].read(&mut [0]).unwrap_or(0), 0, "it was closed");
    let newest = mute.last_mut().expect("some");
    newest.set_nonblocking(true).expect("a socket");
    let open = newest.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(open, Err(ErrorKind::WouldBlock));
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert!(exporter.metrics().contains("pipetop_build_info"));
                }
            });
        }
    });
    drop((silent, mute));
    assert_eq!(exporter.ended(), Some(0));
}

#[test]
fn serve_errors_have_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken
        .local_addr()
        .map(|address| (address, taken))
        .expect("it listens");
    for (line, message, code) in [
        (
            format!("--all --web.listen-address {}", taken.0),
            "in use",
            1,
        ),
        (
            "--all --web.listen-address 192.0.2.1:1".to_owned(),
            "cannot listen on 192.0.2.1:1",
            1,
        ),
        (
            "--all --web.listen-address nowhere".to_owned(),
            "not an address to listen on",
            2,
        ),
        (
            "--all --web.listen-address 127.0.0.1:65536".to_owned(),
            "not an address to listen on",
            2,
        ),
        (
            "--all --textfile /proc/pipetop.prom".to_owned(),
            "cannot write /proc/pipetop.prom",
            1,
        ),
        (
            "--all --textfile no/folder/pipetop.prom".to_owned(),
            "cannot write no/folder/pipetop.prom: there is no folder no/folder",
            1,
        ),
        (
            "2147483647 --web.listen-address 127.0.0.1:0".to_owned(),
            "no process with PID 2147483647",
            1,
        ),
        // An option that cannot be used is named before a job is looked for.
        (
            format!("2147483647 --web.listen-address {}", taken.0),
            "in use",
            1,
        ),
        (
            "2147483647 --web.config.file no/web.yml".to_owned(),
            "no/web.yml",
            1,
        ),
        (
            "--all --web.telemetry-path /report".to_owned(),
            "--web.telemetry-path",
            2,
        ),
        ("--all 42".to_owned(), "cannot be used with", 2),
    ] {
        let output = run(&line);
        assert_eq!(output.status.code(), Some(code), "{line}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let (error, _) = refused(&errors);
        assert!(error.contains(message), "{errors}");
        assert!(!errors.contains(".pipetop-"), "{errors}");
    }
}

#[test]
fn requests_without_a_password_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("basic_auth_users:\n  anna: {HASH}\n");
    let exporter = Exporter::start(&web_config(folder.path(), &text, 0o600));
    let status = |accept: &str| exporter.answer("GET /-/healthy", accept).0;
    let asked = status("*/*");
    assert!(asked.starts_with("http/1.1 401 "), "{asked}");
    assert!(asked.contains("www-authenticate: basic"), "{asked}");
    // anna:U*U, and another password.
    let right = status("*/*\r\nAuthorization: Basic YW5uYTpVKlU=");
    assert!(right.starts_with("http/1.1 200 "), "{right}");
    let wrong = status("*/*\r\nAuthorization: Basic YW5uYTpVKlY=");
    assert!(wrong.starts_with("http/1.1 401 "), "{wrong}");
}

#[test]
fn a_web_configuration_that_is_wrong_or_shows_secrets_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let users = format!("basic_auth_users: {{anna: {HASH}}}");
    for (text, mode, message) in [
        (
            "tls_server_config: {cert_file: a, key_file: b}",
            0o644,
            "cannot read",
        ),
        (
            "tls_server_config: {cert_file: web.yml, key_file: b}",
            0o600,
            "no certificate",
        ),
        ("tls_server_config: {cert_file: a}", 0o600, "key_file"),
        (
            "http_server_config: {http2: false}",
            0o600,
            "http_server_config",
        ),
        ("basic_auth_users: {anna: U*U}", 0o600, "not a bcrypt hash"),
        ("basic_auth_users: [", 0o600, "web.yml: "),
        (&users, 0o644, "every user can read it"),
    ] {
        let line = web_config(folder.path(), text, mode) + " --web.listen-address 127.0.0.1:0";
        let output = run(&line);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let (error, _) = refused(&errors);
        assert!(error.contains(message), "{errors}");
        assert!(!errors.contains(HASH), "{errors}");
    }
}

#[test]
fn the_watched_job_is_also_served() {
    let place = Place::new();
    let line = format!("{DEMO} --json --web.listen-address 127.0.0.1:0");
    let demo = Plain::start(&place, &line);
    let members = place.running(WORKERS);
    let named = format!("pid=\"{}\"", trainer(&members).pid);
    let address = wait("the address", || {
        let said = demo.errors();
        let said = said
            .lines()
            .find_map(|line| line.strip_prefix("serving http://"));
        Some(said?.strip_suffix("/metrics")?.to_owned())
    });
    wait("its metrics", || {
        let metrics = answer(&address, "GET /metrics", "*/*").1;
        let waits = metrics.contains("pipetop_rank_seconds_total{");
        (metrics.contains(&named) && waits).then_some(())
    });
    drop(demo);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn jobs_of_the_list_are_served_and_then_the_chosen_one() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let jobs = [2, 3].map(|workers| StandIn::start_in(folder.path(), workers));
    let word = folder.path().display().to_string();
    let mut session = Session::start(&[
        &word,
        "--interval",
        "200ms",
        "--nvml-lib",
        "libpipetop-has-no-such.so.1",
        "--web.listen-address",
        "127.0.0.1:0",
    ]);
    let address = wait("the address", || {
        let text = session.text();
        let from = text.split_once("serving http://")?.1;
        Some(from.split_once("/metrics")?.0.to_owned())
    });
    let served = |what: &str, wanted: [bool; 2]| {
        wait(what, || {
            let metrics = answer(&address, "GET /metrics", "*/*").1;
            let is_served = |job: &StandIn| metrics.contains(&format!("pid=\"{}\"", job.pid()));
            (jobs.each_ref().map(is_served) == wanted).then_some(())
        });
    };
    session.shows("the list", |screen| screen.contains("one of 2 jobs"));
    served("both", [true; 2]);
    // One of the two jobs is marked.
    let list = session.shows("their verdicts", |screen| {
        screen.matches("WARMING UP").count() == 2
    });
    let first = jobs.each_ref().map(|job| {
        let named = job.pid().to_string();
        let line = list.lines().find(|line| line.contains(&named));
        line.is_some_and(|line| line.contains('▸'))
    });
    assert!(first[0] != first[1], "{list}");
    session.press("\r");
    session.shows("one job", |screen| !screen.contains("one of 2 jobs"));
    served("the chosen one", first);
    session.press("\x1b");
    session.shows("the list again", |screen| screen.contains("one of 2 jobs"));
    served("both again", [true; 2]);
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn labels_hold_whatever_the_environment_does() {
    let place = Place::new();
    let mut command = place.command(DEMO);
    let id = [b"a\"b\\\n\xff".as_slice(), &[b'x'; 10_000]].concat();
    command.env("TORCHELASTIC_RUN_ID", OsStr::from_bytes(&id));
    let _demo = Plain::of(&place, command);
    let members = place.running(WORKERS);
    let exporter = Exporter::start(&trainer(&members).pid.to_string());
    let line = wait("the job", || {
        let metrics = exporter.metrics();
        let line = metrics
            .lines()
            .find(|line| line.starts_with("pipetop_rank_batches_total{"));
        line.map(str::to_owned)
    });
    let start = "pipetop_rank_batches_total{run=\"torchrun-a";
    assert!(line.starts_with(start) && line.len() < 300, "{line}");
}

#[test]
fn a_temporarily_unwritable_file_does_not_end_the_exporter() {
    let place = Place::new();
    let folder = place.path().join("collector");
    fs::create_dir(&folder).expect("a folder");
    let path = folder.join("pipetop.prom");
    let exporter = Plain::of(
        &place,
        command(&format!("--all --textfile {}", path.display())),
    );
    let file = || wait("the file", || path.exists().then_some(()));
    file();
    fs::remove_dir_all(&folder).expect("ours");
    fs::write(&folder, "").expect("a file in its place");
    wait("a warning", || {
        exporter
            .errors()
            .contains("warning: cannot write")
            .then_some(())
    });
    fs::remove_file(&folder).expect("ours");
    fs::create_dir(&folder).expect("a folder");
    file();
    assert_eq!(exporter.errors().lines().count(), 1, "said once");
}

#[test]
fn a_file_that_the_node_exporter_does_not_read_is_noted() {
    let place = Place::new();
    let path = place.path().join("pipetop.txt");
    let exporter = Plain::of(
        &place,
        command(&format!("--all --textfile {}", path.display())),
    );
    wait("the file", || path.exists().then_some(()));
    let said = "note: the node exporter reads only files whose names end in .prom\n";
    assert_eq!(exporter.errors(), said);
}

#[test]
fn a_file_is_whole_and_goes_with_the_exporter() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipetop.prom");
    let exporter = Exporter::start(&format!("--all --textfile {}", path.display()));
    wait("the metrics of the machine", || {
        let text = fs::read_to_string(&path).expect("it is there from the start");
        assert!(
            text.contains("pipetop_build_info{") && text.ends_with('\n'),
            "{text}"
        );
        text.contains("process_cpu_seconds_total").then_some(())
    });
    assert_eq!(exporter.ended(), Some(0));
    assert_eq!(folder.path().read_dir().expect("it").count(), 0);
}

#[test]
fn every_metric_of_the_rules_and_the_dashboard_is_one_that_is_served() {
    let served = include_str!("../../src/serve/snapshots/pipetop__serve__tests__text.snap");
    for command in ["rules", "dashboards"] {
        let output = Command::new(support::pipetop()).arg(command).to_end();
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
        let named: Vec<&str> = words.filter(|word| word.starts_with("pipetop_")).collect();
        assert!(named.len() > 5, "{text}");
        for name in named {
            assert!(served.contains(&format!("# TYPE {name} ")), "{name}");
        }
    }
}
