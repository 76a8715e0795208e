//! What a frame calls, by the instructions before the one that it runs: a function written in C has no frame.
//!
//! Does not read processes. What is not understood has no name: a wrong one would be worse.

use super::opcodes::{Instruction, Opcodes, Role};

/// An instruction with its whole argument.
#[derive(Debug, Clone, Copy)]
struct Step {
    opcode: u8,
    role: Role,
    argument: usize,
    /// Where the next one begins, in units.
    end: usize,
}

/// Returns the index of the name of what the instruction at `at` calls: of an attribute, or of a name of the module. `code`
/// has units of two bytes, up to this instruction at least. `None` if it calls nothing, or if that has no name there.
pub(super) fn name_of_callee(opcodes: &Opcodes, code: &[[u8; 2]], at: usize) -> Option<usize> {
    let steps = steps(opcodes, code, at)?;
    let (call, before) = steps.split_last()?;
    let mut above = match call.role {
        Role::Call { above, .. } => call.argument.checked_add(above.into())?,
        Role::BeforeCall => call.argument,
        Role::CallUnpacked { .. } => 1 + (call.argument & 1),
        _ => return None,
    };
    for step in before.iter().rev() {
        if above > 0 {
            let (takes, gives) = effect(*step)?;
            above = above.checked_sub(gives)?.checked_add(takes)?;
            continue;
        }
        return match step.role {
            Role::Nothing | Role::Null | Role::BeforeCall => continue,
            Role::Method => Some(step.argument),
            Role::AttributeOrMethod | Role::GlobalOrCallee => {
                let sure = step.argument & 1 == 1 || is_only(opcodes, before, step.end);
                sure.then_some(step.argument >> 1)
            }
            Role::Name | Role::Global | Role::Attribute => {
                is_only(opcodes, before, step.end).then_some(step.argument)
            }
            _ => None,
        };
    }
    None
}

/// Returns the instructions up to the one at `at`. `None` if none begins there.
fn steps(opcodes: &Opcodes, code: &[[u8; 2]], at: usize) -> Option<Vec<Step>> {
    let mut steps = Vec::with_capacity(at);
    let (mut next, mut high) = (0, 0_usize);
    while next <= at {
        let [opcode, low] = *code.get(next)?;
        let Instruction { role, caches } = opcodes.instructions[usize::from(opcode)];
        let end = next + 1 + usize::from(caches);
        let argument = high.checked_mul(256)? + usize::from(low);
        high = 0;
        match role {
            Role::Hidden => return None,
            Role::Extends => high = argument,
            _ => steps.push(Step {
                opcode,
                role,
                argument,
                end,
            }),
        }
        if next == at {
            return (role != Role::Extends).then_some(steps);
        }
        next = end;
    }
    None
}

/// Returns how many values an instruction takes from the stack, and how many it puts there. `None` if that is not known.
fn effect(step: Step) -> Option<(usize, usize)> {
    let bit = step.argument & 1;
    let all = |count: usize, others: u8| count.checked_add(others.into());
    Some(match step.role {
        Role::Nothing | Role::BeforeCall => (0, 0),
        Role::Push(count) => (0, count.into()),
        Role::Null | Role::Name | Role::Global => (0, 1),
        Role::GlobalOrCallee => (0, 1 + bit),
        Role::Attribute | Role::Replace => (1, 1),
        Role::Method => (1, 2),
        Role::AttributeOrMethod => (1, 1 + bit),
        Role::Join => (2, 1),
        Role::Format => (1 + usize::from(step.argument & 4 != 0), 1),
        Role::Build => (step.argument, 1),
        Role::BuildPairs => (step.argument.checked_mul(2)?, 1),
        Role::Call { below, above } => (all(step.argument, below + above)?, 1),
        Role::CallUnpacked { below } => (all(1 + bit, below)?, 1),
        Role::Other | Role::Hidden | Role::Extends => return None,
    })
}

/// Whether nothing before jumps to `after`, where a callee is on the stack: in `(a or b)()` that may be another one.
fn is_only(opcodes: &Opcodes, before: &[Step], after: usize) -> bool {
    let after = after * 2;
    !before.iter().any(|step| {
        let jump = step.argument.saturating_mul(opcodes.bytes_of_jump);
        let relative = jump.saturating_add(step.end * 2);
        opcodes.jumps.contains(&step.opcode) && (jump == after || relative == after)
    })
}
