//! One trial: a job in a situation, the binary beside it, and what must be said.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::cgroup::{Cgroup, Limit};
use crate::clock::{now, sleep};
use crate::job::{Job, Start};
use crate::machine::{Place, Python, Share, is_root, note, pythons, skip};
use crate::report::Report;

pub(crate) const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
/// Seconds that a verdict is given.
pub(crate) const OBSERVED: u32 = 12;
/// How far the reported wait share may be from the job's own.
const TOLERANCE: f64 = 0.05;
/// Runs a command without any capability, so that to root, too, other processes are only those of the same user.
pub(crate) const UNPRIVILEGED: [&str; 3] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

pub(crate) type Outcome = Result<(), String>;

/// A job and what must be said of it.
#[derive(Clone, Copy)]
pub(crate) struct Situation {
    name: &'static str,
    start: Start,
    share: Share,
    limit: Option<Limit>,
    /// Batches after which it is in steady state.
    steady: usize,
    kinds: &'static [&'static str],
    cause: Option<&'static str>,
}

/// A data-bound job that sleeps most of the time, so that three others may run beside it.
pub(crate) const fn light(name: &'static str) -> Situation {
    Situation {
        name,
        start: Start::Plain,
        share: Share::Quarter,
        limit: None,
        steady: 14,
        kinds: &["data-bound"],
        cause: None,
    }
}

/// A data-bound job that needs the CPUs for itself.
pub(crate) const fn heavy(name: &'static str) -> Situation {
    Situation {
        share: Share::Whole,
        steady: 25,
        ..light(name)
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

    /// The job in steady state.
    pub(crate) fn job(&self, python: &Python) -> Result<Job, String> {
        if self.limit.is_some() {
            // The limit is meant for the job's data: what it imports is in the page cache by then.
            let warm = Command::new(&python.path)
                .args(["-c", "import torch"])
                .output();
            warm.map_err(|error| format!("cannot import torch: {error}"))?;
        }
        let mut job = Job::start(&python.path, self.name, self.start, self.limit)?;
        job.reach(self.steady, (self.start == Start::Torchrun).then_some(0))?;
        Ok(job)
    }

    /// Kind, cause and wait share are what they must be.
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
        ensure(self.kinds.contains(&kind), || {
            format!("{kind}, not {:?}", self.kinds)
        })?;
        ensure(self.cause.is_none_or(|right| right == cause), || {
            format!("cause {cause:?}, not {:?}", self.cause)
        })?;
        ensure(
            (10.0..=f64::from(OBSERVED) + 1.0).contains(&seconds),
            || format!("a window of {seconds} s"),
        )?;
        ensure(report.fact("gil").is_none(), || {
            "no other thread of it runs Python".into()
        })?;
        let right = share.map_or(kind == "warming-up", |share| {
            (share - truth).abs() <= TOLERANCE
        });
        ensure(right, || {
            format!("wait share {share:?}, of itself {truth:.3}")
        })
    }
}

/// Runs `body` for every torch, one after the other where the machine is needed whole, else side by side. A machine that others use, too, can
/// take the CPUs away in the middle of a trial: one that fails is said and tried once more.
pub(crate) fn each_python(situation: Situation, body: impl Fn(&Python) -> Outcome + Sync) {
    trials(situation, pythons(), body);
}

/// The same for the last of them alone: for what does not depend on torch's version.
pub(crate) fn last_python(situation: Situation, body: impl Fn(&Python) -> Outcome + Sync) {
    let last = pythons().len().saturating_sub(1);
    trials(situation, &pythons()[last..], body);
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
    let run = |python: &Python| {
        let _place = Place::take(situation.share);
        let first = body(python).err()?;
        note(&format!(
            "torch {} {name}: tried once more, for: {first}",
            python.torch
        ));
        body(python)
            .err()
            .map(|why| format!("torch {} {name}: {why}", python.torch))
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let started: Vec<_> = pythons
            .iter()
            .map(|python| scope.spawn(|| run(python)))
            .collect();
        started
            .into_iter()
            .filter_map(|trial| trial.join().expect("a trial does not panic"))
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

pub(crate) fn check(situation: Situation, also: impl Fn(&Report) -> Outcome + Sync) {
    check_against(situation, |report, _| also(report));
}

/// The same, with the job at hand for what it says of itself.
pub(crate) fn check_against(situation: Situation, also: impl Fn(&Report, &Job) -> Outcome + Sync) {
    each_python(situation, |python| {
        let job = situation.job(python)?;
        let report = Report::of(Command::new(PIPETOP), job.pid(), OBSERVED)?;
        about(
            &report,
            situation
                .holds(&report, &job, python)
                .and_then(|()| also(&report, &job)),
        )
    });
}

/// Same user, no right to attach: as under Yama.
pub(crate) fn check_without_ptrace(situation: Situation) {
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
    let situation = Situation { start, ..situation };
    each_python(situation, |python| {
        let job = situation.job(python)?;
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
    });
}

/// The library that stands for Yama; cargo puts it beside the tests.
pub(crate) fn no_ptrace() -> Option<PathBuf> {
    let library = std::env::current_exe()
        .ok()?
        .with_file_name("libno_ptrace.so");
    library.exists().then_some(library)
}

/// Batches per second of one running job with pipetop over those without, in turns.
pub(crate) fn throughput_ratio(situation: Situation, python: &Python) -> Result<f64, String> {
    const TURNS: usize = 3;
    const SECONDS: u32 = 5;
    let job = situation.job(python)?;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let begin = now();
        sleep(Duration::from_secs(SECONDS.into()));
        let between = now();
        Report::of(Command::new(PIPETOP), job.pid(), SECONDS)?;
        turns.push((begin, between, now()));
    }
    let truth = job.truth(None);
    let rate = |turns: Vec<(f64, f64)>| {
        let batches: usize = turns
            .iter()
            .map(|(from, to)| truth.batches_between(*from, *to))
            .sum();
        batches as f64 / turns.iter().map(|(from, to)| to - from).sum::<f64>()
    };
    let without = rate(
        turns
            .iter()
            .map(|(begin, between, _)| (*begin, *between))
            .collect(),
    );
    let with = rate(
        turns
            .iter()
            .map(|(_, between, end)| (*between, *end))
            .collect(),
    );
    let (torch, name) = (&python.torch, situation.name);
    note(&format!(
        "torch {torch} {name}: {with:.2} batches/s watched, {without:.2} alone, ratio {:.3}",
        with / without
    ));
    Ok(with / without)
}

pub(crate) fn no_more_workers(report: &Report) -> Outcome {
    ensure(!report.asks_for_more_workers(), || {
        "asks for more workers".into()
    })
}

/// The tier is on show, and some hint says with one of these words how to get more.
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

/// A failure with the report that it is about.
pub(crate) fn about(report: &Report, outcome: Outcome) -> Outcome {
    outcome.map_err(|why| format!("{why}\n{:#}", report.document))
}
