//! A sweep for other programs: the document for `--json` and the table for `--csv`. Unknown is `null`, or an empty cell.

use serde_json::{Value, json};

use super::{Sweep, SweepRow};
use crate::lab::experiments::{milliseconds, rounded};

/// Returns the document for `--json`.
pub fn json(sweep: &Sweep) -> Value {
    json!({
        "rows": sweep.rows.iter().map(|row| self::row(sweep, row)).collect::<Vec<_>>(),
        "prefetch": sweep.prefetch.iter().map(|row| self::row(sweep, row)).collect::<Vec<_>>(),
        "memory": sweep.memory.iter().map(|row| self::row(sweep, row)).collect::<Vec<_>>(),
        "knee": sweep.knee(),
        "advised": sweep.knee().map(|knee| knee.min(sweep.cpus_allowed.max(1))),
        "cpus_allowed": sweep.cpus_allowed,
    })
}

fn row(sweep: &Sweep, row: &SweepRow) -> Value {
    json!({
        "workers": row.workers,
        "prefetch_factor": row.prefetch_factor,
        "pin_memory": row.pin_memory,
        "first_batch_ms": milliseconds(row.first_batch),
        "batches_per_s": row.steady.map(|steady| rounded(steady.batches_per_s)),
        "wait_share": row.steady.map(|steady| rounded(steady.wait.0)),
        "step_ms": row.steady.map(|steady| milliseconds(steady.step)),
        "copy_ms": row.steady.and_then(|steady| steady.copy).map(milliseconds),
        "worker_cpu_cores": row.worker_cpu.map(rounded),
        "speedup": sweep.speedup(row).map(rounded),
        "above_cpus_allowed": sweep.is_above_cpus(row),
        "not_set": row.not_set,
    })
}

/// Returns the table for `--csv`, with its heading.
pub fn csv(sweep: &Sweep) -> String {
    let head = "workers,first_batch_ms,batches_per_s,wait_share,step_ms,worker_cpu_cores,speedup,not_set\n";
    let cell =
        |value: Option<f64>| value.map_or_else(String::new, |value| rounded(value).to_string());
    let line = |row: &SweepRow| {
        let cells = [
            Some(milliseconds(row.first_batch)),
            row.steady.map(|steady| steady.batches_per_s),
            row.steady.map(|steady| steady.wait.0),
            row.steady.map(|steady| milliseconds(steady.step)),
            row.worker_cpu,
            sweep.speedup(row),
        ];
        let not_set = row.not_set.as_deref().unwrap_or_default();
        let cells = cells.map(cell).join(",");
        format!("{},{cells},{not_set}\n", row.workers)
    };
    std::iter::once(head.to_owned())
        .chain(sweep.rows.iter().map(line))
        .collect()
}
