//! The folder of one data set: names, what is there, what is missing, and who is writing.
//!
//! Knows nothing of what is in an image beyond how a JPEG file begins and ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{DatasetError, Plan};
use crate::units::Bytes;

/// Grows when the same plan gives other files.
const FORMAT: u32 = 1;
/// What every data set's folder begins with.
const PREFIX: &str = "dataset-";
/// Held by whoever writes.
const LOCK: &str = "lock";
/// What every unfinished file begins with.
const UNFINISHED: &str = ".new-";
/// Images in a folder: file systems get slow, and some refuse, with millions of names in one.
const IN_A_FOLDER: u32 = 1000;

/// Written last: where it is, the set was whole.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    #[serde(flatten)]
    pub(super) plan: Plan,
    pub(super) bytes: Bytes,
}

/// What was found of a set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) missing: Vec<u32>,
    /// Of the images that are there.
    pub(super) bytes: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn of(root: &Path, plan: Plan) -> Self {
        let Plan { images, side } = plan;
        Self(root.join(format!("{PREFIX}v{FORMAT}-{side}px-{images}")))
    }

    /// Every data set under `root`, of whatever format.
    pub(super) fn all(root: &Path) -> Result<Vec<Self>, DatasetError> {
        let unreadable = |why| DatasetError::Unreadable {
            path: root.to_owned(),
            why,
        };
        let entries = match fs::read_dir(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(unreadable)?,
        };
        let mut folders = Vec::new();
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
            // Not through a link: what it names was not made here.
            if ours && entry.file_type().map_err(unreadable)?.is_dir() {
                folders.push(Self(entry.path()));
            }
        }
        Ok(folders)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn image(&self, index: u32) -> PathBuf {
        let (folder, file) = (index / IN_A_FOLDER, index % IN_A_FOLDER);
        self.0.join(format!("{folder:04}/{file:03}.jpg"))
    }

    fn manifest_path(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    pub(super) fn manifest(&self) -> Result<Manifest, DatasetError> {
        let path = self.manifest_path();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => {
                let folder = self.0.clone();
                return Err(DatasetError::Missing { folder });
            }
            Err(why) => return Err(DatasetError::Unreadable { path, why }),
        };
        let damaged = |why: String| DatasetError::Damaged {
            path: path.clone(),
            why,
        };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let Plan { images, side } = manifest.plan;
        if manifest.format != FORMAT || manifest.plan != Plan::new(images, side) {
            return Err(damaged(format!(
                "format {}, {images} images of {side} pixels",
                manifest.format
            )));
        }
        Ok(manifest)
    }

    /// The bytes of all images, where the manifest is there and every file has kept its length.
    pub(super) fn whole(&self, plan: Plan) -> Option<Bytes> {
        let manifest = self.manifest().ok()?;
        let length = |index| Some(fs::metadata(self.image(index)).ok()?.len());
        let bytes: u64 = (0..plan.images).map(length).sum::<Option<u64>>()?;
        (manifest.plan == plan && manifest.bytes == Bytes(bytes)).then_some(manifest.bytes)
    }

    /// Looks into each file.
    pub(super) fn look(&self, plan: Plan) -> Found {
        let mut missing = Vec::new();
        let mut bytes = 0;
        for index in 0..plan.images {
            match length_of_whole(&self.image(index)) {
                Ok(Some(length)) => bytes += length,
                // One that cannot be opened is made again; what is in the way shows then.
                Ok(None) | Err(_) => missing.push(index),
            }
        }
        Found {
            missing,
            bytes: Bytes(bytes),
        }
    }

    /// Makes the folders and registers a writer, who stays one for as long as the file is held. The first of
    /// them clears away what dead writers left unfinished.
    pub(super) fn begin(&self) -> Result<File, DatasetError> {
        let open = || {
            fs::create_dir_all(&self.0)?;
            self.lock_file()
        };
        let lock = open().map_err(|why| self.failed_to_write(why))?;
        // The kernel drops a dead process's lock. Where a file system has no locks, nothing is cleared.
        if lock.try_lock().is_ok() {
            self.clear_unfinished();
        }
        let _ = lock.lock_shared();
        Ok(lock)
    }

    /// After a failure: folders without an image go, and the data set's own where nothing is in it and nobody
    /// else writes.
    pub(super) fn tidy(&self, writing: &File) {
        if writing.try_lock().is_err() {
            return;
        }
        let mut all_gone = true;
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            // This removes no folder that holds something.
            all_gone &= entry.file_name() == LOCK || fs::remove_dir(entry.path()).is_ok();
        }
        if all_gone {
            let _ = fs::remove_file(self.0.join(LOCK));
            let _ = fs::remove_dir(&self.0);
        }
    }

    fn lock_file(&self) -> io::Result<File> {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.0.join(LOCK))
    }

    fn clear_unfinished(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Writes a file so that nobody ever sees a part of it.
    pub(super) fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = self.unfinished()?;
        file.write_all(content)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        file.persist(path)?;
        Ok(())
    }

    fn unfinished(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.0)
    }

    /// Says that the set is whole.
    pub(super) fn end(&self, plan: Plan, bytes: Bytes) -> Result<(), DatasetError> {
        let manifest = Manifest {
            format: FORMAT,
            plan,
            bytes,
        };
        let text = serde_json::to_vec(&manifest).map_err(io::Error::other);
        text.and_then(|text| self.write(&self.manifest_path(), &text))
            .map_err(|why| self.failed_to_write(why))
    }

    /// What a failed write means.
    pub(super) fn failed_to_write(&self, why: io::Error) -> DatasetError {
        let folder = self.0.clone();
        if matches!(
            why.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        ) {
            return DatasetError::Full {
                folder,
                needed: Bytes(0),
                free: None,
            };
        }
        DatasetError::Unwritable { folder, why }
    }

    /// Bytes that may still be written. `None` where the file system does not say.
    pub(super) fn free(&self) -> Option<Bytes> {
        let disk = rustix::fs::statvfs(&self.0).ok()?;
        (disk.f_blocks > 0).then(|| Bytes(disk.f_bavail.saturating_mul(disk.f_frsize)))
    }

    /// Asked before, so that a disk is not filled to its brim in vain.
    pub(super) fn has_space(&self, needed: Bytes) -> Result<(), DatasetError> {
        match self.free() {
            Some(free) if free < needed => Err(DatasetError::Full {
                folder: self.0.clone(),
                needed,
                free: Some(free),
            }),
            _ => Ok(()),
        }
    }

    /// Removes the folder with all that is in it, and says what its files took.
    pub(super) fn remove(&self) -> Result<Bytes, DatasetError> {
        let not_removed = |why| DatasetError::NotRemoved {
            folder: self.0.clone(),
            why,
        };
        let lock = self.lock_file().map_err(not_removed)?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            let folder = self.0.clone();
            return Err(DatasetError::Busy { folder });
        }
        let freed = size(&self.0).map_err(not_removed)?;
        fs::remove_dir_all(&self.0).map_err(not_removed)?;
        Ok(freed)
    }
}

/// The length of an image that begins and ends as one; `None` where it was cut off or emptied.
fn length_of_whole(path: &Path) -> io::Result<Option<u64>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let (mut start, mut end) = ([0; 2], [0; 2]);
    if length < 4 {
        return Ok(None);
    }
    file.read_exact_at(&mut start, 0)?;
    file.read_exact_at(&mut end, length - 2)?;
    Ok((start == [0xff, 0xd8] && end == [0xff, 0xd9]).then_some(length))
}

/// Of all files in a folder and the folders in it.
fn size(folder: &Path) -> io::Result<Bytes> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() {
            size(&entry.path())?.0
        } else {
            about.len()
        };
    }
    Ok(Bytes(bytes))
}
