//! A real Prometheus scrapes the exporter beside two jobs: what it stores agrees with each job's own measurements.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::machine::{Share, last_torch, note, skip};
use support::waiting::{ToEnd, wait};

use crate::clock::{now, sleep};
use crate::job::{Job, Start};
use crate::trial::PIPETOP;

/// Seconds for which both sides measure.
const MEASURED: u64 = 40;
/// Tolerance of the stall share of either job.
const TOLERANCE: f64 = 0.03;

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: &str, path: &str) -> Option<String> {
    let mut client = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: here\r\n\r\n");
    client.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    client.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.to_owned())
}

/// Returns the value of a query with a single result.
fn query(prometheus: &str, query: &str) -> Option<f64> {
    let encoded: Vec<String> = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let encoded = encoded.concat();
    let body = get(prometheus, &format!("/api/v1/query?query={encoded}"))?;
    let answer: Value = serde_json::from_str(&body).ok()?;
    let value = answer.pointer("/data/result/0/value/1")?;
    value.as_str()?.parse().ok()
}

/// Returns the queries of the dashboard, with Grafana's variables replaced.
fn panels() -> Vec<String> {
    let output = Command::new(PIPETOP).arg("dashboards").to_end();
    let dashboard: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("a list").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let range = format!("{MEASURED}s");
    let filled = targets.map(|target| {
        let expression = target["expr"].as_str().expect("a query");
        let of_all = expression.replace("$run", ".+");
        let in_time = of_all.replace("$__rate_interval", &range);
        in_time.replace("$__range", &range)
    });
    filled.collect()
}

/// Starts an exporter for all jobs; returns it with its address.
fn exporter(more: &[&str]) -> (Ended, String) {
    let mut child = Command::new(PIPETOP)
        .args(["serve", "--all", "--web.listen-address", "127.0.0.1:0"])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = child.stdout.take().expect("a pipe");
    let mut said = String::new();
    BufReader::new(out).read_line(&mut said).expect("UTF-8");
    let (_, address) = said.trim_end().split_once("://").expect("an address");
    let address = address.strip_suffix("/metrics");
    (Ended(child), address.expect("an address").to_owned())
}

fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    free.expect("a port").to_string()
}

/// Starts a Prometheus that scrapes the exporter each second; `how` is the rest of its scrape configuration.
fn prometheus(folder: &Path, exporter: &str, how: &str) -> (Ended, String) {
    let address = free_address();
    let config = folder.join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs: [{{job_name: pipetop, static_configs: [{{targets: ['{exporter}']}}]{how}}}]\n"
    );
    fs::write(&config, text).expect("a file");
    let log = fs::File::create(folder.join("log")).expect("a file");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .stderr(log)
        .spawn()
        .expect("it starts");
    (Ended(child), address)
}

/// Returns the runs that `pipetop fleet` finds there.
fn fleet(prometheus: &str) -> Vec<Value> {
    let printed = Command::new(PIPETOP)
        .args(["fleet", "--json", "--prometheus"])
        .arg(format!("http://{prometheus}"))
        .to_end();
    let printed: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    printed["runs"].as_array().expect("a list").clone()
}

/// Returns the output of Prometheus' linter for this text.
fn lint(metrics: &str) -> String {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = promtool.stdin.take().expect("a pipe");
    input.write_all(metrics.as_bytes()).expect("it reads");
    drop(input);
    let output = promtool.to_end();
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

fn there(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stderr(Stdio::null())
        .output();
    found.is_ok()
}

#[test]
fn prometheus_reads_with_a_certificate_and_a_password() {
    if !there("prometheus") || !there("openssl") {
        return skip("no prometheus, or no openssl");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(' '))
        .args("-subj /CN=pipetop -addext subjectAltName=IP:127.0.0.1".split(' '))
        .args("-keyout key.pem -out cert.pem".split(' '))
        .current_dir(&folder)
        .to_end();
    assert!(made.status.success(), "{made:?}");
    let file = folder.path().join("web.yml");
    // A test vector of bcrypt.
    let text = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n\
                basic_auth_users: {anna: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW}\n";
    fs::write(&file, text).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    let file = file.to_str().expect("UTF-8");
    let (_exporter, exporter) = exporter(&["--web.config.file", file]);
    assert_eq!(get(&exporter, "/metrics"), None, "it is not plain text");
    let up = |password: &str| {
        let authority = folder.path().join("cert.pem");
        let how = format!(
            ", scheme: https, tls_config: {{ca_file: '{}'}}, \
             basic_auth: {{username: anna, password: '{password}'}}",
            authority.display()
        );
        let folder = tempfile::tempdir().expect("a folder");
        let (_prometheus, prometheus) = prometheus(folder.path(), &exporter, &how);
        wait("a scrape", || query(&prometheus, "up"))
    };
    assert!(up("U*U") > 0.5);
    assert!(up("U*V") < 0.5);
}

#[test]
fn the_node_exporter_reads_the_file() {
    const PROGRAM: &str = "prometheus-node-exporter";
    if !there(PROGRAM) {
        return skip("no prometheus-node-exporter");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pipetop.prom");
    let (_exporter, _) = exporter(&["--textfile", file.to_str().expect("UTF-8")]);
    let address = free_address();
    let child = Command::new(PROGRAM)
        .args(["--collector.disable-defaults", "--collector.textfile"])
        .arg(format!(
            "--collector.textfile.directory={}",
            folder.path().display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .stderr(Stdio::null())
        .spawn();
    let _node_exporter = Ended(child.expect("it starts"));
    wait("the metrics of the machine", || {
        let metrics = get(&address, "/metrics")?;
        assert!(
            metrics.contains("node_textfile_scrape_error 0"),
            "{metrics}"
        );
        assert!(metrics.contains("pipetop_build_info{version="), "{metrics}");
        metrics
            .contains("pipetop_last_sample_timestamp_seconds ")
            .then_some(())
    });
}

#[test]
fn the_dashboard_has_grafanas_own_types() {
    last_torch(Share::Eighth, |python| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torch/dashboard.py");
        let has = Command::new(&python.path)
            .args(["-c", "import grafana_foundation_sdk"])
            .to_end();
        if !has.status.success() {
            return skip("no grafana-foundation-sdk in the last Python");
        }
        // The output of `pipetop dashboards`.
        let dashboard = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/contrib/pipetop.dashboard.json"
        );
        let output = Command::new(&python.path)
            .args([script, dashboard])
            .to_end();
        let said = [output.stdout, output.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&said), "");
        assert!(output.status.success());
    });
}

#[test]
fn prometheus_stores_what_two_jobs_measured_of_themselves() {
    if !there("prometheus") || !there("promtool") {
        return skip("no prometheus with promtool (Debian: prometheus)");
    }
    last_torch(Share::Quarter, |python| {
        let (_exporter, exporter) = exporter(&[]);
        let folder = tempfile::tempdir().expect("a folder");
        let (_prometheus, prometheus) = prometheus(folder.path(), &exporter, "");
        let mut jobs = ["starved", "matched"].map(|situation| {
            let job = Job::start(&python.path, situation, Start::Plain, Share::Quarter, None)
                .expect("it starts");
            (situation, job)
        });
        let stall = |run: &str| {
            format!(
                "sum(rate(pipetop_rank_stall_seconds_total{{run='{run}'}}[{MEASURED}s])) / \
                 sum(rate(pipetop_rank_seconds_total{{run='{run}'}}[{MEASURED}s]))"
            )
        };
        let runs = jobs.each_mut().map(|(_, job)| {
            job.reach(10, None).expect("it trains");
            let pid = format!("pid=\"{}\"", job.pid());
            let run = wait("the job", || {
                let metrics = get(&exporter, "/metrics")?;
                let info = metrics.lines().find(|line| line.contains(&pid))?;
                Some(info.split('"').nth(1)?.to_owned())
            });
            wait("its waits", || query(&prometheus, &stall(&run)));
            run
        });
        assert_eq!(lint(&get(&exporter, "/metrics").expect("metrics")), "");
        let from = now();
        sleep(Duration::from_secs(MEASURED));
        for ((situation, job), run) in jobs.iter().zip(&runs) {
            let to = now();
            let seen = query(&prometheus, &stall(run)).expect("a share");
            let own = job.truth(None).wait_share(from, to);
            note(&format!("{situation}: {seen:.3} seen, {own:.3} of itself"));
            assert!(
                (seen - own).abs() <= TOLERANCE,
                "{situation}: {seen} is not {own}"
            );
        }
        let queries = panels();
        assert!(queries.len() > 6, "{queries:?}");
        for panel in queries {
            assert!(query(&prometheus, &panel).is_some(), "no samples: {panel}");
        }
        let shown = fleet(&prometheus);
        for ((situation, job), run) in jobs.iter().zip(&runs) {
            let shown = shown.iter().find(|shown| shown["run"] == run.as_str());
            let lost = shown.and_then(|shown| shown["lost_share"].as_f64());
            let seen = query(&prometheus, &stall(run)).expect("a share");
            note(&format!("{situation}: {lost:?} in the fleet"));
            assert!(
                lost.is_some_and(|lost| (lost - seen).abs() <= 2.0 * TOLERANCE),
                "{situation}: {lost:?} is not {seen}"
            );
            // Right even for a run that is younger than the range of the rates.
            let rate = shown.and_then(|shown| shown["batches_per_s"].as_f64());
            let own = job.truth(None).rate(from, now()).expect("batches");
            note(&format!(
                "{situation}: {rate:?} batches/s, {own:.1} of itself"
            ));
            assert!(
                rate.is_some_and(|rate| (rate / own - 1.0).abs() < 0.1),
                "{situation}: {rate:?} is not {own}"
            );
        }
        // A job that has ended is no longer among the runs.
        let (_, job) = &mut jobs[0];
        job.kill();
        let run = format!("pipetop_run_info{{run='{}'}}", runs[0]);
        wait("no series of it", || {
            query(&prometheus, &run).is_none().then_some(())
        });
        let other = format!("pipetop_run_info{{run='{}'}}", runs[1]);
        assert_eq!(query(&prometheus, &other), Some(1.0));
    });
}

#[test]
fn the_rules_fire_when_they_should() {
    if Command::new("promtool").arg("--version").output().is_err() {
        return skip("no promtool (Debian: prometheus)");
    }
    let output = Command::new("promtool")
        .args(["test", "rules", "pipetop.rules.test.yml"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/contrib"))
        .to_end();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&said)
    );
}
