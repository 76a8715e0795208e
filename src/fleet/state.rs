//! What the screen of the fleet shows, and what keys and readings change of it. Pure.

use std::time::Duration;

use crossterm::event::Event as Input;

use super::report::{FleetRank, FleetReport, RunReport};
use crate::action::Action;
use crate::app::Effect;
use crate::config::Config;
use crate::error::Hinted;

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    Runs,
    /// The ranks of this run.
    Ranks(String),
}

/// What a reading brought, and of which page.
pub(super) type Reading = (Page, Result<FleetReport, Hinted>);

#[derive(Debug)]
pub(super) struct FleetScreen {
    pub(super) config: Config,
    pub(super) url: String,
    pub(super) page: Page,
    /// Of all runs, or of the one whose ranks are shown: the last that was read.
    pub(super) report: Option<FleetReport>,
    /// Since it was read.
    pub(super) age: Option<Duration>,
    /// Why there is nothing newer.
    pub(super) trouble: Option<String>,
    pub(super) picked: usize,
}

impl FleetScreen {
    pub(super) fn new(config: Config, url: String, run: Option<String>) -> Self {
        Self {
            config,
            url,
            page: run.map_or(Page::Runs, Page::Ranks),
            report: None,
            age: None,
            trouble: None,
            picked: 0,
        }
    }

    pub(super) fn runs(&self) -> &[RunReport] {
        self.report.as_ref().map_or(&[], |report| &report.runs)
    }

    /// Of the run whose ranks are shown.
    pub(super) fn ranks(&self) -> &[FleetRank] {
        self.runs().first().map_or(&[], |run| &run.all_ranks)
    }

    /// What opens pipetop where the marked rank runs.
    pub(super) fn command(&self) -> Option<String> {
        let Page::Ranks(run) = &self.page else {
            return None;
        };
        let host = self.ranks().get(self.picked)?.host();
        Some(match run.strip_prefix("slurm-") {
            Some(job) => format!("srun --overlap --jobid {job} -w {host} --pty pipetop"),
            None => format!("ssh -t {host} pipetop"),
        })
    }

    pub(super) fn take(&mut self, (page, reading): Reading) {
        if page != self.page {
            return;
        }
        match reading {
            Ok(report) => {
                self.report = Some(report);
                self.age = Some(Duration::ZERO);
                self.trouble = None;
                self.pick(self.picked);
            }
            Err(error) => self.trouble = Some(error.message),
        }
    }

    fn pick(&mut self, place: usize) {
        let count = match self.page {
            Page::Runs => self.runs().len(),
            Page::Ranks(_) => self.ranks().len(),
        };
        self.picked = place.min(count.saturating_sub(1));
    }

    /// Shows another page; nothing of the one before.
    fn open(&mut self, page: Page) {
        self.page = page;
        self.report = None;
        self.age = None;
        self.picked = 0;
    }

    pub(super) fn update(&mut self, input: &Input) -> Option<Effect> {
        let action = match input {
            Input::Resize(..) => return Some(Effect::Draw),
            Input::Key(key) => self.config.keys.action(key),
            _ => None,
        };
        match action? {
            Action::Quit => return Some(Effect::Quit),
            Action::Suspend => return Some(Effect::SuspendTerminal),
            Action::Redraw => return Some(Effect::Redraw),
            Action::Up => self.pick(self.picked.saturating_sub(1)),
            Action::Down => self.pick(self.picked + 1),
            Action::ToBegin => self.pick(0),
            Action::ToEnd => self.pick(usize::MAX),
            Action::Select if self.page == Page::Runs => {
                let run = self.runs().get(self.picked)?.run.clone();
                self.open(Page::Ranks(run));
            }
            Action::Cancel if self.page != Page::Runs => self.open(Page::Runs),
            _ => return None,
        }
        Some(Effect::Draw)
    }
}
