//! One trial: a job in a situation, the binary beside it, and the expected verdict.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cgroup::{Cgroup, Limit};
use crate::clock::{now, sleep};
use crate::job::{Job, Start};
use crate::report::Report;
use support::machine::{Python, Share, all_at_once, each, is_root, note, skip, torches};
use support::measured::two_of_three_at_once;

pub(crate) const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
/// Seconds of observation before a verdict is expected.
pub(crate) const OBSERVED: u32 = 12;
/// Most by which the reported wait share may differ from the job's own.
pub(crate) const TOLERANCE: f64 = 0.05;
/// Runs a command without any capability, so that even root has only a user's rights over its own processes.
pub(crate) const UNPRIVILEGED: [&str; 3] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

pub(crate) type Outcome = Result<(), String>;

/// A job, and the verdict expected in two of three reports.
#[derive(Clone, Copy)]
pub(crate) struct Situation {
    name: &'static str,
    start: Start,
    share: Share,
    limit: Option<Limit>,
    /// Batches after which the job is in steady state.
    steady: usize,
    kinds: &'static [&'static str],
    cause: Option<&'static str>,
}

/// A data-bound job that sleeps most of the time, so that seven others may run beside it.
pub(crate) const fn light(name: &'static str) -> Situation {
    Situation {
        name,
        start: Start::Plain,
        share: Share::Eighth,
        limit: None,
        steady: 14,
        kinds: &["data-bound"],
        cause: None,
    }
}

/// Returns a data-bound job that needs all CPUs.
pub(crate) const fn heavy(name: &'static str) -> Situation {
    Situation {
        share: Share::Whole,
        steady: 25,
        ..light(name)
    }
}

/// Returns a data-bound job that needs one CPU.
pub(crate) const fn busy(name: &'static str) -> Situation {
    Situation {
        share: Share::Half,
        ..heavy(name)
    }
}

/// The kinds that the wait share alone decides on.
const BY_SHARE: [&str; 3] = ["compute-bound", "balanced", "data-bound"];

/// Returns the kinds for wait shares within the tolerance of this one.
pub(crate) fn kinds_near(share: f64) -> [&'static str; 3] {
    [share - TOLERANCE, share, share + TOLERANCE].map(kind_of)
}

/// Returns the kind of a job with this wait share.
pub(crate) fn kind_of(share: f64) -> &'static str {
    match share {
        ..0.05 => BY_SHARE[0],
        0.05..0.1 => BY_SHARE[1],
        _ => BY_SHARE[2],
    }
}

impl Situation {
    pub(crate) const fn kinds(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds, ..self }
    }

    pub(crate) const fn cause(self, cause: &'static str) -> Self {
        Self {
            cause: Some(cause),
            ..self
        }
    }

    pub(crate) const fn limit(self, limit: Limit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    pub(crate) const fn start(self, start: Start) -> Self {
        Self { start, ..self }
    }

    pub(crate) const fn steady_after(self, batches: usize) -> Self {
        Self {
            steady: batches,
            ..self
        }
    }

    /// Runs a trial, and panics with the reason if it fails.
    fn run(&self, python: &Python, trial: impl Fn(&Python) -> Outcome) {
        if let Err(why) = trial(python) {
            panic!("torch {} {}: {why}", python.torch, self.name);
        }
    }

    /// Starts the job and waits for its steady state.
    pub(crate) fn job(&self, python: &Python) -> Result<Job, String> {
        if self.limit.is_some() {
            // Puts the imports into the page cache, as the limit is meant for the job's data.
            let warm = Command::new(&python.path)
                .args(["-c", "import torch"])
                .output();
            warm.map_err(|error| format!("cannot import torch: {error}"))?;
        }
        let mut job = Job::start(&python.path, self.name, self.start, self.share, self.limit)?;
        job.reach(self.steady, (self.start == Start::Torchrun).then_some(0))?;
        Ok(job)
    }

    /// Checks kind, cause and wait share.
    fn holds(&self, report: &Report, job: &Job, python: &Python) -> Outcome {
        let (kind, cause) = (report.kind(), report.text("/verdict/cause"));
        let seconds = report.number("/window/seconds").unwrap_or_default();
        let rank = (self.start == Start::Torchrun).then(|| report.rank().unwrap_or_default());
        let truth = job
            .truth(rank)
            .wait_share(report.ended - seconds, report.ended);
        let share = report.number("/verdict/wait_share");
        note(&format!(
            "torch {} {}: {kind} {cause}, wait {share:?}, of itself {truth:.3}, own CPU {:?} %",
            python.torch,
            self.name,
            report.number("/window/own_cpu_percent"),
        ));
        // On a busy machine, a job may not behave as intended. The verdict must then agree with the job's own wait
        // share, within the same tolerance as below.
        let own = kind_of(truth);
        let as_made =
            self.kinds.contains(&own) || !self.kinds.iter().any(|kind| BY_SHARE.contains(kind));
        let near = kinds_near(truth);
        let kinds = if as_made { self.kinds } else { &near[..] };
        ensure(kinds.contains(&kind), || {
            format!("{kind}, not {kinds:?}; it waited {truth:.3}")
        })?;
        let right = |right| !as_made || right == cause;
        ensure(self.cause.is_none_or(right), || {
            format!("cause {cause:?}, not {:?}", self.cause)
        })?;
        ensure(
            (10.0..=f64::from(OBSERVED) + 1.0).contains(&seconds),
            || format!("a window of {seconds} s"),
        )?;
        ensure(report.fact("gil").is_none(), || {
            "no other thread of it runs Python".into()
        })?;
        // Whether one of these is expected was checked above.
        let without_share = ["unknown", "warming-up"].contains(&kind);
        let right = share.map_or(without_share, |share| (share - truth).abs() <= TOLERANCE);
        ensure(right, || {
            format!("wait share {share:?}, of itself {truth:.3}")
        })
    }
}

/// Runs `body` with every torch: in parallel if a part of the machine is enough, otherwise one after the other.
pub(crate) fn each_python(situation: Situation, body: impl Fn(&Python) -> Outcome + Sync) {
    trials(situation, torches(), body);
}

/// Runs `body` with the last torch only, for tests that do not depend on its version.
pub(crate) fn last_python(situation: Situation, body: impl Fn(&Python) -> Outcome + Sync) {
    let last = torches().len().saturating_sub(1);
    trials(situation, &torches()[last..], body);
}

fn trials(situation: Situation, pythons: &[Python], body: impl Fn(&Python) -> Outcome + Sync) {
    let name = situation.name;
    if pythons.is_empty() {
        return skip(&format!("{name}: no Python with torch"));
    }
    if let Some(why) = situation
        .limit
        .and_then(|limit| Cgroup::unavailable(name, limit))
    {
        return skip(&format!("{name}: {why}"));
    }
    each(pythons, situation.share, |python| {
        situation.run(python, &body);
    });
}

pub(crate) fn check(situation: Situation, also: impl Fn(&Report) -> Outcome + Sync) {
    check_against(situation, |report, _| also(report));
}

/// Like [`check`] with the last torch only, for tests that do not depend on its version.
pub(crate) fn check_last(situation: Situation, also: impl Fn(&Report) -> Outcome + Sync) {
    last_python(situation, |python| {
        look(situation, python, |report, _| also(report))
    });
}

/// Like [`check`]; `also` gets the job, too, to read the job's own figures.
pub(crate) fn check_against(situation: Situation, also: impl Fn(&Report, &Job) -> Outcome + Sync) {
    each_python(situation, |python| look(situation, python, &also));
}

/// Checks one job. `also` gets the job, too.
pub(crate) fn look(
    situation: Situation,
    python: &Python,
    also: impl Fn(&Report, &Job) -> Outcome + Sync,
) -> Outcome {
    let job = situation.job(python)?;
    two_of_three_at_once(|| {
        let report = Report::of(Command::new(PIPETOP), job.pid(), OBSERVED)?;
        let outcome = situation.holds(&report, &job, python);
        about(&report, outcome.and_then(|()| also(&report, &job)))
    })
}

/// Checks the situations as the same user without the right to attach, as under Yama: all at once, as these jobs sleep.
pub(crate) fn check_without_ptrace(situations: &[Situation]) {
    let Some(python) = torches().last() else {
        return skip("no Python with torch");
    };
    let Some(library) = no_ptrace() else {
        return skip("libno_ptrace.so was not built");
    };
    let drops_rights = is_root();
    if drops_rights
        && Command::new(UNPRIVILEGED[0])
            .arg("--version")
            .output()
            .is_err()
    {
        return skip("setpriv is not installed");
    }
    let start = if drops_rights {
        Start::Unprivileged
    } else {
        Start::Plain
    };
    let jobs = situations.iter().map(|situation| Situation {
        start,
        share: Share::Whole,
        ..*situation
    });
    let jobs: Vec<Situation> = jobs.collect();
    // No other test runs beside them: without stacks, nothing shows whether a thread that waits for a CPU is in the
    // loader.
    all_at_once(&jobs, |situation| {
        situation.run(python, |python| {
            let job = situation.job(python)?;
            two_of_three_at_once(|| {
                let mut command = if drops_rights {
                    let mut command = Command::new(UNPRIVILEGED[0]);
                    command.args(&UNPRIVILEGED[1..]).arg(PIPETOP);
                    command
                } else {
                    Command::new(PIPETOP)
                };
                command.env("LD_PRELOAD", &library);
                let report = Report::of(command, job.pid(), OBSERVED)?;
                let more = ["ptrace", "PTRACE", "root", "sudo", "pipetop run"];
                let outcome = situation.holds(&report, &job, python);
                about(
                    &report,
                    outcome.and_then(|()| has_access(&report, "T1", &more)),
                )
            })
        });
    });
}

/// Returns the library that simulates Yama; cargo puts it beside the tests.
pub(crate) fn no_ptrace() -> Option<PathBuf> {
    let library = std::env::current_exe()
        .ok()?
        .with_file_name("libno_ptrace.so");
    library.exists().then_some(library)
}

/// Returns the batches per second of a running job beside pipetop, divided by those while pipetop is stopped. The two
/// alternate in short turns, as the pace of the machine changes within seconds.
pub(crate) fn throughput_ratio(situation: Situation, python: &Python) -> Result<f64, String> {
    const TURNS: u32 = 7;
    const TURN: Duration = Duration::from_secs(2);
    let job = situation.job(python)?;
    let mut watching = Command::new(PIPETOP);
    let both = (TURNS * 2 * TURN).as_secs();
    watching.args([&job.pid().to_string(), "--once", "--json", "--for"]);
    watching.arg(format!("{both}s")).stdout(Stdio::piped());
    let watching = watching.spawn().map_err(|error| error.to_string())?;
    let of_turn = |signal| {
        let begin = now();
        sleep(TURN);
        let end = now();
        let sent = kill_process(Pid::from_child(&watching), signal);
        sent.map_err(|error| format!("pipetop ended early: {error}"))?;
        job.truth(None)
            .rate(begin, end)
            .ok_or_else(|| "no batches in a turn".to_owned())
    };
    let (mut with, mut without) = (0.0, 0.0);
    for _ in 0..TURNS {
        with += of_turn(Signal::STOP)?;
        without += of_turn(Signal::CONT)?;
    }
    let output = watching
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let turns = f64::from(TURNS);
    note(&format!(
        "torch {} {}: {:.2} batches/s watched, {:.2} alone",
        python.torch,
        situation.name,
        with / turns,
        without / turns
    ));
    let polled = report["verdict"]["wait_share"].is_number();
    ensure(polled, || format!("it did not watch: {report:#}"))?;
    Ok(with / without)
}

pub(crate) fn no_more_workers(report: &Report) -> Outcome {
    ensure(!report.asks_for_more_workers(), || {
        "asks for more workers".into()
    })
}

/// Checks that the tier is shown, and that a hint contains one of these words about getting more access.
pub(crate) fn has_access(report: &Report, tier: &str, words: &[&str]) -> Outcome {
    let access = report.text("/window/access");
    ensure(access == tier, || format!("access {access}, not {tier}"))?;
    let hinted = report
        .hints()
        .any(|hint| words.iter().any(|word| hint.contains(word)));
    ensure(hinted, || "no hint how to see more".into())
}

pub(crate) fn ensure(holds: bool, what: impl Fn() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(what()) }
}

/// Adds the report to a failure.
pub(crate) fn about(report: &Report, outcome: Outcome) -> Outcome {
    outcome.map_err(|why| format!("{why}\n{:#}", report.document))
}
