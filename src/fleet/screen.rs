//! The fleet screen: takes readings, keys and signals, draws frames.
//!
//! A separate thread reads the server, so that a slow server blocks nothing. Does not depend on how a frame is drawn.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use crossterm::event::Event as Input;
use futures_util::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::Backend;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Fleet;
use super::state::{FleetPage, FleetReading, FleetScreen};
use super::view::draw;
use crate::app::runtime::live::{blocked, keys, signals};
use crate::app::runtime::paint;
use crate::app::{Effect, Signal};
use crate::background::spawn;
use crate::config::Config;
use crate::terminal::{self, Screen};

/// Time between two readings of the server.
const PAUSE: Duration = Duration::from_secs(5);
/// Interval at which the age on the screen is updated.
const TICK: Duration = Duration::from_secs(1);

impl FleetScreen {
    /// Runs until the user, a signal or the terminal ends it. Sends each new page to `want`.
    async fn run<B, K>(
        &mut self,
        terminal: &mut Terminal<B>,
        mut keys: K,
        mut signals: mpsc::Receiver<Signal>,
        mut blocked: watch::Receiver<bool>,
        (want, mut readings): (Sender<FleetPage>, mpsc::Receiver<FleetReading>),
    ) -> anyhow::Result<()>
    where
        B: Backend,
        B::Error: Send + Sync + 'static,
        K: Stream<Item = std::io::Result<Input>> + Unpin,
    {
        let mut read_at = Instant::now();
        let mut read = self.page.clone();
        let mut ticks = tokio::time::interval(TICK);
        let mut effect = Some(Effect::Draw);
        // Pending draws: while the terminal accepts no output, they are merged into one frame.
        let (mut frame, mut redraw) = (false, false);
        loop {
            let given = match &effect {
                Some(Effect::Quit) => return Ok(()),
                Some(Effect::SuspendTerminal) => Some(terminal::suspend()),
                Some(Effect::ResumeTerminal) => Some(terminal::resume()),
                Some(Effect::Redraw) => Some(Ok(())),
                _ => None,
            };
            if given.as_ref().is_some_and(Result::is_err) {
                return Ok(());
            }
            redraw |= given.is_some();
            frame |= effect == Some(Effect::Draw);
            if read != self.page {
                read.clone_from(&self.page);
                // The reader ends only with the program.
                let _ = want.send(read.clone());
            }
            if (frame || redraw) && !*blocked.borrow() {
                if !paint(terminal, redraw, |frame| draw(self, frame))? {
                    return Ok(());
                }
                (frame, redraw) = (false, false);
            }
            effect = tokio::select! {
                biased;
                Some(signal) = signals.recv() => match signal {
                    Signal::Stop => Some(Effect::Quit),
                    Signal::Suspend => Some(Effect::SuspendTerminal),
                    Signal::Resume => Some(Effect::ResumeTerminal),
                },
                key = keys.next() => match key {
                    Some(Ok(input)) => self.update(&input),
                    // The terminal is gone.
                    Some(Err(_)) | None => Some(Effect::Quit),
                },
                Ok(()) = blocked.changed(), if frame || redraw => None,
                Some(reading) = readings.recv() => {
                    if reading.1.is_ok() {
                        read_at = Instant::now();
                    }
                    self.take(reading);
                    Some(Effect::Draw)
                }
                now = ticks.tick() => {
                    if let Some(age) = &mut self.age {
                        *age = now.saturating_duration_since(read_at);
                    }
                    Some(Effect::Draw)
                }
            };
        }
    }
}

/// Reads a page again and again, or another one when it is wanted, until nobody receives the readings.
fn keep_reading(mut fleet: Fleet, wanted: &Receiver<FleetPage>, send: &mpsc::Sender<FleetReading>) {
    loop {
        let reading = (fleet.run.clone(), fleet.read());
        if send.blocking_send(reading).is_err() {
            return;
        }
        match wanted.recv_timeout(PAUSE) {
            // Use the newest page: keys may be faster than the server.
            Ok(other) => fleet.run = wanted.try_iter().last().unwrap_or(other),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Shows the fleet on the terminal until the user ends it. Returns the command to print then, if the user asked for one.
///
/// # Errors
/// Returns an error if the terminal cannot be used, or if no thread can be started.
pub(crate) fn show(fleet: Fleet, config: Config) -> anyhow::Result<Option<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let signals = signals()?;
        let mut shown = FleetScreen::new(config, fleet.url.clone(), fleet.run.clone());
        let (want, wanted) = std::sync::mpsc::channel();
        let (send, readings) = mpsc::channel(1);
        // The thread ends with the program, or when the receiver is gone.
        spawn("fleet", move || keep_reading(fleet, &wanted, &send))?;
        let mut screen = Screen::open()?;
        let ends = shown.run(
            &mut screen.terminal,
            keys()?,
            signals,
            blocked(),
            (want, readings),
        );
        ends.await?;
        Ok(shown.printed)
    })
}
