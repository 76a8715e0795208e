//! Whom a worker waits for that sleeps: another of its threads, or a command that it has started.
//!
//! Knows what threads are blocked in, nothing of loaders.

use std::fs;
use std::path::Path;

use super::blocked::{Blocked, blocked_in};
use crate::units::{Pid, printable};

/// Threads or commands that are polled, at most.
const MOST: usize = 32;
/// A shell runs a command that runs another.
const DEEPEST: usize = 3;

/// Where the work goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beyond {
    pub(super) blocked: Blocked,
    /// The name of the command, where it is one.
    pub(super) command: Option<String>,
}

/// What goes on while the main thread of `worker` is blocked so. `None` where that is nothing which tells more than the
/// main thread's own sleep.
pub(super) fn beyond(proc_root: &Path, worker: Pid, blocked: Blocked) -> Option<Beyond> {
    match blocked {
        // For a lock that another thread gives up, or until it looks again.
        Blocked::Lock | Blocked::Timer => {
            let task = proc_root.join(format!("{worker}/task"));
            let threads = numbers(&task)
                .into_iter()
                .filter(|thread| *thread != worker);
            let threads = threads.take(MOST).map(|thread| at(&task, thread));
            foremost(threads).map(|blocked| Beyond {
                blocked,
                command: None,
            })
        }
        // For what a command writes, or for its end.
        Blocked::PipeRead | Blocked::Poll | Blocked::Other => {
            let commands = commands(proc_root, worker);
            let all = commands.iter().map(|command| at(proc_root, *command));
            let blocked = foremost(all)?;
            let who = commands
                .iter()
                .find(|command| at(proc_root, **command) == blocked)?;
            let name = fs::read_to_string(proc_root.join(format!("{who}/comm"))).ok()?;
            Some(Beyond {
                blocked,
                command: Some(printable(name.trim_end())),
            })
        }
        _ => None,
    }
}

/// Of what several are blocked in, what holds up the others: who works is waited for by who waits for a disk, and both by
/// who waits for a network.
fn foremost(all: impl Iterator<Item = Blocked>) -> Option<Blocked> {
    let rank = |blocked: &Blocked| match blocked {
        Blocked::Running => 3,
        Blocked::Disk => 2,
        Blocked::Network => 1,
        _ => 0,
    };
    let foremost = all.max_by_key(rank)?;
    (rank(&foremost) > 0).then_some(foremost)
}

/// What a process, or a thread in this folder, is blocked in.
fn at(folder: &Path, number: Pid) -> Blocked {
    let wchan = fs::read_to_string(folder.join(format!("{number}/wchan")));
    wchan.map_or(Blocked::Other, |wchan| blocked_in(&wchan))
}

/// What the main thread of `process` has started, and what that has.
fn commands(proc_root: &Path, process: Pid) -> Vec<Pid> {
    let mut all: Vec<Pid> = Vec::new();
    let mut parents = vec![process];
    for _ in 0..DEEPEST {
        let children = parents.iter().flat_map(|parent| {
            let list = proc_root.join(format!("{parent}/task/{parent}/children"));
            let list = fs::read_to_string(list).unwrap_or_default();
            let numbers = list
                .split_ascii_whitespace()
                .filter_map(|number| number.parse().ok());
            numbers.map(Pid).collect::<Vec<_>>()
        });
        parents = children.take(MOST).collect();
        all.extend(&parents);
    }
    all.truncate(MOST);
    all
}

fn numbers(folder: &Path) -> Vec<Pid> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.map(Pid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proc root where these are blocked so: threads of process 5, and its command 8 with its own, 9.
    fn tree(threads: &[(i32, &str)], commands: &[(i32, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: String, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (thread, wchan) in threads {
            write(format!("5/task/{thread}/wchan"), wchan);
        }
        for (command, wchan) in commands {
            write(format!("{command}/wchan"), wchan);
            write(format!("{command}/comm"), "curl\n");
        }
        write("5/task/5/children".into(), "8 ");
        write("8/task/8/children".into(), "9 ");
        root
    }

    #[test]
    fn a_lock_is_held_by_the_thread_that_does_most() {
        let seen = |threads: &[(i32, &str)]| {
            let root = tree(threads, &[]);
            beyond(root.path(), Pid(5), Blocked::Lock).map(|beyond| beyond.blocked)
        };
        let main = (5, "futex_do_wait");
        assert_eq!(
            seen(&[main, (6, "ep_poll"), (7, "futex_do_wait")]),
            Some(Blocked::Network)
        );
        assert_eq!(
            seen(&[main, (6, "ep_poll"), (7, "0")]),
            Some(Blocked::Running)
        );
        assert_eq!(
            seen(&[main, (6, "ep_poll"), (7, "folio_wait_bit_common")]),
            Some(Blocked::Disk)
        );
        assert_eq!(seen(&[main, (7, "futex_do_wait")]), None);
        // Its own state says nothing of the others.
        assert_eq!(seen(&[(5, "0")]), None);
    }

    #[test]
    fn a_pipe_is_filled_by_a_command_or_by_what_that_has_started() {
        let seen = |commands: &[(i32, &str)], blocked| {
            let root = tree(&[(6, "ep_poll")], commands);
            beyond(root.path(), Pid(5), blocked)
        };
        let shell = (8, "do_wait");
        let network = Beyond {
            blocked: Blocked::Network,
            command: Some("curl".to_owned()),
        };
        for blocked in [Blocked::PipeRead, Blocked::Poll, Blocked::Other] {
            assert_eq!(
                seen(&[shell, (9, "sk_wait_data")], blocked),
                Some(network.clone())
            );
            assert_eq!(seen(&[shell, (9, "hrtimer_nanosleep")], blocked), None);
        }
        assert_eq!(seen(&[shell, (9, "sk_wait_data")], Blocked::Unix), None);
    }
}
