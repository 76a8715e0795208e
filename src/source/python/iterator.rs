//! The iterator of a PyTorch `DataLoader` in the memory of a trainer: its settings and its counters.
//!
//! Depends on the attribute names of `torch/utils/data/dataloader.py` (1.13 to 2.15), which torchdata's
//! `StatefulDataLoader` has, too. The caller finds the iterator. Each further reading takes only a few small reads, so
//! the counters can serve as the batch clock.

use super::PythonError;
use super::deque::Deque;
use super::instance::Attributes;
use super::memory::Memory;
use crate::sample::LoaderSettings;

/// Maximum number of reads, of which two in a row must agree.
const TRIES: usize = 4;

/// The iterator of one epoch, or of all epochs if the workers are persistent.
#[derive(Debug, Clone)]
pub struct LoaderIterator {
    memory: Memory,
    object: usize,
    attributes: Attributes,
    /// Type object of its counters.
    int_type: usize,
    /// Deque of the plain queue that the pin-memory thread fills.
    pinned: Option<usize>,
    settings: LoaderSettings,
    /// Address of the dataset.
    dataset: Option<usize>,
}

/// Counters of the iterator. All start at 0 with each epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IteratorState {
    /// Batches handed to the trainer: `_num_yielded`.
    pub yielded: u64,
    /// Pinned batches that are ready for the trainer. `None` without a pin-memory thread.
    pub pinned: Option<u32>,
}

/// Whether a class of this name is an iterator that can be read.
pub(super) fn is_iterator(type_name: &str) -> bool {
    matches!(
        type_name
            .strip_prefix("_Stateful")
            .or(type_name.strip_prefix('_')),
        Some("MultiProcessingDataLoaderIter" | "SingleProcessDataLoaderIter")
    )
}

impl LoaderIterator {
    pub(super) fn at(memory: Memory, object: usize) -> Result<Self, PythonError> {
        let type_name = memory.type_name_of(object)?;
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
            pinned,
            settings,
            dataset,
        };
        iterator.read()?;
        Ok(iterator)
    }

    /// Returns its address, which identifies the iterator within the process while it lives.
    pub fn address(&self) -> usize {
        self.object
    }

    /// Returns the settings that the iterator was made with; `start_method` only if the class of its workers shows it.
    pub fn settings(&self) -> &LoaderSettings {
        &self.settings
    }

    /// Returns the address of the dataset, which identifies the data that it goes through.
    pub fn dataset(&self) -> Option<usize> {
        self.dataset
    }

    /// Returns the trainer's descriptor of the pipe that its workers put batches into. `None` without workers.
    pub fn result_pipe(&self) -> Result<Option<i32>, PythonError> {
        let (memory, mut object) = (&self.memory, self.object);
        for name in ["_worker_result_queue", "_reader", "_handle"] {
            match memory.attribute_of(object, name)? {
                Some(held) => object = held,
                None => return Ok(None),
            }
        }
        Ok(i32::try_from(memory.integer(object)?.0).ok())
    }

    /// Whether the iterator now at its address goes through the same data: it is this one, or that of the next epoch.
    pub fn is_of_same_dataset(&self) -> bool {
        let now = self.memory.attribute(&self.attributes, "_dataset");
        now.is_ok_and(|dataset| dataset == self.dataset)
    }

    /// Reads the counters. Returns [`PythonError::IteratorGone`] once the iterator was dropped or its attributes moved;
    /// then it must be found again. The next epoch's iterator often gets the same memory; then reading continues and
    /// `yielded` starts again from 0.
    pub fn read(&self) -> Result<IteratorState, PythonError> {
        let gone = PythonError::IteratorGone(self.memory.pid);
        let references = self.memory.word(self.object)? & 0xffff_ffff;
        if references == 0 || !self.memory.holds(&self.attributes)? {
            return Err(gone);
        }
        let yielded = self.count("_num_yielded")?;
        let pinned = match self.pinned {
            Some(deque) => Some(small(self.memory.len(deque)?).ok_or(self.memory.torn())?),
            None => None,
        };
        Ok(IteratorState { yielded, pinned })
    }

    /// Returns the number that an attribute holds. Adding to it makes another object, and the old one's memory is used
    /// again at once, so two reads must agree.
    fn count(&self, name: &str) -> Result<u64, PythonError> {
        let mut last = None;
        for _ in 0..TRIES {
            let object = self.memory.attribute(&self.attributes, name)?;
            let object = object.ok_or(self.memory.torn())?;
            let number = self.memory.integer(object).ok();
            let number = number.filter(|(_, of_type)| *of_type == self.int_type);
            let read = number.map(|(value, _)| (object, value));
            if let (Some((_, value)), true) = (read, read == last) {
                return u64::try_from(value).map_err(|_| self.memory.torn());
            }
            last = read;
        }
        Err(self.memory.torn())
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
        // An attribute that is `None` is not a number.
        if memory.type_name_of(object)? == "NoneType" {
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

/// Returns the batch sampler's `batch_size`; a custom sampler need not have one.
fn batch_size(memory: &Memory, attributes: &Attributes) -> Result<Option<u32>, PythonError> {
    let Some(sampler) = memory.attribute(attributes, "_index_sampler")? else {
        return Ok(None);
    };
    if memory.type_name_of(sampler)? == "DataLoader" {
        return Ok(None);
    }
    let Some(size) = memory.attribute_of(sampler, "batch_size")? else {
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
    // A list points to its items, a tuple contains them.
    let first = memory.word(memory.word(workers.wrapping_add(24))?)?;
    Ok(start_method_of(&memory.type_name_of(first)?).map(str::to_owned))
}

/// `multiprocessing` has one process class per start method; the plain class uses a default that the program may have
/// set.
fn start_method_of(process_class: &str) -> Option<&'static str> {
    match process_class {
        "ForkProcess" => Some("fork"),
        "SpawnProcess" => Some("spawn"),
        "ForkServerProcess" => Some("forkserver"),
        _ => None,
    }
}

/// Returns the deque of `_data_queue`, which is a `queue.Queue` if there is a pin-memory thread.
fn pinned_deque(memory: &Memory, attributes: &Attributes) -> Result<Option<usize>, PythonError> {
    let Some(queue) = memory.attribute(attributes, "_data_queue")? else {
        return Ok(None);
    };
    let Some(deque) = memory.attribute_of(queue, "queue")? else {
        return Ok(None);
    };
    Ok(Deque::at(*memory, deque)?.map(|deque| deque.at))
}
