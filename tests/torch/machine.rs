//! What this machine offers to the tests, and who may use it at a time.

use std::io::Write;
use std::process::Command;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// An interpreter that can import torch.
pub(crate) struct Python {
    pub(crate) path: String,
    pub(crate) torch: String,
}

/// Of `PIPETOP_TORCH_PYTHONS` (separated by colons), else `python3`: those with torch.
pub(crate) fn pythons() -> &'static [Python] {
    static FOUND: OnceLock<Vec<Python>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let paths = std::env::var("PIPETOP_TORCH_PYTHONS").unwrap_or_else(|_| "python3".into());
        let found = paths
            .split(':')
            .filter_map(|path| match torch_version(path) {
                Ok(torch) => Some(Python {
                    path: path.to_owned(),
                    torch,
                }),
                Err(why) => {
                    skip(&why);
                    None
                }
            });
        found.collect()
    })
}

fn torch_version(python: &str) -> Result<String, String> {
    let output = Command::new(python)
        .args(["-c", "import torch; print(torch.__version__)"])
        .output();
    let output = output.map_err(|error| format!("cannot start {python}: {error}"))?;
    match String::from_utf8(output.stdout) {
        Ok(version) if output.status.success() => Ok(version.trim().to_owned()),
        _ => Err(format!(
            "{python} cannot import torch (set PIPETOP_TORCH_PYTHONS)"
        )),
    }
}

/// Says what does not run and why, past the test runner's capture; a failure where all must run.
pub(crate) fn skip(why: &str) {
    let must = std::env::var_os("PIPETOP_REQUIRE_TORCH").is_some_and(|value| value == "1");
    assert!(!must, "PIPETOP_REQUIRE_TORCH=1, but: {why}");
    // In one write, so that tests that skip at the same time do not mix their words.
    let _ = std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes());
}

/// Shown where the test fails, and by `--nocapture`.
#[expect(clippy::print_stdout, reason = "the test runner captures it")]
pub(crate) fn note(line: &str) {
    println!("{line}");
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// How much of the machine a test needs for its timing to mean something.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Share {
    Quarter,
    Whole,
}

/// Quarters of the machine.
static FREE: Mutex<u8> = Mutex::new(4);
static FREED: Condvar = Condvar::new();

/// Held while a job runs.
pub(crate) struct Place(u8);

impl Place {
    /// Waits until the machine is free enough.
    pub(crate) fn take(share: Share) -> Self {
        let quarters = if share == Share::Whole { 4 } else { 1 };
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = FREED
            .wait_while(free, |free| *free < quarters)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= quarters;
        Self(quarters)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        FREED.notify_all();
    }
}
