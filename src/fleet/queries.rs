//! The queries of Prometheus for the runs, one for each figure.
//!
//! Depends on the metric names of `pipetop serve`.

/// Range of a rate: long enough for two scrapes if Prometheus scrapes once a minute.
const RATES: &str = "2m";
/// Length of the history in seconds, number of points in it, and seconds between two points.
const HISTORY: u32 = 3600;
pub(super) const POINTS: u32 = 16;
pub(super) const STEP: u32 = HISTORY / POINTS;
/// The figure that a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FleetFigure {
    Users,
    Nodes,
    Ranks,
    Kinds,
    Lost,
    History,
    Causes,
    Batches,
    Ages,
    /// The wait share of each rank of one run; if all runs are read, only that of the longest-waiting rank of each.
    Waits,
    /// The wait share of the median rank.
    MiddleWait,
    /// Queue occupancy by rank. Like `Gpus`, read only of a single run.
    Queues,
    Gpus,
}

/// Returns the queries for all runs, or for all ranks of one.
pub(super) fn queries(run: Option<&str>) -> Vec<(FleetFigure, String)> {
    let of = run.map_or_else(String::new, |run| format!("run={}", quoted(run)));
    let rate = |metric: &str, by: &str, matching: &str| {
        let matching = [of.as_str(), matching].join(",");
        let matching = matching.trim_matches(',');
        format!("sum by ({by}) (rate({metric}{{{matching}}}[{RATES}]))")
    };
    let stalls = |by: &str| rate("pipetop_rank_stall_seconds_total", by, "");
    let seconds = |by: &str| rate("pipetop_rank_seconds_total", by, "");
    let lost = format!("{} / {}", stalls("run"), seconds("run"));
    let place = "run, rank, instance";
    let waits = rate("pipetop_rank_seconds_total", place, r#"state="data_wait""#);
    let waits = format!("{waits} / {}", seconds(place));
    // `rate` spreads the batches of a young run over the whole range; `deriv` does not handle a counter that was reset.
    let counts = format!("pipetop_rank_batches_total{{{of}}}[{RATES}]");
    let batches =
        format!("sum by (run) (deriv({counts}) unless resets({counts}) > 0 or rate({counts}))");
    let mut queries = vec![
        (
            FleetFigure::Users,
            format!("max by (run, user) (pipetop_run_info{{{of}}})"),
        ),
        (
            FleetFigure::Nodes,
            format!("count by (run) (count by (run, instance) (pipetop_run_info{{{of}}}))"),
        ),
        (
            FleetFigure::Ranks,
            format!("count by (run) (count by (run, rank) (pipetop_rank_info{{{of}}}))"),
        ),
        (
            FleetFigure::Kinds,
            format!("count by (run, kind) (pipetop_verdict_state{{{of}}} == 1)"),
        ),
        (
            FleetFigure::History,
            format!("({lost})[{HISTORY}s:{STEP}s]"),
        ),
        (FleetFigure::Lost, lost),
        (FleetFigure::Causes, stalls("run, cause")),
        (FleetFigure::Batches, batches),
        (
            FleetFigure::Ages,
            format!(
                "max by (run) (pipetop_run_info{{{of}}} * on (instance) group_left () \
                 (time() - pipetop_last_sample_timestamp_seconds))"
            ),
        ),
        (
            FleetFigure::MiddleWait,
            format!("quantile by (run) (0.5, {waits})"),
        ),
    ];
    if run.is_none() {
        // There may be thousands of ranks, so read only the longest-waiting one of each run.
        queries.push((FleetFigure::Waits, format!("topk by (run) (1, {waits})")));
        return queries;
    }
    queries.push((FleetFigure::Waits, waits));
    let queue = |what: &str| format!("sum by ({place}) (pipetop_loader_queue_{what}{{{of}}})");
    let queues = format!("{} / {}", queue("ready"), queue("capacity"));
    queries.push((FleetFigure::Queues, queues));
    let gpu = "instance, gpu, uuid";
    let seconds =
        |what: &str| format!("max by ({gpu}) (rate(pipetop_gpu_{what}_seconds_total[{RATES}]))");
    let busy = format!("{} / {}", seconds("busy"), seconds("observed"));
    let gpus = format!(
        "avg by ({place}) (pipetop_gpu_rank_info{{{of}}} * on ({gpu}) group_left () ({busy}))"
    );
    queries.push((FleetFigure::Gpus, gpus));
    queries
}

/// Quotes a string for a query.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("\"{escaped}\"")
}
