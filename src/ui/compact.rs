//! The smallest screen: the verdict, or what is shown in its place, in one line.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::line_builder::LineBuilder;
use super::{Attach, ListedJob, View, filter, footer, format, panel, verdict};
use crate::action::Action;
use crate::config::Role::{self, Dim, Focus, Key, Text, Trouble, Unknown};
use crate::verdict::{Headline, Kind, Verdict};

/// Least cells of a cause that are worth showing.
const PART: usize = 6;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let area = Rect { height: 1, ..area };
    if view.asks() {
        return panel::write(frame, area, vec![question(view, area.width)]);
    }
    // Typed text has to be visible, and a notice is shown only once.
    if footer::draw_input_or_notice(view, frame, area) {
        return;
    }
    let line = match view.attach {
        Attach::LookingForJob { wanted } => looking(view, area.width, wanted),
        Attach::Picker(candidates) => choice(view, area.width, candidates),
        Attach::Attached | Attach::Ended => verdict(view, area.width),
    };
    panel::write(frame, area, vec![line]);
}

fn question(view: &View<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.bold(Text, "quit:");
    for action in [Action::EndCommand, Action::Detach, Action::Cancel] {
        if let Some(key) = view.key(action) {
            let (key, words) = (key.to_string(), footer::words(view, action));
            if !row.fits(1, &[(Key, &key), (Dim, " "), (Dim, words)]) {
                row.item(1, &[(Key, &key)]);
            }
        }
    }
    row.line()
}

fn looking(view: &View<'_>, width: u16, wanted: &str) -> Line<'static> {
    let (what, place) = match view.state.replay {
        Some(_) => ("NO JOB", "at this point of the recording".to_owned()),
        None => ("LOOKING", format!("for {wanted}")),
    };
    let mut row = view.row(width);
    row.bold(Unknown, what);
    add_if_useful(&mut row, Text, &place);
    row.line()
}

/// Draws the marked job and its number in the list.
fn choice(view: &View<'_>, width: u16, candidates: &[ListedJob]) -> Line<'static> {
    let found = filter::matching_jobs(candidates, &view.state.filter);
    let mut row = view.row(width);
    let place = view.state.picked.min(found.len().saturating_sub(1));
    match found.get(place) {
        None => row.bold(Unknown, "no match"),
        Some(job) => {
            row.bold(Focus, &format!("{} of {}", place + 1, found.len()));
            row.item(2, &[(Text, &job.found.pid.to_string())]);
            add_if_useful(&mut row, Text, &job.found.command);
            &mut row
        }
    };
    row.line()
}

fn verdict(view: &View<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    let Some(verdict) = view.verdict else {
        row.bold(Unknown, Kind::WarmingUp.words());
        add_if_useful(&mut row, Text, "collecting the first samples");
        return row.line();
    };
    let paint = verdict::paint(verdict);
    row.bold(paint, verdict.kind.words());
    // A verdict of the past must not be mistaken for the current one.
    if *view.attach == Attach::Ended {
        row.item(2, &[(Trouble, "ended")]);
    }
    if view.state.paused {
        row.item(2, &[(Focus, "paused")]);
    }
    if let Some(past) = view.past.filter(|past| past.ago.as_secs() > 0) {
        let ago = format::clock(past.ago.as_secs());
        row.item(2, &[(Focus, &ago), (Focus, " ago")]);
    }
    if let Some(progress) = &verdict.warming_up {
        row.item(2, &[(Text, &progress.progress())]);
        return row.line();
    }
    verdict_line(view, verdict, paint, &mut row);
    row.line()
}

/// Draws the share in the longest words that leave room for the cause, then the cause, the certainty and what to do.
fn verdict_line(view: &View<'_>, verdict: &Verdict, paint: Role, row: &mut LineBuilder<'_>) {
    let Headline {
        loss,
        cause,
        certainty,
        ..
    } = verdict.headline(view.figures());
    let sure = certainty.as_ref().map_or(0, |sure| 2 + sure.len());
    let cause = cause.as_deref();
    let after = cause.map_or(0, |cause| 2 + format::width(cause)) + sure;
    let fits = |text: &&String| 2 + format::width(text) + after <= row.left();
    let text = loss.iter().find(fits).unwrap_or(&loss[2]);
    if !text.is_empty() && !row.fits(2, &[(Text, text)]) {
        return;
    }
    if let Some(cause) = cause {
        add_if_useful(row, paint, cause);
    }
    if let Some(sure) = &certainty {
        row.item(2, &[(Dim, sure)]);
    }
    if let Some(advice) = verdict.advice.first() {
        row.figure(2, "do ", advice);
    }
}

/// Adds as much of a text as fits, if that is enough to be worth reading.
fn add_if_useful(row: &mut LineBuilder<'_>, paint: Role, text: &str) {
    if row.left() >= 2 + PART.min(format::width(text)) {
        row.space(2).sentence(paint, text);
    }
}
