//! The help: keys from the key map, colours and signs, reasons for unknown figures, terms.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::detail::figures::{heading, section};
use super::detail::{end_of_page, page};
use super::glyphs::doing;
use super::layout::{BorderStyle, take_last};
use super::panel::{Content, side_by_side, stacked};
use super::{View, footer, marks};
use crate::action::Action;
use crate::config::Role::{
    self, Compute, Cpu, Dim, Full, Key, Read, Runnable, Text, Trouble, Unknown, Wait,
};
use crate::sample::WorkerNow;

/// Abbreviations and terms used on the screen.
const WORDS: [(&str, &str); 19] = [
    ("DATA-BOUND", "the trainer loses time waiting for batches"),
    (
        "COMPUTE-BOUND",
        "batches are ready in time; the GPU is the limit",
    ),
    ("BALANCED", "waits cost 5 to 10 %: borderline"),
    (
        "HOST-BOUND",
        "the GPU idles, but not for data: Python, launches, copies",
    ),
    (
        "wait",
        "time the trainer's main thread blocks in the loader",
    ),
    ("step", "time between two batches, minus the wait"),
    ("load", "time one worker takes for one batch"),
    ("queue", "batches ready / capacity (workers x prefetch)"),
    ("idle", "worker: nothing to do; GPU: no kernel running"),
    ("delay", "share of time runnable, but waiting for a CPU"),
    ("util", "share of time the device is busy"),
    ("SM", "streaming multiprocessor: the GPU's compute unit"),
    (
        "pressure",
        "share of time something waited for cpu, io, memory",
    ),
    (
        "quota cut",
        "scheduler periods throttled by the cgroup's CPU quota",
    ),
    ("faults", "major page faults per second"),
    ("asked", "bytes requested by read calls, from disk or cache"),
    (
        "access",
        "T0 any user, T1 same user, T2 may attach, T3 the job reports",
    ),
    ("own cost", "CPU use of pipetop, in % of one core"),
    ("n/a, ~", "unknown; an estimate"),
];

/// The meaning of each colour and sign.
const MEANINGS: [(Role, &str); 8] = [
    (Cpu, "working on the CPU"),
    (Read, "reading from disk or network"),
    (Wait, "waiting for something upstream"),
    (Full, "blocked on something downstream"),
    (Runnable, "runnable, not running"),
    (Compute, "computing on the GPU"),
    (Trouble, "stopped, lost, throttled"),
    (Unknown, "unknown or out of date"),
];

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let (body, last, border) = place(area);
    page(view, frame, body, border, content);
    footer::draw(view, frame, last);
}

/// Returns the area of the help, the area of the last line, and the border of the help.
fn place(area: Rect) -> (Rect, Rect, BorderStyle) {
    let mut body = area;
    let last = take_last(&mut body, u16::from(area.height >= 5));
    let border = BorderStyle::boxed_if(area.width >= 40 && area.height >= 10);
    (body, last, border)
}

/// Returns the first visible line of the help when it is scrolled to its end.
pub(super) fn end(view: &View<'_>) -> usize {
    let (body, _, border) = place(view.screen);
    end_of_page(view, body, border, content)
}

fn content(view: &View<'_>, width: u16) -> Content {
    Content::new("help", "", lines(view, width))
}

/// Returns the lines of the help, in two columns if there is room.
fn lines(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    if width < 100 {
        return stacked([
            keys(view, width),
            meanings(view, width),
            self::marks(view, width),
            unknown(view, width),
            words(view, width),
        ]);
    }
    let half = width / 2 - 1;
    let left = stacked([keys(view, half), meanings(view, half)]);
    let right = stacked([words(view, half), self::marks(view, half)]);
    let both = side_by_side(view, width, &left, &right, width - half - 2);
    stacked([both, unknown(view, width)])
}

/// Returns a word with its meaning, on as many lines as that needs.
fn entry(
    view: &View<'_>,
    width: u16,
    label: (Role, &str),
    indent: usize,
    text: &str,
) -> Vec<Line<'static>> {
    view.indented(width, indent, (Dim, text), |row| {
        row.space(2).text(label.0, label.1).space(1);
    })
}

fn keys(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![heading(view, width, "KEYS")];
    for action in Action::ALL {
        let answers = [Action::EndCommand, Action::Detach];
        if view.command.is_none() && answers.contains(&action) {
            continue;
        }
        let keys = view.config.keys.keys(action);
        if keys.is_empty() {
            continue;
        }
        let names: Vec<_> = keys.iter().map(ToString::to_string).collect();
        let label = names.join("  ");
        lines.extend(entry(view, width, (Key, &label), 16, meaning(view, action)));
    }
    lines
}

/// Returns what an action does; some do something else in a replay.
fn meaning(view: &View<'_>, action: Action) -> &'static str {
    match (action, &view.state.replay) {
        (Action::Pause, Some(_)) => "pause or resume",
        (Action::IntervalLonger, Some(_)) => "play faster",
        (Action::IntervalShorter, Some(_)) => "play slower",
        _ => action.words(),
    }
}

fn meanings(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![heading(view, width, "COLOURS AND SIGNS")];
    for (paint, text) in MEANINGS {
        let sign = view.glyphs().sign(paint).repeat(2);
        lines.extend(entry(view, width, (paint, &sign), 6, text));
    }
    for (now, text) in [
        (WorkerNow::Sleep, "asleep with a batch to load"),
        (WorkerNow::Starting, "starting"),
    ] {
        let (paint, _, sign) = doing(now, view.glyphs());
        lines.extend(entry(view, width, (paint, &sign.repeat(2)), 6, text));
    }
    let begin = view.glyphs().begin;
    let others = [
        (begin, "in the timeline: the next batch begins"),
        (
            "0 1",
            "each worker's colour, also for its batches in the queue",
        ),
    ];
    for (sign, text) in others {
        lines.extend(entry(view, width, (Text, sign), 6, text));
    }
    lines
}

/// Returns the meaning of each mark below the history.
fn marks(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let mark = |(kind, text)| {
        let sign = view.glyphs().mark_sign(kind);
        entry(view, width, (marks::paint(kind), sign), 6, text)
    };
    let marks = marks::MEANINGS.into_iter().flat_map(mark);
    section(view, width, "MARKS BELOW THE HISTORY", marks)
}

/// Returns why figures are `n/a`, and how to fix it.
fn unknown(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    if view.gaps.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading(view, width, "NOT AVAILABLE")];
    for gap in view.gaps {
        let mut row = view.row(width);
        row.padded(Key, &format!("  {}", gap.source), 12);
        row.sentence(Text, &gap.reason);
        lines.push(row.line());
        if !gap.hint.is_empty() {
            lines.extend(view.paragraph(width, 12, (Key, ""), (Dim, &gap.hint)));
        }
    }
    lines
}

fn words(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let word = |(word, text)| entry(view, width, (Key, word), 17, text);
    section(view, width, "TERMS", WORDS.into_iter().flat_map(word))
}
