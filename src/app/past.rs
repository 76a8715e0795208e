//! Looks back at a running job. Its newest samples are kept; while the screen is paused, it shows a second engine,
//! which has replayed some of these samples, instead of the live one.
//!
//! Seeks with the same code as the replay of a recording; a replay does not use this module.

use std::time::Duration;

use crate::engine::{Engine, State};
use crate::record::Ring;
use crate::sample::Sample;
use crate::source::replay::{Position, Seek, past};
use crate::ui;

#[derive(Debug)]
pub(super) struct PastSamples {
    ring: Ring,
    /// The moment that is shown while the screen is paused.
    shown: Option<Box<ShownMoment>>,
}

/// A moment that is shown instead of now.
#[derive(Debug)]
struct ShownMoment {
    engine: Engine,
    spot: Position,
    /// The position that the seeks so far lead to. If it differs from `spot`, the engine has yet to replay up to it.
    target: Position,
    /// The newest time shown since the screen was paused; the time axis ends here.
    until: Duration,
}

impl PastSamples {
    /// Creates a store of at most this many bytes of samples.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            ring: Ring::new(budget),
            shown: None,
        }
    }

    /// Returns the state at the moment that is shown.
    pub(super) fn state(&self) -> Option<&State> {
        Some(self.shown.as_ref()?.engine.state())
    }

    /// Returns the past moment that is shown; `None` if the live state is shown. `now` is the time of the newest
    /// sample.
    pub(super) fn place(&self, now: Duration) -> Option<ui::Past> {
        let shown = self.shown.as_ref()?;
        let at = shown.engine.state().model.sample()?.at;
        Some(ui::Past {
            at,
            until: shown.until,
            ago: now.saturating_sub(at.since_start),
        })
    }

    /// Keeps a sample of a job, so that the user can look back at it.
    ///
    /// # Errors
    /// Returns an error if the sample cannot be stored.
    pub(super) fn remember(&mut self, sample: &Sample) -> std::io::Result<()> {
        self.ring.push(sample)
    }

    /// Pauses at the current moment, or resumes.
    pub(super) fn pause(&mut self, engine: &Engine) {
        self.shown = match self.shown.take() {
            Some(_) => None,
            None => self.now(engine),
        };
    }

    /// Returns the current moment; `None` before the first sample.
    fn now(&mut self, engine: &Engine) -> Option<Box<ShownMoment>> {
        let spot = self.newest(engine)?;
        Some(Box::new(ShownMoment {
            engine: engine.clone(),
            spot,
            target: spot,
            until: spot.1,
        }))
    }

    fn newest(&mut self, engine: &Engine) -> Option<Position> {
        let at = engine.state().model.sample()?.at.since_start;
        Some((self.ring.samples().len().saturating_sub(1), at))
    }

    /// Requests another moment for the next frame. Returns `false` if there is no such moment.
    pub(super) fn seek(&mut self, engine: &Engine, seek: Seek) -> bool {
        let shown = self.shown.as_ref().map(|shown| shown.target);
        let Some(here) = shown.or_else(|| self.newest(engine)) else {
            return false;
        };
        let samples = self.ring.samples();
        let (begin, end) = samples.span();
        let last = samples.len().saturating_sub(1);
        // Rates need two samples, so the first one alone shows none.
        let first = (samples.first() + 1).min(last);
        let begin = samples
            .read(first)
            .map_or(begin, |(sample, _)| sample.at.since_start);
        match seek.target(here, samples, ((first, begin), (last, end))) {
            // Seeking past the newest sample resumes the live view.
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

    /// Replays the samples up to the requested moment, once for all keys since the last frame.
    pub(super) fn settle(&mut self) {
        let Some(shown) = self.shown.as_mut() else {
            return;
        };
        if shown.spot.0 == shown.target.0 {
            return;
        }
        let samples = self.ring.samples();
        let Ok((replayed, _)) = past(samples, samples.first(), shown.target.0) else {
            // The requested sample was dropped meanwhile.
            shown.target = shown.spot;
            return;
        };
        let at = replayed.last().map(|sample| sample.at.since_start);
        shown.engine.restart();
        // Old events must not appear in the log again.
        tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::new(), || {
            for sample in replayed {
                shown.engine.push(sample);
            }
        });
        shown.spot = shown.target;
        shown.until = shown.until.max(at.unwrap_or_default());
    }
}
