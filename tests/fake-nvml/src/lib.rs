//! A scripted `libnvidia-ml.so.1`: what the NVIDIA driver would answer, from a text file.
//!
//! Built as a shared library it stands for the driver; built as a Rust library it gives the tests
//! [`FakeNvml`], a copy of that shared library with a script of its own. Knows nothing of pipetop.
//!
//! # The script
//!
//! The file named by `$FAKE_NVML`, else `nvml.script` beside the library. It is read anew at every
//! call. One statement a line, `#` starts a comment:
//!
//! ```text
//! [@SEC] sys KEY=VALUE...          the driver as a whole
//! [@SEC] dev N|* KEY=VALUE...      GPU N, or every GPU
//! ```
//!
//! `@SEC` makes the line hold from that second on. Where several lines give a key, the last one
//! holds. An underscore in a value stands for a blank.
//!
//! | `sys` key | meaning | without it |
//! |---|---|---|
//! | `count` | number of GPUs | 1 |
//! | `driver` | driver version | `580.95.05` |
//! | `clock` | file that holds the time in seconds | wall clock, 0 at the first call |
//! | `init` | error of `nvmlInit_v2` | success |
//! | `hang.SYMBOL` | seconds that this call hangs (ends early when the script says so) | 0 |
//! | `fail.SYMBOL` | error of this call | success |
//!
//! | `dev` key | meaning | without it |
//! |---|---|---|
//! | `name`, `uuid` | text | `NVIDIA H200`, `GPU-0000000N-...` |
//! | `util`, `mem_util` | percent | 0 |
//! | `total`, `used` | bytes, with `K`, `M` or `G` for binary multiples | 141 G, 0 |
//! | `power`, `limit` | watts | 100, 700 |
//! | `temp`, `sm`, `memclk` | degrees, MHz, MHz | 40, 1980, 3201 |
//! | `throttle` | bits of `nvmlClocksEventReason*`, decimal | 0 |
//! | `mig` | 1 = MIG is on | 0 |
//! | `sample_ms` | distance of the utilisation samples (72 are kept) | 140 |
//! | `procs` | `PID:BYTES[:SM[:MEM]]`, separated by commas; bytes `-` = not available | none |
//! | `fail` | error of every call on this GPU | success |
//! | `fail.SYMBOL` | error of this call on this GPU | success |
//! | `hang`, `hang.SYMBOL` | as above, for every call or this call on this GPU | 0 |
//!
//! A number may be a square wave `A~B/P`: A in the first half of every P seconds, B in the second.
//! `none` makes the call answer "not supported". An error is `lost`, `reset`, `no-permission`,
//! `not-supported`, `not-found`, `not-loaded`, `mismatch`, `timeout`, `unknown`, or its number;
//! `no` is none.

mod calls;
mod script;

use std::path::{Path, PathBuf};

/// A directory with a fake driver of its own: several may be loaded in one process.
pub struct FakeNvml {
    directory: PathBuf,
}

impl FakeNvml {
    /// Puts the library and its script into `directory`.
    ///
    /// # Panics
    /// Where the library was not built or the directory cannot be written.
    pub fn install(directory: &Path, script: &str) -> Self {
        let fake = Self {
            directory: directory.to_owned(),
        };
        fake.script(script);
        std::fs::copy(built(), fake.library()).expect("the fake library can be copied");
        fake
    }

    /// What to load: absolute, under the name that the driver's library has.
    pub fn library(&self) -> PathBuf {
        self.directory.join("libnvidia-ml.so.1")
    }

    /// Replaces the script, at once and whole.
    ///
    /// # Panics
    /// Where the directory cannot be written.
    pub fn script(&self, script: &str) {
        self.replace("nvml.script", script);
    }

    /// Sets the time for scripts that say `sys clock=PATH` with [`FakeNvml::clock`].
    ///
    /// # Panics
    /// Where the directory cannot be written.
    pub fn set_clock(&self, seconds: f64) {
        self.replace("nvml.clock", &seconds.to_string());
    }

    /// The file that [`FakeNvml::set_clock`] writes.
    pub fn clock(&self) -> PathBuf {
        self.directory.join("nvml.clock")
    }

    fn replace(&self, name: &str, text: &str) {
        let new = self.directory.join(format!("{name}.new"));
        std::fs::write(&new, text).expect("the directory can be written");
        std::fs::rename(new, self.directory.join(name)).expect("a file can be replaced");
    }
}

/// The shared library as cargo built it: in the directory of the running test (`target/*/deps`), or
/// one above.
///
/// # Panics
/// Where it was not built.
pub fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a process has an executable");
    test.ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("libfake_nvml.so"))
        .find(|library| library.exists())
        .expect("cargo builds libfake_nvml.so, a dev-dependency, beside the tests")
}
