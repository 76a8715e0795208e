//! Whether a process that started others, all with a framework, trains or only waits for them, as launchers do; and
//! whether a notebook kernel only waits for its next cell.
//!
//! Does not decide what is a job.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::job::Process;
use crate::units::Pid;

/// How often the main thread of each is looked at, and the pause between two looks.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Sets [`Process::only_waits`] of those that need it. `look` returns whether the main thread of a process only waits
/// now.
#[expect(
    clippy::disallowed_methods,
    reason = "at most 40 ms, in a search for a job"
)]
pub(super) fn look_at(found: &mut [Process], mut look: impl FnMut(Pid) -> Option<bool>) {
    let loaded = |process: &&Process| process.framework == Some(true);
    // `multiprocessing` starts parts of a job, which are told apart by other means.
    let programs = |process: &&Process| loaded(process) && !process.is_fresh_child();
    let kernels = found.iter().filter(loaded);
    let kernels = kernels.filter(|process| process.is_notebook_kernel());
    let kernels: BTreeSet<Pid> = kernels.map(|kernel| kernel.key.pid).collect();
    let mut looked_at: BTreeMap<Pid, Option<bool>> =
        kernels.iter().map(|kernel| (*kernel, None)).collect();
    for child in found.iter().filter(programs) {
        let mut all = found.iter().filter(loaded);
        let parent = all.find(|parent| parent.key.pid == child.parent);
        // Forked workers have the same command.
        if parent.is_some_and(|parent| parent.command != child.command) {
            looked_at.insert(child.parent, None);
        }
    }
    for round in 0..LOOKS {
        if looked_at.values().all(|waits| *waits == Some(false)) {
            break;
        }
        if round > 0 {
            std::thread::sleep(PAUSE);
        }
        for (pid, waits) in &mut looked_at {
            // A launcher may be on a CPU for a moment; a kernel on a CPU may be running a cell.
            let now = look(*pid).or(kernels.contains(pid).then_some(false));
            let both = [*waits, now].into_iter().flatten();
            *waits = both.reduce(|before, now| before && now);
        }
    }
    for process in found {
        process.only_waits = looked_at.get(&process.key.pid).copied().flatten();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::ProcessKey;

    fn loaded(pid: i32, parent: i32, command: &str) -> Process {
        Process {
            key: ProcessKey {
                pid: Pid(pid),
                start_ticks: 1,
            },
            parent: Pid(parent),
            comm: "python3".to_owned(),
            command: command.to_owned(),
            state: 'S',
            framework: Some(true),
            ..Process::default()
        }
    }

    #[test]
    fn a_notebook_kernel_is_looked_at() {
        let mut found = [
            loaded(10, 1, "python3 -m ipykernel_launcher -f idle.json"),
            loaded(20, 1, "python3 train.py"),
            loaded(30, 1, "python3 -m ipykernel_launcher -f busy.json"),
        ];
        let mut looks = 0;
        look_at(&mut found, |pid| match pid.0 {
            10 => Some(true),
            // On a CPU once.
            30 => {
                looks += 1;
                (looks != 2).then_some(true)
            }
            _ => panic!("{pid} is no kernel"),
        });
        let waits = found.map(|process| process.only_waits);
        assert_eq!(waits, [Some(true), None, Some(false)]);
    }

    #[test]
    fn only_those_that_started_another_program_are_looked_at_until_they_do_more() {
        let fresh = "python3 -c from multiprocessing.spawn import spawn_main";
        let mut found = [
            loaded(10, 1, "python3 train.py"),
            loaded(11, 10, "python3 train.py"),
            loaded(12, 10, fresh),
            loaded(20, 1, "python3 -m launcher train.py"),
            loaded(21, 20, "python3 train.py"),
            loaded(30, 1, "python3 train.py"),
            loaded(31, 30, "python3 evaluate.py"),
            loaded(40, 1, "python3 other.py"),
            loaded(41, 40, "python3 evaluate.py"),
        ];
        let mut looks = 0;
        look_at(&mut found, |pid| match pid.0 {
            20 => Some(true),
            30 => {
                looks += 1;
                Some(looks != 3)
            }
            40 => None,
            _ => panic!("{pid} has started nothing"),
        });
        let waits = found.map(|process| process.only_waits);
        let [launcher, trainer] = [Some(true), Some(false)];
        assert_eq!(
            waits,
            [None, None, None, launcher, None, trainer, None, None, None]
        );
    }
}
