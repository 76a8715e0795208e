//! The open files of one process. Read only while they are on screen, and never recorded: file names are private.

use crate::units::{Bytes, ProcessKey};

/// The files that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFiles {
    pub process: ProcessKey,
    /// By descriptor, the first few dozen; or why they cannot be read.
    pub files: Result<Vec<OpenFile>, String>,
    /// Number of files that were not listed.
    pub more: usize,
}

/// An open regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Path, cleaned of control characters.
    pub path: String,
    /// Offset of the next read, in bytes. Stays 0 for a file that is mapped or read with `pread`.
    pub position: u64,
    /// `None` if the file may be on a network file system, where `stat` could hang.
    pub size: Option<Bytes>,
    /// The file was deleted while open.
    pub deleted: bool,
}
