//! Waits for the next event and carries out the effects of `update`. Only this loop and the samplers use real time.

pub(crate) mod live;

use std::time::Duration;

use crossterm::event::Event as Input;
use futures_util::{Stream, StreamExt};
use ratatui::backend::Backend;
use ratatui::layout::Size;
use ratatui::{Frame, Terminal};
use tokio::sync::{mpsc, watch};

use super::late_answer::LateAnswer;
use super::{App, Effect, Event, Signal, save, trouble};
use crate::terminal::{self, Background, is_gone};
use crate::ui;

/// The inputs and outputs of the loop; a test can script all of them.
#[derive(Debug)]
pub(crate) struct Io<K, M, P> {
    pub keys: K,
    /// The periodic input: samples of a running job.
    pub readings: mpsc::Receiver<M>,
    pub signals: mpsc::Receiver<Signal>,
    /// Events of a launched command.
    pub messages: mpsc::Receiver<M>,
    /// The terminal has not yet accepted the last frame.
    pub blocked: watch::Receiver<bool>,
    /// Quit after this time.
    pub span: Option<Duration>,
    /// Carries out effects on the sampler, the command or the terminal's modes. An error comes from the terminal and
    /// ends the loop.
    pub perform: P,
}

/// A screen that the loop runs: how events change it, and how it is drawn.
pub(crate) trait Shown {
    /// An event from one of the screen's threads.
    type Message;

    fn input(&mut self, input: Input) -> Vec<Effect>;
    fn signal(&mut self, signal: Signal) -> Vec<Effect>;
    fn message(&mut self, message: Self::Message) -> Vec<Effect>;

    /// Called after the signal handlers are set and before the terminal is opened.
    fn opens(&mut self) {}

    /// Returns when a frame is due even without an event, as time since the loop began; `None` = never.
    fn due(&mut self) -> Option<Duration>;

    /// Draws a frame at this time since the loop began.
    fn draw(&mut self, real: Duration, frame: &mut Frame<'_>);

    /// Saves what a screen of this size shows; sends the result.
    fn save(&mut self, _real: Duration, _size: Size, _tell: mpsc::Sender<Self::Message>) {}

    /// Runs until the user, a signal, the span or the terminal ends it.
    ///
    /// # Errors
    /// Returns an error if drawing fails although the terminal still exists.
    async fn run<B, K, P>(
        &mut self,
        terminal: &mut Terminal<B>,
        mut io: Io<K, Self::Message, P>,
    ) -> anyhow::Result<()>
    where
        B: Backend,
        B::Error: Send + Sync + 'static,
        K: Stream<Item = std::io::Result<Input>> + Unpin,
        P: FnMut(Effect) -> std::io::Result<()>,
    {
        // Whether a frame is pending. While the terminal is blocked, pending frames are merged into one.
        let (mut draw, mut restart) = (true, false);
        let (tell, mut saved) = mpsc::channel(1);
        let began = tokio::time::Instant::now();
        let span = tokio::time::sleep(io.span.unwrap_or(Duration::MAX));
        tokio::pin!(span);
        loop {
            if (draw || restart) && !*io.blocked.borrow() {
                let real = began.elapsed();
                if !paint(terminal, restart, |frame| self.draw(real, frame))? {
                    return Ok(());
                }
                (draw, restart) = (false, false);
            }
            let due = self.due();
            let due = due.map(|due| due.saturating_sub(began.elapsed()));
            let mut effects = tokio::select! {
                biased;
                Some(signal) = io.signals.recv() => self.signal(signal),
                key = io.keys.next() => match key {
                    Some(Ok(input)) => self.input(input),
                    // The terminal is gone.
                    Some(Err(_)) | None => return Ok(()),
                },
                Ok(()) = io.blocked.changed(), if draw || restart => continue,
                Some(notice) = saved.recv() => self.message(notice),
                Some(message) = io.messages.recv() => self.message(message),
                Some(reading) = io.readings.recv() => self.message(reading),
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() && !draw => {
                    vec![Effect::Draw]
                }
                () = &mut span, if io.span.is_some() => return Ok(()),
            };
            // A held key must not queue up frames: all keys that have arrived share one frame.
            loop {
                for effect in effects {
                    match effect {
                        Effect::Quit => return Ok(()),
                        Effect::Draw => draw = true,
                        Effect::Redraw => restart = true,
                        Effect::Save => {
                            self.save(began.elapsed(), terminal.size()?, tell.clone());
                        }
                        effect => {
                            restart |=
                                matches!(effect, Effect::SuspendTerminal | Effect::ResumeTerminal);
                            if (io.perform)(effect).is_err() {
                                return Ok(());
                            }
                        }
                    }
                }
                effects = tokio::select! {
                    biased;
                    key = io.keys.next() => match key {
                        Some(Ok(input)) => self.input(input),
                        Some(Err(_)) | None => return Ok(()),
                    },
                    () = std::future::ready(()) => break,
                };
            }
        }
    }
}

impl Shown for App {
    type Message = Event;

    fn input(&mut self, input: Input) -> Vec<Effect> {
        self.update(Event::Input(input))
    }

    fn signal(&mut self, signal: Signal) -> Vec<Effect> {
        self.update(Event::Signal(signal))
    }

    fn message(&mut self, message: Event) -> Vec<Effect> {
        self.update(message)
    }

    fn opens(&mut self) {
        if !self.config.theme.is_light() {
            return;
        }
        match terminal::background() {
            Background::Dark => {
                let text = "the terminal's background is dark: use --theme dark";
                self.state.notice = Some(trouble(text.to_owned()));
            }
            Background::Late => self.late = LateAnswer::expected(),
            Background::Other => {}
        }
    }

    fn due(&mut self) -> Option<Duration> {
        self.player.as_mut()?.due()
    }

    fn draw(&mut self, real: Duration, frame: &mut Frame<'_>) {
        self.settle(real);
        ui::draw(&self.view(), frame);
        self.drawn = frame.area();
    }

    fn save(&mut self, real: Duration, size: Size, tell: mpsc::Sender<Event>) {
        self.settle(real);
        let picture = self.saved(size.width, size.height);
        save::write(picture, self.folder.clone(), tell);
    }
}

/// Draws a frame, all cells anew if `restart` is set; returns false if the terminal is gone.
fn paint<B>(
    terminal: &mut Terminal<B>,
    restart: bool,
    draw: impl FnOnce(&mut Frame<'_>),
) -> anyhow::Result<bool>
where
    B: Backend,
    B::Error: Send + Sync + 'static,
{
    let cleared = if restart {
        // Not `Terminal::clear`: it queries the cursor position and waits for the answer.
        terminal.swap_buffers();
        terminal.backend_mut().clear()
    } else {
        Ok(())
    };
    let drawn = cleared.and_then(|()| {
        terminal.draw(draw)?;
        Ok(())
    });
    match drawn {
        Ok(()) => Ok(true),
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
