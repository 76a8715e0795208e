//! The user's choices in the tree: the marked line, what is folded, order, filter.
//!
//! Holds no figures, and processes only by their key.

use std::collections::BTreeSet;

use crate::ui::Filter;
use crate::units::ProcessKey;

/// Identifies a line of the tree, wherever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Job,
    Process(ProcessKey),
    /// A loader of this rank, by its id.
    Loader(ProcessKey, u64),
    /// The threads of a process that has other lines below it.
    Threads(ProcessKey),
    /// A thread of a process.
    Thread(ProcessKey, ProcessKey),
    /// A note that lines are missing below this process, or in the job.
    Note(Option<ProcessKey>),
}

/// The effect of choosing a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// Folds or unfolds the lines below it.
    Fold(Node),
    /// Starts or stops reading and showing the threads of a process.
    Threads(ProcessKey),
}

/// The columns, from the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TreeColumn {
    #[default]
    Pid,
    Now,
    Cpu,
    Delay,
    Read,
    Memory,
    Threads,
}

/// The columns that the keys sort siblings by. The first sorts ranks and workers by their numbers, and all other
/// processes by PID.
const SORTED_BY: [TreeColumn; 5] = [
    TreeColumn::Pid,
    TreeColumn::Cpu,
    TreeColumn::Delay,
    TreeColumn::Read,
    TreeColumn::Memory,
];

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TreeState {
    /// `None` = the first line.
    pub marked: Option<Node>,
    /// The last place of the marked line: if that line is gone, the line now in its place is marked.
    pub place: usize,
    pub folded: BTreeSet<Node>,
    /// Processes whose threads are shown.
    pub opened: BTreeSet<ProcessKey>,
    /// The column that siblings are sorted by.
    pub order: TreeColumn,
    pub reversed: bool,
    pub filter: Filter,
}

impl TreeState {
    /// Returns the place of the marked line; if it is gone, its last place.
    pub(in crate::ui) fn at(&self, mut lines: impl ExactSizeIterator<Item = Node>) -> usize {
        let last = lines.len().saturating_sub(1);
        let found = lines.position(|node| Some(node) == self.marked);
        found.unwrap_or_else(|| {
            if self.marked.is_some() {
                self.place.min(last)
            } else {
                0
            }
        })
    }

    /// Moves the mark this many lines down or up.
    pub(in crate::ui) fn step(&mut self, lines: &[(Node, Option<Toggle>)], down: bool, by: usize) {
        let at = self.at(lines.iter().map(|(node, _)| *node));
        let to = if down { at + by } else { at.saturating_sub(by) };
        self.place = to.min(lines.len().saturating_sub(1));
        self.marked = lines.get(self.place).map(|(node, _)| *node);
    }

    /// Folds or unfolds the marked line.
    pub(in crate::ui) fn toggle(&mut self, lines: &[(Node, Option<Toggle>)]) {
        self.step(lines, true, 0);
        match lines.get(self.place).and_then(|(_, toggle)| *toggle) {
            Some(Toggle::Fold(node)) => flip(&mut self.folded, node),
            Some(Toggle::Threads(key)) => flip(&mut self.opened, key),
            None => {}
        }
    }

    pub(in crate::ui) fn sort_by_next(&mut self) {
        let columns = SORTED_BY.into_iter().cycle();
        let mut later = columns.skip_while(|column| *column != self.order).skip(1);
        self.order = later.next().unwrap_or_default();
    }
}

/// Inserts a value, or removes it if it is there.
fn flip<T: Ord>(set: &mut BTreeSet<T>, one: T) {
    if !set.remove(&one) {
        set.insert(one);
    }
}
