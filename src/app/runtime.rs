//! Waits for the next event and carries out the effects of `update`. Only this loop and the samplers use real time.

pub(crate) mod live;

use std::time::Duration;

use crossterm::event::Event as Input;
use futures_util::{Stream, StreamExt};
use ratatui::backend::Backend;
use ratatui::{Frame, Terminal};
use tokio::sync::{mpsc, watch};

use super::{App, Effect, Event, Signal, save};
use crate::terminal::is_gone;
use crate::ui;

/// The inputs and outputs of the loop; a test can script all of them.
#[derive(Debug)]
pub struct Io<K, P> {
    pub keys: K,
    /// Samples of a running job.
    pub readings: mpsc::Receiver<Event>,
    pub signals: mpsc::Receiver<Signal>,
    /// Events of a launched command.
    pub messages: mpsc::Receiver<Event>,
    /// The terminal has not yet taken the last frame.
    pub blocked: watch::Receiver<bool>,
    /// Quit after this time.
    pub span: Option<Duration>,
    /// Carries out effects on the sampler, the command or the terminal's modes. An error comes from the terminal and
    /// ends the loop.
    pub perform: P,
}

impl App {
    /// Runs until the user, a signal, the span or the terminal ends it.
    ///
    /// # Errors
    /// Returns an error if the terminal is there but cannot be drawn on.
    pub async fn run<B, K, P>(
        &mut self,
        terminal: &mut Terminal<B>,
        mut io: Io<K, P>,
    ) -> anyhow::Result<()>
    where
        B: Backend,
        B::Error: Send + Sync + 'static,
        K: Stream<Item = std::io::Result<Input>> + Unpin,
        P: FnMut(Effect) -> std::io::Result<()>,
    {
        // Pending frames: while the terminal is blocked, they are merged into one.
        let (mut draw, mut restart) = (true, false);
        let (tell, mut saved) = mpsc::channel(1);
        let began = tokio::time::Instant::now();
        let span = tokio::time::sleep(io.span.unwrap_or(Duration::MAX));
        tokio::pin!(span);
        loop {
            if (draw || restart) && !*io.blocked.borrow() {
                self.settle(began.elapsed());
                if !self.paint(terminal, restart)? {
                    return Ok(());
                }
                (draw, restart) = (false, false);
            }
            let due = self.player.as_mut().and_then(|player| player.due());
            let due = due.map(|due| due.saturating_sub(began.elapsed()));
            let event = tokio::select! {
                biased;
                Some(signal) = io.signals.recv() => Event::Signal(signal),
                key = io.keys.next() => match key {
                    Some(Ok(input)) => Event::Input(input),
                    // The terminal is gone.
                    Some(Err(_)) | None => return Ok(()),
                },
                Ok(()) = io.blocked.changed(), if draw || restart => continue,
                Some(notice) = saved.recv() => Event::Notice(notice),
                Some(message) = io.messages.recv() => message,
                Some(reading) = io.readings.recv() => reading,
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() && !draw => {
                    draw = true;
                    continue;
                }
                () = &mut span, if io.span.is_some() => return Ok(()),
            };
            let mut next = Some(event);
            // A held key must not queue up frames: all keys that have arrived share one frame.
            while let Some(event) = next.take() {
                for effect in self.update(event) {
                    match effect {
                        Effect::Draw => draw = true,
                        Effect::Redraw => restart = true,
                        Effect::Save => {
                            self.settle(began.elapsed());
                            let size = terminal.size()?;
                            let picture = self.saved(size.width, size.height);
                            save::write(picture, self.folder.clone(), tell.clone());
                        }
                        Effect::SuspendTerminal | Effect::ResumeTerminal => {
                            restart = true;
                            if (io.perform)(effect).is_err() {
                                return Ok(());
                            }
                        }
                        Effect::Sampler(_)
                        | Effect::WatchAll(_)
                        | Effect::Copy(_)
                        | Effect::EndCommand
                        | Effect::KillCommand => {
                            if (io.perform)(effect).is_err() {
                                return Ok(());
                            }
                        }
                        Effect::Quit => return Ok(()),
                    }
                }
                next = tokio::select! {
                    biased;
                    key = io.keys.next() => match key {
                        Some(Ok(input)) => Some(Event::Input(input)),
                        Some(Err(_)) | None => return Ok(()),
                    },
                    () = std::future::ready(()) => None,
                };
            }
        }
    }

    fn paint<B>(&mut self, terminal: &mut Terminal<B>, restart: bool) -> anyhow::Result<bool>
    where
        B: Backend,
        B::Error: Send + Sync + 'static,
    {
        let mut drawn = self.drawn;
        let painted = paint(terminal, restart, |frame| {
            drawn = frame.area();
            ui::draw(&self.view(), frame);
        });
        self.drawn = drawn;
        painted
    }
}

/// Draws a frame, all cells anew if `restart` is set; returns false if the terminal is gone.
pub(crate) fn paint<B>(
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
