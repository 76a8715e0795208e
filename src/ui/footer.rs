//! The last line: the keys that currently have an effect, and what polling costs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::layout::indented;
use super::state::Panel;
use super::{Attach, Filter, Page, Past, View, format, log, panel};
use crate::action::Action;
use crate::config::Role::{Dim, Focus, Text, Trouble};
use crate::sample::ReplayPosition;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    if draw_input_or_notice(view, frame, area) {
        return;
    }
    let right = match (&view.state.replay, view.past) {
        (Some(replay), _) => place(view, replay, area.width),
        (None, Some(past)) => ago(view, past, area.width),
        (None, None) => cost_line(view, area.width),
    };
    let right_width = u16::try_from(right.width()).unwrap_or(area.width);

    let mut row = view.row(area.width.saturating_sub(right_width));
    row.space(1);
    for action in available_actions(view) {
        if let Some(key) = view.key(action) {
            let key = key.to_string();
            let words = words(view, action);
            // Two columns stay free before the text on the right.
            if row.left() > key.len() + words.len() + 4 {
                let gap = if row.left() + 1 == usize::from(area.width - right_width) {
                    0
                } else {
                    2
                };
                row.key(gap, &key, words);
            }
        }
    }
    panel::write(frame, area, vec![row.line()]);
    let left = area.width.saturating_sub(right_width);
    frame.render_widget(right, indented(area, left));
}

/// Draws the text being typed, otherwise the notice; returns false if there is neither.
pub(super) fn draw_input_or_notice(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) -> bool {
    if filter(view).typing {
        input(view, frame, area);
    } else if let Some(notice) = &view.state.notice {
        let paint = if notice.trouble { Trouble } else { Text };
        let mut row = view.row(area.width);
        row.space(1).sentence(paint, &notice.text);
        panel::write(frame, area, vec![row.line()]);
    } else {
        return false;
    }
    true
}

/// Returns the filter that the letter keys edit.
fn filter<'a>(view: &View<'a>) -> &'a Filter {
    match view.state.page {
        Page::Tree => &view.state.tree.filter,
        Page::Panels | Page::Detail => &view.state.filter,
    }
}

/// Draws the text being typed.
fn input(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let (what, all) = match (view.attach, view.state.page) {
        (Attach::Picker(_), _) => ("filter jobs: ", "all jobs"),
        (_, Page::Tree) => ("filter lines: ", "all lines"),
        (_, Page::Panels | Page::Detail) => ("filter workers: ", "all workers"),
    };
    let keys = [("enter", "keep"), ("esc", all)];
    let mut row = view.row(area.width);
    row.space(1).text(Dim, what);
    // Only the end of a long text is shown, as letters are added there.
    let text = &filter(view).text;
    let room = row.left().saturating_sub(30).max(8);
    let from = format::width(text).saturating_sub(room);
    let shown: String = text.chars().skip(from).collect();
    row.text(Text, &shown).text(Focus, "_");
    for (key, what) in keys {
        row.key(2, key, what);
    }
    panel::write(frame, area, vec![row.line()]);
}

/// Returns the description of an action on this screen.
pub(super) fn words(view: &View<'_>, action: Action) -> &'static str {
    match (action, &view.state.replay) {
        (Action::Pause, None) if view.past.is_some() => "resume",
        (Action::ToEnd, None) => "now",
        (Action::Pause, Some(replay)) if replay.paused => "resume",
        (Action::Pause, Some(_)) => "pause",
        (Action::Select, None) if matches!(view.attach, Attach::Picker(_)) => "choose",
        (Action::Select, _) if view.state.page == Page::Tree => "fold",
        (Action::Cancel, None) if goes_to_list(view) => "jobs",
        (Action::Cancel, None) if view.asks() => "cancel",
        (Action::Up, _) if log::scrolls(view) => "older",
        (Action::IntervalLonger, Some(_)) => "faster",
        (Action::IntervalShorter, Some(_)) => "slower",
        _ => action.short(),
    }
}

/// Whether the cancel key goes back to the list of jobs: nothing else is left to close, and the job came from a list.
pub fn goes_to_list(view: &View<'_>) -> bool {
    let state = view.state;
    let open = state.help || state.page != Page::Panels || state.filter.is_set();
    let listed = matches!(view.attach, Attach::Picker(_));
    state.chosen.is_some() && !listed && !open && view.past.is_none()
}

/// Formats how long ago the shown moment is.
fn ago(view: &View<'_>, past: Past, width: u16) -> Line<'static> {
    let mut right = view.row(width);
    let ago = format!("{} ago", format::ago(past.ago.as_secs()));
    right.item(0, &[(Focus, &ago)]);
    if width >= 60 {
        right.item(2, &[(Text, &format::time_of_day(past.at.wall))]);
    }
    right.space(1);
    right.line()
}

/// Formats the position of the replay and its speed.
fn place(view: &View<'_>, replay: &ReplayPosition, width: u16) -> Line<'static> {
    let mut right = view.row(width);
    let how = match replay {
        ReplayPosition { ended: true, .. } => "end",
        ReplayPosition { paused: true, .. } => "paused",
        _ => "",
    };
    if !how.is_empty() {
        right.item(0, &[(Focus, how)]);
    }
    let [at, of] = [replay.at, replay.of].map(|time| format::hours(time.as_secs()));
    right.item(2, &[(Text, &at), (Dim, &format!(" of {of}"))]);
    right.item(2, &[(Text, &format!("{} x", replay.speed))]);
    right.space(1);
    right.line()
}

/// Formats the access, the cost of polling and the interval.
fn cost_line(view: &View<'_>, width: u16) -> Line<'static> {
    // Full labels if there is room, otherwise shorter ones, so that the keys stay visible.
    let (access, cost, every) = match width {
        100.. => ("access ", "own cost ", "every "),
        60.. => ("", "own ", ""),
        _ => ("", "", ""),
    };
    let mut right = view.row(width);
    if let Some(rates) = view.figures() {
        if let Some(job) = &rates.job {
            right.figure(0, access, &format!("{:?}", job.access));
        }
        if !cost.is_empty() {
            let share = format::fine_percent(rates.own_cpu);
            right.figure(2, cost, &share);
        }
    }
    let interval = view.config.interval.as_secs_f64();
    right.figure(2, every, &format!("{interval:.1} s"));
    right.space(1);
    right.line()
}

/// The actions that apply to a replay.
const REPLAYING: [Action; 15] = [
    Action::Help,
    Action::Quit,
    Action::Pause,
    Action::SeekBack,
    Action::SeekForward,
    Action::StepForward,
    Action::IntervalLonger,
    Action::IntervalShorter,
    Action::Save,
    Action::NextPanel,
    Action::Select,
    Action::Tree,
    Action::SortNext,
    Action::ZoomIn,
    Action::ZoomOut,
];

/// The actions that apply while the past of a job is shown.
const LOOKING_BACK: [Action; 15] = [
    Action::Help,
    Action::Quit,
    Action::Pause,
    Action::SeekBack,
    Action::SeekForward,
    Action::StepBack,
    Action::StepForward,
    Action::LeapBack,
    Action::LeapForward,
    Action::ZoomIn,
    Action::ZoomOut,
    Action::NextPanel,
    Action::Select,
    Action::ToBegin,
    Action::Save,
];

/// Returns the actions that apply on this screen, the most needed first.
fn available_actions(view: &View<'_>) -> Vec<Action> {
    if view.asks() {
        return vec![Action::EndCommand, Action::Detach, Action::Cancel];
    }
    if view.state.help {
        return vec![Action::Cancel, Action::Down, Action::Quit];
    }
    let watched = matches!(view.attach, Attach::Attached | Attach::Ended);
    if view.state.page != Page::Panels && watched {
        return page_actions(view);
    }
    if view.state.replay.is_some() {
        return REPLAYING.to_vec();
    }
    if view.past.is_some() {
        return LOOKING_BACK.to_vec();
    }
    match view.attach {
        Attach::LookingForJob { .. } if view.command.is_some() => {
            vec![Action::Help, Action::Quit, Action::Up]
        }
        Attach::LookingForJob { .. } => vec![Action::Help, Action::Quit],
        Attach::Picker(_) => vec![
            Action::Select,
            Action::Down,
            Action::Help,
            Action::Quit,
            Action::Filter,
        ],
        Attach::Attached | Attach::Ended => {
            let mut actions = vec![
                Action::Help,
                Action::Quit,
                Action::Pause,
                Action::NextPanel,
                Action::Select,
            ];
            if goes_to_list(view) {
                actions.insert(2, Action::Cancel);
            }
            if view.ranks().len() > 1 {
                actions.push(Action::NextRank);
            }
            actions.extend([
                Action::SeekBack,
                Action::SortNext,
                Action::Filter,
                Action::Tree,
                Action::Save,
                Action::ZoomIn,
                Action::ZoomOut,
                Action::IntervalShorter,
                Action::IntervalLonger,
            ]);
            actions
        }
    }
}

/// Returns the actions that apply on a page that fills the screen.
fn page_actions(view: &View<'_>) -> Vec<Action> {
    let mut actions = vec![Action::Help, Action::Quit, Action::Cancel];
    if view.state.page == Page::Tree {
        actions.extend([
            Action::Select,
            Action::Down,
            Action::SortNext,
            Action::Filter,
            Action::Pause,
        ]);
    } else {
        actions.push(Action::NextPanel);
        actions.extend(match view.state.focus {
            Panel::History => None,
            Panel::Log => Some(Action::Up),
            _ => Some(Action::Down),
        });
        actions.push(Action::Pause);
        if view.ranks().len() > 1 {
            actions.push(Action::NextRank);
        }
    }
    actions.push(Action::SeekBack);
    if view.state.replay.is_some() || view.past.is_some() {
        actions.push(Action::SeekForward);
    }
    actions.push(Action::Save);
    if view.state.page == Page::Detail && view.state.focus == Panel::Verdict {
        actions.push(Action::Copy);
    }
    actions
}
