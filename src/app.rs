//! The loop: input, samples and signals in, frames out.
//!
//! [`App::update`] takes one event and knows no clock and no terminal; [`App::run`] waits for the next
//! one and draws on a sample, a key or a resize, and only then.

mod animation;
mod asking;
mod launched;
mod past;
mod picking;
mod pointing;
mod replay;
mod room;
mod run;
mod save;
mod typing;
mod wiring;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event as Input;
use ratatui::layout::Rect;

use crate::action::Action;
use crate::config::{Config, INTERVALS};
use crate::launch::News;
use crate::model::Model;
use crate::sample::{Gap, Sample};
use crate::source::replay::{Played, Wish};
use crate::source::sampler::Request;
use crate::ui::{self, Attach, Notice, Page, UiState, View, choices};
use crate::units::ProcessKey;
use crate::verdict::{Judge, Kind, Verdict};

pub use animation::animate;
pub use launched::{Launched, Left};
use past::Past;
pub use replay::{Film, Remote, replay};
use room::Room;
pub use run::Outside;
pub use wiring::{Launch, Outcome, Setup, watch};

/// Times between two readings that keys step through, in milliseconds.
const STEPS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// What the verdict of a replay speaks of, as that of a job that runs.
const OBSERVED: Duration = Duration::from_secs(10);

/// What came in.
#[derive(Debug)]
pub enum Event {
    Input(Input),
    Sample(Box<Sample>),
    Played(Box<Played>),
    /// How saving the screen went.
    Notice(Notice),
    Signal(Signal),
    /// The launched command has printed this.
    Printed(Vec<u8>),
    /// The launched command has ended, or nothing of it is left.
    Command(News),
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

/// How to go on after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    /// Nothing to draw.
    Continue,
    Draw,
    /// Draw every cell anew.
    Redraw,
    Ask(Request),
    Play(Wish),
    /// Write picture and report to files.
    Save,
    Suspend,
    Resume,
    /// Ask the launched command to end.
    End,
    Quit,
}

/// Everything that the screen shows, and what keys do to it.
#[derive(Debug)]
pub struct App {
    model: Model,
    judge: Judge,
    verdict: Option<Arc<Verdict>>,
    state: UiState,
    config: Config,
    attach: Attach,
    window: Duration,
    /// Where the screen is saved to.
    folder: PathBuf,
    /// The command that is watched, where we have launched it.
    launched: Option<Launched>,
    past: Past,
    /// Whose open files the sampler was asked for.
    asked: Option<ProcessKey>,
    /// Whose threads the sampler was asked for beside the job's processes; `None` = for none of it.
    looked_at: Option<BTreeSet<ProcessKey>>,
    /// The room of the last frame: what is pointed at lies in it.
    drawn: Rect,
    room: Room,
}

impl App {
    /// `wanted` says in words what is looked for while there is no job.
    pub fn new(config: Config, window: Duration, wanted: String) -> Self {
        Self {
            model: Model::new(window),
            judge: Judge::new(),
            verdict: None,
            state: UiState::default(),
            past: Past::new(config.past),
            config,
            attach: Attach::LookingForJob { wanted },
            window,
            folder: PathBuf::from("."),
            launched: None,
            asked: None,
            looked_at: None,
            drawn: Rect::ZERO,
            room: Room::default(),
        }
    }

    /// The same for a job that we have launched.
    #[must_use]
    pub fn launched(mut self, launched: Launched) -> Self {
        self.state.log = true;
        self.launched = Some(launched);
        self
    }

    /// The kind of the last verdict; `None` where there was none.
    pub fn kind(&self) -> Option<Kind> {
        self.verdict.as_ref().map(|verdict| verdict.kind)
    }

    /// Takes one event in and says how to go on.
    pub fn update(&mut self, event: Event) -> Flow {
        let flow = self.take_in(event);
        self.ask_for_files(flow)
    }

    fn take_in(&mut self, event: Event) -> Flow {
        match event {
            Event::Signal(Signal::Stop) => match &mut self.launched {
                // It was handed on to the command, and who watches it ends with it.
                Some(launched) => launched.told_to_end(),
                None => Flow::Quit,
            },
            Event::Signal(Signal::Suspend) => Flow::Suspend,
            Event::Signal(Signal::Resume) => Flow::Resume,
            Event::Sample(sample) => {
                let flow = self.sample(*sample);
                self.keep_room();
                flow
            }
            Event::Played(played) => self.played(*played),
            Event::Notice(notice) => {
                self.state.notice = Some(notice);
                Flow::Draw
            }
            Event::Input(Input::Resize(width, height)) => {
                self.drawn = Rect::new(0, 0, width, height);
                Flow::Draw
            }
            Event::Input(Input::Key(key)) => {
                let told = self.state.notice.take().is_some();
                let flow = self.typed(&key).or_else(|| {
                    let action = self.config.keys.action(&key)?;
                    Some(self.act(action))
                });
                match flow {
                    None | Some(Flow::Continue) if told => Flow::Draw,
                    flow => flow.unwrap_or(Flow::Continue),
                }
            }
            Event::Input(Input::Mouse(mouse)) => self.pointed(mouse),
            Event::Input(_) => Flow::Continue,
            Event::Printed(bytes) => match &mut self.launched {
                Some(launched) => launched.printed(&bytes),
                None => Flow::Continue,
            },
            Event::Command(news) => match &mut self.launched {
                Some(launched) => launched.news(&news),
                None => Flow::Continue,
            },
        }
    }

    fn sample(&mut self, sample: Sample) -> Flow {
        let (marked, was_picking) = (self.marked(), self.is_picking());
        if let Some(job) = &sample.job {
            self.attach = if job.ended {
                Attach::Ended
            } else {
                Attach::Attached
            };
        } else if !sample.candidates.is_empty() {
            self.attach = Attach::Picker(sample.candidates.clone());
        } else if let Attach::Picker(_) | Attach::Attached = self.attach {
            let wanted = match &self.launched {
                Some(launched) => launched.wanted(),
                None => "a Python process that has loaded PyTorch".to_owned(),
            };
            self.attach = Attach::LookingForJob { wanted };
        }
        if self.is_picking() != was_picking {
            // Words that find jobs find no workers.
            self.state.filter.clear();
            self.state.page = Page::Panels;
        }
        self.mark(marked);
        let (at, trains) = (sample.at.since_start, self.attach == Attach::Attached);
        self.model.apply(sample);
        self.tell_of_recording();
        let over = self.launched.as_mut();
        let over = over.is_some_and(|launched| launched.seen(at, trains));
        let known = self.model.latest().is_some_and(|rates| rates.job.is_some());
        self.verdict = known.then(|| Arc::new(self.judge.judge(&self.model)));
        if known {
            self.remember();
        }
        if over {
            Flow::Quit
        } else {
            self.look_at_processes()
        }
    }

    fn act(&mut self, action: Action) -> Flow {
        if let Some(flow) = self
            .launched
            .as_mut()
            .and_then(|launched| launched.act(action))
        {
            return flow;
        }
        if let Some(wish) = self.wish(action) {
            return Flow::Play(wish);
        }
        match action {
            Action::Quit => return Flow::Quit,
            Action::Save => return Flow::Save,
            action if action.is_in_time() => return self.travel(action),
            Action::Freeze => {
                self.freeze();
                return Flow::Draw;
            }
            Action::Suspend => return Flow::Suspend,
            Action::Redraw => return Flow::Redraw,
            Action::SortNext => self.state.sort_by_next(&self.config.columns),
            Action::ZoomIn | Action::ZoomOut => return self.zoom(action == Action::ZoomOut),
            Action::IntervalShorter => return self.interval(false),
            Action::IntervalLonger => return self.interval(true),
            Action::Tree if !self.has_job() => return Flow::Continue,
            Action::Select => match &self.attach {
                Attach::Picker(_) => {
                    let picked = self.marked();
                    return picked.map_or(Flow::Continue, |pid| Flow::Ask(Request::Attach(pid)));
                }
                Attach::LookingForJob { .. } => return Flow::Continue,
                Attach::Attached | Attach::Ended => {}
            },
            _ => {}
        }
        let (choices, marked) = (choices(&self.view()), self.marked());
        self.state.apply(action, &choices);
        if action == Action::Cancel {
            self.mark(marked);
        }
        self.look_at_processes()
    }

    /// Has the job's processes read while they are looked at, with the threads of those that are opened.
    fn look_at_processes(&mut self) -> Flow {
        let wanted = (self.state.page == Page::Tree).then(|| self.state.tree.opened.clone());
        if wanted == self.looked_at {
            return Flow::Draw;
        }
        if wanted.is_none() {
            self.model.forget_processes();
        }
        self.looked_at.clone_from(&wanted);
        Flow::Ask(Request::Processes(wanted))
    }

    /// The next longer or shorter step.
    fn interval(&mut self, longer: bool) -> Flow {
        let now = self.config.interval;
        let mut steps = STEPS.map(Duration::from_millis).into_iter();
        let next = if longer {
            steps.find(|step| *step > now)
        } else {
            steps.rfind(|step| *step < now)
        };
        let Some(next) = next else {
            return Flow::Continue;
        };
        self.config.interval = next.clamp(INTERVALS.0, INTERVALS.1);
        Flow::Ask(Request::Interval(self.config.interval))
    }

    /// More or less of the past.
    fn zoom(&mut self, wider: bool) -> Flow {
        let automatic = ui::automatic(&self.view(), self.drawn);
        let next = self.state.zoom.next(wider, automatic);
        if next == self.state.zoom {
            return Flow::Continue;
        }
        self.state.zoom = next;
        Flow::Draw
    }

    fn gaps(&self) -> &[Gap] {
        self.model.sample().map_or(&[], |sample| &sample.gaps)
    }

    /// How long the job ran when the newest sample was taken.
    fn uptime(&self) -> Option<Duration> {
        let sample = self.model.sample()?;
        let started = sample.job.as_ref()?.key.start_ticks;
        let ours = sample.host.boot_ticks_at_start?;
        let per_second = sample.host.ticks_per_second.filter(|ticks| *ticks > 0)?;
        let began = (started as f64 - ours as f64) / per_second as f64;
        Duration::try_from_secs_f64(sample.at.since_start.as_secs_f64() - began).ok()
    }

    /// What a frame shows now.
    pub fn view(&self) -> View<'_> {
        let view = View {
            window: self.model.window(),
            latest: self.model.latest(),
            history: self.model.history(),
            steps: self.model.steps(),
            files: self.model.sample().and_then(|sample| sample.files.as_ref()),
            verdict: self.verdict.as_deref(),
            processes: Some(self.model.processes()),
            gaps: self.gaps(),
            state: &self.state,
            config: &self.config,
            attach: &self.attach,
            uptime: self.uptime(),
            command: self.launched.as_ref().map(Launched::view),
            past: None,
            room: self.room.lines(),
            screen: self.drawn,
        };
        let (Some(shown), Some(sample)) = (&self.past.shown, self.model.sample()) else {
            return view;
        };
        let moment = &shown.moment;
        let job = moment.latest.as_ref().and_then(|rates| rates.job.as_ref());
        View {
            window: moment.window.as_deref(),
            latest: moment.latest.as_deref(),
            verdict: moment.verdict.as_deref(),
            processes: shown.processes.as_ref(),
            gaps: &moment.gaps,
            uptime: moment.uptime,
            attach: match job {
                Some(job) if job.ended => &Attach::Ended,
                Some(_) => &Attach::Attached,
                None => &self.attach,
            },
            past: Some(shown.place(sample.at.since_start)),
            ..view
        }
    }
}
