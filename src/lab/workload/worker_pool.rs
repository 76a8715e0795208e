//! The trainer's side of the loader: starts the workers, requests batches and returns them in turn.
//!
//! Like common loaders, it keeps both ends of the pipe for results, waits for results in `poll`, and checks its workers
//! if nothing arrives for long. Does not depend on devices.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::batch_memory::{BatchMemory, NO_MEMORY, SMALLER};
use super::child::MORE_PROCESSES;
use super::clock::now;
use super::message::{BatchMessage, MESSAGE};
use super::scheduler::Scheduler;
use super::settings::{JobSettings, WorkerLaunch, word};
use crate::error::{Explain as _, Hinted};

/// Time between two checks of the workers, while no batch arrives and while some do.
const IDLE_CHECK_INTERVAL: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};
const PAUSE: u64 = 1_000_000_000;
const NO_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// Batches that the trainer may hold besides those that are under way or ready.
const HELD: u32 = 2;
/// The error if a pipe fails, and its hint.
pub(super) const PIPE: &str = "the pipe to a loader worker failed";
pub(super) const KILLED: &str = "check `dmesg` for an out-of-memory kill";

#[derive(Debug)]
pub(super) struct WorkerPool {
    memory: BatchMemory,
    scheduler: Scheduler,
    workers: Vec<WorkerProcess>,
    /// When to check the workers next.
    next_check: u64,
    results: PipeReader,
    /// Kept open as in common loaders, so that the end of a worker does not close the pipe.
    _results: PipeWriter,
}

#[derive(Debug)]
struct WorkerProcess {
    child: Child,
    requests: PipeWriter,
}

impl WorkerPool {
    /// Starts the workers and requests the first batches.
    pub(super) fn start(settings: &JobSettings) -> Result<Self, Hinted> {
        let capacity = settings.capacity();
        let places = capacity.saturating_add(HELD);
        let memory = BatchMemory::create(places, settings.batch_bytes());
        let memory = memory.explain(NO_MEMORY, SMALLER)?;
        let pool = Self::start_workers(settings, memory, places);
        let mut pool = pool.explain("cannot start a process", MORE_PROCESSES)?;
        for _ in 0..capacity {
            let request = pool.scheduler.request();
            pool.send(request)?;
        }
        Ok(pool)
    }

    fn start_workers(settings: &JobSettings, memory: BatchMemory, places: u32) -> io::Result<Self> {
        let (results, sender) = pipe()?;
        let mut pool = Self {
            scheduler: Scheduler::new(settings.in_order, settings.workers, places),
            workers: vec![],
            next_check: 0,
            results,
            memory,
            _results: sender.try_clone()?,
        };
        for worker in 0..settings.workers {
            let launch = WorkerLaunch {
                settings: settings.clone(),
                worker,
                parent: i32::try_from(std::process::id()).unwrap_or_default(),
                slots: pool.memory.descriptor(),
            };
            let worker = WorkerProcess::start(&launch, sender.try_clone()?)?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Returns the number of batches that are ready.
    pub(super) fn ready(&self) -> u32 {
        let unread = rustix::io::ioctl_fionread(&self.results).unwrap_or_default();
        let ready = unread / MESSAGE as u64 + self.scheduler.waiting() as u64;
        u32::try_from(ready).unwrap_or(u32::MAX)
    }

    /// Returns the next batch. `None` if it is not ready and `wait` is not set.
    pub(super) fn next(&mut self, wait: bool) -> Result<Option<BatchMessage>, Hinted> {
        let patience = if wait { IDLE_CHECK_INTERVAL } else { NO_WAIT };
        loop {
            if let Some(ready) = self.take()? {
                return Ok(Some(ready));
            }
            while !self.readable(&patience)? {
                if !wait {
                    return Ok(None);
                }
                self.check_workers()?;
            }
            self.receive()?;
        }
    }

    /// Returns the bytes of a batch, until it is released.
    pub(super) fn batch(&self, ready: BatchMessage) -> &[u8] {
        self.memory.batch(ready.slot)
    }

    pub(super) fn release(&mut self, ready: BatchMessage) {
        self.scheduler.release(ready.slot);
    }

    fn take(&mut self) -> Result<Option<BatchMessage>, Hinted> {
        // Checked here, too: if batches come in any order, the other workers would hide that one has ended.
        let now = now();
        if now >= self.next_check {
            self.next_check = now + PAUSE;
            self.check_workers()?;
        }
        let Some((ready, request)) = self.scheduler.take() else {
            return Ok(None);
        };
        self.send(request)?;
        Ok(Some(ready))
    }

    fn send(&mut self, request: Option<BatchMessage>) -> Result<(), Hinted> {
        if let Some(request) = request
            && let Some(worker) = self.workers.get_mut(request.worker as usize)
            && worker.requests.write_all(&request.bytes()).is_err()
        {
            // The pipe is closed only if the worker has ended.
            let how = worker.child.wait();
            return Err(ended(request.worker, how.map(Some)));
        }
        Ok(())
    }

    fn readable(&self, patience: &Timespec) -> Result<bool, Hinted> {
        let mut ends = [PollFd::new(&self.results, PollFlags::IN)];
        match poll(&mut ends, Some(patience)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error).explain(PIPE, KILLED),
        }
    }

    /// Reads one message: those not needed yet stay in the pipe, where a monitor can count them.
    fn receive(&mut self) -> Result<(), Hinted> {
        let mut bytes = [0; MESSAGE];
        let read = self.results.read_exact(&mut bytes);
        read.explain(PIPE, KILLED)?;
        self.scheduler.arrived(BatchMessage::parse(bytes));
        Ok(())
    }

    fn check_workers(&mut self) -> Result<(), Hinted> {
        for (number, worker) in (0..).zip(&mut self.workers) {
            let how = worker.child.try_wait();
            if !matches!(how, Ok(None)) {
                return Err(ended(number, how));
            }
        }
        Ok(())
    }
}

fn ended(worker: u32, how: io::Result<Option<ExitStatus>>) -> Hinted {
    let how = match how {
        Ok(Some(status)) => status.to_string(),
        Ok(None) => "the process is gone".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("loader worker {worker} ended unexpectedly: {how}");
    Hinted::new(message, KILLED)
}

impl WorkerProcess {
    fn start(launch: &WorkerLaunch, results: PipeWriter) -> io::Result<Self> {
        let (read, requests) = pipe()?;
        let child = Command::new("/proc/self/exe")
            .arg0("pipetop")
            .args(["builtin-worker", &word(launch)])
            .stdin(Stdio::from(read))
            .stdout(Stdio::from(results))
            .spawn()?;
        Ok(Self { child, requests })
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // Killed, because workers have nothing to lose, and finishing a batch can take long.
        for worker in &mut self.workers {
            let _ = worker.child.kill();
        }
        for worker in &mut self.workers {
            let _ = worker.child.wait();
        }
    }
}
