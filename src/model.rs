//! The state over time: samples go in; the rates of the last interval and of the verdict's window come out, together
//! with a history of fixed size.
//!
//! Reads no clock, file or screen: the only time is that of the samples.

mod datasets;
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
#[cfg(feature = "lab")]
pub use periodicity::period_batches;
pub use processes::ProcessFigures;
use processes::ProcessReadings;
pub use progress::Progress;
use progress::WarmUp;
use rates::JobRates;
pub use rates::{Estimate, Rates};
pub use steps::Steps;
pub use window::Window;
#[cfg(test)]
pub(crate) use window::{between, rates_of};

/// The state of everything that is watched.
#[derive(Debug, Clone)]
pub struct Model {
    /// The last interval, the window that the verdict is based on, and the time since the job began.
    last: Window,
    window: Window,
    session: Window,
    /// Rates of the first two windows, computed once per sample.
    latest_rates: Option<Rates>,
    window_rates: Option<Rates>,
    /// Last rates of a job that has ended.
    ended: Option<JobRates>,
    history: History,
    watch: Watch,
    warm_up: WarmUp,
    steps: Steps,
    processes: ProcessReadings,
}

impl Model {
    /// Returns a model whose window covers the newest `window` of time. With [`Duration::MAX`] it covers everything
    /// since the job was first seen.
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
            processes: ProcessReadings::default(),
        }
    }

    /// Adds the next sample. The window restarts with another job, with a job's first batch (so that its start is
    /// not mixed in), when a stopped job goes on (the stop is neither a wait nor a step), and if time runs backwards.
    pub(crate) fn apply(&mut self, mut sample: Sample) {
        self.steps.add(self.last.sample(), &sample);
        self.history.add_polls(self.last.sample(), &sample);
        self.processes.apply(&mut sample);
        let job = |sample: &Sample| sample.job.as_ref().map(|job| job.key);
        let mut other_job = false;
        if let Some(previous) = self.last.sample() {
            // Drop the events that the previous sample already has.
            sample.drop_events(previous);
            self.watch.apply(previous, &sample, &mut self.history.marks);
            other_job = job(previous) != job(&sample);
        }
        let sample = Arc::new(sample);
        self.last.push(Arc::clone(&sample));
        if !other_job && sample.job.as_ref().is_some_and(|job| job.ended) {
            self.apply_after_end(&sample);
            return;
        }
        self.ended = None;
        let stopped = holds_a_stop(self.latest_rates.as_ref());
        self.latest_rates = self.last.rates();
        if stopped && !holds_a_stop(self.latest_rates.as_ref()) {
            self.window.restart();
        }
        if other_job {
            self.warm_up = WarmUp::default();
            self.processes = ProcessReadings::default();
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

    /// Keeps updating the machine's rates, but leaves those of the job and of its window as they last were.
    fn apply_after_end(&mut self, sample: &Sample) {
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

    /// Returns the newest sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.last.sample()
    }

    /// Returns the rates of the last interval; `None` until there are two samples.
    pub fn latest(&self) -> Option<&Rates> {
        self.latest_rates.as_ref()
    }

    /// Returns the rates of the verdict's window; `None` until there are two samples of the job.
    pub fn window(&self) -> Option<&Rates> {
        self.window_rates.as_ref()
    }

    /// Returns how far the observation of the job has come.
    pub fn progress(&self) -> Progress {
        self.warm_up.progress()
    }

    /// Returns the newest steps of each rank. They reach back further than the window.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Adds a mark for an event that was detected outside the model.
    pub(crate) fn mark(&mut self, mark: Mark) {
        self.history.mark(mark);
    }

    /// Drops all marks: between samples that are far apart, most events are missed and some are detected wrongly.
    pub(crate) fn drop_marks(&mut self) {
        self.history.marks = Marks::default();
    }

    /// Returns the resource usage of the job's processes.
    pub fn processes(&self) -> &ProcessFigures {
        self.processes.tree()
    }

    /// Drops the processes that are needed only for the list of the job's processes, once that list is closed.
    pub(crate) fn drop_processes(&mut self) {
        self.processes.drop_others();
    }

    /// Returns the waits of a rank that ended in the window, oldest first.
    pub fn waits(&self, rank: ProcessKey) -> impl Iterator<Item = &Wait> {
        self.window.waits(rank)
    }
}

/// Minimum stopped part of an interval at which its shares are too low.
const PART_STOPPED: f64 = 0.1;

/// Returns whether a rank was stopped for a part of the interval, by a signal, a debugger or its control group.
fn holds_a_stop(rates: Option<&Rates>) -> bool {
    let mut ranks = rates.map_or(&[][..], Rates::ranks).iter();
    ranks.any(|rank| rank.stopped.is_some_and(|it| it.0 >= PART_STOPPED))
}
