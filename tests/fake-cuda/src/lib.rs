//! A scripted `libcuda.so.1`: a CUDA driver without a GPU, for what pipetop asks of one through cudarc.
//!
//! Built as a shared library it stands for the driver; built as a Rust library it gives the tests [`install`] and [`Driver`].
//! Memory is the host's and copies are made (of up to 64 KiB, so that a copy's time is the one that is kept and not
//! the CPU's), but kernels compute nothing. Times are kept as a GPU keeps them:
//! a clock for each stream, one copy engine, one compute engine. Knows nothing of pipetop but the names and
//! arguments of its two kernels.
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
//! | `FAKE_CUDA_LOG` | file to which each call is appended | none |
//! | `FAKE_CUDA_FAIL` | `SYMBOL=CODE` or `SYMBOL=CODE@N` (from the Nth call on), separated by commas | none |
//!
//! The symbol `kernel` stands for a kernel that fails while it runs: from its end on every call gives that code,
//! until the context is released.
//!
//! The log has the name of each call. A `touch` kernel of up to 64 KiB adds a line `touch bytes=N sum=S`, and the release of the
//! context one with what was not given back (functions go with their module).

mod calls;
mod driver;
mod script;
mod world;

pub use driver::Driver;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Puts the library into `directory`, where `LD_LIBRARY_PATH` makes it be found: under both names that a driver is
/// looked for by, so that the machine's own never comes first. Gives the path of the file.
///
/// # Panics
/// Where the library was not built or the directory cannot be written.
pub fn install(directory: &Path) -> PathBuf {
    let library = directory.join("libcuda.so.1");
    std::fs::copy(built(), &library).expect("the fake library can be copied");
    symlink(&library, directory.join("libcuda.so")).expect("a link can be made");
    library
}

/// The shared library as cargo built it: in the directory of the running test (`target/*/deps`), or one above.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a process has an executable");
    test.ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("libfake_cuda.so"))
        .find(|library| library.exists())
        .expect("cargo builds libfake_cuda.so, a dev-dependency, beside the tests")
}
