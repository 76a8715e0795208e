//! Metrics of a rank: its main thread, its loader and that loader's workers. Pure.

use super::exposition::Family;
use super::exposition::Type::{Counter, Gauge};
use super::job::{Rank, each, each_of, with};
use super::totals::RankTotals;
use crate::report::RankReport;

pub(super) fn rank_times(ranks: &[Rank<'_>]) -> [Family; 5] {
    let info = (
        Gauge,
        "pipetop_rank_info",
        "Process of a rank, and how deep it can be looked into.",
    );
    let total = |value: fn(&RankTotals) -> Option<f64>| {
        move |rank: &Rank<'_>| (rank.labels.clone(), rank.totals.and_then(value))
    };
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
        each(
            (
                Counter,
                "pipetop_rank_stall_uncertainty_seconds",
                "Half the width of the interval that the time lost to data lies in.",
            ),
            ranks,
            total(|totals| totals.stall_uncertainty),
        ),
        each(
            (
                Counter,
                "pipetop_rank_batches",
                "Batches that the trainer took.",
            ),
            ranks,
            total(|totals| totals.batches),
        ),
    ]
}

pub(super) fn loaders(ranks: &[Rank<'_>]) -> [Family; 6] {
    let yes_or_no = |value: Option<bool>| value.map(|value| value.to_string());
    let setting = |value: fn(&RankReport) -> Option<u32>| {
        move |rank: &Rank<'_>| (rank.labels.clone(), value(rank.report).map(f64::from))
    };
    let queue = |rank: &RankReport| rank.queue.as_ref()?.capacity;
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
        each(
            (Gauge, "pipetop_loader_workers", "Workers of the loader."),
            ranks,
            |rank| {
                let loader = rank.report.loader.as_ref();
                let workers = loader.map(|_| rank.report.workers.len() as f64);
                (rank.labels.clone(), workers)
            },
        ),
        each(
            (
                Gauge,
                "pipetop_loader_prefetch_factor",
                "Batches that each worker makes ahead.",
            ),
            ranks,
            setting(|rank| rank.loader.as_ref()?.settings.prefetch_factor),
        ),
        each(
            (
                Gauge,
                "pipetop_loader_queue_capacity",
                "Most batches that can be ready.",
            ),
            ranks,
            setting(queue),
        ),
        each(
            (
                Gauge,
                "pipetop_loader_queue_ready",
                "Batches that are ready.",
            ),
            ranks,
            |rank| {
                let ready = rank.totals.and_then(|totals| totals.queue_ready);
                (rank.labels.clone(), ready.map(f64::from))
            },
        ),
        each(
            (
                Counter,
                "pipetop_loader_queue_empty_seconds",
                "Time in which no batch was ready.",
            ),
            ranks,
            |rank| {
                let empty = rank.totals.and_then(|totals| totals.queue_empty);
                (rank.labels.clone(), empty)
            },
        ),
    ]
}

pub(super) fn workers(ranks: &[Rank<'_>]) -> [Family; 4] {
    let total = |value: fn(&RankTotals) -> Option<f64>| {
        move |rank: &Rank<'_>| (rank.labels.clone(), rank.totals.and_then(value))
    };
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
        each(
            (
                Counter,
                "pipetop_loader_load_seconds",
                "Time that workers had a batch in work; over the batches, the load time of one.",
            ),
            ranks,
            total(|totals| totals.load),
        ),
        each(
            (
                Counter,
                "pipetop_loader_storage_read_bytes",
                "Bytes that workers fetched from block devices.",
            ),
            ranks,
            total(|totals| Some(totals.storage_read?.round())),
        ),
        each(
            (
                Counter,
                "pipetop_loader_read_bytes",
                "Bytes that workers got by read calls, from anywhere.",
            ),
            ranks,
            total(|totals| Some(totals.read?.round())),
        ),
    ]
}
