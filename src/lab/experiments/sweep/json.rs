//! A sweep for other programs: the document for `--json` and the table for `--csv`. Unknown is `null`, or an empty
//! cell.

use serde_json::{Value, json};

use super::{Sweep, SweepRow};
use crate::lab::experiments::{milliseconds, rounded};

/// Returns the document for `--json`.
pub fn json(sweep: &Sweep) -> Value {
    let rows =
        |rows: &[SweepRow]| -> Value { rows.iter().map(|row| self::row(sweep, row)).collect() };
    json!({
        "rows": rows(&sweep.rows),
        "prefetch": rows(&sweep.prefetch),
        "memory": rows(&sweep.memory),
        "knee": sweep.knee(),
        "advised": sweep.advised(),
        "cpus_allowed": sweep.cpus_allowed,
    })
}

fn row(sweep: &Sweep, row: &SweepRow) -> Value {
    json!({
        "workers": row.tried.workers,
        "prefetch_factor": row.tried.prefetch_factor,
        "pin_memory": row.tried.pin_memory,
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

/// Returns the table for `--csv`, with its heading. Its columns are some of the keys of the document's rows, and what a
/// row is compared by.
pub fn csv(sweep: &Sweep) -> String {
    const HEAD: &str = "workers,first_batch_ms,batches_per_s,wait_share,step_ms,worker_cpu_cores,speedup,not_set,\
                        comparison,prefetch_factor,pin_memory,copy_ms";
    let comparisons = [
        ("workers", &sweep.rows),
        ("prefetch", &sweep.prefetch),
        ("memory", &sweep.memory),
    ];
    let mut table = format!("{HEAD}\n");
    for (comparison, rows) in comparisons {
        for row in rows {
            let mut row = self::row(sweep, row);
            row["comparison"] = comparison.into();
            let cells = HEAD.split(',').map(|column| match &row[column] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                value => value.to_string(),
            });
            table += &cells.collect::<Vec<_>>().join(",");
            table.push('\n');
        }
    }
    table
}
