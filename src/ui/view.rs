//! The input of one frame: figures, choices and settings at a moment.

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::format;
use super::glyphs::{self, Glyphs};
use super::line_builder::LineBuilder;
use super::listed_job::ListedJob;
use super::state::{Panel, UiState};
use crate::action::Action;
use crate::config::{Config, KeyPress, Role};
use crate::last_lines::Lines;
use crate::model::rates::{DeviceRates, GpuRates, JobRates, LoaderRates, RankRates, WorkerRates};
use crate::model::{History, ProcessFigures, Rates, Steps};
use crate::sample::{Gap, OpenFiles, WorkerNow};
use crate::units::Moment;
use crate::verdict::Verdict;

/// Everything that one frame depends on.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Rates over the verdict's window: the source of figures.
    pub window: Option<&'a Rates>,
    /// Rates over the last interval: the source of states.
    pub latest: Option<&'a Rates>,
    pub history: &'a History,
    /// The newest steps of each rank, one by one.
    pub steps: &'a Steps,
    /// Open files of the worker that is shown; `None` until they were read, and for past moments.
    pub files: Option<&'a OpenFiles>,
    pub verdict: Option<&'a Verdict>,
    /// The verdict is that of the list of jobs, from which the job was just chosen.
    pub listed: bool,
    /// Figures of the job's processes. For past moments only those in every sample: ranks and workers.
    pub processes: &'a ProcessFigures,
    pub gaps: &'a [Gap],
    pub state: &'a UiState,
    pub config: &'a Config,
    pub attach: &'a Attach,
    /// How long the job has been running; `None` = unknown.
    pub uptime: Option<Duration>,
    /// The command that pipetop launched; `None` = the job was started by someone else.
    pub command: Option<&'a CommandView>,
    /// The past moment that is shown; `None` = now.
    pub past: Option<Past>,
    /// Lines reserved for the verdict even if it needs fewer.
    pub room: u16,
    /// The area of the whole screen; [`super::draw`] sets it.
    pub screen: Rect,
}

/// The past moment that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    pub at: Moment,
    /// The end of the time axis: the newest reading shown since the screen was paused.
    pub until: Duration,
    /// Time from the moment to the newest reading.
    pub ago: Duration,
}

/// A launched command.
#[derive(Debug, Default)]
pub struct CommandView {
    /// Its command line.
    pub name: String,
    pub printed: Lines,
    /// Its state in a few words; mostly empty.
    pub state: String,
    /// Where its output would go after pipetop ends.
    pub output_path: String,
    /// The user wants to quit, and is asked what to do with the command.
    pub asked: bool,
}

/// The state of the search for a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Attach {
    /// No job found yet; a description of what is looked for.
    LookingForJob {
        wanted: String,
    },
    /// Several jobs: the user chooses.
    Picker(Vec<ListedJob>),
    Attached,
    /// The job has ended; its last state is shown.
    Ended,
}

impl<'a> View<'a> {
    /// Returns how far this panel is scrolled: only the focused one is.
    pub(super) fn scroll_of(&self, panel: Panel) -> usize {
        let focused = self.state.focus == panel;
        self.state.scroll * usize::from(focused)
    }

    /// Returns the source of figures: the verdict's window, or the last interval before there is one.
    pub(super) fn figures(&self) -> Option<&'a Rates> {
        self.window.or(self.latest)
    }

    /// Returns the time that figures cover, as panels show it: `last 10 s`.
    pub(super) fn span(&self) -> String {
        self.figures().map_or_else(String::new, |rates| {
            format!("last {}", format::span(rates.seconds))
        })
    }

    pub(super) fn ranks(&self) -> &'a [RankRates] {
        self.job().map_or(&[], |job| &job.ranks)
    }

    /// Returns the place of the shown rank: the user's choice, or the one that the verdict is about.
    pub(super) fn rank_place(&self) -> usize {
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

    pub(super) fn rank(&self) -> Option<&'a RankRates> {
        self.ranks().get(self.rank_place())
    }

    /// Returns the number of the shown rank; 0 while no rank is known.
    pub(super) fn rank_number(&self) -> u32 {
        self.rank().map_or(0, |rank| rank.number)
    }

    /// Returns the name of a panel about the rank, with the rank's number if there are several ranks.
    pub(super) fn of_rank(&self, what: &str) -> String {
        match self.ranks().len() {
            0 | 1 => what.to_owned(),
            _ => format!("{what} of rank {}", self.rank_number()),
        }
    }

    /// Returns the shown rank in the last interval.
    pub(super) fn rank_now(&self) -> Option<&'a RankRates> {
        let key = self.rank()?.key;
        self.latest?.job.as_ref()?.rank(key)
    }

    /// Whether the job's control group is frozen now.
    pub(super) fn is_frozen(&self) -> bool {
        let group = self
            .latest
            .and_then(|latest| latest.job.as_ref()?.cgroup.as_ref());
        group.is_some_and(|group| group.frozen == Some(true))
    }

    /// Returns the loader that feeds the rank: of several, the one that delivers most.
    pub(super) fn loader(&self) -> Option<&'a LoaderRates> {
        self.rank()?.main_loader()
    }

    /// Returns all loaders that the rank takes batches from.
    pub(super) fn loaders(&self) -> Vec<&'a LoaderRates> {
        self.rank().map_or_else(Vec::new, RankRates::loaders_in_use)
    }

    /// Returns the number of a loader if the rank has several loaders.
    pub(super) fn loader_number(&self, loader: &LoaderRates) -> Option<u32> {
        loader.number().filter(|_| self.loaders().len() > 1)
    }

    /// Returns the name of a worker: its number, after that of its loader if there are several loaders.
    pub(super) fn worker_id(&self, loader: &LoaderRates, worker: u32) -> String {
        let number = self.loader_number(loader);
        number.map_or_else(|| worker.to_string(), |number| format!("{number}:{worker}"))
    }

    /// Returns the shown loader in the last interval.
    pub(super) fn loader_now(&self) -> Option<&'a LoaderRates> {
        let id = self.loader()?.id;
        self.rank_now()?
            .loaders
            .iter()
            .find(|loader| loader.id == id)
    }

    /// Returns a worker's state at the last poll.
    pub(super) fn worker_now(&self, worker: &WorkerRates) -> WorkerNow {
        let mut workers = self.rank_now().into_iter().flat_map(RankRates::workers);
        let newest = workers.find(|other| other.key == worker.key);
        newest.map_or(worker.now, |worker| worker.now)
    }

    pub(super) fn gpus(&self) -> &'a [GpuRates] {
        self.figures().map_or(&[], |rates| &rates.gpus)
    }

    /// Returns the place of the GPU that the rank uses, found as for the verdict; the first place if that is unknown.
    pub(super) fn gpu_place(&self) -> usize {
        let used = self.figures().zip(self.rank()).and_then(|(rates, rank)| {
            let held = rates.known_gpus(rank).first().copied();
            held.or_else(|| rates.inferred_gpu(rank))
        });
        let is_used = |gpu: &GpuRates| used.is_some_and(|used| used.gpu.now.index == gpu.now.index);
        self.gpus().iter().position(is_used).unwrap_or(0)
    }

    /// Returns the device that the shown rank reports; `None` if the driver also lists it.
    pub(super) fn device(&self) -> Option<&'a DeviceRates> {
        self.rank()?.device_beside(self.gpus())
    }

    /// Returns the reported device if the driver shows no GPU, so that the device takes a GPU's place.
    pub(super) fn device_alone(&self) -> Option<&'a DeviceRates> {
        self.device().filter(|_| self.gpus().is_empty())
    }

    pub(super) fn gap(&self, source: &str) -> Option<&'a Gap> {
        self.gaps.iter().find(|gap| gap.source == source)
    }

    pub(super) fn glyphs(&self) -> &'static Glyphs {
        glyphs::of(self.config)
    }

    /// Returns the line shown where the filter matches nothing.
    pub(super) fn no_match(&self, width: u16, indent: usize) -> Line<'static> {
        let mut row = self.row(width);
        row.space(indent);
        self.with_key(row, "no match", Action::Cancel, "shows all")
    }

    /// Whether pipetop asks what to do with the launched command.
    pub(super) fn asks(&self) -> bool {
        self.command.is_some_and(|command| command.asked)
    }

    /// Returns the key to show for an action.
    pub(super) fn key(&self, action: Action) -> Option<KeyPress> {
        let keys = &self.config.keys;
        if self.asks() {
            keys.answer_key(action)
        } else {
            keys.keys(action).first().copied()
        }
    }

    /// Ends a line about something that is not visible with the key that shows it, if it has one.
    pub(super) fn with_key(
        &self,
        mut row: LineBuilder<'_>,
        text: &str,
        action: Action,
        effect: &str,
    ) -> Line<'static> {
        row.text(Role::Dim, text);
        if let Some(key) = self.key(action) {
            let key = key.to_string();
            row.item(
                0,
                &[
                    (Role::Dim, "; "),
                    (Role::Key, &key),
                    (Role::Dim, &format!(" {effect}")),
                ],
            );
        }
        row.line()
    }

    /// Returns the figures of the job; `None` if there is none.
    pub(super) fn job(&self) -> Option<&'a JobRates> {
        self.figures()?.job.as_ref()
    }

    /// Returns a text behind its label, on as many lines as it needs; `cells` is the room for the label.
    pub(super) fn paragraph(
        &self,
        width: u16,
        cells: usize,
        label: (Role, &str),
        (paint, text): (Role, &str),
    ) -> Vec<Line<'static>> {
        self.indented(width, cells, (paint, text), |row| {
            row.padded(label.0, label.1, cells);
        })
    }

    /// Returns a text on as many lines as it needs, `cells` cells from the left; `begin` draws what is before it.
    pub(super) fn indented(
        &self,
        width: u16,
        cells: usize,
        (paint, text): (Role, &str),
        begin: impl Fn(&mut LineBuilder<'_>),
    ) -> Vec<Line<'static>> {
        let parts = format::wrap(text, usize::from(width).saturating_sub(cells));
        let line = |(place, part): (usize, &String)| {
            let mut row = self.row(width);
            if place == 0 {
                begin(&mut row);
            }
            row.to(cells).sentence(paint, part).line()
        };
        parts.iter().enumerate().map(line).collect()
    }

    pub(super) fn row(&self, width: u16) -> LineBuilder<'a> {
        LineBuilder::new(&self.config.theme, self.glyphs(), width)
    }
}
