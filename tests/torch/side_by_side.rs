//! Jobs that sleep most of the time: up to eight run side by side.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::cgroup::Limit;
use crate::clock::{now, sleep};
use crate::job::{Job, NOBODY, Start};
use crate::loads::loads_are_as_the_workers_say;
use crate::report::Report;
use crate::trial::{
    OBSERVED, Outcome, PIPETOP, Situation, about, check, check_against, check_last,
    check_without_ptrace, ensure, has_access, last_python, light, look, no_more_workers,
    throughput_ratio,
};
use support::for_everyone;
use support::machine::{is_root, note, skip};

const STARVED: Situation = light("starved");
// The loader just keeps up: either of these kinds is right, data-bound is not.
const MATCHED: Situation = light("matched").kinds(&["balanced", "compute-bound"]);
const OVER_PROVISIONED: Situation = light("over-provisioned").kinds(&["compute-bound"]);
// Without stacks, a batch cannot be told from other data that it reads from a pipe.
const COMMANDS: Situation = light("commands").kinds(&["unknown"]);
const CELLS: Situation = light("cells").kinds(&["unknown"]);
const SLOW_DISK: Limit = Limit::ReadBytesPerSecond(8 << 20);

#[test]
fn starved() {
    check_against(STARVED, |report, job| {
        let ratio = matching_over_own(report, job)?;
        // The ratio depends on the step, which is a fifth of the time here: one point of the wait share changes it by 5
        // %.
        ensure((0.85..=1.15).contains(&ratio), || {
            format!("{ratio:.2} of the workers that would match")
        })
    });
}

/// Returns the reported number of workers that match the trainer, divided by the number that follows from its own
/// times.
fn matching_over_own(report: &Report, job: &Job) -> Result<f64, String> {
    let matching = report.number("/verdict/workers/match");
    let matching = matching.ok_or("no number of workers")?;
    let seconds = report.number("/window/seconds").unwrap_or_default();
    let (from, to) = (report.ended - seconds, report.ended);
    // A load of 2 s divided by a step of 0.1 s; on a busy machine, steps are longer.
    let step = job.truth(None).step(from, to).ok_or("no whole step")?;
    let own = 2.0 / step;
    note(&format!("{matching} workers match, of itself {own:.1}"));
    Ok(matching / own)
}

/// No verdict and no advice: if nothing trains for most of a window, the shares of that window are too low.
#[test]
fn cells_of_a_notebook_with_pauses() {
    last_python(CELLS, |python| {
        let job = CELLS.job(python)?;
        let report = Report::of(Command::new(PIPETOP), job.pid(), OBSERVED)?;
        let kind = report.kind();
        let why = report.list("/verdict/missing").iter();
        let why = why.filter_map(|missing| missing.get("why")?.as_str());
        let said = why.filter(|why| why.contains("waits for events")).count();
        let outcome = ensure(
            kind == "unknown" && said == 1 && report.advice().next().is_none(),
            || format!("{kind}, with {said} reasons"),
        );
        about(&report, outcome)
    });
}

#[test]
fn matched() {
    check_last(MATCHED, |_| Ok(()));
}

#[test]
fn over_provisioned() {
    check_last(OVER_PROVISIONED, no_more_workers);
}

#[test]
fn two_ranks() {
    check_last(light("two-ranks").start(Start::Torchrun), |report| {
        let rank = |rank: &serde_json::Value| {
            let workers = rank.get("workers")?.as_array()?.len();
            Some((rank.get("rank")?.as_u64()?, workers))
        };
        let ranks: Vec<_> = report.list("/job/ranks").iter().map(rank).collect();
        ensure(ranks == [Some((0, 2)), Some((1, 2))], || {
            format!("ranks and their workers: {ranks:?}")
        })
    });
}

#[test]
fn jitter() {
    let jitter = light("jitter");
    last_python(jitter, |python| {
        look(jitter, python, loads_are_as_the_workers_say)
    });
}

#[test]
fn cold_reads_of_a_slow_disk() {
    check_last(
        light("cold-reads").cause("disk").limit(SLOW_DISK),
        no_more_workers,
    );
}

#[test]
fn warm_reads_of_a_slow_disk() {
    check_last(
        light("warm-reads")
            .kinds(&["compute-bound"])
            .limit(SLOW_DISK),
        |report| {
            let cause = report.text("/verdict/cause");
            ensure(cause != "disk", || "blames the disk".into())
        },
    );
}

#[test]
fn one_slow_worker() {
    check(light("slow-worker").cause("head-of-line"), |report| {
        no_more_workers(report)?;
        let helps = report
            .advice()
            .any(|advice| advice.contains("in_order") || advice.contains("balance"));
        ensure(helps, || {
            "advises neither in_order=False nor balance".into()
        })
    });
}

#[test]
fn loading_in_the_main_thread() {
    check_last(light("in-main").cause("in-main"), |_| Ok(()));
}

#[test]
fn two_shards_for_six_workers() {
    check_last(light("few-shards").cause("few-shards"), no_more_workers);
}

#[test]
fn two_shards_for_six_persistent_workers() {
    check_last(
        light("few-shards-persistent").cause("few-shards"),
        no_more_workers,
    );
}

#[test]
fn arrays_that_travel_in_the_pipe_are_counted_by_the_semaphore() {
    check(light("arrays").kinds(&["compute-bound"]), |report| {
        let queue = |key: &str| format!("/job/ranks/0/queue/{key}");
        let source = report.text(&queue("source"));
        ensure(source == "semaphore", || format!("counted by {source}"))?;
        // Three workers prefetch two batches each; one batch may be incomplete.
        let ready = report.number(&queue("ready"));
        ensure(
            ready.is_some_and(|ready| (4.0..=6.0).contains(&ready)),
            || format!("{ready:?} of 6 batches are ready"),
        )
    });
}

// The window has three or four batches, and no verdict is based on fewer than five.
#[test]
fn a_few_batches_only() {
    check_last(
        light("few-batches").kinds(&["warming-up"]).steady_after(1),
        |_| Ok(()),
    );
}

#[test]
fn stopped_job() {
    last_python(OVER_PROVISIONED, |python| {
        let job = OVER_PROVISIONED.job(python)?;
        job.stop();
        let report = Report::of(Command::new(PIPETOP), job.pid(), OBSERVED)?;
        about(
            &report,
            ensure(report.kind() == "stalled", || {
                "a stopped job is stalled".into()
            }),
        )?;
        let rank = &report.document["job"]["ranks"][0];
        let figures = [
            &rank["wait_share"],
            &rank["queue"],
            &rank["workers"][0]["busy_share"],
        ];
        about(
            &report,
            ensure(figures.iter().all(|figure| figure.is_null()), || {
                format!("nothing is known of a stopped job: {figures:?}")
            }),
        )
    });
}

/// While pipetop is stopped, its last readings age, and say nothing of the job since. Chance decides which of pipetop's
/// threads continues first, so four instances watch.
#[test]
fn a_job_goes_on_while_pipetop_is_stopped() {
    last_python(OVER_PROVISIONED, |python| {
        let job = OVER_PROVISIONED.job(python)?;
        let watch = |_| {
            let mut command = Command::new(PIPETOP);
            command.args([&job.pid().to_string(), "--interval", "1s", "--for", "26s"]);
            command.stdout(Stdio::piped()).spawn()
        };
        let all: Result<Vec<_>, _> = (0..4).map(watch).collect();
        let all = all.map_err(|error| error.to_string())?;
        let signal = |signal| {
            let each = all.iter();
            let mut sent = each.map(|one| kill_process(Pid::from_child(one), signal));
            sent.find_map(Result::err)
        };
        sleep(Duration::from_secs(8));
        let stopped = signal(Signal::STOP);
        sleep(Duration::from_secs(14));
        let failed = signal(Signal::CONT).or(stopped);
        ensure(failed.is_none(), || format!("no signal: {failed:?}"))?;
        for one in all {
            let output = one.wait_with_output();
            let lines = output.map_err(|error| error.to_string())?.stdout;
            let lines = String::from_utf8_lossy(&lines);
            let rate = |line: &str| {
                let (before, _) = line.split_once(" batches/s")?;
                before.rsplit(' ').next()?.parse::<f64>().ok()
            };
            let rates: Vec<_> = lines.lines().filter_map(rate).collect();
            let most = rates.iter().copied().fold(0.0, f64::max);
            let goes_on = rates.len() > 5 && rates.iter().all(|rate| *rate > most / 2.0);
            ensure(goes_on && !lines.contains("STALLED"), || {
                format!("it went on:\n{lines}")
            })?;
        }
        Ok(())
    });
}

#[test]
fn jobs_without_ptrace() {
    check_without_ptrace(&[STARVED, MATCHED, OVER_PROVISIONED, COMMANDS]);
}

#[test]
fn report_and_lines_of_a_job_that_ends() {
    last_python(OVER_PROVISIONED, |python| {
        let mut job = OVER_PROVISIONED.job(python)?;
        let report = Report::of(Command::new(PIPETOP), job.pid(), 3)?;
        about(&report, holds_to_the_schema(&report.document))?;
        let output = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let file = output.reopen().map_err(|error| error.to_string())?;
        let mut pipetop = Command::new(PIPETOP)
            .args([&job.pid().to_string(), "--interval", "1s", "--for", "20s"])
            .stdout(file)
            .spawn()
            .map_err(|error| error.to_string())?;
        let lines = || std::fs::read_to_string(output.path()).unwrap_or_default();
        let until = |seconds: f64, what: &str| {
            let deadline = now() + seconds;
            while now() < deadline && !lines().contains(what) {
                sleep(Duration::from_millis(20));
            }
            ensure(lines().contains(what), || {
                format!("no `{what}` within {seconds} s:\n{}", lines())
            })
        };
        let watched = until(10.0, "batches/s");
        job.kill();
        let ended = now();
        // Two intervals.
        let outcome = watched.and_then(|()| until(2.0, "the job has ended"));
        note(&format!("the end was said after {:.2} s", now() - ended));
        let _ = pipetop.kill();
        let _ = pipetop.wait();
        outcome
    });
}

fn holds_to_the_schema(report: &serde_json::Value) -> Outcome {
    let schema = serde_json::from_str(include_str!("../../config/report.schema.json"));
    let schema = schema.map_err(|error| error.to_string())?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    let errors = validator.iter_errors(report);
    let errors: Vec<_> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    ensure(errors.is_empty(), || errors.join("\n"))
}

#[test]
fn another_users_job() {
    if !is_root() {
        return skip("another user's job: needs root to become another user");
    }
    last_python(STARVED, |python| {
        let job = STARVED.job(python)?;
        let (_directory, program) =
            for_everyone(Path::new(PIPETOP)).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY).env("HOME", "/nonexistent");
        let report = Report::of(command, job.pid(), OBSERVED)?;
        let confidence = report.number("/verdict/confidence");
        let hedged =
            report.kind() == "unknown" || confidence.is_some_and(|confidence| confidence <= 0.5);
        let right = ["same user", "owner", "root", "sudo", "CAP_SYS_PTRACE"];
        about(
            &report,
            ensure(hedged, || "claims more than can be seen".into()),
        )?;
        about(&report, has_access(&report, "T0", &right))
    });
}

#[test]
fn harmless_to_a_job_that_sleeps() {
    last_python(OVER_PROVISIONED, |python| {
        let ratio = throughput_ratio(OVER_PROVISIONED, python)?;
        ensure(ratio > 0.95, || {
            format!("watched, it ran at {ratio:.3} of its speed")
        })
    });
}
