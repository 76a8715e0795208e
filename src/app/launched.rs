//! A launched command on the screen: what it prints, how it ends, and what shall become of it when the user leaves.

use std::time::Duration;

use super::Effect;
use crate::last_lines::Lines;
use crate::launch::{Ending, ExitTracker, SupervisorEvent};
use crate::ui::Command;

/// The command's part of the screen.
#[derive(Debug)]
pub struct Launched {
    name: String,
    keeps: String,
    printed: Lines,
    exit: ExitTracker,
    ended: Option<Ending>,
    /// Nothing of it is left.
    gone: bool,
    /// What becomes of it, for the screen.
    state: String,
    asked: bool,
    left: Option<Left>,
}

/// How the user left the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// To be ended.
    Ending,
    /// To go on.
    Running,
}

impl Launched {
    /// `keeps` says where the command's output would go on without us.
    pub fn new(name: String, keeps: String) -> Self {
        Self {
            name,
            keeps,
            printed: Lines::default(),
            exit: ExitTracker::default(),
            ended: None,
            gone: false,
            state: String::new(),
            asked: false,
            left: None,
        }
    }

    /// How the command ended. `None` where it has not.
    pub fn ended(&self) -> Option<Ending> {
        self.ended
    }

    /// How the user left it. `None` where that was not asked for.
    pub fn left(&self) -> Option<Left> {
        self.left
    }

    /// What it has printed.
    pub fn output(&self) -> &Lines {
        &self.printed
    }

    pub(super) fn wanted(&self) -> String {
        format!("a Python process with PyTorch, started by `{}`", self.name)
    }

    pub(super) fn view(&self) -> Command<'_> {
        Command {
            name: &self.name,
            printed: &self.printed,
            state: &self.state,
            keeps: &self.keeps,
            asked: self.asked,
        }
    }

    pub(super) fn printed(&mut self, bytes: &[u8]) -> Vec<Effect> {
        self.printed.feed(bytes);
        vec![Effect::Draw]
    }

    pub(super) fn command_event(&mut self, event: &SupervisorEvent) -> Vec<Effect> {
        match event {
            SupervisorEvent::Ended(ending) => {
                self.ended = Some(*ending);
                self.exit.ended();
                self.state = format!("the command {ending}");
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

    /// A sample came; says whether there is nothing to wait for any more.
    pub(super) fn seen(&mut self, at: Duration, trains: bool) -> bool {
        self.exit.seen(at, trains);
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.gone || self.exit.is_over()
    }

    /// It was sent a signal that asks it to end.
    pub(super) fn told_to_end(&mut self) -> Vec<Effect> {
        "stopping".clone_into(&mut self.state);
        vec![Effect::Draw]
    }

    /// The question what becomes of the command is open.
    pub(super) fn asks(&self) -> bool {
        self.asked
    }

    /// Opens the question.
    pub(super) fn ask(&mut self) -> Vec<Effect> {
        self.asked = true;
        vec![Effect::Draw]
    }

    /// The user wants the command to end; the second time, at once.
    pub(super) fn end(&mut self) -> Vec<Effect> {
        self.asked = false;
        if self.left == Some(Left::Ending) {
            return vec![Effect::Draw, Effect::KillCommand];
        }
        self.left = Some(Left::Ending);
        "stopping; killed after 10 s".clone_into(&mut self.state);
        vec![Effect::Draw, Effect::EndCommand]
    }

    /// The user leaves the command running.
    pub(super) fn detach(&mut self) -> Vec<Effect> {
        self.left = Some(Left::Running);
        vec![Effect::Quit]
    }

    /// The user goes on watching.
    pub(super) fn go_on(&mut self) -> Vec<Effect> {
        self.asked = false;
        vec![Effect::Draw]
    }
}
