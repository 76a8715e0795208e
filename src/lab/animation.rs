//! The loop of the animated simulation: keys, signals and the passing of time in, frames out.

mod view;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::Event as Input;
use futures_util::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::Backend;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

use view::{PastMoment, SimulationView, draw};

use crate::action::Action;
use crate::app::runtime::live::{blocked, keys, signals};
use crate::app::runtime::paint;
use crate::app::{Effect, Signal};
use crate::config::Config;
use crate::lab::experiments::simulate::{Simulation, SimulationSettings, TrainerState};
use crate::terminal::{self, Screen};

/// Time between two frames.
const FRAME: Duration = Duration::from_millis(50);
/// A frame that was late, also by hours in a stopped process, lets no more time pass than this.
const LATEST: Duration = Duration::from_millis(250);
/// Simulated seconds in a second.
const SPEEDS: [f64; 11] = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
const REAL_TIME: usize = 4;
/// Moments of the past that are kept, and into how many the whole time is cut at most.
const PAST: usize = 500;
const MOMENTS: u32 = 10_000;

/// A simulation with what keys do to it.
#[derive(Debug)]
struct Animation {
    simulation: Simulation,
    past: VecDeque<PastMoment>,
    /// Time between two moments of the past, and the next one.
    every: Duration,
    next: Duration,
    speed: usize,
    paused: bool,
    config: Config,
}

impl Animation {
    fn new(settings: &SimulationSettings, seed: u64, config: Config) -> Self {
        // A cell for each step, so that waits show in their length.
        let tick = settings.clock.unwrap_or_default();
        let every = settings.step.max(tick).max(settings.span / MOMENTS);
        Self {
            simulation: Simulation::new(settings, seed),
            past: VecDeque::with_capacity(PAST),
            every: every.max(Duration::from_nanos(1)),
            next: Duration::ZERO,
            speed: REAL_TIME,
            paused: false,
            config,
        }
    }

    /// Lets this much real time pass.
    fn pass(&mut self, time: Duration) {
        let passed = time.min(LATEST).mul_f64(SPEEDS[self.speed]);
        let to = self.simulation.now().saturating_add(passed);
        while self.next <= to && !self.simulation.is_over() {
            self.simulation.advance(self.next);
            self.next += self.every;
            if self.past.len() == PAST {
                self.past.pop_front();
            }
            let training = match self.simulation.trainer() {
                TrainerState::Working { worker, .. } => Some(worker),
                TrainerState::Waiting => None,
            };
            self.past.push_back(PastMoment {
                ready: self.simulation.ready().count(),
                training,
            });
        }
        self.simulation.advance(to);
    }

    fn moves(&self) -> bool {
        !self.paused && !self.simulation.is_over()
    }

    fn update(&mut self, input: &Input) -> Option<Effect> {
        let action = match input {
            Input::Resize(..) => return Some(Effect::Draw),
            Input::Key(key) => self.config.keys.action(key),
            _ => None,
        };
        match action {
            Some(Action::Quit) => return Some(Effect::Quit),
            Some(Action::Suspend) => return Some(Effect::SuspendTerminal),
            Some(Action::Redraw) => return Some(Effect::Redraw),
            Some(Action::Pause) => self.paused = !self.paused,
            Some(Action::IntervalLonger) => self.speed = (self.speed + 1).min(SPEEDS.len() - 1),
            Some(Action::IntervalShorter) => self.speed = self.speed.saturating_sub(1),
            _ => return None,
        }
        Some(Effect::Draw)
    }

    fn view(&self) -> SimulationView<'_> {
        SimulationView {
            simulation: &self.simulation,
            past: &self.past,
            speed: SPEEDS[self.speed],
            paused: self.paused,
            config: &self.config,
        }
    }

    /// Runs until the user, a signal or the terminal ends it; the last picture stays.
    async fn run<B, K>(
        &mut self,
        terminal: &mut Terminal<B>,
        mut keys: K,
        mut signals: mpsc::Receiver<Signal>,
        mut blocked: watch::Receiver<bool>,
        give: impl Fn(&Effect) -> std::io::Result<()>,
    ) -> anyhow::Result<()>
    where
        B: Backend,
        B::Error: Send + Sync + 'static,
        K: Stream<Item = std::io::Result<Input>> + Unpin,
    {
        let mut last = Instant::now();
        let mut frames = tokio::time::interval_at(last + FRAME, FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut effect = Some(Effect::Draw);
        // What is owed to the screen: while the terminal takes nothing, one frame stands for all.
        let (mut frame, mut anew) = (false, false);
        loop {
            match &effect {
                Some(Effect::Quit) => return Ok(()),
                Some(mode @ (Effect::SuspendTerminal | Effect::ResumeTerminal)) => {
                    anew = true;
                    if give(mode).is_err() {
                        return Ok(());
                    }
                }
                Some(Effect::Draw) => frame = true,
                Some(Effect::Redraw) => anew = true,
                // The others are for a job that is watched.
                Some(
                    Effect::Sampler(_)
                    | Effect::WatchAll(_)
                    | Effect::Save
                    | Effect::Copy(_)
                    | Effect::EndCommand
                    | Effect::KillCommand,
                )
                | None => {}
            }
            if (frame || anew) && !*blocked.borrow() {
                if !paint(terminal, anew, |frame| draw(&self.view(), frame))? {
                    return Ok(());
                }
                (frame, anew) = (false, false);
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
                Ok(()) = blocked.changed(), if frame || anew => None,
                now = frames.tick() => {
                    let passed = now.saturating_duration_since(last);
                    last = now;
                    if self.moves() {
                        self.pass(passed);
                        Some(Effect::Draw)
                    } else {
                        None
                    }
                }
            };
        }
    }
}

/// Draws one run of the simulation on the terminal, until the user ends it.
///
/// # Errors
/// Where the terminal cannot be taken.
pub fn animate(settings: &SimulationSettings, seed: u64, config: Config) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let signals = signals()?;
        let mut animation = Animation::new(settings, seed, config);
        let mut screen = Screen::open()?;
        let give = |effect: &Effect| match effect {
            Effect::SuspendTerminal => terminal::suspend(),
            _ => terminal::resume(),
        };
        let ended = animation.run(&mut screen.terminal, keys()?, signals, blocked(), give);
        ended.await
    })
}
