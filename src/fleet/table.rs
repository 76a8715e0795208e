//! The runs as lines of text: one per run, and one per rank of a run that was requested by name.
//!
//! Does no I/O.

use ratatui::text::Line;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error;

use super::report::{FleetRank, FleetReport, RunReport};
use crate::config::Role;
use crate::ui::glyphs::{ASCII, UNICODE};
use crate::ui::line_builder::LineBuilder;
use crate::ui::table::{self, KEPT, TableColumn};
use crate::units::{known, printable, shortened};
use crate::verdict::Cause;

/// Maximum width of a name in columns.
const NAME: usize = 24;

/// A column: its head, whether its cells are left-aligned, and its place in the order in which columns are dropped if
/// not all fit.
type FleetColumn = (&'static str, bool, usize);

const RUNS: [FleetColumn; 12] = [
    ("RUN", true, KEPT),
    ("USER", true, 3),
    ("NODES", false, 4),
    ("RANKS", false, 7),
    ("VERDICT", true, KEPT),
    ("CAUSE", true, 8),
    ("LOST", false, KEPT),
    ("LAST HOUR", true, 2),
    ("RANKS LOST", false, 9),
    ("BATCH/S", false, 5),
    ("SLOWEST RANK", true, 6),
    ("AGE", false, 1),
];
const RANKS: [FleetColumn; 6] = [
    ("RANK", false, KEPT),
    ("NODE", true, KEPT),
    ("WAITS", false, KEPT),
    ("QUEUE", false, KEPT),
    ("GPU", false, KEPT),
    ("", true, KEPT),
];

/// Indices of columns of [`RUNS`].
pub(super) const VERDICT: usize = 4;
pub(super) const LOST: usize = 6;
pub(super) const HISTORY: usize = 7;

pub(super) const NO_RUNS: &str = "no runs: this Prometheus has no pipetop metrics";

/// The columns that fit, and the cells of the head and of each row.
pub(super) struct FleetTable {
    /// Each column with its index in a row.
    columns: Vec<(usize, TableColumn)>,
    pub(super) rows: Vec<Vec<String>>,
}

impl FleetTable {
    pub(super) fn runs(runs: &[RunReport], ascii: bool, room: usize) -> Self {
        Self::new(&RUNS, room, runs.iter().map(|run| cells(run, ascii)))
    }

    pub(super) fn ranks(ranks: &[FleetRank], room: usize) -> Self {
        Self::new(&RANKS, room, ranks.iter().map(rank_cells))
    }

    fn new(columns: &[FleetColumn], room: usize, rows: impl Iterator<Item = Vec<String>>) -> Self {
        let head = columns.iter().map(|(head, ..)| (*head).to_owned());
        let rows: Vec<Vec<String>> = std::iter::once(head.collect()).chain(rows).collect();
        let columns = columns.iter().enumerate().map(|(place, (_, words, turn))| {
            let cells = rows.iter().map(|row| row[place].as_str());
            (TableColumn::fitted(cells, *words, place > 0), *turn)
        });
        let columns = table::fitting(columns.collect(), room);
        Self { columns, rows }
    }

    /// Returns the line of a row; `paint` gives the colour of each cell, by its index.
    pub(super) fn line(
        &self,
        row: &mut LineBuilder<'_>,
        cells: &[String],
        paint: impl Fn(usize) -> Role,
    ) -> Line<'static> {
        for (place, column) in &self.columns {
            column.place(row, paint(*place), &cells[*place]);
        }
        row.line()
    }

    fn text(&self) -> String {
        let lines = self.rows.iter().map(|cells| {
            let columns = self.columns.iter();
            let line: String = columns
                .map(|(place, column)| column.plain(&cells[*place]))
                .collect();
            format!("{}\n", line.trim_end())
        });
        lines.collect()
    }
}

/// Returns the table as printed, including the last line end.
pub(crate) fn text(report: &FleetReport, ascii: bool) -> String {
    let mut out = String::new();
    if report.runs.is_empty() {
        out.extend([NO_RUNS, "\n"]);
    } else {
        out.push_str(&FleetTable::runs(&report.runs, ascii, usize::MAX).text());
    }
    for run in report.runs.iter().filter(|run| !run.all_ranks.is_empty()) {
        out.push('\n');
        out.push_str(&FleetTable::ranks(&run.all_ranks, usize::MAX).text());
    }
    for warning in &report.warnings {
        out.extend(["note: ", &printable(warning), "\n"]);
    }
    out
}

/// Returns the cells of a run.
fn cells(run: &RunReport, ascii: bool) -> Vec<String> {
    let verdict = match &run.verdict {
        // The nodes do not all have the same verdict.
        Some(kind) if run.agree < run.nodes => {
            format!("{} {}/{}", short(&words(kind)), run.agree, run.nodes)
        }
        Some(kind) => short(&words(kind)),
        None => "n/a".to_owned(),
    };
    let slowest = run.slowest.as_ref().filter(|rank| rank.straggler);
    vec![
        short(&run.run),
        run.user.as_deref().map_or_else(|| "-".to_owned(), short),
        run.nodes.to_string(),
        run.ranks.to_string(),
        verdict,
        run.cause.as_deref().map(cause_words).unwrap_or_default(),
        share(run.lost_share),
        history(&run.history, ascii),
        figure(run.ranks_lost),
        figure(run.batches_per_s),
        slowest.map_or_else(String::new, |rank| {
            format!("{} on {}", short(&rank.rank), short(rank.host()))
        }),
        known(run.age_seconds.map(|age| format!("{age:.0} s"))),
    ]
}

fn rank_cells(rank: &FleetRank) -> Vec<String> {
    let remark = if rank.straggler {
        "the others wait for it"
    } else {
        ""
    };
    vec![
        short(&rank.rank),
        short(rank.host()),
        share(rank.wait_share),
        share(rank.queue_occupancy),
        share(rank.gpu_busy_share),
        remark.to_owned(),
    ]
}

/// Returns the kind of a verdict as the other screens write it.
fn words(kind: &str) -> String {
    kind.to_uppercase().replace("-UP", " UP")
}

/// Returns the words for a cause as the other screens write it; the name itself if only another version of pipetop knows
/// it.
fn cause_words(name: &str) -> String {
    let known: Result<_, Error> = Cause::deserialize(name.into_deserializer());
    known.map_or_else(|_| short(name), |cause| cause.words().to_owned())
}

fn share(share: Option<f64>) -> String {
    known(share.map(|share| format!("{:.0} %", 100.0 * share)))
}

fn figure(value: Option<f64>) -> String {
    known(value.map(|value| format!("{value:.1}")))
}

/// Shortens a name, which may contain anything.
fn short(name: &str) -> String {
    shortened(&printable(name), NAME, "..")
}

/// Returns a bar for each value; a space for an unknown one, `n/a` if all are unknown.
fn history(values: &[Option<f64>], ascii: bool) -> String {
    if values.iter().all(Option::is_none) {
        return known(None::<f64>);
    }
    let glyphs = if ascii { &ASCII } else { &UNICODE };
    let bar = |value: &Option<f64>| {
        let Some(value) = value else { return " " };
        let reached = (1..8_u8).filter(|step| f64::from(*step) <= 8.0 * value);
        glyphs.levels[reached.count()]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> FleetReport {
        let slow = RunReport {
            run: "slurm-4711".to_owned(),
            user: Some("anna".to_owned()),
            nodes: 4,
            ranks: 32,
            verdict: Some("data-bound".to_owned()),
            agree: 3,
            cause: Some("cpu-preprocess".to_owned()),
            lost_share: Some(0.41),
            history: (0..16)
                .map(|at| (at > 2).then_some(f64::from(at) / 15.0))
                .collect(),
            ranks_lost: Some(13.1),
            batches_per_s: Some(448.0),
            slowest: Some(FleetRank {
                rank: "17".to_owned(),
                instance: "gpu-03:9977".to_owned(),
                wait_share: Some(0.7),
                straggler: true,
                ..FleetRank::default()
            }),
            age_seconds: Some(4.0),
            all_ranks: vec![],
        };
        let blind = RunReport {
            run: "a\u{1b}[2Jb".to_owned() + &"x".repeat(40),
            nodes: 1,
            ranks: 1,
            ..RunReport::default()
        };
        FleetReport {
            runs: vec![slow, blind],
            warnings: vec!["a store is away".to_owned()],
        }
    }

    #[test]
    fn columns_are_aligned_and_unknown_values_are_marked() {
        insta::assert_snapshot!(text(&report(), false));
    }

    #[test]
    fn in_ascii_no_other_character_is_printed() {
        let mut report = report();
        report.runs.truncate(1);
        assert!(text(&report, true).is_ascii());
    }

    #[test]
    fn ranks_of_a_run_follow_it() {
        let mut report = report();
        report.runs.truncate(1);
        report.warnings.clear();
        let rank = |rank: &str, share: f64, straggler: bool| FleetRank {
            rank: rank.to_owned(),
            instance: "[fe80::1]:9977".to_owned(),
            wait_share: Some(share),
            queue_occupancy: (!straggler).then_some(0.75),
            gpu_busy_share: Some(1.0 - share),
            straggler,
        };
        report.runs[0].all_ranks = vec![rank("17", 0.7, true), rank("2", 0.4, false)];
        insta::assert_snapshot!(text(&report, false));
    }

    #[test]
    fn a_cause_is_in_words_unless_it_is_not_known() {
        let cause = |name: &str| {
            let mut report = report();
            report.runs.truncate(1);
            report.runs[0].cause = Some(name.to_owned());
            text(&report, true)
        };
        assert!(cause("cpu-oversubscribed").contains("  too many workers for the CPUs  "));
        assert!(cause("of-a-newer-version").contains("  of-a-newer-version  "));
        assert!(!cause("a\u{1b}[2Jb").contains('\u{1b}'));
    }

    #[test]
    fn no_runs_are_no_table() {
        let text = text(&FleetReport::default(), false);
        assert_eq!(text, "no runs: this Prometheus has no pipetop metrics\n");
    }
}
