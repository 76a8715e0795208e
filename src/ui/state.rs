//! What the user has chosen to see: panel, order, rank, help, place in a list.
//!
//! Knows no figure; what a choice means on screen is the panels' business.

use std::time::Duration;

use super::axis::Zoom;
use super::filter::Filter;
use crate::action::Action;
use crate::config::Column;

/// The panels that can have the keys, in the order of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Panel {
    Verdict,
    Pipeline,
    Gpu,
    #[default]
    Workers,
    Disk,
    History,
    /// What a launched command prints.
    Log,
}

impl Panel {
    pub const ALL: [Self; 7] = [
        Self::Verdict,
        Self::Pipeline,
        Self::Gpu,
        Self::Workers,
        Self::Disk,
        Self::History,
        Self::Log,
    ];
}

/// What the worker table is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    #[default]
    Id,
    Cpu,
    Delay,
    Read,
    Batches,
    Load,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Id => Self::Cpu,
            Self::Cpu => Self::Delay,
            Self::Delay => Self::Read,
            Self::Read => Self::Batches,
            Self::Batches => Self::Load,
            Self::Load => Self::Id,
        }
    }

    /// The column that shows it; `None` = the worker's number, which is always shown.
    fn column(self) -> Option<Column> {
        match self {
            Self::Id => None,
            Self::Cpu => Some(Column::Cpu),
            Self::Delay => Some(Column::Delay),
            Self::Read => Some(Column::Read),
            Self::Batches => Some(Column::Batches),
            Self::Load => Some(Column::Load),
        }
    }
}

/// Where a replay is and how it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Replay {
    /// From the begin of what is replayed to what is shown, and to its end.
    pub at: Duration,
    pub of: Duration,
    /// Recorded seconds in a second.
    pub speed: f64,
    pub paused: bool,
    /// The end is shown.
    pub ended: bool,
}

/// One line for the user, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    /// Something could not be done.
    pub trouble: bool,
}

/// Everything that keys change and drawing only reads.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiState {
    pub focus: Panel,
    pub sort: Sort,
    pub reversed: bool,
    pub frozen: bool,
    pub help: bool,
    /// First line shown of the help, or of the panel that has the keys.
    pub scroll: usize,
    /// Which rank is shown, by place; `None` = the one that the verdict speaks of.
    pub rank: Option<usize>,
    /// The marked line of the picker.
    pub picked: usize,
    /// `None` where a job is watched that runs.
    pub replay: Option<Replay>,
    /// What is read is written to a recording.
    pub recording: bool,
    pub notice: Option<Notice>,
    /// There is a launched command whose output can be scrolled.
    pub log: bool,
    /// Which workers are shown.
    pub filter: Filter,
    /// How much of the past is shown.
    pub zoom: Zoom,
}

impl UiState {
    /// Applies what only concerns the look. `ranks` and `candidates` are how many there are.
    pub fn apply(&mut self, action: Action, ranks: usize, candidates: usize) {
        match action {
            Action::Help => {
                self.help = !self.help;
                self.scroll = 0;
            }
            Action::Freeze => self.frozen = !self.frozen,
            Action::NextPanel => self.step_panel(true),
            Action::PreviousPanel => self.step_panel(false),
            Action::Up => self.step(candidates, false, 1),
            Action::Down => self.step(candidates, true, 1),
            Action::PageUp => self.step(candidates, false, 10),
            Action::PageDown => self.step(candidates, true, 10),
            Action::Filter => {
                self.filter.open();
                self.focus = Panel::Workers;
                self.help = false;
            }
            Action::Cancel => self.filter.clear(),
            Action::SortReverse => self.reversed = !self.reversed,
            Action::NextRank if ranks > 0 => {
                self.rank = Some(self.rank.map_or(0, |rank| (rank + 1) % ranks));
            }
            _ => {}
        }
    }

    /// Sorts by the next of these columns.
    pub fn sort_by_next(&mut self, columns: &[Column]) {
        self.sort = self.sort.next();
        while self
            .sort
            .column()
            .is_some_and(|column| !columns.contains(&column))
        {
            self.sort = self.sort.next();
        }
    }

    /// Gives a panel the keys; false where it has them already.
    pub fn focus_on(&mut self, panel: Panel) -> bool {
        let turned = self.focus != panel;
        if turned {
            self.focus = panel;
            self.scroll = 0;
        }
        turned
    }

    fn step_panel(&mut self, forward: bool) {
        let count = Panel::ALL.len() - usize::from(!self.log);
        let place = Panel::ALL
            .iter()
            .position(|panel| *panel == self.focus)
            .unwrap_or(0);
        self.focus = Panel::ALL[(place + if forward { 1 } else { count - 1 }) % count];
        self.scroll = 0;
    }

    fn step(&mut self, candidates: usize, down: bool, by: usize) {
        let picking = candidates > 0 && !self.help;
        let place = if picking {
            &mut self.picked
        } else {
            &mut self.scroll
        };
        *place = if down {
            place.saturating_add(by)
        } else {
            place.saturating_sub(by)
        };
        if picking {
            *place = (*place).min(candidates - 1);
        }
    }
}
