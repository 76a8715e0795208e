//! Which module an object comes from. Does not know who uses it.

use super::PythonError;
use super::layout::{HEAP_TYPE, TP_DICT, TP_FLAGS};
use super::memory::Memory;

/// `md_dict` of a module.
const MD_DICT: usize = 16;
/// `m_module` of a function written in C: a name, or 0 for a method.
const M_MODULE: usize = 32;

impl Memory {
    /// Returns the name of the module that an object is, that a function written in C belongs to, or that defines the type of
    /// any other object. `None` if it is not known, as for types that are part of the interpreter.
    pub(super) fn module_of(&self, object: usize) -> Result<Option<String>, PythonError> {
        let of_type = self.type_of(object)?;
        let name = self.type_name(of_type)?;
        match name.as_str() {
            "module" => self.text_in(self.word(object.wrapping_add(MD_DICT))?, "__name__"),
            "builtin_function_or_method" | "cython_function_or_method" => {
                match self.word(object.wrapping_add(M_MODULE))? {
                    0 => Ok(None),
                    module => self.text(module).map(Some),
                }
            }
            _ if self.word(of_type.wrapping_add(TP_FLAGS))? & HEAP_TYPE != 0 => {
                self.text_in(self.word(of_type.wrapping_add(TP_DICT))?, "__module__")
            }
            _ => Ok(name.rsplit_once('.').map(|(module, _)| module.to_owned())),
        }
    }

    /// Returns the text that a dict holds for a key.
    fn text_in(&self, dict: usize, key: &str) -> Result<Option<String>, PythonError> {
        for (name, value) in self.items_of_dict(dict)? {
            if self.text(name)? == key {
                return self.text(value).map(Some);
            }
        }
        Ok(None)
    }
}
