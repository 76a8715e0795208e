//! The frames of a process's main thread, innermost first.
//!
//! py-spy finds the interpreter. Walking its frames here costs a tenth of what py-spy's own poll costs, since only one
//! thread is walked and each code object is read once.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::PythonError;
use super::code::Code;
use super::frame::{Frame, untagged};
use super::layout::{C_OWNED, FrameOfThread};
use super::memory::{LastPage, Memory};
use super::shape::Shapes;

const MAX_DEPTH: usize = 2048;
/// Bounds a list that leads back to itself.
const MAX_THREADS: usize = 16_384;
/// Code objects are cached for this many polls: after that, another one may be at the address of one that was freed.
const POLLS_TO_CACHE: u32 = 2000;
/// Maximum number of cached code objects: twice as many as a stack can show.
const MAX_CODES: usize = 2 * MAX_DEPTH;
/// A main thread's stack as it was read.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) frames: Vec<Frame>,
    /// `self` of PyTorch's loader on the stack, and its class.
    pub(super) object: Option<usize>,
    pub(super) class: Option<String>,
    /// `self` of an outer loader whose dataset takes batches from that one.
    pub(super) outer: Option<usize>,
    /// What the innermost frame does with the device, in a function written in C, which has no frame.
    pub(super) device: Option<&'static str>,
    /// Whether the thread sleeps in a function written in C that, by its name, hands over a batch.
    pub(super) takes: bool,
    /// The frames that give their callers something ([`super::brings::gives`]), once that was looked up.
    pub(super) gives: OnceCell<Vec<usize>>,
    /// Whether the innermost is given something by a function written in C ([`super::brings::is_given_in_c`]), once that was
    /// looked up.
    pub(super) gives_in_c: OnceCell<bool>,
}

/// Walks the main thread's frames.
#[derive(Debug, Default)]
pub(super) struct Walker {
    pub(super) interpreter: usize,
    /// Address of the main thread's state, once found.
    main: Option<usize>,
    /// State of the thread that is walked instead of the main one.
    followed: Option<usize>,
    /// The type of code objects, once seen.
    code_type: Option<usize>,
    codes: HashMap<usize, Arc<Code>>,
    pub(super) shapes: Shapes,
    polls: u32,
    root: Root,
}

/// Address of a thread's outermost frame. A walk that ends elsewhere failed: a frame that returns while it is read loses
/// its link to the caller.
#[derive(Debug, Default, Clone, Copy)]
struct Root {
    known: Option<usize>,
    /// Where the last walk ended, if not there: the same address twice in a row is a new root.
    other: Option<usize>,
}

impl Root {
    /// Records where a walk ended. Returns whether it is to be believed.
    fn ended(&mut self, at: usize) -> bool {
        if self.known == Some(at) || self.other == Some(at) {
            *self = Self {
                known: Some(at),
                other: None,
            };
            return true;
        }
        self.other = Some(at);
        false
    }
}

impl Walker {
    pub(super) fn new(interpreter: usize) -> Self {
        Self {
            interpreter,
            ..Self::default()
        }
    }

    /// Walks the thread whose state is at `thread` instead of the main one from now on; `None` = the main one again.
    pub(super) fn follow(&mut self, thread: Option<usize>) {
        self.followed = thread;
        self.root = Root::default();
    }

    /// Returns the main thread's frames, innermost first; none while it runs no Python.
    pub(super) fn main_frames(&mut self, memory: &Memory) -> Result<Vec<Frame>, PythonError> {
        self.polls += 1;
        if self.polls.is_multiple_of(POLLS_TO_CACHE) || self.codes.len() > MAX_CODES {
            self.codes.clear();
        }
        let mut walked = self.walk_main(memory)?;
        if self.root.known.is_some_and(|known| known != walked.1) {
            // A thread that calls many functions cuts a walk off now and then, but seldom two in a row.
            walked = self.walk_main(memory)?;
        }
        let (frames, root) = walked;
        self.root.ended(root).then_some(frames).ok_or(memory.torn())
    }

    fn walk_main(&mut self, memory: &Memory) -> Result<(Vec<Frame>, usize), PythonError> {
        let at = self.innermost(memory)?;
        self.walk(memory, at)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_walks_in_a_row_that_end_elsewhere_show_a_new_root() {
        let mut root = Root::default();
        let mut ended =
            |walks: &[usize]| walks.iter().map(|at| root.ended(*at)).collect::<Vec<_>>();
        assert_eq!(ended(&[8, 8]), [false, true]);
        // Cut off now and then, always at the same place.
        assert_eq!(ended(&[0, 8, 0, 8]), [false, true, false, true]);
        assert_eq!(ended(&[0, 16, 0, 8]), [false, false, false, true]);
        assert_eq!(ended(&[0, 0, 8, 0]), [false, true, false, true]);
    }
}
