//! Random memory: what a freed object may look like, or what a hostile process shows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use support::fuzz::{self, Rng};

use super::gil::Gil;
use super::instruction::StackUse;
use super::layout::{BYTES, BytecodeLayout, Layout};
use super::memory::WORD;
use super::shape::Shapes;
use super::threads::ThreadCache;
use super::*;

/// Names of types whose objects are followed.
const NAMES: [&str; 13] = [
    "code",
    "generator",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "DataLoader",
    "enumerate",
    "itertools.islice",
    "collections.deque",
    "Queue",
    "tuple",
    "int",
    "str",
    "",
];
const CELLS: usize = 512;
/// Words per type object. Types are at the beginning of the heap; some valid objects follow.
const TYPE: usize = 8;
const TEXT: usize = NAMES.len() * TYPE;
const TUPLE: usize = TEXT + 16;
const CODE: usize = TUPLE + 16;
const FRAME: usize = CODE + 32;
const BYTES_OBJECT: usize = FRAME + 16;
const REST: usize = BYTES_OBJECT + 16;
/// Code units: as many as there is room for.
const UNITS: usize = 24;

/// At least [`CELLS`] words: pointers to each other, to types and to whole objects, null, or small numbers.
struct Heap(Vec<AtomicUsize>);

impl Heap {
    fn new(layout: &Layout, cells: usize, rng: &mut Rng) -> Self {
        let heap = Self((0..cells).map(|_| AtomicUsize::new(0)).collect());
        (0..CELLS).for_each(|_| heap.write(REST, rng));
        for (index, name) in names().iter().enumerate() {
            heap.put(index * TYPE, 24, name.as_ptr() as usize);
        }
        // A `str` of three one-byte characters.
        for (offset, word) in [
            (8, heap.of_type("str")),
            (16, 3),
            (32, 0x64),
            (layout.ascii_header, 0x0078_6469),
        ] {
            heap.put(TEXT, offset, word);
        }
        for (offset, word) in [(8, heap.at(0)), (16, 4)] {
            heap.put(TUPLE, offset, word);
        }
        for item in 0..4 {
            heap.put(TUPLE, layout.tuple_items + item * WORD, heap.at(TEXT));
        }
        let code = &layout.code;
        heap.put(CODE, 8, heap.of_type("code"));
        for offset in [
            Some(code.filename),
            Some(code.filename + WORD),
            code.qualname,
        ]
        .into_iter()
        .flatten()
        {
            heap.put(CODE, offset, heap.at(TEXT));
        }
        for tuple in code.more_locals.into_iter().flatten().chain([code.names]) {
            heap.put(CODE, tuple, heap.at(TUPLE));
        }
        for count in [code.locals, code.stack] {
            heap.put(CODE, count, 4);
        }
        heap.put(CODE, code.globals, heap.at(TUPLE));
        let frame = &layout.frame;
        heap.put(FRAME, frame.code, heap.at(CODE));
        heap.put_bytecode(layout, rng);
        heap.put(FRAME, frame.previous, heap.any(rng));
        heap
    }

    /// Gives the code object some instructions, most of them calls, and sets the frame to one of them.
    fn put_bytecode(&self, layout: &Layout, rng: &mut Rng) {
        let effects = layout.opcodes.instructions.iter().enumerate();
        let known =
            effects.filter(|(_, one)| !matches!(one.effect, StackUse::Other | StackUse::Hidden));
        let known: Vec<usize> = known.map(|(opcode, _)| opcode).collect();
        let mut unit = || known[rng.usize(0..known.len())] | rng.usize(0..4) << 8;
        let mut units = || (0..4).fold(0, |word, _| word << 16 | unit());
        let (object, begin, length) = match layout.bytecode {
            BytecodeLayout::Inside(at) => (CODE, at, UNITS),
            BytecodeLayout::Pointed { bytes, .. } => {
                self.put(CODE, bytes, self.at(BYTES_OBJECT));
                (BYTES_OBJECT, BYTES, 2 * UNITS)
            }
        };
        self.put(object, 16, length);
        (0..UNITS / 4).for_each(|word| self.put(object, begin + word * WORD, units()));
        let last = rng.usize(0..UNITS);
        match (layout.bytecode, layout.frame.instruction) {
            (
                BytecodeLayout::Pointed {
                    last: at, counts, ..
                },
                _,
            ) => {
                self.put(FRAME, at, last * 2 / counts);
            }
            (BytecodeLayout::Inside(begin), Some(instruction)) => {
                self.put(FRAME, instruction, self.at(CODE) + begin + 2 * last);
            }
            (BytecodeLayout::Inside(_), None) => {}
        }
    }

    /// Damages the valid objects in most heaps.
    fn hurt(self, rng: &mut Rng) -> Self {
        (0..rng.usize(0..4)).for_each(|_| self.write(TEXT, rng));
        self
    }

    fn at(&self, index: usize) -> usize {
        self.0.as_ptr() as usize + index * WORD
    }

    fn of_type(&self, name: &str) -> usize {
        let index = NAMES.iter().position(|known| *known == name);
        self.at(index.expect("a name of the list") * TYPE)
    }

    fn any(&self, rng: &mut Rng) -> usize {
        self.at(rng.usize(0..CELLS))
    }

    fn put(&self, object: usize, offset: usize, word: usize) {
        let half = offset % WORD * 8;
        let cell = &self.0[object + offset / WORD];
        let before = if half == 0 {
            0
        } else {
            cell.load(Ordering::Relaxed)
        };
        cell.store(before | word << half, Ordering::Relaxed);
    }

    /// Writes a random word to a random place from `from` on.
    fn write(&self, from: usize, rng: &mut Rng) {
        let word = match rng.u8(0..12) {
            0..4 => self.any(rng),
            4..7 => self.at(rng.usize(0..NAMES.len()) * TYPE),
            7 | 8 => self.at([TEXT, TUPLE, CODE, CODE][rng.usize(0..4)]),
            9 => rng.usize(0..64),
            10 => usize::MAX - rng.usize(0..64),
            _ => rng.usize(..),
        };
        self.0[rng.usize(from..CELLS)].store(word, Ordering::Relaxed);
    }
}

/// The names of types as C strings.
fn names() -> &'static [Vec<u8>] {
    static BYTES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    BYTES.get_or_init(|| {
        // Padded, because a read always takes as many bytes as a long name has.
        NAMES
            .map(|name| [name.as_bytes(), &[0; 64]].concat())
            .to_vec()
    })
}

/// Reads everything at one random address. Any result is fine, as long as the read ends.
fn ask(memory: Memory, minor: u64, heap: &Heap, rng: &mut Rng) {
    let object = heap.any(rng);
    if let Ok(attributes) = memory.attributes(object) {
        let _ = memory.holds(&attributes);
    }
    let _ = (
        memory.entries(object),
        memory.items(object),
        memory.text(object),
    );
    let _ = (memory.type_name(object), memory.integer(object));
    if let Ok(iterator) = LoaderIterator::at(memory, object) {
        let _ = iterator.read();
    }
    if let Some(gil) = Gil::at(&memory, minor, object) {
        let _ = gil.holder(&memory);
    }
    let mut walker = Walker::new(heap.any(rng));
    let _ = walker.main_frames(&memory);
    let mut frames = walker.frames_of(&memory, object).unwrap_or_default();
    frames.extend(
        memory
            .words(heap.at(FRAME))
            .and_then(|words| walker.frame(&memory, heap.at(FRAME), words))
            .ok()
            .and_then(|(_, frame)| frame),
    );
    let mut queues = Queues::default();
    queues.search(memory, &mut walker, &frames);
    for _ in 0..2 {
        queues.poll(memory, &mut walker, &frames, frames.first());
        queues.poll_other(&memory, &frames);
        let _ = queues.feeding().count();
        let _ = ThreadCache::default().poll(memory, &mut walker, &mut queues);
    }
    let _ = queues.seen();
    let mut reach = Reach {
        memory,
        walker: &mut walker,
    };
    let _ = reach.iterators(&frames);
    for frame in frames.iter().take(2) {
        for iterator in frame.iterators(&memory, &mut Shapes::default()) {
            RunElsewhere::default().contains(&memory, &mut walker, iterator);
        }
        let _ = (
            frame.locals(&memory),
            frame.first_local(&memory),
            frame.is_in_for(&memory),
            frame.called(&memory),
        );
        if let Ok(Some(within)) = WorkerLoop::of(memory, frame) {
            let _ = within.batch(None);
        }
    }
}

fn own_memory(minor: u64) -> Memory {
    Memory {
        pid: Pid(std::process::id().cast_signed()),
        layout: Layout::of(3, minor).expect("known"),
    }
}

proptest! {
    #![proptest_config(fuzz::cases_or(2_000))]

    #[test]
    fn fuzzed_memory(seed: u64, minor in 8_u64..=15) {
        let mut rng = Rng::with_seed(seed);
        let memory = own_memory(minor);
        let heap = Heap::new(memory.layout, CELLS, &mut rng).hurt(&mut rng);
        ask(memory, minor, &heap, &mut rng);
    }

    #[test]
    fn fuzzed_memory_that_changes(seed: u64, minor in 8_u64..=15) {
        let mut rng = Rng::with_seed(seed);
        let memory = own_memory(minor);
        let heap = Heap::new(memory.layout, CELLS, &mut rng).hurt(&mut rng);
        let mut other = rng.fork();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..500).for_each(|_| heap.write(TEXT, &mut other)));
            ask(memory, minor, &heap, &mut rng);
        });
    }
}

/// A generator whose frame holds 8,000 references to that generator, so that each of the four levels multiplies the
/// search.
#[test]
fn generators_that_hold_each_other_end_a_search() {
    let memory = own_memory(12);
    let mut rng = Rng::with_seed(1);
    let heap = Heap::new(memory.layout, 10_000, &mut rng);
    let generator = CELLS;
    let inner = generator + memory.layout.generator_frame / WORD;
    (generator + 1..10_000).for_each(|cell| heap.put(cell, 0, heap.at(generator)));
    heap.put(generator, 8, heap.of_type("generator"));
    heap.put(inner, memory.layout.frame.code, heap.at(CODE));
    heap.put(inner, 64, 0);
    heap.put(CODE, memory.layout.code.locals, 8_000);
    let mut walker = Walker::new(0);
    let words = memory.words(heap.at(inner)).expect("it can be read");
    let (_, first) = walker
        .frame(&memory, heap.at(inner), words)
        .expect("it can be read");
    let mut reach = Reach {
        memory,
        walker: &mut walker,
    };
    let found = reach.iterators(&[first.expect("a frame of Python")]);
    assert!(found.is_empty(), "{found:?}");
}
