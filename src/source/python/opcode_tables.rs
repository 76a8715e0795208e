//! What each opcode means in each version.
//!
//! Numbers and caches are those of `Include/opcode.h` (up to 3.10), `Include/opcode.h` and
//! `Include/internal/pycore_opcode.h` (3.11, 3.12: `_PyOpcode_Deopt`, `_PyOpcode_Caches`), `Include/opcode_ids.h` and
//! `Include/internal/pycore_opcode_metadata.h` (3.13), and `Lib/opcode.py` and `Lib/_opcode_metadata.py` (3.14, 3.15). An
//! instruction that is rewritten while it runs counts as the original.

use super::instruction::StackUse;

/// An effect, the number of caches, and ranges of opcodes that have them, as pairs of the first and the last.
pub(super) type Rows = [(StackUse, u8, &'static [u8])];

/// Calls with positional arguments, and with keywords, of a callee below `self` or a null.
const CALL: StackUse = StackUse::Call { below: 2, above: 0 };
const CALL_KW: StackUse = StackUse::Call { below: 2, above: 1 };

/// Instructions that kept their numbers up to 3.12.
pub(super) const UP_TO_3_12: &Rows = &[
    (StackUse::Drop, 0, &[1, 1]),
    // UNARY_NOT, POP_JUMP_IF_FALSE, POP_JUMP_IF_TRUE
    (StackUse::Test, 0, &[12, 12, 114, 115]),
    (StackUse::Nothing, 0, &[9, 9]),
    (StackUse::Extends, 0, &[144, 144]),
    (StackUse::Push(1), 0, &[100, 100]),
    (StackUse::Local, 0, &[124, 124]),
    (StackUse::Store, 0, &[125, 125]),
    (StackUse::StoreName, 0, &[90, 90]),
    // STORE_SUBSCR, STORE_ATTR, STORE_GLOBAL
    (StackUse::StoreInto, 0, &[60, 60, 95, 95, 97, 97]),
    (StackUse::Name, 0, &[101, 101]),
    // LIST_EXTEND, DICT_MERGE
    (StackUse::Join, 0, &[162, 162, 164, 164]),
    (StackUse::Format, 0, &[155, 155]),
    // BUILD_TUPLE, BUILD_LIST, BUILD_STRING
    (StackUse::Build, 0, &[102, 103, 157, 157]),
    (StackUse::BuildPairs, 0, &[105, 105]),
];

pub(super) const UP_TO_3_10: &Rows = &[
    // LIST_TO_TUPLE
    (StackUse::Replace, 0, &[82, 82]),
    // LOAD_DEREF
    (StackUse::Push(1), 0, &[136, 136]),
    // BUILD_TUPLE_UNPACK_WITH_CALL (3.8)
    (StackUse::Build, 0, &[158, 158]),
    // Arithmetic, and BINARY_SUBSCR.
    (StackUse::Join, 0, &[20, 20, 22, 27]),
    (StackUse::Global, 0, &[116, 116]),
    (StackUse::Attribute, 0, &[106, 106]),
    (StackUse::Method, 0, &[160, 160]),
    // CALL_FUNCTION, CALL_FUNCTION_KW, CALL_METHOD
    (StackUse::Call { below: 1, above: 0 }, 0, &[131, 131]),
    (StackUse::Call { below: 1, above: 1 }, 0, &[141, 141]),
    (CALL, 0, &[161, 161]),
    (StackUse::CallUnpacked { below: 1 }, 0, &[142, 142]),
];

pub(super) const SINCE_3_11: &Rows = &[
    (StackUse::Null, 0, &[2, 2]),
    // KW_NAMES
    (StackUse::Nothing, 0, &[172, 172]),
    // LOAD_CLOSURE and LOAD_DEREF, STORE_DEREF
    (StackUse::Local, 0, &[136, 137]),
    (StackUse::Store, 0, &[138, 138]),
    (StackUse::CallUnpacked { below: 2 }, 0, &[142, 142]),
];

pub(super) const ONLY_3_11: &Rows = &[
    // LIST_TO_TUPLE
    (StackUse::Replace, 0, &[82, 82]),
    (StackUse::Extends, 0, &[34, 34]),
    // LOAD_CONST__LOAD_FAST; LOAD_FAST__LOAD_CONST, LOAD_FAST__LOAD_FAST: each is the first of two.
    (StackUse::Push(1), 0, &[44, 44]),
    (StackUse::Local, 0, &[45, 46]),
    // STORE_FAST__LOAD_FAST, STORE_FAST__STORE_FAST
    (StackUse::Store, 0, &[161, 161, 167, 167]),
    (StackUse::GlobalOrCallee, 5, &[47, 48, 55, 55, 116, 116]),
    (StackUse::Attribute, 4, &[39, 43, 106, 106]),
    (StackUse::Method, 10, &[56, 59, 62, 63, 160, 160]),
    // BINARY_SUBSCR, BINARY_OP
    (StackUse::Join, 4, &[17, 21, 25, 25]),
    (StackUse::Join, 1, &[3, 8, 13, 14, 16, 16, 122, 122]),
    (
        StackUse::BeforeCall,
        1,
        &[
            64, 67, 72, 73, 76, 81, 113, 113, 121, 121, 127, 127, 141, 141, 143, 143, 166, 166,
        ],
    ),
    (CALL, 4, &[22, 24, 171, 171]),
    // STORE_SUBSCR, UNPACK_SEQUENCE
    (StackUse::StoreInto, 1, &[60, 60, 168, 170]),
    (StackUse::Other, 1, &[92, 92, 177, 180]),
    // STORE_ATTR, COMPARE_OP
    (StackUse::StoreInto, 4, &[95, 95, 153, 154, 158, 159]),
    (StackUse::Other, 2, &[26, 29, 107, 107]),
    // DO_TRACING
    (StackUse::Hidden, 0, &[255, 255]),
];

pub(super) const ONLY_3_12: &Rows = &[
    // LOAD_CONST__LOAD_FAST
    (StackUse::Push(1), 0, &[84, 84]),
    // LOAD_FAST__LOAD_CONST, LOAD_FAST__LOAD_FAST, LOAD_FAST_CHECK
    (StackUse::Local, 0, &[86, 86, 88, 88, 127, 127]),
    // LOAD_FAST_AND_CLEAR
    (StackUse::ClearedLocal, 0, &[143, 143]),
    // STORE_FAST__LOAD_FAST, STORE_FAST__STORE_FAST
    (StackUse::Store, 0, &[154, 154, 158, 158]),
    // STORE_SUBSCR
    (StackUse::StoreInto, 1, &[60, 60, 159, 160]),
    (StackUse::GlobalOrCallee, 4, &[111, 112, 116, 116]),
    (
        StackUse::AttributeOrMethod,
        9,
        &[70, 70, 72, 73, 76, 82, 106, 106],
    ),
    // BINARY_SUBSCR, BINARY_OP
    (
        StackUse::Join,
        1,
        &[
            19, 22, 25, 25, 6, 8, 10, 10, 13, 14, 16, 16, 18, 18, 122, 122,
        ],
    ),
    // CALL_INTRINSIC_1
    (StackUse::Replace, 0, &[173, 173]),
    (CALL, 3, &[23, 24, 28, 29, 34, 34, 38, 48, 56, 56, 171, 171]),
    // UNPACK_SEQUENCE, FOR_ITER, COMPARE_OP, SEND, LOAD_SUPER_ATTR
    (
        StackUse::Other,
        1,
        &[
            92, 92, 161, 161, 166, 167, 62, 65, 93, 93, 57, 59, 107, 107, 123, 123, 168, 168, 66,
            67, 141, 141,
        ],
    ),
    // STORE_ATTR
    (
        StackUse::StoreInto,
        4,
        &[95, 95, 113, 113, 148, 148, 153, 153],
    ),
    // ENTER_EXECUTOR, INSTRUMENTED_...
    (StackUse::Hidden, 0, &[230, 230, 237, 255]),
];

pub(super) const ONLY_3_13: &Rows = &[
    (StackUse::Nothing, 0, &[30, 30]),
    (StackUse::Extends, 0, &[71, 71]),
    (StackUse::Push(1), 0, &[83, 83]),
    // LOAD_DEREF, LOAD_FAST, LOAD_FAST_CHECK, LOAD_FAST_LOAD_FAST
    (StackUse::Local, 0, &[84, 85, 87, 87]),
    (StackUse::Locals, 0, &[88, 88]),
    // LOAD_FAST_AND_CLEAR
    (StackUse::ClearedLocal, 0, &[86, 86]),
    // STORE_DEREF, STORE_FAST, STORE_FAST_LOAD_FAST, STORE_FAST_STORE_FAST
    (StackUse::Store, 0, &[109, 110]),
    (StackUse::StoreAndLocal, 0, &[111, 111]),
    (StackUse::Stores, 0, &[112, 112]),
    (StackUse::StoreName, 0, &[114, 114]),
    // STORE_GLOBAL, STORE_SUBSCR, STORE_ATTR
    (StackUse::StoreInto, 0, &[113, 113]),
    (StackUse::StoreInto, 1, &[39, 39, 212, 213]),
    (StackUse::StoreInto, 4, &[108, 108, 209, 211]),
    (StackUse::Null, 0, &[34, 34]),
    (StackUse::Name, 0, &[92, 92]),
    (StackUse::GlobalOrCallee, 4, &[91, 91, 203, 204]),
    (StackUse::AttributeOrMethod, 9, &[82, 82, 191, 202]),
    // BINARY_OP, BINARY_SUBSCR
    (StackUse::Join, 1, &[3, 3, 45, 45, 150, 156, 5, 5, 157, 161]),
    // LIST_EXTEND, DICT_MERGE
    (StackUse::Join, 0, &[81, 81, 68, 68]),
    // BUILD_TUPLE, BUILD_STRING, BUILD_LIST
    (StackUse::Build, 0, &[51, 52, 47, 47]),
    (StackUse::BuildPairs, 0, &[48, 48]),
    // FORMAT_SIMPLE, CALL_INTRINSIC_1
    (StackUse::Replace, 0, &[14, 14, 55, 55]),
    (CALL, 3, &[53, 53, 162, 181]),
    (CALL_KW, 0, &[57, 57]),
    (StackUse::CallUnpacked { below: 2 }, 0, &[54, 54]),
    // JUMP_BACKWARD, SEND, UNPACK_SEQUENCE, LOAD_SUPER_ATTR, COMPARE_OP, CONTAINS_OP, POP_JUMP_..., FOR_ITER
    (
        StackUse::Other,
        1,
        &[
            77, 77, 104, 104, 208, 208, 117, 117, 220, 222, 93, 93, 205, 206, 58, 59, 182, 186, 97,
            100, 72, 72, 187, 190,
        ],
    ),
    (StackUse::Drop, 0, &[32, 32]),
    // TO_BOOL
    (StackUse::Test, 3, &[40, 40, 214, 219]),
    // ENTER_EXECUTOR, INSTRUMENTED_...
    (StackUse::Hidden, 0, &[70, 70, 236, 255]),
];

pub(super) const ONLY_3_14: &Rows = &[
    // NOP, NOT_TAKEN
    (StackUse::Nothing, 0, &[27, 28]),
    (StackUse::Extends, 0, &[69, 69]),
    // LOAD_COMMON_CONSTANT, LOAD_CONST, LOAD_SMALL_INT
    (StackUse::Push(1), 0, &[81, 82, 190, 191, 94, 94]),
    // LOAD_DEREF, LOAD_FAST, LOAD_FAST_BORROW, LOAD_FAST_CHECK
    (StackUse::Local, 0, &[83, 84, 86, 86, 88, 88]),
    // LOAD_FAST_BORROW_LOAD_FAST_BORROW, LOAD_FAST_LOAD_FAST
    (StackUse::Locals, 0, &[87, 87, 89, 89]),
    // LOAD_FAST_AND_CLEAR
    (StackUse::ClearedLocal, 0, &[85, 85]),
    // STORE_DEREF, STORE_FAST, STORE_FAST_LOAD_FAST, STORE_FAST_STORE_FAST
    (StackUse::Store, 0, &[111, 112]),
    (StackUse::StoreAndLocal, 0, &[113, 113]),
    (StackUse::Stores, 0, &[114, 114]),
    (StackUse::StoreName, 0, &[116, 116]),
    // STORE_GLOBAL, STORE_SUBSCR, STORE_ATTR
    (StackUse::StoreInto, 0, &[115, 115]),
    (StackUse::StoreInto, 1, &[38, 38, 201, 202]),
    (StackUse::StoreInto, 4, &[110, 110, 198, 200]),
    (StackUse::Null, 0, &[33, 33]),
    (StackUse::Name, 0, &[93, 93]),
    (StackUse::GlobalOrCallee, 4, &[92, 92, 192, 193]),
    (StackUse::AttributeOrMethod, 9, &[80, 80, 177, 189]),
    // BINARY_OP
    (StackUse::Join, 5, &[44, 44, 3, 3, 129, 142]),
    // LIST_EXTEND, DICT_MERGE
    (StackUse::Join, 0, &[79, 79, 66, 66]),
    // BUILD_TUPLE, BUILD_STRING, BUILD_LIST
    (StackUse::Build, 0, &[50, 51, 46, 46]),
    (StackUse::BuildPairs, 0, &[47, 47]),
    // FORMAT_SIMPLE, CALL_INTRINSIC_1
    (StackUse::Replace, 0, &[12, 12, 53, 53]),
    (CALL, 3, &[52, 52, 143, 150, 154, 165]),
    (CALL_KW, 3, &[55, 55, 151, 153]),
    // CALL_FUNCTION_EX has no argument: tuple and dict, or nothing in its place.
    (StackUse::Call { below: 2, above: 2 }, 0, &[4, 4]),
    // SEND, UNPACK_SEQUENCE, LOAD_SUPER_ATTR, COMPARE_OP, CONTAINS_OP, FOR_ITER, JUMP_BACKWARD, POP_JUMP_...
    (
        StackUse::Other,
        1,
        &[
            106, 106, 197, 197, 119, 119, 209, 211, 96, 96, 194, 195, 56, 57, 166, 170, 70, 70,
            171, 174, 75, 75, 175, 176, 100, 103,
        ],
    ),
    (StackUse::Drop, 0, &[31, 31]),
    // TO_BOOL
    (StackUse::Test, 3, &[39, 39, 203, 208]),
    // INSTRUMENTED_..., ENTER_EXECUTOR
    (StackUse::Hidden, 0, &[234, 255]),
];

pub(super) const ONLY_3_15: &Rows = &[
    // NOP, NOT_TAKEN
    (StackUse::Nothing, 0, &[25, 26]),
    (StackUse::Extends, 0, &[67, 67]),
    // LOAD_COMMON_CONSTANT, LOAD_CONST, LOAD_SMALL_INT
    (StackUse::Push(1), 0, &[80, 81, 93, 93]),
    // LOAD_DEREF, LOAD_FAST, LOAD_FAST_BORROW, LOAD_FAST_CHECK
    (StackUse::Local, 0, &[82, 83, 85, 85, 87, 87]),
    // LOAD_FAST_BORROW_LOAD_FAST_BORROW, LOAD_FAST_LOAD_FAST
    (StackUse::Locals, 0, &[86, 86, 88, 88]),
    // LOAD_FAST_AND_CLEAR
    (StackUse::ClearedLocal, 0, &[84, 84]),
    // STORE_DEREF, STORE_FAST, STORE_FAST_LOAD_FAST, STORE_FAST_STORE_FAST
    (StackUse::Store, 0, &[110, 111]),
    (StackUse::StoreAndLocal, 0, &[112, 112]),
    (StackUse::Stores, 0, &[113, 113]),
    (StackUse::StoreName, 0, &[115, 115]),
    // STORE_GLOBAL, STORE_SUBSCR, STORE_ATTR
    (StackUse::StoreInto, 0, &[114, 114]),
    (StackUse::StoreInto, 1, &[36, 36, 208, 209]),
    (StackUse::StoreInto, 4, &[109, 109, 205, 207]),
    (StackUse::Null, 0, &[31, 31]),
    (StackUse::Name, 0, &[92, 92]),
    (StackUse::GlobalOrCallee, 4, &[91, 91, 196, 197]),
    (StackUse::AttributeOrMethod, 9, &[79, 79, 183, 195]),
    // BINARY_OP
    (StackUse::Join, 5, &[42, 42, 3, 3, 129, 143]),
    // LIST_EXTEND, DICT_MERGE
    (StackUse::Join, 0, &[78, 78, 64, 64]),
    // BUILD_TUPLE, BUILD_STRING, BUILD_LIST
    (StackUse::Build, 0, &[48, 49, 44, 44]),
    (StackUse::BuildPairs, 0, &[45, 45]),
    // FORMAT_SIMPLE, CALL_INTRINSIC_1
    (StackUse::Replace, 0, &[12, 12, 51, 51]),
    (CALL, 3, &[50, 50, 144, 150, 153, 153, 157, 168]),
    (CALL_KW, 3, &[53, 53, 154, 156]),
    // CALL_FUNCTION_EX, as in 3.14
    (StackUse::Call { below: 2, above: 2 }, 1, &[4, 4, 151, 152]),
    // SEND, UNPACK_SEQUENCE, LOAD_SUPER_ATTR, COMPARE_OP, CONTAINS_OP, FOR_ITER, GET_ITER, JUMP_BACKWARD, POP_JUMP_..., RESUME
    (
        StackUse::Other,
        1,
        &[
            105, 105, 202, 204, 118, 118, 216, 218, 95, 95, 198, 199, 54, 55, 169, 173, 68, 68,
            174, 178, 70, 70, 179, 180, 74, 74, 181, 182, 99, 102, 128, 128, 200, 201,
        ],
    ),
    (StackUse::Drop, 0, &[29, 29]),
    // TO_BOOL
    (StackUse::Test, 3, &[37, 37, 210, 215]),
    // INSTRUMENTED_..., ENTER_EXECUTOR, TRACE_RECORD
    (StackUse::Hidden, 0, &[233, 255]),
];
