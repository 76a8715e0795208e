//! Where a replay is, what is due when, and what a wish makes of it.
//!
//! Only its loop asks the clock: all else is told the time.

use std::ops::RangeInclusive;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::past::past;
use super::{Place, Played, Wish};
use crate::record::Recording;
use crate::sample::Sample;
use crate::source::clock::Clock;

/// Recorded seconds in a second.
const SPEEDS: [f64; 11] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0];
const REAL_TIME: usize = 3;
/// Samples that come closer together go out together: a screen needs no more frames than this.
const TOGETHER: Duration = Duration::from_millis(50);
/// Samples that go out together at most.
const MOST: usize = 64;

/// One replay.
pub(super) struct Player {
    pub(super) recording: Recording,
    first: u64,
    last: u64,
    first_at: Duration,
    last_at: Duration,
    /// The newest sample that was handed out, and when it was taken. `None` before the first.
    now: Option<(u64, Duration)>,
    /// The one after it, read ahead.
    next: Option<(u64, Sample)>,
    interval: Option<Duration>,
    speed: f64,
    paused: bool,
    /// A moment of real time, and what was shown then.
    since: (Duration, Duration),
    trouble: Option<String>,
}

impl Player {
    pub(super) fn new(
        mut recording: Recording,
        numbers: RangeInclusive<u64>,
        speed: Option<f64>,
    ) -> Self {
        let (first, last) = (*numbers.start(), *numbers.end());
        let (begin, end) = recording.span();
        let mut at = |number| {
            recording
                .read(number)
                .map(|(sample, _)| sample.at.since_start)
        };
        Self {
            first,
            last,
            first_at: at(first).unwrap_or(begin),
            last_at: at(last).unwrap_or(end),
            recording,
            now: None,
            next: None,
            interval: None,
            speed: speed.unwrap_or(SPEEDS[REAL_TIME]),
            paused: false,
            since: (Duration::ZERO, Duration::ZERO),
            trouble: None,
        }
    }

    pub(super) fn run(
        mut self,
        clock: Clock,
        asked: &mpsc::Receiver<Wish>,
        mut send: impl FnMut(Played) -> bool,
    ) {
        let played = self.jump(self.first, clock.since_start());
        if !send(played) {
            return;
        }
        let mut sent = clock.since_start();
        loop {
            let now = clock.since_start();
            let pause = match self.due() {
                Some(due) => due.max(sent + TOGETHER).saturating_sub(now),
                None => Duration::MAX,
            };
            let played = match asked.recv_timeout(pause) {
                Ok(wish) => {
                    // Keys that were held down while the last picture was made are one wish.
                    let wishes: Vec<Wish> = std::iter::once(wish).chain(asked.try_iter()).collect();
                    self.grant(&wishes, clock.since_start())
                }
                Err(RecvTimeoutError::Timeout) => self.play(clock.since_start()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            sent = clock.since_start();
            if !send(played) {
                return;
            }
        }
    }

    /// When the next sample is due, in real time; `None` where none is.
    pub(super) fn due(&mut self) -> Option<Duration> {
        if self.paused {
            return None;
        }
        let taken = self.peek()?.at.since_start;
        let (real, shown) = self.since;
        let ahead = taken.saturating_sub(shown).as_secs_f64() / self.speed;
        let ahead = Duration::try_from_secs_f64(ahead).unwrap_or(Duration::MAX);
        Some(real.saturating_add(ahead))
    }

    /// The sample after the newest; what cannot be read is passed over.
    fn peek(&mut self) -> Option<&Sample> {
        if self.next.is_none() {
            let mut number = self.now.map_or(self.first, |(number, _)| number + 1);
            while number <= self.last && self.next.is_none() {
                match self.recording.read(number) {
                    Ok((sample, _)) => self.next = Some((number, sample)),
                    Err(error) => {
                        self.trouble = Some(error.to_string());
                        number = self.recording.behind(number)?;
                    }
                }
            }
        }
        self.next.as_ref().map(|(_, sample)| sample)
    }

    /// Hands out what is due by now.
    pub(super) fn play(&mut self, real: Duration) -> Played {
        let mut samples = vec![];
        while samples.len() < MOST && self.due().is_some_and(|due| due <= real) {
            samples.extend(self.advance());
        }
        if self.due().is_some_and(|due| due <= real) {
            // Quicker than it can be shown: from here on as fast as it goes.
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
        let shown = self.now.map_or(self.first_at, |(_, at)| at);
        self.since = (real, shown);
    }

    pub(super) fn grant(&mut self, wishes: &[Wish], real: Duration) -> Played {
        let here = self.now.map_or((self.first, self.first_at), |now| now);
        let mut target = here;
        for wish in wishes {
            match *wish {
                Wish::Pause => self.paused = !self.paused,
                Wish::Faster => self.speed = step(self.speed, true),
                Wish::Slower => self.speed = step(self.speed, false),
                Wish::Seek(seconds) => {
                    let from = target.0;
                    target = self.at(moved(target.1, seconds));
                    if target.0 == from {
                        // The next sample lies farther away than that.
                        let number = from.saturating_add_signed(seconds.signum());
                        target = self.number(number.clamp(self.first, self.last));
                    }
                }
                Wish::Step(samples) => {
                    self.paused = true;
                    let number = target.0.saturating_add_signed(samples);
                    target = self.number(number.clamp(self.first, self.last));
                }
                Wish::Begin => target = (self.first, self.first_at),
                Wish::End => target = (self.last, self.last_at),
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

    /// The sample that is shown at this time, and the time: two seeks in one go add up.
    pub(super) fn at(&mut self, time: Duration) -> (u64, Duration) {
        let time = time.clamp(self.first_at, self.last_at);
        match self.recording.at(time) {
            Ok(number) => (number.clamp(self.first, self.last), time),
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.now.unwrap_or((self.first, self.first_at))
            }
        }
    }

    fn number(&mut self, number: u64) -> (u64, Duration) {
        match self.recording.read(number) {
            Ok((sample, _)) => (number, sample.at.since_start),
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.now.unwrap_or((self.first, self.first_at))
            }
        }
    }

    /// Hands out a sample with as much of what lies before it as tells the same.
    pub(super) fn jump(&mut self, to: u64, real: Duration) -> Played {
        self.next = None;
        let (samples, sparse) = match past(&mut self.recording, self.first, to) {
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
            self.now = self.now.or(Some((to, self.first_at)));
        }
        self.anchor(real);
        let anew = !samples.is_empty();
        self.played(anew, samples, sparse)
    }

    fn played(&mut self, anew: bool, samples: Vec<Sample>, sparse: usize) -> Played {
        let at = self.now.map_or(self.first_at, |(_, at)| at);
        let ended = self.peek().is_none();
        Played {
            anew,
            samples,
            sparse,
            place: Place {
                at: at.saturating_sub(self.first_at),
                of: self.last_at.saturating_sub(self.first_at),
                speed: self.speed,
                paused: self.paused,
                ended,
                interval: self.interval,
            },
            trouble: self.trouble.take(),
        }
    }
}

fn moved(time: Duration, seconds: i64) -> Duration {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        time.saturating_sub(by)
    } else {
        time.saturating_add(by)
    }
}

/// The next speed, up or down.
fn step(speed: f64, faster: bool) -> f64 {
    let mut speeds = SPEEDS.into_iter();
    let next = if faster {
        speeds.find(|other| *other > speed)
    } else {
        speeds.rfind(|other| *other < speed)
    };
    next.unwrap_or(speed)
}
