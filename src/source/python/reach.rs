//! Goes from object to object, and finds the deques that a thread's frames lead to.
//!
//! Knows which objects hold others, nothing of who fills or empties a deque.

use std::collections::{HashMap, HashSet, VecDeque};

use super::PythonError;
use super::frames::{Frame, Walker};
use super::memory::Memory;

const TP_FLAGS: usize = 168;
/// Made by a `class` statement.
const HEAP_TYPE: usize = 1 << 9;
/// Where a list keeps the address of its objects.
const LIST_ITEMS: usize = 24;

/// Objects that one search looks at, and how far from a frame.
const OBJECTS: usize = 1500;
const DEEPEST: u32 = 8;
/// Objects of one list, tuple or instance that are followed.
const OF_SEQUENCE: usize = 8;
const OF_INSTANCE: usize = 64;

/// What an object of a type leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Deque,
    Generator,
    List,
    Tuple,
    /// Holds another object at this offset.
    Holds(usize),
    Instance,
    /// `None` and the like: the same object stands for all.
    Shared,
    Other,
}

/// The shapes of the types that were met, by address.
pub(super) type Shapes = HashMap<usize, Shape>;

/// A deque that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) deque: usize,
    /// The instance that holds it.
    pub(super) owner: Option<usize>,
}

pub(super) struct Reach<'a> {
    pub(super) memory: Memory,
    pub(super) walker: &'a mut Walker,
    pub(super) shapes: &'a mut Shapes,
}

/// An object on the way, and what led there.
#[derive(Clone, Copy)]
struct Step {
    object: usize,
    owner: Option<usize>,
    depth: u32,
}

impl Reach<'_> {
    /// The deques that these frames lead to, the nearest first.
    pub(super) fn deques(&mut self, frames: &[Frame]) -> Vec<Found> {
        let mut next = VecDeque::new();
        for frame in frames {
            self.start(frame, &mut next);
        }
        let (mut met, mut found) = (HashSet::new(), Vec::new());
        while let Some(step) = next.pop_front() {
            if met.len() >= OBJECTS {
                break;
            }
            if !met.insert(step.object) {
                continue;
            }
            match self.shape(step.object) {
                Ok(Shape::Deque) => found.push(Found {
                    deque: step.object,
                    owner: step.owner,
                }),
                Ok(shape) if step.depth < DEEPEST => {
                    let owner = (shape == Shape::Instance).then_some(step.object);
                    // What cannot be read leads nowhere: slots of the value stack may be stale.
                    let held = self.held(shape, step.object).unwrap_or_default();
                    next.extend(held.into_iter().map(|object| Step {
                        object,
                        owner,
                        depth: step.depth + 1,
                    }));
                }
                _ => {}
            }
        }
        found
    }

    fn start(&self, frame: &Frame, next: &mut VecDeque<Step>) {
        let memory = self.memory;
        let Ok((locals, stacked)) = frame.held(&memory) else {
            return;
        };
        let step = |object| Step {
            object,
            owner: None,
            depth: 0,
        };
        next.extend(stacked.into_iter().chain(locals).map(step));
    }

    /// What an object of a queue comes to the main thread as: itself, a part of it, or what it keeps, as a future its
    /// result.
    pub(super) fn parts(&mut self, object: usize) -> Vec<usize> {
        let mut parts = vec![object];
        let Ok(shape) = self.shape(object) else {
            return vec![];
        };
        let mut inner = match shape {
            Shape::List | Shape::Tuple | Shape::Instance => {
                self.held(shape, object).unwrap_or_default()
            }
            _ => vec![],
        };
        if shape == Shape::Instance {
            for part in inner.clone() {
                if let Ok(shape @ (Shape::List | Shape::Tuple)) = self.shape(part) {
                    inner.extend(self.held(shape, part).unwrap_or_default());
                }
            }
        }
        parts.extend(inner);
        parts.retain(|part| self.shape(*part).is_ok_and(|shape| shape != Shape::Shared));
        parts
    }

    /// There is one of it, so that who holds it can be told.
    pub(super) fn tells(&mut self, object: usize) -> bool {
        self.shape(object).is_ok_and(|shape| shape != Shape::Shared)
    }

    /// An instance of a class, as a future is.
    pub(super) fn is_instance(&mut self, object: usize) -> bool {
        self.shape(object)
            .is_ok_and(|shape| shape == Shape::Instance)
    }

    fn held(&mut self, shape: Shape, object: usize) -> Result<Vec<usize>, PythonError> {
        let memory = self.memory;
        match shape {
            Shape::Generator => {
                let frame = self.walker.generator_frame(&memory, object)?;
                frame.map_or(Ok(vec![]), |frame| frame.candidates(&memory))
            }
            Shape::Tuple => {
                let count = memory.len(object)?.min(OF_SEQUENCE);
                memory.array(object.wrapping_add(memory.layout.tuple_items), count)
            }
            Shape::List => {
                let count = memory.len(object)?.min(OF_SEQUENCE);
                memory.array(memory.word(object.wrapping_add(LIST_ITEMS))?, count)
            }
            Shape::Holds(offset) => Ok(vec![memory.word(object.wrapping_add(offset))?]),
            Shape::Instance => memory.values(object, OF_INSTANCE),
            Shape::Deque | Shape::Shared | Shape::Other => Ok(vec![]),
        }
    }

    fn shape(&mut self, object: usize) -> Result<Shape, PythonError> {
        // No object lies there, and no read is needed to know it.
        if object < 4096 || !object.is_multiple_of(8) {
            return Ok(Shape::Other);
        }
        let of_type = self.memory.type_of(object)?;
        if let Some(known) = self.shapes.get(&of_type) {
            return Ok(*known);
        }
        let name = self.memory.type_name(of_type)?;
        let flags = self.memory.word(of_type.wrapping_add(TP_FLAGS))?;
        let shape = shape_of(&name, flags & HEAP_TYPE != 0);
        self.shapes.insert(of_type, shape);
        Ok(shape)
    }
}

fn shape_of(type_name: &str, heap: bool) -> Shape {
    match type_name {
        "collections.deque" => Shape::Deque,
        "generator" | "async_generator" => Shape::Generator,
        "list" => Shape::List,
        "tuple" => Shape::Tuple,
        // What a cell, a method, an `enumerate`, an `islice` and `iter(function, end)` hold.
        "cell" | "itertools.islice" | "callable_iterator" => Shape::Holds(16),
        "method" | "builtin_function_or_method" | "enumerate" => Shape::Holds(24),
        // Who waits for a condition hangs a lock into a deque.
        "NoneType" | "bool" | "type" | "str" | "function" | "module" | "lock" | "_thread.lock"
        | "RLock" | "_thread.RLock" => Shape::Shared,
        // Large, and never on the way to a batch.
        "Tensor" | "Parameter" => Shape::Other,
        _ if heap => Shape::Instance,
        _ => Shape::Other,
    }
}
