//! Which function an instruction calls (one written in C has no frame) and from which variables that and its arguments come,
//! whether the value that an instruction gives is used, and where the loops are.
//!
//! Does not read processes. A callee that is not understood has no name: a wrong name would be worse.

use std::ops::Range;

use super::instruction::{Instruction, StackUse};
use super::opcodes::Opcodes;

/// An instruction with its whole argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    opcode: u8,
    pub(super) effect: StackUse,
    pub(super) argument: usize,
    /// Its unit, and where the next one begins, in units.
    at: usize,
    pub(super) end: usize,
}

/// A variable of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    Local(usize),
    /// A name of the module.
    Name(usize),
}

/// Where the callee and the arguments of a call come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallSources {
    /// The variable from whose value the callee is taken, by attributes and calls.
    pub(super) callee: Variable,
    pub(super) arguments: Vec<Variable>,
}

/// Returns the index of the name of the function that the instruction at `at` calls: an attribute, or a name of the
/// module. `code` has units of two bytes, up to this instruction at least. `None` if it calls nothing, or if the callee
/// has no such name.
pub(super) fn name_of_callee(opcodes: &Opcodes, code: &[[u8; 2]], at: usize) -> Option<usize> {
    let steps = steps(opcodes, code, at)?;
    let step = steps[callee(&steps)?];
    match step.effect {
        StackUse::Method => Some(step.argument),
        StackUse::AttributeOrMethod | StackUse::GlobalOrCallee => {
            let sure = step.argument & 1 == 1 || is_only(opcodes, &steps, step.end);
            sure.then_some(step.argument >> 1)
        }
        StackUse::Name | StackUse::Global | StackUse::Attribute => {
            is_only(opcodes, &steps, step.end).then_some(step.argument)
        }
        _ => None,
    }
}

/// Returns where the callee and the arguments of the call at `at` come from. `None` if it calls nothing, or if the callee
/// may come from several variables or from none.
pub(super) fn sources(opcodes: &Opcodes, code: &[[u8; 2]], at: usize) -> Option<CallSources> {
    let steps = steps(opcodes, code, at)?;
    let mut index = callee(&steps)?;
    loop {
        let step = steps[index];
        if !is_only(opcodes, &steps, step.end) {
            return None;
        }
        let callee = match step.effect {
            StackUse::Method | StackUse::AttributeOrMethod | StackUse::Attribute => {
                index = pushes(&steps[..index])?;
                continue;
            }
            StackUse::Call { .. } | StackUse::CallUnpacked { .. } => {
                index = self::callee(&steps[..=index])?;
                continue;
            }
            _ => *variables(step).last()?,
        };
        let arguments = steps[index + 1..].iter().copied();
        return Some(CallSources {
            callee,
            arguments: arguments.flat_map(variables).collect(),
        });
    }
}

/// Returns the variables whose values an instruction pushes, the topmost last.
pub(super) fn variables(step: Operation) -> Vec<Variable> {
    let halves = [step.argument >> 4, step.argument & 15].map(Variable::Local);
    match step.effect {
        StackUse::Local => vec![Variable::Local(step.argument)],
        StackUse::Locals => halves.to_vec(),
        StackUse::StoreAndLocal => vec![halves[1]],
        StackUse::Name | StackUse::Global => vec![Variable::Name(step.argument)],
        StackUse::GlobalOrCallee => vec![Variable::Name(step.argument >> 1)],
        _ => vec![],
    }
}

/// Returns the index of the instruction that pushes what the last one calls.
fn callee(steps: &[Operation]) -> Option<usize> {
    let (call, before) = steps.split_last()?;
    let mut above = match call.effect {
        StackUse::Call { above, .. } => call.argument.checked_add(above.into())?,
        StackUse::BeforeCall => call.argument,
        StackUse::CallUnpacked { .. } => 1 + (call.argument & 1),
        _ => return None,
    };
    let mut end = before.len();
    while above > 0 {
        end = end.checked_sub(1)?;
        let (takes, gives) = taken_and_given(before[end])?;
        above = above.checked_sub(gives)?.checked_add(takes)?;
    }
    pushes(&before[..end])
}

/// Returns the index of the last of these instructions that pushes more than a placeholder.
fn pushes(steps: &[Operation]) -> Option<usize> {
    let is_empty = |effect| {
        matches!(
            effect,
            StackUse::Nothing | StackUse::Null | StackUse::BeforeCall
        )
    };
    steps.iter().rposition(|step| !is_empty(step.effect))
}

/// Returns the instructions up to the one at `at`. `None` if none begins there.
fn steps(opcodes: &Opcodes, code: &[[u8; 2]], at: usize) -> Option<Vec<Operation>> {
    let steps = operations(opcodes, code.get(..=at)?)?;
    (steps.last()?.at == at).then_some(steps)
}

/// Returns all instructions. `None` if one is hidden.
pub(super) fn operations(opcodes: &Opcodes, code: &[[u8; 2]]) -> Option<Vec<Operation>> {
    let mut all = Vec::with_capacity(code.len());
    let (mut next, mut high) = (0, 0_usize);
    while let Some([opcode, low]) = code.get(next).copied() {
        let Instruction { effect, caches } = opcodes.instructions[usize::from(opcode)];
        let end = next + 1 + usize::from(caches);
        let argument = high.checked_mul(256)? + usize::from(low);
        high = 0;
        match effect {
            StackUse::Hidden => return None,
            StackUse::Extends => high = argument,
            _ => all.push(Operation {
                opcode,
                effect,
                argument,
                at: next,
                end,
            }),
        }
        next = end;
    }
    Some(all)
}

/// Returns the units of each loop, as far as jumps back show it. `None` if an instruction is hidden.
pub(super) fn loops(opcodes: &Opcodes, code: &[[u8; 2]]) -> Option<Vec<Range<usize>>> {
    let steps = operations(opcodes, code)?;
    let back = steps
        .iter()
        .filter(|step| opcodes.back.contains(&step.opcode));
    let loops = back.filter_map(|step| Some(step.end.checked_sub(step.argument)?..step.end));
    Some(loops.collect())
}

/// Whether the value that the instruction at `at` gives is used. `at` may be inside an instruction: while a frame waits
/// for a function written in Python, it points to the last of the units that follow the call. `None` if it is not
/// known.
pub(super) fn is_kept(opcodes: &Opcodes, code: &[[u8; 2]], at: usize) -> Option<bool> {
    let effect = |at| Some(opcodes.instructions[usize::from(code.get::<usize>(at)?[0])].effect);
    let (mut begin, mut next) = (0, 0);
    while next <= at {
        begin = next;
        next = end(opcodes, code, next)?;
    }
    if effect(begin)? == StackUse::BeforeCall {
        next = end(opcodes, code, next)?;
    }
    let used = effect(next)?;
    (used != StackUse::Hidden).then_some(!matches!(used, StackUse::Drop | StackUse::Test))
}

/// Returns where the instruction that begins at `at` ends. `None` if that is not known.
fn end(opcodes: &Opcodes, code: &[[u8; 2]], at: usize) -> Option<usize> {
    let [opcode, _] = *code.get(at)?;
    let Instruction { effect, caches } = opcodes.instructions[usize::from(opcode)];
    (effect != StackUse::Hidden).then_some(at + 1 + usize::from(caches))
}

/// Returns how many values an instruction takes from the stack, and how many it puts there. `None` if that is not known.
fn taken_and_given(step: Operation) -> Option<(usize, usize)> {
    let bit = step.argument & 1;
    let all = |count: usize, others: u8| count.checked_add(others.into());
    Some(match step.effect {
        StackUse::Nothing | StackUse::BeforeCall => (0, 0),
        StackUse::Push(count) => (0, count.into()),
        StackUse::Null
        | StackUse::Name
        | StackUse::Global
        | StackUse::Local
        | StackUse::ClearedLocal => (0, 1),
        StackUse::Locals => (0, 2),
        StackUse::GlobalOrCallee => (0, 1 + bit),
        StackUse::Attribute | StackUse::Replace | StackUse::StoreAndLocal => (1, 1),
        StackUse::Method => (1, 2),
        StackUse::AttributeOrMethod => (1, 1 + bit),
        StackUse::Join => (2, 1),
        StackUse::Format => (1 + usize::from(step.argument & 4 != 0), 1),
        StackUse::Build => (step.argument, 1),
        StackUse::BuildPairs => (step.argument.checked_mul(2)?, 1),
        StackUse::Call { below, above } => (all(step.argument, below + above)?, 1),
        StackUse::CallUnpacked { below } => (all(1 + bit, below)?, 1),
        StackUse::Store | StackUse::StoreName => (1, 0),
        StackUse::Stores => (2, 0),
        StackUse::Other
        | StackUse::Drop
        | StackUse::Test
        | StackUse::StoreInto
        | StackUse::Hidden
        | StackUse::Extends => return None,
    })
}

/// Whether no earlier instruction jumps to `after`, where a callee is on the stack. Such a jump may bring another
/// callee, as in `(a or b)()`.
fn is_only(opcodes: &Opcodes, before: &[Operation], after: usize) -> bool {
    let after = after * 2;
    !before.iter().any(|step| {
        let jump = step.argument.saturating_mul(opcodes.bytes_of_jump);
        let relative = jump.saturating_add(step.end * 2);
        opcodes.jumps.contains(&step.opcode) && (jump == after || relative == after)
    })
}

/// Returns bytecode that is given in hexadecimal digits.
#[cfg(test)]
pub(super) fn from_digits(digits: &str) -> Vec<[u8; 2]> {
    let bytes = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
    let bytes: Vec<u8> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| bytes(pair).unwrap())
        .collect();
    bytes.chunks(2).map(|unit| [unit[0], unit[1]]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use support::fuzz::{self, Rng};

    use super::*;
    use crate::source::python::opcodes::{V3_8, V3_10, V3_11, V3_12, V3_13, V3_14, V3_15};

    /// Pairs of bytes; `0` stands for a cache.
    fn units(code: &[(u8, u8, usize)]) -> Vec<[u8; 2]> {
        let each = code.iter().flat_map(|(opcode, argument, caches)| {
            let cache = std::iter::repeat_n([0xff; 2], *caches);
            std::iter::once([*opcode, *argument]).chain(cache)
        });
        each.collect()
    }

    fn callee(opcodes: &Opcodes, code: &[(u8, u8, usize)]) -> Option<usize> {
        let (last, before) = code.split_last()?;
        let at = units(before).len();
        assert_eq!(last.2, 0, "what runs comes last");
        name_of_callee(opcodes, &units(code), at)
    }

    /// `x.to(dev, non_blocking=True)`, as the compilers write it.
    #[test]
    fn a_method_is_found_behind_its_arguments() {
        let old = [
            (124, 0, 0),
            (106, 7, 0),
            (124, 1, 0),
            (100, 1, 0),
            (100, 2, 0),
            (141, 2, 0),
        ];
        assert_eq!(callee(&V3_8, &old), Some(7));
        assert_eq!(callee(&V3_10, &old), Some(7));
        let mut code = vec![
            (151, 0, 0),
            (124, 0, 0),
            (160, 7, 10),
            (124, 1, 0),
            (100, 1, 0),
        ];
        code.extend([(172, 2, 0), (166, 2, 1), (171, 2, 0)]);
        assert_eq!(callee(&V3_11, &code), Some(7));
        let code = [
            (124, 0, 0),
            (106, 15, 9),
            (124, 1, 0),
            (100, 1, 0),
            (172, 2, 0),
            (171, 2, 0),
        ];
        assert_eq!(callee(&V3_12, &code), Some(7));
        let code = [
            (85, 0, 0),
            (82, 15, 9),
            (85, 1, 0),
            (83, 1, 0),
            (83, 2, 0),
            (57, 2, 0),
        ];
        assert_eq!(callee(&V3_13, &code), Some(7));
        // An instruction that is rewritten while it runs keeps the caches of the original.
        let code = [
            (85, 0, 0),
            (194, 15, 9),
            (85, 1, 0),
            (83, 1, 0),
            (83, 2, 0),
            (57, 2, 0),
        ];
        assert_eq!(callee(&V3_13, &code), Some(7));
        let code = [(86, 0, 0), (80, 15, 9), (87, 1, 0), (82, 2, 0), (55, 2, 0)];
        assert_eq!(callee(&V3_14, &code), Some(7));
        // `x.to(*a)`
        let code = [
            (86, 0, 0),
            (182, 14, 9),
            (33, 0, 0),
            (86, 1, 0),
            (33, 0, 0),
            (4, 0, 0),
        ];
        assert_eq!(callee(&V3_14, &code), Some(7));
    }

    /// `ids = tok.rows(paths[i]).encode(text, size=n); raw = zlib.decompress(ids); got = (tok or lib).read(raw)`
    #[test]
    fn a_callee_and_arguments_come_from_variables() {
        for (opcodes, digits, [encode, decompress, read]) in [
            (
                &V3_11,
                "970009007c01a00000000000000000000000000000000000000000007c027c0319000000000000000000a6010000ab010000000000000000a00100000000000000000000000000000000000000007c047c05ac02a6020000ab0200000000000000007d06740400000000000000000000a00300000000000000000000000000000000000000007c06a6010000ab0100000000000000007d077c0170017c00a00400000000000000000000000000000000000000007c07a6010000ab0100000000000000007d088c62",
                [44, 70, 93],
            ),
            (
                &V3_12,
                "970009007c016a010000000000000000000000000000000000007c027c0319000000ab010000000000006a030000000000000000000000000000000000007c047c05ac01ab020000000000007d06740400000000000000006a070000000000000000000000000000000000007c06ab010000000000007d077c017801730201007c006a090000000000000000000000000000000000007c07ab010000000000007d088c50",
                [34, 55, 76],
            ),
            (
                &V3_13,
                "95001e0055015201000000000000000000000000000000000000582305000000350100000000000052030000000000000000000000000000000000005845530139026e065b0400000000000000005207000000000000000000000000000000000000550635010000000000006e0755013d01280000000000000064020000200055005209000000000000000000000000000000000000550735010000000000006e084d510000",
                [32, 50, 76],
            ),
            (
                &V3_14,
                "80001b005601500100000000000000000000000000000000000057232c1a000000000000000000003401000000000000500300000000000000000000000000000000000057455201370200000000000070065c040000000000000000500700000000000000000000000000000000000056063401000000000000700754013b012700000000000000670300001c001f00540050090000000000000000000000000000000000005607340100000000000070084b5a0000",
                [36, 57, 84],
            ),
            (
                &V3_15,
                "80000000190055014f0100000000000000000000000000000000000056232a1a0000000000000000000032010000000000004f030000000000000000000000000000000000005645510135020000000000006f065b0400000000000000004f07000000000000000000000000000000000000550632010000000000006f07530139012500000000000000660300001a001d0053004f09000000000000000000000000000000000000550732010000000000006f084a5a0000",
                [37, 58, 85],
            ),
        ] {
            let code = from_digits(digits);
            let sources = |at| sources(opcodes, &code, at);
            let known = |callee, arguments: &[usize]| {
                let arguments = arguments.iter().copied().map(Variable::Local).collect();
                Some(CallSources { callee, arguments })
            };
            assert_eq!(sources(encode), known(Variable::Local(1), &[2, 3, 4, 5]));
            assert_eq!(sources(decompress), known(Variable::Name(2), &[6]));
            assert_eq!(sources(read), None);
            assert_eq!(sources(0), None);
        }
    }

    /// `x = f(a)` and `f(a)`, `if f(a)` and `if not f(a)`, where the call is left for a function written in Python.
    #[test]
    fn what_a_call_gives_is_kept_or_dropped() {
        let kept = |opcodes: &Opcodes, code: &[(u8, u8, usize)], next: u8| {
            let at = units(code).len() - 1;
            let code = [code, &[(next, 1, 0)]].concat();
            is_kept(opcodes, &units(&code), at)
        };
        let old = [(116, 0, 0), (124, 0, 0), (131, 1, 0)];
        let v3_11 = [(116, 1, 5), (124, 0, 0), (166, 1, 1), (171, 1, 4)];
        let v3_12 = [(116, 1, 4), (124, 0, 0), (171, 1, 3)];
        let v3_13 = [(91, 1, 4), (85, 0, 0), (53, 1, 3)];
        let v3_14 = [(92, 1, 4), (86, 0, 0), (52, 1, 3)];
        for (opcodes, code, store, drops) in [
            (&V3_8, &old[..], 125, &[1, 12, 114, 115]),
            (&V3_10, &old[..], 125, &[1, 12, 114, 115]),
            (&V3_11, &v3_11[..], 125, &[1, 12, 114, 115]),
            (&V3_12, &v3_12[..], 125, &[1, 12, 114, 115]),
            (&V3_13, &v3_13[..], 110, &[32, 40, 214, 219]),
            (&V3_14, &v3_14[..], 112, &[31, 39, 203, 208]),
        ] {
            assert_eq!(kept(opcodes, code, store), Some(true));
            for drop in drops {
                assert_eq!(kept(opcodes, code, *drop), Some(false), "{drop}");
            }
            // In 3.11 a function written in C may run in the first half of its call.
            // The end, and an instruction of a debugger or of coverage.
            assert_eq!(is_kept(opcodes, &units(code), units(code).len() - 1), None);
        }
        // In 3.11, a function written in C may run in the first half of its call.
        let dropped = units(&[&v3_11[..], &[(1, 0, 0)]].concat());
        assert_eq!(is_kept(&V3_11, &dropped, 7), Some(false));
        assert_eq!(kept(&V3_12, &v3_12, 254), None);
        assert_eq!(is_kept(&V3_12, &[], 0), None);
    }

    /// `x = look()`, `if not x: wait(); continue`, `while not x[0]: wait()`, and `for a in x: model(a)`, in a `while True`.
    #[test]
    fn jumps_back_end_loops() {
        let compiled = [
            (
                &V3_11,
                "9700090002007c00a6000000ab0000000000000000007d037c03730b02007c02a6000000ab00000000000000000001008c187c03640219000000000000000000731202007c02a6000000ab00000000000000000001007c03640219000000000000000000af127c0344005d0d7d0402007c017c04a6010000ab01000000000000000001008c0e8c42",
                vec![1..25, 33..51, 53..67, 2..68],
            ),
            (
                &V3_12,
                "9700090002007c00ab000000000000007d037c03730802007c02ab0000000000000001008c127c03640119000000730d02007c02ab0000000000000001007c0364011900000073018c0d7c0344005d0a00007d0402007c017c04ab0100000000000001008c0c04008c33",
                vec![1..19, 24..37, 39..51, 2..53],
            ),
            (
                &V3_13,
                "95001e005500220035000000000000006e03550328000000000000006409000055022200350000000000000020004d1800005503530105000000280000000000000064130000550222003500000000000000200055035301050000002800000000000000640200004d13000055031300480b00006e04550122005504350100000000000020004d0d00000b0020004d470000",
                vec![1..25, 35..54, 56..69, 2..73],
            ),
            (
                &V3_14,
                "80001b00560021003400000000000000700356032700000000000000670a00001c005602210034000000000000001f004b19000056035e002c1a000000000000000000002700000000000000670a00001c005602210034000000000000001f004b18000056031000460b0000700456012100560434010000000000001f004b0d000009001e004b440000",
                vec![1..26, 26..50, 52..65, 1..69],
            ),
            (
                &V3_15,
                "80000000190055001f0032000000000000006f0355032500000000000000660a00001a0055021f0032000000000000001d004a19000055035d002a1a000000000000000000002500000000000000660a00001a0055021f0032000000000000001d004a180000530346000000440b00006f0455011f00550432010000000000001d004a0d000009001c004a450000",
                vec![2..27, 27..51, 54..67, 2..71],
            ),
        ];
        for (opcodes, digits, known) in compiled {
            assert_eq!(loops(opcodes, &from_digits(digits)), Some(known));
        }
        assert_eq!(loops(&V3_12, &[[254, 0]]), None);
        assert_eq!(loops(&V3_14, &[[75, 9]]), Some(vec![]));
    }

    #[test]
    fn one_of_two_callees_has_no_name() {
        // `(a.to if b else c.to)(*d)`, then the same jump to another place.
        for (jump, name) in [(4, None), (2, Some(6))] {
            let code = [
                (124, 1, 0),
                (114, 10, 0),
                (124, 0, 0),
                (106, 5, 0),
                (110, jump, 0),
                (124, 2, 0),
                (106, 6, 0),
                (124, 3, 0),
                (142, 0, 0),
            ];
            assert_eq!(callee(&V3_8, &code), name);
        }
        // A branch within the arguments.
        let code = [
            (124, 0, 0),
            (160, 7, 0),
            (124, 1, 0),
            (112, 10, 0),
            (124, 2, 0),
            (161, 1, 0),
        ];
        assert_eq!(callee(&V3_8, &code), None);
    }

    #[test]
    fn what_is_no_call_or_is_hidden_has_no_name() {
        let add = [(124, 0, 0), (106, 15, 9), (122, 0, 0)];
        assert_eq!(callee(&V3_12, &add), None);
        // A debugger's instruction hides how many caches follow.
        let traced = [(254, 0, 0), (124, 0, 0), (106, 15, 9), (171, 0, 0)];
        assert_eq!(callee(&V3_12, &traced), None);
        // In the middle of an instruction, and past the end.
        let code = units(&[(124, 0, 0), (106, 15, 9), (171, 0, 0)]);
        assert_eq!(name_of_callee(&V3_12, &code, 11), Some(7));
        assert_eq!(name_of_callee(&V3_12, &code, 5), None);
        assert_eq!(name_of_callee(&V3_12, &code, 12), None);
    }

    proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_bytecode(seed: u64) {
            let mut rng = Rng::with_seed(seed);
            for opcodes in [&V3_8, &V3_10, &V3_11, &V3_12, &V3_13, &V3_14, &V3_15] {
                let known = |opcode: &u8| {
                    let effect = opcodes.instructions[usize::from(*opcode)].effect;
                    !matches!(effect, StackUse::Other | StackUse::Hidden)
                };
                let known: Vec<u8> = (0..=u8::MAX).filter(known).collect();
                let mut unit = || match rng.u8(0..8) {
                    0 => [rng.u8(..), rng.u8(..)],
                    1 => [known[rng.usize(0..known.len())], rng.u8(..)],
                    _ => [known[rng.usize(0..known.len())], rng.u8(0..4)],
                };
                let code: Vec<[u8; 2]> = (0..40).map(|_| unit()).collect();
                let _ = loops(opcodes, &code);
                for at in 0..=code.len() {
                    let _ = name_of_callee(opcodes, &code, at);
                    let _ = is_kept(opcodes, &code, at);
                }
            }
        }
    }
}
