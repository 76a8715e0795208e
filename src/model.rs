//! What it means over time: samples go in, the rates of the last interval and of the verdict's window
//! come out, and a history of fixed size stays.
//!
//! Pure: knows no clock, no file and no screen. Time is what the samples say.

mod gpu;
pub mod history;
mod interval;
mod marks;
mod oscillation;
mod overlap;
mod periodicity;
pub mod processes;
mod progress;
pub mod rates;
pub mod steps;
pub mod timeline;
mod usage;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::sample::{Sample, Wait};
use crate::units::ProcessKey;

#[cfg(test)]
pub(crate) use crate::sample::literals;

#[cfg(feature = "testing")]
pub use history::HISTORY;
pub use history::{Axis, History, WorkerPlace};
use marks::Watch;
pub use marks::{Mark, MarkKind, Marks};
pub use oscillation::Oscillation;
pub use overlap::Overlap;
pub use periodicity::period_batches;
pub use processes::ProcessFigures;
use processes::Processes;
pub use progress::Progress;
use progress::WarmUp;
use rates::JobRates;
pub use rates::{Estimate, Rates};
pub use steps::Steps;
pub use window::Window;
#[cfg(test)]
pub(crate) use window::{between, rates_of};

/// The state of everything watched.
#[derive(Debug, Clone)]
pub struct Model {
    /// The last interval, the time that a verdict speaks of, and all since the job began.
    last: Window,
    window: Window,
    session: Window,
    /// The rates of the first two, made once a sample.
    latest_rates: Option<Rates>,
    window_rates: Option<Rates>,
    /// What was last found of a job that has ended.
    ended: Option<JobRates>,
    history: History,
    watch: Watch,
    warm_up: WarmUp,
    steps: Steps,
    processes: Processes,
}

impl Model {
    /// A model whose window is the newest `window` of time; with [`Duration::MAX`] all since the job
    /// was first seen.
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            last: Window::new(Duration::ZERO),
            window: Window::new(window),
            session: Window::new(Duration::MAX),
            latest_rates: None,
            window_rates: None,
            ended: None,
            history: History::new(),
            watch: Watch::default(),
            warm_up: WarmUp::default(),
            steps: Steps::default(),
            processes: Processes::default(),
        }
    }

    /// Takes the next sample in. The window starts anew with another job, with a job's first batch (its
    /// start is not mixed in), and where time runs backwards.
    pub(crate) fn apply(&mut self, mut sample: Sample) {
        self.steps.add(self.last.sample(), &sample);
        self.history.add_polls(self.last.sample(), &sample);
        self.processes.apply(&mut sample);
        let job = |sample: &Sample| sample.job.as_ref().map(|job| job.key);
        let mut other_job = false;
        if let Some(previous) = self.last.sample() {
            // Each event is kept once.
            sample.forget_events(previous);
            self.watch.apply(previous, &sample, &mut self.history.marks);
            other_job = job(previous) != job(&sample);
        }
        let sample = Arc::new(sample);
        self.last.push(Arc::clone(&sample));
        if !other_job && sample.job.as_ref().is_some_and(|job| job.ended) {
            self.after_the_end(&sample);
            return;
        }
        self.ended = None;
        self.latest_rates = self.last.rates();
        if other_job {
            self.warm_up = WarmUp::default();
            self.processes = Processes::default();
        }
        let rates = self.latest_rates.as_ref();
        self.warm_up.apply(&sample, rates.filter(|_| !other_job));
        if let Some(rates) = rates {
            self.history.push(sample.at.since_start, rates);
        }
        if other_job || self.warm_up.has_just_begun() {
            self.window.clear();
            self.session.clear();
        }
        self.session.push(Arc::clone(&sample));
        self.window.push(sample);
        let before = self.window_rates.take();
        self.window_rates = self.window.rates_within(&self.session);
        let seconds = self
            .latest_rates
            .as_ref()
            .map_or(0.0, |rates| rates.seconds);
        if let (Some(now), Some(before)) = (&mut self.window_rates, before) {
            now.keep_loaders(&before, seconds);
        }
    }

    /// The machine goes on; of the job and of its window stays what was last found.
    fn after_the_end(&mut self, sample: &Sample) {
        let Some(rates) = self.last.rates() else {
            return;
        };
        let ended = |job: &JobRates| JobRates {
            ended: true,
            ..job.clone()
        };
        if self.ended.is_none() {
            let latest = self.latest_rates.as_ref();
            let job = latest.and_then(|rates| rates.job.as_ref());
            self.ended = job.or(rates.job.as_ref()).map(ended);
            let window = self.window_rates.as_ref();
            self.window_rates = window.map(|window| Rates {
                job: window.job.as_ref().map(ended),
                ..window.clone()
            });
        }
        let machine = Rates { job: None, ..rates };
        self.history.push(sample.at.since_start, &machine);
        self.latest_rates = Some(Rates {
            job: self.ended.clone(),
            ..machine
        });
    }

    /// The newest sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.last.sample()
    }

    /// Rates of the last interval; `None` until there are two samples.
    pub fn latest(&self) -> Option<&Rates> {
        self.latest_rates.as_ref()
    }

    /// Rates of the verdict's window; `None` until there are two samples of the job.
    pub fn window(&self) -> Option<&Rates> {
        self.window_rates.as_ref()
    }

    /// How far the observation of the job has come.
    pub fn progress(&self) -> Progress {
        self.warm_up.progress()
    }

    /// The newest steps of each rank, longer back than the window.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Adds what was found to have happened elsewhere.
    pub(crate) fn mark(&mut self, mark: Mark) {
        self.history.mark(mark);
    }

    /// Forgets what happened: between samples that lie far apart, most is not seen and some is seen wrongly.
    pub(crate) fn forget_marks(&mut self) {
        self.history.marks = Marks::default();
    }

    /// What the job's processes use.
    pub fn processes(&self) -> &ProcessFigures {
        self.processes.tree()
    }

    /// Nobody looks at the job's processes any more.
    pub(crate) fn forget_processes(&mut self) {
        self.processes.forget_others();
    }

    /// The waits of a rank that ended in the window, oldest first.
    pub fn waits(&self, rank: ProcessKey) -> impl Iterator<Item = &Wait> {
        self.window.waits(rank)
    }
}
