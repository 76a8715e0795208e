//! Looking back at a job that runs: its newest samples are kept, and an engine that has replayed some of them is shown
//! in the place of the one that goes on.
//!
//! Seeks as a replay of a recording does, with the same code; a replay has its own past and none of this.

use std::time::Duration;

use crate::engine::{Engine, State};
use crate::record::Ring;
use crate::sample::Sample;
use crate::source::replay::{Seek, Spot, past};
use crate::ui;

#[derive(Debug)]
pub(super) struct Past {
    ring: Ring,
    /// What is shown while the screen is paused.
    shown: Option<Box<Shown>>,
}

/// A moment that is shown in the place of now.
#[derive(Debug)]
struct Shown {
    engine: Engine,
    spot: Spot,
    /// Where the last seeks went: the engine has still to go there.
    target: Spot,
    /// The newest time that was shown since the screen was paused, where its axis ends.
    until: Duration,
}

impl Past {
    /// With so many bytes for samples.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            ring: Ring::new(budget),
            shown: None,
        }
    }

    /// What is known of the moment that is shown.
    pub(super) fn state(&self) -> Option<&State> {
        Some(self.shown.as_ref()?.engine.state())
    }

    /// Which moment that is, where the newest sample was taken at `now`.
    pub(super) fn place(&self, now: Duration) -> Option<ui::Past> {
        let shown = self.shown.as_ref()?;
        let at = shown.engine.state().model.sample()?.at;
        Some(ui::Past {
            at,
            until: shown.until,
            ago: now.saturating_sub(at.since_start),
        })
    }

    /// Keeps a sample of a job, to be looked back at.
    ///
    /// # Errors
    /// Where it cannot be kept.
    pub(super) fn remember(&mut self, sample: &Sample) -> std::io::Result<()> {
        self.ring.push(sample)
    }

    /// Stops at what is shown, and goes on.
    pub(super) fn pause(&mut self, engine: &Engine) {
        self.shown = match self.shown.take() {
            Some(_) => None,
            None => self.now(engine),
        };
    }

    /// What is known now; `None` before the first sample.
    fn now(&mut self, engine: &Engine) -> Option<Box<Shown>> {
        let spot = self.newest(engine)?;
        Some(Box::new(Shown {
            engine: engine.clone(),
            spot,
            target: spot,
            until: spot.1,
        }))
    }

    fn newest(&mut self, engine: &Engine) -> Option<Spot> {
        let at = engine.state().model.sample()?.at.since_start;
        Some((self.ring.samples().len().saturating_sub(1), at))
    }

    /// Goes to another moment with the next frame. `false` where there is none to go to.
    pub(super) fn look_back(&mut self, engine: &Engine, seek: Seek) -> bool {
        let shown = self.shown.as_ref().map(|shown| shown.target);
        let Some(here) = shown.or_else(|| self.newest(engine)) else {
            return false;
        };
        let samples = self.ring.samples();
        let (begin, end) = samples.span();
        let last = samples.len().saturating_sub(1);
        match seek.target(here, samples, ((samples.first(), begin), (last, end))) {
            // From the newest on, it is now again.
            Ok(_) if seek == Seek::End && shown.is_some() => self.pause(engine),
            Ok(target) if target.0 != here.0 => {
                if shown.is_none() {
                    self.pause(engine);
                }
                if let Some(shown) = &mut self.shown {
                    shown.target = target;
                }
            }
            _ => return false,
        }
        true
    }

    /// Replays what leads to the moment that is to be shown: once for all keys since the last frame.
    pub(super) fn settle(&mut self) {
        let Some(shown) = self.shown.as_mut() else {
            return;
        };
        if shown.spot.0 == shown.target.0 {
            return;
        }
        let samples = self.ring.samples();
        let Ok((replayed, _)) = past(samples, samples.first(), shown.target.0) else {
            // It was forgotten meanwhile.
            shown.target = shown.spot;
            return;
        };
        let at = replayed.last().map(|sample| sample.at.since_start);
        shown.engine.restart();
        // The log tells of what happens now.
        tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::new(), || {
            for sample in replayed {
                shown.engine.push(sample);
            }
        });
        shown.spot = shown.target;
        shown.until = shown.until.max(at.unwrap_or_default());
    }
}
