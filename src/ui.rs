//! The screen: one pure function from a [`View`] to a frame.
//!
//! ```text
//!  header: command, rank, pid, up                        loader and its settings
//! ┌─ verdict ───────────────────────────────────────────────────────── last 10 s ─┐
//! │ kind, share lost, cause, certainty; what to do; the evidence for and against  │
//! ├─ pipeline ────────────────────────────────────────────────────────────────────┤
//! │ workers -> queue -> trainer; load, step, wait                                 │
//! ├─ GPU ─────────────────────────────────┬─ disk ────────────────────────────────┤
//! ├─ workers ─────────────────────────────┴───────────────────────────────────────┤
//! ├─ timeline ────────────────────────────────────────────────────────────────────┤
//! ├─ history ─────────────────────────────────────────────────────────────────────┤
//! ├─ output ────────────────────────────────────────────── of a launched command ─┤
//!  footer: keys                                       access, own cost, interval
//! ```
//!
//! A panel, or the row marked in it, can fill the screen with its details; so can the tree of the job's processes.
//!
//! Must not read the clock, processes or files. Figures that a report would also need are computed elsewhere.

mod axis;
mod compact;
mod detail;
mod dialog;
mod disk;
mod empty;
mod filter;
mod footer;
pub(crate) mod format;
pub(crate) mod glyphs;
mod gpu;
mod header;
mod help;
pub(crate) mod history;
pub mod layout;
pub(crate) mod line_builder;
mod listed_job;
mod log;
mod marks;
pub(crate) mod panel;
mod picker;
pub mod picture;
mod pipeline;
pub mod state;
pub(crate) mod table;
mod timeline;
mod tree;
mod verdict;
mod view;
mod workers;
mod zoom;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use crate::config::Role;
use crate::units::ProcessKey;
use panel::PanelFunctions;

pub use axis::{automatic, length as axis_length};
pub use filter::{Filter, matching_jobs};
pub use footer::goes_to_list;
use layout::{Regions, SizeHints, count, regions};
pub use listed_job::{JobFigures, ListedJob};
pub use state::{Choices, Notice, Page, Panel, UiState};
pub use timeline::cursor_end;
#[cfg(feature = "testing")]
pub use tree::state::Node;
pub use view::{Attach, CommandView, Past, View};
#[cfg(feature = "testing")]
pub use zoom::Zoom;

/// Draws the whole screen.
pub fn draw(view: &View<'_>, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let view = &View {
        screen: area,
        ..*view
    };
    let question = view.command.filter(|command| command.asked);
    // The help would hide the question.
    if view.state.help && question.is_none() {
        return help::draw(view, frame, area);
    }
    if layout::is_too_small(area) {
        return compact::draw(view, frame, area);
    }
    match view.attach {
        Attach::LookingForJob { wanted } => empty::draw(view, frame, area, wanted),
        Attach::Picker(candidates) => picker::draw(view, frame, area, candidates),
        Attach::Attached | Attach::Ended => match view.state.page {
            Page::Detail => detail::draw(view, frame, area, part(view.state.focus).content),
            Page::Tree => tree::draw(view, frame, area),
            Page::Panels => panels(view, frame, area),
        },
    }
    if let Some(command) = question {
        dialog::draw(view, frame, area, &command.name, &command.output_path);
    }
}

macro_rules! functions {
    ($($(#[$_attribute:meta])* $name:ident: $file:ident,)*) => {
        /// Returns the functions of a panel, from its file.
        fn part(panel: Panel) -> PanelFunctions {
            match panel {
                $(Panel::$name => PanelFunctions { wanted: $file::wanted, content: $file::content },)*
            }
        }
    };
}
state::panels!(functions);

/// Lines of the graph in the panel that the verdict is about.
const GRAPH: u16 = 4;

/// Returns the width inside a box, or, without boxes, between the blank columns on either side.
fn inner_width(area: Rect) -> u16 {
    let around = if area.width >= 100 { 4 } else { 2 };
    area.width.saturating_sub(around)
}

/// Returns how many lines the verdict needs on a screen of this size.
pub fn verdict_lines(view: &View<'_>, area: Rect) -> u16 {
    count(verdict::lines(view, inner_width(area)).len())
}

/// Computes the positions of a job's panels.
fn place(view: &View<'_>, area: Rect) -> Regions {
    let inner_width = inner_width(area);
    // With boxes, the disk is beside the GPUs.
    let gpu_width = inner_width / if area.width >= 100 { 2 } else { 1 };
    let relevant = verdict::relevant(view);
    // A graph of nothing but zeros is not drawn.
    let graph = |panel| {
        let drawn =
            relevant == Some(panel) && (panel != Panel::Disk || history::reads(view, gpu_width));
        if drawn { GRAPH } else { 0 }
    };
    let gpu_graph = graph(Panel::Gpu) * u16::from(view.gpus().len() == 1);
    let lines = Panel::ALL.map(|panel| {
        let width = if panel == Panel::Gpu {
            gpu_width
        } else {
            inner_width
        };
        (part(panel).wanted)(view, width)
    });
    let mut wants = SizeHints {
        lines,
        verdict_tall: lines[Panel::Verdict as usize]
            + verdict::extra_headline_lines(view, inner_width),
        loaders: pipeline::loaders(view),
        gpus: count(view.gpus().len()),
        gpus_open: gpu::wanted_open(view, gpu_width) + gpu_graph,
        gpus_in_full: gpu::wanted_in_full(view, gpu_width),
        focus: view.state.focus,
        relevant,
    };
    wants.lines[Panel::Disk as usize] += graph(Panel::Disk);
    regions(area, &wants)
}

/// Returns the panel at a position on a screen of this size, or `None` if there is none.
pub fn panel_at(view: &View<'_>, area: Rect, at: Position) -> Option<Panel> {
    let panels = !view.state.help && view.state.page == Page::Panels;
    if !panels || !matches!(view.attach, Attach::Attached | Attach::Ended) {
        return None;
    }
    let regions = place(view, captioned(view, area).1);
    let mut panels = Panel::ALL.into_iter();
    panels.find(|panel| regions.panel(*panel).contains(at))
}

/// Returns the worker whose details are shown live.
pub fn opened_worker(view: &View<'_>) -> Option<ProcessKey> {
    let shown = view.state.page == Page::Detail && view.state.focus == Panel::Workers;
    let now = *view.attach == Attach::Attached && view.past.is_none();
    let (_, worker) = workers::chosen(view).filter(|_| shown && now)?;
    Some(worker.key)
}

/// Returns what the keys can choose from at the moment.
pub fn choices(view: &View<'_>) -> Choices {
    Choices {
        ranks: view.ranks().len(),
        rank: view.rank_place(),
        candidates: match view.attach {
            Attach::Picker(jobs) => matching_jobs(jobs, &view.state.filter).len(),
            _ => 0,
        },
        workers: workers::shown(view),
        gpus: view.gpus().len(),
        tree: match view.state.page {
            Page::Tree => tree::lines(view),
            _ => Vec::new(),
        },
        end: end(view),
        from_newest: log::scrolls(view),
    }
}

/// Whether the keys for start and end move in a text, not in time: in the help, a page of details or the output.
pub fn jumps_in_text(view: &View<'_>) -> bool {
    let details = view.state.page == Page::Detail && detail::has_page(view.state.focus);
    let page = details && matches!(view.attach, Attach::Attached | Attach::Ended);
    view.state.help || page || log::scrolls(view)
}

/// Returns how far the help, the page or the focused panel can be scrolled.
fn end(view: &View<'_>) -> usize {
    let panel = view.state.focus;
    let content = part(panel).content;
    match (view.state.page, view.attach) {
        _ if view.state.help => help::end(view),
        (_, Attach::LookingForJob { .. }) => empty::end(view),
        (_, Attach::Picker(_)) | (Page::Tree, _) => 0,
        (Page::Detail, _) => detail::end(view, content),
        (Page::Panels, _) => {
            let regions = place(view, captioned(view, view.screen).1);
            panel::end(view, regions.panel(panel), regions.border, panel, content)
        }
    }
}

/// Breaks a tour's caption into lines, and returns the area below them.
fn captioned(view: &View<'_>, area: Rect) -> (Vec<Line<'static>>, Rect) {
    let width = area.width.saturating_sub(1);
    let text = view.state.caption.iter();
    let lines =
        text.flat_map(|text| view.paragraph(width, 1, (Role::Dim, ""), (Role::Focus, text)));
    let lines: Vec<_> = lines.take(usize::from(area.height / 8)).collect();
    let mut rest = area;
    layout::take(&mut rest, count(lines.len()));
    (lines, rest)
}

/// Draws all panels of a job.
fn panels(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let (caption, below) = captioned(view, area);
    panel::write(frame, area, caption);
    let regions = place(view, below);
    header::draw(view, frame, regions.header);
    footer::draw(view, frame, regions.footer);
    for panel in Panel::ALL {
        let (area, border) = (regions.panel(panel), regions.border);
        if area.is_empty() {
            continue;
        }
        panel::draw(view, frame, area, border, panel, part(panel).content);
    }
}
