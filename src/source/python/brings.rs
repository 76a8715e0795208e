//! Which calls on a stack bring something to their callers: the caller keeps the return value, and passes no tensor.
//! Does not know what a thread is blocked in, nor where a training loop asks for its batches.

use std::ops::Range;

use super::PythonError;
use super::code::Code;
use super::frame::Frame;
use super::layout::LIST_ITEMS;
use super::memory::Memory;

/// Folders of packages that compute: a function there loads no data, unless it reads a file.
const COMPUTE: [&str; 4] = ["/torch/", "/jax/", "/jaxlib/", "/tensorflow/"];
/// Names of the types that programs compute with. That of a `numpy` array includes its module.
const TENSORS: [&str; 5] = [
    "Tensor",
    "Parameter",
    "numpy.ndarray",
    "ArrayImpl",
    "EagerTensor",
];
/// Modules that are no library: none, the program's own, and that of Python's own functions and types.
const NO_LIBRARY: [&str; 3] = ["", "__main__", "builtins"];
/// Depth to which a tensor is searched for: one in a list of tuples is found.
const DEPTH: u32 = 3;
/// Maximum number of a dict's values among which a tensor is searched for.
const VALUES: usize = 8;

/// Returns the indices (innermost first) of the frames whose calls bring something to their callers, which are
/// functions of the program's own: from the innermost own function outwards, as long as each brings something to its
/// caller. If that is none, the library function that the innermost own function calls, if it brings something.
pub(super) fn brings(frames: &[Frame], memory: &Memory) -> Range<usize> {
    let Some(own) = frames.iter().position(|frame| !frame.code.library) else {
        return 0..0;
    };
    if frames[..own].iter().any(computes) {
        return 0..0;
    }
    let is_brought = |called: usize| {
        frames
            .get(called + 1)
            .is_some_and(|caller| is_brought(&frames[called], caller, memory).unwrap_or(false))
    };
    let more = (own..frames.len()).take_while(|called| is_brought(*called));
    match own..own + more.count() {
        none if none.is_empty() && own > 0 && is_brought(own - 1) => own - 1..own,
        some => some,
    }
}

/// Returns the indices (innermost first) of the frames that give their callers something and compute nothing.
pub(super) fn gives(frames: &[Frame], memory: &Memory) -> impl Iterator<Item = usize> {
    let frames = frames.iter().zip(frames.iter().skip(1));
    let frames = frames.take_while(|(called, _)| !computes(called));
    let gives = |(called, caller)| is_brought(called, caller, memory).unwrap_or(false);
    let indexed = frames.map(gives).enumerate();
    indexed.filter_map(|(called, gives)| gives.then_some(called))
}

/// Whether this call, the innermost, is in a function of a library that is written in C, gives it something and gets no
/// tensor.
pub(super) fn is_given_in_c(frame: &Frame, memory: &Memory) -> Result<bool, PythonError> {
    if frame.code.library || frame.keeps(memory)? != Some(true) {
        return Ok(false);
    }
    let Some((callee, arguments)) = frame.call_in_progress(memory)? else {
        return Ok(false);
    };
    let module = memory.module_of(callee)?.unwrap_or_default();
    let package = module.split('.').next().unwrap_or_default();
    if NO_LIBRARY.contains(&package) || COMPUTE.iter().any(|it| it.trim_matches('/') == package) {
        return Ok(false);
    }
    for object in std::iter::once(callee).chain(arguments) {
        if holds_tensor(object, DEPTH, memory)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn computes(frame: &Frame) -> bool {
    let Code {
        library,
        place,
        meaning,
        ..
    } = &*frame.code;
    *library && !meaning.reads && COMPUTE.iter().any(|folder| place.file.contains(folder))
}

fn is_brought(called: &Frame, caller: &Frame, memory: &Memory) -> Result<bool, PythonError> {
    if caller.code.library || caller.keeps(memory)? != Some(true) {
        return Ok(false);
    }
    for argument in called.arguments(memory)? {
        if holds_tensor(argument, DEPTH, memory)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the program waits for a call that it submitted before and drops the result: such a call was made for its
/// effect, such as to write a checkpoint. False if that is not known.
pub(super) fn drops_result(frames: &[Frame], memory: &Memory) -> bool {
    let own = frames.iter().position(|frame| !frame.code.library);
    own.is_some_and(|own| {
        let called = own.checked_sub(1).map(|called| &frames[called]);
        called.is_some_and(|called| called.code.meaning.result)
            && (frames[own].keeps(memory)).is_ok_and(|kept| kept == Some(false))
    })
}

/// Whether an object is a tensor, a list or tuple whose first item is or holds one, or a dict of which one of the first
/// values is or holds one.
fn holds_tensor(object: usize, depth: u32, memory: &Memory) -> Result<bool, PythonError> {
    let name = memory.type_name_of(object)?;
    let items = match name.as_str() {
        "list" => memory.word(object.wrapping_add(LIST_ITEMS))?,
        "tuple" => object.wrapping_add(memory.layout.tuple_items),
        "dict" if depth > 0 => {
            for (_, value) in memory.items_of_dict(object)?.into_iter().take(VALUES) {
                if holds_tensor(value, depth - 1, memory)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        _ => return Ok(TENSORS.contains(&name.as_str())),
    };
    if depth == 0 || memory.len(object)? == 0 {
        return Ok(false);
    }
    holds_tensor(memory.word(items)?, depth - 1, memory)
}
