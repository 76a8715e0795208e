//! Waiting for the next event, and doing what `update` says after it. Only here and in the samplers is time real.

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

/// What the loop takes in and hands out: all of it can be scripted.
#[derive(Debug)]
pub struct Io<K, P> {
    pub keys: K,
    /// Samples of a job that runs.
    pub readings: mpsc::Receiver<Event>,
    pub signals: mpsc::Receiver<Signal>,
    /// What is heard of a launched command.
    pub messages: mpsc::Receiver<Event>,
    /// The terminal has not yet taken the last frame.
    pub blocked: watch::Receiver<bool>,
    /// End after this time.
    pub span: Option<Duration>,
    /// Does what is for the sampler, the command or the terminal's modes; an error is the terminal's,
    /// and ends the loop.
    pub perform: P,
}

impl App {
    /// Runs until the user, a signal, the span or the terminal ends it.
    ///
    /// # Errors
    /// Where the terminal cannot be drawn on although it is there.
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
        // What is owed to the screen: while the terminal takes nothing, one frame stands for all.
        let (mut draw, mut anew) = (true, false);
        let (tell, mut saved) = mpsc::channel(1);
        let began = tokio::time::Instant::now();
        let span = tokio::time::sleep(io.span.unwrap_or(Duration::MAX));
        tokio::pin!(span);
        loop {
            if (draw || anew) && !*io.blocked.borrow() {
                self.settle(began.elapsed());
                if !self.paint(terminal, anew)? {
                    return Ok(());
                }
                (draw, anew) = (false, false);
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
                Ok(()) = io.blocked.changed(), if draw || anew => continue,
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
            // A held key must not queue up frames: whatever was typed goes into one.
            while let Some(event) = next.take() {
                for effect in self.update(event) {
                    match effect {
                        Effect::Draw => draw = true,
                        Effect::Redraw => anew = true,
                        Effect::Save => {
                            self.settle(began.elapsed());
                            let size = terminal.size()?;
                            let picture = self.saved(size.width, size.height);
                            save::write(picture, self.folder.clone(), tell.clone());
                        }
                        Effect::SuspendTerminal | Effect::ResumeTerminal => {
                            anew = true;
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

    fn paint<B>(&mut self, terminal: &mut Terminal<B>, anew: bool) -> anyhow::Result<bool>
    where
        B: Backend,
        B::Error: Send + Sync + 'static,
    {
        let mut drawn = self.drawn;
        let painted = paint(terminal, anew, |frame| {
            drawn = frame.area();
            ui::draw(&self.view(), frame);
        });
        self.drawn = drawn;
        painted
    }
}

/// Draws, every cell anew where `anew` says so; false where the terminal is gone.
pub(crate) fn paint<B>(
    terminal: &mut Terminal<B>,
    anew: bool,
    draw: impl FnOnce(&mut Frame<'_>),
) -> anyhow::Result<bool>
where
    B: Backend,
    B::Error: Send + Sync + 'static,
{
    let cleared = if anew {
        // Not `Terminal::clear`: it asks the terminal where the cursor is and waits for the answer.
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
