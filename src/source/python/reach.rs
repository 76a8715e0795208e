//! Goes from object to object, and finds the deques that a thread's frames lead to.
//!
//! Knows which objects hold others, nothing of who fills or empties a deque.

use std::collections::{HashSet, VecDeque};

use super::PythonError;
use super::frames::{Frame, Walker};
use super::memory::Memory;
use super::shape::Shape;

/// Where a list keeps the address of its objects.
const LIST_ITEMS: usize = 24;

/// What a cell holds.
pub(super) const CELL: usize = 16;
/// Objects that one search looks at, and how far from a frame.
const OBJECTS: usize = 1500;
const DEEPEST: u32 = 8;
/// Objects of one list, tuple or instance that are followed.
const OF_SEQUENCE: usize = 8;
const OF_INSTANCE: usize = 64;

/// Generators within generators are followed this deep for an iterator.
const DEEPEST_ITERATOR: u32 = 4;
/// Objects that a search for iterators looks at: a stack holds some hundreds, and generators that hold each other have no
/// end.
const OBJECTS_FOR_ITERATORS: u32 = 20_000;

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
                    let owner = shape.is_instance().then_some(step.object);
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

    /// There is one of it, so that who holds it is known.
    pub(super) fn tells(&mut self, object: usize) -> bool {
        self.shape(object).is_ok_and(|shape| shape != Shape::Shared)
    }

    /// An instance of a class, as a future is.
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

    /// PyTorch's iterators that these frames hold, the innermost first. What cannot be read is none: slots of the value
    /// stack may be stale.
    pub(super) fn iterators(&mut self, frames: &[Frame]) -> Vec<usize> {
        let (mut found, mut left) = (Vec::new(), OBJECTS_FOR_ITERATORS);
        for frame in frames {
            let held = frame.candidates(&self.memory).unwrap_or_default();
            self.iterators_of(held, DEEPEST_ITERATOR, &mut left, &mut found);
        }
        found
    }

    fn iterators_of(
        &mut self,
        objects: Vec<usize>,
        depth: u32,
        left: &mut u32,
        found: &mut Vec<usize>,
    ) {
        for object in objects {
            if depth == 0 || *left == 0 || found.contains(&object) {
                continue;
            }
            *left -= 1;
            let held = match self.shape(object) {
                Ok(Shape::Iterator) => {
                    found.push(object);
                    continue;
                }
                Ok(Shape::DataLoader) => self.kept_iterator(object),
                Ok(shape @ (Shape::Generator | Shape::Wraps(_))) => self.held(shape, object),
                _ => continue,
            };
            self.iterators_of(held.unwrap_or_default(), depth - 1, left, found);
        }
    }

    fn kept_iterator(&self, loader: usize) -> Result<Vec<usize>, PythonError> {
        let attributes = self.memory.attributes(loader)?;
        let kept = self.memory.attribute(&attributes, "_iterator")?;
        Ok(kept.into_iter().collect())
    }

    fn shape(&mut self, object: usize) -> Result<Shape, PythonError> {
        self.walker.shapes.of(&self.memory, object)
    }
}
