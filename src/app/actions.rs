//! What each action does, in each mode: the one place that reads actions.
//!
//! The match names every action and every mode, so that a new one does not compile before it stands here.

use std::time::Duration;

use super::{App, Effect, Launched, Past};
use crate::action::Action;
use crate::config::INTERVALS;
use crate::source::replay::{ReplayCommand, Seek};
use crate::source::sampler::Request;
use crate::ui::{self, Attach, Choices, Notice, UiState};

/// Seconds that a seek and a leap go.
const SEEK: i64 = 10;
const LEAP: i64 = 600;

/// Times between two readings that keys step through, in milliseconds.
const STEPS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// What actions work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The question what becomes of the launched command is open.
    Question,
    Replay,
    /// A job that runs, the list of jobs to choose from, or nothing yet.
    Live,
}

impl App {
    fn mode(&self) -> Mode {
        if self.launched.as_ref().is_some_and(Launched::asks) {
            Mode::Question
        } else if self.player.is_some() {
            Mode::Replay
        } else {
            Mode::Live
        }
    }

    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        use Mode::{Live, Question, Replay};
        match (action, self.mode()) {
            (Action::Redraw, Question | Replay | Live) => vec![Effect::Redraw],
            (Action::Suspend, Question | Replay | Live) => vec![Effect::SuspendTerminal],
            (Action::Quit, Question | Replay | Live) => self.quit(),
            (Action::EndCommand, Question) => self.answer(Launched::end),
            (Action::Detach, Question) => self.answer(Launched::detach),
            (Action::Cancel, Question) => self.answer(Launched::go_on),
            // The question is not open; or it is, and everything else waits for the answer.
            (Action::EndCommand | Action::Detach, Replay | Live)
            | (
                Action::Help
                | Action::Pause
                | Action::NextPanel
                | Action::PreviousPanel
                | Action::Up
                | Action::Down
                | Action::PageUp
                | Action::PageDown
                | Action::Select
                | Action::Tree
                | Action::Filter
                | Action::SortNext
                | Action::SortReverse
                | Action::NextRank
                | Action::IntervalShorter
                | Action::IntervalLonger
                | Action::ZoomIn
                | Action::ZoomOut
                | Action::Save
                | Action::Copy
                | Action::SeekBack
                | Action::SeekForward
                | Action::LeapBack
                | Action::LeapForward
                | Action::StepBack
                | Action::StepForward
                | Action::ToBegin
                | Action::ToEnd,
                Question,
            ) => vec![],

            (Action::Pause, Replay) => self.command(ReplayCommand::Pause),
            (Action::Pause, Live) => self.pause(),
            (Action::IntervalShorter, Replay) => self.command(ReplayCommand::Slower),
            (Action::IntervalShorter, Live) => self.interval(false),
            (Action::IntervalLonger, Replay) => self.command(ReplayCommand::Faster),
            (Action::IntervalLonger, Live) => self.interval(true),
            (Action::SeekBack | Action::SeekForward, Replay | Live) if self.state.points() => {
                self.point(action == Action::SeekBack)
            }
            (Action::SeekBack, Replay | Live) => self.seek(Seek::Seconds(-SEEK)),
            (Action::SeekForward, Replay | Live) => self.seek(Seek::Seconds(SEEK)),
            (Action::LeapBack, Replay | Live) => self.seek(Seek::Seconds(-LEAP)),
            (Action::LeapForward, Replay | Live) => self.seek(Seek::Seconds(LEAP)),
            (Action::StepBack, Replay | Live) => self.seek(Seek::Previous),
            (Action::StepForward, Replay | Live) => self.seek(Seek::Next),
            (Action::ToBegin, Replay | Live) => self.seek(Seek::Begin),
            (Action::ToEnd, Replay | Live) => self.seek(Seek::End),

            (Action::Save, Replay | Live) => vec![Effect::Save],
            (Action::Copy, Replay | Live) => self.copy(),
            (Action::ZoomIn, Replay | Live) => self.zoom(false),
            (Action::ZoomOut, Replay | Live) => self.zoom(true),
            (Action::Select, Replay | Live) => self.select(),
            (Action::Tree, Replay | Live) => self.tree(),
            (Action::Cancel, Replay | Live) => self.cancel(),
            (Action::SortNext, Replay | Live) => {
                self.state.sort_by_next(&self.config.columns);
                vec![Effect::Draw]
            }
            (Action::Help, Replay | Live) => self.look(|state, _| state.toggle_help()),
            (Action::NextPanel, Replay | Live) => self.look(|state, _| state.next_panel()),
            (Action::PreviousPanel, Replay | Live) => self.look(|state, _| state.previous_panel()),
            (Action::Up, Replay | Live) => self.look(UiState::up),
            (Action::Down, Replay | Live) => self.look(UiState::down),
            (Action::PageUp, Replay | Live) => self.look(UiState::page_up),
            (Action::PageDown, Replay | Live) => self.look(UiState::page_down),
            (Action::Filter, Replay | Live) => self.look(|state, _| state.open_filter()),
            (Action::SortReverse, Replay | Live) => self.look(|state, _| state.reverse()),
            (Action::NextRank, Replay | Live) => self.look(UiState::next_rank),
        }
    }

    fn pause(&mut self) -> Vec<Effect> {
        self.state.cursor = None;
        self.past.pause(&self.engine);
        self.state.paused = self.past.state().is_some();
        vec![Effect::Draw]
    }

    /// Moves the timeline's cursor, over a picture that stands still.
    fn point(&mut self, back: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.state.is_still() {
            self.state.cursor = None;
            effects = self.act(Action::Pause);
        }
        self.state.point(back);
        effects.extend(self.look(|_, _| ()));
        effects
    }

    /// Changes only what is looked at, among what there is to choose from.
    fn look(&mut self, change: impl FnOnce(&mut UiState, &Choices)) -> Vec<Effect> {
        let choices = ui::choices(&self.view());
        change(&mut self.state, &choices);
        vec![Effect::Draw]
    }

    /// Ends, but for a launched command: what becomes of that is asked first.
    fn quit(&mut self) -> Vec<Effect> {
        match &mut self.launched {
            Some(launched) => launched.ask(),
            None => vec![Effect::Quit],
        }
    }

    fn answer(&mut self, answer: impl FnOnce(&mut Launched) -> Vec<Effect>) -> Vec<Effect> {
        self.launched.as_mut().map_or_else(Vec::new, answer)
    }

    fn select(&mut self) -> Vec<Effect> {
        match self.attach {
            Attach::Picker(_) => match self.marked() {
                Some(pid) => {
                    self.state.chosen = true;
                    vec![Effect::Draw, Effect::Sampler(Request::Attach(pid))]
                }
                None => vec![],
            },
            Attach::LookingForJob { .. } => vec![],
            Attach::Attached | Attach::Ended => self.look(UiState::select),
        }
    }

    fn tree(&mut self) -> Vec<Effect> {
        if !self.has_job() {
            return vec![];
        }
        self.look(|state, _| state.toggle_tree())
    }

    fn cancel(&mut self) -> Vec<Effect> {
        if ui::goes_to_list(&self.view()) {
            // Nothing of this job is said of the next one.
            self.state = UiState {
                recording: self.state.recording,
                ..UiState::default()
            };
            self.engine.restart();
            self.past = Past::new(self.config.past);
            return vec![Effect::Draw, Effect::Sampler(Request::List)];
        }
        let marked = self.marked();
        self.state.cancel();
        self.mark(marked);
        vec![Effect::Draw]
    }

    /// The terminal gives no answer, so the notice says only what was sent.
    fn copy(&mut self) -> Vec<Effect> {
        let verdict = self.view().verdict;
        let advice = verdict.and_then(|verdict| verdict.advice.first().cloned());
        let text = match &advice {
            Some(advice) => format!("sent to the terminal's clipboard: {advice}"),
            None => "there is no advice to copy".to_owned(),
        };
        self.state.notice = Some(Notice {
            text,
            trouble: false,
        });
        let copied = advice.map(Effect::Copy);
        [Effect::Draw].into_iter().chain(copied).collect()
    }

    /// In a replay or in what is kept of a job that runs.
    fn seek(&mut self, seek: Seek) -> Vec<Effect> {
        if self.player.is_some() {
            return self.command(ReplayCommand::Seek(seek));
        }
        if !self.past.look_back(&self.engine, seek) {
            return vec![];
        }
        self.state.paused = self.past.state().is_some();
        vec![Effect::Draw]
    }

    /// What becomes of it is shown with the next frame.
    fn command(&mut self, command: ReplayCommand) -> Vec<Effect> {
        if let Some(player) = &mut self.player {
            player.command(command);
        }
        vec![Effect::Draw]
    }

    /// The next longer or shorter step.
    fn interval(&mut self, longer: bool) -> Vec<Effect> {
        let now = self.config.interval;
        let mut steps = STEPS.map(Duration::from_millis).into_iter();
        let next = if longer {
            steps.find(|step| *step > now)
        } else {
            steps.rfind(|step| *step < now)
        };
        let Some(next) = next else {
            return vec![];
        };
        self.config.interval = next.clamp(INTERVALS.0, INTERVALS.1);
        vec![
            Effect::Draw,
            Effect::Sampler(Request::Interval(self.config.interval)),
        ]
    }

    /// More or less of the past.
    fn zoom(&mut self, wider: bool) -> Vec<Effect> {
        let view = self.view();
        let automatic = ui::automatic(&view, self.drawn);
        let drawn = ui::axis_length(&view, self.drawn);
        let next = self.state.zoom.next(wider, automatic, drawn);
        if next == self.state.zoom {
            return vec![];
        }
        self.state.zoom = next;
        vec![Effect::Draw]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn an_open_question_takes_its_answers_and_nothing_else() {
        for action in Action::ALL {
            let launched = Launched::new("python train.py".to_owned(), String::new());
            let app = App::new(Config::default(), Duration::from_secs(10), String::new());
            let mut app = app.launched(launched);
            assert_eq!(app.act(Action::Quit), [Effect::Draw]);
            let (before, effects) = (app.state.clone(), app.act(action));
            let expected = match action {
                Action::Redraw => vec![Effect::Redraw],
                Action::Suspend => vec![Effect::SuspendTerminal],
                Action::Quit | Action::Cancel => vec![Effect::Draw],
                Action::EndCommand => vec![Effect::Draw, Effect::EndCommand],
                Action::Detach => vec![Effect::Quit],
                _ => vec![],
            };
            assert_eq!(effects, expected, "{action:?}");
            assert_eq!(app.state, before, "{action:?}");
        }
    }
}
