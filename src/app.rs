//! The loop: input, samples and signals in, frames out.
//!
//! [`App::update`] takes one event and knows no clock and no terminal; [`App::run`] waits for the next
//! one and draws on a sample, a key or a resize, and only then.

mod actions;
mod effect;
mod figures;
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
use crate::engine::{Engine, State};
use crate::launch::SupervisorEvent;
use crate::sample::Sample;
use crate::source::replay::Player;
use crate::ui::{self, Attach, Notice, Page, UiState, View};
use crate::units::ProcessKey;
use crate::verdict::Kind;

pub use effect::Effect;
pub use figures::Figures;
pub use launched::{Launched, Left};
use past::Past;
pub use runtime::live::{Launch, ReplaySession, Setup, replay, watch};
use sticky_height::StickyHeight;

/// What the verdict of a replay speaks of, as that of a job that runs.
const OBSERVED: Duration = Duration::from_secs(10);

/// What came in.
#[derive(Debug)]
pub enum Event {
    Input(Input),
    Sample(Box<Sample>),
    /// What is known of the jobs that are listed.
    Jobs(Figures),
    /// How saving the screen went.
    Notice(Notice),
    Signal(Signal),
    /// The launched command has printed this.
    Printed(Vec<u8>),
    /// The launched command has ended, or nothing of it is left.
    Command(SupervisorEvent),
}

/// What the system asks for.
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
    figures: Figures,
    /// Where the screen is saved to.
    folder: PathBuf,
    /// The command that is watched, where we have launched it.
    launched: Option<Launched>,
    past: Past,
    /// What is replayed in the place of a job that runs.
    player: Option<Box<Player>>,
    /// Whose open files the sampler was asked for.
    asked: Option<ProcessKey>,
    /// Whose threads the sampler was asked for beside the job's processes; `None` = for none of it.
    looked_at: Option<BTreeSet<ProcessKey>>,
    /// The room of the last frame: what is pointed at lies in it.
    drawn: Rect,
    sticky: StickyHeight,
    /// Any key ends the watching.
    captioned: bool,
    /// Somebody wants to leave.
    left: bool,
}

impl App {
    /// `wanted` says in words what is looked for while there is no job.
    pub fn new(config: Config, window: Duration, wanted: String) -> Self {
        Self {
            engine: Engine::new(window),
            state: UiState::default(),
            past: Past::new(config.past),
            player: None,
            config,
            attach: Attach::LookingForJob { wanted },
            figures: Figures::new(),
            folder: PathBuf::from("."),
            launched: None,
            asked: None,
            looked_at: None,
            drawn: Rect::ZERO,
            sticky: StickyHeight::default(),
            captioned: false,
            left: false,
        }
    }

    /// Has this said in the place of the keys, until any key ends the watching.
    pub fn caption(&mut self, text: Option<String>) {
        self.captioned = text.is_some();
        self.state.notice = text.map(|text| Notice {
            text,
            trouble: false,
        });
    }

    /// The same for a job that we have launched.
    #[must_use]
    pub fn launched(mut self, launched: Launched) -> Self {
        self.state.log = true;
        self.launched = Some(launched);
        self
    }

    /// The same for a recording in the place of a job that runs.
    #[must_use]
    pub fn replaying(mut self, player: Player) -> Self {
        self.player = Some(Box::new(player));
        self
    }

    /// The kind of the last verdict; `None` where there was none.
    pub fn kind(&self) -> Option<Kind> {
        let state = self.engine.state();
        state.kind().filter(|_| state.has_job())
    }

    /// The last verdict in one line; `None` where there was none.
    pub fn last_words(&self) -> Option<String> {
        let state = self.engine.state();
        let verdict = state.verdict().filter(|_| state.has_job())?;
        let headline = verdict.headline(state.model.window());
        let [loss, ..] = headline.loss;
        let cause = headline.cause.map(|cause| format!("cause: {cause}"));
        let parts = [Some(headline.kind), Some(loss), cause, headline.certainty];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join("   "))
    }

    /// Takes one event in and says what is to be done.
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = self.take_in(event);
        if effects.contains(&Effect::Draw) {
            effects.extend(self.requests());
        }
        effects
    }

    fn take_in(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Signal(Signal::Stop) => {
                self.left = true;
                match &mut self.launched {
                    // It was handed on to the command, and who watches it ends with it.
                    Some(launched) => launched.told_to_end(),
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
                // The next sample has the list. Of a job that is not yet watched again, what was known stays.
                self.figures.extend(figures);
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
            Event::Input(Input::Key(key)) if self.captioned => {
                let leaves = |action| matches!(action, Action::Quit | Action::Cancel);
                self.left = self.config.keys.action(&key).is_some_and(leaves);
                vec![Effect::Quit]
            }
            Event::Input(Input::Key(key)) => {
                let noticed = self.state.notice.take().is_some();
                let effects = match self.typed(&key).or_else(|| self.interrupted(&key)) {
                    Some(effects) => effects,
                    None => match self.config.keys.action(&key) {
                        Some(action) => self.act(action),
                        None => vec![],
                    },
                };
                if noticed && effects.is_empty() {
                    return vec![Effect::Draw];
                }
                effects
            }
            Event::Input(Input::Mouse(mouse)) => self.pointed(mouse),
            Event::Input(Input::FocusGained | Input::FocusLost | Input::Paste(_)) => vec![],
            Event::Printed(bytes) => match &mut self.launched {
                Some(launched) => launched.printed(&bytes),
                None => vec![],
            },
            Event::Command(event) => match &mut self.launched {
                Some(launched) => launched.command_event(&event),
                None => vec![],
            },
        }
    }

    fn sample(&mut self, sample: Sample) -> Vec<Effect> {
        let (marked, was_picking) = (self.marked(), self.is_picking());
        if let Some(job) = &sample.job {
            self.attach = if job.ended {
                Attach::Ended
            } else {
                Attach::Attached
            };
        } else if !sample.candidates.is_empty() {
            self.attach = self.listed(&sample.candidates);
        } else if let Attach::Picker(_) | Attach::Attached = self.attach {
            let wanted = match &self.launched {
                Some(launched) => launched.wanted(),
                None => "a Python process that has loaded PyTorch".to_owned(),
            };
            self.attach = Attach::LookingForJob { wanted };
        }
        let picking = self.is_picking();
        if picking != was_picking {
            // Words that find jobs find no workers.
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

    /// Keeps as much room for the verdict as it lately needed.
    fn keep_height(&mut self) {
        let now = self.engine.state().model.sample();
        let now = now.map(|sample| sample.at.since_start);
        // What is said of the past is not said now.
        let Some(now) = now.filter(|_| self.past.state().is_none() && !self.drawn.is_empty())
        else {
            return;
        };
        let needed = ui::verdict_lines(&self.view(), self.drawn);
        self.sticky.need(self.drawn, self.kind(), needed, now);
    }

    /// Goes where the past is to be shown, and plays what is due by this moment of real time: before each frame.
    pub fn settle(&mut self, real: Duration) {
        self.past.settle();
        let played = self.player.as_mut();
        if let Some(played) = played.and_then(|player| player.go_on(real)) {
            self.played(played);
        }
    }

    /// What is known of what is shown: now, or a moment of the past.
    fn shown(&self) -> &State {
        self.past.state().unwrap_or(self.engine.state())
    }

    /// What a frame shows now.
    pub fn view(&self) -> View<'_> {
        let (now, state) = (&self.engine.state().model, self.shown());
        let model = &state.model;
        let sample = model.sample();
        let newest = now.sample().map(|sample| sample.at.since_start);
        let past = newest.and_then(|newest| self.past.place(newest));
        let job = sample.and_then(|sample| sample.job.as_ref());
        View {
            window: model.window(),
            latest: model.latest(),
            // Of the past, too, it is all of it.
            history: now.history(),
            steps: model.steps(),
            files: sample.and_then(|sample| sample.files.as_ref()),
            verdict: state.verdict().filter(|_| state.has_job()),
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
            command: self.launched.as_ref().map(Launched::view),
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
