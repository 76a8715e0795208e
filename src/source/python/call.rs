//! One function on a stack, with what the search for the training loop needs. Does not know how stacks are read.

use crate::loaders::Meaning;

/// What the thread does in the innermost function, or in one written in C that it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Innermost {
    /// It may be computing in the framework or on an accelerator, or the function is not the innermost.
    #[default]
    Computes,
    /// Anything else, but it may be waiting for an accelerator.
    MayWait,
    /// It is at work, and waits for no accelerator.
    Works,
}

/// One function on a stack.
#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Call {
    /// Identifies the function.
    pub(super) code: usize,
    pub(super) meaning: Meaning,
    /// Whether it is a generator, including a generator expression.
    pub(super) generator: bool,
    /// Whether it is a generator expression, which mostly serves a sum or a list.
    pub(super) expression: bool,
    /// Whether it waits for a batch or reads one, provided that the thread trains.
    pub(super) takes: bool,
    /// Whether it is in a loader of PyTorch.
    pub(super) pytorch: bool,
    /// Whether it reads something that its caller keeps.
    pub(super) brings: bool,
    /// Whether it works, without the framework, on something that its caller keeps, and was given no tensor.
    pub(super) builds: bool,
    pub(super) innermost: Innermost,
    /// The instruction that it runs, which identifies where it calls the next function; `None` if not known.
    pub(super) instruction: Option<usize>,
}

impl Call {
    /// Returns a call that stands for no function: the innermost one waits for data from a pipe or a local socket.
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

    /// Returns a call that stands for a function written in C: the thread sleeps in it, and by its name it hands over a
    /// batch.
    pub(super) fn takes_in_c() -> Self {
        Self {
            code: usize::MAX - 1,
            meaning: Meaning::default(),
            takes: true,
            ..Self::receives()
        }
    }

    /// Returns a call that stands for a function written in C, called by this instruction: it builds something for its caller.
    pub(super) fn builds_in_c(instruction: usize) -> Self {
        Self {
            code: instruction,
            builds: true,
            innermost: Innermost::Works,
            ..Self::default()
        }
    }

    /// Whether a library reads or transforms samples here.
    pub(super) fn makes_samples(&self) -> bool {
        self.meaning.reads || self.meaning.transform
    }

    /// Whether this function, called by a module, shows that the module is no model but makes samples.
    pub(super) fn makes_samples_in_module(&self) -> bool {
        self.meaning.transform || (self.meaning.reads && !self.meaning.weights)
    }

    /// Whether it is an iterator's or a generator's function that gives the next item.
    pub(super) fn gives_items(&self) -> bool {
        (self.generator && !self.expression) || self.meaning.asks
    }
}
