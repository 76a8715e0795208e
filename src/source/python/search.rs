//! Looks for the loader's iterator among the objects that the main thread's frames hold.
//!
//! Needed while the trainer computes: then no frame of the loader itself shows it.

use std::collections::HashMap;

use super::frames::Frame;
use super::iterator::{LoaderIterator, is_iterator};
use super::{PythonError, Stacks};

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

impl Stacks {
    /// Every loader iterator that the main thread's frames hold, innermost first: in a local, under a
    /// `for`, in `enumerate`, in a generator (so `tqdm` too), or in a `DataLoader` with persistent
    /// workers. Some 0.5 ms; one that only attributes of other objects lead to is not found.
    pub fn find_iterators(&mut self) -> Result<Vec<LoaderIterator>, PythonError> {
        let frames = self.frames()?;
        let mut found = Vec::new();
        for frame in &frames {
            self.search(frame, DEEPEST_SEARCH, &mut found);
        }
        Ok(found
            .into_iter()
            .filter_map(|at| self.iterator(at).ok())
            .collect())
    }

    /// What cannot be read is no iterator: slots of the value stack may be stale.
    fn search(&mut self, frame: &Frame, depth: u32, found: &mut Vec<usize>) {
        for object in frame.candidates(&self.memory).unwrap_or_default() {
            self.search_object(object, depth, found);
        }
    }

    fn search_object(&mut self, object: usize, depth: u32, found: &mut Vec<usize>) {
        if depth == 0 || found.contains(&object) {
            return;
        }
        match self.kind(object).unwrap_or(Kind::Other) {
            Kind::Iterator => found.push(object),
            Kind::Generator => {
                if let Ok(Some(frame)) = self.walker.generator_frame(&self.memory, object) {
                    self.search(&frame, depth - 1, found);
                }
            }
            Kind::Wraps(offset) => {
                if let Ok(inner) = self.memory.word(object.wrapping_add(offset)) {
                    self.search_object(inner, depth - 1, found);
                }
            }
            Kind::DataLoader => {
                let attributes = self.memory.attributes(object);
                let kept = attributes.and_then(|all| self.memory.attribute(&all, "_iterator"));
                if let Ok(Some(kept)) = kept {
                    self.search_object(kept, depth - 1, found);
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
