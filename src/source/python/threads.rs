//! The Python threads other than the main one: what each does, and which of them load what the main thread takes.
//!
//! Does not depend on time or on the kernel's counters of threads.

use std::collections::{BTreeSet, HashMap};

use super::PythonError;
use super::frame::{Frame, places};
use super::frames::Walker;
use super::instance::Attributes;
use super::layout::CELL;
use super::memory::Memory;
use super::model_use::ModelUse;
use super::naming::{activity, loader_frame};
use super::queues::{OtherStack, Queues};
use super::reach::Reach;
use super::shape::Shape;
use crate::loaders::{FULL_QUEUE, Meaning};
use crate::units::Pid;

/// Maximum number of stages of a pipeline, one after another.
const STAGES: usize = 4;
/// Maximum number of threads whose numbers are cached.
const REMEMBERED: usize = 1024;
/// Number of outermost functions of a thread that are searched for queues: for one of their module that they use, and
/// for one that the object in their first local holds.
const OWN: usize = 6;
/// Maximum number of attributes of that object that are searched.
const OF_INSTANCE: usize = 64;

/// What a thread other than the main one does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherThread {
    /// Its number in the process's own PID namespace.
    pub thread: Pid,
    /// Whether it holds a queue that leads to the main thread, or belongs to a pool.
    pub loads: bool,
    pub does: Does,
}

/// What a thread that loads does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    /// Waits for room in a queue that leads to the main thread, or for work.
    Idle,
    /// Waits for another thread; it is not known whether for room or for work.
    Waits,
    Works {
        /// What it runs; `None` if no function on its stack is specific.
        function: Option<String>,
        model: ModelUse,
    },
}

/// A thread other than the main one that may be the trainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainerCandidate {
    /// Address of its state.
    pub state: usize,
    /// Its number in the process's own PID namespace.
    pub thread: Pid,
    /// Whether it was seen doing what only training does; otherwise it has a loader of PyTorch.
    pub trains: bool,
    /// Whether it waits for room in a queue: it takes batches only to pass them on to another thread.
    pub hands_on: bool,
}

/// What is cached about the threads.
#[derive(Debug, Default)]
pub(super) struct ThreadCache {
    /// Attributes that hold the numbers of threads, by the addresses of their states and `threading.Thread` objects.
    numbers: HashMap<(usize, usize), Attributes>,
}

impl ThreadCache {
    /// Returns what the threads other than the main one do, and records in `queues` the queue that each of them waits
    /// for.
    ///
    /// # Errors
    /// Returns an error if the threads cannot be listed. A thread whose stack changes meanwhile is omitted.
    pub(super) fn poll(
        &mut self,
        memory: Memory,
        walker: &mut Walker,
        queues: &mut Queues,
    ) -> Result<Vec<OtherThread>, PythonError> {
        let mut all = Vec::new();
        for state in walker.others(&memory)? {
            if let Ok(frames) = walker.frames_of(&memory, state) {
                queues.poll_other(&memory, &frames);
                all.push(self.walked(memory, walker, state, frames));
            }
        }
        queues.poll_fillers(&memory, &all);
        let queues_to_main = queues_to_main(queues.feeding().collect(), &all);
        let threads = all.iter().filter_map(|walked| {
            let of_pool = walked.frames.iter().any(is_of_pool);
            Some(OtherThread {
                thread: walked.thread?,
                loads: of_pool || holds_any(walked, &queues_to_main),
                does: does(&memory, &walked.frames, &queues_to_main),
            })
        });
        Ok(threads.collect())
    }

    /// Returns the threads other than the main one that train or, with `take`, have an iterator of a loader of PyTorch.
    pub(super) fn trainers(
        &mut self,
        memory: Memory,
        walker: &mut Walker,
        take: bool,
    ) -> Result<Vec<TrainerCandidate>, PythonError> {
        let mut all = Vec::new();
        for state in walker.others(&memory)? {
            let frames = walker.frames_of(&memory, state).unwrap_or_default();
            let any = |is: fn(&Meaning) -> bool| frames.iter().any(|frame| is(&frame.code.meaning));
            let trains = any(|meaning| meaning.trains);
            let hands_on = any(|meaning| meaning.not_data == Some(FULL_QUEUE));
            let mut reach = Reach { memory, walker };
            let mut takes =
                || loader_frame(&places(&frames)).is_some() || !reach.iterators(&frames).is_empty();
            if (trains || (take && takes()))
                && let Ok(Some(thread)) = self.number(&memory, state, &frames)
            {
                all.push(TrainerCandidate {
                    state,
                    thread,
                    trains,
                    hands_on,
                });
            }
        }
        Ok(all)
    }

    fn walked(
        &mut self,
        memory: Memory,
        walker: &mut Walker,
        state: usize,
        frames: Vec<Frame>,
    ) -> OtherStack {
        let of_frame = |frame: &Frame| frame.local_objects(&memory).unwrap_or_default();
        let mut objects: Vec<usize> = frames.iter().flat_map(of_frame).collect();
        let outermost = || frames.iter().rev().take(OWN);
        // A function of a script may use a queue of its module.
        let of_module = outermost().filter_map(|frame| frame.used_globals(&memory).ok());
        objects.extend(of_module.flatten());
        // A subclass of `Thread` keeps its queue as an attribute.
        let own = outermost().filter_map(|frame| frame.first_local(&memory).ok()?);
        let own: BTreeSet<usize> = own.collect();
        for object in own {
            let held = memory
                .values(object, OF_INSTANCE)
                .unwrap_or_default()
                .into_iter();
            objects
                .extend(held.filter(|held| walker.shapes.of(&memory, *held) == Ok(Shape::Queue)));
        }
        let mut queues = Vec::new();
        for object in &mut objects {
            if walker.shapes.of(&memory, *object) == Ok(Shape::Cell) {
                *object = memory.word(object.wrapping_add(CELL)).unwrap_or(0);
            }
            if walker.shapes.of(&memory, *object) == Ok(Shape::Queue) {
                queues.push(*object);
            }
        }
        OtherStack {
            state,
            thread: self.number(&memory, state, &frames).unwrap_or(None),
            frames,
            objects,
            queues,
        }
    }

    /// Returns the number that `threading` keeps for a thread that it started.
    fn number(
        &mut self,
        memory: &Memory,
        state: usize,
        frames: &[Frame],
    ) -> Result<Option<Pid>, PythonError> {
        let is_start = |frame: &&Frame| {
            let place = &frame.code.place;
            place.function() == "_bootstrap" && place.file.ends_with("/threading.py")
        };
        let Some(start) = frames.last().filter(is_start) else {
            return Ok(None);
        };
        let Some(object) = start.first_local(memory)? else {
            return Ok(None);
        };
        let known = self.numbers.get(&(state, object));
        if !known.is_some_and(|known| memory.holds(known).unwrap_or(false)) {
            if self.numbers.len() >= REMEMBERED {
                self.numbers.clear();
            }
            self.numbers
                .insert((state, object), memory.attributes(object)?);
        }
        let number = memory.attribute(&self.numbers[&(state, object)], "_native_id")?;
        let number = number.map(|number| memory.integer(number)).transpose()?;
        Ok(number
            .and_then(|number| i32::try_from(number.0).ok())
            .map(Pid))
    }
}

fn holds_any(thread: &OtherStack, queues: &BTreeSet<usize>) -> bool {
    thread.objects.iter().any(|object| queues.contains(object))
}

/// Returns the queues that lead to the main thread: those that it takes from and, stage by stage, all queues held by
/// threads that hold one of these.
fn queues_to_main(feeding: BTreeSet<usize>, all: &[OtherStack]) -> BTreeSet<usize> {
    let mut queues = feeding;
    for _ in 0..STAGES {
        let before = queues.len();
        for walked in all {
            if holds_any(walked, &queues) {
                queues.extend(&walked.queues);
            }
        }
        if queues.len() == before {
            break;
        }
    }
    queues
}

/// Whether it is the loop of a thread of a `ThreadPoolExecutor` or a `ThreadPool`.
fn is_of_pool(frame: &Frame) -> bool {
    let place = &frame.code.place;
    match place.function() {
        "_worker" => place.file.ends_with("concurrent/futures/thread.py"),
        "worker" => place.file.ends_with("multiprocessing/pool.py"),
        _ => false,
    }
}

/// Returns what a thread does. `queues`: those that lead to the main thread.
fn does(memory: &Memory, frames: &[Frame], queues: &BTreeSet<usize>) -> Does {
    let at_queue = |frame: &Frame| {
        frame.code.place.file.ends_with("/queue.py")
            && matches!(frame.first_local(memory), Ok(Some(queue)) if queues.contains(&queue))
    };
    let Some(innermost) = frames.first() else {
        return Does::Waits;
    };
    if is_of_pool(innermost) || frames.iter().any(at_queue) {
        return Does::Idle;
    }
    let meaning = innermost.code.meaning;
    if meaning.waits || meaning.hands_over {
        return Does::Waits;
    }
    Does::Works {
        function: activity(&places(frames)),
        model: ModelUse::of(frames),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_lead_to_the_main_thread_stage_by_stage() {
        let thread = |objects: &[usize], queues: &[usize]| OtherStack {
            state: 0,
            thread: None,
            frames: vec![],
            objects: objects.to_vec(),
            queues: queues.to_vec(),
        };
        let all = [
            // Puts what is to be loaded into the first queue.
            thread(&[3, 70], &[3]),
            thread(&[2, 3, 71], &[2, 3]),
            thread(&[1, 2], &[1, 2]),
            // Writes a log, with its own queue.
            thread(&[9, 71], &[9]),
        ];
        assert_eq!(queues_to_main([1].into(), &all), [1, 2, 3].into());
        assert_eq!(queues_to_main([].into(), &all), [].into());
    }
}
