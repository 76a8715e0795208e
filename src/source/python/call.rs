//! One function on a stack, as far as it takes to find the training loop. Does not know how stacks are read.

use crate::loaders::Meaning;

/// One function on a stack.
#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Call {
    /// Identifies the function.
    pub(super) code: usize,
    pub(super) meaning: Meaning,
    /// Whether it yields items. A generator expression does, too, but mostly for a sum or a list.
    pub(super) generator: bool,
    pub(super) expression: bool,
    /// Whether it waits for a batch or reads one, if this thread is one that trains.
    pub(super) takes: bool,
    /// Whether it is in a loader of PyTorch.
    pub(super) pytorch: bool,
    /// Whether something is read in it that its caller keeps.
    pub(super) brings: bool,
    /// The instruction that it runs, which identifies where it calls the next function; `None` if not known.
    pub(super) instruction: Option<usize>,
}

impl Call {
    /// No function: the innermost one waits for what a pipe or a local socket brings.
    pub(super) fn receives() -> Self {
        Self {
            code: usize::MAX,
            meaning: Meaning {
                hands_over: true,
                ..Meaning::default()
            },
            ..Self::default()
        }
    }

    /// A function written in C in which the thread sleeps, and which by its name hands over a batch.
    pub(super) fn takes_in_c() -> Self {
        Self {
            code: usize::MAX - 1,
            meaning: Meaning::default(),
            takes: true,
            ..Self::receives()
        }
    }

    /// Whether it is an iterator's or a generator's function that gives the next item.
    pub(super) fn gives_items(&self) -> bool {
        (self.generator && !self.expression) || self.meaning.asks
    }
}
