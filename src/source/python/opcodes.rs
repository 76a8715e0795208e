//! The instruction sets of CPython's versions, as far as they are needed to find the callee of a call, the variables that a value
//! reaches, and loops.
//!
//! Does not depend on how a process is read.

use super::instruction::{Instruction, StackUse};
use super::opcode_tables::{
    ONLY_3_11, ONLY_3_12, ONLY_3_13, ONLY_3_14, ONLY_3_15, Rows, SINCE_3_11, UP_TO_3_10, UP_TO_3_12,
};

/// The instructions of one version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opcodes {
    pub(super) instructions: [Instruction; 256],
    /// Opcodes that may jump over one of two possible callees: `JUMP_FORWARD` and those of `or` and `and`.
    pub(super) jumps: [u8; 3],
    /// Bytes in which the argument of a jump counts: 2 for units, or 1.
    pub(super) bytes_of_jump: usize,
    /// The jumps back that end a loop; empty before 3.11.
    pub(super) back: &'static [u8],
}

const fn table(rows: &[&Rows]) -> [Instruction; 256] {
    let unknown = Instruction {
        effect: StackUse::Other,
        caches: 0,
    };
    let mut table = [unknown; 256];
    let mut part = 0;
    while part < rows.len() {
        let mut row = 0;
        while row < rows[part].len() {
            let (effect, caches, ranges) = rows[part][row];
            let mut range = 0;
            while range < ranges.len() {
                let mut opcode = ranges[range] as usize;
                while opcode <= ranges[range + 1] as usize {
                    table[opcode] = Instruction { effect, caches };
                    opcode += 1;
                }
                range += 2;
            }
            row += 1;
        }
        part += 1;
    }
    table
}

/// The jumps of `a or b`, `a and b` and `a if c else b` up to 3.11.
const OR_POP: [u8; 3] = [110, 111, 112];

pub(super) static V3_8: Opcodes = Opcodes {
    instructions: table(&[UP_TO_3_12, UP_TO_3_10]),
    jumps: OR_POP,
    bytes_of_jump: 1,
    back: &[],
};
pub(super) static V3_10: Opcodes = Opcodes {
    instructions: table(&[UP_TO_3_12, UP_TO_3_10]),
    jumps: OR_POP,
    bytes_of_jump: 2,
    back: &[],
};
pub(super) static V3_11: Opcodes = Opcodes {
    instructions: table(&[UP_TO_3_12, SINCE_3_11, ONLY_3_11]),
    jumps: OR_POP,
    bytes_of_jump: 2,
    back: &[38, 140, 173, 174, 175, 176],
};
pub(super) static V3_12: Opcodes = Opcodes {
    instructions: table(&[UP_TO_3_12, SINCE_3_11, ONLY_3_12]),
    jumps: [110, 114, 115],
    bytes_of_jump: 2,
    back: &[140],
};
pub(super) static V3_13: Opcodes = Opcodes {
    instructions: table(&[ONLY_3_13]),
    jumps: [79, 97, 100],
    bytes_of_jump: 2,
    back: &[77],
};
pub(super) static V3_14: Opcodes = Opcodes {
    instructions: table(&[ONLY_3_14]),
    jumps: [77, 100, 103],
    bytes_of_jump: 2,
    back: &[75, 175, 176],
};
pub(super) static V3_15: Opcodes = Opcodes {
    instructions: table(&[ONLY_3_15]),
    jumps: [76, 99, 102],
    bytes_of_jump: 2,
    back: &[74, 181, 182],
};
