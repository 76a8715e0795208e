//! What this machine offers to the tests, and how much of it a test may use.

use std::io::Write;
use std::process::Command;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

/// An interpreter that can import torch.
pub struct Python {
    pub path: String,
    /// Its version.
    pub torch: String,
}

/// Returns the interpreters of `PIPETOP_TORCH_PYTHONS` (separated by colons; default `python3`) that have torch.
pub fn torches() -> &'static [Python] {
    static FOUND: OnceLock<Vec<Python>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let listed = listed("PIPETOP_TORCH_PYTHONS").into_iter();
        let found = listed.filter_map(|path| match torch_version(&path) {
            Ok(torch) => Some(Python { path, torch }),
            Err(why) => {
                skip(&why);
                None
            }
        });
        found.collect()
    })
}

/// Returns the interpreters of `PIPETOP_PYTHONS` (separated by colons; default `python3`), for tests without torch.
pub fn interpreters() -> &'static [String] {
    static FOUND: OnceLock<Vec<String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let (found, absent): (Vec<_>, Vec<_>) = listed("PIPETOP_PYTHONS")
            .into_iter()
            .partition(|path| has(path, "sys"));
        if !absent.is_empty() {
            skip(&format!("no Python at {absent:?}"));
        }
        found
    })
}

fn listed(variable: &str) -> Vec<String> {
    let list = std::env::var(variable).unwrap_or_else(|_| "python3".to_owned());
    let each = list.split(':').filter(|one| !one.is_empty());
    each.map(str::to_owned).collect()
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

/// Whether this Python has the module. Does not import it: a large module takes seconds.
pub fn has(python: &str, module: &str) -> bool {
    let find = format!("import importlib.util as u, sys; sys.exit(not u.find_spec({module:?}))");
    let output = Command::new(python).args(["-c", &find]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs `body` with each Python that has torch, in parallel if the machine has room.
pub fn each_torch(share: Share, body: impl Fn(&Python) + Sync) {
    if torches().is_empty() {
        skip("no Python with torch");
    }
    each(torches(), share, body);
}

/// Runs `body` only with the last Python that has torch, for tests that do not depend on torch's version.
pub fn last_torch(share: Share, body: impl FnOnce(&Python)) {
    let Some(python) = torches().last() else {
        return skip("no Python with torch");
    };
    let _place = Place::take(share);
    body(python);
}

/// Runs `body` with each Python, for tests that need no torch.
pub fn each_interpreter(share: Share, body: impl Fn(&str) + Sync) {
    each(interpreters(), share, |path| body(path));
}

/// Runs `body` with each value in a thread of its own, which holds `share` of the machine. Fails if one of them fails.
pub fn each<T: Sync>(these: &[T], share: Share, body: impl Fn(&T) + Sync) {
    side_by_side(these, |one| {
        let _place = Place::take(share);
        body(one);
    });
}

/// Runs `body` with all values at the same time, and no other test beside them. Fails if one of them fails.
pub fn all_at_once<T: Sync>(these: &[T], body: impl Fn(&T) + Sync) {
    let _place = Place::take(Share::Whole);
    side_by_side(these, body);
}

fn side_by_side<T: Sync>(these: &[T], body: impl Fn(&T) + Sync) {
    let body = &body;
    thread::scope(|scope| {
        for one in these {
            scope.spawn(move || body(one));
        }
    });
}

/// Prints what is skipped and why, bypassing the test runner's capture. Panics if `PIPETOP_REQUIRE_ALL=1`.
pub fn skip(why: &str) {
    let must = std::env::var_os("PIPETOP_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!must, "PIPETOP_REQUIRE_ALL=1, but: {why}");
    // In one write, so that the lines of parallel tests do not mix.
    let _ = std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes());
}

/// Prints a line, shown if the test fails and with `--nocapture`.
#[expect(clippy::print_stdout, reason = "the test runner captures it")]
pub fn note(line: &str) {
    println!("{line}");
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// How much of the machine a test needs for its timing to mean something.
#[derive(Clone, Copy, PartialEq)]
pub enum Share {
    /// A job that sleeps most of the time: seven others may run beside it.
    Eighth,
    /// Such a job with large imports, which keep a CPU busy for some seconds.
    Seventh,
    /// A short job that spends much of its time on imports.
    Sixth,
    /// A job that computes now and then: three others may run beside it.
    Quarter,
    /// A job that computes half of the time.
    Third,
    /// A job that keeps one CPU busy.
    Half,
    /// A job that keeps all CPUs busy, or a comparison of times.
    Whole,
}

/// The free and the wanted parts of the machine. Smaller requests are served first: a large one that waits would
/// otherwise keep the small ones out and leave CPUs idle. It also means that the machine has to become empty only once
/// for all tests that need the whole of it.
struct Places {
    /// Parts of [`WHOLE`].
    free: u16,
    /// The size of each waiting request.
    wanted: Vec<u16>,
}

/// Number of parts of the machine: every share is a whole number of them.
const WHOLE: u16 = 840;

static PLACES: Mutex<Places> = Mutex::new(Places {
    free: WHOLE,
    wanted: Vec::new(),
});
static CHANGED: Condvar = Condvar::new();

/// A part of the machine, held while a job runs. A thread that holds one must not take another.
pub struct Place(u16);

impl Place {
    /// Waits until nobody waits for a smaller part and the machine is free enough.
    pub fn take(share: Share) -> Self {
        let parts = match share {
            Share::Eighth => WHOLE / 8,
            Share::Seventh => WHOLE / 7,
            Share::Sixth => WHOLE / 6,
            Share::Quarter => WHOLE / 4,
            Share::Third => WHOLE / 3,
            Share::Half => WHOLE / 2,
            Share::Whole => WHOLE,
        };
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.wanted.push(parts);
        let waits = |places: &mut Places| {
            places.free < parts || places.wanted.iter().any(|wanted| *wanted < parts)
        };
        let mut places = CHANGED
            .wait_while(places, waits)
            .unwrap_or_else(PoisonError::into_inner);
        let own = places.wanted.iter().position(|wanted| *wanted == parts);
        own.map(|own| places.wanted.swap_remove(own));
        places.free -= parts;
        CHANGED.notify_all();
        Self(parts)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        PLACES.lock().unwrap_or_else(PoisonError::into_inner).free += self.0;
        CHANGED.notify_all();
    }
}
