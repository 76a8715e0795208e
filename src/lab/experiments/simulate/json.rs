//! A study as one JSON document. Unknown is `null`, never 0; the unit is in the key.

use std::time::Duration;

use serde_json::{Value, json};

use super::{SimulatedRun, SimulationSettings, Study, WhatIf};
use crate::units::Share;

/// Returns means over the runs; rates, shares and the queue's figures cover the time since the first batch.
pub fn json(study: &Study) -> Value {
    let over_time = study.ready_over_time();
    let seconds = study.settings.span.as_secs_f64();
    json!({
        "batches": rounded(study.batches().mean, 3),
        "seconds": seconds,
        "stall_share": share(study.now.stall),
        "period_batches": study.period_batches(),
        "batches_per_s": known(study.now.batches_per_s, 3),
        "first_batch_ms": known(study.mean(|run| run.first_batch.map(millis)), 3),
        "queue": {
            "capacity": study.settings.capacity(),
            "mean_ready": known(study.mean(|run| run.mean_ready), 3),
            "empty_share": share(study.now.empty),
            "part_seconds": (!over_time.is_empty())
                .then(|| rounded(seconds / over_time.len() as f64, 6)),
            "ready_over_time": over_time.into_iter().map(|ready| rounded(ready, 3)).collect::<Vec<_>>(),
        },
        "runs": study.runs.iter().map(run).collect::<Vec<_>>(),
        "what_if": study.what_if.iter().map(what_if).collect::<Vec<_>>(),
        "settings": settings(&study.settings),
    })
}

fn run(run: &SimulatedRun) -> Value {
    json!({ "seed": run.seed, "batches": run.batches })
}

fn what_if(row: &WhatIf) -> Value {
    json!({
        "workers": row.workers,
        "seconds": rounded(row.span.as_secs_f64(), 3),
        "batches_per_s": known(row.batches_per_s, 3),
        "stall_share": share(row.stall),
        "empty_share": share(row.empty),
    })
}

fn settings(settings: &SimulationSettings) -> Value {
    json!({
        "workers": settings.workers,
        "prefetch_factor": settings.prefetch_factor,
        "load_ms": millis(settings.load),
        "load_jitter": settings.load_jitter,
        "step_ms": millis(settings.step),
        "in_order": settings.in_order,
        "clock_ms": settings.clock.map(millis),
        "desync": settings.desync,
    })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn share(share: Option<Share>) -> Option<f64> {
    known(share.map(|share| share.0), 4)
}

fn known(value: Option<f64>, decimals: i32) -> Option<f64> {
    value.map(|value| rounded(value, decimals))
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}
