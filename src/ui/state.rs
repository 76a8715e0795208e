//! What the user has chosen to see: page, panel, order, rank, worker, GPU, help, place in a list.
//!
//! Knows no figure; what a choice means on screen is the panels' business.

use std::time::Duration;

use super::filter::Filter;
use super::tree::state::{Node, Toggle, TreeState};
use super::zoom::Zoom;
use crate::config::Column;

/// Lines that a page key goes.
const PAGE: usize = 10;

/// The panels that can have the keys, in the order of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Panel {
    Verdict,
    Pipeline,
    Gpu,
    #[default]
    Workers,
    Disk,
    Timeline,
    History,
    /// What a launched command prints.
    Log,
}

impl Panel {
    pub const ALL: [Self; 8] = [
        Self::Verdict,
        Self::Pipeline,
        Self::Gpu,
        Self::Workers,
        Self::Disk,
        Self::Timeline,
        Self::History,
        Self::Log,
    ];
}

/// What fills the room between header and footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Page {
    /// All panels.
    #[default]
    Panels,
    /// All that there is to say of the panel that has the keys, or of what is marked in it.
    Detail,
    /// The job's processes and threads.
    Tree,
}

/// What keys can choose among, as it is on screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    pub ranks: usize,
    /// The place of the rank that is shown.
    pub rank: usize,
    /// Lines of the picker; 0 = it is not shown.
    pub candidates: usize,
    /// Numbers of the workers, in the order of the table.
    pub workers: Vec<u32>,
    pub gpus: usize,
    /// Lines of the tree, from the top, each with what choosing it does; none while another page is shown.
    pub tree: Vec<(Node, Option<Toggle>)>,
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
    pub page: Page,
    pub focus: Panel,
    pub sort: Sort,
    pub reversed: bool,
    pub paused: bool,
    pub help: bool,
    /// First line shown of the help, or of the panel or page that has the keys.
    pub scroll: usize,
    /// The number of the marked worker; `None` = the first of the table.
    pub worker: Option<u32>,
    /// The place of the marked GPU.
    pub gpu: usize,
    /// Which rank is shown, by place; `None` = the one that the verdict speaks of.
    pub rank: Option<usize>,
    /// The marked line of the picker.
    pub picked: usize,
    /// The job was chosen from a list, to which one can go back.
    pub chosen: bool,
    /// `None` where a job is watched that runs.
    pub replay: Option<Replay>,
    /// What is read is written to a recording.
    pub recording: bool,
    pub notice: Option<Notice>,
    /// There is a launched command whose output can be scrolled.
    pub log: bool,
    /// Which workers, or jobs to choose from, are shown.
    pub filter: Filter,
    pub tree: TreeState,
    /// How much of the past is shown.
    pub zoom: Zoom,
    /// Cells from the timeline's end to its cursor.
    pub cursor: Option<usize>,
}

impl UiState {
    /// What is shown stands still.
    pub fn is_still(&self) -> bool {
        self.paused || self.replay.is_some_and(|replay| replay.paused)
    }

    /// The keys that go back and forth move the timeline's cursor.
    pub fn points(&self) -> bool {
        self.focus == Panel::Timeline && self.page != Page::Tree && !self.help
    }

    /// Moves the timeline's cursor by a cell.
    pub fn point(&mut self, back: bool) {
        self.cursor = Some(match (self.cursor, back) {
            (None, _) => 0,
            (Some(cells), true) => cells + 1,
            (Some(cells), false) => cells.saturating_sub(1),
        });
    }

    pub fn toggle_help(&mut self) {
        self.help = !self.help;
        self.scroll = 0;
    }

    /// Gives the next panel the keys, or goes back to the panels: the tree is none of them.
    pub fn next_panel(&mut self) {
        self.step_panel(true);
    }

    pub fn previous_panel(&mut self) {
        self.step_panel(false);
    }

    pub fn up(&mut self, choices: &Choices) {
        self.step(choices, false, 1);
    }

    pub fn down(&mut self, choices: &Choices) {
        self.step(choices, true, 1);
    }

    pub fn page_up(&mut self, choices: &Choices) {
        self.step(choices, false, PAGE);
    }

    pub fn page_down(&mut self, choices: &Choices) {
        self.step(choices, true, PAGE);
    }

    /// Opens the panel, or what is marked in the tree.
    pub fn select(&mut self, choices: &Choices) {
        match self.page {
            Page::Tree => self.tree.toggle(&choices.tree),
            Page::Panels | Page::Detail => self.turn_to(Page::Detail),
        }
    }

    pub fn toggle_tree(&mut self) {
        let shown = self.page == Page::Tree && !self.help;
        self.turn_to(if shown { Page::Panels } else { Page::Tree });
    }

    /// Has words typed that find workers or jobs; in the tree, processes.
    pub fn open_filter(&mut self) {
        if self.page == Page::Tree {
            self.tree.filter.open();
            self.help = false;
        } else {
            self.filter.open();
            self.turn_to(Page::Panels);
            self.focus = Panel::Workers;
        }
    }

    /// Goes back by one thing: the help, the tree's filter, the page, the filter.
    pub fn cancel(&mut self) {
        if self.help {
            self.toggle_help();
        } else if self.page == Page::Tree && self.tree.filter.is_set() {
            self.tree.filter.clear();
        } else if self.page != Page::Panels {
            self.turn_to(Page::Panels);
        } else {
            self.filter.clear();
        }
    }

    /// Reverses the order of the workers; in the tree, its own.
    pub fn reverse(&mut self) {
        let reversed = match self.page {
            Page::Tree => &mut self.tree.reversed,
            Page::Panels | Page::Detail => &mut self.reversed,
        };
        *reversed = !*reversed;
    }

    pub fn next_rank(&mut self, choices: &Choices) {
        if choices.ranks > 0 {
            self.rank = Some((choices.rank + 1) % choices.ranks);
        }
    }

    /// What is typed goes here.
    pub fn filter_in_use(&mut self) -> &mut Filter {
        match self.page {
            Page::Tree => &mut self.tree.filter,
            Page::Panels | Page::Detail => &mut self.filter,
        }
    }

    /// Sorts by the next of these columns; the tree, by the next of its own.
    pub fn sort_by_next(&mut self, columns: &[Column]) {
        if self.page == Page::Tree {
            return self.tree.sort_by_next();
        }
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
        if self.page == Page::Tree {
            return self.turn_to(Page::Panels);
        }
        let count = Panel::ALL.len() - usize::from(!self.log);
        let place = Panel::ALL
            .iter()
            .position(|panel| *panel == self.focus)
            .unwrap_or(0);
        self.focus = Panel::ALL[(place + if forward { 1 } else { count - 1 }) % count];
        self.scroll = 0;
    }

    fn turn_to(&mut self, page: Page) {
        self.page = page;
        self.help = false;
        self.scroll = 0;
    }

    /// Moves the mark where there is one, else what is shown. On a page of details the mark goes by single steps
    /// alone: the page keys are for its lines.
    fn step(&mut self, choices: &Choices, down: bool, by: usize) {
        let moved = |place: usize| {
            if down {
                place.saturating_add(by)
            } else {
                place.saturating_sub(by)
            }
        };
        if self.page == Page::Tree && choices.candidates == 0 && !self.help {
            return self.tree.step(&choices.tree, down, by);
        }
        let marks = !self.help && (self.page == Page::Panels || by < PAGE);
        if choices.candidates > 0 && !self.help {
            self.picked = moved(self.picked).min(choices.candidates - 1);
        } else if marks && self.focus == Panel::Workers && !choices.workers.is_empty() {
            let workers = &choices.workers;
            let marked = |id: &u32| Some(*id) == self.worker;
            // Of two with a number, the one that started last.
            let place = workers.iter().rposition(marked).unwrap_or(0);
            self.worker = Some(workers[moved(place).min(workers.len() - 1)]);
        } else if marks && self.focus == Panel::Gpu && choices.gpus > 1 {
            self.gpu = moved(self.gpu).min(choices.gpus - 1);
        } else {
            self.scroll = moved(self.scroll);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Choices {
        Choices {
            ranks: 1,
            rank: 0,
            candidates: 0,
            // The order of the table, which is not that of the numbers.
            workers: vec![3, 0, 2, 1],
            gpus: 2,
            tree: Vec::new(),
        }
    }

    fn after(state: &UiState, steps: &[fn(&mut UiState, &Choices)]) -> UiState {
        let mut state = state.clone();
        for step in steps {
            step(&mut state, &choices());
        }
        state
    }

    #[test]
    fn the_mark_goes_through_the_table_and_stays_at_its_ends() {
        let start = UiState::default();
        assert_eq!(after(&start, &[UiState::down]).worker, Some(0));
        assert_eq!(after(&start, &[UiState::down, UiState::up]).worker, Some(3));
        assert_eq!(after(&start, &[UiState::page_down]).worker, Some(1));
        let lost = UiState {
            worker: Some(9),
            ..start
        };
        assert_eq!(after(&lost, &[UiState::down]).worker, Some(0));
    }

    #[test]
    fn in_the_details_page_keys_scroll_and_single_steps_choose() {
        let start = after(&UiState::default(), &[UiState::down, UiState::select]);
        assert_eq!(start.page, Page::Detail);
        let next = after(&start, &[UiState::down, UiState::page_down]);
        assert_eq!((next.worker, next.scroll), (Some(2), 10));
        let gpu = after(
            &start,
            &[
                |state, _| state.previous_panel(),
                UiState::down,
                UiState::down,
            ],
        );
        assert_eq!((gpu.focus, gpu.gpu, gpu.scroll), (Panel::Gpu, 1, 0));
        let disk = after(&start, &[|state, _| state.next_panel(), UiState::down]);
        assert_eq!((disk.focus, disk.scroll), (Panel::Disk, 1));
    }

    #[test]
    fn cancel_goes_back_one_thing_at_a_time() {
        let cancel = |state: &mut UiState, _: &Choices| state.cancel();
        let mut state = UiState::default();
        state.filter.add('1');
        let back = after(&state, &[UiState::select, UiState::page_down, cancel]);
        assert_eq!((back.page, back.scroll), (Page::Panels, 0));
        assert!(back.filter.is_set());
        assert!(!after(&back, &[cancel]).filter.is_set());
        let help = after(&state, &[UiState::select, |state, _| state.toggle_help()]);
        let closed = after(&help, &[cancel]);
        assert!(help.help && !closed.help);
        assert_eq!(closed.page, Page::Detail);
        assert!(closed.filter.is_set());
    }

    #[test]
    fn what_is_typed_for_is_seen() {
        let typing = after(
            &UiState::default(),
            &[UiState::select, |state, _| state.open_filter()],
        );
        assert_eq!((typing.page, typing.focus), (Page::Panels, Panel::Workers));
    }
}
