//! What the main thread of a trainer does, from its stack and the queues that its frames lead to.
//!
//! Does not depend on how stacks are read or on time.

use std::cell::OnceCell;

use super::brings::computes;
use super::call::Call;
use super::frame::{Frame, places};
use super::frames::Walked;
use super::iterator;
use super::naming::{
    IMPORTS, InLoader, activity, idles, in_loader, loader_frame, loading, outer_loader, saves,
};
use super::preparation::Preparing;
use super::site::Site;
use super::{PythonError, QueueState, Stacks};
use crate::loaders::Names;

/// What the main thread of a trainer does.
#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MainStack {
    pub loader: InLoader,
    /// The most specific function, such as `decode (train.py)`; `None` while the thread waits for the loader, receives
    /// from it or starts it, and while no Python runs.
    pub function: Option<String>,
    /// Address of the loader's iterator if a frame shows it: for [`Stacks::iterator`].
    pub iterator: Option<usize>,
    /// Address of the iterator of the outer loader, if another loader takes its batches from that one.
    pub outer: Option<usize>,
    /// Whether the thread is writing a checkpoint.
    pub saves: bool,
    /// How it is known that the thread asks for a batch, if it is [`InLoader::Asking`] or waits in a loader other than
    /// PyTorch's.
    pub asks: Option<Asks>,
    /// Name of the loader from which, in this thread, the dataset of PyTorch's loader takes its batches.
    pub behind: Option<&'static str>,
    /// What the thread waits for, if that is not a batch: `communication`.
    pub not_data: Option<&'static str>,
    /// What the thread does with its device in a function written in C, outside the loader: `synchronize`.
    pub device: Option<&'static str>,
    /// Whether the thread waits for a batch that another rank reads and sends.
    pub dispatched: bool,
    /// Whether the thread is in none of the known loaders, and the training loop is not known or not on this stack.
    pub unclear: bool,
    /// Whether it is in none of the known loaders but in a generator, which may be making the next batch, whichever loader
    /// feeds it.
    pub in_generator: bool,
    /// What the thread may be doing for a batch, outside its loader.
    pub prepares: Option<Preparing>,
    /// Whether the thread waits for another one, in the standard library.
    pub for_thread: bool,
    /// Whether the standard library hands something over to the thread.
    pub hands_over: bool,
    /// Whether the thread waits until another one ends.
    pub joins: bool,
    /// What the thread waits for in an event loop.
    pub idles: Option<&'static str>,
    /// Whether the thread does what only training does.
    pub trains: bool,
    /// Whether the stack shows a layer of a model.
    pub layer: bool,
    /// Whether no function on the stack is part of a framework that computes.
    pub without_framework: bool,
    /// How often a training loop was found outside the known one; 1 with the first loop found.
    pub loops_found: u32,
    /// The queue that feeds the thread, if one was found.
    pub queue: Option<QueueState>,
}

/// What is known of a main thread apart from its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadContext {
    /// Whether the thread takes batches from a loader of its own. Where its loop asks for the next one, it may still wait
    /// for other ranks, for example to agree with them on the end of the data.
    pub reads: bool,
    pub asleep: AsleepIn,
    /// Whether the thread may compute on an accelerator.
    pub accelerated: bool,
}

/// What a thread is asleep in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AsleepIn {
    /// Reading from a pipe or a local socket.
    Receiving,
    /// Reading from anything else.
    Reading,
    /// A sleep for some time.
    Sleeping,
    /// Waiting for a lock that is known not to be the interpreter's.
    Lock,
    /// Anything else, or it is not asleep.
    #[default]
    Other,
}

/// How it is known that the main thread asks for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// By the names of a known loader.
    Loader(&'static str),
    /// At the place in the training loop where a batch is asked for.
    Site,
}

/// Number of innermost frames searched for the `join` of `threading`.
const JOIN: usize = 3;

/// Maximum number of calls of which it is remembered where their values go.
const MAX_FLOWS: usize = 64;

fn joins(frame: &Frame) -> bool {
    let place = &frame.code.place;
    place.function() == "join" && place.file.ends_with("/threading.py")
}

/// Whether a frame shows by its name what a thread waits for. A command that the thread runs to its end does not feed it, so
/// the wait for its output is known, too.
pub(super) fn is_known(frame: &Frame) -> bool {
    let meaning = frame.code.meaning;
    meaning.hands_over
        || meaning.loader.is_some()
        || meaning.not_data.is_some()
        || frame.code.place.file.ends_with("/subprocess.py")
}

/// Returns the index of the program's own innermost function if the thread waits in it, or in a library or C function that
/// it calls, and if by the function's name that wait is for a batch.
fn takes(frames: &[Frame], context: ThreadContext) -> Option<usize> {
    let for_thread = frames.first()?.code.meaning.waits;
    let own = frames.iter().position(|frame| !frame.code.library)?;
    // Libraries written in C use locks for many things, so the function's name says little there.
    let asleep = !matches!(context.asleep, AsleepIn::Lock | AsleepIn::Other);
    let waits = asleep || for_thread;
    (waits && frames[own].code.meaning.takes && !frames.iter().any(is_known)).then_some(own)
}

impl Stacks {
    /// Returns what a trainer's main thread does now. Costs about 10 us of CPU for a stack of ten frames.
    pub fn main_thread(&mut self, context: ThreadContext) -> Result<MainStack, PythonError> {
        self.last = None;
        let frames = self.frames()?;
        let all = places(&frames);
        let of = |index| {
            frames
                .get(index)
                .map(|it: &Frame| it.first_local(&self.memory))
        };
        let object = loader_frame(&all).and_then(of).transpose()?.flatten();
        let outer = outer_loader(&all).and_then(of).transpose()?.flatten();
        let class = object
            .map(|object| self.memory.type_name_of(object))
            .transpose()?;
        let innermost = frames.first();
        let asleep = context.asleep != AsleepIn::Other;
        let may_take = asleep && innermost.is_some_and(|frame| !frame.code.library);
        let innermost = innermost.filter(|_| context.accelerated || may_take);
        // The stack is of use even if this name cannot be read.
        let called = innermost.and_then(|frame| frame.called(&self.memory).ok()?);
        let device = called.as_deref().filter(|_| context.accelerated);
        let device = device.and_then(|name| Names::known().device_call(name));
        let takes = may_take && called.is_some_and(|name| Names::known().takes(&name));
        let walked = Walked {
            frames,
            object,
            class,
            outer,
            device,
            takes,
            gives: OnceCell::new(),
            gives_in_c: OnceCell::new(),
        };
        let stack = self.main_stack(&walked, context);
        self.last = Some(walked);
        Ok(stack)
    }

    /// Returns what the main thread does if it has not run since the last stack, which is not read again then. `None` if the
    /// last stack could not be read.
    pub fn main_if_unchanged(&mut self, context: ThreadContext) -> Option<MainStack> {
        let walked = self.last.take()?;
        let stack = self.main_stack(&walked, context);
        self.last = Some(walked);
        Some(stack)
    }

    fn main_stack(&mut self, walked: &Walked, context: ThreadContext) -> MainStack {
        let (frames, class) = (&walked.frames, walked.class.as_deref());
        let places = places(frames);
        let is_iterator = class.is_some_and(iterator::is_iterator);
        let mut loader = in_loader(&places, class);
        let takes = takes(frames, context);
        let mut calls = self.calls(walked, context, takes);
        if let (Some(innermost), true) = (calls.last_mut(), loader != InLoader::Outside) {
            innermost.pytorch = true;
        }
        self.sites.pytorch = context.reads;
        let site = self.site(frames, &calls);
        let own = takes.filter(|_| self.sites.trains);
        let own = own.map(|own| &frames[own]);
        self.queues.poll(self.memory, &mut self.walker, frames, own);
        let results = site == Site::Data && self.queues.may_hold_results(&self.memory, frames);
        let site = if results { Site::Unknown } else { site };
        let known = frames.iter().find_map(|frame| frame.code.meaning.loader);
        let not_data = frames.iter().find_map(|frame| frame.code.meaning.not_data);
        let sent = frames.iter().any(|frame| frame.code.meaning.sent);
        let mut asks = None;
        // A pool may also work on what a step gives.
        let known_here = known.filter(|_| site != Site::Other);
        if let (InLoader::Outside, Some(known)) = (loader, known_here) {
            loader = if known.waits {
                InLoader::Waiting
            } else {
                InLoader::Asking
            };
            asks = Some(Asks::Loader(&known.loader.name));
        } else if loader == InLoader::Outside
            && site == Site::Data
            && (not_data.is_none() || (sent && !context.reads))
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
        let requests = loader != InLoader::Outside;
        let unnamed = !requests && not_data.is_none();
        let prepares = self.prepares(frames, &calls, requests, context);
        MainStack {
            loader,
            function,
            iterator: walked.object.filter(|_| is_iterator),
            outer: walked.outer,
            saves: saves(&places),
            asks,
            behind: known
                .filter(|_| loader == InLoader::Loading)
                .map(|known| known.loader.name.as_str()),
            not_data: not_data.filter(|_| loader == InLoader::Outside),
            device: walked.device.filter(|_| loader == InLoader::Outside),
            dispatched,
            unclear: unnamed && !matches!(site, Site::Data | Site::Step),
            in_generator: unnamed && site == Site::Generator,
            prepares: prepares.filter(|_| not_data.is_none() && walked.device.is_none()),
            loops_found: self.sites.widened,
            for_thread: frames.first().is_some_and(|frame| {
                let meaning = frame.code.meaning;
                meaning.waits || meaning.hands_over
            }),
            hands_over: frames.iter().any(|frame| frame.code.meaning.hands_over),
            idles: idles(&places),
            joins: frames.iter().take(JOIN).any(joins),
            trains: frames.iter().any(|frame| frame.code.meaning.trains),
            layer: frames.iter().any(|frame| frame.code.meaning.layer),
            without_framework: !frames.iter().any(computes),
            queue: self.queues.seen(),
        }
    }

    /// Returns what a thread with this stack may be doing for a batch. `requests`: it requests one.
    fn prepares(
        &mut self,
        frames: &[Frame],
        stack: &[Call],
        requests: bool,
        context: ThreadContext,
    ) -> Option<Preparing> {
        let memory = self.memory;
        let asleep = context.asleep == AsleepIn::Sleeping;
        let loops = |depth| {
            let frame = frames.iter().rev().nth(depth);
            let loops = frame.map(|frame| frame.code.loops(&memory).unwrap_or_default());
            loops.unwrap_or_default()
        };
        self.preparation
            .poll(stack, requests, context.reads, asleep, loops)
    }

    /// Adds a stack to those seen so far, and returns where in the training loop it is.
    fn site(&mut self, frames: &[Frame], stack: &[Call]) -> Site {
        // A program that imports does not train yet.
        let imports = |frame: &Frame| frame.code.place.file.starts_with(IMPORTS);
        if frames.iter().any(imports) {
            return Site::Unknown;
        }
        let memory = self.memory;
        let in_for = |depth| {
            let frame = frames.iter().rev().nth(depth);
            frame.is_some_and(|frame| frame.is_in_for(&memory))
        };
        let (walker, elsewhere) = (&mut self.walker, &mut self.elsewhere);
        let iterates = |depth| {
            let frame = frames.iter().rev().nth(depth);
            let held = frame.map(|frame| frame.iterators(&memory, &mut walker.shapes));
            let mut held = held.into_iter().flatten();
            held.any(|iterator| !elsewhere.contains(&memory, walker, iterator))
        };
        let flows = &mut self.flows;
        let users = |depth, at: Option<usize>| {
            let frame = frames.iter().rev().nth(depth)?;
            let at = at.or(frame.instruction)?;
            if let Some(known) = flows.get(&at) {
                return known.clone();
            }
            let users = frame.code.users(&memory, at).ok()?;
            if flows.len() >= MAX_FLOWS {
                flows.clear();
            }
            flows.insert(at, users.clone());
            users
        };
        self.sites.poll(stack, in_for, iterates, users)
    }
}
