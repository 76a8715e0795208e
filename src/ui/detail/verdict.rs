//! The whole verdict: the figures behind it, every fact with its threshold, what is unknown and how to find it out,
//! what to do, and the effect of other numbers of workers.

use ratatui::text::Line;

use super::figures::{heading, labelled};
use crate::config::Role::{Compute, Dim, Focus, Key, Text, Title, Unknown, Wait};
use crate::ui::panel::{Content, side_by_side, stacked};
use crate::ui::table::{self, TableColumn};
use crate::ui::{View, format};
use crate::units::Share;
use crate::verdict::{Evidence, Expected, Interval, Verdict};

/// Cells of the labels of the figures.
const LABEL: usize = 11;
/// Cells of a value and its threshold.
const FIGURES: usize = 18;
/// Least width at which the table is beside the rest.
const WIDE: u16 = 110;
/// Maximum width in use: if figures were further from their labels, the eye would slip into another line.
const MAX_WIDTH: u16 = 150;
/// Cells of the table if it is beside the rest.
const TABLE: u16 = 48;

pub(in crate::ui) fn content(view: &View<'_>, width: u16) -> Content {
    let Some(verdict) = view.verdict else {
        return Content::new(
            "verdict",
            "",
            labelled(view, width, 0, "", "no verdict yet"),
        );
    };
    let remark = format!("last {}", format::span(verdict.seconds));
    let lines = if width < WIDE {
        let mut lines = reasons(view, verdict, width);
        lines.extend(table(view, verdict, width));
        stacked([lines, missing(view, verdict, width)])
    } else {
        let width = width.min(MAX_WIDTH);
        let left = reasons(view, verdict, width - TABLE - 2);
        let both = side_by_side(view, width, &left, &table(view, verdict, TABLE), TABLE);
        stacked([both, missing(view, verdict, width)])
    };
    Content::new("verdict", &remark, lines)
}

/// Returns what was found, what to do about it, and the evidence for and against it.
fn reasons(view: &View<'_>, verdict: &Verdict, width: u16) -> Vec<Line<'static>> {
    let mut lines = figures(view, verdict, width);
    if !verdict.advice.is_empty() {
        lines.push(Line::default());
        lines.push(heading(view, width, "WHAT TO DO"));
        for (place, text) in verdict.advice.iter().enumerate() {
            let number = (place + 1).to_string();
            lines.extend(labelled(view, width, 3, &number, text));
        }
    }
    for (name, supports) in [("EVIDENCE FOR IT", true), ("EVIDENCE AGAINST IT", false)] {
        let facts = verdict.evidence.iter();
        let facts: Vec<_> = facts.filter(|fact| fact.supports == supports).collect();
        if facts.is_empty() {
            continue;
        }
        lines.push(Line::default());
        let mut row = view.row(width);
        row.text(Title, name);
        row.at_end(&[(Dim, "value"), (Dim, "  threshold")]);
        lines.push(row.line());
        lines.extend(
            facts
                .into_iter()
                .flat_map(|fact| self::fact(view, fact, width)),
        );
    }
    lines
}

fn figures(view: &View<'_>, verdict: &Verdict, width: u16) -> Vec<Line<'static>> {
    let between = |interval: Interval| {
        let (low, high) = (interval.low.percent(), interval.high.percent());
        format!("{} of the time ({low:.0}-{high:.0} %)", interval.share)
    };
    let batches = verdict.batches.map_or_else(
        || "batches not counted".to_owned(),
        |batches| format!("{batches} batches"),
    );
    let free = verdict.headspace.map(|space| {
        let times = match (space.step_ms_now, space.step_ms_free) {
            (Some(now), Some(free)) => format!(
                ": {} per batch now, {} with instant loading",
                format::millis(Some(now)),
                format::millis(Some(free))
            ),
            _ => String::new(),
        };
        format!("{:.1}x faster{times}", space.speedup_max)
    });
    let limits = verdict.workers.map(|workers| {
        let needs = workers.match_step.map(|n| format!("the step needs {n}"));
        // `None` if the workers use almost no CPU: the CPUs do not limit them.
        let allow = workers.cpu_allows.map(|n| format!("the CPUs allow {n}"));
        let known = [Some(format!("{} now", workers.now)), needs, allow];
        known.into_iter().flatten().collect::<Vec<_>>().join("; ")
    });
    // If the driver shows no GPU, the verdict rests on the device that the job reports, which may be simulated.
    let reported = view.device().map(|device| device.name.as_deref());
    let reported = reported.or(view.gpus().is_empty().then_some(None));
    let idle = verdict.gpu_idle.map(|idle| format!("{idle} of the time"));
    let idle = match (reported, idle) {
        (Some(name), Some(idle)) => {
            let name = name.unwrap_or("a device");
            ("device", Some(format!("{name}, idle {idle}")))
        }
        (_, idle) => ("GPU idle", idle),
    };
    let figures = [
        ("lost", verdict.stall.map(between)),
        ("waits", verdict.wait.map(between)),
        idle,
        (
            "rests on",
            Some(format!("{batches} in {}", format::span(verdict.seconds))),
        ),
        ("sure", Some(verdict.confidence.to_string())),
        ("at most", free),
        ("workers", limits),
        (
            "pattern",
            verdict
                .period_batches
                .map(|period| format!("a wait every {period} batches")),
        ),
    ];
    let known = figures
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?)));
    known
        .flat_map(|(label, text)| labelled(view, width, LABEL, label, &text))
        .collect()
}

/// Returns a fact in words, with its value and its threshold at the right edge.
fn fact(view: &View<'_>, fact: &Evidence, width: u16) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(2 + FIGURES);
    let parts = format::wrap(&fact.text, room);
    let line = |(place, part): (usize, &String)| {
        let mut row = view.row(width);
        row.space(2).sentence(Text, part);
        if let (0, Some(threshold)) = (place, fact.threshold) {
            row.to(2 + room);
            row.right(Text, &Share(fact.value).to_string(), FIGURES - 11);
            row.right(Dim, &Share(threshold).to_string(), 11);
        }
        row.line()
    };
    parts.iter().enumerate().map(line).collect()
}

/// Returns what could not be observed, and how to change that.
fn missing(view: &View<'_>, verdict: &Verdict, width: u16) -> Vec<Line<'static>> {
    if verdict.missing.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading(view, width, "NOT AVAILABLE")];
    for missing in &verdict.missing {
        lines.extend(labelled(view, width, LABEL, &missing.id, &missing.why));
        if !missing.hint.is_empty() {
            lines.extend(labelled(view, width, LABEL, "", &missing.hint));
        }
    }
    lines
}

/// Returns a table of worker counts and the wait expected with each.
fn table(view: &View<'_>, verdict: &Verdict, width: u16) -> Vec<Line<'static>> {
    let apart = usize::from(width < WIDE && width > TABLE);
    let mut lines = vec![Line::default(); apart];
    lines.push(heading(view, width, "WITH OTHER WORKER COUNTS"));
    let rows = match &verdict.what_if {
        Ok(rows) => rows,
        Err(reason) => {
            lines.extend(labelled(view, width, 5, format::UNKNOWN, reason));
            return lines;
        }
    };
    let mut head = view.row(width);
    head.space(2);
    table::head(&mut head, &columns(), "");
    lines.push(head.line());
    lines.extend(rows.iter().map(|row| expected(view, verdict, row, width)));
    let basis = "estimated from load time, step time and the CPUs free now; waits are longer if batches vary";
    lines.extend(view.paragraph(width, 0, (Dim, ""), (Dim, basis)));
    lines
}

fn columns() -> [TableColumn; 4] {
    [("workers", 7), ("wait", 7), ("between", 10), ("batch/s", 9)]
        .map(|(head, cells)| TableColumn::figures(head, cells))
}

fn expected(view: &View<'_>, verdict: &Verdict, row: &Expected, width: u16) -> Line<'static> {
    let workers = verdict.workers;
    let now = workers.is_some_and(|workers| workers.now == row.workers);
    let advised = workers.is_some_and(|workers| workers.advised == Some(row.workers));
    let mut line = view.row(width);
    let mark = if now { view.glyphs().mark } else { "" };
    line.padded(Focus, mark, 2);
    let paint = if row.wait.share.0 >= 0.05 {
        Wait
    } else {
        Compute
    };
    let (low, high) = (row.wait.low.percent(), row.wait.high.percent());
    let cells = [
        (Key, row.workers.to_string()),
        (paint, row.wait.share.to_string()),
        (Dim, format!("{low:.0}-{high:.0} %")),
        (Text, format::per_second(Some(row.batches_per_s))),
    ];
    for (column, (paint, text)) in columns().iter().zip(cells) {
        column.put(&mut line, paint, &text);
    }
    let seen = verdict.wait.map(|wait| wait.share);
    let (paint, remark) = match (now, advised, seen) {
        (true, _, Some(seen)) => (Unknown, format!("now: {seen}")),
        (true, ..) => (Unknown, "now".to_owned()),
        (_, true, _) => (Focus, "advised".to_owned()),
        _ => return line.line(),
    };
    line.item(2, &[(paint, &remark)]).line()
}
