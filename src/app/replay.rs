//! A recording in the place of a job that runs: what it hands out, what keys ask of it, and the loop around both.

use std::fmt;
use std::ops::RangeInclusive;

use tokio::sync::mpsc;

use super::past::{LEAP, SEEK};
use super::run::Outside;
use super::wiring::{blocked, keys, signals};
use super::{App, Flow, OBSERVED};
use crate::action::Action;
use crate::config::Config;
use crate::model::Model;
use crate::record::{Recording, SOURCE};
use crate::source::replay::{Played, Replay, Wish};
use crate::terminal::{self, Screen};
use crate::ui;
use crate::ui::{Attach, Notice};
use crate::verdict::{Judge, Kind};

/// The replay as the loop sees it.
///
/// The order matters: a replay that waits for somebody to take what it played ends when nobody can.
pub struct Remote {
    pub played: mpsc::Receiver<Played>,
    /// Tells the replay.
    pub wish: Box<dyn FnMut(Wish)>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

/// The next that is played; without a replay, never anything.
pub(super) async fn next(remote: Option<&mut Remote>) -> Option<Played> {
    match remote {
        Some(remote) => remote.played.recv().await,
        None => std::future::pending().await,
    }
}

/// What to replay, and how.
#[derive(Debug)]
pub struct Film {
    pub recording: Recording,
    /// Of the samples to show, the numbers.
    pub numbers: RangeInclusive<u64>,
    /// Recorded seconds in a second; `None` = as they were taken.
    pub speed: Option<f64>,
    pub config: Config,
    /// What is to be known from the start, in words.
    pub notice: Option<String>,
}

/// Replays on the terminal; gives the kind of the last verdict.
///
/// # Errors
/// Where no thread can be started or the terminal cannot be taken.
pub fn replay(film: Film) -> anyhow::Result<Option<Kind>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        terminal::use_mouse(film.config.mouse);
        let signals = signals()?;
        // One slot: a screen that cannot keep up slows the replay down.
        let (send, played) = mpsc::channel(1);
        let (_samples, none) = mpsc::channel(1);
        let (_tell, told) = mpsc::channel(1);
        let mut app = App::new(film.config, OBSERVED, "a job in the recording".to_owned());
        app.state.notice = film.notice.map(trouble);
        app.state.replay = Some(ui::Replay::default());
        let player = Replay::start(film.recording, film.numbers, film.speed, move |played| {
            send.blocking_send(played).is_ok()
        })?;
        let mut screen = Screen::open()?;
        let outside = Outside {
            keys: keys()?,
            samples: none,
            signals,
            end: || {},
            ask: |_| {},
            terminal: |flow: &Flow| match flow {
                Flow::Suspend => terminal::suspend(),
                _ => terminal::resume(),
            },
            told,
            blocked: blocked(),
            span: None,
            replay: Some(Remote {
                played,
                wish: Box::new(move |wish| player.wish(wish)),
            }),
        };
        let ended = app.run(&mut screen.terminal, outside).await;
        drop(screen);
        ended.map(|()| app.kind())
    })
}

fn trouble(text: String) -> Notice {
    Notice {
        text,
        trouble: true,
    }
}

impl App {
    /// Takes in what was played.
    pub(super) fn played(&mut self, played: Played) -> Flow {
        if played.anew {
            self.model = Model::new(self.window);
            self.judge = Judge::new();
            self.verdict = None;
            self.past.forget();
            self.attach = Attach::LookingForJob {
                wanted: "a job in the recording".to_owned(),
            };
        }
        for (number, sample) in played.samples.into_iter().enumerate() {
            // Up to here they lie far apart.
            if number == played.sparse && number > 0 {
                self.model.forget_marks();
            }
            self.sample(sample);
        }
        let place = played.place;
        if let Some(interval) = place.interval {
            self.config.interval = interval;
        }
        self.state.replay = Some(ui::Replay {
            at: place.at,
            of: place.of,
            speed: place.speed,
            paused: place.paused,
            ended: place.ended,
        });
        if let Some(text) = played.trouble {
            self.state.notice = Some(trouble(text));
        }
        Flow::Draw
    }

    /// What an action asks of a replay; `None` where it is none of its business, or there is no replay.
    pub(super) fn wish(&self, action: Action) -> Option<Wish> {
        self.state.replay?;
        Some(match action {
            Action::Freeze => Wish::Pause,
            Action::IntervalLonger => Wish::Faster,
            Action::IntervalShorter => Wish::Slower,
            Action::SeekBack => Wish::Seek(-(SEEK.cast_signed())),
            Action::SeekForward => Wish::Seek(SEEK.cast_signed()),
            Action::LeapBack => Wish::Seek(-(LEAP.cast_signed())),
            Action::LeapForward => Wish::Seek(LEAP.cast_signed()),
            Action::StepBack => Wish::Step(-1),
            Action::StepForward => Wish::Step(1),
            Action::ToBegin => Wish::Begin,
            Action::ToEnd => Wish::End,
            _ => return None,
        })
    }

    /// Tells once that nothing is recorded any more.
    pub(super) fn tell_of_recording(&mut self) {
        if !self.state.recording {
            return;
        }
        let gaps = self.model.sample().map_or(&[][..], |sample| &sample.gaps);
        if let Some(gap) = gaps.iter().find(|gap| gap.source == SOURCE) {
            self.state.notice = Some(trouble(gap.reason.clone()));
            self.state.recording = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::app::Event;
    use crate::model::literals::training;
    use crate::record::{self, Writer};
    use crate::source::replay::{Place, past};

    fn played(anew: bool, seconds: std::ops::Range<u32>, sparse: usize) -> Event {
        Event::Played(Box::new(Played {
            anew,
            samples: seconds.map(|at| training(f64::from(at))).collect(),
            sparse,
            place: Place {
                at: Duration::from_secs(5),
                of: Duration::from_mins(1),
                speed: 2.0,
                paused: false,
                ended: false,
                interval: Some(Duration::from_millis(500)),
            },
            trouble: None,
        }))
    }

    fn app() -> App {
        let mut app = App::new(Config::default(), OBSERVED, "a job".to_owned());
        app.state.replay = Some(ui::Replay::default());
        app
    }

    #[test]
    fn a_jump_forgets_what_was_shown_and_shows_its_own() {
        let mut app = app();
        app.update(played(true, 0..100, 0));
        assert_eq!(app.view().history.len(), 99);
        assert_eq!(app.update(played(true, 0..30, 10)), Flow::Draw);
        assert_eq!(app.view().history.len(), 29);
        assert_eq!(app.kind(), Some(Kind::DataBound));
        assert_eq!(app.config.interval, Duration::from_millis(500));
        let place = app.view().state.replay.expect("it is a replay");
        assert_eq!((place.at.as_secs(), place.of.as_secs()), (5, 60));
    }

    #[test]
    fn what_is_shown_after_a_seek_is_what_playing_there_would_show() {
        let folder = tempfile::tempdir().unwrap();
        let options = record::Options {
            path: folder.path().join("run.rec"),
            size: record::SIZE,
            command_lines: true,
            interval: Duration::from_secs(1),
        };
        let mut writer = Writer::create(&options).unwrap();
        for at in 0..64 * 9 {
            // The job stands still for the last minutes: how long, only what lies far before can tell.
            let mut sample = training(f64::from(at.min(200)));
            sample.at = training(f64::from(at)).at;
            writer.write(&sample).unwrap();
        }
        writer.finish().unwrap();
        let mut recording = Recording::open(&options.path).unwrap();
        let mut played = app();
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..recording.len() {
            played.sample(recording.read(number).unwrap().0);
            if number % 91 != 17 {
                continue;
            }
            let mut jumped = app();
            for sample in past(&mut recording, 0, number).unwrap().0 {
                jumped.sample(sample);
            }
            assert_eq!(jumped.model.window(), played.model.window(), "at {number}");
            assert_eq!(jumped.kind(), played.kind(), "at {number}");
            kinds.extend(played.kind().map(Kind::words));
        }
        assert!(kinds.contains(Kind::Stalled.words()), "{kinds:?}");
        assert!(kinds.contains(Kind::DataBound.words()), "{kinds:?}");
    }

    #[test]
    fn keys_move_a_replay_and_nothing_else() {
        let mut app = app();
        assert_eq!(app.act(Action::Freeze), Flow::Play(Wish::Pause));
        assert_eq!(app.act(Action::SeekBack), Flow::Play(Wish::Seek(-10)));
        assert_eq!(app.act(Action::StepForward), Flow::Play(Wish::Step(1)));
        assert!(!app.view().state.frozen);
        assert_eq!(app.act(Action::NextPanel), Flow::Draw);
        app.state.replay = None;
        // Nothing was read yet: there is no past and nothing to stop at.
        assert_eq!(app.act(Action::SeekBack), Flow::Continue);
        assert_eq!(app.act(Action::Freeze), Flow::Draw);
        assert!(!app.view().state.frozen);
    }

    #[test]
    fn a_recording_that_stops_is_told_once() {
        let mut app = App::new(Config::default(), OBSERVED, "a job".to_owned());
        app.state.recording = true;
        let stopped = |at: u32| {
            let mut sample = training(f64::from(at));
            sample.gaps.push(crate::sample::Gap {
                source: SOURCE.to_owned(),
                reason: "recording has stopped: no space".to_owned(),
                hint: String::new(),
            });
            Event::Sample(Box::new(sample))
        };
        app.update(stopped(0));
        let notice = app.view().state.notice.clone().expect("it is told");
        assert!(notice.trouble && notice.text.contains("no space"));
        assert!(!app.view().state.recording);
        app.state.notice = None;
        app.update(stopped(1));
        assert_eq!(app.view().state.notice, None);
    }
}
