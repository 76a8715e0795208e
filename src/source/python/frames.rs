//! The frames of a process's main thread, innermost first.
//!
//! py-spy finds the interpreter. Walking its frames here costs a tenth of what py-spy's own poll costs, since only one
//! thread is walked and each code object is read once. It also yields the addresses of the frames, and with them the
//! values that a frame holds.

use std::collections::HashMap;
use std::sync::Arc;

use super::PythonError;
use super::code::{Code, UNIT};
use super::layout::{BytecodeLayout, C_OWNED, FrameOfThread};
use super::memory::{LastPage, Memory, WORD};
use super::shape::Shapes;
use super::site::Call;

const MAX_DEPTH: usize = 2048;
/// Bounds a list that leads back to itself.
const MAX_THREADS: usize = 16_384;
/// Code objects are cached for this many polls: another may have the address of one that was freed meanwhile.
const POLLS_TO_CACHE: u32 = 2000;
/// Maximum number of cached code objects: twice as many as a stack can show.
const MAX_CODES: usize = 2 * MAX_DEPTH;
/// One call in progress.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) code: Arc<Code>,
    /// Address of its first local.
    locals: usize,
    globals: usize,
    /// Address of the instruction that it runs; `None` before 3.11.
    instruction: Option<usize>,
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

    /// Returns the name of what it is calling. `None` if it calls nothing, or nothing with a name.
    pub(super) fn called(&self, memory: &Memory) -> Result<Option<String>, PythonError> {
        let unit = self.unit(memory)?;
        unit.map_or(Ok(None), |unit| self.code.called(memory, unit))
    }

    /// Returns the index of the unit of bytecode that it runs. `None` if that is not known.
    fn unit(&self, memory: &Memory) -> Result<Option<usize>, PythonError> {
        Ok(match memory.layout.bytecode.at {
            BytecodeLayout::Inside(offset) => {
                let begin = self.code.at.wrapping_add(offset);
                let bytes = self.instruction.and_then(|at| at.checked_sub(begin));
                bytes.map(|bytes| bytes / UNIT)
            }
            BytecodeLayout::Pointed { last, counts, .. } => {
                // In one read with its code: the frame may belong to another function by now.
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

    /// It holds an iterator that is neither a range's nor a file. Also yes now and then where it does not any more.
    pub(super) fn holds_iterator(&self, memory: &Memory, shapes: &mut Shapes) -> bool {
        let objects = self.candidates(memory).unwrap_or_default();
        objects
            .into_iter()
            .any(|object| shapes.iterates(memory, object).unwrap_or(false))
    }

    /// What may be objects among the locals and on the value stack; some are stale.
    pub(super) fn candidates(&self, memory: &Memory) -> Result<Vec<usize>, PythonError> {
        let (mut locals, stacked) = self.held(memory)?;
        locals.extend(stacked);
        Ok(locals)
    }

    /// Returns the objects that the names of a script's module hold: the locals of what runs there. Empty for a function.
    fn of_script(&self, memory: &Memory) -> Vec<usize> {
        if self.code.place.function() != "<module>" {
            return vec![];
        }
        // The dict may be replaced while it is read.
        let items = memory.items_of_dict(self.globals).unwrap_or_default();
        items.into_iter().map(|(_, value)| value).collect()
    }

    /// Returns the objects of its module that it may use: those whose names its code has.
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

/// Since 3.14 the low bits of a local tell how its reference is counted.
pub(super) fn untagged(word: usize) -> Option<usize> {
    Some(word & !3).filter(|object| *object != 0)
}

/// A main thread's stack as it was read.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) frames: Vec<Frame>,
    /// `self` of PyTorch's loader on the stack, and its class.
    pub(super) object: Option<usize>,
    pub(super) class: Option<String>,
    /// `self` of the loader whose dataset that one is in.
    pub(super) outer: Option<usize>,
    /// What the innermost frame does with the device in a function without a frame.
    pub(super) device: Option<&'static str>,
    /// Whether it sleeps in such a function, which by its name hands over a batch.
    pub(super) takes: bool,
}

/// Walks the main thread's frames.
#[derive(Debug, Default)]
pub(super) struct Walker {
    interpreter: usize,
    /// Address of the main thread's state, once found.
    main: Option<usize>,
    /// State of the thread that is walked instead of the main one.
    followed: Option<usize>,
    /// The type of code objects, once seen.
    code_type: Option<usize>,
    codes: HashMap<usize, Arc<Code>>,
    pub(super) shapes: Shapes,
    polls: u32,
    /// Address of the outermost frame. A walk that ends elsewhere failed.
    root: Option<usize>,
    /// Where the last failed walk ended: the same address twice is a new root.
    other_root: Option<usize>,
}

impl Walker {
    pub(super) fn new(interpreter: usize) -> Self {
        Self {
            interpreter,
            ..Self::default()
        }
    }

    pub(super) fn interpreter(&self) -> usize {
        self.interpreter
    }

    /// Walks the thread whose state is at `thread` instead of the main one from now on; `None` = the main one again.
    pub(super) fn follow(&mut self, thread: Option<usize>) {
        self.followed = thread;
        (self.root, self.other_root) = (None, None);
    }

    /// Returns the main thread's frames, innermost first; none while it runs no Python.
    pub(super) fn main_frames(&mut self, memory: &Memory) -> Result<Vec<Frame>, PythonError> {
        self.polls += 1;
        if self.polls.is_multiple_of(POLLS_TO_CACHE) || self.codes.len() > MAX_CODES {
            self.codes.clear();
        }
        let at = self.innermost(memory)?;
        let (frames, root) = self.walk(memory, at)?;
        self.check_root(memory, root)?;
        Ok(frames)
    }

    /// Returns the frames of the thread whose state is at `thread`, innermost first. A frame that returns meanwhile may
    /// cut the stack off, so use this only to name what runs, not what called it.
    pub(super) fn frames_of(
        &mut self,
        memory: &Memory,
        thread: usize,
    ) -> Result<Vec<Frame>, PythonError> {
        let words = memory.words(thread)?;
        let at = innermost_of(memory, &words)?;
        Ok(self.walk(memory, at)?.0)
    }

    /// Walks from the innermost frame to the outermost. Returns the frames and the address of the outermost.
    fn walk(&mut self, memory: &Memory, mut at: usize) -> Result<(Vec<Frame>, usize), PythonError> {
        let mut root = 0;
        let mut frames = Vec::with_capacity(32);
        let mut page = LastPage::default();
        for _ in 0..MAX_DEPTH {
            if at == 0 {
                return Ok((frames, root));
            }
            let words = page.words(memory, at)?;
            let (previous, frame) = self.frame(memory, at, words)?;
            frames.extend(frame);
            root = at;
            at = previous;
        }
        Err(memory.torn())
    }

    /// Returns an error if the walk did not end at the root: a frame that returns while it is read has lost its caller.
    fn check_root(&mut self, memory: &Memory, root: usize) -> Result<(), PythonError> {
        if self.root != Some(root) {
            let before = self.other_root.replace(root);
            if before != Some(root) {
                return Err(memory.torn());
            }
            self.root = Some(root);
        }
        Ok(())
    }

    /// Returns the address of the caller of the frame at `at` with these first words, and the frame, unless it belongs to
    /// C code.
    pub(super) fn frame(
        &mut self,
        memory: &Memory,
        at: usize,
        words: [usize; 10],
    ) -> Result<(usize, Option<Frame>), PythonError> {
        let layout = &memory.layout.frame;
        let previous = words[layout.previous / 8];
        let owner = layout
            .owner
            .map_or(0, |owner| words[owner / 8].to_ne_bytes()[owner % 8]);
        let Some(code) = untagged(words[layout.code / 8]).filter(|_| owner < C_OWNED) else {
            return Ok((previous, None));
        };
        let code = self.code(memory, code)?;
        // A shim between C and Python has no file.
        let is_python = !code.place.file.is_empty() && code.place.file != "<shim>";
        let frame = Frame {
            code,
            locals: at.wrapping_add(layout.locals),
            globals: words[layout.globals / 8],
            instruction: layout.instruction.map(|instruction| words[instruction / 8]),
        };
        Ok((previous, is_python.then_some(frame)))
    }

    /// Returns the frame of a generator object that is not running.
    pub(super) fn generator_frame(
        &mut self,
        memory: &Memory,
        generator: usize,
    ) -> Result<Option<Frame>, PythonError> {
        let at = generator.wrapping_add(memory.layout.generator_frame);
        let at = match memory.layout.frame.owner {
            Some(_) => at,
            None => memory.word(at)?,
        };
        if at == 0 {
            return Ok(None);
        }
        Ok(self.frame(memory, at, memory.words(at)?)?.1)
    }

    fn innermost(&mut self, memory: &Memory) -> Result<usize, PythonError> {
        let thread = match self.main() {
            Some(known) => known,
            None => *self.threads(memory)?.last().ok_or(memory.torn())?,
        };
        let words: [usize; 10] = memory.words(thread)?;
        // The main thread was the first, so it is the last of the list while it lives.
        let is_right = words[2] == self.interpreter && (words[1] == 0 || self.followed.is_some());
        self.main = self.main.or(Some(thread)).filter(|_| is_right);
        if !is_right {
            return Err(memory.torn());
        }
        innermost_of(memory, &words)
    }

    /// Returns the state of the main thread, once a walk has found it, or of the thread that is walked instead.
    pub(super) fn main(&self) -> Option<usize> {
        self.followed.or(self.main)
    }

    /// Returns the states of the Python threads other than the main one, newest first.
    pub(super) fn others(&self, memory: &Memory) -> Result<Vec<usize>, PythonError> {
        let mut threads = self.threads(memory)?;
        match self.followed {
            Some(followed) => threads.retain(|thread| *thread != followed),
            None => _ = threads.pop(),
        }
        Ok(threads)
    }

    /// Returns the states of all Python threads. The main thread was the first, so it is the last of the list.
    fn threads(&self, memory: &Memory) -> Result<Vec<usize>, PythonError> {
        let mut threads = Vec::new();
        let mut thread = memory.word(self.interpreter.wrapping_add(memory.layout.threads_head))?;
        while thread != 0 && threads.len() < MAX_THREADS {
            threads.push(thread);
            thread = memory.word(thread.wrapping_add(8))?;
        }
        if thread == 0 {
            Ok(threads)
        } else {
            Err(memory.torn())
        }
    }

    fn code(&mut self, memory: &Memory, at: usize) -> Result<Arc<Code>, PythonError> {
        if let Some(code) = self.codes.get(&at) {
            return Ok(Arc::clone(code));
        }
        let of_type = memory.type_of(at)?;
        match self.code_type {
            Some(code_type) if code_type == of_type => {}
            None if memory.type_name(of_type)? == "code" => self.code_type = Some(of_type),
            _ => return Err(memory.torn()),
        }
        let code = Arc::new(Code::read(memory, at)?);
        self.codes.insert(at, Arc::clone(&code));
        Ok(code)
    }
}

/// Returns the address of a thread's innermost frame from the first words of its state.
fn innermost_of(memory: &Memory, words: &[usize; 10]) -> Result<usize, PythonError> {
    match memory.layout.frame_of_thread {
        FrameOfThread::Direct(offset) => Ok(words[offset / 8]),
        FrameOfThread::ByCFrame { cframe, current } => {
            memory.word(words[cframe / 8].wrapping_add(current))
        }
    }
}
