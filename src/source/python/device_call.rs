//! What a thread does with its device in a function written in C, which has no frame: `Tensor.item` waits, for example.
//!
//! Depends on the name that is called alone: who asks must know that there is a device.

use std::collections::HashMap;

use super::PythonError;
use super::frames::Frame;
use super::memory::Memory;
use crate::loaders::Names;

/// Maximum number of known places, and the polls that they are known for: a code object may have the address of another
/// one that was freed meanwhile.
const MAX_PLACES: usize = 4096;
const POLLS_TO_CACHE: u32 = 2000;

/// Places in code where something was called.
#[derive(Debug, Default)]
pub(super) struct DeviceCalls {
    /// Keyed by the address of the code and the unit in it.
    known: HashMap<(usize, usize), Option<&'static str>>,
    polls: u32,
}

impl DeviceCalls {
    /// Returns what the innermost frame does in a function without a frame. `None` if it is in none, or in one that means
    /// nothing.
    pub(super) fn of(
        &mut self,
        memory: &Memory,
        innermost: &Frame,
    ) -> Result<Option<&'static str>, PythonError> {
        self.polls += 1;
        if self.polls.is_multiple_of(POLLS_TO_CACHE) || self.known.len() > MAX_PLACES {
            self.known.clear();
        }
        let Some(unit) = innermost.unit(memory)? else {
            return Ok(None);
        };
        let place = (innermost.code.at, unit);
        if let Some(known) = self.known.get(&place) {
            return Ok(*known);
        }
        let called = innermost.code.called(memory, unit)?;
        let means = called.and_then(|name| Names::known().device_call(&name));
        self.known.insert(place, means);
        Ok(means)
    }
}
