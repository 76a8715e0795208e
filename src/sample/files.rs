//! What one process has open. Read only while somebody looks at it, and never recorded: the names of files are the
//! user's own.

use crate::units::{Bytes, ProcessKey};

/// The files that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFiles {
    pub process: ProcessKey,
    /// By descriptor, the first some dozens; or why they cannot be read.
    pub files: Result<Vec<OpenFile>, String>,
    /// Files that were not listed.
    pub more: usize,
}

/// A regular file that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Cleaned of control characters.
    pub path: String,
    /// Where the next read begins, in bytes. A file that is mapped or read in place leaves it at 0.
    pub position: u64,
    /// `None` where the file system may be a server's: asking could hang.
    pub size: Option<Bytes>,
    /// The file has no name any more.
    pub deleted: bool,
}
