//! Jobs that need one CPU or all for themselves.

use crate::cgroup::Limit;
use crate::trial::{
    Situation, busy, check_last, ensure, heavy, last_python, no_more_workers, throughput_ratio,
};

const COMPUTE: Situation = heavy("compute").kinds(&["compute-bound"]);

#[test]
fn jpeg_decoding_with_one_worker() {
    check_last(busy("jpeg").cause("cpu-preprocess"), |report| {
        let seen = report.what_workers_do();
        // Pillow decodes in `ImageFile.load`, called from the script's `decode_jpeg`.
        let named = seen
            .iter()
            .any(|text| text.contains("decode_jpeg") || text.contains("ImageFile"));
        ensure(named, || {
            format!("the decode function is not named: {seen:?}")
        })
    });
}

#[test]
fn more_hungry_workers_than_cpus() {
    check_last(
        heavy("oversubscribed").cause("cpu-oversubscribed"),
        no_more_workers,
    );
}

#[test]
fn compute() {
    check_last(busy("compute").kinds(&["compute-bound"]), no_more_workers);
}

#[test]
fn many_small_tensors() {
    check_last(heavy("many-tensors").cause("ipc"), no_more_workers);
}

#[test]
fn cpu_quota() {
    check_last(
        // The quota leaves it one CPU, but beside a job that keeps one CPU busy, it would lack that one.
        heavy("quota").cause("cpu-quota").limit(Limit::Cpus(1.0)),
        no_more_workers,
    );
}

#[test]
fn spawned_workers_with_short_epochs() {
    check_last(
        heavy("short-epochs").cause("worker-restart"),
        no_more_workers,
    );
}

#[test]
fn harmless_to_a_job_that_computes() {
    last_python(COMPUTE, |python| {
        let ratio = throughput_ratio(COMPUTE, python)?;
        ensure(ratio > 0.85, || {
            format!("watched, it ran at {ratio:.3} of its speed")
        })
    });
}
