//! The screen while there is no job: what pipetop looks for, and how to start one.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::{BorderStyle, take, take_last};
use super::state::Panel;
use super::{View, footer, format, header, log, panel};
use crate::config::Role::{Dim, Key, Text, Unknown};

/// Least number of lines for the output of a launched command.
const OUTPUT: u16 = 4;

const DEMO: &str = "pipetop demo";
const WAYS: [(&str, &str); 4] = [
    ("python train.py", "start a training job"),
    (DEMO, "start a demo job and watch it"),
    ("pipetop PID", "watch a process"),
    ("pipetop doctor", "check what pipetop can see here"),
];

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, wanted: &str) {
    let mut body = draw_header_and_footer(view, frame, area);
    let launched = view.command.is_some();
    if let Some((below, border)) = take_output(view, &mut body) {
        panel::draw(view, frame, below, border, Panel::Log, log::content);
    }
    let border = BorderStyle::boxed_if(body.height >= 5 && body.width >= 30);
    let inner = panel::open(view, frame, body, border, "no job yet", "");
    let mut first = view.row(inner.width);
    if view.state.replay.is_some() {
        let words = "no job at this point of the recording";
        first.sentence(Text, words);
        return panel::write(frame, inner, vec![first.line()]);
    }
    first
        .bold(Unknown, "LOOKING")
        .item(2, &[(Text, "for a training job")]);
    let mut lines = vec![first.line()];
    lines.extend(view.paragraph(inner.width, 6, (Dim, "for"), (Text, wanted)));
    if !launched {
        lines.push(ratatui::text::Line::default());
    }
    // Builds without the `lab` feature have no demo job.
    let exists = |command: &str| cfg!(feature = "lab") || command != DEMO;
    let ways = WAYS
        .iter()
        .filter(|(command, _)| !launched && exists(command));
    for (place, (command, what)) in ways.enumerate() {
        let mut row = view.row(inner.width);
        row.padded(Dim, if place == 0 { "or" } else { "" }, 6);
        row.padded(Key, command, 34).sentence(Dim, what);
        lines.push(row.line());
    }
    for gap in view.gaps.iter().take(4) {
        let mut row = view.row(inner.width);
        row.padded(Dim, format::UNKNOWN, 6);
        row.sentence(Dim, &format!("{}: {}", gap.source, gap.reason));
        lines.push(row.line());
    }
    panel::write(frame, inner, lines);
}

/// Returns how far the output of a launched command can be scrolled.
pub(super) fn end(view: &View<'_>) -> usize {
    let mut body = view.screen;
    take(&mut body, 1);
    take_last(&mut body, 1);
    take_output(view, &mut body).map_or(0, |(below, border)| {
        panel::end(view, below, border, Panel::Log, log::content)
    })
}

/// Cuts the area for the output of a launched command from the bottom, if there is room.
fn take_output(view: &View<'_>, body: &mut Rect) -> Option<(Rect, BorderStyle)> {
    let height = body.height;
    if view.command.is_none() || height < 2 * OUTPUT {
        return None;
    }
    let top = if height >= 4 * OUTPUT { 7 } else { OUTPUT };
    let below = take_last(body, height - top);
    let border = if below.height >= 5 && below.width >= 30 {
        BorderStyle::Boxed
    } else {
        BorderStyle::Ruled
    };
    Some((below, border))
}

/// Draws header and footer, and returns the area in between.
pub(super) fn draw_header_and_footer(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let mut body = area;
    header::draw(view, frame, take(&mut body, 1));
    footer::draw(view, frame, take_last(&mut body, 1));
    body
}
