//! All processes of the machine as `job` wants to know them, with what is dear to read read once.
//!
//! Knows nothing of which of them matter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::job::{PipeEnd, Process};
use crate::source::process::ProcessReader;
use crate::units::{Pid, ProcessKey};

/// Age below which a Python process may still be importing its framework, in clock ticks (100 Hz).
const YOUNG_TICKS: u64 = 3000;

/// Lists processes; remembers what does not change while a process lives.
#[derive(Debug)]
pub struct Discovery {
    reader: ProcessReader,
    known: BTreeMap<ProcessKey, Known>,
    own: Pid,
}

/// What is read once, because it waits for the target's memory map lock.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The name under which the command line was read: `exec` changes both.
    comm: String,
    command: String,
    rank: Option<u32>,
    world_size: Option<u32>,
    framework: Option<bool>,
    /// Read again when its children change.
    pipes: Option<Vec<PipeEnd>>,
    children: Vec<Pid>,
}

impl Discovery {
    pub fn new(proc_root: &Path) -> Self {
        Self {
            reader: ProcessReader::new(proc_root),
            known: BTreeMap::new(),
            own: Pid(i32::try_from(std::process::id()).unwrap_or_default()),
        }
    }

    /// Every process but this one.
    pub fn everything(&mut self) -> Vec<Process> {
        let all = self.reader.all();
        let found = all.into_iter().filter_map(|pid| self.process(pid));
        let found = found.collect();
        self.with_pipes(found)
    }

    /// The process `root` and everything below it.
    pub fn below(&mut self, root: Pid) -> Vec<Process> {
        let mut pids = vec![root];
        let mut next = 0;
        while let Some(pid) = pids.get(next) {
            let children = self.children(*pid, true);
            pids.extend(children);
            next += 1;
        }
        let found = pids.into_iter().filter_map(|pid| self.process(pid));
        let found = found.collect();
        self.with_pipes(found)
    }

    /// The trainers `ranks` with their children, and the children of their fork servers: all that a
    /// watched job can consist of. Cheap enough for each second; `thorough` also asks threads other than
    /// the main one for children.
    pub fn family(&mut self, ranks: &[ProcessKey], thorough: bool) -> Vec<Process> {
        let mut found = Vec::new();
        for rank in ranks {
            let children = self.children(rank.pid, thorough);
            found.extend(self.process(rank.pid));
            for child in children {
                let Some(child) = self.process(child) else {
                    continue;
                };
                if child.command.contains("multiprocessing.forkserver") {
                    let grandchildren = self.children(child.key.pid, false);
                    found.extend(
                        grandchildren
                            .into_iter()
                            .filter_map(|pid| self.process(pid)),
                    );
                }
                found.push(child);
            }
        }
        self.with_pipes(found)
    }

    /// All that was found, with the pipes of those that may train. New children come with new pipes. What is not
    /// among them is forgotten.
    fn with_pipes(&mut self, mut found: Vec<Process>) -> Vec<Process> {
        let mut children: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
        for process in &found {
            let siblings = children.entry(process.parent).or_default();
            siblings.push(process.key.pid);
        }
        for process in &mut found {
            let Some(known) = self.known.get_mut(&process.key) else {
                continue;
            };
            let children = children.remove(&process.key.pid).unwrap_or_default();
            if process.may_train() && (known.pipes.is_none() || known.children != children) {
                known.pipes = self.reader.pipes(process.key.pid);
                known.children = children;
            }
            process.pipes.clone_from(&known.pipes);
        }
        let alive: BTreeSet<ProcessKey> = found.iter().map(|process| process.key).collect();
        self.known.retain(|key, _| alive.contains(key));
        found
    }

    /// The arguments of a process of the last readings, as they were read once.
    pub fn command(&self, key: ProcessKey) -> Option<&str> {
        Some(&self.known.get(&key)?.command)
    }

    fn children(&mut self, pid: Pid, thorough: bool) -> Vec<Pid> {
        let children = if thorough {
            self.reader.children(pid)
        } else {
            self.reader.children_of_main_thread(pid)
        };
        children.unwrap_or_else(|| {
            // A kernel that lists no children: ask every process for its parent.
            let all = self.reader.all();
            all.into_iter()
                .filter(|child| {
                    self.reader
                        .stat(*child)
                        .is_ok_and(|stat| stat.parent == pid)
                })
                .collect()
        })
    }

    fn process(&mut self, pid: Pid) -> Option<Process> {
        let stat = self.reader.stat(pid).ok()?;
        if pid == self.own {
            return None;
        }
        let mut process = Process {
            key: stat.key,
            parent: stat.parent,
            comm: stat.comm,
            command: String::new(),
            state: stat.state,
            kernel: stat.kernel,
            rank: None,
            world_size: None,
            framework: None,
            pipes: None,
        };
        if process.kernel || process.state == 'Z' {
            return Some(process);
        }
        // In the middle of an `exec` there is the new name already, but no arguments yet.
        let known = self
            .known
            .remove(&process.key)
            .filter(|known| known.comm == process.comm && !known.command.is_empty());
        let mut known = known.unwrap_or_else(|| self.ask(&process));
        process.command.clone_from(&known.command);
        if process.may_train() {
            // A library once loaded stays; one that is missing may still come.
            if known.framework != Some(true) {
                known.framework = self.framework(&process);
            }
        }
        process.rank = known.rank;
        process.world_size = known.world_size;
        process.framework = known.framework;
        self.known.insert(process.key, known);
        Some(process)
    }

    fn ask(&mut self, process: &Process) -> Known {
        let pid = process.key.pid;
        let command = self.reader.command(pid).unwrap_or_default();
        let names = ["RANK", "WORLD_SIZE"];
        let [rank, world_size] = self.reader.environment(pid, names).unwrap_or_default();
        let number = |value: Option<String>| value?.trim().parse().ok();
        Known {
            comm: process.comm.clone(),
            command,
            rank: number(rank),
            world_size: number(world_size),
            ..Known::default()
        }
    }

    /// `None`, that is not known, also while a process is so young that it may still be importing.
    fn framework(&mut self, process: &Process) -> Option<bool> {
        let found = self.reader.has_framework(process.key.pid)?;
        let now = self.reader.uptime_ticks()?;
        (found || process.key.start_ticks + YOUNG_TICKS < now).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn workers_that_are_gone_are_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let process = |pid: i32, parent: i32| {
            let place = root.path().join(pid.to_string());
            fs::create_dir_all(place.join(format!("task/{pid}"))).unwrap();
            let stat = format!(
                "{pid} (python3) S {parent} 1 1 0 -1 0 10 0 7 0 250 50 0 0 20 0 9 0 99 0 2048 0"
            );
            fs::write(place.join("stat"), stat).unwrap();
            fs::write(place.join("cmdline"), "python3\0").unwrap();
        };
        let children = |text: &str| {
            fs::write(root.path().join("42/task/42/children"), text).unwrap();
        };
        process(42, 1);
        let rank = ProcessKey {
            pid: Pid(42),
            start_ticks: 99,
        };
        let mut discovery = Discovery::new(root.path());
        for epoch in 0..10 {
            let pids = [100 + 2 * epoch, 101 + 2 * epoch];
            for pid in pids {
                process(pid, 42);
            }
            children(&pids.map(|pid| pid.to_string()).join(" "));
            assert_eq!(discovery.family(&[rank], false).len(), 3);
        }
        assert_eq!(discovery.known.len(), 3);
    }

    #[test]
    fn a_process_that_is_met_in_the_middle_of_an_exec_is_asked_again() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("42");
        fs::create_dir(&place).unwrap();
        let stat =
            |name| format!("42 ({name}) S 1 42 42 0 -1 0 10 0 7 0 250 50 0 0 20 0 9 0 99 0 2048 0");
        let write = |file: &str, text: &str| fs::write(place.join(file), text).unwrap();
        let mut discovery = Discovery::new(root.path());
        let mut told = || {
            let found = discovery.everything();
            let [process] = &found[..] else {
                panic!("{found:?}")
            };
            (process.command.clone(), process.rank)
        };
        write("stat", &stat("bash"));
        write("cmdline", "bash\0run.sh\0");
        write("environ", "");
        assert_eq!(told(), ("bash run.sh".into(), None));
        // The name comes first, then arguments and environment.
        write("stat", &stat("python3"));
        write("cmdline", "");
        assert_eq!(told(), (String::new(), None));
        write("cmdline", "python3\0train.py\0");
        write("environ", "RANK=3\0");
        assert_eq!(told(), ("python3 train.py".into(), Some(3)));
        // Then they are known, and not read each time.
        write("cmdline", "python3\0other.py\0");
        assert_eq!(told(), ("python3 train.py".into(), Some(3)));
    }
}
