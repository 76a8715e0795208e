//! Follows objects to the objects that they hold, and finds the deques that a thread's frames lead to.
//!
//! Does not depend on the threads that fill or empty a deque.

use std::collections::{HashSet, VecDeque};

use super::PythonError;
use super::frame::Frame;
use super::frames::Walker;
use super::layout::{CELL, LIST_ITEMS};
use super::memory::Memory;
use super::shape::Shape;

/// Maximum number of objects in one search, and maximum distance from a frame.
const MAX_OBJECTS: usize = 1500;
const MAX_DEPTH: u32 = 8;
/// Maximum number of items of one list or tuple, and of attributes of one instance, that are followed.
const OF_SEQUENCE: usize = 8;
const OF_INSTANCE: usize = 64;

/// Depth to which generators within generators are followed to find an iterator.
const MAX_ITERATOR_DEPTH: u32 = 4;
/// A search for iterators follows no more objects after this many. A stack holds some hundreds, but generators that
/// hold each other would never end.
const OBJECTS_FOR_ITERATORS: usize = 20_000;

/// A deque that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundDeque {
    pub(super) deque: usize,
    /// The instance that holds it.
    pub(super) owner: Option<usize>,
}

pub(super) struct Reach<'a> {
    pub(super) memory: Memory,
    pub(super) walker: &'a mut Walker,
}

/// An object to visit, the instance that holds it and its distance from a frame.
#[derive(Clone, Copy)]
struct Visit {
    object: usize,
    owner: Option<usize>,
    depth: u32,
}

impl Reach<'_> {
    /// Returns the deques that these frames lead to, the nearest first.
    pub(super) fn deques(&mut self, frames: &[Frame]) -> Vec<FoundDeque> {
        let mut next = VecDeque::new();
        for frame in frames {
            self.start(frame, &mut next);
        }
        let (mut met, mut found) = (HashSet::new(), Vec::new());
        while let Some(step) = next.pop_front() {
            if met.len() >= MAX_OBJECTS {
                break;
            }
            if !met.insert(step.object) {
                continue;
            }
            match self.shape(step.object) {
                Ok(Shape::Deque) => found.push(FoundDeque {
                    deque: step.object,
                    owner: step.owner,
                }),
                Ok(shape) if step.depth < MAX_DEPTH => {
                    let owner = shape.is_instance().then_some(step.object);
                    // Unreadable objects are skipped: slots of the value stack may be stale.
                    let held = self.held(shape, step.object).unwrap_or_default();
                    next.extend(held.into_iter().map(|object| Visit {
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

    fn start(&self, frame: &Frame, next: &mut VecDeque<Visit>) {
        let memory = self.memory;
        let Ok((locals, stacked)) = frame.held(&memory) else {
            return;
        };
        let step = |object| Visit {
            object,
            owner: None,
            depth: 0,
        };
        next.extend(stacked.into_iter().chain(locals).map(step));
    }

    /// Returns what the main thread may hold of an object from a queue: the object itself, a part of it, or what it
    /// keeps, such as the result of a future.
    pub(super) fn parts(&mut self, object: usize) -> Vec<usize> {
        let mut parts = vec![object];
        let Ok(shape) = self.shape(object) else {
            return vec![];
        };
        let leads = matches!(shape, Shape::List | Shape::Tuple) || shape.is_instance();
        let mut inner = if leads {
            self.held(shape, object).unwrap_or_default()
        } else {
            vec![]
        };
        if shape.is_instance() {
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

    /// Whether the object is unique, so that holding it is evidence.
    pub(super) fn is_unique(&mut self, object: usize) -> bool {
        self.shape(object).is_ok_and(|shape| shape != Shape::Shared)
    }

    /// Whether it is an instance of a class, as a future is.
    pub(super) fn is_instance(&mut self, object: usize) -> bool {
        self.shape(object).is_ok_and(Shape::is_instance)
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
            Shape::Cell => Ok(vec![memory.word(object.wrapping_add(CELL))?]),
            Shape::Holds(offset) | Shape::Wraps(offset) => {
                Ok(vec![memory.word(object.wrapping_add(offset))?])
            }
            Shape::Instance | Shape::Iterator | Shape::DataLoader | Shape::Queue => {
                memory.values(object, OF_INSTANCE)
            }
            Shape::Deque | Shape::Shared | Shape::Other => Ok(vec![]),
        }
    }

    /// Returns PyTorch's iterators that these frames hold, innermost first. Unreadable objects are skipped: slots of
    /// the value stack may be stale.
    pub(super) fn iterators(&mut self, frames: &[Frame]) -> Vec<usize> {
        let (mut found, mut left) = (Vec::new(), OBJECTS_FOR_ITERATORS);
        for frame in frames {
            let held = frame.candidates(&self.memory).unwrap_or_default();
            self.iterators_of(held, MAX_ITERATOR_DEPTH, &mut left, &mut found);
        }
        found
    }

    fn iterators_of(
        &mut self,
        objects: Vec<usize>,
        depth: u32,
        left: &mut usize,
        found: &mut Vec<usize>,
    ) {
        for object in objects {
            if depth == 0 || found.contains(&object) {
                continue;
            }
            let held = match self.shape(object) {
                Ok(Shape::Iterator) => {
                    found.push(object);
                    continue;
                }
                _ if *left == 0 => continue,
                Ok(Shape::DataLoader) => self.kept_iterator(object),
                Ok(shape @ (Shape::Generator | Shape::Wraps(_))) => self.held(shape, object),
                // An object of the user's own, such as an iterator that repeats a loader. Only directly in a frame: it
                // may lead to much.
                Ok(Shape::Instance) if depth == MAX_ITERATOR_DEPTH => {
                    self.held(Shape::Instance, object)
                }
                _ => continue,
            };
            let held = held.unwrap_or_default();
            *left = left.saturating_sub(held.len());
            self.iterators_of(held, depth - 1, left, found);
        }
    }

    fn kept_iterator(&self, loader: usize) -> Result<Vec<usize>, PythonError> {
        let kept = self.memory.attribute_of(loader, "_iterator")?;
        Ok(kept.into_iter().collect())
    }

    fn shape(&mut self, object: usize) -> Result<Shape, PythonError> {
        self.walker.shapes.of(&self.memory, object)
    }
}
