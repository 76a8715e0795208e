//! Errors of a data set: one line for what failed, one for what to do.

use std::io;
use std::path::PathBuf;

use crate::units::Bytes;

/// Displayed as one line without a full stop; [`DatasetError::hint`] is the other line.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("cannot create a data set in {}: {why}", .folder.display())]
    Unwritable { folder: PathBuf, why: io::Error },
    /// The disk or the user's quota is full. `free` is `None` if the file system does not report it.
    #[error("no space for a data set in {}: {needed} needed, {}", .folder.display(), in_words(*.free))]
    Full {
        folder: PathBuf,
        needed: Bytes,
        free: Option<Bytes>,
    },
    #[error("cannot read {}: {why}", .path.display())]
    Unreadable { path: PathBuf, why: io::Error },
    /// Its content is not that of the created image.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("cannot remove {}: {why}", .folder.display())]
    NotRemoved { folder: PathBuf, why: io::Error },
}

fn in_words(free: Option<Bytes>) -> String {
    free.map_or_else(
        || "the disk is full".to_owned(),
        |free| format!("{free} free"),
    )
}

impl DatasetError {
    /// Returns what to try, without a full stop.
    pub fn hint(&self) -> String {
        match self {
            Self::Unwritable { .. } => {
                "set XDG_CACHE_HOME to keep data sets in another directory".to_owned()
            }
            Self::Full { .. } => {
                "use a smaller --dataset-size, or set XDG_CACHE_HOME to a directory on another disk"
                    .to_owned()
            }
            Self::Unreadable { .. } => {
                "`pipetop demo` creates missing files when it starts".to_owned()
            }
            Self::Damaged { path, .. } => {
                format!("remove {}: `pipetop demo` creates it again", path.display())
            }
            Self::NotRemoved { folder, .. } => {
                format!("remove {} as its owner", folder.display())
            }
        }
    }
}
