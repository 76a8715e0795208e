//! What can go wrong with a data set: one line that says what, one that says what helps.

use std::io;
use std::path::PathBuf;

use crate::units::Bytes;

/// One line without a full stop; [`DatasetError::hint`] is the other.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("cannot make a data set in {}: {why}", .folder.display())]
    Unwritable { folder: PathBuf, why: io::Error },
    /// The disk or the user's quota. `free` is `None` where the file system does not say.
    #[error("no space for a data set in {}: {needed} needed, {}", .folder.display(), in_words(*.free))]
    Full {
        folder: PathBuf,
        needed: Bytes,
        free: Option<Bytes>,
    },
    #[error("no data set in {}", .folder.display())]
    Missing { folder: PathBuf },
    #[error("cannot read {}: {why}", .path.display())]
    Unreadable { path: PathBuf, why: io::Error },
    /// Its content is not what was made.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("another pipetop is making the data set in {}", .folder.display())]
    Busy { folder: PathBuf },
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
    /// The one thing to try, without a full stop.
    pub fn hint(&self) -> String {
        match self {
            Self::Unwritable { .. } => {
                "XDG_CACHE_HOME=FOLDER in the environment keeps data sets in another folder".to_owned()
            }
            Self::Full { .. } => {
                "ask for less by --dataset-size, or keep it on another disk by XDG_CACHE_HOME=FOLDER"
                    .to_owned()
            }
            Self::Missing { .. } => "`pipetop demo` makes one".to_owned(),
            Self::Unreadable { .. } => {
                "files that are gone are made again when `pipetop demo` starts".to_owned()
            }
            Self::Damaged { path, .. } => {
                format!("remove {}: `pipetop demo` makes it again", path.display())
            }
            Self::Busy { .. } => "try again when it has ended".to_owned(),
            Self::NotRemoved { folder, .. } => {
                format!("remove {} yourself, as its owner", folder.display())
            }
        }
    }
}
