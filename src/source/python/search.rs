//! Looks for the loader's iterator among the objects that the main thread's frames hold.
//!
//! Needed while the trainer computes: then no frame of the loader itself shows it.

use std::collections::HashMap;

use super::error::PythonError;
use super::frames::{Frame, Walker};
use super::iterator::is_iterator;
use super::memory::Memory;

/// What the types met in frames are, by address.
pub(super) type Kinds = HashMap<usize, Kind>;

/// What a search for iterators has to know of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Iterator,
    /// Keeps its iterator where the workers are persistent.
    DataLoader,
    Generator,
    /// Holds another iterator at this offset.
    Wraps(usize),
    Other,
}

/// Generators within generators are followed this deep.
const DEEPEST_SEARCH: u32 = 4;
/// A search looks at so many objects: a stack holds some hundreds, and generators that hold each other have no end.
const MOST_OBJECTS: u32 = 20_000;
/// So many types are remembered.
const MOST_KINDS: usize = 4096;

/// One search: what it reads with, and the addresses of the iterators that it has found.
pub(super) struct Search<'a> {
    memory: Memory,
    walker: &'a mut Walker,
    kinds: &'a mut Kinds,
    pub(super) found: Vec<usize>,
    /// Objects that it may still look at.
    left: u32,
}

impl<'a> Search<'a> {
    pub(super) fn new(memory: Memory, walker: &'a mut Walker, kinds: &'a mut Kinds) -> Self {
        Self {
            memory,
            walker,
            kinds,
            found: Vec::new(),
            left: MOST_OBJECTS,
        }
    }

    #[cfg(test)]
    pub(super) fn is_given_up(&self) -> bool {
        self.left == 0
    }

    /// Goes through all that a frame holds. What cannot be read is no iterator: slots of the value stack may be stale.
    pub(super) fn frame(&mut self, frame: &Frame) {
        self.frame_to(frame, DEEPEST_SEARCH);
    }

    fn frame_to(&mut self, frame: &Frame, depth: u32) {
        if depth == 0 {
            return;
        }
        for object in frame.candidates(&self.memory).unwrap_or_default() {
            self.object(object, depth);
        }
    }

    fn object(&mut self, object: usize, depth: u32) {
        if depth == 0 || self.left == 0 || self.found.contains(&object) {
            return;
        }
        self.left -= 1;
        match self.kind(object).unwrap_or(Kind::Other) {
            Kind::Iterator => self.found.push(object),
            Kind::Generator => {
                if let Ok(Some(frame)) = self.walker.generator_frame(&self.memory, object) {
                    self.frame_to(&frame, depth - 1);
                }
            }
            Kind::Wraps(offset) => {
                if let Ok(inner) = self.memory.word(object.wrapping_add(offset)) {
                    self.object(inner, depth - 1);
                }
            }
            Kind::DataLoader => {
                let attributes = self.memory.attributes(object);
                let kept = attributes.and_then(|all| self.memory.attribute(&all, "_iterator"));
                if let Ok(Some(kept)) = kept {
                    self.object(kept, depth - 1);
                }
            }
            Kind::Other => {}
        }
    }

    fn kind(&mut self, object: usize) -> Result<Kind, PythonError> {
        let of_type = self.memory.type_of(object)?;
        if let Some(kind) = self.kinds.get(&of_type) {
            return Ok(*kind);
        }
        if self.kinds.len() >= MOST_KINDS {
            self.kinds.clear();
        }
        let kind = kind_of(&self.memory.type_name(of_type)?);
        self.kinds.insert(of_type, kind);
        Ok(kind)
    }
}

fn kind_of(type_name: &str) -> Kind {
    match type_name {
        name if is_iterator(name) => Kind::Iterator,
        "generator" => Kind::Generator,
        // `en_sit` of an enumerate object, `it` of an islice.
        "enumerate" => Kind::Wraps(24),
        "itertools.islice" => Kind::Wraps(16),
        // Accelerate's and others' are subclasses: DataLoaderShard, StatefulDataLoader.
        name if name.contains("DataLoader") => Kind::DataLoader,
        _ => Kind::Other,
    }
}
