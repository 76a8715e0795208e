//! The fields of a Python code object. Does not depend on frames.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::PythonError;
use super::memory::Memory;
use super::naming::CodeLocation;
use crate::loaders::{Meaning, Names};

/// No function has more locals, or uses more names of other kinds.
const MAX_NAMES: usize = 1024;

/// `CO_GENERATOR` and `CO_ASYNC_GENERATOR` of `co_flags`.
const GENERATORS: usize = 0x20 | 0x200;

/// The fields of a code object.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) place: CodeLocation,
    /// What its name and its file mean.
    pub(super) meaning: Meaning,
    /// Address of the code object, which identifies it.
    pub(super) at: usize,
    /// Whether it belongs to a generator.
    pub(super) generator: bool,
    /// Number of locals with cells and free variables, then the depth of the value stack.
    pub(super) locals: usize,
    pub(super) stack: usize,
    /// Address of the tuple of the locals' names, and the names once they were read.
    names_at: usize,
    names: OnceLock<Vec<String>>,
    /// The same of the globals and attributes that it uses: the addresses of their names.
    globals_at: usize,
    globals: OnceLock<HashSet<usize>>,
}

impl Code {
    /// Returns the names of the locals; reads them once.
    pub(super) fn names(&self, memory: &Memory) -> Result<&[String], PythonError> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = memory.items(self.names_at)?;
        if names.len() > MAX_NAMES {
            return Err(memory.torn());
        }
        let names = names.into_iter().map(|name| memory.text(name));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        Ok(self.names.get_or_init(|| names))
    }

    /// Returns the addresses of the names of the globals and attributes that it uses; reads them once. The dict of a
    /// module has the same addresses, as Python keeps one object for each name.
    pub(super) fn globals(&self, memory: &Memory) -> Result<&HashSet<usize>, PythonError> {
        if let Some(names) = self.globals.get() {
            return Ok(names);
        }
        let names = memory.items(self.globals_at)?;
        if names.len() > MAX_NAMES {
            return Err(memory.torn());
        }
        Ok(self.globals.get_or_init(|| names.into_iter().collect()))
    }

    pub(super) fn read(memory: &Memory, at: usize) -> Result<Self, PythonError> {
        let layout = &memory.layout.code;
        let half = |offset: usize| -> Result<usize, PythonError> {
            Ok(memory.word(at.wrapping_add(offset))? & 0xffff_ffff)
        };
        let [file, name] = memory.words(at.wrapping_add(layout.filename))?;
        let name = match layout.qualname {
            Some(qualname) => memory.word(at.wrapping_add(qualname))?,
            None => name,
        };
        let mut locals = half(layout.locals)?;
        for tuple in layout.more_locals.into_iter().flatten() {
            let tuple = memory.word(at.wrapping_add(tuple))?;
            locals = locals.saturating_add(memory.len(tuple)?);
        }
        let place = CodeLocation {
            name: memory.text(name)?,
            file: memory.text(file)?,
        };
        Ok(Self {
            meaning: Names::known().meaning(place.function(), &place.file),
            place,
            at,
            generator: half(layout.flags)? & GENERATORS != 0,
            locals,
            stack: half(layout.stack)?,
            names_at: memory.word(at.wrapping_add(layout.names))?,
            names: OnceLock::new(),
            globals_at: memory.word(at.wrapping_add(layout.globals))?,
            globals: OnceLock::new(),
        })
    }
}
