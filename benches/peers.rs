//! pipetop beside htop, iotop and nvitop, all at once, on the same training job with 8, 64 and 256 workers.
//! `cargo bench --profile dist --bench peers [-- SECONDS]` prints the table of `docs/cost.md`.
//!
//! The job is a `PyTorch` script whose workers sleep, so that the CPUs are left to the monitors. It runs with the first
//! interpreter of `PIPETOP_TORCH_PYTHONS` that has torch. nvitop and pipetop read the fake driver. A program that is
//! not installed has no row. All run with their defaults, on a terminal of 120x40.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::expect_used, reason = "a benchmark fails by panicking")]

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fake_nvml::FakeNvml;
use procfs::process::Process;
use rustix::process::Pid;
use support::machine::torches;
use support::session::Session;
use support::waiting::pause;
use tempfile::TempDir;

const WORKERS: [u32; 3] = [8, 64, 256];
const SIZE: (u16, u16) = (120, 40);
/// Time until all workers run, and then until every program has drawn its first frames.
const START: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(10);
/// Default length of the measurement.
const SECONDS: u64 = 30;
/// Bytes of output after which a program has certainly drawn something.
const FIRST_FRAME: usize = 1000;
const SCRIPT: &str = "
import sys, time
from torch.utils.data import DataLoader, Dataset

WORKERS = int(sys.argv[1])

class Sleeping(Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        time.sleep(0.06 * WORKERS)
        return index

for batch in DataLoader(Sleeping(), batch_size=None, num_workers=WORKERS):
    time.sleep(0.03)
";

/// A program and its arguments. The PID of the job is appended.
struct Peer {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    names_the_job: bool,
}

const PEERS: [Peer; 4] = [
    Peer {
        name: "pipetop",
        program: env!("CARGO_BIN_EXE_pipetop"),
        arguments: &[],
        names_the_job: true,
    },
    Peer {
        name: "htop",
        program: "htop",
        arguments: &["--delay=15"],
        names_the_job: false,
    },
    Peer {
        name: "iotop",
        program: "iotop-c",
        arguments: &["--delay=1"],
        names_the_job: false,
    },
    Peer {
        name: "nvitop",
        program: "nvitop",
        arguments: &["--monitor", "full"],
        names_the_job: false,
    },
];

fn main() {
    // Cargo adds a flag to the arguments, which is skipped.
    let asked = std::env::args().find_map(|word| word.parse().ok());
    let seconds = asked.unwrap_or(SECONDS);
    let Some(python) = torches().first() else {
        println!("no Python with torch: set PIPETOP_TORCH_PYTHONS");
        return;
    };
    println!(
        "| workers | program | CPU, % of a core | memory, MiB | terminal, KiB/s | first frame, ms |"
    );
    println!("|---|---|---|---|---|---|");
    for workers in WORKERS {
        compare(&python.path, workers, Duration::from_secs(seconds));
    }
}

fn compare(python: &str, workers: u32, span: Duration) {
    let folder = TempDir::new().expect("a temporary directory");
    let script = folder.path().join("train.py");
    std::fs::write(&script, SCRIPT).expect("the folder is ours");
    FakeNvml::install(folder.path(), "sys count=2\ndev 0 util=63\ndev 1 util=21");
    let job = Command::new(python)
        .arg(&script)
        .arg(workers.to_string())
        .stdin(Stdio::null())
        .spawn()
        .map(Job)
        .expect("the interpreter starts");
    pause(START);
    let pid = job.0.id().to_string();
    let started: Vec<(&Peer, Session)> = PEERS
        .iter()
        .filter(|peer| is_installed(peer.program))
        .map(|peer| (peer, start(peer, &pid, folder.path().as_os_str())))
        .collect();
    pause(SETTLE);
    let before: Vec<Cost> = started.iter().map(|(_, session)| cost(session)).collect();
    pause(span);
    for ((peer, session), before) in started.iter().zip(before) {
        let after = cost(session);
        let seconds = span.as_secs_f64();
        println!(
            "| {workers} | {} | {:.2} | {:.1} | {:.2} | {} |",
            peer.name,
            100.0 * (after.cpu - before.cpu) / seconds,
            after.memory as f64 / f64::from(1 << 20),
            (after.bytes - before.bytes) as f64 / 1024.0 / seconds,
            session
                .time_to_bytes(FIRST_FRAME)
                .map_or_else(|| "n/a".to_owned(), |time| time.as_millis().to_string()),
        );
    }
}

/// The job. Dropping it ends it.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        // Its workers end with the job.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    found.is_ok()
}

fn start(peer: &Peer, pid: &str, library: &OsStr) -> Session {
    let mut arguments = peer.arguments.to_vec();
    if peer.names_the_job {
        arguments.push(pid);
    }
    let environment = [("LD_LIBRARY_PATH", Some(library))];
    Session::start_program(OsStr::new(peer.program), &arguments, &environment, SIZE)
}

/// The resources that a program has used or holds.
struct Cost {
    /// Seconds.
    cpu: f64,
    memory: u64,
    bytes: usize,
}

fn cost(session: &Session) -> Cost {
    let pid = Pid::as_raw(Some(session.pid()));
    let stat = Process::new(pid).and_then(|process| process.stat());
    let stat = stat.expect("it runs");
    Cost {
        cpu: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
        memory: stat.rss * procfs::page_size(),
        bytes: session.bytes().len(),
    }
}
