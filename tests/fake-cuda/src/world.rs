//! The simulated GPU: its memory, its engines, its streams and their clocks. Times are in nanoseconds since the first
//! call.
#![expect(clippy::disallowed_methods, reason = "a device has a clock of its own")]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::script::Script;

/// Result codes of `cuda.h`.
pub(crate) const INVALID_VALUE: i32 = 1;
pub(crate) const INVALID_HANDLE: i32 = 400;
pub(crate) const NOT_FOUND: i32 = 500;
pub(crate) const NOT_READY: i32 = 600;
pub(crate) const ILLEGAL_ADDRESS: i32 = 700;
pub(crate) const INVALID_PTX: i32 = 218;

/// Bytes per nanosecond.
const PINNED: u64 = 25;
const PAGEABLE: u64 = 6;
const MEMORY: u64 = 3000;

/// The largest copy or kernel, in bytes, that is really copied or summed.
const COPIED: usize = 1 << 16;

pub(crate) type Answer = Result<(), i32>;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) script: Script,
    pub(crate) context: usize,
    /// When the queued work of each stream ends.
    pub(crate) streams: HashMap<usize, u64>,
    /// When each event happens; `None` = never recorded.
    pub(crate) events: HashMap<usize, Option<u64>>,
    /// The functions of each module, by name.
    pub(crate) modules: HashMap<usize, String>,
    pub(crate) functions: HashMap<usize, Kernel>,
    pub(crate) device: BTreeMap<u64, Vec<u8>>,
    pub(crate) pinned: BTreeMap<usize, Vec<u8>>,
    copy_engine: u64,
    compute_engine: u64,
    /// The time from which the context is unusable, and the error code.
    pub(crate) broken: Option<(u64, i32)>,
    handles: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Touch,
    Spin,
}

impl World {
    pub(crate) fn lock() -> MutexGuard<'static, Self> {
        static WORLD: OnceLock<Mutex<World>> = OnceLock::new();
        let world = WORLD.get_or_init(|| Mutex::new(Self::new()));
        world.lock().expect("no call panics")
    }

    fn new() -> Self {
        Self {
            script: Script::read(),
            context: 0,
            streams: HashMap::from([(0, 0)]),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            device: BTreeMap::new(),
            pinned: BTreeMap::new(),
            copy_engine: 0,
            compute_engine: 0,
            broken: None,
            handles: 0,
        }
    }

    /// Logs the call, and returns the error of the script or of a broken GPU.
    pub(crate) fn enter(&mut self, symbol: &str) -> Answer {
        self.script.log(symbol);
        if let Some(code) = self.script.fault(symbol) {
            return Err(code);
        }
        self.working()
    }

    pub(crate) fn working(&self) -> Answer {
        match self.broken {
            Some((since, code)) if now() >= since => Err(code),
            _ => Ok(()),
        }
    }

    pub(crate) fn handle(&mut self) -> usize {
        self.handles += 0x10;
        self.handles
    }

    pub(crate) fn stream(&mut self, stream: usize) -> Result<&mut u64, i32> {
        self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)
    }

    /// Returns these bytes of the device's memory.
    pub(crate) fn memory(&mut self, at: u64, bytes: usize) -> Option<&mut [u8]> {
        let (start, memory) = self.device.range_mut(..=at).next_back()?;
        let from = usize::try_from(at - start).ok()?;
        memory.get_mut(from..from.checked_add(bytes)?)
    }

    /// Queues a copy and returns the time at which the caller may go on; 0 = at once.
    pub(crate) fn copy(&mut self, target: u64, source: &[u8], stream: usize) -> Result<u64, i32> {
        let memory = self.memory(target, source.len()).ok_or(INVALID_VALUE)?;
        if source.len() <= COPIED {
            memory.copy_from_slice(source);
        }
        let address = source.as_ptr() as usize;
        let pinned = self.pinned.range(..=address).next_back();
        let pinned = pinned.is_some_and(|(start, memory)| address < start + memory.len());
        let takes = source.len() as u64 / if pinned { PINNED } else { PAGEABLE };
        let engine = self.copy_engine;
        let free = self.stream(stream)?;
        *free = now().max(*free).max(engine) + takes;
        let end = *free;
        self.copy_engine = end;
        Ok(if pinned { 0 } else { end })
    }

    /// Queues a kernel.
    pub(crate) fn launch(
        &mut self,
        kernel: Kernel,
        first: u64,
        second: u64,
        stream: usize,
    ) -> Answer {
        let mut takes = self.script.late;
        let mut fails = self.script.fault("kernel");
        match kernel {
            Kernel::Spin => takes += first,
            Kernel::Touch => {
                let bytes = second * 16;
                takes += bytes / MEMORY;
                let batch = usize::try_from(bytes)
                    .ok()
                    .and_then(|bytes| self.memory(first, bytes));
                match batch {
                    Some(batch) if batch.len() <= COPIED => {
                        let sum: u64 = batch.iter().map(|byte| u64::from(*byte)).sum();
                        self.script.log(&format!("touch bytes={bytes} sum={sum}"));
                    }
                    Some(_) => {}
                    None => fails = Some(ILLEGAL_ADDRESS),
                }
            }
        }
        let engine = self.compute_engine;
        let free = self.stream(stream)?;
        *free = now().max(*free).max(engine) + takes;
        let end = *free;
        self.compute_engine = end;
        if let Some(code) = fails {
            self.broken.get_or_insert((end, code));
        }
        Ok(())
    }

    /// Returns what the user of the GPU did not free.
    pub(crate) fn left(&self) -> String {
        format!(
            "left streams={} events={} modules={} device={} pinned={}",
            self.streams.len() - 1,
            self.events.len(),
            self.modules.len(),
            self.device.len(),
            self.pinned.len(),
        )
    }
}

/// Sleeps until that time, and returns whether the GPU still works then.
pub(crate) fn wait(time: u64) -> Answer {
    match stepped() {
        Some(clock) => drop(clock.fetch_max(time, Ordering::Relaxed)),
        None => thread::sleep(Duration::from_nanos(time.saturating_sub(now()))),
    }
    World::lock().working()
}

pub(crate) fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    if let Some(clock) = stepped() {
        return clock.load(Ordering::Relaxed);
    }
    let elapsed = START.get_or_init(Instant::now).elapsed();
    // Never 0, which means that nothing was queued yet.
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX) + 1
}

/// Returns the stepped clock, which advances only in calls that wait. `None` = the machine's time applies.
fn stepped() -> Option<&'static AtomicU64> {
    static CLOCK: OnceLock<Option<AtomicU64>> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| Script::steps_the_clock().then(|| AtomicU64::new(1)));
    clock.as_ref()
}
