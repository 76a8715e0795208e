//! The fields of a Python code object. Does not depend on frames.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

use super::PythonError;
use super::bytecode::{CallSources, is_kept, loops, name_of_callee, sources};
use super::flow::{self, MethodUse, User};
use super::layout::{BYTES, BytecodeLayout};
use super::memory::{Memory, WORD};
use super::naming::{CodeLocation, is_library};
use crate::loaders::{Meaning, Names};

/// Maximum number of locals of a function, and of other names that it uses.
const MAX_NAMES: usize = 1024;

/// Maximum number of units of bytecode in which a callee is searched for.
const MAX_UNITS: usize = 8192;
/// Maximum number of cache units that follow an instruction.
const MAX_CACHES: usize = 10;
/// Bytes of a unit.
pub(super) const UNIT: usize = 2;

/// Methods that put their arguments into their objects.
const FILLS: [&str; 12] = [
    "add",
    "append",
    "appendleft",
    "copy_",
    "extend",
    "insert",
    "push",
    "put",
    "put_nowait",
    "send",
    "setdefault",
    "update",
];

/// `CO_GENERATOR` and `CO_ASYNC_GENERATOR` of `co_flags`.
const GENERATORS: usize = 0x20 | 0x200;

/// Methods that send their arguments to another thread or process.
const SENDS: [&str; 8] = [
    "apply_async",
    "map_async",
    "put",
    "put_nowait",
    "send",
    "send_bytes",
    "starmap_async",
    "submit",
];

/// The fields of a code object.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) place: CodeLocation,
    /// What its name and its file mean.
    pub(super) meaning: Meaning,
    /// Whether it belongs to the standard library or an installed package.
    pub(super) library: bool,
    /// Address of the code object, which identifies it.
    pub(super) at: usize,
    /// Whether it belongs to a generator.
    pub(super) generator: bool,
    /// Number of positional arguments.
    pub(super) arguments: usize,
    /// Number of locals, including cells and free variables.
    pub(super) locals: usize,
    /// Depth of the value stack.
    pub(super) stack: usize,
    /// Address of the tuple of the locals' names.
    names_at: usize,
    /// The names of the locals, once they were read.
    names: OnceLock<Vec<String>>,
    /// Address of the tuple of the names of the globals and attributes that it uses.
    globals_at: usize,
    /// The addresses of these names, once they were read.
    globals: OnceLock<HashSet<usize>>,
    /// The instructions of its loops, once they were read.
    loops: OnceLock<Vec<Range<usize>>>,
}

impl Code {
    /// Returns the names of the locals; reads them once.
    pub(super) fn names(&self, memory: &Memory) -> Result<&[String], PythonError> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = addresses(memory, self.names_at)?.into_iter();
        let names = names.map(|name| memory.text(name));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        Ok(self.names.get_or_init(|| names))
    }

    /// Returns the addresses of the names of the globals and attributes that it uses; reads them once. The dict of a
    /// module has the same addresses, as Python keeps one object for each name.
    pub(super) fn globals(&self, memory: &Memory) -> Result<&HashSet<usize>, PythonError> {
        if let Some(names) = self.globals.get() {
            return Ok(names);
        }
        let names = addresses(memory, self.globals_at)?;
        Ok(self.globals.get_or_init(|| names.into_iter().collect()))
    }

    /// Returns the name of the function that the instruction at this unit calls. `None` if it calls nothing, or if the
    /// callee has no name. Reads everything anew, since another code object may be there by now.
    pub(super) fn called(
        &self,
        memory: &Memory,
        unit: usize,
    ) -> Result<Option<String>, PythonError> {
        let code = self.units(memory, unit, 0)?;
        let name = code.and_then(|code| name_of_callee(memory.layout.opcodes, &code, unit));
        let Some(index) = name else {
            return Ok(None);
        };
        memory.text(self.global(memory, index)?).map(Some)
    }

    /// Returns the address of the name of a global or attribute that it uses.
    pub(super) fn global(&self, memory: &Memory, index: usize) -> Result<usize, PythonError> {
        let names = memory.word(self.at.wrapping_add(memory.layout.code.globals))?;
        if index >= memory.len(names)?.min(MAX_NAMES) {
            return Err(memory.torn());
        }
        let item = memory.layout.tuple_items.wrapping_add(index * WORD);
        memory.word(names.wrapping_add(item))
    }

    /// Returns where the callee and the arguments of the call at this unit come from. `None` if that is not known.
    pub(super) fn sources(
        &self,
        memory: &Memory,
        unit: usize,
    ) -> Result<Option<CallSources>, PythonError> {
        let code = self.units(memory, unit, 0)?;
        Ok(code.and_then(|code| sources(memory.layout.opcodes, &code, unit)))
    }

    /// Whether the value that the instruction at this unit gives is used. `None` if that is not known.
    pub(super) fn keeps(&self, memory: &Memory, unit: usize) -> Result<Option<bool>, PythonError> {
        let code = self.units(memory, unit, MAX_CACHES + 1)?;
        Ok(code.and_then(|code| is_kept(memory.layout.opcodes, &code, unit)))
    }

    /// Returns the statements that may use what the call at this instruction gives. `None` if that is not known,
    /// as before 3.11.
    pub(super) fn users(
        &self,
        memory: &Memory,
        instruction: usize,
    ) -> Result<Option<Vec<User>>, PythonError> {
        let BytecodeLayout::Inside(offset) = memory.layout.bytecode else {
            return Ok(None);
        };
        let begin = self.at.wrapping_add(offset);
        let Some(bytes) = instruction.checked_sub(begin) else {
            return Ok(None);
        };
        let Some(code) = self.units(memory, bytes / UNIT, MAX_UNITS)? else {
            return Ok(None);
        };
        let names = addresses(memory, self.globals_at)?;
        let method = |name: usize| {
            let name = names.get(name).and_then(|name| memory.text(*name).ok());
            let name = name.unwrap_or_default();
            MethodUse {
                fills: FILLS.contains(&name.as_str()),
                sends: SENDS.contains(&name.as_str()),
            }
        };
        let reached = flow::reached(memory.layout.opcodes, &code, bytes / UNIT, method);
        let address = |unit: usize| begin.saturating_add(unit.saturating_mul(UNIT));
        let users = reached.into_iter().flatten().map(|user| User {
            at: address(user.at.start)..address(user.at.end),
            ..user
        });
        Ok(Some(users.collect()).filter(|users: &Vec<_>| !users.is_empty()))
    }

    /// Returns the addresses of the instructions of each of its loops; reads them once. Empty before 3.11, and where a debugger
    /// hides them.
    pub(super) fn loops(&self, memory: &Memory) -> Result<&[Range<usize>], PythonError> {
        if let Some(loops) = self.loops.get() {
            return Ok(loops);
        }
        let mut found = vec![];
        if let BytecodeLayout::Inside(offset) = memory.layout.bytecode {
            let begin = self.at.wrapping_add(offset);
            let address = |unit: usize| begin.saturating_add(unit.saturating_mul(UNIT));
            let code = self.units(memory, 0, MAX_UNITS)?;
            let loops = code.and_then(|code| loops(memory.layout.opcodes, &code));
            let loops = loops.into_iter().flatten();
            found.extend(loops.map(|units| address(units.start)..address(units.end)));
        }
        Ok(self.loops.get_or_init(|| found))
    }

    /// Returns the bytecode up to this unit, and up to `many` units more. `None` if `unit` is beyond [`MAX_UNITS`].
    fn units(
        &self,
        memory: &Memory,
        unit: usize,
        many: usize,
    ) -> Result<Option<Vec<[u8; UNIT]>>, PythonError> {
        if unit >= MAX_UNITS {
            return Ok(None);
        }
        let (at, units) = match memory.layout.bytecode {
            BytecodeLayout::Inside(offset) => {
                let begin = self.at.wrapping_add(offset);
                (begin, memory.len(self.at)?)
            }
            BytecodeLayout::Pointed { bytes, .. } => {
                let bytes = memory.word(self.at.wrapping_add(bytes))?;
                (bytes.wrapping_add(BYTES), memory.len(bytes)? / UNIT)
            }
        };
        if unit >= units {
            return Err(memory.torn());
        }
        let mut code = vec![[0; UNIT]; (unit + 1 + many).min(units)];
        memory.fill(at, code.as_flattened_mut())?;
        Ok(Some(code))
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
            library: is_library(&place.file),
            place,
            at,
            generator: half(layout.flags)? & GENERATORS != 0,
            arguments: half(layout.arguments)?,
            locals,
            stack: half(layout.stack)?,
            names_at: memory.word(at.wrapping_add(layout.names))?,
            names: OnceLock::new(),
            globals_at: memory.word(at.wrapping_add(layout.globals))?,
            globals: OnceLock::new(),
            loops: OnceLock::new(),
        })
    }
}

/// Returns the addresses of the names in a tuple of them.
fn addresses(memory: &Memory, tuple: usize) -> Result<Vec<usize>, PythonError> {
    let names = memory.items(tuple)?;
    if names.len() > MAX_NAMES {
        return Err(memory.torn());
    }
    Ok(names)
}
