//! What it means over time: samples go in, the rates of the last interval and of the verdict's window
//! come out, and a history of fixed size stays.
//!
//! Pure: knows no clock, no file and no screen. Time is what the samples say.

mod gpu;
pub mod history;
mod interim;
mod marks;
mod overlap;
pub mod processes;
mod progress;
pub mod rates;
mod rhythm;
mod span;
pub mod steps;
mod swing;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::sample::{Sample, Wait};
use crate::units::ProcessKey;

#[cfg(test)]
pub(crate) use crate::sample::literals;

pub use history::{Axis, HISTORY, History, WorkerPlace};
pub use interim::Interim;
use marks::Watch;
pub use marks::{Mark, MarkKind, Marks};
pub use overlap::Overlap;
pub use processes::ProcessTree;
use processes::Processes;
use progress::Follow;
pub use progress::Progress;
pub use rates::{Estimate, Rates};
pub use rhythm::period_batches;
pub use steps::Steps;
pub use swing::Swing;

/// Samples that are kept at most, however long the window.
const SAMPLES: usize = 1024;

/// The state of everything watched.
#[derive(Debug)]
pub struct Model {
    /// Samples of the verdict's window, oldest first; the newest is the current one. Of a window
    /// without end: the first and the newest.
    samples: VecDeque<Sample>,
    /// What passed between the first and the newest of them.
    interim: Interim,
    /// What passed since the job began, as far as is kept: for what takes longer than the window.
    past: Interim,
    window_length: Duration,
    latest: Option<Arc<Rates>>,
    window: Option<Arc<Rates>>,
    history: History,
    watch: Watch,
    follow: Follow,
    steps: Steps,
    processes: Processes,
}

impl Model {
    /// A model whose window is the newest `window` of time; with [`Duration::MAX`] all since the job
    /// was first seen.
    pub fn new(window: Duration) -> Self {
        Self {
            samples: VecDeque::new(),
            interim: Interim::default(),
            past: Interim::default(),
            window_length: window,
            latest: None,
            window: None,
            history: History::new(),
            watch: Watch::default(),
            follow: Follow::default(),
            steps: Steps::default(),
            processes: Processes::default(),
        }
    }

    /// Takes the next sample in. The window starts anew with another job, with a job's first batch (its
    /// start is not mixed in), and where time runs backwards.
    pub fn apply(&mut self, mut sample: Sample) {
        self.steps.add(&sample);
        self.processes.apply(&mut sample);
        let Some(previous) = self.samples.back() else {
            self.follow.apply(&sample, None);
            self.samples.push_back(sample);
            return;
        };
        self.watch.apply(previous, &sample, &mut self.history.marks);
        let job = |sample: &Sample| sample.job.as_ref().map(|job| job.key);
        let other_job = job(previous) != job(&sample);
        if !other_job && sample.job.as_ref().is_some_and(|job| job.ended) {
            self.after_the_end(sample);
            return;
        }
        self.latest = Rates::between(previous, &sample).map(Arc::new);
        if other_job {
            self.follow = Follow::default();
            self.processes = Processes::default();
        }
        let rates = self.latest.as_deref().filter(|_| !other_job);
        self.follow.apply(&sample, rates);
        if let Some(rates) = &self.latest {
            self.history.push(sample.at.since_start, rates);
        }
        let backwards = sample.at.since_start < previous.at.since_start;
        if other_job || backwards || self.follow.has_just_begun() {
            self.samples.clear();
            self.interim = Interim::default();
            self.past = Interim::default();
            self.window = None;
            self.samples.push_back(sample);
            return;
        }
        self.past.add(previous, &sample);
        if self.window_length == Duration::MAX {
            self.interim.add(previous, &sample);
            self.samples.truncate(1);
            self.samples.push_back(sample);
        } else {
            self.samples.push_back(sample);
            self.slide();
        }
        self.window = match (self.samples.front(), self.samples.back()) {
            (Some(first), Some(last)) => {
                Rates::over(first, &self.interim, last).map(|mut window| {
                    self.past.add_slow_swings(&mut window);
                    self.past.add_earlier_loads(&mut window);
                    Arc::new(window)
                })
            }
            _ => None,
        };
    }

    /// The machine goes on; of the job and of its window stays what was last found.
    fn after_the_end(&mut self, sample: Sample) {
        let Some(previous) = self.samples.pop_back() else {
            return;
        };
        let before = self.latest.take().and_then(|rates| rates.job.clone());
        self.latest = Rates::between(&previous, &sample).map(|mut rates| {
            let job = before.or(rates.job.take());
            self.history.push(sample.at.since_start, &rates);
            rates.job = job;
            Arc::new(rates)
        });
        for rates in [&mut self.latest, &mut self.window].into_iter().flatten() {
            // Who keeps an earlier reading keeps it as it was.
            let running = rates.job.as_ref().is_some_and(|job| !job.ended);
            if running && let Some(job) = &mut Arc::make_mut(rates).job {
                job.ended = true;
            }
        }
        self.samples.push_back(sample);
    }

    /// Drops what lies before the window, but for the one sample that it starts from.
    fn slide(&mut self) {
        let Some(now) = self.samples.back().map(|sample| sample.at.since_start) else {
            return;
        };
        let start = now.saturating_sub(self.window_length);
        while self.samples.len() > SAMPLES
            || (self.samples.len() > 2 && self.samples[1].at.since_start <= start)
        {
            self.samples.pop_front();
        }
        self.interim = Interim::default();
        for (older, newer) in self.samples.iter().zip(self.samples.iter().skip(1)) {
            self.interim.add(older, newer);
        }
    }

    /// The newest sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Rates of the last interval; `None` until there are two samples.
    pub fn latest(&self) -> Option<&Rates> {
        self.latest.as_deref()
    }

    /// Rates of the verdict's window; `None` until there are two samples of the job.
    pub fn window(&self) -> Option<&Rates> {
        self.window.as_deref()
    }

    /// The rates of window and last interval, to be kept for later.
    pub fn kept(&self) -> (Option<Arc<Rates>>, Option<Arc<Rates>>) {
        (self.window.clone(), self.latest.clone())
    }

    /// How far the observation of the job has come.
    pub fn progress(&self) -> Progress {
        self.follow.progress()
    }

    /// The newest steps of each rank, longer back than the window.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Adds what was found to have happened elsewhere.
    pub fn mark(&mut self, mark: Mark) {
        self.history.mark(mark);
    }

    /// Forgets what happened: between samples that lie far apart, most is not seen and some is seen wrongly.
    pub fn forget_marks(&mut self) {
        self.history.marks = Marks::default();
    }

    /// What the job's processes use.
    pub fn processes(&self) -> &ProcessTree {
        self.processes.tree()
    }

    /// Nobody looks at the job's processes any more.
    pub fn forget_processes(&mut self) {
        self.processes.forget_others();
    }

    /// The waits of a rank that ended in the window, oldest first.
    pub fn waits(&self, rank: ProcessKey) -> impl Iterator<Item = &Wait> {
        self.interim
            .rank(rank)
            .into_iter()
            .flat_map(|rank| &rank.waits)
    }
}
