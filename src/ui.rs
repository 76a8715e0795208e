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
//! ├─ history ─────────────────────────────────────────────────────────────────────┤
//! ├─ output ──────────────────────────────────── of a command that we have launched ─┤
//!  footer: keys                                       access, own cost, interval
//! ```
//!
//! One panel, or what is marked in it, can take all of the room: its details; so can the tree of the job's processes.
//!
//! Knows no clock, no process and no file. Nothing is computed here that a report would want too.

mod axis;
mod detail;
mod disk;
mod empty;
mod filter;
mod footer;
mod format;
mod glyphs;
mod gpu;
mod header;
mod help;
mod history;
pub mod layout;
mod log;
mod marks;
mod one_line;
mod panel;
mod picker;
pub mod picture;
mod pipeline;
mod question;
mod row;
pub mod simulation;
pub mod state;
mod tree;
mod verdict;
mod workers;

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};

use crate::config::{Config, Paint};
use crate::last_lines::Lines;
use crate::model::rates::{GpuRates, LoaderRates, RankRates};
use crate::model::{History, ProcessTree, Rates, Steps};
use crate::sample::{Gap, JobCandidate, OpenFiles, WorkerNow};
use crate::units::{Moment, ProcessKey};
use crate::verdict::Verdict;

pub use axis::{Zoom, automatic};
pub use filter::{Filter, jobs_found};
use glyphs::Glyphs;
use layout::{Regions, Wants, regions};
use row::Row;
pub use state::{Choices, Notice, Page, Panel, Replay, Sort, UiState};
pub use tree::state::{Node, Order, Toggle, TreeState};

/// Everything that one frame shows.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Of the verdict's window: what figures are taken from.
    pub window: Option<&'a Rates>,
    /// Of the last interval: what states are taken from.
    pub latest: Option<&'a Rates>,
    pub history: &'a History,
    /// The newest steps of each rank, one by one.
    pub steps: &'a Steps,
    /// Open files of the worker that is shown; `None` while nobody asked, and of the past.
    pub files: Option<&'a OpenFiles>,
    pub verdict: Option<&'a Verdict>,
    /// What the job's processes use now. `None` = they are of another moment than what is shown.
    pub processes: Option<&'a ProcessTree>,
    pub gaps: &'a [Gap],
    pub state: &'a UiState,
    pub config: &'a Config,
    pub attach: &'a Attach,
    /// How long the job runs; `None` = not known.
    pub uptime: Option<Duration>,
    /// The command that we have launched; `None` = the job is not ours.
    pub command: Option<Command<'a>>,
    /// A moment of the past is shown; `None` = what is now.
    pub past: Option<Past>,
    /// Lines that the verdict keeps, where it needs less.
    pub room: u16,
    /// The whole of the screen; [`draw`] sets it.
    pub screen: Rect,
}

/// Which moment is shown in the place of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    pub at: Moment,
    /// Where the axis of time ends: the newest that was shown since the screen was frozen.
    pub until: Duration,
    /// From the moment to the newest reading.
    pub ago: Duration,
}

/// A launched command.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// Its words.
    pub name: &'a str,
    pub printed: &'a Lines,
    /// What becomes of it, in a few words; mostly nothing.
    pub state: &'a str,
    /// Where its output would go on without us, in words.
    pub keeps: &'a str,
    /// The user wants to leave, and has not said what shall become of it.
    pub asked: bool,
}

/// What there is to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attach {
    /// No job found yet; what is being looked for, in words.
    LookingForJob {
        wanted: String,
    },
    /// Several jobs: the user chooses.
    Picker(Vec<JobCandidate>),
    Attached,
    /// The job is gone; what is shown is the last of it.
    Ended,
}

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
        return one_line::draw(view, frame, area);
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
        question::draw(view, frame, area, command.name, command.keeps);
    }
}

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
    let wants = Wants {
        verdict: verdict_lines(view, area).max(view.room),
        pipeline: pipeline::wanted(view),
        gpus: gpu::wanted(view, gpu_width),
        gpus_open: gpu::wanted_open(view, gpu_width),
        gpus_in_full: gpu::wanted_in_full(view, gpu_width),
        workers: count(view.loader().map_or(0, |loader| loader.workers.len())),
        disk: disk::wanted(view),
        history: history::wanted(view),
        log: log::wanted(view),
        focus: view.state.focus,
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
        let (area, chrome) = (regions.panel(panel), regions.chrome);
        if area.is_empty() {
            continue;
        }
        match panel {
            Panel::Verdict => verdict::draw(view, frame, area, chrome),
            Panel::Pipeline => pipeline::draw(view, frame, area, chrome),
            Panel::Gpu => gpu::draw(view, frame, area, chrome),
            Panel::Workers => workers::draw(view, frame, area, chrome),
            Panel::Disk => disk::draw(view, frame, area, chrome),
            Panel::History => history::draw(view, frame, area, chrome),
            Panel::Log => log::draw(view, frame, area, chrome),
        }
    }
}

/// A number of lines for the layout.
fn count(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}

impl<'a> View<'a> {
    /// Where figures come from: the verdict's window, the last interval before there is one.
    fn figures(&self) -> Option<&'a Rates> {
        self.window.or(self.latest)
    }

    /// The time that figures cover, as panels say it: `last 10 s`.
    fn span(&self) -> String {
        self.figures().map_or_else(String::new, |rates| {
            format!("last {}", format::span(rates.seconds))
        })
    }

    fn ranks(&self) -> &'a [RankRates] {
        self.figures()
            .and_then(|rates| rates.job.as_ref())
            .map_or(&[], |job| &job.ranks)
    }

    /// The place of the rank that is shown: the user's choice, else the one that the verdict speaks of.
    fn rank_place(&self) -> usize {
        let ranks = self.ranks();
        let by_verdict = || {
            let key = self.verdict?.rank_key?;
            ranks.iter().position(|rank| rank.key == key)
        };
        self.state
            .rank
            .filter(|place| *place < ranks.len())
            .or_else(by_verdict)
            .unwrap_or(0)
    }

    fn rank(&self) -> Option<&'a RankRates> {
        self.ranks().get(self.rank_place())
    }

    /// What it is called; 0 while none is known.
    fn rank_number(&self) -> u32 {
        let place = self.rank_place();
        self.rank().map_or(0, |rank| rank.number(place))
    }

    /// The same rank in the last interval.
    fn rank_now(&self) -> Option<&'a RankRates> {
        let key = self.rank()?.key;
        let job = self.latest?.job.as_ref()?;
        job.ranks.iter().find(|rank| rank.key == key)
    }

    /// The loader that feeds the rank: of several, the one that delivers most.
    fn loader(&self) -> Option<&'a LoaderRates> {
        self.rank()?.busiest_loader()
    }

    /// The same loader in the last interval.
    fn loader_now(&self) -> Option<&'a LoaderRates> {
        let id = self.loader()?.id;
        self.rank_now()?
            .loaders
            .iter()
            .find(|loader| loader.id == id)
    }

    fn gpus(&self) -> &'a [GpuRates] {
        self.figures().map_or(&[], |rates| &rates.gpus)
    }

    /// The place of the GPU that the rank uses, as the verdict takes it; the first where it could be any.
    fn gpu_place(&self) -> usize {
        let used = self.figures().zip(self.rank()).and_then(|(rates, rank)| {
            let held = rates.gpus_held(rank).first().copied();
            held.or_else(|| rates.gpu_in_place(rank))
        });
        let is_used = |gpu: &GpuRates| used.is_some_and(|used| used.gpu.now.index == gpu.now.index);
        self.gpus().iter().position(is_used).unwrap_or(0)
    }

    fn gap(&self, source: &str) -> Option<&'a Gap> {
        self.gaps.iter().find(|gap| gap.source == source)
    }

    fn glyphs(&self) -> &'static Glyphs {
        glyphs::of(self.config)
    }

    fn row(&self, width: u16) -> Row<'a> {
        Row::new(&self.config.theme, self.glyphs(), width)
    }
}

/// What a worker does, as meaning, word and sign.
fn doing(now: WorkerNow, glyphs: &Glyphs) -> (Paint, &'static str, &'static str) {
    let (paint, word) = match now {
        WorkerNow::Unknown => (Paint::Unknown, "n/a"),
        WorkerNow::Idle => (Paint::Wait, "idle"),
        WorkerNow::Cpu => (Paint::Cpu, "cpu"),
        WorkerNow::Runnable => (Paint::Runnable, "runnable"),
        WorkerNow::Read => (Paint::Read, "read"),
        WorkerNow::Network => (Paint::Read, "network"),
        WorkerNow::Handover => (Paint::Full, "full"),
        WorkerNow::Sleep => return (Paint::Wait, "asleep", "z"),
        WorkerNow::Stopped => (Paint::Trouble, "stopped"),
        WorkerNow::Starting => return (Paint::Cpu, "starting", "+"),
        WorkerNow::Gone => (Paint::Trouble, "gone"),
    };
    (paint, word, glyphs.sign(paint))
}
