//! A scripted `libcuda.so.1`: a CUDA driver without a GPU, with the functions that pipetop calls through cudarc.
//!
//! Built as a shared library it replaces the driver; built as a Rust library it has [`install`] and [`Driver`] for tests.
//! Memory is the host's and copies are made (of up to 64 KiB, so that a copy takes the scripted time and not the CPU's),
//! but kernels compute nothing. Times are as on a GPU: a clock for each stream, one copy engine, one compute engine.
//! Does not depend on pipetop, except for the names and arguments of its two kernels.
//!
//! The library must not be called `cuda` in cargo's target directory: cargo puts that on the library path, where
//! it would shadow the machine's driver.
//!
//! # The script, by environment
//!
//! | variable | meaning | without it |
//! |---|---|---|
//! | `FAKE_CUDA_DEVICES` | number of GPUs | 1 |
//! | `FAKE_CUDA_POOLS` | 0 = the GPU has no memory pools | 1 |
//! | `FAKE_CUDA_LATE_US` | microseconds that a kernel lasts longer than it should | 5 |
//! | `FAKE_CUDA_CLOCK` | `stepped`: time passes only in calls that wait, and at once | the machine's time |
//! | `FAKE_CUDA_LOG` | file to which each call is appended | none |
//! | `FAKE_CUDA_FAIL` | `SYMBOL=CODE` or `SYMBOL=CODE@N` (from the Nth call on), separated by commas | none |
//!
//! The symbol `kernel` is a kernel that fails while it runs: from its end on, every call returns that code, until the
//! context is released.
//!
//! `fakeCudaClock`, which no driver has, returns the time in nanoseconds.
//!
//! The log has the name of each call. A `touch` kernel of up to 64 KiB adds a line `touch bytes=N sum=S`, and releasing
//! the context adds one with what was not freed (functions are freed with their module).

mod calls;
mod driver;
mod script;
mod world;

pub use driver::Driver;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Puts the library into `directory`, for use in `LD_LIBRARY_PATH`: under both names that a driver is searched by, so
/// that the machine's own never comes first. Returns the path of the file.
///
/// # Panics
/// Panics if the library was not built or the directory cannot be written.
pub fn install(directory: &Path) -> PathBuf {
    let library = directory.join("libcuda.so.1");
    std::fs::copy(built(), &library).expect("the fake library can be copied");
    symlink(&library, directory.join("libcuda.so")).expect("a link can be made");
    library
}

/// Returns the shared library built by cargo: in the directory of the running test (`target/*/deps`), or one above.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a process has an executable");
    test.ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("libfake_cuda.so"))
        .find(|library| library.exists())
        .expect("cargo builds libfake_cuda.so, a dev-dependency, beside the tests")
}
