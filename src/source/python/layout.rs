//! Offsets of the fields of CPython's structures, per minor version: 64-bit builds with the GIL.
//!
//! In bytes, from the headers of CPython (`Include/cpython`, `Include/internal`), as bindgen lays them out. Does not
//! depend on how they are read.

use std::ops::RangeInclusive;

use super::opcodes::{self, Opcodes};

/// The offsets needed to read stacks and instances.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// `PyInterpreterState`: the newest thread.
    pub(super) threads_head: usize,
    /// How to get from a `PyThreadState` to its innermost frame.
    pub(super) frame_of_thread: FrameOfThread,
    pub(super) frame: FrameLayout,
    pub(super) code: CodeLayout,
    /// A generator's frame: a pointer to it up to 3.10, the frame itself since.
    pub(super) generator_frame: usize,
    /// `gi_frame_state` of a generator that has not started or waits for its next item to be taken; since 3.11.
    pub(super) suspended: RangeInclusive<i8>,
    /// Size of `PyASCIIObject` and of `PyCompactUnicodeObject`: the characters follow.
    pub(super) ascii_header: usize,
    pub(super) unicode_header: usize,
    /// `PyTupleObject.ob_item`.
    pub(super) tuple_items: usize,
    pub(super) long: LongLayout,
    pub(super) keys: KeysLayout,
    pub(super) instance: InstanceLayout,
    /// `PyHeapTypeObject.ht_cached_keys`.
    pub(super) cached_keys: usize,
    /// The opcode that takes the next item of a loop, which differs in nearly every version. `None` = not known.
    pub(super) for_iter: Option<u8>,
    /// Where a frame's instructions are, and what they mean.
    pub(super) bytecode: BytecodeLayout,
    pub(super) opcodes: &'static Opcodes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BytecodeLayout {
    /// Up to 3.10 a code object points to the bytes. A frame has the 32-bit index of the last instruction, in steps of
    /// `counts` bytes.
    Pointed {
        bytes: usize,
        last: usize,
        counts: usize,
    },
    /// Since 3.11 the units are at the end of a code object, and a frame points to the instruction.
    Inside(usize),
}

/// `tp_flags` of a type, its flag for types that are made while the program runs, as by a `class` statement, and `tp_dict`.
pub(super) const TP_FLAGS: usize = 168;
pub(super) const HEAP_TYPE: usize = 1 << 9;
pub(super) const TP_DICT: usize = 264;
/// `PyListObject.ob_item`.
pub(super) const LIST_ITEMS: usize = 24;
/// `PyCellObject.ob_ref`.
pub(super) const CELL: usize = 16;
/// The characters of a `bytes`.
pub(super) const BYTES: usize = 32;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameOfThread {
    /// `PyThreadState` points to it.
    Direct(usize),
    /// `PyThreadState` points to a C frame, which points to it (3.11, 3.12).
    ByCFrame { cframe: usize, current: usize },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrameLayout {
    pub(super) previous: usize,
    pub(super) code: usize,
    /// Pointer to the dict of its module's names.
    pub(super) globals: usize,
    /// One byte; from [`C_OWNED`] on it is not a Python frame. `None` before 3.11.
    pub(super) owner: Option<usize>,
    /// Pointer to the instruction that runs. `None` before 3.11.
    pub(super) instruction: Option<usize>,
    /// First local variable; the value stack follows the last one.
    pub(super) locals: usize,
}

/// Frames whose owner is this or more belong to the interpreter's C code.
pub(super) const C_OWNED: u8 = 3;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    /// `co_filename`; `co_name` and, since 3.11, `co_qualname` follow it.
    pub(super) filename: usize,
    pub(super) qualname: Option<usize>,
    /// Tuple of the names of globals and attributes: `co_names`.
    pub(super) globals: usize,
    /// Tuple of the names of the locals.
    pub(super) names: usize,
    /// Number of locals, 32 bit. Up to 3.10 without cells and free variables.
    pub(super) locals: usize,
    /// Number of positional arguments, which are the first locals, 32 bit.
    pub(super) arguments: usize,
    /// Depth of the value stack, 32 bit.
    pub(super) stack: usize,
    /// `co_flags`, 32 bit.
    pub(super) flags: usize,
    /// Tuples of cells and of free variables: more locals, up to 3.10.
    pub(super) more_locals: Option<[usize; 2]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LongLayout {
    /// `ob_size`, which has the sign of the number.
    SignedSize,
    /// Since 3.12: the sign in the low two bits, the size from bit 3 on.
    Tag,
}

/// `PyDictKeysObject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeysLayout {
    /// Up to 3.10: `dk_size` as a word; entries always carry their hash.
    Wide,
    /// Since 3.11: sizes as powers of two, and a kind.
    Compact,
}

/// How an instance stores its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstanceLayout {
    /// A dict at `tp_dictoffset`.
    DictOffset,
    /// 3.11: values before the object, or a dict.
    ValuesBefore,
    /// 3.12: one tagged pointer before the object.
    Tagged,
    /// Since 3.13: values inside the object, or a dict.
    Inline,
}

const FRAME_3_8: FrameLayout = FrameLayout {
    previous: 24,
    code: 32,
    globals: 48,
    owner: None,
    instruction: None,
    locals: 360,
};
const CODE_3_8: CodeLayout = CodeLayout {
    filename: 104,
    qualname: None,
    globals: 64,
    names: 72,
    locals: 28,
    arguments: 16,
    stack: 32,
    flags: 36,
    more_locals: Some([80, 88]),
};
const V3_8: Layout = Layout {
    threads_head: 8,
    frame_of_thread: FrameOfThread::Direct(24),
    frame: FRAME_3_8,
    code: CODE_3_8,
    generator_frame: 16,
    suspended: i8::MIN..=-1,
    ascii_header: 48,
    unicode_header: 72,
    tuple_items: 24,
    long: LongLayout::SignedSize,
    keys: KeysLayout::Wide,
    instance: InstanceLayout::DictOffset,
    cached_keys: 872,
    for_iter: None,
    bytecode: BytecodeLayout::Pointed {
        bytes: 48,
        last: 104,
        counts: 1,
    },
    opcodes: &opcodes::V3_8,
};
const V3_10: Layout = Layout {
    frame: FrameLayout {
        locals: 352,
        ..FRAME_3_8
    },
    bytecode: BytecodeLayout::Pointed {
        bytes: 48,
        last: 96,
        counts: 2,
    },
    opcodes: &opcodes::V3_10,
    ..V3_8
};
const CODE_3_11: CodeLayout = CodeLayout {
    filename: 112,
    qualname: Some(128),
    globals: 32,
    names: 96,
    locals: 76,
    arguments: 56,
    stack: 68,
    flags: 48,
    more_locals: None,
};
const V3_11: Layout = Layout {
    threads_head: 16,
    frame_of_thread: FrameOfThread::ByCFrame {
        cframe: 56,
        current: 8,
    },
    frame: FrameLayout {
        previous: 48,
        code: 32,
        globals: 8,
        owner: Some(69),
        instruction: Some(56),
        locals: 72,
    },
    code: CODE_3_11,
    generator_frame: 80,
    keys: KeysLayout::Compact,
    instance: InstanceLayout::ValuesBefore,
    for_iter: Some(93),
    bytecode: BytecodeLayout::Inside(184),
    opcodes: &opcodes::V3_11,
    ..V3_8
};
const FRAME_3_12: FrameLayout = FrameLayout {
    previous: 8,
    code: 0,
    globals: 24,
    owner: Some(70),
    instruction: Some(56),
    locals: 72,
};
const V3_12: Layout = Layout {
    threads_head: 72,
    frame_of_thread: FrameOfThread::ByCFrame {
        cframe: 56,
        current: 0,
    },
    frame: FRAME_3_12,
    code: CodeLayout {
        locals: 72,
        arguments: 52,
        stack: 64,
        ..CODE_3_11
    },
    generator_frame: 72,
    ascii_header: 40,
    unicode_header: 56,
    long: LongLayout::Tag,
    instance: InstanceLayout::Tagged,
    cached_keys: 880,
    bytecode: BytecodeLayout::Inside(192),
    opcodes: &opcodes::V3_12,
    ..V3_11
};
const V3_13: Layout = Layout {
    threads_head: 7344,
    frame_of_thread: FrameOfThread::Direct(72),
    for_iter: None,
    instance: InstanceLayout::Inline,
    bytecode: BytecodeLayout::Inside(200),
    opcodes: &opcodes::V3_13,
    ..V3_12
};
const V3_14: Layout = Layout {
    frame: FrameLayout {
        owner: Some(74),
        locals: 80,
        ..FRAME_3_12
    },
    tuple_items: 32,
    bytecode: BytecodeLayout::Inside(208),
    opcodes: &opcodes::V3_14,
    ..V3_13
};

const V3_15: Layout = Layout {
    threads_head: 7336,
    cached_keys: 888,
    suspended: 0..=3,
    opcodes: &opcodes::V3_15,
    ..V3_14
};

impl Layout {
    /// Returns `None` for a version whose structures are not known.
    pub(super) fn of(major: u64, minor: u64) -> Option<&'static Self> {
        match (major, minor) {
            (3, 8 | 9) => Some(&V3_8),
            (3, 10) => Some(&V3_10),
            (3, 11) => Some(&V3_11),
            (3, 12) => Some(&V3_12),
            (3, 13) => Some(&V3_13),
            (3, 14) => Some(&V3_14),
            (3, 15) => Some(&V3_15),
            _ => None,
        }
    }
}
