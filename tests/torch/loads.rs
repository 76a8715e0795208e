//! Load times of single batches, against the script's own measurements.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::job::Job;
use crate::report::Report;
use crate::trial::{Outcome, ensure};
use support::machine::note;

/// Milliseconds that a worker works on a batch outside of the dataset: collating it and handing it over.
const OUTSIDE_DATASET: f64 = 60.0;

/// Worker number and batch number.
type Which = (u64, u64);

/// Checks that each reported load is within its bounds, each batch is reported once, and every worker has some.
pub(crate) fn loads_are_as_the_workers_say(report: &Report, job: &Job) -> Outcome {
    let truth = truth(&job.file("loads"));
    let mut seen = BTreeSet::new();
    let mut widths = Vec::new();
    let mut around = f64::MIN;
    let workers = report.list("/job/ranks/0/workers");
    for worker in workers {
        let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_u64);
        let id = number(worker, "id").ok_or("a worker without a number")?;
        let loads = worker.get("last_loads_ms").and_then(Value::as_array);
        let loads = loads.filter(|loads| !loads.is_empty());
        for load in loads.ok_or_else(|| format!("no loads of worker {id}"))? {
            let figures = [
                number(load, "batch"),
                number(load, "low"),
                number(load, "high"),
            ];
            let [Some(batch), Some(low), Some(high)] = figures else {
                return Err(format!("no load: {load}"));
            };
            ensure(seen.insert((id, batch)), || {
                format!("batch {batch} of worker {id} is there twice")
            })?;
            let took = truth.get(&(id, batch));
            let took = took.ok_or_else(|| format!("worker {id} did not load batch {batch}"))?;
            let (low, high) = (low as f64, high as f64);
            ensure((low - OUTSIDE_DATASET..=high).contains(took), || {
                format!("batch {batch} took worker {id} {took} ms, not {low} to {high}")
            })?;
            widths.push(high - low);
            around = around.max(low - took);
        }
    }
    note(&format!(
        "{} loads of {} workers, {:.0} ms from bound to bound on average, {around:.0} ms more than the dataset says \
         at most",
        widths.len(),
        workers.len(),
        widths.iter().sum::<f64>() / widths.len() as f64
    ));
    ensure(!workers.is_empty(), || "no workers".into())
}

/// Returns the milliseconds of each batch. A line that is being written has no line end yet.
fn truth(text: &str) -> BTreeMap<Which, f64> {
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let which = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((which, 1000.0 * words.next()?.parse::<f64>().ok()?))
    };
    lines.filter_map(line).collect()
}
