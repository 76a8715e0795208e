//! A real Prometheus scrapes the exporter beside two jobs: what it stores is what each job measured of itself.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::machine::{Share, last_torch, note, skip};
use support::waiting::{ToEnd, wait};

use crate::clock::{now, sleep};
use crate::job::{Job, Start};
use crate::trial::PIPETOP;

/// Seconds that both measure.
const MEASURED: u64 = 60;
/// The stall share of either may be off by so much.
const TOLERANCE: f64 = 0.03;

/// Ends with the test.
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

/// The value of a query that has one.
fn query(prometheus: &str, query: &str) -> Option<f64> {
    let encoded: Vec<String> = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let encoded = encoded.concat();
    let body = get(prometheus, &format!("/api/v1/query?query={encoded}"))?;
    let answer: Value = serde_json::from_str(&body).ok()?;
    let value = answer.pointer("/data/result/0/value/1")?;
    value.as_str()?.parse().ok()
}

/// The queries of the dashboard, with what Grafana puts into them.
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

/// Watches every job, and where it says that it listens.
fn exporter() -> (Ended, String) {
    let mut child = Command::new(PIPETOP)
        .args(["serve", "--all", "--web.listen-address", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = child.stdout.take().expect("a pipe");
    let mut said = String::new();
    BufReader::new(out).read_line(&mut said).expect("UTF-8");
    let address = said.trim_end().strip_prefix("serving http://");
    let address = address.and_then(|address| address.strip_suffix("/metrics"));
    (Ended(child), address.expect("an address").to_owned())
}

fn prometheus(folder: &Path, exporter: &str) -> (Ended, String) {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let address = free.expect("a port").to_string();
    let config = folder.join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs: [{{job_name: pipetop, static_configs: [{{targets: ['{exporter}']}}]}}]\n"
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

/// What the linter of Prometheus says of this text.
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

#[test]
fn prometheus_stores_what_two_jobs_measured_of_themselves() {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("prometheus") || !there("promtool") {
        return skip("no prometheus with promtool (Debian: prometheus)");
    }
    last_torch(Share::Whole, |python| {
        let (_exporter, exporter) = exporter();
        let folder = tempfile::tempdir().expect("a folder");
        let (_prometheus, prometheus) = prometheus(folder.path(), &exporter);
        let mut jobs = ["starved", "matched"].map(|situation| {
            let job = Job::start(&python.path, situation, Start::Plain, Share::Whole, None)
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
        let fleet = Command::new(PIPETOP)
            .args(["fleet", "--json", "--prometheus"])
            .arg(format!("http://{prometheus}"))
            .to_end();
        let fleet: Value = serde_json::from_slice(&fleet.stdout).expect("JSON");
        let shown = fleet["runs"].as_array().expect("a list");
        for ((situation, _), run) in jobs.iter().zip(&runs) {
            let shown = shown.iter().find(|shown| shown["run"] == run.as_str());
            let lost = shown.and_then(|shown| shown["lost_share"].as_f64());
            let seen = query(&prometheus, &stall(run)).expect("a share");
            note(&format!("{situation}: {lost:?} in the fleet"));
            assert!(
                lost.is_some_and(|lost| (lost - seen).abs() <= 2.0 * TOLERANCE),
                "{situation}: {lost:?} is not {seen}"
            );
        }
        // A job that has ended is none of the runs any more.
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
