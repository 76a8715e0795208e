//! Waiting for the next event and drawing after it. Only here and in the samplers is time real.

use std::time::Duration;

use crossterm::event::Event as Input;
use futures_util::{Stream, StreamExt};
use ratatui::backend::Backend;
use ratatui::{Frame, Terminal};
use tokio::sync::{mpsc, watch};

use super::replay::{Remote, next};
use super::{App, Event, Flow, Signal, save};
use crate::sample::Sample;
use crate::source::sampler::Request;
use crate::terminal::is_gone;
use crate::ui;

/// The outside world as the loop sees it: all of it can be scripted.
#[derive(Debug)]
pub struct Outside<K, A, T, E> {
    pub keys: K,
    pub samples: mpsc::Receiver<Sample>,
    pub signals: mpsc::Receiver<Signal>,
    /// What is heard of a launched command.
    pub told: mpsc::Receiver<Event>,
    /// Asks a launched command to end.
    pub end: E,
    /// Tells the sampler.
    pub ask: A,
    /// Gives the terminal to the shell or takes it again; called for [`Flow::Suspend`] and
    /// [`Flow::Resume`].
    pub terminal: T,
    /// The terminal has not yet taken the last frame.
    pub blocked: watch::Receiver<bool>,
    /// End after this time.
    pub span: Option<Duration>,
    /// What is looked at is a recording; there are no samples then but its own.
    pub replay: Option<Remote>,
}

impl App {
    /// Runs until the user, a signal, the span or the terminal ends it.
    ///
    /// # Errors
    /// Where the terminal cannot be drawn on although it is there.
    pub async fn run<B, K, A, T, E>(
        &mut self,
        terminal: &mut Terminal<B>,
        mut outside: Outside<K, A, T, E>,
    ) -> anyhow::Result<()>
    where
        B: Backend,
        B::Error: Send + Sync + 'static,
        K: Stream<Item = std::io::Result<Input>> + Unpin,
        A: FnMut(Request),
        T: FnMut(&Flow) -> std::io::Result<()>,
        E: FnMut(),
    {
        // What is owed to the screen: while the terminal takes nothing, one frame stands for all.
        let (mut draw, mut anew) = (true, false);
        let (tell, mut saved) = mpsc::channel(1);
        let span = tokio::time::sleep(outside.span.unwrap_or(Duration::MAX));
        tokio::pin!(span);
        loop {
            if (draw || anew) && !*outside.blocked.borrow() {
                if !self.paint(terminal, anew)? {
                    return Ok(());
                }
                (draw, anew) = (false, false);
            }
            let event = tokio::select! {
                biased;
                Some(signal) = outside.signals.recv() => Event::Signal(signal),
                key = outside.keys.next() => match key {
                    Some(Ok(input)) => Event::Input(input),
                    // The terminal is gone.
                    Some(Err(_)) | None => return Ok(()),
                },
                Ok(()) = outside.blocked.changed(), if draw || anew => continue,
                Some(notice) = saved.recv() => Event::Notice(notice),
                Some(told) = outside.told.recv() => told,
                Some(sample) = outside.samples.recv() => Event::Sample(Box::new(sample)),
                Some(played) = next(outside.replay.as_mut()) => Event::Played(Box::new(played)),
                () = &mut span, if outside.span.is_some() => return Ok(()),
            };
            let mut next = Some(event);
            // A held key must not queue up frames: whatever was typed goes into one.
            while let Some(event) = next.take() {
                match self.update(event) {
                    Flow::Continue => {}
                    Flow::Draw => draw = true,
                    Flow::Redraw => anew = true,
                    Flow::Ask(request) => {
                        (outside.ask)(request);
                        draw = true;
                    }
                    Flow::Play(wish) => {
                        if let Some(replay) = &mut outside.replay {
                            (replay.wish)(wish);
                        }
                    }
                    Flow::Save => {
                        let size = terminal.size()?;
                        let picture = self.saved(size.width, size.height);
                        save::write(picture, self.folder.clone(), tell.clone());
                    }
                    flow @ (Flow::Suspend | Flow::Resume) => {
                        if (outside.terminal)(&flow).is_err() {
                            return Ok(());
                        }
                        anew = true;
                    }
                    Flow::End => {
                        (outside.end)();
                        draw = true;
                    }
                    Flow::Quit => return Ok(()),
                }
                next = tokio::select! {
                    biased;
                    key = outside.keys.next() => match key {
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
pub(super) fn paint<B>(
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
