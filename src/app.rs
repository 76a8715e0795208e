//! The main loop: takes in keys, samples and signals, and draws frames.
//!
//! [`App::update`] handles one event without reading the clock or the terminal. [`App::run`] waits for the next event,
//! and draws only if the event asks for it or a replay is due.

mod actions;
mod effect;
mod figures;
mod late_answer;
mod launched;
mod mouse;
mod on_demand;
mod past;
mod picker;
mod replay;
pub(crate) mod runtime;
mod save;
mod sticky_height;
mod text_input;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::Event as Input;
use ratatui::layout::Rect;

use crate::action::Action;
use crate::config::Config;
use crate::engine::{Engine, State, WINDOW};
use crate::launch::SupervisorEvent;
use crate::sample::Sample;
use crate::source::replay::Player;
use crate::ui::{self, Attach, Notice, Page, UiState, View};
use crate::units::ProcessKey;
use crate::verdict::{Kind, Verdict};

pub use effect::Effect;
pub use figures::JobListFigures;
use late_answer::LateAnswer;
pub use launched::{LaunchedCommand, QuitChoice};
use past::PastSamples;
#[cfg(feature = "lab")]
pub use replay::replay_samples;
pub use runtime::live::{Launch, ReplaySession, Setup, replay, watch};
use sticky_height::StickyHeight;

/// An input to [`App::update`].
#[derive(Debug)]
pub enum Event {
    Input(Input),
    Sample(Box<Sample>),
    /// The figures of the jobs in the list.
    Jobs(JobListFigures),
    /// The result of saving the screen.
    Notice(Notice),
    Signal(Signal),
    /// Output of the launched command.
    Printed(Vec<u8>),
    /// The launched command has ended, or none of its processes is left.
    Command(SupervisorEvent),
}

/// A signal that the screen reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// End: SIGTERM, SIGHUP, SIGINT.
    Stop,
    /// SIGTSTP.
    Suspend,
    /// SIGCONT.
    Resume,
}

/// Everything that the screen shows, and what keys do to it.
#[derive(Debug)]
pub struct App {
    engine: Engine,
    state: UiState,
    config: Config,
    attach: Attach,
    figures: JobListFigures,
    /// The folder that screens are saved to.
    folder: PathBuf,
    /// The watched command, if pipetop launched it.
    launched: Option<LaunchedCommand>,
    past: PastSamples,
    /// The recording that is replayed instead of watching a running job.
    player: Option<Box<Player>>,
    /// The worker whose open files were requested from the sampler.
    requested_files: Option<ProcessKey>,
    /// The processes whose threads were requested along with the job's processes; `None` = neither was requested.
    requested_threads: Option<BTreeSet<ProcessKey>>,
    /// Area of the last frame, needed to find the panel under the mouse.
    drawn: Rect,
    sticky: StickyHeight,
    /// An answer of the terminal that may still come.
    late: LateAnswer,
    /// The user has ended a tour, or a signal has ended pipetop.
    left: bool,
}

impl App {
    /// Creates the state before the first sample. `wanted` describes the job that pipetop looks for while there is
    /// none.
    pub fn new(config: Config, wanted: String) -> Self {
        Self {
            engine: Engine::new(WINDOW),
            state: UiState::default(),
            past: PastSamples::new(config.past),
            player: None,
            config,
            attach: Attach::LookingForJob { wanted },
            figures: JobListFigures::new(),
            folder: PathBuf::from("."),
            launched: None,
            requested_files: None,
            requested_threads: None,
            drawn: Rect::ZERO,
            sticky: StickyHeight::default(),
            late: LateAnswer::default(),
            left: false,
        }
    }

    /// Shows this text above the panels. Any key then closes the screen, as the last line says.
    pub fn caption(&mut self, text: Option<String>) {
        self.state.notice = text.is_some().then(|| Notice {
            text: "any key: next   q: end".to_owned(),
            trouble: false,
        });
        self.state.caption = text;
    }

    /// Shows a launched command beside its job.
    #[must_use]
    pub fn launched(mut self, launched: LaunchedCommand) -> Self {
        self.state.log = true;
        self.launched = Some(launched);
        self
    }

    /// Replays a recording instead of watching a running job.
    #[must_use]
    pub fn replaying(mut self, player: Player) -> Self {
        self.player = Some(Box::new(player));
        self
    }

    /// Returns the kind of the last verdict; `None` if there was none.
    pub fn kind(&self) -> Option<Kind> {
        self.verdict().map(|verdict| verdict.kind)
    }

    /// Returns the last verdict in one line; `None` if there was none.
    pub fn final_line(&self) -> Option<String> {
        let window = self.engine.state().model.window();
        Some(self.verdict()?.headline(window).line())
    }

    fn verdict(&self) -> Option<&Verdict> {
        let state = self.engine.state();
        let own = state.verdict().filter(|_| state.has_job());
        self.listed_verdict(state).or(own)
    }

    /// Handles one event and returns its effects.
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = self.handle_event(event);
        if effects.contains(&Effect::Draw) {
            effects.extend(self.requests());
        }
        effects
    }

    fn handle_event(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Signal(Signal::Stop) => {
                self.left = true;
                match &mut self.launched {
                    // The signal was passed on to the command, and the screen ends when the command does.
                    Some(launched) => launched.ending(),
                    None => vec![Effect::Quit],
                }
            }
            Event::Signal(Signal::Suspend) => vec![Effect::SuspendTerminal],
            Event::Signal(Signal::Resume) => vec![Effect::ResumeTerminal],
            Event::Sample(sample) => {
                let effects = self.sample(*sample);
                self.keep_height();
                effects
            }
            Event::Jobs(figures) => {
                // The list is drawn with the next sample.
                self.take_figures(figures);
                vec![]
            }
            Event::Notice(notice) => {
                self.state.notice = Some(notice);
                vec![Effect::Draw]
            }
            Event::Input(Input::Resize(width, height)) => {
                self.drawn = Rect::new(0, 0, width, height);
                vec![Effect::Draw]
            }
            Event::Input(Input::Key(key)) if self.late.takes(&key, &self.config.keys) => vec![],
            Event::Input(Input::Key(key)) if self.state.caption.is_some() => {
                let leaves = |action| matches!(action, Action::Quit | Action::Cancel);
                self.left = self.config.keys.action(&key).is_some_and(leaves);
                vec![Effect::Quit]
            }
            Event::Input(Input::Key(key)) => {
                let noticed = self.state.notice.take().is_some();
                let effects = match self.typed(&key).or_else(|| self.interrupted(&key)) {
                    Some(effects) => effects,
                    None => match self.action_of(&key) {
                        Some(action) => self.act(action),
                        None => self.after_esc(key),
                    },
                };
                if noticed && effects.is_empty() {
                    return vec![Effect::Draw];
                }
                effects
            }
            Event::Input(Input::Mouse(mouse)) => self.handle_mouse(mouse),
            Event::Input(Input::Paste(text)) => self.pasted(&text),
            Event::Input(Input::FocusGained | Input::FocusLost) => vec![],
            Event::Printed(bytes) => self.printed(&bytes),
            Event::Command(event) => self.with_launched(|launched| launched.command_event(&event)),
        }
    }

    fn sample(&mut self, sample: Sample) -> Vec<Effect> {
        let was_picking = self.is_picking();
        let marked = self.marked().or(self.state.left);
        if let Some(job) = &sample.job {
            self.attach = if job.ended {
                Attach::Ended
            } else {
                Attach::Attached
            };
        } else if !sample.candidates.is_empty() {
            self.attach = self.listed(&sample.candidates);
        } else if let Attach::Picker(_) | Attach::Attached = self.attach {
            let wanted = match (&self.launched, self.state.chosen) {
                (Some(launched), _) => launched.wanted(),
                (None, Some(pid)) => format!("process {pid}"),
                (None, None) => "a Python process that has loaded PyTorch".to_owned(),
            };
            self.attach = Attach::LookingForJob { wanted };
        }
        let picking = self.is_picking();
        if picking != was_picking {
            // A filter for jobs would match no workers.
            self.state.filter.clear();
            self.state.page = Page::Panels;
        }
        self.mark(marked);
        let (at, trains) = (sample.at.since_start, self.attach == Attach::Attached);
        if self.player.is_none()
            && sample.job.is_some()
            && let Err(error) = self.past.remember(&sample)
        {
            self.state.notice = Some(trouble(format!("cannot keep the history: {error}")));
        }
        self.engine.push(sample);
        self.notice_recording();
        let over = self.launched.as_mut();
        let over = over.is_some_and(|launched| launched.seen(at, trains));
        let mut effects = vec![if over { Effect::Quit } else { Effect::Draw }];
        if picking != was_picking {
            effects.push(Effect::WatchAll(picking));
        }
        effects
    }

    /// Updates the room reserved for the verdict.
    fn keep_height(&mut self) {
        let now = self.engine.state().model.sample();
        let now = now.map(|sample| sample.at.since_start);
        // The verdict on a past moment must not change the room for the current one.
        let Some(now) = now.filter(|_| self.past.state().is_none() && !self.drawn.is_empty())
        else {
            return;
        };
        let needed = ui::verdict_lines(&self.view(), self.drawn);
        self.sticky.need(self.drawn, self.kind(), needed, now);
    }

    /// Moves to the requested moment of the past and plays the samples that are due at this real time. Called before
    /// each frame.
    pub fn settle(&mut self, real: Duration) {
        self.past.settle();
        let played = self.player.as_mut();
        if let Some(played) = played.and_then(|player| player.advance_to(real)) {
            self.played(played);
        }
    }

    /// Returns the state that is shown: the current one, or that of a past moment.
    fn shown(&self) -> &State {
        self.past.state().unwrap_or(self.engine.state())
    }

    /// Returns what a frame shows now.
    pub fn view(&self) -> View<'_> {
        let (now, state) = (&self.engine.state().model, self.shown());
        let model = &state.model;
        let sample = model.sample();
        let newest = now.sample().map(|sample| sample.at.since_start);
        let past = newest.and_then(|newest| self.past.place(newest));
        let job = sample.and_then(|sample| sample.job.as_ref());
        let listed = self.listed_verdict(state);
        View {
            window: model.window(),
            latest: model.latest(),
            // The whole history, even while a past moment is shown.
            history: now.history(),
            steps: model.steps(),
            files: sample.and_then(|sample| sample.files.as_ref()),
            verdict: listed.or(state.verdict().filter(|_| state.has_job())),
            listed: listed.is_some(),
            processes: model.processes(),
            gaps: state.gaps(),
            state: &self.state,
            config: &self.config,
            attach: match (past, job) {
                (Some(_), Some(job)) if job.ended => &Attach::Ended,
                (Some(_), Some(_)) => &Attach::Attached,
                _ => &self.attach,
            },
            uptime: state.uptime(),
            command: self.launched.as_ref().map(|launched| &launched.shown),
            past,
            room: self.sticky.lines(),
            screen: self.drawn,
        }
    }
}

fn trouble(text: String) -> Notice {
    Notice {
        text,
        trouble: true,
    }
}
