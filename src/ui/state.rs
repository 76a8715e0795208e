//! The user's choices: page, panel, order, rank, worker, GPU, help, scroll position.
//!
//! Holds no figures; the panels decide how a choice is drawn.

use super::filter::Filter;
use super::tree::state::{Node, Toggle, TreeState};
use super::zoom::Zoom;
use crate::config::Column;
use crate::sample::ReplayPosition;
use crate::units::Pid;

/// Lines moved by a page key.
const PAGE: usize = 10;

/// The list of panels, each with its file, in the order of the screen; `$with` is the macro that reads it.
macro_rules! panels {
    ($with:ident) => {
        $with! {
            Verdict: verdict,
            Pipeline: pipeline,
            Gpu: gpu,
            #[default]
            Workers: workers,
            Disk: disk,
            Timeline: timeline,
            History: history,
            /// Output of a launched command.
            Log: log,
        }
    };
}
pub(super) use panels;

macro_rules! define {
    ($($(#[$attribute:meta])* $name:ident: $file:ident,)*) => {
        /// The panels that can be focused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub enum Panel {
            $($(#[$attribute])* $name,)*
        }

        impl Panel {
            /// All panels, in the order of the screen.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];
        }
    };
}
panels!(define);

/// What fills the screen between header and footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Page {
    /// All panels.
    #[default]
    Panels,
    /// The details of the focused panel, or of the row marked in it.
    Detail,
    /// The job's processes and threads.
    Tree,
}

/// What the keys can choose from on this screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    pub ranks: usize,
    /// The place of the shown rank.
    pub rank: usize,
    /// Lines of the picker; 0 = it is not shown.
    pub candidates: usize,
    /// The workers, in the order of the table.
    pub workers: Vec<(u64, u32)>,
    pub gpus: usize,
    /// Lines of the tree, from the top, each with the effect of choosing it; empty while another page is shown.
    pub tree: Vec<(Node, Option<Toggle>)>,
    /// How far the help, the page or the focused panel can be scrolled.
    pub end: usize,
    /// What scrolls is the output of a command: its newest lines are shown first, and scrolling goes up to older ones.
    pub from_newest: bool,
}

/// The columns that the keys sort the worker table by, after the workers' numbers.
const SORTED_BY: [Column; 5] = [
    Column::Cpu,
    Column::Delay,
    Column::Read,
    Column::Batches,
    Column::Load,
];

/// One line for the user, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    /// Something failed.
    pub trouble: bool,
}

/// All state that keys change. Drawing only reads it.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiState {
    pub page: Page,
    pub focus: Panel,
    /// The column that the workers are sorted by; `None` = by their numbers.
    pub sort: Option<Column>,
    pub reversed: bool,
    pub paused: bool,
    pub help: bool,
    /// First visible line of the help, or of the focused panel or page.
    pub scroll: usize,
    /// The marked worker: its loader, and its number there; `None` = the first of the table.
    pub worker: Option<(u64, u32)>,
    /// The place of the marked GPU.
    pub gpu: usize,
    /// The place of the shown rank; `None` = the one that the verdict is about.
    pub rank: Option<usize>,
    /// The marked line of the picker.
    pub picked: usize,
    /// The job, if it was chosen from a list and the user can go back to it.
    pub chosen: Option<Pid>,
    /// The chosen job that was left for the list.
    pub left: Option<Pid>,
    /// `None` for a running job.
    pub replay: Option<ReplayPosition>,
    /// The samples are written to a recording.
    pub recording: bool,
    pub notice: Option<Notice>,
    /// A tour's text about the job. While it is shown, any key closes the screen.
    pub caption: Option<String>,
    /// There is a launched command whose output can be scrolled.
    pub log: bool,
    /// Filter of the workers, or of the jobs to choose from.
    pub filter: Filter,
    pub tree: TreeState,
    /// How much of the past is shown.
    pub zoom: Zoom,
    /// Cells from the timeline's end to its cursor.
    pub cursor: Option<usize>,
}

impl UiState {
    /// Whether the screen is paused.
    pub fn is_still(&self) -> bool {
        self.paused || self.replay.is_some_and(|replay| replay.paused)
    }

    /// Whether the keys for back and forth move the timeline's cursor.
    pub fn has_cursor(&self) -> bool {
        self.focus == Panel::Timeline && self.page != Page::Tree && !self.help
    }

    /// Moves the timeline's cursor by a cell, at most `end` cells back.
    pub fn move_cursor(&mut self, back: bool, end: usize) {
        self.cursor = Some(match (self.cursor, back) {
            (None, _) => 0,
            // The timeline may have become shorter since the last move.
            (Some(cells), true) => (cells + 1).min(end),
            (Some(cells), false) => cells.min(end).saturating_sub(1),
        });
    }

    pub fn toggle_help(&mut self) {
        self.help = !self.help;
        self.scroll = 0;
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

    /// Opens the focused panel, or the line marked in the tree.
    pub fn select(&mut self, choices: &Choices) {
        match self.page {
            Page::Tree => self.tree.toggle(&choices.tree),
            Page::Panels | Page::Detail => self.open_page(Page::Detail),
        }
    }

    pub fn toggle_tree(&mut self) {
        let shown = self.page == Page::Tree && !self.help;
        self.open_page(if shown { Page::Panels } else { Page::Tree });
    }

    /// Starts typing a filter for workers or jobs; in the tree, for processes.
    pub fn open_filter(&mut self) {
        if self.page == Page::Tree {
            self.tree.filter.typing = true;
            self.help = false;
        } else {
            self.filter.typing = true;
            self.open_page(Page::Panels);
            self.focus = Panel::Workers;
        }
    }

    /// Closes one thing: the help, the tree's filter, the page, or the filter.
    pub fn cancel(&mut self) {
        if self.help {
            self.toggle_help();
        } else if self.page == Page::Tree && self.tree.filter.is_set() {
            self.tree.filter.clear();
        } else if self.page != Page::Panels {
            self.open_page(Page::Panels);
        } else {
            self.filter.clear();
        }
    }

    /// Reverses the order of the workers, or of the tree.
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

    /// Returns the filter of the current page.
    pub fn filter_in_use(&mut self) -> &mut Filter {
        match self.page {
            Page::Tree => &mut self.tree.filter,
            Page::Panels | Page::Detail => &mut self.filter,
        }
    }

    /// Sorts the workers by the next of these columns, or the tree by the next of its own columns.
    pub fn sort_by_next(&mut self, columns: &[Column]) {
        if self.page == Page::Tree {
            return self.tree.sort_by_next();
        }
        let now = SORTED_BY
            .iter()
            .position(|column| Some(*column) == self.sort);
        let mut later = SORTED_BY.iter().skip(now.map_or(0, |now| now + 1));
        self.sort = later.find(|column| columns.contains(column)).copied();
    }

    /// Focuses a panel; returns false if it already is.
    pub fn focus_on(&mut self, panel: Panel) -> bool {
        let turned = self.focus != panel;
        if turned {
            self.focus = panel;
            self.scroll = 0;
        }
        turned
    }

    /// Focuses the next panel, or the previous one. From the tree, which is not a panel, goes back to the panels.
    pub fn step_panel(&mut self, forward: bool) {
        if self.page == Page::Tree {
            return self.open_page(Page::Panels);
        }
        let is_open = |panel: &Panel| *panel != Panel::Log || self.log;
        let panels: Vec<Panel> = Panel::ALL.into_iter().filter(is_open).collect();
        let place = panels.iter().position(|panel| *panel == self.focus);
        let step = if forward { 1 } else { panels.len() - 1 };
        self.focus = panels[(place.unwrap_or(0) + step) % panels.len()];
        self.scroll = 0;
    }

    fn open_page(&mut self, page: Page) {
        self.page = page;
        self.help = false;
        self.scroll = 0;
    }

    /// Moves the marked row if there is one, otherwise scrolls. On a page of details, only single steps move the mark;
    /// the page keys scroll.
    fn step(&mut self, choices: &Choices, down: bool, by: usize) {
        let step = |place: usize, on: bool| {
            if on {
                place.saturating_add(by)
            } else {
                place.saturating_sub(by)
            }
        };
        let moved = |place| step(place, down);
        if self.page == Page::Tree && choices.candidates == 0 && !self.help {
            return self.tree.step(&choices.tree, down, by);
        }
        let marks = !self.help && (self.page == Page::Panels || by < PAGE);
        if choices.candidates > 0 && !self.help {
            self.picked = moved(self.picked).min(choices.candidates - 1);
        } else if marks && self.focus == Panel::Workers && !choices.workers.is_empty() {
            let workers = &choices.workers;
            let marked = |worker: &(u64, u32)| Some(*worker) == self.worker;
            // If two workers have this number, the one that started last.
            let place = workers.iter().rposition(marked).unwrap_or(0);
            self.worker = Some(workers[moved(place).min(workers.len() - 1)]);
        } else if marks && self.focus == Panel::Gpu && choices.gpus > 1 {
            self.gpu = moved(self.gpu).min(choices.gpus - 1);
        } else {
            // The content may have become shorter since the last scroll.
            let on = down != choices.from_newest;
            self.scroll = step(self.scroll.min(choices.end), on).min(choices.end);
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
            // The order of the table, which differs from that of the numbers.
            workers: [3, 0, 2, 1].map(|id| (0, id)).to_vec(),
            gpus: 2,
            tree: Vec::new(),
            end: 25,
            from_newest: false,
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
        assert_eq!(after(&start, &[UiState::down]).worker, Some((0, 0)));
        assert_eq!(
            after(&start, &[UiState::down, UiState::up]).worker,
            Some((0, 3))
        );
        assert_eq!(after(&start, &[UiState::page_down]).worker, Some((0, 1)));
        let lost = UiState {
            worker: Some((0, 9)),
            ..start
        };
        assert_eq!(after(&lost, &[UiState::down]).worker, Some((0, 0)));
    }

    #[test]
    fn in_the_details_page_keys_scroll_and_single_steps_choose() {
        let start = after(&UiState::default(), &[UiState::down, UiState::select]);
        assert_eq!(start.page, Page::Detail);
        let next = after(&start, &[UiState::down, UiState::page_down]);
        assert_eq!((next.worker, next.scroll), (Some((0, 2)), 10));
        let gpu = after(
            &start,
            &[
                |state, _| state.step_panel(false),
                UiState::down,
                UiState::down,
            ],
        );
        assert_eq!((gpu.focus, gpu.gpu, gpu.scroll), (Panel::Gpu, 1, 0));
        let disk = after(&start, &[|state, _| state.step_panel(true), UiState::down]);
        assert_eq!((disk.focus, disk.scroll), (Panel::Disk, 1));
    }

    #[test]
    fn the_help_scrolls_to_its_end_and_not_beyond() {
        let help = after(&UiState::default(), &[|state, _| state.toggle_help()]);
        let down = after(
            &help,
            &[UiState::page_down, UiState::page_down, UiState::page_down],
        );
        assert_eq!(down.scroll, 25);
        assert_eq!(after(&down, &[UiState::up]).scroll, 24);
    }

    #[test]
    fn what_became_shorter_scrolls_from_its_new_end() {
        let page = UiState {
            page: Page::Detail,
            focus: Panel::Disk,
            scroll: 90,
            ..UiState::default()
        };
        assert_eq!(after(&page, &[UiState::up]).scroll, 24);
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
    fn the_selected_line_is_scrolled_into_view() {
        let typing = after(
            &UiState::default(),
            &[UiState::select, |state, _| state.open_filter()],
        );
        assert_eq!((typing.page, typing.focus), (Page::Panels, Panel::Workers));
    }
}
