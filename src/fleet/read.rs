//! Combines the answers to the queries into one report.
//!
//! Does not depend on how a query is sent to the server.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Answer, Series};
use super::queries::{FleetFigure, POINTS, STEP, queries};
use super::report::{FleetRank, FleetReport, RunReport};
use crate::error::Hinted;
use crate::units::whole;

/// A rank holds up the others if its wait share exceeds that of the median rank by more than this. The alert of
/// `pipetop rules` uses the same value.
const STRAGGLER: f64 = 0.1;

/// Upper limit of counts, rates and durations: a greater value cannot come from pipetop.
const MOST: f64 = 1e9;

/// Reads all runs, or only `run`, from `server`, which sends a query and returns its series.
///
/// # Errors
/// Returns an error if one of the queries has no answer.
pub(super) fn read(
    server: impl Fn(&str) -> Result<Answer, Hinted> + Sync,
    run: Option<&str>,
) -> Result<FleetReport, Hinted> {
    let (figure, queries): (Vec<FleetFigure>, Vec<String>) = queries(run).into_iter().unzip();
    let mut warnings = BTreeSet::new();
    let mut answers = Answers::default();
    for (figure, answer) in figure.into_iter().zip(run_parallel(&server, &queries)?) {
        let (all, warned) = answer?;
        warnings.extend(warned);
        for series in all {
            let of_run = answers.0.entry((figure, series.label("run").to_owned()));
            of_run.or_default().push(series);
        }
    }
    let mut report = FleetReport {
        runs: answers.runs(run.is_some()),
        warnings: warnings.into_iter().collect(),
    };
    // Compare the rounded figures that are shown, so that runs that look equal keep their order.
    let lost = |run: &RunReport| run.ranks_lost.map_or(-1.0, |lost| (10.0 * lost).round());
    report.runs.sort_by(|a, b| {
        let order = lost(b).total_cmp(&lost(a));
        order.then_with(|| a.run.cmp(&b.run))
    });
    Ok(report)
}

/// Returns the answers in the order of the queries. The queries are sent in parallel: a distant server takes as long
/// for many as for one.
fn run_parallel(
    server: &(impl Fn(&str) -> Result<Answer, Hinted> + Sync),
    queries: &[String],
) -> Result<Vec<Result<Answer, Hinted>>, Hinted> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = queries
            .iter()
            .map(|query| {
                let thread = std::thread::Builder::new().name("query".into());
                thread.spawn_scoped(scope, move || server(query))
            })
            .collect();
        let answers = asked.into_iter().map(|thread| {
            let thread = thread.map_err(|error| Hinted::no_thread(&error))?;
            Ok(thread
                .join()
                .unwrap_or_else(|_| Err(Hinted::new("a query failed", "this is a bug in pipetop"))))
        });
        answers.collect()
    })
}

/// The answers, by figure and run.
#[derive(Debug, Default)]
struct Answers(BTreeMap<(FleetFigure, String), Vec<Series>>);

/// Converts a count; 0 if it is unknown or impossible.
fn count(value: Option<f64>) -> u64 {
    value
        .and_then(amount)
        .map_or(0, |value| whole(value) as u64)
}

/// Returns a share between 0 and 1; `None` if the value is too far outside to be a share.
fn share(value: f64) -> Option<f64> {
    // The rates of two counters may differ in the last digits. Adding 0.0 turns -0 into 0.
    (-0.01..=1.01)
        .contains(&value)
        .then_some(value.clamp(0.0, 1.0) + 0.0)
}

/// Returns a count, a rate or a duration; `None` if it is negative or impossibly large.
fn amount(value: f64) -> Option<f64> {
    (0.0..=MOST).contains(&value).then_some(value)
}

/// Returns the labels that identify a rank within a run.
fn place(series: &Series) -> [&str; 2] {
    ["rank", "instance"].map(|name| series.label(name))
}

impl Answers {
    /// Returns the series of a figure for this run.
    fn of(&self, figure: FleetFigure, run: &str) -> &[Series] {
        let key = (figure, run.to_owned());
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a figure with one series per run.
    fn value(&self, figure: FleetFigure, run: &str) -> Option<f64> {
        self.of(figure, run).first().map(Series::value)
    }

    /// Returns the series of a run with the greatest value.
    fn max_series(&self, figure: FleetFigure, run: &str) -> Option<&Series> {
        let series = self.of(figure, run).iter();
        series.max_by(|a, b| a.value().total_cmp(&b.value()))
    }

    fn runs(&self, with_ranks: bool) -> Vec<RunReport> {
        let known = self
            .0
            .keys()
            .filter(|(figure, _)| *figure == FleetFigure::Users);
        known.map(|(_, run)| self.run(run, with_ranks)).collect()
    }

    fn run(&self, run: &str, with_ranks: bool) -> RunReport {
        let users = self.of(FleetFigure::Users, run).iter();
        let user = users.map(|info| info.label("user")).max();
        let kind = self.max_series(FleetFigure::Kinds, run);
        let cause = self.max_series(FleetFigure::Causes, run);
        let cause = cause.filter(|cause| cause.value() > 0.0 && cause.label("cause") != "unknown");
        let lost_share = self.value(FleetFigure::Lost, run).and_then(share);
        let all = count(self.value(FleetFigure::Ranks, run));
        let ranks = self.ranks_of(run);
        RunReport {
            run: run.to_owned(),
            user: user.filter(|user| !user.is_empty()).map(str::to_owned),
            nodes: count(self.value(FleetFigure::Nodes, run)),
            ranks: all,
            verdict: kind.map(|kind| kind.label("kind").to_owned()),
            agree: count(kind.map(Series::value)),
            cause: cause.map(|cause| cause.label("cause").to_owned()),
            lost_share,
            history: self.history_of(run),
            ranks_lost: lost_share.map(|share| share * all as f64),
            batches_per_s: self.value(FleetFigure::Batches, run).and_then(amount),
            slowest: ranks.first().cloned(),
            // The clocks of two machines may differ, so an age may be negative.
            age_seconds: self
                .value(FleetFigure::Ages, run)
                .and_then(|age| amount(age.max(0.0))),
            all_ranks: if with_ranks { ranks } else { vec![] },
        }
    }

    /// Returns the ranks, the one that waits longest first.
    fn ranks_of(&self, run: &str) -> Vec<FleetRank> {
        let middle = self.value(FleetFigure::MiddleWait, run).and_then(share);
        let mut series: Vec<&Series> = self.of(FleetFigure::Waits, run).iter().collect();
        series.sort_by(|a, b| {
            let order = b.value().total_cmp(&a.value());
            order.then_with(|| a.label("rank").cmp(b.label("rank")))
        });
        let by_place = |figure: FleetFigure| -> BTreeMap<_, _> {
            let series = self.of(figure, run).iter();
            series
                .map(|series| (place(series), series.value()))
                .collect()
        };
        let queues = by_place(FleetFigure::Queues);
        let gpus = by_place(FleetFigure::Gpus);
        let of =
            |figures: &BTreeMap<_, _>, rank| figures.get(&place(rank)).copied().and_then(share);
        let ranks = series.into_iter().map(|rank| {
            let wait_share = share(rank.value());
            let behind = wait_share.zip(middle).map(|(wait, middle)| wait - middle);
            FleetRank {
                rank: rank.label("rank").to_owned(),
                instance: rank.label("instance").to_owned(),
                wait_share,
                queue_occupancy: of(&queues, rank),
                gpu_busy_share: of(&gpus, rank),
                straggler: behind.is_some_and(|behind| behind > STRAGGLER),
            }
        });
        ranks.collect()
    }

    /// Returns the lost share at each point of the history, oldest first. The server leaves out the points without a
    /// value.
    fn history_of(&self, run: &str) -> Vec<Option<f64>> {
        let Some(line) = self.of(FleetFigure::History, run).first() else {
            return vec![];
        };
        let all = self
            .0
            .iter()
            .filter(|((figure, _), _)| *figure == FleetFigure::History);
        let newest = all
            .flat_map(|(_, lines)| lines)
            .filter_map(|line| line.points.last());
        let newest = newest.map(|(at, _)| *at).fold(f64::MIN, f64::max);
        let step = f64::from(STEP);
        let at = |back: u32| {
            let due = newest - f64::from(back) * step;
            let mut points = line.points.iter();
            let point = points.find(|(at, _)| (at - due).abs() < step / 2.0);
            point.and_then(|(_, value)| share(*value))
        };
        (0..POINTS).rev().map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Answers by the text of the query, and records the queries.
    #[derive(Default)]
    struct Scripted {
        asked: Mutex<Vec<String>>,
    }

    fn series(labels: &[(&str, &str)], points: &[(f64, f64)]) -> Series {
        let labels = labels.iter();
        let labels = labels.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Series {
            labels: labels.collect(),
            points: points.to_vec(),
        }
    }

    fn value(labels: &[(&str, &str)], value: f64) -> Series {
        series(labels, &[(3600.0, value)])
    }

    impl Scripted {
        fn series(&self, query: &str) -> Answer {
            self.asked.lock().unwrap().push(query.to_owned());
            let both = |slow: f64, well: f64| {
                vec![
                    value(&[("run", "slow")], slow),
                    value(&[("run", "well")], well),
                ]
            };
            let found = match query {
                _ if query.starts_with("max by (run, user)") => vec![
                    value(&[("run", "well"), ("user", "cleo")], 1.0),
                    value(&[("run", "slow"), ("user", "anna")], 1.0),
                    value(&[("run", "blind")], 1.0),
                ],
                _ if query.starts_with("count by (run) (count by (run, instance)") => {
                    both(4.0, 2.0)
                }
                _ if query.starts_with("count by (run) (count by (run, rank)") => both(32.0, 16.0),
                _ if query.starts_with("count by (run, kind)") => vec![
                    value(&[("run", "slow"), ("kind", "data-bound")], 3.0),
                    value(&[("run", "slow"), ("kind", "balanced")], 1.0),
                    value(&[("run", "well"), ("kind", "compute-bound")], 2.0),
                ],
                _ if query.contains("loader_queue") => {
                    let there = [("run", "slow"), ("rank", "17"), ("instance", "gpu-03:9977")];
                    vec![value(&there, 0.25)]
                }
                _ if query.contains("gpu_busy") => {
                    let there = [("run", "slow"), ("rank", "2"), ("instance", "gpu-00:9977")];
                    vec![value(&there, 0.6)]
                }
                _ if query.contains("quantile") => both(0.4, 0.01),
                _ if query.contains("run, rank, instance") => vec![
                    value(
                        &[("run", "slow"), ("rank", "17"), ("instance", "gpu-03:9977")],
                        0.7,
                    ),
                    value(
                        &[("run", "slow"), ("rank", "2"), ("instance", "gpu-00:9977")],
                        0.41,
                    ),
                ],
                _ if query.contains("run, cause") => vec![
                    value(&[("run", "slow"), ("cause", "cpu-preprocess")], 12.0),
                    value(&[("run", "slow"), ("cause", "unknown")], 1.1),
                    value(&[("run", "well"), ("cause", "unknown")], 0.2),
                ],
                _ if query.contains("batches") => both(448.0, 221.0),
                _ if query.contains("time()") => both(4.0, 3.0),
                _ if query.ends_with("[3600s:225s]") => {
                    let points = [(2925.0, 0.1), (3375.0, 0.4), (3600.0, 0.41)];
                    vec![series(&[("run", "slow")], &points)]
                }
                _ => both(0.41, 0.01),
            };
            (found, vec!["a store is away".to_owned()])
        }
    }

    #[test]
    fn the_run_that_loses_most_comes_first() {
        let server = Scripted::default();
        let report = read(|query| Ok(server.series(query)), None).unwrap();
        let names: Vec<_> = report.runs.iter().map(|run| run.run.as_str()).collect();
        assert_eq!(names, ["slow", "well", "blind"]);
        assert_eq!(report.warnings, ["a store is away"]);
        let slow = &report.runs[0];
        assert_eq!((slow.nodes, slow.ranks, slow.agree), (4, 32, 3));
        assert_eq!(slow.verdict.as_deref(), Some("data-bound"));
        assert_eq!(slow.cause.as_deref(), Some("cpu-preprocess"));
        assert!((slow.ranks_lost.unwrap() - 0.41 * 32.0).abs() < 1e-9);
        let rank = slow.slowest.as_ref().unwrap();
        assert_eq!((rank.rank.as_str(), rank.straggler), ("17", true));
        assert!(slow.all_ranks.is_empty());
        assert_eq!(slow.history.len(), 16);
        assert_eq!(
            slow.history[11..],
            [None, Some(0.1), None, Some(0.4), Some(0.41)][..]
        );
        // A run of which only the name is known.
        let blind = &report.runs[2];
        assert_eq!(
            (blind.lost_share, blind.ranks_lost, blind.slowest.clone()),
            (None, None, None)
        );
    }

    #[test]
    fn a_run_that_is_named_has_all_of_its_ranks() {
        let server = Scripted::default();
        let report = read(|query| Ok(server.series(query)), Some("sl\"ow")).unwrap();
        let asked = server.asked.into_inner().unwrap();
        let all = asked.iter().all(|query| query.contains(r#"run="sl\"ow""#));
        assert!(all, "{asked:#?}");
        let ranks = &report.runs[0].all_ranks;
        let stragglers: Vec<_> = ranks.iter().map(|rank| rank.straggler).collect();
        assert_eq!(stragglers, [true, false]);
        let queues: Vec<_> = ranks.iter().map(|rank| rank.queue_occupancy).collect();
        assert_eq!(queues, [Some(0.25), None]);
        let gpus: Vec<_> = ranks.iter().map(|rank| rank.gpu_busy_share).collect();
        assert_eq!(gpus, [None, Some(0.6)]);
    }

    /// Answers each query with this value for one rank.
    fn always(value: f64) -> impl Fn(&str) -> Result<Answer, Hinted> {
        move |_| {
            let labels = [("run", "a"), ("rank", "1"), ("cause", "disk")];
            Ok((vec![series(&labels, &[(3600.0, value)])], vec![]))
        }
    }

    #[test]
    fn figures_that_cannot_be_are_unknown() {
        for value in [1e300, -5.0, 1e12] {
            let report = read(always(value), Some("a")).unwrap();
            let run = &report.runs[0];
            let rank = &run.all_ranks[0];
            let shares = [
                run.lost_share,
                run.history[15],
                run.ranks_lost,
                run.batches_per_s,
                rank.wait_share,
                rank.queue_occupancy,
                rank.gpu_busy_share,
            ];
            assert_eq!(shares, [None; 7], "{value}");
            assert_eq!((run.nodes, run.ranks, run.agree), (0, 0, 0));
            // A clock that is ahead gives a negative age, which becomes 0.
            assert_eq!(run.age_seconds, (value < 0.0).then_some(0.0));
            assert!(!rank.straggler);
        }
        // The rates of two counters.
        let report = read(always(1.000_001), Some("a")).unwrap();
        assert_eq!(report.runs[0].lost_share, Some(1.0));
    }
}
