//! The threads that run Python beside the main one: what each does, and which of them load what the main thread takes.
//!
//! Knows stacks and queues, nothing of time, and not which of the kernel's counters are whose.

use std::collections::{BTreeSet, HashMap};

use super::PythonError;
use super::frames::{Frame, Walker};
use super::instance::Attributes;
use super::memory::Memory;
use super::naming::{Place, activity, loader_frame};
use super::queues::Queues;
use super::reach::CELL;
use super::shape::Shape;
use crate::units::Pid;

/// Stages of a pipeline, one behind another.
const STAGES: usize = 4;
/// Threads whose numbers are remembered.
const REMEMBERED: usize = 1024;
/// Outermost functions of a thread whose first local may be an object that holds a queue, and attributes of it.
const OWN: usize = 6;
const OF_INSTANCE: usize = 64;

/// What a thread beside the main one does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherThread {
    /// Its number, as its own namespace counts.
    pub thread: Pid,
    /// It holds a queue that leads to the main thread, or is one of a pool.
    pub loads: bool,
    pub does: Does,
}

/// What a thread that loads does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    /// It waits until there is room in a queue that leads to the main thread, or work for it.
    Idle,
    /// It waits for another thread. For what cannot be told: room, or what is to be loaded.
    Waits,
    /// In this function, where one tells something.
    Works(Option<String>),
}

/// A thread beside the main one that may be the trainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trainer {
    /// Where its state lies.
    pub state: usize,
    /// Its number, as its own namespace counts.
    pub thread: Pid,
    /// It was seen in what only training does; else it takes batches from a loader of PyTorch's.
    pub trains: bool,
}

/// What was found out of the threads before.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Where the numbers of threads lie, by the states and the `threading.Thread` objects of them.
    numbers: HashMap<(usize, usize), Attributes>,
}

/// A thread's stack, and the objects of its locals.
struct OtherStack {
    thread: Option<Pid>,
    frames: Vec<Frame>,
    objects: Vec<usize>,
    /// Those that are queues.
    queues: Vec<usize>,
}

impl Threads {
    /// What the threads beside the main one do; the queues learn which of them such a thread waits for.
    ///
    /// # Errors
    /// Where the threads cannot be listed; one whose stack moves meanwhile is left out.
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
        let on_the_way = on_the_way(queues.feeding().collect(), &all);
        let threads = all.iter().filter_map(|walked| {
            let of_pool = walked.frames.iter().any(is_of_pool);
            Some(OtherThread {
                thread: walked.thread?,
                loads: of_pool || walked.holds_any(&on_the_way),
                does: does(&memory, &walked.frames, &on_the_way),
            })
        });
        Ok(threads.collect())
    }

    /// The threads beside the main one that train, or take batches from a loader of PyTorch's: where the state of each
    /// lies, its number, and whether it was seen to train.
    pub(super) fn trainers(
        &mut self,
        memory: Memory,
        walker: &mut Walker,
    ) -> Result<Vec<Trainer>, PythonError> {
        let mut all = Vec::new();
        for state in walker.others(&memory)? {
            let frames = walker.frames_of(&memory, state).unwrap_or_default();
            let trains = frames.iter().any(|frame| frame.code.meaning.trains);
            let loads = loader_frame(&places_of(&frames)).is_some();
            if (trains || loads)
                && let Ok(Some(thread)) = self.number(&memory, state, &frames)
            {
                all.push(Trainer {
                    state,
                    thread,
                    trains,
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
        // A subclass of `Thread` keeps its queue as an attribute.
        let own = frames
            .iter()
            .rev()
            .take(OWN)
            .filter_map(|frame| frame.first_local(&memory).ok()?);
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
            thread: self.number(&memory, state, &frames).unwrap_or(None),
            frames,
            objects,
            queues,
        }
    }

    /// The number that `threading` keeps of a thread that it started.
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

impl OtherStack {
    fn holds_any(&self, queues: &BTreeSet<usize>) -> bool {
        self.objects.iter().any(|object| queues.contains(object))
    }
}

/// The queues that lead to the main thread: those that it takes from, and what the threads that hold these hold, stage by
/// stage.
fn on_the_way(feeding: BTreeSet<usize>, all: &[OtherStack]) -> BTreeSet<usize> {
    let mut queues = feeding;
    for _ in 0..STAGES {
        let before = queues.len();
        for walked in all {
            if walked.holds_any(&queues) {
                queues.extend(&walked.queues);
            }
        }
        if queues.len() == before {
            break;
        }
    }
    queues
}

/// It runs what was handed to a `ThreadPoolExecutor`.
fn is_of_pool(frame: &Frame) -> bool {
    let place = &frame.code.place;
    place.function() == "_worker" && place.file.ends_with("concurrent/futures/thread.py")
}

/// What a thread does whose work leads to these queues.
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
    Does::Works(activity(&places_of(frames)))
}

fn places_of(frames: &[Frame]) -> Vec<&Place> {
    frames.iter().map(|frame| &frame.code.place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_lead_to_the_main_thread_stage_by_stage() {
        let thread = |objects: &[usize], queues: &[usize]| OtherStack {
            thread: None,
            frames: vec![],
            objects: objects.to_vec(),
            queues: queues.to_vec(),
        };
        let all = [
            // Reads what is to be loaded into the first queue.
            thread(&[3, 70], &[3]),
            thread(&[2, 3, 71], &[2, 3]),
            thread(&[1, 2], &[1, 2]),
            // Writes a log, by a queue of its own.
            thread(&[9, 71], &[9]),
        ];
        assert_eq!(on_the_way([1].into(), &all), [1, 2, 3].into());
        assert_eq!(on_the_way([].into(), &all), [].into());
    }
}
