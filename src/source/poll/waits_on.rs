//! What a sleeping worker waits for: another of its threads, or a command that it has started.
//!
//! Does not depend on loaders.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::blocked::{Blocked, blocked_in};
use super::paced::InVain;
use crate::source::process::ProcessReader;
use crate::units::{Pid, printable};

/// Maximum number of threads polled, and of commands of each level.
const MAX_TASKS: usize = 32;
/// Levels of child processes: a shell may run a command that runs another.
const MAX_DEPTH: usize = 3;
/// Age at which a search is repeated.
const PAUSE: Duration = Duration::from_millis(250);

/// The state of the thread or command that a sleeping worker waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitsOn {
    pub(super) blocked: Blocked,
    /// The name of the command; `None` for a thread.
    pub(super) command: Option<String>,
}

/// The last search for what a worker waits for.
#[derive(Debug, Default)]
pub(super) struct WaitSearch {
    at: Duration,
    /// What the worker was blocked in; `None` before the first search.
    blocked: Option<Blocked>,
    found: Option<WaitsOn>,
    in_vain: InVain,
}

impl WaitSearch {
    /// Returns what holds the worker up: what the thread or command that it waits for is blocked in, else what the
    /// worker itself is `blocked` in. Searches if `blocked` is new or the last search is old.
    pub(super) fn held_up_by(
        &mut self,
        now: Duration,
        blocked: Blocked,
        search: impl FnOnce() -> Option<WaitsOn>,
    ) -> Blocked {
        let is_old = now.saturating_sub(self.at) >= self.in_vain.pause(PAUSE);
        if self.blocked != Some(blocked) || is_old {
            self.found = search();
            (self.at, self.blocked) = (now, Some(blocked));
            self.in_vain.record(self.found.is_some());
        }
        self.found.as_ref().map_or(blocked, |found| found.blocked)
    }

    /// Returns the name of the command that the worker waits for while it is `blocked` in this way.
    pub(super) fn command(&self, blocked: Blocked) -> Option<&str> {
        let found = self.found.as_ref()?;
        found
            .command
            .as_deref()
            .filter(|_| self.blocked == Some(blocked))
    }
}

/// Returns what `worker` waits for while its main thread is `blocked`, in a call on the descriptor `polled` if that is
/// known. `None` if that says no more than the main thread's own state.
pub(super) fn waits_on(
    proc_root: &Path,
    worker: Pid,
    blocked: Blocked,
    polled: Option<i32>,
) -> Option<WaitsOn> {
    let other = |blocked| WaitsOn {
        blocked,
        command: None,
    };
    match blocked {
        // The worker waits for a lock that another thread holds, or sleeps until it checks again. That thread may wait
        // for a process of its own, such as one of a pool.
        Blocked::Lock | Blocked::Timer => in_threads(proc_root, worker)
            .map(other)
            .or_else(|| in_commands(proc_root, worker)),
        // Its event loop sleeps, or waits for its other threads.
        Blocked::Network => {
            let alone = waits_for_threads(&proc_root.join(worker.to_string()), worker);
            let threads = alone.then(|| in_threads(proc_root, worker));
            threads.map(|most| other(most.unwrap_or(Blocked::Timer)))
        }
        // Waits for the output of a command, or for its end.
        Blocked::PipeRead | Blocked::Poll | Blocked::Other => {
            in_commands(proc_root, worker).or_else(|| {
                // A pipe is filled by another process, not by a network.
                let pipe = blocked == Blocked::Poll && is_pipe(proc_root, worker, polled?);
                pipe.then(|| other(Blocked::PipeRead))
            })
        }
        _ => None,
    }
}

/// Returns what holds up the commands of `worker`, and the name of the most active one.
fn in_commands(proc_root: &Path, worker: Pid) -> Option<WaitsOn> {
    let commands = commands(proc_root, worker).into_iter();
    let commands: Vec<(Pid, Blocked)> = commands
        .map(|command| (command, command_at(proc_root, command)))
        .collect();
    let blocked = most_active(commands.iter().map(|(_, at)| *at))?;
    let (who, _) = commands.iter().find(|(_, at)| *at == blocked)?;
    let name = fs::read_to_string(proc_root.join(format!("{who}/comm"))).ok()?;
    Some(WaitsOn {
        blocked,
        command: Some(printable(name.trim_end())),
    })
}

/// Returns what holds up the threads of `worker` other than its main one.
fn in_threads(proc_root: &Path, worker: Pid) -> Option<Blocked> {
    let task = proc_root.join(format!("{worker}/task"));
    let threads = ProcessReader::new(proc_root).thread_numbers(worker);
    let threads = threads.into_iter().filter(|thread| *thread != worker);
    let process = proc_root.join(worker.to_string());
    let threads = threads
        .take(MAX_TASKS)
        .map(|thread| match at(&task, thread) {
            Blocked::Network if waits_for_threads(&process, thread) => Blocked::Lock,
            blocked => blocked,
        });
    most_active(threads)
}

/// Returns the state of the most active one: running before waiting for a disk, and that before waiting for a network.
/// `None` if none is in one of these states.
fn most_active(all: impl Iterator<Item = Blocked>) -> Option<Blocked> {
    let rank = |blocked: &Blocked| match blocked {
        Blocked::Running => 3,
        Blocked::Disk => 2,
        Blocked::Network => 1,
        _ => 0,
    };
    let most_active = all.max_by_key(rank)?;
    (rank(&most_active) > 0).then_some(most_active)
}

fn is_pipe(proc_root: &Path, process: Pid, descriptor: i32) -> bool {
    let link = fs::read_link(proc_root.join(format!("{process}/fd/{descriptor}")));
    link.is_ok_and(|link| link.to_string_lossy().starts_with("pipe:"))
}

/// Returns what a process, or a thread in this folder, is blocked in.
fn at(folder: &Path, number: Pid) -> Blocked {
    let wchan = fs::read_to_string(folder.join(format!("{number}/wchan")));
    wchan.map_or(Blocked::Other, |wchan| blocked_in(&wchan))
}

/// Returns what a command is blocked in. One that polls and has a socket open waits for that, as `curl` does.
fn command_at(proc_root: &Path, command: Pid) -> Blocked {
    match at(proc_root, command) {
        Blocked::Poll if has_socket(proc_root, command) => Blocked::Network,
        // A zombie is blocked in nothing, like a process that runs.
        Blocked::Running if has_ended(proc_root, command) => Blocked::Other,
        blocked => blocked,
    }
}

fn has_ended(proc_root: &Path, command: Pid) -> bool {
    let stat = ProcessReader::new(proc_root).stat(command);
    stat.is_ok_and(|stat| stat.state == 'Z')
}

/// Whether the process has a socket open. False if its descriptors cannot be read.
fn has_socket(proc_root: &Path, process: Pid) -> bool {
    let Ok(open) = fs::read_dir(proc_root.join(format!("{process}/fd"))) else {
        return false;
    };
    let links = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let mut links = links.take(MAX_TASKS);
    links.any(|link| link.to_string_lossy().starts_with("socket:"))
}

/// Whether the thread runs an event loop that can only be woken by other threads, as asyncio does with a pair of
/// sockets. False if that cannot be read.
fn waits_for_threads(process: &Path, thread: Pid) -> bool {
    let only = || -> Option<bool> {
        let call = fs::read_to_string(process.join(format!("task/{thread}/syscall"))).ok()?;
        let first = call.split_ascii_whitespace().nth(1)?.strip_prefix("0x")?;
        let queue = u32::from_str_radix(first, 16).ok()?;
        let info = fs::read_to_string(process.join(format!("fdinfo/{queue}"))).ok()?;
        let mut watched = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
        let (Some(one), None) = (watched.next(), watched.next()) else {
            return None;
        };
        let one: u32 = one.split_ascii_whitespace().next()?.parse().ok()?;
        let link = fs::read_link(process.join(format!("fd/{one}"))).ok()?;
        let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        let local = fs::read_to_string(process.join("net/unix")).ok()?;
        let mut numbers = local
            .lines()
            .filter_map(|line| line.split_ascii_whitespace().nth(6));
        Some(numbers.any(|local| local == number))
    };
    only().unwrap_or(false)
}

/// Returns the processes that the main thread of `process` has started, and their descendants.
fn commands(proc_root: &Path, process: Pid) -> Vec<Pid> {
    let mut all: Vec<Pid> = Vec::new();
    let mut parents = vec![process];
    let mut reader = ProcessReader::new(proc_root);
    for _ in 0..MAX_DEPTH {
        let children = parents
            .iter()
            .filter_map(|parent| reader.children_of_main_thread(*parent).ok());
        // The newest: older ones may have ended long ago.
        let children = children.flat_map(|children| children.into_iter().rev());
        parents = children.take(MAX_TASKS).collect();
        all.extend(&parents);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proc root with threads of process 5, its command 8 and that command's child 9, each with its `wchan`.
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
    fn what_a_worker_waits_for_is_searched_when_its_state_is_new_and_then_at_a_pause() {
        let mut search = WaitSearch::default();
        let mut searched = 0;
        let mut poll = |milliseconds, blocked, found: Option<&WaitsOn>| {
            let now = Duration::from_millis(milliseconds);
            search.held_up_by(now, blocked, || {
                searched += 1;
                found.cloned()
            })
        };
        let runs = WaitsOn {
            blocked: Blocked::Running,
            command: None,
        };
        assert_eq!(poll(10, Blocked::Lock, Some(&runs)), Blocked::Running);
        assert_eq!(poll(20, Blocked::Lock, None), Blocked::Running);
        assert_eq!(poll(30, Blocked::Timer, None), Blocked::Timer);
        assert_eq!(poll(290, Blocked::Timer, Some(&runs)), Blocked::Running);
        // Nothing is found in ten seconds.
        for at in (1_000..11_000).step_by(10) {
            poll(at, Blocked::Timer, None);
        }
        assert_eq!(searched, 3 + 8 + 8);
    }

    #[test]
    fn an_event_loop_that_only_threads_wake_waits_for_no_network() {
        let root = tree(&[(5, "futex_do_wait"), (6, "ep_poll")], &[]);
        let seen =
            || waits_on(root.path(), Pid(5), Blocked::Lock, None).map(|waits_on| waits_on.blocked);
        let process = root.path().join("5");
        for folder in ["fdinfo", "fd", "net"] {
            fs::create_dir_all(process.join(folder)).unwrap();
        }
        let write = |path: &str, text: &str| fs::write(process.join(path), text).unwrap();
        write(
            "task/6/syscall",
            "232 0xb 0x7ff8f746ccb0 0x1 0x64 0x0 0x0 0x7ff8 0x7ff8",
        );
        std::os::unix::fs::symlink("socket:[77]", process.join("fd/12")).unwrap();
        let pair = "tfd:       12 events:       19 data:  c  pos:0 ino:8 sdev:8\n";
        let server = "tfd:       13 events:       19 data:  d  pos:0 ino:9 sdev:8\n";
        write("fdinfo/11", &format!("pos:\t0\nflags:\t02000002\n{pair}"));
        let header = "Num       RefCount Protocol Flags    Type St Inode Path\n";
        write("net/unix", header);
        assert_eq!(seen(), Some(Blocked::Network), "a socket of another kind");
        let listed = format!("{header}ffff: 00000003 00000000 00000000 0001 03 77\n");
        write("net/unix", &listed);
        assert_eq!(seen(), None);
        // The main thread's own loop, as under asyncio.run().
        let call = fs::read_to_string(process.join("task/6/syscall")).unwrap();
        write("task/5/syscall", &call);
        let own = || waits_on(root.path(), Pid(5), Blocked::Network, None);
        assert_eq!(own().map(|waits_on| waits_on.blocked), Some(Blocked::Timer));
        write(
            "fdinfo/11",
            &format!("pos:\t0\nflags:\t02000002\n{pair}{server}"),
        );
        assert_eq!(seen(), Some(Blocked::Network));
        assert_eq!(own(), None);
    }

    #[test]
    fn a_lock_is_held_by_the_thread_that_does_most() {
        let seen = |threads: &[(i32, &str)]| {
            let root = tree(threads, &[]);
            waits_on(root.path(), Pid(5), Blocked::Lock, None).map(|waits_on| waits_on.blocked)
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
        // The state of the main thread itself does not count.
        assert_eq!(seen(&[(5, "0")]), None);
    }

    #[test]
    fn a_pipe_is_filled_by_a_command_or_by_what_that_has_started() {
        let seen = |commands: &[(i32, &str)], blocked| {
            let root = tree(&[(6, "ep_poll")], commands);
            waits_on(root.path(), Pid(5), blocked, None)
        };
        let shell = (8, "do_wait");
        let network = WaitsOn {
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

    /// The thread that hands work to a `ProcessPoolExecutor` waits for a lock until a process of the pool has done it.
    #[test]
    fn a_lock_that_no_thread_holds_is_that_of_a_pool_at_work() {
        let seen = |thread: &str, process: &str| {
            let root = tree(
                &[(5, "futex_do_wait"), (6, thread)],
                &[(8, process), (9, "futex_do_wait")],
            );
            let found = waits_on(root.path(), Pid(5), Blocked::Lock, None);
            found.map(|found| (found.blocked, found.command.is_some()))
        };
        assert_eq!(seen("do_poll", "0"), Some((Blocked::Running, true)));
        assert_eq!(seen("0", "0"), Some((Blocked::Running, false)));
        assert_eq!(seen("do_poll", "futex_do_wait"), None);
    }

    #[test]
    fn a_command_that_polls_waits_for_its_socket() {
        let root = tree(&[(5, "pipe_read")], &[(8, "do_wait"), (9, "do_sys_poll")]);
        let seen = || waits_on(root.path(), Pid(5), Blocked::PipeRead, None);
        let folder = root.path().join("9/fd");
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("pipe:[7]", folder.join("1")).unwrap();
        assert_eq!(seen(), None);
        std::os::unix::fs::symlink("socket:[8]", folder.join("5")).unwrap();
        let network = WaitsOn {
            blocked: Blocked::Network,
            command: Some("curl".to_owned()),
        };
        assert_eq!(seen(), Some(network));
    }

    /// `subprocess.Popen` leaves zombies if nobody asks for their end.
    #[test]
    fn commands_that_have_ended_do_nothing() {
        let ended: Vec<i32> = (100..200).collect();
        let commands: Vec<_> = ended.iter().map(|pid| (*pid, "0")).collect();
        let root = tree(
            &[(5, "do_wait")],
            &[&commands[..], &[(8, "do_wait"), (9, "pipe_read")]].concat(),
        );
        let stat = |pid: i32, state: char| {
            let rest = "1 1 1 0 -1 4194304 0 0 0 0 7 3 0 0 20 0 1 0 500 0 0 0";
            let text = format!("{pid} (true) {state} {rest}\n");
            fs::write(root.path().join(format!("{pid}/stat")), text).unwrap();
        };
        for pid in &ended {
            stat(*pid, 'Z');
        }
        let children: Vec<_> = ended.iter().map(i32::to_string).collect();
        let list = root.path().join("5/task/5/children");
        fs::write(list, children.join(" ") + " 8 ").unwrap();
        let seen = || waits_on(root.path(), Pid(5), Blocked::Other, None);
        assert_eq!(seen(), None);
        let write = |path: &str, text: &str| fs::write(root.path().join(path), text).unwrap();
        write("9/wchan", "0");
        stat(9, 'R');
        let running = seen().map(|found| (found.blocked, found.command));
        assert_eq!(running, Some((Blocked::Running, Some("curl".to_owned()))));
    }

    #[test]
    fn a_pipe_that_another_process_fills_is_no_network() {
        let root = tree(&[(5, "do_poll")], &[(8, "do_poll"), (9, "futex_do_wait")]);
        let folder = root.path().join("5/fd");
        fs::create_dir_all(&folder).unwrap();
        for (descriptor, link) in [("3", "pipe:[7]"), ("4", "socket:[8]")] {
            std::os::unix::fs::symlink(link, folder.join(descriptor)).unwrap();
        }
        let seen = |polled| {
            let waits_on = waits_on(root.path(), Pid(5), Blocked::Poll, polled);
            waits_on.map(|waits_on| waits_on.blocked)
        };
        assert_eq!(seen(Some(3)), Some(Blocked::PipeRead));
        assert_eq!(seen(Some(4)), None);
        assert_eq!(seen(None), None);
    }
}
