//! The images that the built-in job loads: JPEG files that are created once in a cache folder and addressed by number.
//!
//! Does not depend on how an image is read, decoded or shuffled, or on how progress is shown.

mod draw;

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::background;
use crate::error::{Explain as _, Hinted};
use crate::folders;
use crate::units::Bytes;

pub use draw::SIDE;

/// Default size of a data set.
pub const SIZE: Bytes = Bytes(64 << 20);
/// Prefix of every data set's folder.
const PREFIX: &str = "dataset-";
/// Version of the images; increases when they change.
const FORMAT: u32 = 2;
/// Images per folder: file systems get slow, or fail, with millions of names in one.
const IN_A_FOLDER: u32 = 1000;

/// A folder with this many images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    pub folder: PathBuf,
    pub images: u32,
}

impl Dataset {
    /// Returns the data set under `root` that takes about `size` on the disk.
    fn of_size(root: &Path, size: Bytes) -> Self {
        let images = (size.0 / draw::USUAL_BYTES).max(1);
        Self {
            folder: root.join(format!("{PREFIX}v{FORMAT}-{images}")),
            images: u32::try_from(images).unwrap_or(u32::MAX),
        }
    }

    /// Returns the path of an image; after the last image the first follows again.
    pub fn path(&self, index: u32) -> PathBuf {
        let index = index % self.images.max(1);
        let (folder, file) = (index / IN_A_FOLDER, index % IN_A_FOLDER);
        self.folder.join(format!("{folder:04}/{file:03}.jpg"))
    }

    /// Returns the images without a file, or with an empty one, as a power failure may leave it.
    fn missing(&self) -> Vec<u32> {
        let is_there =
            |index: &u32| fs::metadata(self.path(*index)).is_ok_and(|file| file.len() > 0);
        (0..self.images).filter(|index| !is_there(index)).collect()
    }

    /// Creates the missing images, on all CPUs that this process may use.
    fn make(&self, progress: &mut impl FnMut(u32, u32)) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // One process at a time; the next one finds all images. If the file system has no locks, continues without one.
        let lock = File::create(self.folder.join("lock"))?;
        let _ = lock.lock();
        let missing = self.missing();
        if folders::room(&self.folder).is_some_and(|room| Bytes(room) < bytes_of(missing.len())) {
            return Err(ErrorKind::StorageFull.into());
        }
        let next = Mutex::new(missing.iter());
        let next = || background::lock(&next).next();
        let (made, results) = mpsc::channel();
        let make = |made: mpsc::Sender<_>| {
            while let Some(index) = next() {
                // After a failure the receiver is gone.
                if made.send(self.write(*index)).is_err() {
                    break;
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                let made = made.clone();
                scope.spawn(move || make(made));
            }
            drop(made);
            let mut done = self.images - u32::try_from(missing.len()).unwrap_or(self.images);
            progress(done, self.images);
            for result in results {
                result?;
                done += 1;
                progress(done, self.images);
            }
            Ok(())
        })
    }

    /// Writes an image so that no reader sees only a part of it.
    fn write(&self, index: u32) -> io::Result<()> {
        let path = self.path(index);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let unfinished = path.with_extension("new");
        fs::write(&unfinished, draw::jpeg(index)?)?;
        fs::rename(unfinished, path)
    }
}

/// Returns the data set of about `size` under `root`, after creating the images that are missing. `progress` is called
/// with the number of images so far and in total, the first time before any is created, and never if all exist. After a
/// kill, the next run continues with what exists.
///
/// # Errors
/// Returns an error if files cannot be created. If the disk is full, the data set is removed.
pub fn prepare(
    root: &Path,
    size: Bytes,
    mut progress: impl FnMut(u32, u32),
) -> Result<Dataset, Hinted> {
    let dataset = Dataset::of_size(root, size);
    let missing = dataset.missing();
    if missing.is_empty() {
        return Ok(dataset);
    }
    let Err(why) = dataset.make(&mut progress) else {
        return Ok(dataset);
    };
    let folder = dataset.folder;
    if !matches!(
        why.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    ) {
        return Err(Hinted::new(
            format!("cannot create a data set in {}: {why}", folder.display()),
            "set XDG_CACHE_HOME to keep data sets in another directory",
        ));
    }
    let _ = fs::remove_dir_all(&folder);
    let free = folders::room(root).map(Bytes);
    Err(no_space(&folder, bytes_of(missing.len()), free))
}

/// Returns the error for a full disk or a used-up quota. `free` is `None` if the file system does not report it.
fn no_space(folder: &Path, needed: Bytes, free: Option<Bytes>) -> Hinted {
    let free = free.map_or_else(
        || "the disk is full".to_owned(),
        |free| format!("{free} free"),
    );
    let folder = folder.display();
    Hinted::new(
        format!("no space for a data set in {folder}: {needed} needed, {free}"),
        "use a smaller --dataset-size, or set XDG_CACHE_HOME to a directory on another disk",
    )
}

/// Returns about how many bytes these images take on the disk.
fn bytes_of(images: usize) -> Bytes {
    Bytes(draw::USUAL_BYTES * images as u64)
}

/// Removes every data set under `root`, of any version, and returns how much space they took on the disk.
///
/// # Errors
/// Returns an error if one cannot be removed.
pub fn remove(root: &Path) -> Result<Bytes, Hinted> {
    fn explain<T>(removed: io::Result<T>, folder: &Path) -> Result<T, Hinted> {
        let folder = folder.display();
        removed.explain(
            format_args!("cannot remove {folder}"),
            format!("remove {folder} as its owner"),
        )
    }
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Bytes(0)),
        entries => explain(entries, root)?,
    };
    let mut freed = 0;
    for entry in entries {
        let entry = explain(entry, root)?;
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Links are not followed: their target was not created here.
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let folder = entry.path();
            freed += explain(size(&folder), &folder)?;
            explain(fs::remove_dir_all(&folder), &folder)?;
        }
    }
    Ok(Bytes(freed))
}

/// Returns the size of all files in a folder and its subfolders.
fn size(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() {
            size(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(bytes)
}

/// Returns where data sets are kept: `$XDG_CACHE_HOME/pipetop`, otherwise `~/.cache/pipetop`, otherwise a folder for
/// this user among the temporary files.
pub fn root() -> PathBuf {
    folders::cache().unwrap_or_else(|| {
        let user = rustix::process::getuid().as_raw();
        env::temp_dir().join(format!("pipetop-{user}"))
    })
}

#[cfg(test)]
mod tests;
