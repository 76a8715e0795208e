//! Which queries bring what is known of the runs, and how their answers become one report.
//!
//! Knows the metrics of `pipetop serve` by name; knows nothing of how a query reaches the server.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Line, Value};
use super::report::{FleetRank, FleetReport, RunReport};
use crate::error::Hinted;

/// Over which rates are taken: two scrapes lie in it where Prometheus scrapes once a minute.
const RATES: &str = "2m";
/// Seconds of the history, points in it, and seconds from one to the next.
const HISTORY: u32 = 3600;
const POINTS: u32 = 16;
const STEP: u32 = HISTORY / POINTS;
/// A rank that waits by so much longer than the middle one holds up the others. As the alert of `pipetop rules` has it.
const STRAGGLER: f64 = 0.1;

/// What asks a server.
pub(super) trait Server {
    /// The series of a query.
    ///
    /// # Errors
    /// Where there is no such answer.
    fn now(&mut self, query: &str) -> Result<Vec<Value>, Hinted>;

    /// The same of a query whose series are over a time.
    ///
    /// # Errors
    /// Where there is no such answer.
    fn over(&mut self, query: &str) -> Result<Vec<Line>, Hinted>;

    /// What the server said could not be read, since the last call.
    fn warnings(&mut self) -> Vec<String>;
}

/// What the server knows of all runs, or of the one that is named.
///
/// # Errors
/// Where one of the queries has no answer.
pub(super) fn read(server: &mut impl Server, run: Option<&str>) -> Result<FleetReport, Hinted> {
    let of = run.map_or_else(String::new, |run| format!("run={}", quoted(run)));
    let rate = |metric: &str, by: &str, matching: &str| {
        let matching = [of.as_str(), matching].join(",");
        let matching = matching.trim_matches(',');
        format!("sum by ({by}) (rate({metric}{{{matching}}}[{RATES}]))")
    };
    let waiting = r#"state="data_wait""#;
    let share = |by: &str| {
        let waited = rate("pipetop_rank_seconds_total", by, waiting);
        format!("{waited} / {}", rate("pipetop_rank_seconds_total", by, ""))
    };
    let lost = format!(
        "{} / {}",
        rate("pipetop_rank_stall_seconds_total", "run", ""),
        rate("pipetop_rank_seconds_total", "run", "")
    );
    let place = "run, rank, instance";
    let slowest = match run {
        Some(_) => share(place),
        // Of thousands of ranks, the one that matters of each run.
        None => format!("topk by (run) (1, {})", share(place)),
    };
    let answers = Answers {
        infos: server.now(&format!("max by (run, user) (pipetop_run_info{{{of}}})"))?,
        nodes: server.now(&format!(
            "count by (run) (count by (run, instance) (pipetop_run_info{{{of}}}))"
        ))?,
        ranks: server.now(&format!(
            "count by (run) (count by (run, rank) (pipetop_rank_info{{{of}}}))"
        ))?,
        kinds: server.now(&format!(
            "count by (run, kind) (pipetop_verdict_state{{{of}}} == 1)"
        ))?,
        lost: server.now(&lost)?,
        causes: server.now(&rate("pipetop_rank_stall_seconds_total", "run, cause", ""))?,
        batches: server.now(&rate("pipetop_rank_batches_total", "run", ""))?,
        slowest: server.now(&slowest)?,
        middle: server.now(&format!("quantile by (run) (0.5, {})", share(place)))?,
        ages: server.now(&format!(
            "max by (run) (pipetop_run_info{{{of}}} * on (instance) group_left () \
             (time() - pipetop_last_sample_timestamp_seconds))"
        ))?,
        history: server.over(&format!("({lost})[{HISTORY}s:{STEP}s]"))?,
    };
    let mut report = FleetReport {
        runs: answers.runs(run.is_some()),
        warnings: server.warnings(),
    };
    // As it is shown: what is equal there keeps its place.
    let lost = |run: &RunReport| run.gpus_lost.map_or(-1.0, |lost| (10.0 * lost).round());
    report.runs.sort_by(|a, b| {
        let order = lost(b).total_cmp(&lost(a));
        order.then_with(|| a.run.cmp(&b.run))
    });
    Ok(report)
}

struct Answers {
    infos: Vec<Value>,
    nodes: Vec<Value>,
    ranks: Vec<Value>,
    kinds: Vec<Value>,
    lost: Vec<Value>,
    causes: Vec<Value>,
    batches: Vec<Value>,
    slowest: Vec<Value>,
    middle: Vec<Value>,
    ages: Vec<Value>,
    history: Vec<Line>,
}

/// The value of a series of this run.
fn of(values: &[Value], run: &str) -> Option<f64> {
    let mut values = values.iter();
    let found = values.find(|value| value.labels.get("run").is_some_and(|it| it == run));
    found.map(|value| value.value)
}

/// The label of the greatest of a run's series, and its value.
fn greatest(values: &[Value], run: &str, label: &str) -> Option<(String, f64)> {
    let of_run = |value: &&Value| value.labels.get("run").is_some_and(|it| it == run);
    let values = values.iter().filter(of_run);
    let greatest = values.max_by(|a, b| a.value.total_cmp(&b.value))?;
    let label = greatest.labels.get(label)?.clone();
    Some((label, greatest.value))
}

/// A number of things.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is counted is a small whole number"
)]
fn count(value: Option<f64>) -> u64 {
    value.map_or(0, |value| value.max(0.0) as u64)
}

impl Answers {
    fn runs(&self, with_ranks: bool) -> Vec<RunReport> {
        let names = self.infos.iter().filter_map(|info| info.labels.get("run"));
        let names: BTreeSet<&String> = names.collect();
        names
            .into_iter()
            .map(|run| self.run(run, with_ranks))
            .collect()
    }

    fn run(&self, run: &str, with_ranks: bool) -> RunReport {
        let mut infos = self.infos.iter();
        let users = infos.find_map(|info| {
            let labels = &info.labels;
            (labels.get("run").is_some_and(|it| it == run)).then(|| labels.get("user"))
        });
        let kind = greatest(&self.kinds, run, "kind");
        let cause = greatest(&self.causes, run, "cause");
        let cause = cause.filter(|(cause, rate)| *rate > 0.0 && cause != "unknown");
        let mut causes = self.causes.iter();
        let known = causes.any(|cause| cause.labels.get("run").is_some_and(|it| it == run));
        let rates = self.causes.iter().filter(|cause| {
            let run_of = cause.labels.get("run");
            run_of.is_some_and(|it| it == run)
        });
        let ranks = self.slowest_of(run);
        let lost_share = of(&self.lost, run);
        RunReport {
            run: run.to_owned(),
            user: users.flatten().cloned(),
            nodes: count(of(&self.nodes, run)),
            ranks: count(of(&self.ranks, run)),
            agree: count(kind.as_ref().map(|(_, nodes)| *nodes)),
            verdict: kind.map(|(kind, _)| kind),
            cause: cause.map(|(cause, _)| cause),
            lost_share,
            history: self.history_of(run),
            gpus_lost: known.then(|| rates.map(|rate| rate.value).sum()),
            batches_per_s: of(&self.batches, run),
            slowest: ranks.first().cloned(),
            age_seconds: of(&self.ages, run),
            all_ranks: if with_ranks { ranks } else { vec![] },
        }
    }

    /// The one that waits longest first.
    fn slowest_of(&self, run: &str) -> Vec<FleetRank> {
        let middle = of(&self.middle, run);
        let text = |labels: &BTreeMap<String, String>, name: &str| {
            labels.get(name).cloned().unwrap_or_default()
        };
        let of_run = |value: &&Value| value.labels.get("run").is_some_and(|it| it == run);
        let ranks = self.slowest.iter().filter(of_run).map(|value| FleetRank {
            rank: text(&value.labels, "rank"),
            instance: text(&value.labels, "instance"),
            wait_share: Some(value.value),
            straggler: middle.is_some_and(|middle| value.value - middle > STRAGGLER),
        });
        let mut ranks: Vec<FleetRank> = ranks.collect();
        ranks.sort_by(|a, b| {
            let share = |rank: &FleetRank| rank.wait_share.unwrap_or(-1.0);
            share(b)
                .total_cmp(&share(a))
                .then_with(|| a.rank.cmp(&b.rank))
        });
        ranks
    }

    /// Where a server has no value at a time, it leaves the time out.
    fn history_of(&self, run: &str) -> Vec<Option<f64>> {
        let mut lines = self.history.iter();
        let Some(line) = lines.find(|line| line.labels.get("run").is_some_and(|it| it == run))
        else {
            return vec![];
        };
        let newest = self.history.iter().filter_map(|line| line.values.last());
        let newest = newest.map(|(at, _)| *at).fold(f64::MIN, f64::max);
        let step = f64::from(STEP);
        let at = |back: u32| {
            let due = newest - f64::from(back) * step;
            let mut values = line.values.iter();
            let value = values.find(|(at, _)| (at - due).abs() < step / 2.0);
            value.map(|(_, value)| *value)
        };
        (0..POINTS).rev().map(at).collect()
    }
}

/// A string in a query.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers by what is in the query, and keeps the queries.
    #[derive(Default)]
    struct Scripted {
        asked: Vec<String>,
    }

    fn value(labels: &[(&str, &str)], value: f64) -> Value {
        let labels = labels.iter();
        Value {
            labels: labels
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect(),
            value,
        }
    }

    impl Server for Scripted {
        fn now(&mut self, query: &str) -> Result<Vec<Value>, Hinted> {
            self.asked.push(query.to_owned());
            let both = |slow: f64, well: f64| {
                vec![
                    value(&[("run", "slow")], slow),
                    value(&[("run", "well")], well),
                ]
            };
            Ok(match query {
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
                _ => both(0.41, 0.01),
            })
        }

        fn over(&mut self, query: &str) -> Result<Vec<Line>, Hinted> {
            assert!(query.ends_with("[3600s:225s]"), "{query}");
            let values = [(2925.0, 0.1), (3375.0, 0.4), (3600.0, 0.41)];
            Ok(vec![Line {
                labels: value(&[("run", "slow")], 0.0).labels,
                values: values.to_vec(),
            }])
        }

        fn warnings(&mut self) -> Vec<String> {
            vec!["a store is away".to_owned()]
        }
    }

    #[test]
    fn the_run_that_loses_most_comes_first() {
        let report = read(&mut Scripted::default(), None).unwrap();
        let names: Vec<_> = report.runs.iter().map(|run| run.run.as_str()).collect();
        assert_eq!(names, ["slow", "well", "blind"]);
        assert_eq!(report.warnings, ["a store is away"]);
        let slow = &report.runs[0];
        assert_eq!((slow.nodes, slow.ranks, slow.agree), (4, 32, 3));
        assert_eq!(slow.verdict.as_deref(), Some("data-bound"));
        assert_eq!(slow.cause.as_deref(), Some("cpu-preprocess"));
        assert!((slow.gpus_lost.unwrap() - 13.1).abs() < 1e-9);
        let rank = slow.slowest.as_ref().unwrap();
        assert_eq!((rank.rank.as_str(), rank.straggler), ("17", true));
        assert!(slow.all_ranks.is_empty());
        assert_eq!(slow.history.len(), 16);
        assert_eq!(
            slow.history[11..],
            [None, Some(0.1), None, Some(0.4), Some(0.41)][..]
        );
        // Of which nothing but its name is known.
        let blind = &report.runs[2];
        assert_eq!(
            (blind.lost_share, blind.gpus_lost, blind.slowest.clone()),
            (None, None, None)
        );
    }

    #[test]
    fn a_run_that_is_named_has_all_of_its_ranks() {
        let mut server = Scripted::default();
        let report = read(&mut server, Some("sl\"ow")).unwrap();
        let all = server
            .asked
            .iter()
            .all(|query| query.contains(r#"run="sl\"ow""#));
        assert!(all, "{:#?}", server.asked);
        let ranks = &report.runs[0].all_ranks;
        let stragglers: Vec<_> = ranks.iter().map(|rank| rank.straggler).collect();
        assert_eq!(stragglers, [true, false]);
    }
}
