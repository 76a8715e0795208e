//! Whether a process that has started others with a framework trains, or only waits for them, as launchers do.
//!
//! Does not decide what is a job.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::Process;
use crate::units::Pid;

/// How often its main thread is looked at, and the pause between two looks.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Sets [`Process::only_waits`] of those that need it. `look` says of a main thread whether it only waits now.
#[expect(
    clippy::disallowed_methods,
    reason = "a twentieth of a second, while no job is watched"
)]
pub(super) fn look_at(found: &mut [Process], mut look: impl FnMut(Pid) -> Option<bool>) {
    let loaded = |process: &&Process| process.framework == Some(true);
    // `multiprocessing` starts parts of a job, which are told apart by other means.
    let programs = |process: &&Process| loaded(process) && !process.is_fresh_child();
    let mut starters: BTreeMap<Pid, Option<bool>> = BTreeMap::new();
    for child in found.iter().filter(programs) {
        let mut all = found.iter().filter(loaded);
        let parent = all.find(|parent| parent.key.pid == child.parent);
        // Forked workers have the same command.
        if parent.is_some_and(|parent| parent.command != child.command) {
            starters.insert(child.parent, None);
        }
    }
    for round in 0..LOOKS {
        if starters.values().all(|waits| *waits == Some(false)) {
            break;
        }
        if round > 0 {
            std::thread::sleep(PAUSE);
        }
        for (pid, waits) in &mut starters {
            let both = [*waits, look(*pid)].into_iter().flatten();
            *waits = both.reduce(|before, now| before && now);
        }
    }
    for process in found {
        process.only_waits = starters.get(&process.key.pid).copied().flatten();
    }
}
