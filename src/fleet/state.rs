//! State of the fleet screen, and how keys and readings change it. Does no I/O.

use std::sync::mpsc::Sender;
use std::time::Duration;

use crossterm::event::Event as Input;

use super::report::{FleetRank, FleetReport, RunReport};
use crate::action::Action;
use crate::app::Effect;
use crate::config::{Config, esc_and_key};
use crate::error::Hinted;

/// Lines moved by a page key.
const PAGE: usize = 10;

/// The page on the screen: the ranks of this run. `None` = all runs.
pub(super) type FleetPage = Option<String>;

/// The result of a reading, and the page that it is for.
pub(super) type FleetReading = (FleetPage, Result<FleetReport, Hinted>);

#[derive(Debug)]
pub(super) struct FleetScreen {
    pub(super) config: Config,
    pub(super) url: String,
    pub(super) page: FleetPage,
    /// The last report: of all runs, or of the one whose ranks are shown.
    pub(super) report: Option<FleetReport>,
    /// When the first frame with the report was drawn.
    pub(super) read_at: Option<Duration>,
    /// When the last frame was drawn.
    pub(super) drawn_at: Duration,
    /// Why the last reading failed.
    pub(super) trouble: Option<String>,
    pub(super) picked: usize,
    /// The line of the run whose ranks were opened last, and its name.
    opened: (usize, Option<[String; 2]>),
    /// The command to print after the screen is closed.
    pub(super) printed: Option<String>,
    /// Requests another page from the thread that reads the server.
    want: Sender<FleetPage>,
}

impl FleetScreen {
    pub(super) fn new(
        config: Config,
        url: String,
        run: Option<String>,
        want: Sender<FleetPage>,
    ) -> Self {
        Self {
            config,
            url,
            page: run,
            report: None,
            read_at: None,
            drawn_at: Duration::ZERO,
            trouble: None,
            picked: 0,
            opened: (0, None),
            printed: None,
            want,
        }
    }

    pub(super) fn runs(&self) -> &[RunReport] {
        self.report.as_ref().map_or(&[], |report| &report.runs)
    }

    /// Returns the ranks of the run that is shown.
    pub(super) fn ranks(&self) -> &[FleetRank] {
        self.runs().first().map_or(&[], |run| &run.all_ranks)
    }

    /// Returns the command that opens pipetop on the machine of the selected rank.
    ///
    /// `None` if a name contains unusual characters: the user runs the command in a shell, and anyone who can export
    /// metrics can choose these names.
    pub(super) fn command(&self) -> Option<String> {
        let run = self.page.as_ref()?;
        let host = self.ranks().get(self.picked)?.host();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let word = |text: &str, signs: &[u8]| {
            let usual = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
            text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(usual)
        };
        if !word(host, b".-_:%") {
            return None;
        }
        match run.strip_prefix("slurm-") {
            Some(job) if word(job, b"_+") => Some(format!(
                "srun --overlap --jobid {job} -w {host} --pty pipetop"
            )),
            Some(_) => None,
            None => Some(format!("ssh -t {host} pipetop")),
        }
    }

    pub(super) fn take(&mut self, (page, reading): FleetReading) {
        if page != self.page {
            return;
        }
        match reading {
            Ok(report) => {
                let back = || self.opened.1.clone().filter(|_| self.page.is_none());
                let picked = self.name(self.picked).or_else(back);
                self.report = Some(report);
                self.read_at = None;
                self.trouble = None;
                // The order changes with the figures: keep the same run or rank selected. A selected first line stays
                // the first, since it means the worst, whichever that is.
                let same = (0..self.count()).find(|place| self.name(*place) == picked);
                let place = same.filter(|_| self.picked > 0);
                self.pick(place.unwrap_or(self.picked));
            }
            Err(error) => self.trouble = Some(error.message),
        }
    }

    /// Returns how many lines the page has.
    pub(super) fn count(&self) -> usize {
        match self.page {
            None => self.runs().len(),
            Some(_) => self.ranks().len(),
        }
    }

    /// Returns what identifies the line at `place`: the run, or the rank and its scrape target.
    fn name(&self, place: usize) -> Option<[String; 2]> {
        if self.page.is_none() {
            let run = self.runs().get(place)?;
            return Some([run.run.clone(), String::new()]);
        }
        let rank = self.ranks().get(place)?;
        Some([rank.rank.clone(), rank.instance.clone()])
    }

    fn pick(&mut self, place: usize) {
        self.picked = place.min(self.count().saturating_sub(1));
    }

    /// Opens another page, and drops the data of the previous one.
    fn open(&mut self, page: FleetPage) {
        // Cannot fail: the thread that reads ends only with the program.
        let _ = self.want.send(page.clone());
        if page.is_some() {
            self.opened = (self.picked, self.name(self.picked));
        }
        self.picked = page.as_ref().map_or(self.opened.0, |_| 0);
        self.page = page;
        (self.report, self.read_at) = (None, None);
    }

    pub(super) fn update(&mut self, input: &Input) -> Option<Effect> {
        let action = match input {
            Input::Resize(..) => return Some(Effect::Draw),
            Input::Key(key) => match self.config.keys.action(key) {
                None => {
                    let keys = esc_and_key(*key)?;
                    let effects = keys.map(|key| self.update(&Input::Key(key)));
                    return effects.into_iter().flatten().last();
                }
                action => action,
            },
            _ => None,
        };
        match action? {
            Action::Quit => return Some(Effect::Quit),
            Action::PrintCommand => {
                self.printed = Some(self.command()?);
                return Some(Effect::Quit);
            }
            Action::Suspend => return Some(Effect::SuspendTerminal),
            Action::Redraw => return Some(Effect::Redraw),
            Action::Up => self.pick(self.picked.saturating_sub(1)),
            Action::Down => self.pick(self.picked + 1),
            Action::PageUp => self.pick(self.picked.saturating_sub(PAGE)),
            Action::PageDown => self.pick(self.picked + PAGE),
            Action::ToBegin => self.pick(0),
            Action::ToEnd => self.pick(usize::MAX),
            Action::Select if self.page.is_none() => {
                let run = self.runs().get(self.picked)?.run.clone();
                self.open(Some(run));
            }
            Action::Cancel if self.page.is_some() => self.open(None),
            _ => return None,
        }
        Some(Effect::Draw)
    }
}
