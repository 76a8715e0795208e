//! The length of a result queue, read from its semaphore, for batches that travel in the pipe itself.
//!
//! A `multiprocessing.Queue` counts its free places in a POSIX semaphore that starts at the largest possible value.
//! Under `spawn` and `forkserver` the semaphore keeps its name, `/dev/shm/sem.mp-*`, and the same user can read its
//! four bytes; under `fork` the name is removed. Does not depend on pipes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::units::{Pid, ProcessKey};

/// `SEM_VALUE_MAX`, which `multiprocessing/queues.py` uses for a queue without a bound.
const EMPTY: u32 = 0x7fff_ffff;
/// Longest plausible queue: a value further from `EMPTY` does not belong to a queue.
const MAX_LENGTH: u32 = 1 << 20;
/// Number of workers whose maps are read: no two of them share an index queue.
const WORKERS_READ: usize = 3;

/// Returns the semaphore of the queue that all of `workers` put their batches into. `None` if it has no name, or if
/// there is a single worker, whose index queue cannot be distinguished from it. The trainer, which made the semaphore,
/// has it mapped under another name. Takes the workers' memory map locks, a few times per loader.
pub(super) fn find(proc_root: &Path, trainer: Pid, workers: &[ProcessKey]) -> Option<PathBuf> {
    if workers.len() < 2 {
        return None;
    }
    let mut common = mapped(proc_root, workers[0].pid)?;
    for worker in workers.iter().take(WORKERS_READ).skip(1) {
        let own = mapped(proc_root, worker.pid)?;
        common.retain(|name| own.contains(name));
    }
    let root = proc_root.join(format!("{trainer}/root"));
    let mut queues = common
        .into_iter()
        .map(|name| root.join(name.trim_start_matches('/')))
        .filter(|path| ready(path).is_some());
    queues.next().filter(|_| queues.next().is_none())
}

/// Returns the number of ready batches. `None` if the semaphore is not that of a queue, or is gone.
pub(super) fn ready(semaphore: &Path) -> Option<u32> {
    let mut value = [0; 4];
    // glibc keeps the value in the low half of its first word.
    File::open(semaphore)
        .ok()?
        .read_exact_at(&mut value, 0)
        .ok()?;
    let value = u32::from_le_bytes(value);
    EMPTY
        .checked_sub(value)
        .filter(|ready| *ready <= MAX_LENGTH)
}

/// Returns the names of the semaphores that the process has mapped.
fn mapped(proc_root: &Path, pid: Pid) -> Option<BTreeSet<String>> {
    let maps = fs::read(proc_root.join(format!("{pid}/maps"))).ok()?;
    let maps = String::from_utf8_lossy(&maps);
    let names = maps
        .lines()
        .filter_map(|line| line.find("/dev/shm/sem.").map(|at| &line[at..]));
    Some(
        names
            .filter(|name| !name.ends_with(" (deleted)"))
            .map(str::to_owned)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(pid: i32) -> ProcessKey {
        ProcessKey {
            pid: Pid(pid),
            start_ticks: 1,
        }
    }

    /// A proc root with a trainer, PID 1, and workers that have mapped these semaphores (name, value).
    fn tree(processes: &[(i32, &[(&str, u32)])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (pid, semaphores) in processes {
            let process = root.path().join(pid.to_string());
            let shm = root.path().join("1/root/dev/shm");
            fs::create_dir_all(&process).unwrap();
            fs::create_dir_all(&shm).unwrap();
            let mut maps = "7f00-7f01 rw-s 00000000 00:19 7 /usr/lib/libc.so.6\n".to_owned();
            for (name, value) in *semaphores {
                maps.extend(["7f10-7f11 rw-s 00000000 00:19 9  /dev/shm/sem.", name, "\n"]);
                fs::write(shm.join(format!("sem.{name}")), value.to_le_bytes()).unwrap();
            }
            fs::write(process.join("maps"), maps).unwrap();
        }
        root
    }

    #[test]
    fn the_queue_that_all_share_is_found_and_counted() {
        let lock = ("mp-lock", 1);
        let result = ("mp-result", EMPTY - 5);
        let index = |name| (name, EMPTY - 2);
        let root = tree(&[
            (1, &[("temporary (deleted)", 0)]),
            (2, &[lock, result, index("mp-a")]),
            (3, &[lock, result, index("mp-b")]),
        ]);
        let found = find(root.path(), Pid(1), &[key(2), key(3)]).unwrap();
        assert!(found.ends_with("sem.mp-result"));
        assert_eq!(ready(&found), Some(5));
        assert_eq!(
            find(root.path(), Pid(1), &[key(2)]),
            None,
            "could be the index queue"
        );
        assert_eq!(
            find(root.path(), Pid(1), &[key(2), key(4)]),
            None,
            "denied or gone"
        );
        assert_eq!(ready(&root.path().join("nothing")), None);
    }

    #[test]
    fn without_names_there_is_none() {
        let root = tree(&[
            (1, &[("x (deleted)", EMPTY)]),
            (2, &[("x (deleted)", EMPTY)]),
            (3, &[]),
        ]);
        assert_eq!(find(root.path(), Pid(1), &[key(2), key(3)]), None);
    }
}
