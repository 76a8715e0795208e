//! Looking back: the moments that are kept, and which of them the screen shows in the place of now.
//!
//! What is read goes on being taken in meanwhile; a replay has its own past and none of this.

mod moments;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use super::{App, Flow};
use crate::action::Action;
use crate::model::ProcessTree;
use crate::ui;
pub(super) use moments::Moment;
use moments::Moments;
use turns::Turns;

/// Seconds that a seek and a leap go.
pub(super) const SEEK: u64 = 10;
pub(super) const LEAP: u64 = 600;

#[derive(Debug)]
pub(super) struct Past {
    moments: Moments,
    turns: Turns,
    /// What is shown while the screen is frozen.
    pub(super) shown: Option<Shown>,
}

#[derive(Debug)]
pub(super) struct Shown {
    pub(super) moment: Arc<Moment>,
    /// What the job's processes used when the screen was frozen; `None` where another moment than that is shown.
    pub(super) processes: Option<ProcessTree>,
    /// The newest time that was shown since the screen was frozen, where its axis ends.
    until: Duration,
}

impl Past {
    /// With so many bytes for moments.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            moments: Moments::new(budget),
            turns: Turns::default(),
            shown: None,
        }
    }

    pub(super) fn forget(&mut self) {
        self.moments.clear();
        self.turns = Turns::default();
        self.shown = None;
    }

    fn show(&mut self, moment: Arc<Moment>, processes: Option<ProcessTree>) {
        let at = moment.at.since_start;
        let until = self.shown.as_ref().map_or(at, |shown| shown.until.max(at));
        self.shown = Some(Shown {
            moment,
            processes,
            until,
        });
    }
}

impl Shown {
    /// `now` is when the newest sample was taken.
    pub(super) fn place(&self, now: Duration) -> ui::Past {
        ui::Past {
            at: self.moment.at,
            until: self.until,
            ago: now.saturating_sub(self.moment.at.since_start),
        }
    }
}

impl App {
    /// Keeps what is known now, to be looked back at, and marks where the verdict turned.
    pub(super) fn remember(&mut self) {
        let at = self.model.sample().map(|sample| sample.at.since_start);
        if let (Some(at), Some(verdict)) = (at, &self.verdict)
            && let Some(mark) = self.past.turns.judged(at, verdict)
        {
            self.model.mark(mark);
        }
        if self.state.replay.is_none()
            && let Some(moment) = self.moment()
        {
            self.past.moments.push(moment);
        }
    }

    /// What is known now; `None` before the first sample.
    fn moment(&self) -> Option<Moment> {
        let sample = self.model.sample()?;
        let (window, latest) = self.model.kept();
        Some(Moment {
            at: sample.at,
            window,
            latest,
            verdict: self.verdict.clone(),
            gaps: self.past.moments.gaps(&sample.gaps),
            uptime: self.uptime(),
        })
    }

    /// Stops at what is shown, and goes on.
    pub(super) fn freeze(&mut self) {
        match self.past.shown.take() {
            Some(_) => {}
            None => {
                if let Some(moment) = self.moment() {
                    let processes = self.model.processes().clone();
                    self.past.show(Arc::new(moment), Some(processes));
                }
            }
        }
        self.state.frozen = self.past.shown.is_some();
    }

    /// Shows another moment: the nearest that is kept to where the wish goes, at least the next one.
    pub(super) fn travel(&mut self, action: Action) -> Flow {
        let Some(now) = self.model.sample().map(|sample| sample.at.since_start) else {
            return Flow::Continue;
        };
        let at = self.past.shown.as_ref();
        let at = at.map_or(now, |shown| shown.moment.at.since_start);
        let moments = &self.past.moments;
        let seconds = Duration::from_secs;
        let found = match action {
            Action::StepBack => moments.before(at),
            Action::StepForward => moments.after(at),
            Action::SeekBack => moments.near(at.saturating_sub(seconds(SEEK)), at),
            Action::LeapBack => moments.near(at.saturating_sub(seconds(LEAP)), at),
            Action::SeekForward => moments.near(at + seconds(SEEK), at),
            Action::LeapForward => moments.near(at + seconds(LEAP), at),
            Action::ToBegin => moments.oldest(),
            Action::ToEnd if self.past.shown.is_some() => {
                self.freeze();
                return Flow::Draw;
            }
            _ => None,
        };
        let Some(moment) = found.cloned() else {
            return Flow::Continue;
        };
        if self.past.shown.is_none() {
            self.freeze();
        }
        self.past.show(moment, None);
        Flow::Draw
    }
}
