//! A scripted `libnvidia-ml.so.1`: answers like the NVIDIA driver, from a text file.
//!
//! Built as a shared library it replaces the driver; built as a Rust library it has [`FakeNvml`] for tests, a copy of
//! that shared library with a separate script. Does not depend on pipetop.
//!
//! # The script
//!
//! The file named by `$FAKE_NVML`, otherwise `nvml.script` beside the library. It is read again at every call. It has one
//! statement per line; `#` starts a comment:
//!
//! ```text
//! [@SEC] sys KEY=VALUE...          the driver as a whole
//! [@SEC] dev N|* KEY=VALUE...      GPU N, or every GPU
//! ```
//!
//! `@SEC` makes the line valid from that second on. If several lines set a key, the last one applies. An underscore in a
//! value means a blank.
//!
//! | `sys` key | meaning | without it |
//! |---|---|---|
//! | `count` | number of GPUs | 1 |
//! | `driver` | driver version | `580.95.05` |
//! | `clock` | file with the time in seconds | wall clock, 0 at the first call |
//! | `init` | error of `nvmlInit_v2` | success |
//! | `hang.SYMBOL` | seconds that this call hangs (ends early if the script changes it) | 0 |
//! | `fail.SYMBOL` | error of this call | success |
//! | `cost.SYMBOL` | milliseconds that this call takes | 0 |
//! | `log` | 1 = every call is logged, see [`FakeNvml::calls`] | no |
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
//! | `sample_ms` | milliseconds between utilisation samples (72 are kept) | 140 |
//! | `procs` | `PID:BYTES[:SM[:MEM]]`, separated by commas; bytes `-` = not available | none |
//! | `sm_procs` | like `procs`, for the per-process utilisation samples, if they differ | `procs` |
//! | `procs_age` | seconds: the age of the per-process samples | 0 |
//! | `drift` | 1 = processes come in a structure one field longer than the call's | 0 |
//! | `reserved` | bytes | 0 |
//! | `instant`, `mem_temp` | watts and degrees that `nvmlDeviceGetFieldValues` returns | not supported |
//! | `energy` | joules so far | integral of `power` |
//! | `pcie_rx`, `pcie_tx`, `nvlink_rx`, `nvlink_tx` | bytes per second | 0; not supported |
//! | `pcie_counters` | 1 = the byte counters of PCIe exist | not supported |
//! | `pcie_gen`, `pcie_width`, `pcie_max_gen`, `pcie_max_width` | the link | 5, 16, 5, 16 |
//! | `enc`, `dec` | percent | 0 |
//! | `persistence`, `minor` | 0 or 1; the number of `/dev/nvidiaN` | 1; the GPU's |
//! | `ecc_corrected`, `ecc_uncorrected` | errors so far | 0 |
//! | `retired_sbe`, `retired_dbe`, `retired_pending` | pages | not supported |
//! | `remapped` | `CORRECTABLE:UNCORRECTABLE:PENDING:FAILURE` | all 0 |
//! | `xid` | number: an error at the line's time; each line is reported once | none |
//! | `events` | `none` = this GPU reports no events | it does |
//! | `gpm_ms` | `sys`: milliseconds that a call of the counters takes; a second call at the same time fails | 0 |
//! | `gpm` | 1 = it has the counters of Hopper | 0 |
//! | `gpm.ID` | the counter ID: percent, or MiB per second | not supported |
//! | `field.ID.SCOPE` | a field of `nvmlDeviceGetFieldValues` | as above |
//! | `cost.SYMBOL` | as above, on this GPU | 0 |
//! | `fail` | error of every call on this GPU | success |
//! | `fail.SYMBOL` | error of this call on this GPU | success |
//! | `hang`, `hang.SYMBOL` | as above, for every call or this call on this GPU | 0 |
//!
//! `dev N.I` is instance I of GPU N, if that has `mig=1`; its lines create it. It has separate values of `uuid`, `gi`,
//! `ci`, `total`, `used`, `procs` and `gpm.ID`.
//!
//! A number may be a square wave `A~B/P`: A in the first half of every P seconds, B in the second. `none` makes the call
//! answer "not supported". An error is `lost`, `reset`, `no-permission`, `not-supported`, `not-found`, `not-loaded`,
//! `mismatch`, `timeout`, `unknown`, or its number; `no` is none.

mod calls;
mod log;
mod script;

use std::path::{Path, PathBuf};

/// A directory with a separate fake driver: several may be loaded in one process.
pub struct FakeNvml {
    directory: PathBuf,
}

impl FakeNvml {
    /// Puts the library and its script into `directory`.
    ///
    /// # Panics
    /// Panics if the library was not built or the directory cannot be written.
    pub fn install(directory: &Path, script: &str) -> Self {
        let fake = Self {
            directory: directory.to_owned(),
        };
        fake.script(script);
        std::fs::copy(built(), fake.library()).expect("the fake library can be copied");
        fake
    }

    /// Installs an older driver, whose library lacks `symbols`.
    ///
    /// # Panics
    /// Panics like [`FakeNvml::install`], and if the library has no such symbol.
    pub fn install_without(directory: &Path, script: &str, symbols: &[&str]) -> Self {
        let fake = Self::install(directory, script);
        let mut library = std::fs::read(built()).expect("the fake library can be read");
        for symbol in symbols {
            // In the symbol table, each name stands between zero bytes. Another first letter makes it another name.
            let name = [b"\0", symbol.as_bytes(), b"\0"].concat();
            let places: Vec<_> = (0..library.len() - name.len())
                .filter(|&at| library[at..].starts_with(&name))
                .collect();
            assert!(!places.is_empty(), "the fake has no {symbol}");
            places.into_iter().for_each(|at| library[at + 1] = b'x');
        }
        // Written as a new file, as another thread may use the copy.
        std::fs::remove_file(fake.library()).expect("the copy can be removed");
        std::fs::write(fake.library(), library).expect("the directory can be written");
        fake
    }

    /// Returns the calls so far, oldest first. The script must have `sys log=1`.
    ///
    /// # Panics
    /// Panics if a line is not valid.
    pub fn calls(&self) -> Vec<Call> {
        let text = std::fs::read_to_string(self.directory.join("nvml.calls")).unwrap_or_default();
        let call = |line: &str| {
            let mut words = line.split(' ');
            Some(Call {
                at: words.next()?.parse().ok()?,
                gpu: words.next()?.parse().ok(),
                symbol: words.next()?.to_owned(),
                cost_ms: words.next()?.parse().ok()?,
            })
        };
        let lines = text.lines();
        lines
            .map(|line| call(line).expect("a line of the log"))
            .collect()
    }

    /// Returns the absolute path of the library to load, which has the name of the driver's library.
    pub fn library(&self) -> PathBuf {
        self.directory.join("libnvidia-ml.so.1")
    }

    /// Replaces the script atomically.
    ///
    /// # Panics
    /// Panics if the directory cannot be written.
    pub fn script(&self, script: &str) {
        self.replace("nvml.script", script);
    }

    /// Sets the time for scripts with `sys clock=PATH`, where the path is [`FakeNvml::clock`].
    ///
    /// # Panics
    /// Panics if the directory cannot be written.
    pub fn set_clock(&self, seconds: f64) {
        self.replace("nvml.clock", &seconds.to_string());
    }

    /// Returns the file that [`FakeNvml::set_clock`] writes.
    pub fn clock(&self) -> PathBuf {
        self.directory.join("nvml.clock")
    }

    fn replace(&self, name: &str, text: &str) {
        let new = self.directory.join(format!("{name}.new"));
        std::fs::write(&new, text).expect("the directory can be written");
        std::fs::rename(new, self.directory.join(name)).expect("a file can be replaced");
    }
}

/// One call of the fake driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Seconds of the script's clock.
    pub at: f64,
    /// `None` = for the driver as a whole. Calls on an instance count as calls on its GPU.
    pub gpu: Option<u32>,
    pub symbol: String,
    /// Its cost in the script.
    pub cost_ms: f64,
}

/// Returns the shared library built by cargo: in the directory of the running test (`target/*/deps`), or one above.
///
/// # Panics
/// Panics if it was not built.
pub fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a process has an executable");
    test.ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("libfake_nvml.so"))
        .find(|library| library.exists())
        .expect("cargo builds libfake_nvml.so, a dev-dependency, beside the tests")
}
