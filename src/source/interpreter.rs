//! Python interpreters whose programs have another name: copied, frozen, or with Python inside.
//!
//! Does not depend on jobs.

use crate::job::Process;
use crate::source::process::ProcessReader;

/// Resident memory from which a program may be a Python with a framework, in pages: 64 MiB where a page is 4 KiB.
/// Importing PyTorch takes more.
pub(super) const LARGE_PAGES: u64 = 16_384;

/// Looks for an interpreter in the maps of a process with so many `pages` in memory, unless its name tells. Looks again
/// each time that its memory has doubled, because it may not have loaded its libraries yet: reading maps takes the
/// target's memory map lock.
pub(super) fn look_for(
    reader: &ProcessReader,
    process: &mut Process,
    pages: u64,
    parent: Option<&Process>,
) {
    let least = LARGE_PAGES.max(process.pages_looked_at.saturating_mul(2));
    if process.is_python() || pages < least {
        return;
    }
    process.pages_looked_at = pages;
    // A fork has mapped what its parent had.
    let is_fork = parent.is_some_and(|parent| {
        parent.runs_python == Some(true) && parent.command == process.command
    });
    if is_fork || reader.has_interpreter_and_framework(process.key.pid) {
        process.runs_python = Some(true);
    }
}
