//! A PyTorch `DataLoader`'s iterator in the memory of a trainer: its settings and its counters.
//!
//! Knows the attribute names of `torch/utils/data/dataloader.py` (1.13 to 2.15). Finding it is the
//! caller's; reading it again costs a handful of small reads, so it can serve as the batch clock.

use super::PythonError;
use super::instance::Attributes;
use super::memory::Memory;
use crate::sample::LoaderSettings;

/// The iterator of one epoch, or of all where the workers are persistent.
#[derive(Debug, Clone)]
pub struct LoaderIterator {
    memory: Memory,
    object: usize,
    attributes: Attributes,
    /// The type of its counters.
    int_type: usize,
    /// Has worker processes; else the trainer loads by itself.
    has_workers: bool,
    /// The plain queue that the pin-memory thread fills: its deque.
    pinned: Option<usize>,
    settings: LoaderSettings,
    /// Address of the dataset.
    dataset: Option<usize>,
}

/// What the iterator counts. All start at 0 with each epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IteratorState {
    /// Batches handed to the trainer: `_num_yielded`.
    pub yielded: u64,
    /// The rest is `None` for a loader without workers.
    pub workers: Option<WorkerCounts>,
    /// Pinned batches that wait for the trainer. `None` without a pin-memory thread.
    pub pinned: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Number of the batch that the trainer takes next: `_rcvd_idx`.
    pub next: u64,
    /// Batches that were given out to the workers: `_send_idx`.
    pub sent: u64,
    /// Given out and not yet received by the trainer, parked ones excepted: `_tasks_outstanding`.
    pub outstanding: u64,
}

/// Whether a class of this name is an iterator that can be read.
pub(super) fn is_iterator(type_name: &str) -> bool {
    matches!(
        type_name,
        "_MultiProcessingDataLoaderIter" | "_SingleProcessDataLoaderIter"
    )
}

impl LoaderIterator {
    pub(super) fn at(memory: Memory, object: usize) -> Result<Self, PythonError> {
        let type_name = memory.type_name(memory.type_of(object)?)?;
        if !is_iterator(&type_name) {
            return Err(PythonError::IteratorGone(memory.pid));
        }
        let attributes = memory.attributes(object)?;
        let int_type = match memory.attribute(&attributes, "_num_yielded")? {
            Some(count) => memory.integer(count)?.1,
            None => return Err(memory.torn()),
        };
        let pinned = pinned_deque(&memory, &attributes).unwrap_or_default();
        let settings = read_settings(&memory, &attributes)?;
        let dataset = memory
            .attribute(&attributes, "_dataset")
            .unwrap_or_default();
        let iterator = Self {
            memory,
            object,
            attributes,
            int_type,
            has_workers: type_name.starts_with("_Multi"),
            pinned,
            settings,
            dataset,
        };
        iterator.read()?;
        Ok(iterator)
    }

    /// What tells this iterator from another of the same process while both live.
    pub fn address(&self) -> usize {
        self.object
    }

    /// As the iterator was made; `start_method` only where the class of its workers tells it.
    pub fn settings(&self) -> &LoaderSettings {
        &self.settings
    }

    /// What tells the data that it goes through from that of another iterator: the address of the dataset.
    pub fn dataset(&self) -> Option<usize> {
        self.dataset
    }

    /// The counters now. [`PythonError::IteratorGone`] once the iterator was dropped or its attributes
    /// moved: look for it again. The next epoch's iterator often gets the same memory; then reading
    /// goes on and `yielded` starts again from 0.
    pub fn read(&self) -> Result<IteratorState, PythonError> {
        let gone = PythonError::IteratorGone(self.memory.pid);
        let references = self.memory.word(self.object)? & 0xffff_ffff;
        if references == 0 || !self.memory.holds(&self.attributes)? {
            return Err(gone);
        }
        let yielded = self.count("_num_yielded")?;
        let workers = if self.has_workers {
            let next = self.count("_rcvd_idx")?;
            let sent = self.count("_send_idx")?;
            let outstanding = self.count("_tasks_outstanding")?;
            // The trainer runs on between two reads, but never by this much.
            if next > sent + 1 || outstanding > sent + 1 {
                return Err(self.memory.torn());
            }
            Some(WorkerCounts {
                next,
                sent,
                outstanding,
            })
        } else {
            None
        };
        let pinned = match self.pinned {
            Some(deque) => Some(small(self.memory.len(deque)?).ok_or(self.memory.torn())?),
            None => None,
        };
        Ok(IteratorState {
            yielded,
            workers,
            pinned,
        })
    }

    /// Batches that were received ahead of their turn and wait in the trainer; 0 without workers.
    /// Costs a read per batch in flight.
    #[cfg(feature = "testing")]
    pub fn parked(&self) -> Result<u32, PythonError> {
        let Some(tasks) = self.memory.attribute(&self.attributes, "_task_info")? else {
            return Ok(0);
        };
        let mut parked = 0;
        for (_, slot) in self.memory.entries(tasks)? {
            let task = self.memory.word(slot)?;
            // (worker,) until the batch has come, then (worker, batch).
            parked += u32::from(task != 0 && self.memory.len(task)? == 2);
        }
        Ok(parked)
    }

    fn count(&self, name: &str) -> Result<u64, PythonError> {
        let object = self.memory.attribute(&self.attributes, name)?;
        let (value, of_type) = self.memory.integer(object.ok_or(self.memory.torn())?)?;
        if of_type != self.int_type {
            return Err(self.memory.torn());
        }
        u64::try_from(value).map_err(|_| self.memory.torn())
    }
}

fn small(number: usize) -> Option<u32> {
    u32::try_from(number)
        .ok()
        .filter(|number| *number < 1 << 20)
}

fn read_settings(memory: &Memory, attributes: &Attributes) -> Result<LoaderSettings, PythonError> {
    let number = |name: &str| -> Result<Option<u32>, PythonError> {
        let Some(object) = memory.attribute(attributes, name)? else {
            return Ok(None);
        };
        // An attribute that is `None` is no number.
        if memory.type_name(memory.type_of(object)?)? == "NoneType" {
            return Ok(None);
        }
        Ok(u32::try_from(memory.integer(object)?.0).ok())
    };
    let flag = |name: &str| Ok::<_, PythonError>(number(name)?.map(|flag| flag != 0));
    Ok(LoaderSettings {
        num_workers: number("_num_workers")?,
        prefetch_factor: number("_prefetch_factor")?,
        pin_memory: flag("_pin_memory")?,
        persistent_workers: flag("_persistent_workers")?,
        in_order: flag("_in_order")?,
        start_method: start_method(memory, attributes).unwrap_or_default(),
        batch_size: batch_size(memory, attributes).unwrap_or_default(),
    })
}

/// The batch sampler's `batch_size`; a sampler of one's own need not have one.
fn batch_size(memory: &Memory, attributes: &Attributes) -> Result<Option<u32>, PythonError> {
    let Some(sampler) = memory.attribute(attributes, "_index_sampler")? else {
        return Ok(None);
    };
    if memory.type_name(memory.type_of(sampler)?)? == "DataLoader" {
        return Ok(None);
    }
    let Some(size) = memory.attribute(&memory.attributes(sampler)?, "batch_size")? else {
        return Ok(None);
    };
    let (size, of_type) = memory.integer(size)?;
    let is_int = memory.type_name(of_type)? == "int";
    Ok(u32::try_from(size).ok().filter(|_| is_int))
}

fn start_method(memory: &Memory, attributes: &Attributes) -> Result<Option<String>, PythonError> {
    let Some(workers) = memory.attribute(attributes, "_workers")? else {
        return Ok(None);
    };
    // A list points to its items, a tuple holds them.
    let first = memory.word(memory.word(workers.wrapping_add(24))?)?;
    Ok(start_method_of(&memory.type_name(memory.type_of(first)?)?).map(str::to_owned))
}

/// `multiprocessing` has a class of process per start method; the plain one follows a default that
/// the program may have set.
fn start_method_of(process_class: &str) -> Option<&'static str> {
    match process_class {
        "ForkProcess" => Some("fork"),
        "SpawnProcess" => Some("spawn"),
        "ForkServerProcess" => Some("forkserver"),
        _ => None,
    }
}

/// With a pin-memory thread `_data_queue` is a `queue.Queue`: the deque inside it.
fn pinned_deque(memory: &Memory, attributes: &Attributes) -> Result<Option<usize>, PythonError> {
    let Some(queue) = memory.attribute(attributes, "_data_queue")? else {
        return Ok(None);
    };
    let Some(deque) = memory.attribute(&memory.attributes(queue)?, "queue")? else {
        return Ok(None);
    };
    let is_deque = memory.type_name(memory.type_of(deque)?)? == "collections.deque";
    Ok(is_deque.then_some(deque))
}
