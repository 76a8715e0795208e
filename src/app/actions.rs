//! Maps each action to its effect, in each mode. Actions are handled nowhere else.
//!
//! The match names every action, so that a new one does not compile until it is handled here.

use std::time::Duration;

use crossterm::event::KeyEvent;

use super::figures::figures_of;
use super::{App, Effect, LaunchedCommand, PastSamples};
use crate::action::Action;
use crate::source::replay::{ReplayCommand, Seek};
use crate::source::sampler::Request;
use crate::ui::{self, Choices, Notice, UiState};

/// Seconds that a seek and a leap skip.
const SEEK: i64 = 10;
const LEAP: i64 = 600;

/// Sampling intervals that the keys step through, in milliseconds.
const STEPS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// What the actions apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// pipetop asks what to do with the launched command.
    Question,
    Replay,
    /// A running job, the list of jobs to choose from, or nothing yet.
    Live,
}

impl App {
    fn mode(&self) -> Mode {
        if self
            .launched
            .as_ref()
            .is_some_and(LaunchedCommand::is_asking)
        {
            Mode::Question
        } else if self.player.is_some() {
            Mode::Replay
        } else {
            Mode::Live
        }
    }

    /// Returns the action of a key in the current mode.
    pub(super) fn action_of(&self, key: &KeyEvent) -> Option<Action> {
        let keys = &self.config.keys;
        match self.mode() {
            Mode::Question => keys.answer(key),
            Mode::Replay | Mode::Live => keys.action(key),
        }
    }

    /// Whether the screen shows what an action changes: what concerns the panels of a job, or the list of jobs, must not
    /// happen unseen.
    fn is_seen(&self, action: Action) -> bool {
        let shows_job = self.has_job() || self.past.state().is_some();
        match action {
            // In a recording there is nothing to choose.
            Action::Select if self.is_picking() => !self.state.help && self.state.replay.is_none(),
            Action::NextPanel
            | Action::NextRank
            | Action::PreviousPanel
            | Action::Select
            | Action::SortNext
            | Action::SortReverse
            | Action::Tree
            | Action::ZoomIn
            | Action::ZoomOut => shows_job,
            Action::Filter => shows_job || self.is_picking(),
            Action::Pause => shows_job || self.player.is_some(),
            _ => true,
        }
    }

    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        use Mode::{Live, Question, Replay};
        if !self.is_seen(action) {
            return vec![];
        }
        match (action, self.mode()) {
            (Action::Redraw, _) => vec![Effect::Redraw],
            (Action::Suspend, _) => vec![Effect::SuspendTerminal],
            (Action::Quit, _) => self.quit(),
            (Action::EndCommand, Question) => self.with_launched(LaunchedCommand::end),
            (Action::Detach, Question) => self.with_launched(LaunchedCommand::detach),
            (Action::Cancel, Question) => self.with_launched(LaunchedCommand::go_on),
            // No other action applies while the question is open, and its answers only then. `PrintCommand` belongs to
            // the fleet's screen.
            (_, Question) | (Action::EndCommand | Action::Detach | Action::PrintCommand, _) => {
                vec![]
            }

            (Action::Pause, Replay) => self.command(ReplayCommand::Pause),
            (Action::Pause, Live) => self.pause(),
            (Action::IntervalShorter, Replay) => self.command(ReplayCommand::Slower),
            (Action::IntervalShorter, Live) => self.interval(false),
            (Action::IntervalLonger, Replay) => self.command(ReplayCommand::Faster),
            (Action::IntervalLonger, Live) => self.interval(true),
            (Action::SeekBack | Action::SeekForward, _) if self.state.has_cursor() => {
                self.move_cursor(action == Action::SeekBack)
            }
            (Action::SeekBack, _) => self.seek(Seek::Seconds(-SEEK)),
            (Action::SeekForward, _) => self.seek(Seek::Seconds(SEEK)),
            (Action::LeapBack, _) => self.seek(Seek::Seconds(-LEAP)),
            (Action::LeapForward, _) => self.seek(Seek::Seconds(LEAP)),
            (Action::StepBack, _) => self.seek(Seek::Previous),
            (Action::StepForward, _) => self.seek(Seek::Next),
            (Action::ToBegin, _) => self.jump(Seek::Begin),
            (Action::ToEnd, _) => self.jump(Seek::End),

            (Action::Save, _) => vec![Effect::Save],
            (Action::Copy, _) => self.copy(),
            (Action::ZoomIn, _) => self.zoom(false),
            (Action::ZoomOut, _) => self.zoom(true),
            (Action::Select, _) => self.select(),
            (Action::Tree, _) => self.look(|state, _| state.toggle_tree()),
            (Action::Cancel, _) => self.cancel(),
            (Action::SortNext, _) => {
                self.state.sort_by_next(&self.config.columns);
                vec![Effect::Draw]
            }
            (Action::Help, _) => self.look(|state, _| state.toggle_help()),
            (Action::NextPanel, _) => self.look(|state, _| state.step_panel(true)),
            (Action::PreviousPanel, _) => self.look(|state, _| state.step_panel(false)),
            (Action::Up, _) => self.look(UiState::up),
            (Action::Down, _) => self.look(UiState::down),
            (Action::PageUp, _) => self.look(UiState::page_up),
            (Action::PageDown, _) => self.look(UiState::page_down),
            (Action::Filter, _) => self.look(|state, _| state.open_filter()),
            (Action::SortReverse, _) => self.look(|state, _| state.reverse()),
            (Action::NextRank, _) => self.look(UiState::next_rank),
        }
    }

    fn pause(&mut self) -> Vec<Effect> {
        self.state.cursor = None;
        self.past.pause(&self.engine);
        self.state.paused = self.past.state().is_some();
        vec![Effect::Draw]
    }

    /// Moves the timeline's cursor; pauses the screen first.
    fn move_cursor(&mut self, back: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.state.is_still() {
            self.state.cursor = None;
            effects = self.act(Action::Pause);
        }
        let end = ui::cursor_end(&self.view());
        self.state.move_cursor(back, end);
        effects.extend(self.look(|_, _| ()));
        effects
    }

    /// Changes the state of the screen, within the available choices, and redraws.
    fn look(&mut self, change: impl FnOnce(&mut UiState, &Choices)) -> Vec<Effect> {
        let choices = ui::choices(&self.view());
        change(&mut self.state, &choices);
        vec![Effect::Draw]
    }

    /// Quits, or, with a launched command, first asks what to do with it.
    fn quit(&mut self) -> Vec<Effect> {
        match &mut self.launched {
            Some(launched) => {
                // The keys that answer the question are letters.
                self.state.filter_in_use().typing = false;
                launched.open_question()
            }
            None => vec![Effect::Quit],
        }
    }

    /// Calls `apply` on the launched command; does nothing if there is none.
    pub(super) fn with_launched(
        &mut self,
        apply: impl FnOnce(&mut LaunchedCommand) -> Vec<Effect>,
    ) -> Vec<Effect> {
        self.launched.as_mut().map_or_else(Vec::new, apply)
    }

    /// Adds output of the launched command. If older lines are shown, they stay: the scroll position counts from the
    /// newest line.
    pub(super) fn printed(&mut self, bytes: &[u8]) -> Vec<Effect> {
        let choices = ui::choices(&self.view());
        let total = |app: &Self| app.launched.as_ref().map_or(0, |it| it.output().total());
        let before = total(self);
        let effects = self.with_launched(|launched| launched.printed(bytes));
        if choices.from_newest && self.state.scroll > 0 {
            let scroll = self.state.scroll.min(choices.end) + total(self);
            self.state.scroll = scroll.saturating_sub(before);
        }
        effects
    }

    fn select(&mut self) -> Vec<Effect> {
        if !self.is_picking() {
            return self.look(UiState::select);
        }
        match self.marked() {
            Some(pid) => {
                self.state.chosen = Some(pid);
                vec![Effect::Draw, Effect::Sampler(Request::Attach(pid))]
            }
            None => vec![],
        }
    }

    fn cancel(&mut self) -> Vec<Effect> {
        if ui::goes_to_list(&self.view()) {
            let known = figures_of(self.engine.state());
            self.take_figures(known.into_iter().collect());
            // The next job starts without the state of this one.
            self.state = UiState {
                recording: self.state.recording,
                left: self.state.chosen,
                ..UiState::default()
            };
            self.engine.restart();
            self.past = PastSamples::new(self.config.past);
            return vec![Effect::Draw, Effect::Sampler(Request::List)];
        }
        let marked = self.marked();
        self.state.cancel();
        self.mark(marked);
        vec![Effect::Draw]
    }

    /// Copies the first advice. The terminal does not confirm it, so the notice says only what was sent.
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

    /// Seeks in a replay, or in the kept samples of a running job.
    fn seek(&mut self, seek: Seek) -> Vec<Effect> {
        if self.player.is_some() {
            return self.command(ReplayCommand::Seek(seek));
        }
        if !self.past.seek(&self.engine, seek) {
            return vec![];
        }
        self.state.paused = self.past.state().is_some();
        vec![Effect::Draw]
    }

    /// Scrolls the help, a page or the output to its start or end; otherwise seeks.
    fn jump(&mut self, seek: Seek) -> Vec<Effect> {
        if !ui::jumps_in_text(&self.view()) {
            return self.seek(seek);
        }
        self.look(|state, choices| {
            let at_top = seek == Seek::Begin;
            state.scroll = if at_top == choices.from_newest {
                choices.end
            } else {
                0
            };
        })
    }

    /// Sends a command to the player. The next frame shows its effect.
    fn command(&mut self, command: ReplayCommand) -> Vec<Effect> {
        if let Some(player) = &mut self.player {
            player.command(command);
        }
        vec![Effect::Draw]
    }

    /// Selects the next longer or shorter interval.
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
        self.config.interval = next;
        vec![
            Effect::Draw,
            Effect::Sampler(Request::Interval(self.config.interval)),
        ]
    }

    /// Shows more or less of the past.
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
    use crossterm::event::{Event as Input, KeyCode};

    use super::super::Event;
    use super::*;
    use crate::config::{Config, Environment, Overrides};
    use crate::launch::LogStorage;

    #[test]
    fn a_key_with_another_action_answers_the_question() {
        let text = "[keys]\nsave = [\"e\"]";
        let path = std::path::Path::new("my.toml");
        let config = Config::from_text(path, text, &Overrides::default(), &Environment::default());
        let launched = LaunchedCommand::new("python train.py".to_owned(), LogStorage::Memory);
        let mut app = App::new(config.unwrap(), String::new()).launched(launched);
        let press =
            |app: &mut App, key| app.update(Event::Input(Input::Key(KeyCode::Char(key).into())));
        assert_eq!(press(&mut app, 'e'), [Effect::Save]);
        press(&mut app, 'q');
        assert_eq!(press(&mut app, 'e'), [Effect::Draw, Effect::EndCommand]);
    }

    #[test]
    fn an_open_question_accepts_only_its_answers() {
        for action in Action::ALL {
            let launched = LaunchedCommand::new("python train.py".to_owned(), LogStorage::Memory);
            let app = App::new(Config::default(), String::new());
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
