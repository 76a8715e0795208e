//! The expected wait with other numbers of workers, from load and step time alone.
//!
//! The model is a pipeline: a batch comes every `max(step, load / workers)`. Workers help only up to the number that
//! the CPUs can feed: the CPUs that workers use now, and the free ones. It applies if loading is work for CPUs. If it
//! is not, if the times are not known, or if the model does not explain the measured wait, the result is a reason
//! instead of a table.

use super::context::Context;
use super::level::SLIGHT;
use super::rules::Cause;
use super::workers::cpu_feeds_now;
use super::{Expected, Interval, Kind, WorkerAdvice};
use crate::model::rates::LoaderRates;
use crate::units::Share;

/// Maximum number of rows.
const MAX_ROWS: usize = 12;
/// Maximum distance of the measured wait from the interval of the wait expected with the present workers.
const MAX_DIFFERENCE: f64 = 0.1;
/// Minimum share of the workers' busy time at which a shared resource counts as slowing them down.
const SHARED: f64 = 0.2;

/// Returns the table, or why there is none.
pub(super) fn what_if(
    context: &Context<'_>,
    kind: Kind,
    cause: Option<Cause>,
    workers: Option<WorkerAdvice>,
) -> Result<Vec<Expected>, String> {
    if let Some(reason) = another_limit(context, kind, cause) {
        return Err(reason);
    }
    let unknown = |what: &str| format!("{what} is not known");
    let workers = workers.ok_or_else(|| unknown("the number of workers"))?;
    let wait = context
        .wait()
        .ok_or_else(|| unknown("the share of waits"))?;
    let (load, step) = context.load_and_step();
    let delayed = context
        .of_busy(|worker| worker.run_delay)
        .unwrap_or_default();
    let pipeline = Pipeline {
        // The time in which a worker waits for a CPU is no work.
        load_ms: load.ok_or_else(|| unknown("the load time"))? * delayed.complement().0,
        step_ms: step.ok_or_else(|| unknown("the step time"))?,
        fed: cpu_feeds_now(context),
        wait: wait.into(),
    };
    if pipeline.load_ms <= 0.0 || pipeline.step_ms <= 0.0 {
        return Err("the times are too short for an estimate".to_owned());
    }
    let now = pipeline.row(workers.now);
    if now.wait.low.0 - MAX_DIFFERENCE > wait.share.0
        || now.wait.high.0 + MAX_DIFFERENCE < wait.share.0
    {
        return Err(format!(
            "load and step time explain a wait of {} with {} workers, yet {} is seen: something else is at work",
            now.wait.share, workers.now, wait.share
        ));
    }
    Ok(numbers(&workers, pipeline.fed)
        .into_iter()
        .map(|count| pipeline.row(count))
        .collect())
}

/// Returns why the times of workers and step alone do not determine the wait.
fn another_limit(context: &Context<'_>, kind: Kind, cause: Option<Cause>) -> Option<String> {
    if matches!(kind, Kind::WarmingUp | Kind::Stalled | Kind::Unknown) {
        return Some("there is no verdict yet".to_owned());
    }
    if context.loads_in_main() {
        return Some("the main thread loads: a worker's load time is unknown".to_owned());
    }
    if context.has_fixed_workers() {
        return Some("the visible workers only pass on what others load".to_owned());
    }
    let waited_for = |loader: &LoaderRates| loader.wait.is_none_or(|wait| wait.0 >= SLIGHT);
    if context.other_loaders().any(waited_for) {
        return Some("the trainer waits for several loaders, one after the other".to_owned());
    }
    if let Some(cause) = cause.filter(|cause| !cause.rule().what_if) {
        return Some(format!(
            "load and step time cannot predict other worker counts (cause: {})",
            cause.words()
        ));
    }
    let shared = [
        ("disk", context.of_busy(|worker| worker.disk)),
        ("network", context.of_busy(|worker| worker.network)),
    ];
    shared.into_iter().find_map(|(what, share)| {
        let share = share.filter(|share| share.0 >= SHARED)?;
        Some(format!(
            "workers wait for the {what} {share} of their busy time, and all of them share it"
        ))
    })
}

struct Pipeline {
    /// Load time of one worker that has a CPU to itself.
    load_ms: f64,
    step_ms: f64,
    /// Number of workers that the CPUs can feed; `None` = they are not the limit, or it is not known.
    fed: Option<f64>,
    /// The wait as measured now.
    wait: Interval,
}

impl Pipeline {
    fn row(&self, workers: u32) -> Expected {
        let count = f64::from(workers);
        let at_work = self.fed.map_or(count, |fed| count.min(fed)).max(0.01);
        let made_every = self.load_ms / at_work;
        let expected = |step: f64| Share(1.0 - step / made_every).clamped();
        // The uncertainty of the wait is also that of the step: the two make up the same time.
        let rest = self.wait.share.complement().0.max(0.001);
        let slowest = self.step_ms * self.wait.low.complement().0 / rest;
        let quickest = self.step_ms * self.wait.high.complement().0 / rest;
        Expected {
            workers,
            wait: Interval {
                share: expected(self.step_ms),
                low: expected(slowest),
                high: expected(quickest),
            },
            batches_per_s: 1000.0 / made_every.max(self.step_ms),
        }
    }
}

/// Returns the numbers of workers in the table: from one to one more than helps, including the present number and those
/// in the advice.
fn numbers(workers: &WorkerAdvice, fed: Option<f64>) -> Vec<u32> {
    let wanted = workers.match_step.unwrap_or(workers.now);
    let helps = match fed {
        // One more worker can use the remaining fraction of a CPU.
        Some(fed) => (1..wanted)
            .find(|count| f64::from(*count) >= fed)
            .unwrap_or(wanted),
        None => wanted,
    };
    let most = workers.now.max(helps) + 1;
    let named = [Some(workers.now), workers.advised, workers.match_step];
    let mut numbers: Vec<u32> = named.into_iter().flatten().filter(|n| *n <= most).collect();
    numbers.extend([1, most]);
    let mut every = 1;
    while (most / every) as usize > MAX_ROWS - 4 {
        every *= 2;
    }
    numbers.extend((1..=most / every).map(|place| place * every));
    numbers.retain(|count| *count > 0);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(load_ms: f64, step_ms: f64, wait: f64, fed: Option<f64>) -> Pipeline {
        Pipeline {
            load_ms,
            step_ms,
            fed,
            wait: Interval {
                share: Share(wait),
                low: Share(wait - 0.03),
                high: Share(wait + 0.03),
            },
        }
    }

    fn about(share: Share, percent: f64) -> bool {
        (share.percent() - percent).abs() < 0.5
    }

    #[test]
    fn a_batch_comes_as_often_as_the_slower_of_workers_and_step_allow() {
        // 412 ms to load, 38 ms to use: four workers deliver one every 103 ms.
        let pipeline = pipeline(412.0, 38.0, 0.631, None);
        let now = pipeline.row(4);
        assert!(about(now.wait.share, 63.1), "{now:?}");
        assert!(
            about(now.wait.low, 60.1) && about(now.wait.high, 66.1),
            "{now:?}"
        );
        assert!((now.batches_per_s - 9.71).abs() < 0.01, "{now:?}");
        assert!(about(pipeline.row(1).wait.share, 90.8));
        assert!(about(pipeline.row(8).wait.share, 26.2));
        let enough = pipeline.row(11);
        assert!(about(enough.wait.share, 0.0), "{enough:?}");
        assert!((enough.batches_per_s - 26.3).abs() < 0.1, "{enough:?}");
    }

    #[test]
    fn workers_without_a_cpu_bring_nothing() {
        let pipeline = pipeline(100.0, 10.0, 0.8, Some(2.5));
        assert!(about(pipeline.row(2).wait.share, 80.0));
        let third = pipeline.row(3);
        assert!(about(third.wait.share, 75.0), "{third:?}");
        assert_eq!(pipeline.row(9).wait, third.wait);
    }

    #[test]
    fn the_rows_go_from_one_worker_to_one_more_than_helps() {
        let advice = |now, match_step, cpu_allows, advised| WorkerAdvice {
            now,
            match_step,
            cpu_allows,
            advised,
        };
        let small = advice(1, Some(3), None, Some(3));
        assert_eq!(numbers(&small, None), [1, 2, 3, 4]);
        // CPUs for two: the third row shows that it gains almost nothing.
        let held = advice(1, Some(9), Some(2), Some(2));
        assert_eq!(numbers(&held, Some(2.4)), [1, 2, 3, 4]);
        let many = numbers(&advice(48, Some(5), None, None), None);
        assert!(many.len() <= MAX_ROWS, "{many:?}");
        for named in [1, 5, 48, 49] {
            assert!(many.contains(&named), "{named} in {many:?}");
        }
    }
}
