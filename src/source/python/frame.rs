//! One call in progress: what it runs, and the objects that it holds. Does not know the other calls of its thread.

use std::cell::OnceCell;
use std::sync::Arc;

use super::PythonError;
use super::bytecode::Variable;
use super::call::{Call, Innermost};
use super::code::{Code, UNIT};
use super::layout::{BytecodeLayout, CELL};
use super::memory::{Memory, WORD};
use super::naming::CodeLocation;
use super::shape::Shapes;

/// Returns where the code of each frame is.
pub(super) fn places(frames: &[Frame]) -> Vec<&CodeLocation> {
    frames.iter().map(|frame| &frame.code.place).collect()
}

/// One call in progress.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) code: Arc<Code>,
    /// Address of its first local.
    pub(super) locals: usize,
    pub(super) globals: usize,
    /// Address of the instruction that it runs; `None` before 3.11.
    pub(super) instruction: Option<usize>,
}

impl Frame {
    /// Whether it is about to take the next item of a `for` loop. False if the instruction is not known.
    pub(super) fn is_in_for(&self, memory: &Memory) -> bool {
        let instruction = self.instruction.zip(memory.layout.for_iter);
        instruction.is_some_and(|(at, for_iter)| {
            let word = memory.word(at);
            word.is_ok_and(|word| word.to_ne_bytes()[0] == for_iter)
        })
    }

    /// Returns the name of the function that it is calling. `None` if it calls nothing, or if the callee has no name.
    pub(super) fn called(&self, memory: &Memory) -> Result<Option<String>, PythonError> {
        let unit = self.unit(memory)?;
        unit.map_or(Ok(None), |unit| self.code.called(memory, unit))
    }

    /// Whether it uses the return value of the function that it is calling. `None` if that is not known.
    pub(super) fn keeps(&self, memory: &Memory) -> Result<Option<bool>, PythonError> {
        let unit = self.unit(memory)?;
        unit.map_or(Ok(None), |unit| self.code.keeps(memory, unit))
    }

    /// Returns the object from which it takes the function that it is calling, by attributes and calls, and the objects that
    /// the arguments come from. `None` if they are not known.
    pub(super) fn call_in_progress(
        &self,
        memory: &Memory,
    ) -> Result<Option<(usize, Vec<usize>)>, PythonError> {
        let unit = self.unit(memory)?;
        let sources = unit
            .map(|unit| self.code.sources(memory, unit))
            .transpose()?;
        let Some(sources) = sources.flatten() else {
            return Ok(None);
        };
        // The dict may be replaced while it is read.
        let globals = OnceCell::new();
        let value = |variable| match variable {
            Variable::Local(index) if index < self.code.locals => {
                let local = self.locals.wrapping_add(index * WORD);
                memory.word(local).ok().and_then(untagged)
            }
            Variable::Local(_) => None,
            Variable::Name(index) => {
                let name = self.code.global(memory, index).ok()?;
                let items = || memory.items_of_dict(self.globals).unwrap_or_default();
                let mut items = globals.get_or_init(items).iter();
                items.find(|(key, _)| *key == name).map(|(_, value)| *value)
            }
        };
        let value = |variable| {
            let object = value(variable)?;
            let cell = (memory.type_name_of(object)).is_ok_and(|name| name == "cell");
            let held = cell.then(|| memory.word(object.wrapping_add(CELL)));
            held.map_or(Some(object), |held| held.ok().and_then(untagged))
        };
        let arguments = sources.arguments.into_iter().filter_map(value).collect();
        Ok(value(sources.callee).map(|callee| (callee, arguments)))
    }

    /// Returns the objects of its positional arguments; for one that was assigned to, the present object.
    pub(super) fn arguments(&self, memory: &Memory) -> Result<Vec<usize>, PythonError> {
        let count = self.code.arguments.min(self.code.locals);
        let words = memory.array(self.locals, count)?;
        Ok(words.into_iter().filter_map(untagged).collect())
    }

    /// Returns the index of the unit of bytecode that it runs. `None` if that is not known.
    fn unit(&self, memory: &Memory) -> Result<Option<usize>, PythonError> {
        Ok(match memory.layout.bytecode {
            BytecodeLayout::Inside(offset) => {
                let begin = self.code.at.wrapping_add(offset);
                let bytes = self.instruction.and_then(|at| at.checked_sub(begin));
                bytes.map(|bytes| bytes / UNIT)
            }
            BytecodeLayout::Pointed { last, counts, .. } => {
                // Read together with the frame's code, since the frame may belong to another function by now.
                let from = memory.layout.frame.code;
                let words: [usize; 10] = memory.words(self.at(memory).wrapping_add(from))?;
                if words[0] != self.code.at {
                    return Err(memory.torn());
                }
                let last = u32::try_from(words[(last - from) / WORD] & 0xffff_ffff);
                let last = last.ok().and_then(|last| i32::try_from(last).ok());
                let last = last.and_then(|last| usize::try_from(last).ok());
                last.map(|last| last * counts / UNIT)
            }
        })
    }

    /// Returns the data that the search for the training loop needs.
    pub(super) fn call(&self) -> Call {
        Call {
            code: self.code.at,
            meaning: self.code.meaning,
            generator: self.code.generator,
            takes: self.code.meaning.reads,
            pytorch: false,
            brings: false,
            builds: false,
            innermost: Innermost::default(),
            expression: self.code.place.function() == "<genexpr>",
            instruction: self.instruction,
        }
    }

    /// Returns the object in the first local: `self` in a method. `None` if it is unset.
    pub(super) fn first_local(&self, memory: &Memory) -> Result<Option<usize>, PythonError> {
        if self.code.locals == 0 {
            return Ok(None);
        }
        Ok(untagged(memory.word(self.locals)?))
    }

    pub(super) fn at(&self, memory: &Memory) -> usize {
        self.locals.wrapping_sub(memory.layout.frame.locals)
    }

    /// Returns the address of a local; `None` if no local has this name.
    pub(super) fn slot(&self, memory: &Memory, name: &str) -> Result<Option<usize>, PythonError> {
        let mut names = self.code.names(memory)?.iter();
        let place = names.position(|local| local == name);
        Ok(place.map(|place| self.locals.wrapping_add(place * WORD)))
    }

    /// Returns the objects of all locals by name, without unset ones.
    pub(super) fn locals(&self, memory: &Memory) -> Result<Vec<(&str, usize)>, PythonError> {
        let names = self.code.names(memory)?;
        let values = memory.array(self.locals, names.len())?;
        let named = names.iter().map(String::as_str).zip(values);
        Ok(named
            .filter_map(|(name, value)| Some((name, untagged(value)?)))
            .collect())
    }

    /// Returns the iterators that it holds and whose next item a thread may take. Some may be stale.
    pub(super) fn iterators(&self, memory: &Memory, shapes: &mut Shapes) -> Vec<usize> {
        let mut objects = self.candidates(memory).unwrap_or_default();
        objects.retain(|object| shapes.iterates(memory, *object).unwrap_or(false));
        objects
    }

    /// Returns what may be objects among the locals and on the value stack; some are stale.
    pub(super) fn candidates(&self, memory: &Memory) -> Result<Vec<usize>, PythonError> {
        let (mut locals, stacked) = self.held(memory)?;
        locals.extend(stacked);
        Ok(locals)
    }

    /// Returns the objects that the module-level names of a script hold: they are the locals of the script's own frame.
    /// Empty for a function.
    fn of_script(&self, memory: &Memory) -> Vec<usize> {
        if self.code.place.function() != "<module>" {
            return vec![];
        }
        // The dict may be replaced while it is read.
        let items = memory.items_of_dict(self.globals).unwrap_or_default();
        items.into_iter().map(|(_, value)| value).collect()
    }

    /// Returns the objects of its module that it may use: those whose names occur in its code.
    pub(super) fn used_globals(&self, memory: &Memory) -> Result<Vec<usize>, PythonError> {
        let names = self.code.globals(memory)?;
        let items = memory.items_of_dict(self.globals)?.into_iter();
        let used = items.filter(|(name, _)| names.contains(name));
        Ok(used.map(|(_, value)| value).collect())
    }

    /// Returns possible objects among the locals, and those on the value stack.
    pub(super) fn held(&self, memory: &Memory) -> Result<(Vec<usize>, Vec<usize>), PythonError> {
        let words = memory.array(
            self.locals,
            self.code.locals.saturating_add(self.code.stack),
        )?;
        let objects = |words: &[usize]| words.iter().copied().filter_map(untagged).collect();
        let (locals, stacked) = words.split_at(self.code.locals);
        let mut locals: Vec<usize> = objects(locals);
        locals.extend(self.of_script(memory));
        Ok((locals, objects(stacked)))
    }

    /// Returns the objects of its locals alone.
    pub(super) fn local_objects(&self, memory: &Memory) -> Result<Vec<usize>, PythonError> {
        let words = memory.array(self.locals, self.code.locals)?;
        let mut objects = self.of_script(memory);
        objects.extend(words.into_iter().filter_map(untagged));
        Ok(objects)
    }
}

/// Returns the object in a local's word, without the low bits that since 3.14 tell how its reference is counted. `None`
/// if the local is unset.
pub(super) fn untagged(word: usize) -> Option<usize> {
    Some(word & !3).filter(|object| *object != 0)
}
