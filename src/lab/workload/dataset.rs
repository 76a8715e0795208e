//! The images that the built-in job loads: JPEG files that are made once into a cache folder and found again
//! by their number.
//!
//! Knows nothing of how an image is read, decoded or shuffled, nor of who shows the progress.

mod draw;
mod error;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

pub use draw::SIDE;
pub use error::DatasetError;

/// What is made where nothing else is asked for.
pub const SIZE: Bytes = Bytes(64 << 20);
/// What every data set's folder begins with.
const PREFIX: &str = "dataset-";
/// Grows when the images change.
const FORMAT: u32 = 2;
/// Images in a folder: file systems get slow, and some refuse, with millions of names in one.
const IN_A_FOLDER: u32 = 1000;

/// So many images below a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    pub folder: PathBuf,
    pub images: u32,
}

impl Dataset {
    /// The data set under `root` that takes about `size` on the disk.
    fn of_size(root: &Path, size: Bytes) -> Self {
        let images = (size.0 / draw::USUAL_BYTES).max(1);
        Self {
            folder: root.join(format!("{PREFIX}v{FORMAT}-{images}")),
            images: u32::try_from(images).unwrap_or(u32::MAX),
        }
    }

    /// Where an image lies; after the last one the first follows again.
    pub fn path(&self, index: u32) -> PathBuf {
        let index = index % self.images.max(1);
        let (folder, file) = (index / IN_A_FOLDER, index % IN_A_FOLDER);
        self.folder.join(format!("{folder:04}/{file:03}.jpg"))
    }

    /// Images without a file, or with an empty one, as a power failure may leave it.
    fn missing(&self) -> Vec<u32> {
        let is_there =
            |index: &u32| fs::metadata(self.path(*index)).is_ok_and(|file| file.len() > 0);
        (0..self.images).filter(|index| !is_there(index)).collect()
    }

    /// Makes what is missing, on all CPUs that this process may use.
    fn make(&self, progress: &mut impl FnMut(u32, u32)) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // One at a time; the next one finds all made. Where there are no locks, it goes without.
        let lock = File::create(self.folder.join("lock"))?;
        let _ = lock.lock();
        let missing = self.missing();
        if free(&self.folder).is_some_and(|free| free < bytes_of(missing.len())) {
            return Err(ErrorKind::StorageFull.into());
        }
        let next = Mutex::new(missing.iter());
        let next = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
        let (made, results) = mpsc::channel();
        let make = |made: mpsc::Sender<_>| {
            while let Some(index) = next() {
                // Nobody listens any more after a failure.
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

    /// Writes an image so that nobody ever sees a part of it.
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

/// Finds the data set of about `size` under `root`, or makes what is missing of it. `progress` is called with the
/// images that are there and those that there will be, first before anything is made; never where all are there.
/// After a kill the next run goes on with what is there.
///
/// # Errors
/// Where files cannot be made. Where the disk is full, none of the data set is left.
pub fn prepare(
    root: &Path,
    size: Bytes,
    mut progress: impl FnMut(u32, u32),
) -> Result<Dataset, DatasetError> {
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
        return Err(DatasetError::Unwritable { folder, why });
    }
    let _ = fs::remove_dir_all(&folder);
    Err(DatasetError::Full {
        needed: bytes_of(missing.len()),
        free: free(root),
        folder,
    })
}

/// What so many images take on the disk, about.
fn bytes_of(images: usize) -> Bytes {
    Bytes(draw::USUAL_BYTES * images as u64)
}

/// Bytes that may still be written. `None` where the file system does not say.
fn free(folder: &Path) -> Option<Bytes> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    (disk.f_blocks > 0).then(|| Bytes(disk.f_bavail.saturating_mul(disk.f_frsize)))
}

/// Removes every data set under `root`, of whatever format, and says what they took on the disk.
///
/// # Errors
/// Where one cannot be removed.
pub fn remove(root: &Path) -> Result<Bytes, DatasetError> {
    let not_removed = |folder: &Path| {
        let folder = folder.to_owned();
        |why| DatasetError::NotRemoved { folder, why }
    };
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Bytes(0)),
        entries => entries.map_err(not_removed(root))?,
    };
    let mut freed = 0;
    for entry in entries {
        let entry = entry.map_err(not_removed(root))?;
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Not through a link: what it names was not made here.
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let folder = entry.path();
            freed += size(&folder).map_err(not_removed(&folder))?;
            fs::remove_dir_all(&folder).map_err(not_removed(&folder))?;
        }
    }
    Ok(Bytes(freed))
}

/// Bytes of all files in a folder and the folders in it.
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

/// Where data sets are kept: `$XDG_CACHE_HOME/pipetop`, else `~/.cache/pipetop`, else a folder of this user's
/// among the temporary files.
pub fn root() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let temporary = env::temp_dir().join(format!("pipetop-{user}"));
    root_of(
        env::var_os("XDG_CACHE_HOME"),
        env::var_os("HOME"),
        temporary,
    )
}

fn root_of(cache: Option<OsString>, home: Option<OsString>, temporary: PathBuf) -> PathBuf {
    // The standard has a relative path ignored.
    let absolute =
        |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(cache)
        .or_else(|| absolute(home).map(|home| home.join(".cache")))
        .map_or(temporary, |cache| cache.join("pipetop"))
}

#[cfg(test)]
mod tests;
