//! What one frame shows: figures, choices and settings as they are at a moment.

use std::time::Duration;

use ratatui::layout::Rect;

use super::format;
use super::glyphs::{self, Glyphs};
use super::line_builder::LineBuilder;
use super::listed_job::ListedJob;
use super::state::UiState;
use crate::config::Config;
use crate::last_lines::Lines;
use crate::model::rates::{GpuRates, LoaderRates, RankRates, WorkerRates};
use crate::model::{History, ProcessFigures, Rates, Steps};
use crate::sample::{Gap, OpenFiles, WorkerNow};
use crate::units::Moment;
use crate::verdict::Verdict;

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
    /// What the job's processes use. Of the past, those that every sample tells of: ranks and workers.
    pub processes: &'a ProcessFigures,
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
    /// The whole of the screen; [`super::draw`] sets it.
    pub screen: Rect,
}

/// Which moment is shown in the place of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    pub at: Moment,
    /// Where the axis of time ends: the newest that was shown since the screen was paused.
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
#[derive(Debug, Clone, PartialEq)]
pub enum Attach {
    /// No job found yet; what is being looked for, in words.
    LookingForJob {
        wanted: String,
    },
    /// Several jobs: the user chooses.
    Picker(Vec<ListedJob>),
    Attached,
    /// The job is gone; what is shown is the last of it.
    Ended,
}

impl<'a> View<'a> {
    /// Where figures come from: the verdict's window, the last interval before there is one.
    pub(super) fn figures(&self) -> Option<&'a Rates> {
        self.window.or(self.latest)
    }

    /// The time that figures cover, as panels say it: `last 10 s`.
    pub(super) fn span(&self) -> String {
        self.figures().map_or_else(String::new, |rates| {
            format!("last {}", format::span(rates.seconds))
        })
    }

    pub(super) fn ranks(&self) -> &'a [RankRates] {
        self.figures()
            .and_then(|rates| rates.job.as_ref())
            .map_or(&[], |job| &job.ranks)
    }

    /// The place of the rank that is shown: the user's choice, else the one that the verdict speaks of.
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

    /// What it is called; 0 while none is known.
    pub(super) fn rank_number(&self) -> u32 {
        let place = self.rank_place();
        self.rank().map_or(0, |rank| rank.number(place))
    }

    /// The same rank in the last interval.
    pub(super) fn rank_now(&self) -> Option<&'a RankRates> {
        let key = self.rank()?.key;
        let job = self.latest?.job.as_ref()?;
        job.ranks.iter().find(|rank| rank.key == key)
    }

    /// The loader that feeds the rank: of several, the one that delivers most.
    pub(super) fn loader(&self) -> Option<&'a LoaderRates> {
        self.rank()?.main_loader()
    }

    /// The same loader in the last interval.
    pub(super) fn loader_now(&self) -> Option<&'a LoaderRates> {
        let id = self.loader()?.id;
        self.rank_now()?
            .loaders
            .iter()
            .find(|loader| loader.id == id)
    }

    /// What a worker does at the last poll.
    pub(super) fn worker_now(&self, worker: &WorkerRates) -> WorkerNow {
        let newest = self
            .loader_now()
            .and_then(|loader| loader.workers.iter().find(|other| other.key == worker.key));
        newest.map_or(worker.now, |worker| worker.now)
    }

    pub(super) fn gpus(&self) -> &'a [GpuRates] {
        self.figures().map_or(&[], |rates| &rates.gpus)
    }

    /// The place of the GPU that the rank uses, as the verdict takes it; the first where it could be any.
    pub(super) fn gpu_place(&self) -> usize {
        let used = self.figures().zip(self.rank()).and_then(|(rates, rank)| {
            let held = rates.gpus_held(rank).first().copied();
            held.or_else(|| rates.gpu_in_place(rank))
        });
        let is_used = |gpu: &GpuRates| used.is_some_and(|used| used.gpu.now.index == gpu.now.index);
        self.gpus().iter().position(is_used).unwrap_or(0)
    }

    pub(super) fn gap(&self, source: &str) -> Option<&'a Gap> {
        self.gaps.iter().find(|gap| gap.source == source)
    }

    pub(super) fn glyphs(&self) -> &'static Glyphs {
        glyphs::of(self.config)
    }

    pub(super) fn row(&self, width: u16) -> LineBuilder<'a> {
        LineBuilder::new(&self.config.theme, self.glyphs(), width)
    }
}
