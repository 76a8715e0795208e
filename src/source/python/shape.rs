//! What an object of a type leads to, for all who search the memory of a process for objects.

use std::collections::HashMap;

use super::PythonError;
use super::iterator::is_iterator;
use super::memory::Memory;

/// `tp_flags` of a type, and its bit for what a `class` statement made.
const TP_FLAGS: usize = 168;
const HEAP_TYPE: usize = 1 << 9;
/// So many types are remembered.
const MOST_TYPES: usize = 4096;

/// What an object of a type leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Deque,
    Generator,
    List,
    Tuple,
    /// A variable that functions share.
    Cell,
    /// Goes through another iterator, which it holds at this offset.
    Wraps(usize),
    /// Holds another object at this offset.
    Holds(usize),
    Instance,
    /// PyTorch's iterator.
    Iterator,
    /// Keeps its iterator where the workers are persistent.
    DataLoader,
    /// Threads hand something over with it.
    Queue,
    /// `None` and the like: the same object stands for all.
    Shared,
    Other,
}

impl Shape {
    /// Of the type with this name; `heap` as its flags say.
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
            // Who waits for a condition hangs a lock into a deque.
            "NoneType" | "bool" | "type" | "str" | "function" | "module" | "lock"
            | "_thread.lock" | "RLock" | "_thread.RLock" => Self::Shared,
            // Large, and never on the way to a batch.
            "Tensor" | "Parameter" => Self::Other,
            name if is_iterator(name) => Self::Iterator,
            // Accelerate's and others' are subclasses: DataLoaderShard, StatefulDataLoader.
            name if name.contains("DataLoader") => Self::DataLoader,
            name if name.ends_with("Queue") => Self::Queue,
            _ if heap => Self::Instance,
            _ => Self::Other,
        }
    }

    /// Of a class, with attributes.
    pub(super) fn is_instance(self) -> bool {
        matches!(
            self,
            Self::Instance | Self::Iterator | Self::DataLoader | Self::Queue
        )
    }
}

/// The shapes of the types that were met, by address.
#[derive(Debug, Default)]
pub(super) struct Shapes(HashMap<usize, Shape>);

impl Shapes {
    /// What an object leads to.
    pub(super) fn of(&mut self, memory: &Memory, object: usize) -> Result<Shape, PythonError> {
        // No object lies there, and no read is needed to know it.
        if object < 4096 || !object.is_multiple_of(8) {
            return Ok(Shape::Other);
        }
        let of_type = memory.type_of(object)?;
        if let Some(known) = self.0.get(&of_type) {
            return Ok(*known);
        }
        let name = memory.type_name(of_type)?;
        let flags = memory.word(of_type.wrapping_add(TP_FLAGS))?;
        if self.0.len() >= MOST_TYPES {
            self.0.clear();
        }
        let shape = Shape::of(&name, flags & HEAP_TYPE != 0);
        self.0.insert(of_type, shape);
        Ok(shape)
    }
}
