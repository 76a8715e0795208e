//! Tests that run on the scripted driver. A process finds the driver by its name, so each test starts itself again in a
//! process whose library path begins with a directory of its own.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// Set in the process with the scripted driver.
const CHILD: &str = "FAKE_CUDA_CHILD";

/// A directory with a driver.
pub struct Driver(TempDir);

impl Driver {
    /// # Panics
    /// Panics like [`install`](crate::install).
    #[expect(clippy::new_without_default, reason = "it makes files")]
    pub fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        crate::install(directory.path());
        Self(directory)
    }

    pub fn library(&self) -> PathBuf {
        self.0.path().join("libcuda.so.1")
    }

    /// Whether this process was started on a scripted driver.
    pub fn is_here() -> bool {
        env::var_os(CHILD).is_some()
    }

    /// Runs the test of that name again on this driver, whose clock advances only in calls that wait, and returns the
    /// log. `module` is the test's `module_path!()`.
    ///
    /// # Panics
    /// Panics if the test fails there.
    pub fn run(&self, module: &str, test: &str, script: &[(&str, &str)]) -> Vec<String> {
        let (_, module) = module.split_once("::").expect("tests lie in a module");
        let log = self.0.path().join("log");
        let output = Command::new(env::current_exe().expect("a process has an executable"))
            .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
            .env(CHILD, "1")
            .env("LD_LIBRARY_PATH", self.0.path())
            .env("FAKE_CUDA_LOG", &log)
            .env("FAKE_CUDA_CLOCK", "stepped")
            .envs(script.iter().copied())
            .output()
            .expect("the test starts again");
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let passed = output.status.success() && out.contains("1 passed");
        assert!(passed, "{script:?}: {}\n{out}\n{err}", output.status);
        assert!(!err.contains("panicked"), "{script:?}: {err}");
        let log = fs::read_to_string(log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}
