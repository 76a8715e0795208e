//! Python from outside: what the main threads of trainers and workers run, and the loader's counters.
//!
//! Reads the memory of a running process (tier T2) and never stops, signals or writes to it. py-spy finds the
//! interpreter; the rest is `process_vm_readv`. A read may see half a change: that is an error which the caller counts,
//! never a wrong answer or a panic. Must not depend on shares or verdicts.

mod brings;
mod bytecode;
mod call;
mod call_node;
mod code;
mod deque;
mod elsewhere;
mod error;
mod flow;
mod frame;
mod frames;
mod gil;
mod instance;
mod instruction;
mod iterator;
mod layout;
mod main_calls;
mod main_stack;
mod memory;
mod model_use;
mod module_of;
mod naming;
mod opcode_tables;
mod opcodes;
mod polled_deque;
mod preparation;
mod queues;
mod reach;
mod shape;
mod shared_queue;
mod site;
mod supply;
mod threads;
mod worker_loop;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;

use py_spy::PythonSpy;
use py_spy::config::{Config, LineNo, LockingStrategy};

use self::elsewhere::RunElsewhere;
pub use self::error::PythonError;
use self::flow::User;
use self::frame::{Frame, places};
use self::frames::{Walked, Walker};
use self::gil::Gil;
pub use self::iterator::{IteratorState, LoaderIterator};
use self::layout::Layout;
pub use self::main_stack::{Asks, AsleepIn, MainStack, ThreadContext};
use self::memory::Memory;
pub use self::model_use::ModelUse;
pub use self::naming::{InLoader, WorkerPhase};
use self::naming::{activity, process_frame, worker_frame, worker_phase};
use self::preparation::Preparation;
pub use self::preparation::Preparing;
pub use self::queues::QueueState;
use self::queues::Queues;
use self::reach::Reach;
use self::site::Sites;
use self::threads::ThreadCache;
pub use self::threads::{Does, OtherThread, TrainerCandidate};
pub use self::worker_loop::{BatchInWork, WorkerLoop};
use crate::foreign;
use crate::units::Pid;

/// With more threads, py-spy does not find the interpreter and takes seconds for each attempt. The link count of a
/// folder is the number of its subfolders plus two.
const MAX_THREADS: u64 = 4096;

/// What the main thread of a loader worker does. `None` means that this poll did not show it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerStack {
    pub phase: WorkerPhase,
    pub model: ModelUse,
    /// Whether it has started and is not in the loop of PyTorch's workers.
    pub elsewhere: bool,
    pub worker_id: Option<u32>,
    pub num_workers: Option<u32>,
    pub persistent_workers: Option<bool>,
    /// Number of the batch in work, counted over all workers of the epoch.
    pub batch: Option<u64>,
    /// Samples in the batch in work.
    pub batch_size: Option<u32>,
    /// The most specific function; only while the worker starts, prepares or makes a batch.
    pub function: Option<String>,
    /// Where the batch in work can be read from now on. `None` if its frame does not have the known layout.
    pub in_loop: Option<WorkerLoop>,
}

/// Reads the stacks of one process.
#[derive(Debug)]
pub struct Stacks {
    memory: Memory,
    walker: Walker,
    /// The loop of a worker, once a stack has shown it.
    worker_loop: Option<WorkerLoop>,
    /// Places in a trainer's main thread, learned stack by stack.
    sites: Sites,
    preparation: Preparation,
    elsewhere: RunElsewhere,
    /// By the instruction of a call: the statements that may use what it gives. `None`: not known.
    flows: HashMap<usize, Option<Vec<User>>>,
    /// The newest stack of the main thread.
    last: Option<Walked>,
    queues: Queues,
    threads: ThreadCache,
    /// `None` if it was not found: a stripped interpreter before 3.12.
    gil: Option<Gil>,
}

impl Stacks {
    /// Finds the interpreter of a process: 4 to 10 ms with symbols, more if memory must be searched. Only reads; the
    /// process keeps running.
    pub fn attach(pid: Pid) -> Result<Self, PythonError> {
        may_read(pid)?;
        let task = std::fs::metadata(format!("/proc/{pid}/task"));
        if task.is_ok_and(|task| task.nlink() > MAX_THREADS + 2) {
            let reason = format!("it has more than {MAX_THREADS} threads");
            return Err(PythonError::Attach { pid, reason });
        }
        let config = Config {
            blocking: LockingStrategy::NonBlocking,
            lineno: LineNo::NoLine,
            collect_thread_names: false,
            ..Config::default()
        };
        // py-spy parses the binaries and the memory of a process that may end or exec meanwhile, and unwraps some of
        // what it finds there (`from_binaries`).
        let spy = foreign::call(|| PythonSpy::new(pid.0, &config))
            .ok_or_else(|| "py-spy could not parse the interpreter".to_owned())
            .and_then(|spy| spy.map_err(|error| format!("{error:#}")))
            .map_err(|reason| attach_error(pid, reason))?;
        let version = &spy.version;
        let layout =
            Layout::of(version.major, version.minor).ok_or_else(|| PythonError::Unsupported {
                pid,
                version: version.to_string(),
            })?;
        let gil = Gil::at(
            &Memory { pid, layout },
            version.minor,
            spy.addresses.threadstate_address,
        );
        Self::at(pid, layout, spy.addresses.interpreter_address, gil)
    }

    /// Like [`attach`](Self::attach), but first tries the address of another process's interpreter: a forked worker has
    /// it at the same address as its trainer, and is attached in well under a millisecond.
    pub fn attach_like(pid: Pid, relative: &Self) -> Result<Self, PythonError> {
        may_read(pid)?;
        let layout = relative.memory.layout;
        let interpreter = relative.walker.interpreter;
        Self::at(pid, layout, interpreter, relative.gil).or_else(|_| Self::attach(pid))
    }

    fn at(
        pid: Pid,
        layout: &'static Layout,
        interpreter: usize,
        gil: Option<Gil>,
    ) -> Result<Self, PythonError> {
        let mut stacks = Self {
            memory: Memory { pid, layout },
            walker: Walker::new(interpreter),
            worker_loop: None,
            sites: Sites::default(),
            preparation: Preparation::default(),
            elsewhere: RunElsewhere::default(),
            flows: HashMap::new(),
            last: None,
            queues: Queues::default(),
            threads: ThreadCache::default(),
            gil,
        };
        // Reads of a running process may be torn a few times, but not always.
        let reason = match (0..8)
            .map(|_| stacks.frames())
            .find(|poll| !matches!(poll, Err(PythonError::Torn(_))))
        {
            Some(Ok(_)) => return Ok(stacks),
            Some(Err(error)) => return Err(error),
            None => "cannot find the threads of this Python version".to_owned(),
        };
        Err(PythonError::Attach { pid, reason })
    }

    /// Returns what a worker's main thread does now. Costs about 40 us of CPU.
    pub fn worker(&mut self) -> Result<WorkerStack, PythonError> {
        let frames = self.frames()?;
        let places = places(&frames);
        let mut stack = WorkerStack::default();
        let in_loop = worker_frame(&places);
        if let Some(frame) = in_loop.and_then(|index| frames.get(index)) {
            if !self.worker_loop.is_some_and(|known| known.is(frame)) {
                self.worker_loop = WorkerLoop::of(self.memory, frame)?;
            }
            stack.in_loop = self.worker_loop;
            let in_work = || self.worker_loop.and_then(|known| known.in_work());
            let before = in_work();
            for (name, object) in frame.locals(&self.memory)? {
                self.worker_local(&mut stack, name, object)?;
            }
            // The list of the samples is freed with the batch, so another object may be read in its place.
            if before.is_none() || in_work() != before {
                stack.batch_size = None;
            }
        }
        stack.phase = worker_phase(&places, stack.batch.is_some());
        // A forked worker still has its trainer's frames around its own.
        let own = process_frame(&places).unwrap_or(frames.len());
        stack.model = ModelUse::of(&frames[..own]);
        stack.elsewhere = in_loop.is_none() && stack.phase != WorkerPhase::Starting;
        stack.function = match stack.phase {
            WorkerPhase::Idle | WorkerPhase::Handover => None,
            _ => activity(&places[..in_loop.unwrap_or(places.len())]),
        };
        Ok(stack)
    }

    fn worker_local(
        &self,
        stack: &mut WorkerStack,
        name: &str,
        object: usize,
    ) -> Result<(), PythonError> {
        let number = || Ok::<_, PythonError>(u32::try_from(self.memory.integer(object)?.0).ok());
        match name {
            "worker_id" => stack.worker_id = number()?,
            "num_workers" => stack.num_workers = number()?,
            "persistent_workers" => stack.persistent_workers = number()?.map(|flag| flag != 0),
            "idx" => stack.batch = u64::try_from(self.memory.integer(object)?.0).ok(),
            "index" => {
                if matches!(&*self.memory.type_name_of(object)?, "list" | "tuple") {
                    stack.batch_size = u32::try_from(self.memory.len(object)?).ok();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the interpreter's lock (the GIL) was found, so that waits for it are known.
    pub fn has_gil(&self) -> bool {
        self.gil.is_some()
    }

    /// Whether a thread that sleeps on this futex waits for the interpreter's lock. False if the lock was not found.
    pub fn waits_for_gil(&self, futex: usize) -> bool {
        self.gil.is_some_and(|gil| gil.is_waited_for(futex))
    }

    /// Returns the function that a thread other than the main one runs while it holds the interpreter's lock. `None` if
    /// no other thread holds it now, or if that thread has no specific function. Costs about 10 us.
    pub fn gil_holder(&mut self) -> Result<Option<String>, PythonError> {
        let Some(gil) = self.gil else { return Ok(None) };
        let holder = gil.holder(&self.memory)?;
        let Some(thread) = holder.filter(|thread| Some(*thread) != self.walker.main()) else {
            return Ok(None);
        };
        let frames = self.walker.frames_of(&self.memory, thread)?;
        Ok(activity(&places(&frames)))
    }

    /// Returns the iterator at an address from [`main_thread`](Self::main_thread).
    pub fn iterator(&self, address: usize) -> Result<LoaderIterator, PythonError> {
        LoaderIterator::at(self.memory, address)
    }

    /// Returns every loader iterator that the main thread's frames hold, innermost first: in a local or a name of the
    /// script, under a `for`, in `enumerate`, in a generator (so `tqdm` too), or in a `DataLoader` with persistent
    /// workers. Costs about 0.5 ms. Does not find one that is only reachable through attributes of other objects.
    pub fn find_iterators(&mut self) -> Result<Vec<LoaderIterator>, PythonError> {
        let frames = self.frames()?;
        let mut reach = Reach {
            memory: self.memory,
            walker: &mut self.walker,
        };
        let found = reach.iterators(&frames).into_iter();
        Ok(found.filter_map(|at| self.iterator(at).ok()).collect())
    }

    /// Searches for the queues that the main thread's frames lead to, unless the one that feeds it is known. Costs some
    /// milliseconds.
    pub fn find_queues(&mut self) -> Result<(), PythonError> {
        if self.queues.has_no_source() {
            let frames = self.frames()?;
            self.queues.search(self.memory, &mut self.walker, &frames);
        }
        Ok(())
    }

    /// Returns what the threads other than the main one do. Costs about 30 us for each.
    ///
    /// # Errors
    /// Returns an error if the threads cannot be listed. A thread whose stack changes meanwhile is omitted.
    pub fn other_threads(&mut self) -> Result<Vec<OtherThread>, PythonError> {
        self.threads
            .poll(self.memory, &mut self.walker, &mut self.queues)
    }

    /// Returns the threads other than the main one that may be the trainer: those that train and, with `take`, those that
    /// take batches from PyTorch's loader. Costs about 30 us for each thread.
    ///
    /// # Errors
    /// Returns an error if the threads cannot be listed. A thread whose stack changes meanwhile is omitted.
    pub fn trainers(&mut self, take: bool) -> Result<Vec<TrainerCandidate>, PythonError> {
        (self.threads).trainers(self.memory, &mut self.walker, take)
    }

    /// Reads the thread whose state is at `thread` instead of the main one from now on; `None` = the main one again.
    pub fn follow(&mut self, thread: Option<usize>) {
        self.walker.follow(thread);
        self.sites = Sites::default();
        self.preparation = Preparation::default();
        self.elsewhere = RunElsewhere::default();
        self.flows.clear();
        self.queues = Queues::default();
        self.last = None;
    }

    /// Whether queues are known that may feed the main thread.
    pub fn has_queues(&self) -> bool {
        self.queues.has_any() || self.queues.has_shared()
    }

    /// Retries once, which succeeds for nearly every stack that changed while it was read. Stacks change most while
    /// Python runs, so omitting those polls would make waits look longer.
    fn frames(&mut self) -> Result<Vec<Frame>, PythonError> {
        match self.walker.main_frames(&self.memory) {
            Err(PythonError::Torn(_)) => self.walker.main_frames(&self.memory),
            poll => poll,
        }
    }
}

/// Checks the right to attach before anything large is read.
fn may_read(pid: Pid) -> Result<(), PythonError> {
    match std::fs::File::open(format!("/proc/{pid}/mem")) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(PythonError::NoRight(pid))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(PythonError::Gone(pid)),
        Err(error) => Err(PythonError::Attach {
            pid,
            reason: error.to_string(),
        }),
    }
}

/// Converts an error of py-spy, which is only a message.
fn attach_error(pid: Pid, reason: String) -> PythonError {
    if std::fs::read_link(format!("/proc/{pid}/exe")).is_err() {
        return PythonError::Gone(pid);
    }
    if reason.contains("find python version") {
        return PythonError::NotPython(pid);
    }
    match reason.split_once("Unsupported version of Python: ") {
        Some((_, version)) => PythonError::Unsupported {
            pid,
            version: version.to_owned(),
        },
        None => PythonError::Attach { pid, reason },
    }
}
