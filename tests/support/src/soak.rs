//! Runs pipetop in a terminal for as long as wanted, while everything around it changes: jobs start and end, workers
//! restart, a GPU is lost and found, the terminal is resized, keys are pressed, pipetop is stopped and continued, its
//! recording is rotated.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fake_nvml::FakeNvml;
use procfs::process::Process;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::keys::typed;
use crate::session::Session;
use crate::stand_in::StandIn;
use crate::waiting::{now, pause, wait_with_state};

/// Steps of a round, one per second. Their order: a job of shells that restart workers ten times a second, no job, a
/// `PyTorch` job, no job.
const ROUND: u64 = 60;
const STEP: Duration = Duration::from_secs(1);
const SHELLS_END: u64 = 20;
const TORCH_STARTS: u64 = 24;
const TORCH_ENDS: u64 = 54;
const WORKERS: u32 = 2;
/// Two of the four sizes show everything; one cell is the smallest terminal.
const SIZES: [(u16, u16); 4] = [(120, 40), (80, 24), (1, 1), (200, 60)];
/// Keys that leave the screen as it was after each pair, so that all rounds are alike.
const KEYS: [&str; 24] = [
    "?",
    "esc",
    "space",
    "space",
    "tab",
    "shift-tab",
    "down",
    "up",
    "t",
    "t",
    "z",
    "Z",
    "left",
    "end",
    "[",
    "end",
    "+",
    "-",
    "/",
    "esc",
    "enter",
    "esc",
    "o",
    "ctrl-l",
];
/// A training in epochs of some seconds, each with new workers.
const SCRIPT: &str = "
import time
from torch.utils.data import DataLoader, Dataset

class Sleeping(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(0.1)
        return index

while True:
    for batch in DataLoader(Sleeping(), batch_size=None, num_workers=2):
        time.sleep(0.1)
";

/// Resources that pipetop held or had used at the end of a round, when there was no job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Time since the start.
    pub at: Duration,
    pub resident: u64,
    pub descriptors: usize,
    pub threads: usize,
    /// CPU time so far.
    pub cpu: Duration,
    /// Mean share of a core in the round.
    pub cpu_share: f64,
}

/// Runs this many rounds; calls `report` after each. Without `python` there is no `PyTorch` job.
///
/// # Panics
/// Panics if pipetop ends too early or with an error, or leaves a recording that cannot be replayed.
pub fn soak(rounds: u32, python: Option<&str>, mut report: impl FnMut(&Usage)) {
    let folder = TempDir::new().expect("a temporary directory");
    // All jobs are created below the folder and identified by it, as other jobs may run on this machine.
    let start = || StandIn::restarting_in(folder.path(), WORKERS);
    let driver = FakeNvml::install(folder.path(), &gpus(""));
    let script = folder.path().join("train.py");
    std::fs::write(&script, SCRIPT).expect("the folder is ours");
    // The memory for past samples: so little that it is full after some minutes, and is reused from then on.
    let config = folder.path().join("soak.toml");
    std::fs::write(&config, "past-mib = 2").expect("the folder is ours");
    let recording = folder.path().join("soak.rec").display().to_string();
    // Started before pipetop, which refuses a word that matches only a process that does not train yet.
    let mut shells = Some(start());
    let mut session = Session::start(&[
        // Four times as many samples as usual, so that a recording is full after some minutes.
        "--interval",
        "250ms",
        "--config",
        &config.display().to_string(),
        "--nvml-lib",
        &driver.library().display().to_string(),
        "--record",
        &recording,
        "--record-size",
        "1MiB",
        &folder.path().display().to_string(),
    ]);
    let began = now();
    let mut last = Usage::default();
    for _ in 0..rounds {
        let mut torch = None;
        for step in 0..ROUND {
            match step {
                0 if shells.is_none() => shells = Some(start()),
                SHELLS_END => drop(shells.take()),
                TORCH_STARTS => torch = python.map(|python| Torch::start(python, &script)),
                TORCH_ENDS => drop(torch.take()),
                _ => {}
            }
            match step % 20 {
                5 => driver.script(&gpus("dev 1 fail=lost")),
                10 => driver.script(&gpus("")),
                15 => {
                    session.signal(Signal::TSTP);
                    wait_with_state(
                        "the stop",
                        || session.is_stopped().then_some(()),
                        || session.screen(),
                    );
                }
                17 => session.signal(Signal::CONT),
                _ => {}
            }
            let (columns, rows) = SIZES[at(step / 5, SIZES.len())];
            session.resize(columns, rows);
            session.press(&typed(KEYS[at(step, KEYS.len())]));
            pause(STEP);
        }
        last = usage(&session, now() - began, &last);
        report(&last);
    }
    session.press("q");
    assert!(session.ended().success(), "{}", session.screen());
    let replayed = Command::new(crate::pipetop())
        .args(["replay", &recording, "--once"])
        .output()
        .expect("pipetop starts");
    assert!(replayed.status.success(), "{replayed:?}");
}

fn at(step: u64, length: usize) -> usize {
    usize::try_from(step).expect("few") % length
}

fn gpus(trouble: &str) -> String {
    format!("sys count=2\ndev 0 util=63\ndev 1 util=21\n{trouble}")
}

fn usage(session: &Session, at: Duration, last: &Usage) -> Usage {
    let process = Process::new(session.pid().as_raw_pid()).expect("it runs");
    let stat = process.stat().expect("it runs");
    let ticks = stat.utime + stat.stime;
    let cpu = Duration::from_millis(ticks * 1000 / procfs::ticks_per_second());
    Usage {
        at,
        resident: stat.rss * procfs::page_size(),
        descriptors: process.fd_count().expect("it is ours"),
        threads: process.tasks().expect("it runs").count(),
        cpu,
        cpu_share: (cpu - last.cpu).as_secs_f64() / (at - last.at).as_secs_f64(),
    }
}

/// The trainer. Its workers end by themselves when they notice that their parent is gone.
struct Torch(Child);

impl Torch {
    fn start(python: &str, script: &Path) -> Self {
        let child = Command::new(python)
            .arg(script)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("the interpreter starts"))
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
