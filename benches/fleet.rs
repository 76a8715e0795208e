//! How long `pipetop fleet` takes on a real Prometheus that scrapes many nodes of 8 ranks, 16 nodes per run:
//! `cargo bench --bench fleet [-- NODES]` prints the line of `docs/fleet.md`. Needs `prometheus`.
//!
//! The nodes are simulated: each serves the metrics of the exporter's own test, for each of its ranks and GPUs.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::expect_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const NODES: u32 = 1000;
const NODES_OF_A_RUN: u32 = 16;
const RANKS: u32 = 8;
/// Time between two scrapes, and the time after which every rate has at least two.
const SCRAPES: Duration = Duration::from_secs(15);
const SETTLE: Duration = Duration::from_secs(75);
/// Output of the exporter for a job of one rank, and for a second job with few figures.
const METRICS: &str = include_str!("../src/serve/snapshots/pipetop__serve__tests__text.snap");
/// Seconds that the counters in `METRICS` cover.
const COUNTED: f64 = 20.0;
/// Number of runs of `pipetop fleet`; the median counts.
const READINGS: usize = 5;

fn main() {
    // Cargo adds a flag to the arguments, which is skipped.
    let asked = std::env::args().find_map(|word| word.parse().ok());
    let nodes: u32 = asked.unwrap_or(NODES);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    let began = Instant::now();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let small = std::thread::Builder::new().stack_size(256 << 10);
            let served = small.spawn(move || serve(client, began));
            served.expect("a thread for each node");
        }
    });
    let text = page(0, 1.0);
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    println!("each node: {series} series, {} bytes", text.len());

    let folder = tempfile::tempdir().expect("a folder");
    let (mut prometheus, url) = prometheus(folder.path(), &address, nodes);
    std::thread::sleep(SETTLE + SCRAPES);
    let mut times = Vec::new();
    let mut runs = 0;
    for _ in 0..READINGS {
        let asked = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_pipetop"))
            .args(["fleet", "--json", "--prometheus", &url])
            .output()
            .expect("it starts");
        times.push(asked.elapsed());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        runs = report["runs"].as_array().map_or(0, Vec::len);
    }
    times.sort();
    println!(
        "{nodes} nodes, {} ranks, {runs} runs: {:.2} s for one reading of all (the middle of {READINGS}; {:.2} to {:.2} s)",
        nodes * RANKS,
        times[READINGS / 2].as_secs_f64(),
        times[0].as_secs_f64(),
        times[READINGS - 1].as_secs_f64(),
    );
    prometheus.kill().expect("it runs");
    prometheus.wait().expect("it ends");
}

/// Answers a scrape of a node.
fn serve(client: TcpStream, began: Instant) {
    let Ok(mut answers) = client.try_clone() else {
        return;
    };
    let mut node = None;
    for line in BufReader::new(client).lines().map_while(Result::ok) {
        if let Some(path) = line.strip_prefix("GET /node/") {
            node = path.split(' ').next().and_then(|node| node.parse().ok());
        }
        if line.is_empty() {
            let body = page(node.unwrap_or(0), began.elapsed().as_secs_f64());
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            if answers.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Returns the exporter's output for a node after this many seconds.
fn page(node: u32, seconds: f64) -> String {
    let run = format!("slurm-{}", 4000 + node / NODES_OF_A_RUN);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.expect("after 1970").as_secs_f64();
    let mut page = String::with_capacity(64 << 10);
    let lines = METRICS.lines().skip_while(|line| !line.starts_with('#'));
    for line in lines.filter(|line| !line.contains("rank=\"1\"")) {
        let Some((series, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else {
            page.extend([line, "\n"]);
            continue;
        };
        let value: f64 = value.parse().expect("a number");
        let value = if series.starts_with("pipetop_last_sample") {
            now
        } else if series.contains("_total") {
            value / COUNTED * seconds
        } else {
            value
        };
        let series = series.replace("host-100-1", &run);
        let of_each = series.contains("rank=\"0\"") || series.contains("gpu=\"0\"");
        for place in 0..if of_each { RANKS } else { 1 } {
            let rank = node % NODES_OF_A_RUN * RANKS + place;
            let series = series.replace("rank=\"0\"", &format!("rank=\"{rank}\""));
            let series = series.replace("gpu=\"0\"", &format!("gpu=\"{place}\""));
            let series = series.replace("GPU-0", &format!("GPU-{node}-{place}"));
            writeln!(page, "{series} {value}").expect("a string takes all");
        }
    }
    page
}

fn prometheus(folder: &Path, nodes_at: &str, nodes: u32) -> (Child, String) {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let address = free.expect("a port").to_string();
    let seconds = SCRAPES.as_secs();
    let mut config = format!(
        "global: {{scrape_interval: {seconds}s}}\nscrape_configs:\n  - job_name: pipetop\n    static_configs:\n"
    );
    for node in 0..nodes {
        let labels = format!("{{__metrics_path__: /node/{node}, instance: 'node-{node}:9977'}}");
        writeln!(
            config,
            "      - {{targets: ['{nodes_at}'], labels: {labels}}}"
        )
        .expect("a string takes all");
    }
    let file = folder.join("prometheus.yml");
    std::fs::write(&file, config).expect("a file");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus is installed");
    (child, format!("http://{address}"))
}
