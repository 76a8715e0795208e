//! The addresses of the attributes of an instance of a plain Python class, which are in a dict, or are values whose
//! names the class holds.
//!
//! Each version of CPython stores them differently. Once found, they are read again by address as long as the guards
//! hold.

use std::collections::HashMap;

use super::PythonError;
use super::layout::{InstanceLayout, KeysLayout, TP_FLAGS};
use super::memory::{MAX_ENTRIES, Memory, OB_TYPE, WORD};

const TP_DICTOFFSET: usize = 288;
const INLINE_VALUES: usize = 1 << 2;
const MANAGED_DICT: usize = 1 << 4;
const MA_KEYS: usize = 32;

/// Addresses of the attributes of one instance, and what must hold for them to stay valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    /// Addresses of words and their values: the type, the dict, its keys.
    guards: Vec<(usize, usize)>,
    /// Attribute name to the address of the word that points to the value.
    slots: HashMap<String, usize>,
}

impl Attributes {
    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        self.slots.get(name).copied()
    }
}

impl Memory {
    /// Returns key and address of the value's slot for every used entry of a dict.
    pub(super) fn entries(&self, dict: usize) -> Result<Vec<(usize, usize)>, PythonError> {
        let [keys, values] = self.words(dict.wrapping_add(MA_KEYS))?;
        let values = match (values, self.layout.instance) {
            (0, _) => None,
            (at, InstanceLayout::Inline) => Some(at.wrapping_add(WORD)),
            (at, _) => Some(at),
        };
        self.entries_of_keys(keys, values)
    }

    /// Returns keys and values of a dict, in three reads. Empty if the dict shares its keys with others, which that of
    /// a module never does.
    pub(super) fn items_of_dict(&self, dict: usize) -> Result<Vec<(usize, usize)>, PythonError> {
        let [keys, values] = self.words(dict.wrapping_add(MA_KEYS))?;
        if values != 0 {
            return Ok(vec![]);
        }
        let (_, stride, raw) = self.raw_entries(keys)?;
        let entries = raw.chunks_exact(stride);
        let items = entries.map(|entry| (entry[stride - 2], entry[stride - 1]));
        Ok(items.filter(|(_, value)| *value != 0).collect())
    }

    /// Like [`entries`](Self::entries), for keys whose values may be stored separately.
    fn entries_of_keys(
        &self,
        keys: usize,
        values: Option<usize>,
    ) -> Result<Vec<(usize, usize)>, PythonError> {
        let (start, stride, raw) = self.raw_entries(keys)?;
        let key_word = stride - 2;
        Ok(raw
            .chunks_exact(stride)
            .enumerate()
            .map(|(index, entry)| {
                let own = start + (index * stride + key_word + 1) * WORD;
                (
                    entry[key_word],
                    values.map_or(own, |values| values.wrapping_add(index * WORD)),
                )
            })
            .filter(|(key, _)| *key != 0)
            .collect())
    }

    /// Returns the address of a dict's first entry, the words of an entry (key and value are the last two), and all
    /// entries.
    fn raw_entries(&self, keys: usize) -> Result<(usize, usize, Vec<usize>), PythonError> {
        let header = self.words(keys)?;
        let shape = keys_shape(self.layout.keys, header).ok_or(self.torn())?;
        let start = keys.wrapping_add(shape.entries);
        let raw = self.array(start, shape.count * shape.stride)?;
        Ok((start, shape.stride, raw))
    }

    /// Finds the attributes of an instance of a plain Python class.
    pub(super) fn attributes(&self, object: usize) -> Result<Attributes, PythonError> {
        let of_type = self.type_of(object)?;
        let mut guards = vec![(object.wrapping_add(OB_TYPE), of_type)];
        let entries = self.named_slots(object, of_type, &mut guards)?;
        let mut slots = HashMap::with_capacity(entries.len());
        for (key, slot) in entries {
            slots.insert(self.text(key)?, slot);
        }
        Ok(Attributes { guards, slots })
    }

    /// Returns the objects that the attributes of an instance hold, without their names; at most `most`.
    pub(super) fn values(&self, object: usize, most: usize) -> Result<Vec<usize>, PythonError> {
        let of_type = self.type_of(object)?;
        let slots = self.named_slots(object, of_type, &mut vec![])?;
        let slots = slots.into_iter().take(most);
        let values = slots.map(|(_, slot)| self.word(slot));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        Ok(values.into_iter().filter(|value| *value != 0).collect())
    }

    /// Returns name and address of the value's slot for every attribute.
    fn named_slots(
        &self,
        object: usize,
        of_type: usize,
        guards: &mut Vec<(usize, usize)>,
    ) -> Result<Vec<(usize, usize)>, PythonError> {
        match self.instance_dict(object, of_type, guards)? {
            InstanceDict::Dict(dict) => {
                for at in [MA_KEYS, MA_KEYS + WORD].map(|offset| dict.wrapping_add(offset)) {
                    guards.push((at, self.word(at)?));
                }
                self.entries(dict)
            }
            InstanceDict::Values(values) => {
                let keys = self.word(of_type.wrapping_add(self.layout.cached_keys))?;
                self.entries_of_keys(keys, Some(values))
            }
        }
    }

    fn instance_dict(
        &self,
        object: usize,
        of_type: usize,
        guards: &mut Vec<(usize, usize)>,
    ) -> Result<InstanceDict, PythonError> {
        let mut guarded = |at: usize| -> Result<usize, PythonError> {
            let word = self.word(at)?;
            guards.push((at, word));
            Ok(word)
        };
        let flags = self.word(of_type.wrapping_add(TP_FLAGS))?;
        let managed =
            self.layout.instance != InstanceLayout::DictOffset && flags & MANAGED_DICT != 0;
        if !managed {
            let offset = self.word(of_type.wrapping_add(TP_DICTOFFSET))?;
            if offset == 0 || offset > MAX_ENTRIES {
                return Err(self.torn());
            }
            return Ok(InstanceDict::Dict(guarded(object.wrapping_add(offset))?));
        }
        let dict = guarded(object.wrapping_sub(3 * WORD))?;
        match self.layout.instance {
            InstanceLayout::ValuesBefore if dict == 0 => Ok(InstanceDict::Values(guarded(
                object.wrapping_sub(4 * WORD),
            )?)),
            InstanceLayout::Tagged if dict & 1 == 1 => {
                Ok(InstanceDict::Values(dict.wrapping_add(1)))
            }
            InstanceLayout::Inline if dict == 0 && flags & INLINE_VALUES != 0 => {
                Ok(InstanceDict::Values(object.wrapping_add(3 * WORD)))
            }
            _ => Ok(InstanceDict::Dict(dict)),
        }
    }

    /// Returns the object that an attribute holds; `None` if the instance has no such attribute.
    pub(super) fn attribute(
        &self,
        of: &Attributes,
        name: &str,
    ) -> Result<Option<usize>, PythonError> {
        match of.slot(name) {
            Some(slot) => Ok(Some(self.word(slot)?).filter(|object| *object != 0)),
            None => Ok(None),
        }
    }

    /// Like [`Memory::attribute`], of an object of which nothing else is needed.
    pub(super) fn attribute_of(
        &self,
        object: usize,
        name: &str,
    ) -> Result<Option<usize>, PythonError> {
        self.attribute(&self.attributes(object)?, name)
    }

    /// Whether the attributes are still where they were found.
    pub(super) fn holds(&self, attributes: &Attributes) -> Result<bool, PythonError> {
        for (at, value) in &attributes.guards {
            if self.word(*at)? != *value {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

enum InstanceDict {
    Dict(usize),
    /// Address of the first value; the type's shared keys name them.
    Values(usize),
}

#[derive(Debug, PartialEq, Eq)]
struct KeysShape {
    /// Offset of the first entry.
    entries: usize,
    count: usize,
    /// Words per entry; key and value are the last two.
    stride: usize,
}

/// Parses the header of a `PyDictKeysObject`; `None` if it is implausible.
fn keys_shape(layout: KeysLayout, header: [usize; 5]) -> Option<KeysShape> {
    let (entries, count, stride) = match layout {
        KeysLayout::Wide => {
            let size = header[1];
            let index_bytes = match size {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                _ => 4,
            };
            (
                size.checked_mul(index_bytes)?.checked_add(40)?,
                header[4],
                3,
            )
        }
        KeysLayout::Compact => {
            let [_, log_index_bytes, kind, ..] = header[1].to_ne_bytes();
            let indices = 1_usize.checked_shl(u32::from(log_index_bytes))?;
            (32 + indices, header[3], if kind == 0 { 3 } else { 2 })
        }
    };
    (count <= MAX_ENTRIES && entries <= 1 << 20).then_some(KeysShape {
        entries,
        count,
        stride,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_keys_are_rejected() {
        let compact = usize::from_ne_bytes([6, 6, 1, 0, 0, 0, 0, 0]);
        let shape = KeysShape {
            entries: 96,
            count: 37,
            stride: 2,
        };
        assert_eq!(
            keys_shape(KeysLayout::Compact, [1, compact, 0, 37, 0]),
            Some(shape)
        );
        let shape = KeysShape {
            entries: 104,
            count: 37,
            stride: 3,
        };
        assert_eq!(keys_shape(KeysLayout::Wide, [1, 64, 0, 0, 37]), Some(shape));
        assert_eq!(
            keys_shape(KeysLayout::Wide, [1, usize::MAX, 0, 0, 37]),
            None
        );
        assert_eq!(
            keys_shape(KeysLayout::Compact, [1, usize::MAX, 0, 37, 0]),
            None
        );
        assert_eq!(
            keys_shape(KeysLayout::Compact, [1, compact, 0, usize::MAX, 0]),
            None
        );
    }
}
