//! Where the value that a call gives may go within its function: to which of its statements, through which variables, and
//! whether they send it to others.
//!
//! Takes a function for straight code, so a value may reach less than this says. What other functions read of a global is
//! not followed. Does not read processes.

use std::ops::Range;

use super::bytecode::{Operation, Variable, is_kept, operations, variables};
use super::instruction::StackUse;
use super::opcodes::Opcodes;

/// Instructions up to those that take their values into variables, or up to one that drops their value.
#[derive(Debug, Clone, Default)]
struct Assignment {
    units: Range<usize>,
    uses: Vec<Variable>,
    sets: Vec<Variable>,
    sends: bool,
}

/// A statement that may use a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    /// Its units or, outside this module, the addresses of its instructions.
    pub(super) at: Range<usize>,
    /// Whether it calls a method that sends its arguments to another thread or process.
    pub(super) sends: bool,
}

/// What a method does with its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct MethodUse {
    /// Puts them into its object.
    pub(super) fills: bool,
    /// Sends them to another thread or process.
    pub(super) sends: bool,
}

/// Returns the statements that may use the value of the call at `at`, which may be inside an instruction. `method` knows
/// methods by the indices of their names. `None` if it is not known, or if no variable takes the value.
pub(super) fn reached(
    opcodes: &Opcodes,
    code: &[[u8; 2]],
    at: usize,
    method: impl Fn(usize) -> MethodUse,
) -> Option<Vec<User>> {
    let assignments = assignments(&operations(opcodes, code)?, method);
    let call = assignments.iter().find(|one| one.units.contains(&at))?;
    let mut reached = call.sets.clone();
    if reached.is_empty() && is_kept(opcodes, code, at)? {
        // A function that it calls gets it, and may put it into anything at hand.
        reached.clone_from(&call.uses);
    }
    if reached.is_empty() {
        return None;
    }
    let mut using: Vec<&Assignment> = vec![call];
    loop {
        let uses = |one: &&Assignment| one.uses.iter().any(|used| reached.contains(used));
        let is_new = |one: &&Assignment| !using.iter().any(|known| known.units == one.units);
        let new: Vec<_> = assignments.iter().filter(uses).filter(is_new).collect();
        if new.is_empty() {
            break;
        }
        reached.extend(new.iter().flat_map(|one| &one.sets));
        using.extend(new);
    }
    let user = |one: &Assignment| User {
        at: one.units.clone(),
        sends: one.sends,
    };
    Some(using.into_iter().map(user).collect())
}

fn assignments(operations: &[Operation], method: impl Fn(usize) -> MethodUse) -> Vec<Assignment> {
    let steps = operations
        .iter()
        .filter(|step| step.effect != StackUse::Nothing);
    let mut steps = steps.peekable();
    let mut all = vec![];
    let mut now = Assignment::default();
    let mut filled = None;
    // The variables of a comprehension, and how often each is yet to be set: as the next item, and back to what it was.
    let mut comprehension: Vec<(usize, u32)> = vec![];
    while let Some(step) = steps.next() {
        let halves = [step.argument >> 4, step.argument & 15].map(Variable::Local);
        match step.effect {
            StackUse::Local
            | StackUse::Locals
            | StackUse::Name
            | StackUse::Global
            | StackUse::GlobalOrCallee => now.uses.extend(variables(*step)),
            StackUse::ClearedLocal => comprehension.push((step.argument, 2)),
            StackUse::Method | StackUse::AttributeOrMethod => {
                let is_method = step.effect == StackUse::Method;
                let called = method(step.argument >> usize::from(!is_method));
                if called.fills {
                    filled = now.uses.last().copied();
                }
                now.sends |= called.sends;
                continue;
            }
            StackUse::Store => now.sets.push(Variable::Local(step.argument)),
            StackUse::StoreName => now.sets.push(Variable::Name(step.argument)),
            StackUse::Stores => now.sets.extend(halves),
            StackUse::StoreAndLocal => now.sets.push(halves[0]),
            // Which of the values is the object is not worked out.
            StackUse::StoreInto => now.sets.extend(now.uses.clone()),
            StackUse::Drop => now.sets.extend(filled),
            _ => continue,
        }
        let pushes = step.effect == StackUse::StoreAndLocal;
        // All of a comprehension belongs to the value that it is a part of.
        if !comprehension.is_empty() {
            for (local, times) in &mut comprehension {
                let local = Variable::Local(*local);
                let stored = match step.effect {
                    StackUse::Store => local == Variable::Local(step.argument),
                    StackUse::Stores => halves.contains(&local),
                    StackUse::StoreAndLocal => halves[0] == local,
                    _ => false,
                };
                *times -= u32::from(stored);
            }
            comprehension.retain(|(_, times)| *times > 0);
            now.uses.extend(pushes.then_some(halves[1]));
            continue;
        }
        // Several variables may take parts of one value.
        let mut is_last = || !steps.peek().is_some_and(|next| stores(next.effect));
        if step.effect == StackUse::Drop || pushes || (stores(step.effect) && is_last()) {
            now.units.end = step.end;
            all.push(now);
            filled = None;
            now = Assignment {
                units: step.end..step.end,
                uses: pushes.then_some(halves[1]).into_iter().collect(),
                sets: vec![],
                sends: false,
            };
        }
    }
    now.units.end = usize::MAX;
    all.push(now);
    all
}

fn stores(effect: StackUse) -> bool {
    matches!(
        effect,
        StackUse::Store
            | StackUse::StoreName
            | StackUse::Stores
            | StackUse::StoreAndLocal
            | StackUse::StoreInto
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::python::bytecode::from_digits;
    use crate::source::python::opcodes::{V3_11, V3_12, V3_13, V3_14, V3_15};
    use support::fuzz;

    /// Bytecode that CPython made, in hexadecimal digits, with the units of the calls of `read` and of `model`.
    type Compiled = (&'static Opcodes, &'static str, usize, usize);

    /// Whether `model` may use what `read` gives; the same for all versions. The first name is that of a method that fills.
    fn reaches(compiled: [Compiled; 5]) -> Option<bool> {
        let all = compiled.map(|(opcodes, digits, read, model)| {
            let method = |name| MethodUse {
                fills: name == 0,
                sends: false,
            };
            let users = reached(opcodes, &from_digits(digits), read, method)?;
            Some(users.iter().any(|user| user.at.contains(&model)))
        });
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0]
    }

    /// `got = read(); x, y = data.prepare(got); model(x, y)`
    #[test]
    fn a_value_goes_from_variable_to_variable() {
        let compiled = [
            (
                &V3_11,
                "9700090002007c02a6000000ab0000000000000000007d037c00a00000000000000000000000000000000000000000007c03a6010000ab0100000000000000005c0200007d047d0502007c017c047c05a6020000ab02000000000000000001008c2f",
                6,
                42,
            ),
            (
                &V3_12,
                "9700090002007c02ab000000000000007d037c006a010000000000000000000000000000000000007c03ab010000000000005c0200007d047d0502007c017c047c05ab0200000000000001008c25",
                4,
                33,
            ),
            (
                &V3_13,
                "95001e005502220035000000000000006e035500520100000000000000000000000000000000000055033501000000000000750200007045550122005845350200000000000020004d240000",
                4,
                31,
            ),
            (
                &V3_14,
                "80001b00560221003400000000000000713050010000000000000000000000000000000000005603340100000000000077020000724556012100574534020000000000001f004b240000",
                4,
                30,
            ),
            (
                &V3_15,
                "80000000190055021f00320000000000000070304f010000000000000000000000000000000000005503320100000000000076020000714555011f00564532020000000000001d004a240000",
                5,
                31,
            ),
        ];
        assert_eq!(reaches(compiled), Some(true));
    }

    /// `x = data[0]; model(x); got = read(); history.append(got); if got is None: break`
    #[test]
    fn a_value_that_is_only_kept_does_not_reach_the_model() {
        let compiled = [
            (
                &V3_11,
                "970009007c006402190000000000000000007d0402007c017c04a6010000ab010000000000000000010002007c02a6000000ab0000000000000000007d057c03a00000000000000000000000000000000000000000007c05a6010000ab01000000000000000001007c058002640053008c37",
                25,
                15,
            ),
            (
                &V3_12,
                "970009007c006401190000007d0402007c017c04ab01000000000000010002007c02ab000000000000007d057c036a010000000000000000000000000000000000007c05ab0100000000000001007c05800179008c29",
                17,
                10,
            ),
            (
                &V3_13,
                "95001e0055005301050000006e04550122005504350100000000000020005502220035000000000000006e055503520100000000000000000000000000000000000055053501000000000000200055056301000067004d2b0000",
                17,
                10,
            ),
            (
                &V3_14,
                "80001b0056005e002c1a0000000000000000000071412100560434010000000000001f0056022100340000000000000071535001000000000000000000000000000000000000560534010000000000001f005605650300001c004b2e000052012300",
                20,
                13,
            ),
            (
                &V3_15,
                "80000000190055005d002a1a0000000000000000000070411f00550432010000000000001d0055021f00320000000000000070534f01000000000000000000000000000000000000550532010000000000001d005505640300001a004a2e000050072100",
                21,
                14,
            ),
        ];
        assert_eq!(reaches(compiled), Some(false));
    }

    /// `some.append(read()); model(some)`
    fn appended() -> [Compiled; 5] {
        [
            (
                &V3_11,
                "970067007d0209007c02a000000000000000000000000000000000000000000002007c01a6000000ab000000000000000000a6010000ab010000000000000000010002007c007c02a6010000ab01000000000000000001008c29",
                20,
                38,
            ),
            (
                &V3_12,
                "970067007d0209007c026a0100000000000000000000000000000000000002007c01ab00000000000000ab01000000000000010002007c007c02ab0100000000000001008c1f",
                17,
                29,
            ),
            (
                &V3_13,
                "95002f006e021e005502520100000000000000000000000000000000000055012200350000000000000035010000000000002000550022005502350100000000000020004d200000",
                17,
                29,
            ),
            (
                &V3_14,
                "80002e0070021b005602500100000000000000000000000000000000000056012100340000000000000034010000000000001f0056002100560234010000000000001f004b210000",
                17,
                29,
            ),
            (
                &V3_15,
                "800000002c006f02190055024f0100000000000000000000000000000000000055011f00320000000000000032010000000000001d0055001f00550232010000000000001d004a210000",
                18,
                30,
            ),
        ]
    }

    /// `some.append(read()); model(some)`, and `kept[0] = read(); model(kept)`.
    #[test]
    fn a_value_may_be_put_into_an_object() {
        for compiled in [
            appended(),
            [
                (
                    &V3_11,
                    "9700090002007c01a6000000ab0000000000000000007c0264023c00000002007c007c02a6010000ab01000000000000000001008c19",
                    6,
                    20,
                ),
                (
                    &V3_12,
                    "9700090002007c01ab000000000000007c0264013c00000002007c007c02ab0100000000000001008c13",
                    4,
                    15,
                ),
                (
                    &V3_13,
                    "95001e005501220035000000000000005502530127000000550022005502350100000000000020004d140000",
                    4,
                    15,
                ),
                (
                    &V3_14,
                    "80001b0056012100340000000000000056025e002600000056002100560234010000000000001f004b150000",
                    4,
                    15,
                ),
                (
                    &V3_15,
                    "80000000190055011f00320000000000000055025d002400000055001f00550232010000000000001d004a150000",
                    5,
                    16,
                ),
            ],
        ] {
            assert_eq!(reaches(compiled), Some(true));
        }
    }

    /// `some.append(read()); model(some)`, of which the first method sends what it gets.
    #[test]
    fn a_value_may_be_sent() {
        for (opcodes, digits, read, model) in appended() {
            let users = |sends: usize| {
                let method = |name| MethodUse {
                    fills: true,
                    sends: name == sends,
                };
                let users = reached(opcodes, &from_digits(digits), read, method).unwrap();
                let at = |place| users.iter().find(|user| user.at.contains(&place)).unwrap();
                (at(read).sends, at(model).sends)
            };
            assert_eq!(users(0), (true, false));
            assert_eq!(users(9), (false, false));
        }
    }

    /// `x = stack([read(p) for p in paths]); model(x)`, and `y = stack([read(p) for p, q in pairs]); model(x)`.
    #[test]
    fn a_comprehension_is_a_part_of_its_statement() {
        let compiled = [
            (
                &V3_11,
                "87029700090002007c0088026601640284087c014400a6000000ab000000000000000000a6010000ab0100000000000000007d0402007c037c04a6010000ab01000000000000000001008c23",
                13,
                31,
            ),
            (
                &V3_12,
                "9700090002007c007c0144008f046302670063025d0a00007d0402007c027c04ab0100000000000091028c0c040063027d04ab010000000000007d0502007c037c05ab0100000000000001008c256302010063027d047700",
                16,
                33,
            ),
            (
                &V3_13,
                "95001e005500220055011300560473022f007302480a00006f4222005504350100000000000050024d0c00000b00200073026e0435010000000000006f5322005505350100000000000020004d2600007302200073026e046600",
                15,
                33,
            ),
            (
                &V3_14,
                "80001b005400210056011000550475022e007502460a000071422100560434010000000000004e024b0c000009001e0075027004340100000000000071532100560534010000000000001f004b27000075021f00750270046900",
                15,
                33,
            ),
            (
                &V3_15,
                "80000000190053001f005301540474022c00740246000000440a000070421f00550432010000000000004d034a0c000009001c0074026f04320100000000000070531f00550532010000000000001d004a28000074021d0074026f046800",
                17,
                35,
            ),
        ];
        assert_eq!(reaches(compiled), Some(true));
        let compiled = [
            (
                &V3_11,
                "87029700090002007c0088026601640284087c014400a6000000ab000000000000000000a6010000ab0100000000000000007d0502007c037c04a6010000ab01000000000000000001008c23",
                13,
                31,
            ),
            (
                &V3_12,
                "9700090002007c007c0144008f058f066303670063025d0d00005c0200007d057d0602007c027c05ab0100000000000091028c0f040063037d067d05ab010000000000007d0702007c037c04ab0100000000000001008c2a6302010063037d067d057700",
                20,
                38,
            ),
            (
                &V3_13,
                "95001e0055002200550113005605560673032f007302480d0000750200007056550222005505350100000000000050024d0f00000b00200073036e066e0535010000000000006f7322005504350100000000000020004d2b00007302200073036e066e056600",
                19,
                38,
            ),
            (
                &V3_14,
                "80001b0054002100560110005505550675032e007502460d000077020000725656022100560534010000000000004e024b0f000009001e00750370067005340100000000000071732100560434010000000000001f004b2c000075021f007503700670056900",
                19,
                38,
            ),
            (
                &V3_15,
                "80000000190053001f0053015405540674032c00740246000000440d000076020000715655021f00550532010000000000004d034a0f000009001c0074036f066f05320100000000000070731f00550432010000000000001d004a2d000074021d0074036f066f056800",
                21,
                40,
            ),
        ];
        assert_eq!(reaches(compiled), Some(false));
    }

    /// `print(x.n, read()); model(x.y)`, where `print` might put it into `x`.
    #[test]
    fn a_function_may_put_a_value_into_another_object() {
        let compiled = [
            (
                &V3_11,
                "970009007401000000000000000000007c026a01000000000000000002007c01a6000000ab000000000000000000a6020000ab020000000000000000010002007c007c026a020000000000000000a6010000ab01000000000000000001008c2e",
                18,
                41,
            ),
            (
                &V3_12,
                "97000900740100000000000000007c026a0200000000000000000000000000000000000002007c01ab00000000000000ab02000000000000010002007c007c026a04000000000000000000000000000000000000ab0100000000000001008c2e",
                20,
                42,
            ),
            (
                &V3_13,
                "95001e005b01000000000000000055025202000000000000000000000000000000000000550122003500000000000000350200000000000020005500220055025204000000000000000000000000000000000000350100000000000020004d2f0000",
                20,
                42,
            ),
            (
                &V3_14,
                "80001b005c0100000000000000005602500200000000000000000000000000000000000056012100340000000000000034020000000000001f00560021005602500400000000000000000000000000000000000034010000000000001f004b300000",
                20,
                42,
            ),
            (
                &V3_15,
                "8000000019005b01000000000000000055024f0200000000000000000000000000000000000055011f00320000000000000032020000000000001d0055001f0055024f0400000000000000000000000000000000000032010000000000001d004a300000",
                21,
                43,
            ),
        ];
        assert_eq!(reaches(compiled), Some(true));
    }

    /// `read(); model(x)`
    #[test]
    fn a_value_that_is_dropped_goes_nowhere_known() {
        let compiled = [
            (
                &V3_11,
                "9700090002007c01a6000000ab000000000000000000010002007c007c02a6010000ab01000000000000000001008c16",
                6,
                17,
            ),
            (
                &V3_12,
                "9700090002007c01ab00000000000000010002007c007c02ab0100000000000001008c10",
                4,
                12,
            ),
            (
                &V3_13,
                "95001e005501220035000000000000002000550022005502350100000000000020004d110000",
                4,
                12,
            ),
            (
                &V3_14,
                "80001b005601210034000000000000001f0056002100560234010000000000001f004b120000",
                4,
                12,
            ),
            (
                &V3_15,
                "80000000190055011f0032000000000000001d0055001f00550232010000000000001d004a120000",
                5,
                13,
            ),
        ];
        assert_eq!(reaches(compiled), None);
    }

    proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_flow(code: Vec<[u8; 2]>, at in 0..64_usize) {
            for opcodes in [&V3_11, &V3_12, &V3_13, &V3_14, &V3_15] {
                let _ = reached(opcodes, &code, at, |name| MethodUse {
                    fills: name % 2 == 0,
                    sends: name % 3 == 0,
                });
            }
        }
    }
}
