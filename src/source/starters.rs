//! Whether a process that started others, all with a framework, trains or only waits for them, as launchers do; and
//! whether a notebook kernel only waits for its next cell.
//!
//! Does not decide what is a job.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::{Process, Tree};
use crate::source::clock::Clock;
use crate::source::process::MainThreadNow;
use crate::units::Pid;

/// How often the main thread of each is looked at, and the pause between two looks.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);
/// How often those are looked at that may be waiting for what their parts send them, or for a device.
const MORE_LOOKS: u32 = 30;
/// Minimum share of the time on a CPU of a main thread that works. A launcher that asked every 10 ms whether its four ranks are
/// alive used 0.0065, one that asked every 100 ms 0.001.
const WORKS: f64 = 0.01;

/// What all looks at one process show.
#[derive(Debug, Default)]
struct Looks {
    /// Whether it is a notebook kernel.
    kernel: bool,
    /// Whether it has started another program; if not, it has started parts of its own, which may be ranks or work for it.
    programs: bool,
    only_waits: Option<bool>,
    first_cpu: Option<Duration>,
    works: bool,
}

impl Looks {
    fn add(&mut self, now: MainThreadNow, passed: Duration) {
        // A launcher may be on a CPU for a moment; a kernel on a CPU may be running a cell.
        let only_waits = now.only_waits.or(self.kernel.then_some(false));
        let both = [self.only_waits, only_waits].into_iter().flatten();
        self.only_waits = both.reduce(|before, now| before && now);
        let Some(cpu) = now.cpu else { return };
        let used = cpu.saturating_sub(*self.first_cpu.get_or_insert(cpu));
        self.works |= !used.is_zero() && used >= passed.mul_f64(WORKS);
    }

    fn has_parts(&self) -> bool {
        !self.kernel && !self.programs
    }

    /// Whether it only waits for what it has started; `None` if that is not known.
    fn outcome(&self) -> Option<bool> {
        if !self.has_parts() {
            return self.only_waits;
        }
        // It may be blocked in a read until its ranks send their results, or until its parts send what it trains on.
        if self.works {
            return Some(false);
        }
        self.only_waits.filter(|waits| *waits)
    }

    fn needs(&self, looks: u32) -> bool {
        let most = if self.has_parts() { MORE_LOOKS } else { LOOKS };
        self.outcome() != Some(false) && looks < most
    }
}

/// Sets [`Process::only_waits`] of those that need it.
#[expect(
    clippy::disallowed_methods,
    reason = "at most 40 ms, in a search for a job; 290 ms if a program's parts may be its ranks"
)]
pub(super) fn look_at(found: &mut [Process], mut look: impl FnMut(Pid) -> MainThreadNow) {
    let mut looked_at = to_look_at(found);
    let clock = Clock::start();
    let mut looks = 0;
    while looked_at.values().any(|one| one.needs(looks)) {
        if looks > 0 {
            std::thread::sleep(PAUSE);
        }
        let passed = clock.since_start();
        for (pid, one) in &mut looked_at {
            one.add(look(*pid), passed);
        }
        looks += 1;
    }
    for process in found {
        process.only_waits = looked_at.get(&process.key.pid).and_then(Looks::outcome);
    }
}

fn to_look_at(found: &[Process]) -> BTreeMap<Pid, Looks> {
    let tree = Tree::new(found);
    let mut all: BTreeMap<Pid, Looks> = BTreeMap::new();
    let loaded = |process: &&Process| process.framework == Some(true);
    for process in found.iter().filter(loaded) {
        if process.is_notebook_kernel() {
            all.entry(process.key.pid).or_default().kernel = true;
        }
        // Forked workers have the same command.
        let starter = tree.starter(process).filter(loaded);
        let Some(starter) = starter.filter(|starter| starter.command != process.command) else {
            continue;
        };
        let program = !process.is_fresh_child();
        if program || process.may_be_part(&tree) {
            all.entry(starter.key.pid).or_default().programs |= program;
        }
    }
    all
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

    fn waits(only_waits: Option<bool>) -> MainThreadNow {
        MainThreadNow {
            only_waits,
            cpu: None,
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
        look_at(&mut found, |pid| {
            waits(match pid.0 {
                10 => Some(true),
                // On a CPU once.
                30 => {
                    looks += 1;
                    (looks != 2).then_some(true)
                }
                _ => panic!("{pid} is no kernel"),
            })
        });
        let waits = found.map(|process| process.only_waits);
        assert_eq!(waits, [Some(true), None, Some(false)]);
    }

    #[test]
    fn only_those_that_started_another_program_are_looked_at_until_they_do_more() {
        let mut found = [
            loaded(10, 1, "python3 train.py"),
            loaded(11, 10, "python3 train.py"),
            loaded(20, 1, "python3 -m launcher train.py"),
            loaded(21, 20, "python3 train.py"),
            loaded(30, 1, "python3 train.py"),
            loaded(31, 30, "python3 evaluate.py"),
            loaded(40, 1, "python3 other.py"),
            loaded(41, 40, "python3 evaluate.py"),
        ];
        let mut looks = 0;
        look_at(&mut found, |pid| {
            waits(match pid.0 {
                20 => Some(true),
                30 => {
                    looks += 1;
                    Some(looks != 3)
                }
                40 => None,
                _ => panic!("{pid} has started nothing"),
            })
        });
        let waits = found.map(|process| process.only_waits);
        let [launcher, trainer] = [Some(true), Some(false)];
        assert_eq!(
            waits,
            [None, None, launcher, None, trainer, None, None, None]
        );
    }

    fn seen(only_waits: bool, cpu: u32) -> MainThreadNow {
        MainThreadNow {
            only_waits: Some(only_waits),
            cpu: Some(Duration::from_millis(cpu.into())),
        }
    }

    /// A launcher that waits for the end of its ranks or for their results, and a trainer that its parts feed.
    #[test]
    fn what_has_started_parts_of_itself_trains_if_it_uses_a_cpu() {
        let fresh = "python3 -c from multiprocessing.spawn import spawn_main";
        let started = |now: fn(u32) -> MainThreadNow| {
            let rank = Process {
                gpu: Some(true),
                ..loaded(21, 20, fresh)
            };
            let mut found = [
                loaded(10, 1, "python3 train.py"),
                loaded(11, 10, fresh),
                loaded(20, 1, "python3 spawn.py"),
                rank,
            ];
            let mut looks = 0;
            look_at(&mut found, |pid| {
                assert_eq!(pid, Pid(10));
                looks += 1;
                now(looks)
            });
            (found[0].only_waits, looks)
        };
        assert_eq!(started(|_| seen(true, 9000)), (Some(true), MORE_LOOKS));
        assert_eq!(started(|_| seen(false, 9000)), (None, MORE_LOOKS));
        let read_late = |looks| match looks {
            1 => waits(Some(true)),
            _ => seen(true, 9000),
        };
        assert_eq!(started(read_late), (Some(true), MORE_LOOKS));
        let (only_waits, looks) = started(|looks| seen(true, 9000 + 50 * (looks / 8)));
        assert_eq!(only_waits, Some(false));
        assert!(looks > LOOKS && looks < MORE_LOOKS, "{looks}");
    }
}
