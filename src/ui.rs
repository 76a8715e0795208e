//! What you see: one pure function from a [`View`] to a frame.
//!
//! ```text
//!  header: command, rank, pid, up                        loader and its settings
//! ┌─ verdict ───────────────────────────────────────────────────────── last 10 s ─┐
//! │ kind, share lost, cause, how sure; what to do; what speaks for it; against it │
//! ├─ pipeline ────────────────────────────────────────────────────────────────────┤
//! │ workers -> queue -> trainer; load, step, wait                                 │
//! ├─ GPU ─────────────────────────────────┬─ disk ────────────────────────────────┤
//! ├─ workers ─────────────────────────────┴───────────────────────────────────────┤
//! ├─ timeline ────────────────────────────────────────────────────────────────────┤
//! ├─ history ─────────────────────────────────────────────────────────────────────┤
//! ├─ output ──────────────────────────────────── of a command that we have launched ─┤
//!  footer: keys                                       access, own cost, interval
//! ```
//!
//! One panel, or what is marked in it, can take all of the room: its details; so can the tree of the job's processes.
//!
//! Knows no clock, no process and no file. Nothing is computed here that a report would want too.

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
mod table;
mod timeline;
mod tree;
mod verdict;
mod view;
mod workers;
mod zoom;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};

use crate::units::ProcessKey;

pub use axis::{automatic, length as axis_length};
pub use filter::{Filter, jobs_found};
pub use footer::goes_to_list;
use layout::{Regions, SizeHints, count, regions};
pub use listed_job::{JobFigures, ListedJob};
#[cfg(feature = "testing")]
pub use state::Sort;
pub use state::{Choices, Notice, Page, Panel, Replay, UiState};
#[cfg(feature = "testing")]
pub use tree::state::Node;
pub use view::{Attach, Command, Past, View};
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
    if view.state.help {
        return help::draw(view, frame, area);
    }
    if layout::is_too_small(area) {
        return compact::draw(view, frame, area);
    }
    match view.attach {
        Attach::LookingForJob { wanted } => empty::draw(view, frame, area, wanted),
        Attach::Picker(candidates) => picker::draw(view, frame, area, candidates),
        Attach::Attached | Attach::Ended => match view.state.page {
            Page::Detail => detail::draw(view, frame, area),
            Page::Tree => tree::draw(view, frame, area),
            Page::Panels => panels(view, frame, area),
        },
    }
    if let Some(command) = view.command.filter(|command| command.asked) {
        dialog::draw(view, frame, area, command.name, command.keeps);
    }
}

/// Lines of a graph in the panel that shows what the verdict speaks of.
const GRAPH: u16 = 4;

/// What is left inside of a box, or between a cell of air on either side.
fn inner_width(area: Rect) -> u16 {
    let around = if area.width >= 100 { 4 } else { 2 };
    area.width.saturating_sub(around)
}

/// Lines that the verdict needs on a screen of this size.
pub fn verdict_lines(view: &View<'_>, area: Rect) -> u16 {
    count(verdict::lines(view, inner_width(area)).len())
}

/// Where the panels of a job stand.
fn place(view: &View<'_>, area: Rect) -> Regions {
    let inner_width = inner_width(area);
    // In boxes, the disk stands beside the GPUs.
    let gpu_width = inner_width / if area.width >= 100 { 2 } else { 1 };
    let matters = verdict::matters(view);
    let graph = |panel| if matters == Some(panel) { GRAPH } else { 0 };
    let gpu_graph = graph(Panel::Gpu) * u16::from(view.gpus().len() == 1);
    let wants = SizeHints {
        verdict: verdict_lines(view, area).max(view.room),
        pipeline: pipeline::wanted(view),
        other_loaders: pipeline::other_loaders(view),
        gpus: gpu::wanted(view, gpu_width),
        gpus_open: gpu::wanted_open(view, gpu_width) + gpu_graph,
        gpus_in_full: gpu::wanted_in_full(view, gpu_width),
        workers: count(view.loader().map_or(0, |loader| loader.workers.len())),
        disk: disk::wanted(view) + graph(Panel::Disk),
        timeline: timeline::wanted(view),
        history: history::wanted(view),
        log: log::wanted(view),
        focus: view.state.focus,
        matters,
    };
    regions(area, &wants)
}

/// The panel at a place of a screen of this size. `None` = there is none there.
pub fn panel_at(view: &View<'_>, area: Rect, at: Position) -> Option<Panel> {
    let panels = !view.state.help && view.state.page == Page::Panels;
    if !panels || !matches!(view.attach, Attach::Attached | Attach::Ended) {
        return None;
    }
    let regions = place(view, area);
    let mut panels = Panel::ALL.into_iter();
    panels.find(|panel| regions.panel(*panel).contains(at))
}

/// The worker whose details are shown, as it is now.
pub fn opened_worker(view: &View<'_>) -> Option<ProcessKey> {
    let shown = view.state.page == Page::Detail && view.state.focus == Panel::Workers;
    let now = *view.attach == Attach::Attached && view.past.is_none();
    let (_, worker) = workers::chosen(view).filter(|_| shown && now)?;
    Some(worker.key)
}

/// What keys can choose among now.
pub fn choices(view: &View<'_>) -> Choices {
    Choices {
        ranks: view.ranks().len(),
        rank: view.rank_place(),
        candidates: match view.attach {
            Attach::Picker(jobs) => jobs_found(jobs, &view.state.filter).len(),
            _ => 0,
        },
        workers: workers::shown(view),
        gpus: view.gpus().len(),
        tree: match view.state.page {
            Page::Tree => tree::lines(view),
            _ => Vec::new(),
        },
    }
}

/// Draws what there is to see of a job.
fn panels(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let regions = place(view, area);
    header::draw(view, frame, regions.header);
    footer::draw(view, frame, regions.footer);
    for panel in Panel::ALL {
        let (area, border) = (regions.panel(panel), regions.border);
        if area.is_empty() {
            continue;
        }
        match panel {
            Panel::Verdict => verdict::draw(view, frame, area, border),
            Panel::Pipeline => pipeline::draw(view, frame, area, border),
            Panel::Gpu => gpu::draw(view, frame, area, border),
            Panel::Workers => workers::draw(view, frame, area, border),
            Panel::Disk => disk::draw(view, frame, area, border),
            Panel::Timeline => timeline::draw(view, frame, area, border),
            Panel::History => history::draw(view, frame, area, border),
            Panel::Log => log::draw(view, frame, area, border),
        }
    }
}
