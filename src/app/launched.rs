//! A launched command on the screen: its output, its end, and what to do with it when the user quits.

use std::time::Duration;

use super::Effect;
use crate::last_lines::Lines;
use crate::launch::{Ending, ExitTracker, LogStorage, SupervisorEvent};
use crate::ui::CommandView;

/// The command's part of the screen.
#[derive(Debug, Default)]
pub struct LaunchedCommand {
    pub(super) shown: CommandView,
    log: LogStorage,
    exit: ExitTracker,
    ended: Option<Ending>,
    /// No process of the command is left.
    gone: bool,
    choice: Option<QuitChoice>,
}

/// What the user chose to do with the command when quitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuitChoice {
    /// The command should end.
    Ending,
    /// The command should go on.
    Running,
}

impl LaunchedCommand {
    /// Creates the state of a running command. `log` is where its output is.
    pub fn new(name: String, log: LogStorage) -> Self {
        let shown = CommandView {
            name,
            ..CommandView::default()
        };
        Self {
            shown,
            log,
            ..Self::default()
        }
    }

    /// Returns how the command ended; `None` if it has not.
    pub fn ended(&self) -> Option<Ending> {
        self.ended
    }

    /// Returns what the user chose to do with the command; `None` if no choice was made.
    pub fn choice(&self) -> Option<QuitChoice> {
        self.choice
    }

    /// Returns the command's output.
    pub fn output(&self) -> &Lines {
        &self.shown.printed
    }

    pub(super) fn wanted(&self) -> String {
        format!(
            "a Python process with PyTorch, started by `{}`",
            self.shown.name
        )
    }

    pub(super) fn printed(&mut self, bytes: &[u8]) -> Vec<Effect> {
        self.shown.printed.feed(bytes);
        vec![Effect::Draw]
    }

    pub(super) fn command_event(&mut self, event: &SupervisorEvent) -> Vec<Effect> {
        match event {
            SupervisorEvent::Ended(ending) => {
                self.ended = Some(*ending);
                self.exit.ended();
                self.shown.state = format!("the command {ending}");
            }
            SupervisorEvent::Gone => self.gone = true,
            SupervisorEvent::Started { .. } | SupervisorEvent::Refused { .. } => return vec![],
        }
        vec![if self.is_over() {
            Effect::Quit
        } else {
            Effect::Draw
        }]
    }

    /// Records a sample; returns whether there is nothing left to wait for.
    pub(super) fn seen(&mut self, at: Duration, trains: bool) -> bool {
        self.exit.seen(at, trains);
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.gone || self.exit.is_over()
    }

    /// Shows that the command was sent a signal to end.
    pub(super) fn ending(&mut self) -> Vec<Effect> {
        "stopping".clone_into(&mut self.shown.state);
        vec![Effect::Draw]
    }

    /// Whether the question is open.
    pub(super) fn is_asking(&self) -> bool {
        self.shown.asked
    }

    /// Opens the question.
    pub(super) fn open_question(&mut self) -> Vec<Effect> {
        // Another command may have taken the usual name since this one began.
        self.shown.output_path = self.log.kept_location();
        self.shown.asked = true;
        vec![Effect::Draw]
    }

    /// Ends the command; the second time, kills it.
    pub(super) fn end(&mut self) -> Vec<Effect> {
        self.shown.asked = false;
        if self.choice == Some(QuitChoice::Ending) {
            return vec![Effect::Draw, Effect::KillCommand];
        }
        self.choice = Some(QuitChoice::Ending);
        "stopping; killed after 10 s".clone_into(&mut self.shown.state);
        vec![Effect::Draw, Effect::EndCommand]
    }

    /// Quits and leaves the command running.
    pub(super) fn detach(&mut self) -> Vec<Effect> {
        self.choice = Some(QuitChoice::Running);
        vec![Effect::Quit]
    }

    /// Closes the question and keeps watching.
    pub(super) fn go_on(&mut self) -> Vec<Effect> {
        self.shown.asked = false;
        vec![Effect::Draw]
    }
}
