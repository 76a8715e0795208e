//! A thread beside the training loop: if it runs Python it slows the step, if it works in C it does not. The scripted
//! driver simulates an idle GPU.

use std::process::Command;
use std::thread;

use fake_nvml::FakeNvml;

use crate::job::Job;
use crate::report::Report;
use crate::trial::{OBSERVED, Outcome, PIPETOP, Situation, about, ensure, heavy, last_python};
use support::machine::note;
use support::measured::two_of_three_at_once;

const PYTHON_THREAD: Situation = heavy("python-thread").steady_after(5);
const NATIVE_THREAD: Situation = heavy("native-thread");

fn report(job: &Job, driver: &FakeNvml) -> Result<Report, String> {
    let mut command = Command::new(PIPETOP);
    command.arg("--nvml-lib").arg(driver.library());
    Report::of(command, job.pid(), OBSERVED)
}

#[test]
fn only_a_thread_that_runs_python_is_to_blame() {
    last_python(PYTHON_THREAD, |python| {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let driver = FakeNvml::install(directory.path(), "dev 0 util=30");
        let contended = PYTHON_THREAD.job(python)?;
        let free = NATIVE_THREAD.job(python)?;
        two_of_three_at_once(|| {
            let (contended, free) = thread::scope(|scope| {
                let free = scope.spawn(|| report(&free, &driver));
                (report(&contended, &driver), free.join())
            });
            let free = free.map_err(|_| "the other report broke off")?;
            check_blame(&contended?, &free?)
        })
    });
}

fn check_blame(contended: &Report, free: &Report) -> Outcome {
    let words = contended.fact("gil").unwrap_or_default();
    note(&format!(
        "{} {}, {words}; beside native work: {} {}",
        contended.kind(),
        contended.text("/verdict/cause"),
        free.kind(),
        free.text("/verdict/cause"),
    ));
    about(contended, blames_python(contended))?;
    about(
        free,
        ensure(free.fact("gil").is_none(), || {
            "blames a thread that works without the lock".into()
        }),
    )
}

fn blames_python(report: &Report) -> Outcome {
    // The kind depends on the share of time spent receiving batches, which takes longer on a busy machine.
    let kinds = ["host-bound", "data-bound"];
    ensure(kinds.contains(&report.kind()), || "another kind".into())?;
    let cause = report.text("/verdict/cause");
    ensure(cause == "gil", || format!("cause {cause:?}"))?;
    let words = report.fact("gil").unwrap_or_default();
    ensure(words.contains("log_metrics (situations.py)"), || {
        format!("who holds the lock is not named: {words}")
    })?;
    let advised = report
        .advice()
        .any(|advice| advice.contains("process of its own"));
    ensure(advised, || "does not advise a process".into())
}
