//! A launched command on the screen: what it prints, how it ends, and what shall become of it when the user leaves.

use std::time::Duration;

use super::Flow;
use crate::action::Action;
use crate::last_lines::Lines;
use crate::launch::{Ending, News, Rest};
use crate::ui::Command;

/// The command's part of the screen.
#[derive(Debug)]
pub struct Launched {
    name: String,
    keeps: String,
    printed: Lines,
    rest: Rest,
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
            rest: Rest::default(),
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
        format!(
            "below `{}`: a Python process that has loaded PyTorch",
            self.name
        )
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

    pub(super) fn printed(&mut self, bytes: &[u8]) -> Flow {
        self.printed.feed(bytes);
        Flow::Draw
    }

    pub(super) fn news(&mut self, news: &News) -> Flow {
        match news {
            News::Ended(ending) => {
                self.ended = Some(*ending);
                self.rest.ended();
                self.state = format!("the command {ending}");
            }
            News::Gone => self.gone = true,
            News::Started { .. } | News::Refused { .. } => return Flow::Continue,
        }
        self.next()
    }

    /// A sample came; says whether there is nothing to wait for any more.
    pub(super) fn seen(&mut self, at: Duration, trains: bool) -> bool {
        self.rest.seen(at, trains);
        self.next() == Flow::Quit
    }

    fn next(&self) -> Flow {
        if self.gone || self.rest.is_over() {
            Flow::Quit
        } else {
            Flow::Draw
        }
    }

    /// It was sent a signal that asks it to end.
    pub(super) fn told_to_end(&mut self) -> Flow {
        "was told to end".clone_into(&mut self.state);
        Flow::Draw
    }

    /// What a wish means for the command. `None` where it means nothing.
    pub(super) fn act(&mut self, action: Action) -> Option<Flow> {
        match action {
            Action::Quit => {
                self.asked = true;
                Some(Flow::Draw)
            }
            Action::EndCommand if self.asked => {
                self.asked = false;
                self.left = Some(Left::Ending);
                "is asked to end, and killed after 10 s".clone_into(&mut self.state);
                Some(Flow::End)
            }
            Action::Detach if self.asked => {
                self.left = Some(Left::Running);
                Some(Flow::Quit)
            }
            Action::Cancel if self.asked => {
                self.asked = false;
                Some(Flow::Draw)
            }
            // Everything else waits for the answer.
            Action::Redraw | Action::Suspend => None,
            _ => self.asked.then_some(Flow::Continue),
        }
    }
}
