//! Python objects read from another process: words, strings, integers, types, attributes.
//!
//! Every read is one `process_vm_readv` of a running process and may see half a change, so each result is checked for
//! plausibility; [`PythonError::Torn`] means that it was not plausible. Depends on CPython's objects, not on loaders.

use std::io;

use remoteprocess::{Process, ProcessMemory};

use super::PythonError;
use super::layout::{Layout, LongLayout};
use crate::units::Pid;

pub(super) const WORD: usize = 8;
pub(super) const OB_TYPE: usize = 8;
/// `ob_size` of a list, a tuple or a deque, and `ma_used` of a dict.
const OB_SIZE: usize = 16;
const TP_NAME: usize = 24;
/// Maximum length of a text: enough for every name worth showing.
const MAX_CHARACTERS: usize = 1024;
/// Minimum size of a page of memory, in bytes.
const PAGE: usize = 4096;
/// Maximum number of entries of a dict: enough for every instance of a loader.
pub(super) const MAX_ENTRIES: usize = 4096;

/// The memory of one Python process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) pid: Pid,
    pub(super) layout: &'static Layout,
}

impl Memory {
    pub(super) fn torn(&self) -> PythonError {
        PythonError::Torn(self.pid)
    }

    pub(super) fn words<const N: usize>(&self, at: usize) -> Result<[usize; N], PythonError> {
        let process = Process { pid: self.pid.0 };
        process.copy_struct(at).map_err(|error| self.error(error))
    }

    pub(super) fn word(&self, at: usize) -> Result<usize, PythonError> {
        self.words::<1>(at).map(|[word]| word)
    }

    /// Fills `buffer` with the bytes from `at` on.
    pub(super) fn fill(&self, at: usize, buffer: &mut [u8]) -> Result<(), PythonError> {
        let process = Process { pid: self.pid.0 };
        process.read(at, buffer).map_err(|error| self.error(error))
    }

    fn bytes(&self, at: usize, length: usize) -> Result<Vec<u8>, PythonError> {
        let process = Process { pid: self.pid.0 };
        process.copy(at, length).map_err(|error| self.error(error))
    }

    /// Reads `count` words from `at` on.
    pub(super) fn array(&self, at: usize, count: usize) -> Result<Vec<usize>, PythonError> {
        if count > 2 * MAX_ENTRIES {
            return Err(self.torn());
        }
        let bytes = self.bytes(at, count * WORD)?;
        let (words, _) = bytes.as_chunks();
        Ok(words.iter().copied().map(usize::from_ne_bytes).collect())
    }

    fn error(&self, error: remoteprocess::Error) -> PythonError {
        let remoteprocess::Error::IOError(error) = error else {
            return self.torn();
        };
        match error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::SRCH) => PythonError::Gone(self.pid),
            _ if error.kind() == io::ErrorKind::NotFound => PythonError::Gone(self.pid),
            _ if error.kind() == io::ErrorKind::PermissionDenied => PythonError::NoRight(self.pid),
            _ => self.torn(),
        }
    }

    pub(super) fn type_of(&self, object: usize) -> Result<usize, PythonError> {
        self.word(object.wrapping_add(OB_TYPE))
    }

    /// Reads the number of objects in a list, tuple, deque or dict.
    pub(super) fn len(&self, object: usize) -> Result<usize, PythonError> {
        self.word(object.wrapping_add(OB_SIZE))
    }

    /// Reads `tp_name`: without the module for classes written in Python.
    pub(super) fn type_name(&self, of_type: usize) -> Result<String, PythonError> {
        let name = self.word(of_type.wrapping_add(TP_NAME))?;
        // A name may be at the end of a mapping, so the first read stays within its page.
        let to_page_end = PAGE - name % PAGE;
        let mut bytes = self.bytes(name, to_page_end.min(64))?;
        if !bytes.contains(&0) && bytes.len() < 64 {
            bytes.extend(self.bytes(name.wrapping_add(to_page_end), 64 - to_page_end)?);
        }
        let end = bytes
            .iter()
            .position(|byte| *byte == 0)
            .ok_or(self.torn())?;
        String::from_utf8(bytes[..end].to_vec()).map_err(|_| self.torn())
    }

    /// Like [`Memory::type_name`], of an object's type.
    pub(super) fn type_name_of(&self, object: usize) -> Result<String, PythonError> {
        self.type_name(self.type_of(object)?)
    }

    /// Reads the text of a `str`.
    pub(super) fn text(&self, object: usize) -> Result<String, PythonError> {
        let [_, _, length, _, state] = self.words(object)?;
        if length > MAX_CHARACTERS || state & 0x20 == 0 {
            return Err(self.torn());
        }
        let (is_ascii, width) = (state & 0x40 != 0, (state >> 2) & 7);
        let header = if is_ascii {
            self.layout.ascii_header
        } else {
            self.layout.unicode_header
        };
        let bytes = self.bytes(object.wrapping_add(header), length * width)?;
        match width {
            1 => Ok(bytes.into_iter().map(char::from).collect()),
            2 => {
                let units = bytes
                    .chunks_exact(2)
                    .map(|pair| u16::from_ne_bytes([pair[0], pair[1]]));
                Ok(char::decode_utf16(units)
                    .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect())
            }
            4 => {
                let points = bytes
                    .chunks_exact(4)
                    .map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]));
                Ok(points
                    .map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect())
            }
            _ => Err(self.torn()),
        }
    }

    /// Reads the value and the type of an `int` or `bool` of at most 60 bits, in one read.
    pub(super) fn integer(&self, object: usize) -> Result<(i64, usize), PythonError> {
        let [_, of_type, size, digits] = self.words(object)?;
        let value = long(self.layout.long, size, digits).ok_or(self.torn())?;
        Ok((value, of_type))
    }

    /// Reads the addresses of the objects in a tuple.
    pub(super) fn items(&self, tuple: usize) -> Result<Vec<usize>, PythonError> {
        let count = self.len(tuple)?;
        self.array(tuple.wrapping_add(self.layout.tuple_items), count)
    }
}

/// Words of the page that was read last: the frames of a stack are mostly next to each other, so one read serves several.
#[derive(Debug, Default)]
pub(super) struct LastPage {
    from: usize,
    bytes: Vec<u8>,
}

impl LastPage {
    /// Returns the words at `at`. If those read last do not include them, reads from the beginning of the first word's
    /// page up to the last word.
    pub(super) fn words<const N: usize>(
        &mut self,
        memory: &Memory,
        at: usize,
    ) -> Result<[usize; N], PythonError> {
        let size = N * WORD;
        let offset = at.wrapping_sub(self.from);
        let end = offset.checked_add(size);
        if end.is_none_or(|end| end > self.bytes.len()) {
            self.from = at - at % PAGE;
            self.bytes.resize(at % PAGE + size, 0);
            if let Err(error) = memory.fill(self.from, &mut self.bytes) {
                self.bytes.clear();
                return Err(error);
            }
        }
        let (held, _) = self.bytes[at - self.from..].as_chunks();
        Ok(std::array::from_fn(|place| {
            usize::from_ne_bytes(held[place])
        }))
    }
}

/// Returns the value of a `PyLongObject` of at most two digits of 30 bits.
fn long(layout: LongLayout, size: usize, digits: usize) -> Option<i64> {
    let (count, is_negative) = match layout {
        LongLayout::SignedSize => {
            let signed = size.cast_signed();
            (signed.unsigned_abs(), signed < 0)
        }
        LongLayout::Tag => (size >> 3, size & 3 == 2),
    };
    let low = digits & 0x3fff_ffff;
    let high = (digits >> 32) & 0x3fff_ffff;
    let value = i64::try_from(match count {
        0 => 0,
        1 => low,
        2 => low | high << 30,
        _ => return None,
    })
    .ok()?;
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_both_layouts() {
        let two_digits = 5 | 7 << 32;
        for (layout, zero, one, minus_one, two, many) in [
            (LongLayout::SignedSize, 0, 1, usize::MAX, 2, 3),
            (LongLayout::Tag, 1, 8, 8 | 2, 16, 24),
        ] {
            assert_eq!(long(layout, zero, 99), Some(0));
            assert_eq!(long(layout, one, 99), Some(99));
            assert_eq!(long(layout, minus_one, 99), Some(-99));
            assert_eq!(long(layout, two, two_digits), Some(5 + (7 << 30)));
            assert_eq!(long(layout, many, 99), None);
        }
    }
}
