//! Shows a recording instead of a running job.

#[cfg(feature = "lab")]
use super::runtime::live::{ReplaySession, replay};
use super::{App, trouble};
use crate::record::SOURCE;
use crate::source::replay::ReplayUpdate;
use crate::ui::Attach;
#[cfg(feature = "lab")]
use crate::{config::Config, record::Ring, sample::Sample, verdict::Kind};

/// Replays samples from memory instead of a file.
///
/// # Errors
/// Returns an error if a sample cannot be compressed or the terminal cannot be opened.
#[cfg(feature = "lab")]
pub fn replay_samples(
    samples: impl Iterator<Item = Sample>,
    config: Config,
) -> anyhow::Result<Option<Kind>> {
    let mut ring = Ring::new(usize::MAX);
    for sample in samples {
        ring.push(&sample)?;
    }
    let samples = std::mem::take(ring.samples());
    replay(ReplaySession {
        numbers: 0..=samples.len().saturating_sub(1),
        samples,
        speed: None,
        config,
    })
}

impl App {
    /// Shows what the player has played.
    pub(super) fn played(&mut self, played: ReplayUpdate) {
        if played.restart {
            self.engine.restart();
            self.attach = Attach::LookingForJob {
                wanted: "a job in the recording".to_owned(),
            };
        }
        for (number, sample) in played.samples.into_iter().enumerate() {
            // The samples before this one are too far apart for reliable marks.
            if number == played.sparse && number > 0 {
                self.engine.drop_marks();
            }
            self.sample(sample);
        }
        let place = played.place;
        if let Some(interval) = place.interval {
            self.config.interval = interval;
        }
        self.state.replay = Some(place);
        if let Some(text) = played.trouble {
            self.state.notice = Some(trouble(text));
        }
    }

    /// Shows a notice, once, when recording has stopped.
    pub(super) fn notice_recording(&mut self) {
        if !self.state.recording {
            return;
        }
        let gaps = self.engine.state().gaps();
        if let Some(gap) = gaps.iter().find(|gap| gap.source == SOURCE) {
            self.state.notice = Some(trouble(gap.reason.clone()));
            self.state.recording = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Effect, Event};
    use super::*;
    use crate::action::Action;
    use crate::config::Config;
    use crate::model::literals::{machine, training};
    use crate::record::Ring;
    use crate::sample::ReplayPosition;
    use crate::source::replay::{Player, past};
    use crate::verdict::Kind;

    fn played(restart: bool, seconds: std::ops::Range<u32>, sparse: usize) -> ReplayUpdate {
        ReplayUpdate {
            restart,
            samples: seconds.map(|at| training(f64::from(at))).collect(),
            sparse,
            place: ReplayPosition {
                at: Duration::from_secs(5),
                of: Duration::from_mins(1),
                speed: 2.0,
                paused: false,
                ended: false,
                interval: Some(Duration::from_millis(500)),
            },
            trouble: None,
        }
    }

    fn app() -> App {
        let mut app = App::new(Config::default(), "a job".to_owned());
        app.state.replay = Some(ReplayPosition::default());
        app
    }

    #[test]
    fn a_seek_replaces_what_was_shown() {
        let mut app = app();
        app.played(played(true, 0..100, 0));
        assert_eq!(app.view().history.len(), 99);
        app.played(played(true, 0..30, 10));
        assert_eq!(app.view().history.len(), 29);
        assert_eq!(app.kind(), Some(Kind::DataBound));
        assert_eq!(app.config.interval, Duration::from_millis(500));
        let place = app.view().state.replay.expect("it is a replay");
        assert_eq!((place.at.as_secs(), place.of.as_secs()), (5, 60));
    }

    #[test]
    fn a_seek_shows_the_same_as_playing_to_that_time() {
        let mut ring = Ring::new(usize::MAX);
        for at in 0..64 * 9 {
            // The job is stuck in the last minutes. For how long can be seen only in much older samples.
            let mut sample = training(f64::from(at.min(200)));
            sample.at = training(f64::from(at)).at;
            ring.push(&sample).unwrap();
        }
        let recording = ring.samples();
        let mut played = app();
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..recording.len() {
            played.sample(recording.read(number).unwrap().0);
            if number % 91 != 17 {
                continue;
            }
            let mut jumped = app();
            for sample in past(recording, 0, number).unwrap().0 {
                jumped.sample(sample);
            }
            let window = |app: &App| app.engine.state().model.window().cloned();
            assert_eq!(window(&jumped), window(&played), "at {number}");
            assert_eq!(jumped.kind(), played.kind(), "at {number}");
            kinds.extend(played.kind().map(Kind::words));
        }
        assert!(kinds.contains(Kind::Stalled.words()), "{kinds:?}");
        assert!(kinds.contains(Kind::DataBound.words()), "{kinds:?}");
    }

    #[test]
    fn keys_only_move_a_replay() {
        let mut ring = Ring::new(usize::MAX);
        for at in 0..60 {
            ring.push(&training(f64::from(at))).unwrap();
        }
        let samples = std::mem::take(ring.samples());
        let mut app = app().replaying(Player::new(samples, 0..=59, None));
        let second = Duration::from_secs(1);
        app.settle(second);
        let place = |app: &App| {
            let replay = app.view().state.replay.expect("it is a replay");
            (replay.at.as_secs(), replay.paused)
        };
        assert_eq!(place(&app), (0, false));
        // Seeks within one frame add up.
        for action in [
            Action::SeekForward,
            Action::SeekForward,
            Action::StepForward,
        ] {
            assert_eq!(app.act(action), [Effect::Draw]);
        }
        assert_eq!(place(&app), (0, false));
        app.settle(second);
        assert_eq!(place(&app), (21, true));
        assert_eq!(app.act(Action::Pause), [Effect::Draw]);
        app.settle(second);
        app.settle(3 * second);
        assert_eq!(place(&app), (23, false));
        assert!(!app.view().state.paused);
        assert_eq!(app.act(Action::NextPanel), [Effect::Draw]);
        app = App::new(Config::default(), "a job".to_owned());
        // There is no sample yet, so there is no past, and nothing to pause.
        assert_eq!(app.act(Action::SeekBack), []);
        assert_eq!(app.act(Action::Pause), []);
        assert!(!app.view().state.paused);
    }

    #[test]
    fn keys_jump_to_either_end_where_there_is_no_job() {
        let mut ring = Ring::new(usize::MAX);
        for at in 0..60 {
            ring.push(&machine(f64::from(at))).unwrap();
        }
        let samples = std::mem::take(ring.samples());
        let mut app = app().replaying(Player::new(samples, 0..=59, None));
        for (action, at) in [(Action::ToEnd, 59), (Action::ToBegin, 0)] {
            app.settle(Duration::ZERO);
            assert_eq!(app.act(action), [Effect::Draw]);
            app.settle(Duration::ZERO);
            let replay = app.view().state.replay.expect("it is a replay");
            assert_eq!(replay.at.as_secs(), at, "{action:?}");
        }
    }

    #[test]
    fn a_recording_that_stops_is_mentioned_once() {
        let mut app = App::new(Config::default(), "a job".to_owned());
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
        let notice = app.view().state.notice.clone().expect("a notice");
        assert!(notice.trouble && notice.text.contains("no space"));
        assert!(!app.view().state.recording);
        app.state.notice = None;
        app.update(stopped(1));
        assert_eq!(app.view().state.notice, None);
    }
}
