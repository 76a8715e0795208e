//! Metrics of a rank: its main thread, its loader and that loader's workers. Does no I/O.

use super::exposition::Type::{Counter, Gauge};
use super::exposition::{MetricFamily, Type};
use super::job::{Rank, each, each_of, with};

/// Returns a family with one value for each rank.
fn one(
    metric: Type,
    name: &'static str,
    help: &'static str,
    ranks: &[Rank<'_>],
    value: fn(&Rank<'_>) -> Option<f64>,
) -> MetricFamily {
    let value = |rank: &Rank<'_>| (rank.labels.clone(), value(rank));
    each((metric, name, help), ranks, value)
}

pub(super) fn rank_times(ranks: &[Rank<'_>]) -> [MetricFamily; 5] {
    let info = (
        Gauge,
        "pipetop_rank_info",
        "Process of a rank, and how much of it pipetop can see.",
    );
    let one = |metric, name, help, value| one(metric, name, help, ranks, value);
    [
        each(info, ranks, |rank| {
            let access = rank.access.map(|tier| format!("{tier:?}"));
            let who = [
                ("pid", Some(rank.report.pid.to_string())),
                (
                    "local_rank",
                    rank.report.local_rank.map(|rank| rank.to_string()),
                ),
                ("access", access),
            ];
            (with(&rank.labels, who), Some(1.0))
        }),
        each_of(
            (
                "pipetop_rank_seconds",
                "Time of the main thread in which its waits could be seen, by what it did.",
            ),
            "state",
            ranks,
            |totals| &totals.main,
        ),
        each_of(
            ("pipetop_rank_stall_seconds", "Time lost to data."),
            "cause",
            ranks,
            |totals| &totals.stall,
        ),
        one(
            Counter,
            "pipetop_rank_stall_uncertainty_seconds",
            "Half the width of the interval of the time lost to data.",
            |rank| rank.totals?.stall_uncertainty,
        ),
        one(
            Counter,
            "pipetop_rank_batches",
            "Batches that the trainer took.",
            |rank| rank.totals?.batches,
        ),
    ]
}

pub(super) fn loaders(ranks: &[Rank<'_>]) -> [MetricFamily; 6] {
    let yes_or_no = |value: Option<bool>| value.map(|value| value.to_string());
    let one = |metric, name, help, value| one(metric, name, help, ranks, value);
    [
        each(
            (Gauge, "pipetop_loader_info", "Settings of a rank's loader."),
            ranks,
            |rank| {
                let Some(loader) = &rank.report.loader else {
                    return (vec![], None);
                };
                let kind = serde_json::to_value(loader.kind).ok();
                let kind = kind.and_then(|kind| Some(kind.as_str()?.to_owned()));
                let settings = [
                    ("kind", kind),
                    ("start_method", loader.settings.start_method.clone()),
                    ("pin_memory", yes_or_no(loader.settings.pin_memory)),
                    ("in_order", yes_or_no(loader.settings.in_order)),
                ];
                (with(&rank.labels, settings), Some(1.0))
            },
        ),
        one(
            Gauge,
            "pipetop_loader_workers",
            "Workers of the loader.",
            |rank| {
                rank.report
                    .loader
                    .as_ref()
                    .map(|_| rank.report.workers.len() as f64)
            },
        ),
        one(
            Gauge,
            "pipetop_loader_prefetch_factor",
            "Batches that each worker makes ahead.",
            |rank| {
                Some(f64::from(
                    rank.report.loader.as_ref()?.settings.prefetch_factor?,
                ))
            },
        ),
        one(
            Gauge,
            "pipetop_loader_queue_capacity",
            "Maximum number of ready batches.",
            |rank| Some(f64::from(rank.report.queue.as_ref()?.capacity?)),
        ),
        one(
            Gauge,
            "pipetop_loader_queue_ready",
            "Batches that are ready.",
            |rank| rank.totals?.queue_ready.map(f64::from),
        ),
        one(
            Counter,
            "pipetop_loader_queue_empty_seconds",
            "Time in which no batch was ready.",
            |rank| rank.totals?.queue_empty,
        ),
    ]
}

pub(super) fn workers(ranks: &[Rank<'_>]) -> [MetricFamily; 4] {
    let one = |metric, name, help, value| one(metric, name, help, ranks, value);
    [
        each_of(
            (
                "pipetop_loader_worker_seconds",
                "Time of all workers of a rank together, by what they did.",
            ),
            "state",
            ranks,
            |totals| &totals.workers,
        ),
        one(
            Counter,
            "pipetop_loader_load_seconds",
            "Time in which workers made batches; divided by the batches, the load time of one.",
            |rank| rank.totals?.load,
        ),
        one(
            Counter,
            "pipetop_loader_storage_read_bytes",
            "Bytes that workers fetched from block devices.",
            |rank| Some(rank.totals?.storage_read?.round()),
        ),
        one(
            Counter,
            "pipetop_loader_read_bytes",
            "Bytes that workers got from read calls, whatever the source.",
            |rank| Some(rank.totals?.read?.round()),
        ),
    ]
}
