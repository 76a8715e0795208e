//! The images that the built-in job loads: JPEG files that are made once into a cache folder and found again
//! by their number.
//!
//! Knows nothing of how an image is read, decoded or put into an order, nor of who shows the progress.

mod draw;
mod error;
mod folder;
mod make;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

pub use error::DatasetError;
use folder::Folder;

/// What a data set is made of. Two sets of one plan are the same, byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plan {
    images: u32,
    side: u32,
}

impl Plan {
    /// Pixels along each side of an image, where nothing else is asked for.
    pub const SIDE: u32 = 256;
    /// What is made where nothing else is asked for.
    pub const SIZE: Bytes = Bytes(64 << 20);

    /// `images` square images, at least one, of `side` pixels, 16 to 4096.
    pub fn new(images: u32, side: u32) -> Self {
        Self {
            images: images.max(1),
            side: side.clamp(16, 4096),
        }
    }

    /// As many images of the usual side as take about `size` on the disk.
    pub fn of_size(size: Bytes) -> Self {
        let images = size.0 / draw::usual_bytes(Self::SIDE);
        Self::new(u32::try_from(images).unwrap_or(u32::MAX), Self::SIDE)
    }

    pub fn images(self) -> u32 {
        self.images
    }

    /// Pixels along each side.
    pub fn side(self) -> u32 {
        self.side
    }

    /// What `images` of these take on the disk, about.
    fn size_of(self, images: usize) -> Bytes {
        Bytes(draw::usual_bytes(self.side) * images as u64)
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::of_size(Self::SIZE)
    }
}

/// A data set that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    folder: Folder,
    plan: Plan,
    bytes: Bytes,
}

impl Dataset {
    /// Opens the set in `folder`, as [`Dataset::folder`] names it. Reads one small file, however many images
    /// there are.
    ///
    /// # Errors
    /// Where there is no whole set, or what says so is damaged.
    pub fn open(folder: &Path) -> Result<Self, DatasetError> {
        let folder = Folder::at(folder.to_owned());
        let manifest = folder.manifest()?;
        Ok(Self {
            folder,
            plan: manifest.plan,
            bytes: manifest.bytes,
        })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn images(&self) -> u32 {
        self.plan.images
    }

    /// Pixels along each side of an image.
    pub fn side(&self) -> u32 {
        self.plan.side
    }

    /// Of all files together.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Where an image lies; after the last one the first follows again.
    pub fn path(&self, index: u32) -> PathBuf {
        self.folder.image(index % self.plan.images)
    }
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

/// Finds the set of `plan` under `root`, or makes what is missing of it on all CPUs allowed. `progress` is
/// called with the images that are there and those that there will be, first before anything is made; never
/// where the set is whole. A killed run is gone on with, and two at once help each other.
///
/// # Errors
/// Where files cannot be made or looked at. On a full disk, what this call made is removed again.
pub fn prepare(
    root: &Path,
    plan: Plan,
    mut progress: impl FnMut(u32, u32),
) -> Result<Dataset, DatasetError> {
    let folder = Folder::of(root, plan);
    let dataset = |bytes| Dataset {
        folder: folder.clone(),
        plan,
        bytes,
    };
    if let Some(bytes) = folder.whole(plan) {
        return Ok(dataset(bytes));
    }
    let writing = folder.begin()?;
    let bytes = complete(&folder, plan, &mut progress);
    if bytes.is_err() {
        folder.tidy(&writing);
    }
    Ok(dataset(bytes?))
}

/// Makes what is missing, and gives the bytes of all images.
fn complete(
    folder: &Folder,
    plan: Plan,
    progress: &mut impl FnMut(u32, u32),
) -> Result<Bytes, DatasetError> {
    // More than once only where somebody takes files away meanwhile, as another run does whose disk is full.
    for _ in 0..3 {
        let found = folder.look(plan);
        if found.missing.is_empty() {
            folder.end(plan, found.bytes)?;
            return Ok(found.bytes);
        }
        folder.has_space(plan.size_of(found.missing.len()))?;
        make::images(folder, plan, &found.missing, progress)?;
    }
    Err(DatasetError::Damaged {
        path: folder.path().to_owned(),
        why: "images vanish as soon as they are made".to_owned(),
    })
}

/// Removes every data set under `root`, and says what they took on the disk.
///
/// # Errors
/// Where one is being made at this moment, or cannot be removed.
pub fn remove(root: &Path) -> Result<Bytes, DatasetError> {
    let mut freed = 0;
    for folder in Folder::all(root)? {
        freed += folder.remove()?.0;
    }
    Ok(Bytes(freed))
}

#[cfg(test)]
mod tests;
