//! What the main thread of a trainer does, by its stack and the queues that its frames lead to.
//!
//! Knows what a stack means, nothing of how it is read or of time.

use super::frames::{Frame, Walked};
use super::iterator;
use super::naming::{InLoader, activity, in_loader, loader_frame, loading, saves};
use super::site::{Call, Site};
use super::{PythonError, QueueSeen, Stacks, places};

/// What the main thread of a trainer does.
#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MainStack {
    pub loader: InLoader,
    /// The function that tells most, as `decode (train.py)`; `None` while the loader is waited for,
    /// received from or started, and where no Python runs.
    pub function: Option<String>,
    /// Address of the loader's iterator where a frame shows it: for [`Stacks::iterator`].
    pub iterator: Option<usize>,
    /// It writes a checkpoint.
    pub saves: bool,
    /// How it is known that it asks for a batch, where it is [`InLoader::Asking`] or waits in a loader that is not
    /// PyTorch's.
    pub asks: Option<Asks>,
    /// What it waits for that is no batch: `communication`.
    pub not_data: Option<&'static str>,
    /// It waits for a batch that another rank reads and sends.
    pub dispatched: bool,
    /// In none of the loaders that are known, and the training loop has not been found yet or is another one.
    pub unclear: bool,
    /// It waits for another thread, by the standard library.
    pub for_thread: bool,
    /// It waits until another thread ends.
    pub joins: bool,
    /// It does what only training does.
    pub trains: bool,
    /// How often the training loop turned out to be around the one that was taken for it; 1 with the first that was found.
    pub loops_found: u32,
    /// The queue that feeds it, where one was found.
    pub queue: Option<QueueSeen>,
}

/// How it is known that the main thread asks for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// By the names of a loader.
    Loader(&'static str),
    /// At the place in the training loop where a batch is asked for.
    Site,
}

/// Functions of `threading` that a wait for the end of a thread goes through.
const JOIN: usize = 3;

fn joins(frame: &Frame) -> bool {
    let place = &frame.code.place;
    place.function() == "join" && place.file.ends_with("/threading.py")
}

impl Stacks {
    /// What a trainer's main thread does now. Some 10 us of CPU for a stack of ten frames. One that `reads` batches for itself
    /// may wait for other ranks where its loop asks for the next: to agree with them on the end of the data, say.
    pub fn main_thread(&mut self, reads: bool) -> Result<MainStack, PythonError> {
        self.last = None;
        let frames = self.frames()?;
        let own = loader_frame(&places(&frames)).and_then(|index| frames.get(index));
        let object = own.map(|frame| frame.first_local(&self.memory));
        let object = object.transpose()?.flatten();
        let class = object.map(|object| self.type_name_of(object)).transpose()?;
        let walked = Walked {
            frames,
            object,
            class,
        };
        let stack = self.main_stack(&walked, reads);
        self.last = Some(walked);
        Ok(stack)
    }

    /// The same of a thread that has not run since the stack before, which therefore is not read again. `None` where that
    /// could not be read.
    pub fn main_thread_unmoved(&mut self, reads: bool) -> Option<MainStack> {
        let walked = self.last.take()?;
        let stack = self.main_stack(&walked, reads);
        self.last = Some(walked);
        Some(stack)
    }

    fn main_stack(&mut self, walked: &Walked, reads: bool) -> MainStack {
        let (frames, class) = (&walked.frames, walked.class.as_deref());
        let places = places(frames);
        let is_iterator = class.is_some_and(iterator::is_iterator);
        let mut loader = in_loader(&places, class);
        let site = self.site(frames);
        self.queues.poll(self.memory, &mut self.walker, frames);
        let results = site == Site::Data && self.queues.may_hold_results(&self.memory, frames);
        let site = if results { Site::Unknown } else { site };
        let known = frames.iter().find_map(|frame| frame.code.meaning.loader);
        let not_data = frames.iter().find_map(|frame| frame.code.meaning.not_data);
        let sent = frames.iter().any(|frame| frame.code.meaning.sent);
        let mut asks = None;
        if let (InLoader::Outside, Some(known)) = (loader, known) {
            loader = if known.waits {
                InLoader::Waiting
            } else {
                InLoader::Asking
            };
            asks = Some(Asks::Loader(&known.loader.name));
        } else if loader == InLoader::Outside
            && site == Site::Data
            && (not_data.is_none() || (sent && !reads))
        {
            loader = InLoader::Asking;
            asks = Some(Asks::Site);
        }
        let dispatched = sent
            && matches!(
                loader,
                InLoader::Waiting | InLoader::Asking | InLoader::Loading
            );
        if dispatched {
            loader = InLoader::Waiting;
        }
        let function = match loader {
            InLoader::Outside | InLoader::Asking => activity(&places),
            InLoader::Loading => loading(&places),
            InLoader::Waiting | InLoader::Receiving | InLoader::Starting => None,
        };
        MainStack {
            loader,
            function,
            iterator: walked.object.filter(|_| is_iterator),
            saves: saves(&places),
            asks,
            not_data: not_data.filter(|_| loader == InLoader::Outside),
            dispatched,
            unclear: loader == InLoader::Outside
                && not_data.is_none()
                && matches!(site, Site::Unknown | Site::Elsewhere),
            loops_found: self.sites.widened(),
            for_thread: frames.first().is_some_and(|frame| {
                let meaning = frame.code.meaning;
                meaning.waits || meaning.hands_over
            }),
            joins: frames.iter().take(JOIN).any(joins),
            trains: frames.iter().any(|frame| frame.code.meaning.trains),
            queue: self.queues.seen(),
        }
    }

    /// Takes a stack in, and says where in the training loop it is.
    fn site(&mut self, frames: &[Frame]) -> Site {
        // A program that imports does not train yet.
        let imports = |frame: &Frame| frame.code.place.file.starts_with("<frozen importlib");
        if frames.iter().any(imports) {
            return Site::Unknown;
        }
        let stack: Vec<Call> = frames.iter().rev().map(Frame::call).collect();
        let memory = self.memory;
        let innermost = frames.first();
        let in_for = || innermost.is_some_and(|frame| frame.is_in_for(&memory));
        self.sites.poll(&stack, in_for)
    }
}
