//! The position of a replay, the samples that are due, and the effect of commands.
//!
//! Does not read a clock: the caller passes the time.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::past::past;
use super::seek::{Position, Seek};
use super::update::{ReplayCommand, ReplayUpdate};
use crate::record::Samples;
use crate::sample::{ReplayPosition, Sample};

/// Recorded seconds per second.
const SPEEDS: [f64; 11] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0];
const REAL_TIME: usize = 3;
/// Samples closer together than this are returned together: a screen needs no more frames.
const MIN_GAP: Duration = Duration::from_millis(50);
/// Maximum number of samples returned together.
const MAX_SAMPLES: usize = 64;

/// One replay.
#[derive(Debug)]
pub struct Player {
    recording: Samples,
    first: Position,
    last: Position,
    /// The newest returned sample, and when it was taken. `None` before the first.
    now: Option<Position>,
    /// The one after it, read ahead.
    next: Option<(u64, Sample)>,
    interval: Option<Duration>,
    speed: f64,
    paused: bool,
    /// When a sample was last displayed, on the real clock, and the recorded time that it showed.
    since: (Duration, Duration),
    /// When samples were last returned, in real time.
    sent: Duration,
    /// Commands that have not been carried out yet.
    commands: Vec<ReplayCommand>,
    trouble: Option<String>,
}

impl Player {
    /// Replays the samples with these numbers from the first one on.
    pub fn new(mut recording: Samples, numbers: RangeInclusive<u64>, speed: Option<f64>) -> Self {
        let (begin, end) = recording.span();
        let mut spot = |number, other| {
            let sample = recording.read(number);
            (
                number,
                sample.map_or(other, |(sample, _)| sample.at.since_start),
            )
        };
        Self {
            first: spot(*numbers.start(), begin),
            last: spot(*numbers.end(), end),
            recording,
            now: None,
            next: None,
            interval: None,
            speed: speed.unwrap_or(SPEEDS[REAL_TIME]),
            paused: false,
            since: (Duration::ZERO, Duration::ZERO),
            sent: Duration::ZERO,
            commands: vec![],
            trouble: None,
        }
    }

    /// Returns what is due at this time of the real clock; `None` if nothing is.
    pub fn advance_to(&mut self, real: Duration) -> Option<ReplayUpdate> {
        if self.due()? > real {
            return None;
        }
        self.sent = real;
        Some(if self.now.is_none() {
            self.jump(self.first.0, real)
        } else if self.commands.is_empty() {
            self.play(real)
        } else {
            self.run_commands(real)
        })
    }

    /// Returns when [`Self::advance_to`] is due, in real time; `None` if nothing is left.
    pub fn due(&mut self) -> Option<Duration> {
        if self.now.is_none() || !self.commands.is_empty() {
            return Some(Duration::ZERO);
        }
        Some(self.next_due()?.max(self.sent + MIN_GAP))
    }

    /// Queues a command for the next call of [`Self::advance_to`]: all commands until then are one jump.
    pub fn command(&mut self, command: ReplayCommand) {
        self.commands.push(command);
    }

    /// Returns when the next sample is due, in real time; `None` if there is none.
    fn next_due(&mut self) -> Option<Duration> {
        if self.paused {
            return None;
        }
        let taken = self.peek()?.at.since_start;
        let (real, shown) = self.since;
        let ahead = taken.saturating_sub(shown).as_secs_f64() / self.speed;
        let ahead = Duration::try_from_secs_f64(ahead).unwrap_or(Duration::MAX);
        Some(real.saturating_add(ahead))
    }

    /// Reads the sample after the newest; skips samples that cannot be read.
    fn peek(&mut self) -> Option<&Sample> {
        if self.next.is_none() {
            let mut number = self.now.map_or(self.first.0, |(number, _)| number + 1);
            while number <= self.last.0 && self.next.is_none() {
                match self.recording.read(number) {
                    Ok((sample, _)) => self.next = Some((number, sample)),
                    Err(error) => {
                        self.trouble = Some(error.to_string());
                        number = self.recording.next_group_after(number)?;
                    }
                }
            }
        }
        self.next.as_ref().map(|(_, sample)| sample)
    }

    /// Returns the samples that are due now.
    fn play(&mut self, real: Duration) -> ReplayUpdate {
        let mut samples = vec![];
        while samples.len() < MAX_SAMPLES && self.next_due().is_some_and(|due| due <= real) {
            samples.extend(self.advance());
        }
        if self.next_due().is_some_and(|due| due <= real) {
            // The replay is faster than samples can be read: continue from here as fast as possible.
            self.anchor(real);
        }
        self.played(false, samples, 0)
    }

    fn advance(&mut self) -> Option<Sample> {
        self.peek();
        let (number, sample) = self.next.take()?;
        let at = sample.at.since_start;
        self.interval = self.now.and_then(|(_, before)| at.checked_sub(before));
        self.now = Some((number, at));
        Some(sample)
    }

    fn anchor(&mut self, real: Duration) {
        let shown = self.now.map_or(self.first.1, |(_, at)| at);
        self.since = (real, shown);
    }

    fn run_commands(&mut self, real: Duration) -> ReplayUpdate {
        let here = self.now.unwrap_or(self.first);
        let mut target = here;
        for command in std::mem::take(&mut self.commands) {
            match command {
                ReplayCommand::Pause => self.paused = !self.paused,
                ReplayCommand::Faster => self.speed = step(self.speed, true),
                ReplayCommand::Slower => self.speed = step(self.speed, false),
                ReplayCommand::Seek(seek) => {
                    self.paused |= matches!(seek, Seek::Previous | Seek::Next);
                    let ends = (self.first, self.last);
                    match seek.target(target, &mut self.recording, ends) {
                        Ok(there) => target = there,
                        Err(error) => self.trouble = Some(error.to_string()),
                    }
                }
            }
        }
        self.anchor(real);
        if target.0 == here.0 {
            return self.played(false, vec![], 0);
        }
        if target.0 == here.0 + 1 {
            let samples = self.advance().into_iter().collect();
            self.anchor(real);
            return self.played(false, samples, 0);
        }
        self.jump(target.0, real)
    }

    /// Returns a sample with as many earlier ones as the same verdict needs.
    fn jump(&mut self, to: u64, real: Duration) -> ReplayUpdate {
        self.next = None;
        let (samples, sparse) = match past(&mut self.recording, self.first.0, to) {
            Ok(past) => past,
            Err(error) => {
                self.trouble = Some(error.to_string());
                (vec![], 0)
            }
        };
        let mut newest = samples.iter().rev().map(|sample| sample.at.since_start);
        if let Some(at) = newest.next() {
            self.interval = newest.next().and_then(|before| at.checked_sub(before));
            self.now = Some((to, at));
        } else {
            self.now = self.now.or(Some((to, self.first.1)));
        }
        self.anchor(real);
        let restart = !samples.is_empty();
        self.played(restart, samples, sparse)
    }

    fn played(&mut self, restart: bool, samples: Vec<Sample>, sparse: usize) -> ReplayUpdate {
        let at = self.now.map_or(self.first.1, |(_, at)| at);
        let ended = self.peek().is_none();
        ReplayUpdate {
            restart,
            samples,
            sparse,
            place: ReplayPosition {
                at: at.saturating_sub(self.first.1),
                of: self.last.1.saturating_sub(self.first.1),
                speed: self.speed,
                paused: self.paused,
                ended,
                interval: self.interval,
            },
            trouble: self.trouble.take(),
        }
    }
}

/// Returns the next higher or lower speed.
fn step(speed: f64, faster: bool) -> f64 {
    let mut speeds = SPEEDS.into_iter();
    let next = if faster {
        speeds.find(|other| *other > speed)
    } else {
        speeds.rfind(|other| *other < speed)
    };
    next.unwrap_or(speed)
}
