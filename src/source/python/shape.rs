//! Which other objects an object leads to, by its type. Serves all code that searches the memory of a process for
//! objects.

use std::collections::HashMap;

use super::PythonError;
use super::iterator::is_iterator;
use super::layout::{HEAP_TYPE, TP_FLAGS};
use super::memory::Memory;

/// `tp_iter`, followed by `tp_iternext`; `tp_base`, followed by `tp_dict`.
const TP_ITER: usize = 216;
const TP_BASE: usize = 256;
/// The byte of `gi_frame_state` in the word before a generator's frame.
const FRAME_STATE: usize = 3;
/// Maximum length of a chain of base classes.
const MOST_BASES: usize = 64;
/// Maximum number of types remembered.
const MAX_TYPES: usize = 4096;

/// What an object of a type leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Deque,
    Generator,
    List,
    Tuple,
    /// A variable shared by functions.
    Cell,
    /// Goes through another iterator, which is at this offset.
    Wraps(usize),
    /// Holds another object at this offset.
    Holds(usize),
    Instance,
    /// PyTorch's iterator.
    Iterator,
    /// Keeps its iterator if the workers are persistent.
    DataLoader,
    /// Threads use it to hand objects over.
    Queue,
    /// `None` and the like: one object is used everywhere. Or a number whose memory the next one soon gets.
    Shared,
    Other,
}

impl Shape {
    /// Returns the shape of the type with this name. `heap`: whether the flags say that a `class` statement made it.
    fn of(type_name: &str, heap: bool) -> Self {
        match type_name {
            "collections.deque" => Self::Deque,
            "generator" | "async_generator" => Self::Generator,
            "list" => Self::List,
            "tuple" => Self::Tuple,
            "cell" => Self::Cell,
            // `en_sit` of an enumerate object, `it` of an islice.
            "enumerate" => Self::Wraps(24),
            "itertools.islice" => Self::Wraps(16),
            // What a method and `iter(function, end)` hold.
            "callable_iterator" => Self::Holds(16),
            "method" | "builtin_function_or_method" => Self::Holds(24),
            // A thread that waits for a condition puts a lock into a deque.
            "NoneType" | "bool" | "type" | "str" | "function" | "module" | "lock"
            | "_thread.lock" | "RLock" | "_thread.RLock" | "float" => Self::Shared,
            name if is_numpy_number(name) => Self::Shared,
            // Large, and never on the way to a batch.
            "Tensor" | "Parameter" => Self::Other,
            name if is_iterator(name) => Self::Iterator,
            // Those of Accelerate and others are subclasses: `DataLoaderShard`, `StatefulDataLoader`.
            name if name.contains("DataLoader") => Self::DataLoader,
            name if name.ends_with("Queue") => Self::Queue,
            _ if heap => Self::Instance,
            _ => Self::Other,
        }
    }

    /// Whether it is an instance of a class, with attributes.
    pub(super) fn is_instance(self) -> bool {
        matches!(
            self,
            Self::Instance | Self::Iterator | Self::DataLoader | Self::Queue
        )
    }
}

fn is_numpy_number(type_name: &str) -> bool {
    let scalar = type_name.strip_prefix("numpy.");
    let numbers = ["float", "int", "uint", "bool"];
    scalar.is_some_and(|scalar| numbers.iter().any(|number| scalar.starts_with(number)))
}

/// The shapes of the types seen so far, by address.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    known: HashMap<usize, Shape>,
    iterators: HashMap<usize, bool>,
}

/// Whether objects of this type are iterators, other than of a range or a file. A type made by a `class` statement
/// always has `tp_iternext`, so for such a type a method named `__next__`, its own or inherited, decides.
fn iterates(memory: &Memory, of_type: usize) -> Result<bool, PythonError> {
    let gives = |of_type: usize| {
        let slots = memory.words::<2>(of_type.wrapping_add(TP_ITER))?;
        Ok::<_, PythonError>(!slots.contains(&0))
    };
    let name = memory.type_name(of_type)?;
    if name == "range_iterator" || name.starts_with("_io.") || !gives(of_type)? {
        return Ok(false);
    }
    let mut class = of_type;
    for _ in 0..MOST_BASES {
        if memory.word(class.wrapping_add(TP_FLAGS))? & HEAP_TYPE == 0 {
            return gives(class);
        }
        let [base, dict] = memory.words(class.wrapping_add(TP_BASE))?;
        for (key, _) in memory.entries(dict)? {
            if memory.text(key)? == "__next__" {
                return Ok(true);
            }
        }
        class = base;
    }
    Ok(false)
}

/// Whether a generator waits for its next item to be taken, by its `gi_frame_state`, not while it runs
/// or once it has ended. `None` before Python 3.11, which has no such field.
fn is_suspended(memory: &Memory, generator: usize) -> Result<Option<bool>, PythonError> {
    if memory.layout.frame.owner.is_none() {
        return Ok(None);
    }
    let frame = generator.wrapping_add(memory.layout.generator_frame);
    let flags = memory.word(frame.wrapping_sub(8))?.to_le_bytes();
    let state = flags[FRAME_STATE].cast_signed();
    Ok(Some(memory.layout.suspended.contains(&state)))
}

impl Shapes {
    /// Whether a thread may take the object's next item: it is an iterator, but of neither a range nor a file, and no generator
    /// that another thread runs or that has ended.
    pub(super) fn iterates(&mut self, memory: &Memory, object: usize) -> Result<bool, PythonError> {
        Ok(self.is_iterator(memory, object)?
            && (self.of(memory, object)? != Shape::Generator
                || is_suspended(memory, object)?.unwrap_or(true)))
    }

    fn is_iterator(&mut self, memory: &Memory, object: usize) -> Result<bool, PythonError> {
        let of_type = memory.type_of(object)?;
        if let Some(known) = self.iterators.get(&of_type) {
            return Ok(*known);
        }
        let iterates = iterates(memory, of_type)?;
        if self.iterators.len() >= MAX_TYPES {
            self.iterators.clear();
        }
        self.iterators.insert(of_type, iterates);
        Ok(iterates)
    }

    /// Returns what an object leads to.
    pub(super) fn of(&mut self, memory: &Memory, object: usize) -> Result<Shape, PythonError> {
        // No object can have such an address, so no read is needed.
        if object < 4096 || !object.is_multiple_of(8) {
            return Ok(Shape::Other);
        }
        let of_type = memory.type_of(object)?;
        if let Some(known) = self.known.get(&of_type) {
            return Ok(*known);
        }
        let name = memory.type_name(of_type)?;
        let flags = memory.word(of_type.wrapping_add(TP_FLAGS))?;
        if self.known.len() >= MAX_TYPES {
            self.known.clear();
        }
        let shape = Shape::of(&name, flags & HEAP_TYPE != 0);
        self.known.insert(of_type, shape);
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::*;
    use crate::units::Pid;

    /// A deque of results is no queue of batches, although the main thread may hold another number at an address of one.
    #[test]
    fn a_number_is_no_evidence_of_a_batch() {
        for name in ["float", "numpy.float32", "numpy.int64", "numpy.bool", "str"] {
            assert_eq!(Shape::of(name, false), Shape::Shared, "{name}");
        }
        for name in ["numpy.ndarray", "dict", "bytes", "int"] {
            assert_eq!(Shape::of(name, false), Shape::Other, "{name}");
        }
    }

    #[test]
    fn a_generator_is_suspended_before_it_starts_and_between_items() {
        let suspended = |minor, state: i8| {
            let memory = Memory {
                pid: Pid(std::process::id().cast_signed()),
                layout: Layout::of(3, minor).expect("known"),
            };
            let mut generator = [0xff_u8; 256];
            generator[memory.layout.generator_frame - 5] = state.cast_unsigned();
            is_suspended(&memory, generator.as_ptr().addr()).expect("it can be read")
        };
        for minor in 11..=14 {
            let states = [-2, -1, 0, 1, 4].map(|state| suspended(minor, state));
            assert_eq!(states, [true, true, false, false, false].map(Some));
        }
        let states = [0, 1, 2, 3, 4, 5].map(|state| suspended(15, state));
        assert_eq!(states, [true, true, true, true, false, false].map(Some));
        assert_eq!(suspended(10, 0), None);
    }
}
