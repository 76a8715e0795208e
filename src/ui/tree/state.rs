//! What the user has chosen to see of the tree: the marked line, what is folded, order, filter.
//!
//! Knows no figure and no process but by its key.

use std::collections::BTreeSet;

use crate::ui::Filter;
use crate::units::ProcessKey;

/// A line of the tree, whatever place it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Job,
    Process(ProcessKey),
    /// A loader of this rank, by its number.
    Loader(ProcessKey, u64),
    /// The threads of a process that has other lines below it.
    Threads(ProcessKey),
    /// A thread of a process.
    Thread(ProcessKey, ProcessKey),
    /// What there is to say where lines are missing, of this process or of the job.
    Note(Option<ProcessKey>),
}

/// What choosing a line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// Folds what is below it, or shows it again.
    Fold(Node),
    /// Has the threads of a process read and shown, or not any more.
    Threads(ProcessKey),
}

/// What lines that stand side by side are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Ranks and workers by their number, all else by its PID.
    #[default]
    Number,
    Cpu,
    Delay,
    Read,
    Memory,
}

impl Order {
    fn next(self) -> Self {
        match self {
            Self::Number => Self::Cpu,
            Self::Cpu => Self::Delay,
            Self::Delay => Self::Read,
            Self::Read => Self::Memory,
            Self::Memory => Self::Number,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TreeState {
    /// `None` = the first line.
    pub marked: Option<Node>,
    /// Where it stood: what is marked when it is gone.
    pub place: usize,
    pub folded: BTreeSet<Node>,
    /// Processes whose threads are shown.
    pub opened: BTreeSet<ProcessKey>,
    pub order: Order,
    pub reversed: bool,
    pub filter: Filter,
}

impl TreeState {
    /// The place of the marked line among these; what stands where it stood, where it is gone.
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

    /// Marks the line that is so many further down or up.
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
        self.order = self.order.next();
    }
}

/// Puts it in, or takes it out where it was in.
fn flip<T: Ord>(set: &mut BTreeSet<T>, one: T) {
    if !set.remove(&one) {
        set.insert(one);
    }
}
