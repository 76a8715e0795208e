//! Connects the fleet screen to the event loop of `app`.
//!
//! A separate thread reads the server, so that a slow server does not block the screen. Does not depend on how a frame
//! is drawn.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crossterm::event::Event as Input;
use ratatui::Frame;
use tokio::sync::mpsc;

use super::Fleet;
use super::state::{FleetPage, FleetReading, FleetScreen};
use super::view::draw;
use crate::app::runtime::Shown;
use crate::app::runtime::live::on_terminal;
use crate::app::{Effect, Signal};
use crate::background::spawn;
use crate::config::Config;

/// Time between two readings of the server.
const PAUSE: Duration = Duration::from_secs(5);
/// Interval at which the age on the screen is updated.
const TICK: Duration = Duration::from_secs(1);

impl Shown for FleetScreen {
    type Message = FleetReading;

    fn input(&mut self, input: Input) -> Vec<Effect> {
        self.update(&input).into_iter().collect()
    }

    fn signal(&mut self, signal: Signal) -> Vec<Effect> {
        vec![match signal {
            Signal::Stop => Effect::Quit,
            Signal::Suspend => Effect::SuspendTerminal,
            Signal::Resume => Effect::ResumeTerminal,
        }]
    }

    fn message(&mut self, reading: FleetReading) -> Vec<Effect> {
        self.take(reading);
        vec![Effect::Draw]
    }

    fn due(&mut self) -> Option<Duration> {
        Some(self.drawn_at + TICK)
    }

    fn draw(&mut self, real: Duration, frame: &mut Frame<'_>) {
        self.drawn_at = real;
        if self.report.is_some() {
            self.read_at.get_or_insert(real);
        }
        draw(self, frame);
    }
}

/// Reads the current page repeatedly, and another page as soon as it is requested, until the receiver is gone.
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

/// Shows the fleet on the terminal until the user ends it. Returns the command to print afterwards, if the user asked
/// for one.
///
/// # Errors
/// Returns an error if the terminal cannot be used, or if no thread can be started.
pub(crate) fn show(fleet: Fleet, config: Config) -> anyhow::Result<Option<String>> {
    let (want, wanted) = std::sync::mpsc::channel();
    let (send, readings) = mpsc::channel(1);
    let mut shown = FleetScreen::new(config, fleet.url.clone(), fleet.run.clone(), want);
    // The thread ends with the program, or when the receiver is gone.
    spawn("fleet", move || keep_reading(fleet, &wanted, &send))?;
    on_terminal(&mut shown, readings, mpsc::channel(1).1, None, |_| {})?;
    Ok(shown.printed)
}
