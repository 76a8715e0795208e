//! The processes of the machine or of a job in the form that `job` needs: listed anew each time, with expensive data
//! read only once.
//!
//! Must not depend on which of them matter.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

use crate::job::{
    Candidate, NoTarget, Process, ProcessTree, Target, Tree, ancestors, descendants, resolve,
};
use crate::sample::Gap;
use crate::source::file::{Failure, unreadable};
use crate::source::interpreter;
use crate::source::process::{ProcessReader, Stat, numbers_as_here};
use crate::source::starters;
use crate::units::{Pid, ProcessKey};

/// Age below which a Python process may still be importing its framework, in clock ticks (100 Hz).
const YOUNG_TICKS: u64 = 3000;
/// Maximum number of processes of a job that are read.
const FAMILY: usize = 1024;

/// Lists processes; caches what does not change while a process lives.
#[derive(Debug)]
pub struct Discovery {
    proc_root: PathBuf,
    reader: ProcessReader,
    known: BTreeMap<ProcessKey, KnownProcess>,
    /// This process; `None` if it has another number below the proc root.
    pub(super) own: Option<Pid>,
    family: Family,
    gap: Option<Gap>,
}

/// The processes found by the last search below given processes.
#[derive(Debug, Default)]
pub struct Family {
    /// The given processes and all their descendants, parents before children.
    pub found: Vec<Stat>,
    /// Lower bound of the number of further processes, which were too many to be read.
    pub left_out: usize,
}

/// A process with the data that is read only once for each program that it runs, because reading it waits for the
/// target's memory map lock.
#[derive(Debug)]
struct KnownProcess {
    process: Process,
    /// Where its stack started at that time.
    stack: u64,
    /// The children that it had when its pipes were read.
    children: Vec<Pid>,
}

impl Discovery {
    pub fn new(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            reader: ProcessReader::new(proc_root),
            known: BTreeMap::new(),
            own: numbers_as_here(proc_root)
                .then(|| i32::try_from(std::process::id()).ok().map(Pid))
                .flatten(),
            family: Family::default(),
            gap: None,
        }
    }

    /// Finds the job that `target` names.
    ///
    /// # Errors
    /// Returns an error if it names no job, several, or something that is not a training job.
    pub fn find(&mut self, target: &Target) -> Result<Option<Candidate>, NoTarget> {
        let processes = self.everything();
        // htop shows each thread with a number of its own.
        let target = &match target {
            Target::Pid(pid) => Target::Pid(self.reader.process_of(*pid).unwrap_or(*pid)),
            other => other.clone(),
        };
        let found = resolve(&processes, target, &self.own_ancestors(&processes));
        match &self.gap {
            // A process that could not be read may be the target.
            Some(gap) if !matches!(found, Ok(Some(_))) => Err(NoTarget::Unread(gap.reason.clone())),
            _ => found,
        }
    }

    /// Returns the processes that have started this one. Empty if the proc root is not `/proc`.
    pub fn own_ancestors(&self, processes: &[Process]) -> Vec<Pid> {
        let Some(own) = self.own else {
            return Vec::new();
        };
        ancestors(own, |pid| {
            if pid == own {
                return i32::try_from(parent_id()).ok().map(Pid);
            }
            let mut processes = processes.iter();
            let process = processes.find(|process| process.key.pid == pid)?;
            Some(process.parent)
        })
    }

    /// Returns every process but this one.
    pub fn everything(&mut self) -> Vec<Process> {
        self.gap = None;
        let all = self.all();
        self.with_activity(all)
    }

    /// Returns the process `root` and everything below it.
    pub fn below(&mut self, root: Pid) -> Vec<Process> {
        self.read_family(&[root], |_| true, true);
        self.with_activity(self.family.found.clone())
    }

    /// Returns the trainers `ranks` with their children, and the children of their fork servers: all processes that can
    /// train or load. Cheap enough for once a second; `thorough` also reads the children of threads other than the main
    /// one.
    pub fn family(&mut self, ranks: &[ProcessKey], thorough: bool) -> Vec<Process> {
        let roots: Vec<Pid> = ranks.iter().map(|rank| rank.pid).collect();
        self.read_family(&roots, |stat| ranks.contains(&stat.key), thorough);
        let mut parents: BTreeSet<Pid> = roots.iter().copied().collect();
        let mut found = Vec::new();
        for stat in self.family.found.clone() {
            if !roots.contains(&stat.key.pid) && !parents.contains(&stat.parent) {
                continue;
            }
            let Some(process) = self.process(stat) else {
                continue;
            };
            if process.command.contains("multiprocessing.forkserver") {
                parents.insert(process.key.pid);
            }
            found.push(process);
        }
        self.with_pipes(found, &BTreeSet::new())
    }

    /// Returns what the last call of [`Discovery::below`] or [`Discovery::family`] read, including further descendants.
    pub fn last_family(&self) -> &Family {
        &self.family
    }

    /// Returns the arguments of a process found by the last readings, as they were first read.
    pub fn command(&self, key: ProcessKey) -> Option<&str> {
        Some(&self.known.get(&key)?.process.command)
    }

    /// Returns why the last listing may lack existing processes. `None` if it is complete.
    pub fn gap(&self) -> Option<&Gap> {
        self.gap.as_ref()
    }

    /// Walks the tree below those of `roots` for which `is_meant` returns true. A process that exists but cannot be
    /// read now keeps its last state.
    fn read_family(&mut self, roots: &[Pid], is_meant: impl Fn(&Stat) -> bool, thorough: bool) {
        self.gap = None;
        let before = std::mem::take(&mut self.family).found;
        // Includes processes started by other threads, which may still exist.
        let started: ProcessTree = before.iter().map(link).collect();
        let number = |stat: Stat| (stat.key.pid, stat);
        let before: BTreeMap<Pid, Stat> = before.into_iter().map(number).collect();
        let (mut found, mut left_out) = (Vec::new(), 0);
        let mut seen = BTreeSet::new();
        let mut everyone = None;
        for root in roots {
            let stat = self.stat(*root, &before).filter(&is_meant);
            let Some(stat) = stat.filter(|_| seen.insert(*root)) else {
                continue;
            };
            found.push(stat);
            descendants(*root, |pid| {
                let mut children = self.children(pid, thorough, &mut everyone);
                children.extend(started.children(pid));
                children.retain(|child| {
                    if seen.contains(child) {
                        return false;
                    }
                    if found.len() >= FAMILY {
                        seen.insert(*child);
                        left_out += 1;
                        return false;
                    }
                    // A process that now has another parent is not ours.
                    let stat = self.stat(*child, &before);
                    let Some(stat) = stat.filter(|stat| stat.parent == pid) else {
                        return false;
                    };
                    seen.insert(*child);
                    found.push(stat);
                    true
                });
                children
            });
        }
        self.family = Family { found, left_out };
    }

    /// Returns the `stat`, or the previous one if it cannot be read now. `None` if the process is gone.
    fn stat(&mut self, pid: Pid, before: &BTreeMap<Pid, Stat>) -> Option<Stat> {
        match self.reader.stat(pid) {
            Ok(stat) => Some(stat),
            Err(error) if Failure::of(&error) == Failure::Gone => None,
            Err(error) => {
                self.note(&format!("{pid}/stat"), &error);
                before.get(&pid).cloned()
            }
        }
    }

    fn children(
        &mut self,
        pid: Pid,
        thorough: bool,
        everyone: &mut Option<ProcessTree>,
    ) -> Vec<Pid> {
        let listed = if thorough {
            self.reader.children(pid)
        } else {
            self.reader.children_of_main_thread(pid)
        };
        match listed {
            Ok(children) => children,
            // The kernel does not list children: read the parent of every process.
            Err(error) if Failure::of(&error) == Failure::Gone => {
                let everyone =
                    everyone.get_or_insert_with(|| self.all().iter().map(link).collect());
                everyone.children(pid).to_vec()
            }
            Err(error) => {
                self.note(&format!("{pid}/task"), &error);
                Vec::new()
            }
        }
    }

    /// Lists all processes.
    fn all(&mut self) -> Vec<Stat> {
        let all = match self.reader.all() {
            Ok(all) => all,
            Err(error) => {
                self.note("", &error);
                return Vec::new();
            }
        };
        let none = BTreeMap::new();
        let stats = all.into_iter().filter_map(|pid| self.stat(pid, &none));
        stats.collect()
    }

    /// Records the first failure that is not caused by the process itself.
    fn note(&mut self, file: &str, error: &io::Error) {
        if Failure::of(error) == Failure::NoResources && self.gap.is_none() {
            self.gap = Some(unreadable("job", &self.proc_root.join(file), error));
        }
    }

    /// Adds the pipes of the processes that may train. They are read again when a process has started others, even
    /// through a fork server, because those come with new pipes. Cached processes that are not in `found` are dropped.
    /// The pipes of those in `unneeded` are not read.
    fn with_pipes(
        &mut self,
        mut found: Vec<Process>,
        unneeded: &BTreeSet<ProcessKey>,
    ) -> Vec<Process> {
        let tree = Tree::new(&found);
        let is_needed = |process: &&Process| !unneeded.contains(&process.key);
        let trainers = found.iter().filter(|process| process.may_train());
        let trainers = trainers.filter(is_needed);
        let mut started: BTreeMap<Pid, Vec<Pid>> = trainers
            .map(|process| {
                let started = tree.started(process).into_iter();
                (
                    process.key.pid,
                    started.map(|child| child.key.pid).collect(),
                )
            })
            .collect();
        for process in &mut found {
            let Some(known) = self.known.get_mut(&process.key) else {
                continue;
            };
            let (known, before) = (&mut known.process, &mut known.children);
            if let Some(started) = started.remove(&process.key.pid)
                && (known.pipes.is_none() || *before != started)
            {
                let descriptors = self.reader.descriptors(process.key.pid);
                (known.pipes, known.gpu) = descriptors.unzip();
                *before = started;
            }
            process.pipes.clone_from(&known.pipes);
            process.gpu = known.gpu;
        }
        let alive: BTreeSet<ProcessKey> = found.iter().map(|process| process.key).collect();
        self.known.retain(|key, _| alive.contains(key));
        found
    }

    /// Adds the pipes, and whether those that started others only wait.
    fn with_activity(&mut self, stats: Vec<Stat>) -> Vec<Process> {
        let found = stats.into_iter().filter_map(|stat| self.process(stat));
        let found: Vec<Process> = found.collect();
        let unneeded = Tree::new(&found).spare_copies();
        let mut found = self.with_pipes(found, &unneeded);
        starters::look_at(&mut found, |pid| self.reader.main_thread_now(pid));
        found
    }

    fn process(&mut self, stat: Stat) -> Option<Process> {
        if Some(stat.key.pid) == self.own {
            return None;
        }
        if stat.kernel || stat.state == 'Z' {
            return Some(stat.into_process());
        }
        // In the middle of an `exec` the new name is already set, but there are no arguments yet.
        let known = self.known.remove(&stat.key);
        let known = known.filter(|known| {
            let process = &known.process;
            let same_program = process.comm == stat.comm && known.stack == stat.stack;
            same_program && !process.command.is_empty()
        });
        let (parent, state, stack, pages) = (stat.parent, stat.state, stat.stack, stat.rss_pages);
        let (mut process, children) = match known {
            Some(known) => (known.process, known.children),
            None => (self.ask(stat), Vec::new()),
        };
        (process.parent, process.state) = (parent, state);
        let above = self.parent(&process);
        interpreter::look_for(&self.reader, &mut process, pages, above);
        // A loaded library stays, and a missing one may still be loaded. The built-in job has none.
        if process.is_python() && process.framework != Some(true) {
            // A fork has mapped what its parent had: reading the maps of each worker would take long.
            let inherited = self.parent(&process).is_some_and(|parent| {
                parent.framework == Some(true)
                    && parent.command == process.command
                    && !process.is_fresh_child()
            });
            process.framework = if inherited {
                Some(true)
            } else {
                self.framework(&process)
            };
        }
        let known = KnownProcess {
            process: process.clone(),
            stack,
            children,
        };
        self.known.insert(process.key, known);
        Some(process)
    }

    /// Returns the parent, if it has been read.
    fn parent(&self, process: &Process) -> Option<&Process> {
        let number = |start_ticks| ProcessKey {
            pid: process.parent,
            start_ticks,
        };
        let mut known = self.known.range(number(0)..=number(u64::MAX));
        known.next_back().map(|(_, known)| &known.process)
    }

    fn ask(&mut self, stat: Stat) -> Process {
        let pid = stat.key.pid;
        let command = self.reader.command(pid).unwrap_or_default();
        let names = ["RANK", "WORLD_SIZE", "LOCAL_RANK"];
        let values = self.reader.environment(pid, names).unwrap_or_default();
        let number = |value: Option<String>| value?.trim().parse().ok();
        let [rank, world_size, local_rank] = values.map(number);
        Process {
            command,
            runs_python: self.reader.runs_python(pid),
            rank,
            world_size,
            local_rank,
            ..stat.into_process()
        }
    }

    /// Returns `None` (not known) also while a process is so young that it may still be importing.
    fn framework(&self, process: &Process) -> Option<bool> {
        let found = self.reader.has_framework(process.key.pid)?;
        let now = self.reader.uptime_ticks()?;
        (found || process.key.start_ticks + YOUNG_TICKS < now).then_some(found)
    }
}

/// Returns the process and its parent.
fn link(stat: &Stat) -> (Pid, Pid) {
    (stat.key.pid, stat.parent)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::source::interpreter::LARGE_PAGES;

    #[test]
    fn ended_workers_are_dropped() {
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
            // Processes that have ended leave the table before the next reading.
            for pid in pids {
                fs::remove_dir_all(root.path().join(pid.to_string())).unwrap();
            }
        }
        assert_eq!(discovery.known.len(), 3);
    }

    #[test]
    fn the_number_of_a_thread_means_its_process() {
        let root = tempfile::tempdir().unwrap();
        let stat = "42 (python3) S 1 1 1 0 -1 0 10 0 7 0 250 50 0 0 20 0 9 0 99 0 2048 0";
        let files = [
            ("42/stat", stat),
            ("42/cmdline", "python3\0"),
            ("57/status", "Name:\tpython3\nTgid:\t42\nPid:\t57\n"),
        ];
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut discovery = Discovery::new(root.path());
        let mut find = |pid| discovery.find(&Target::Pid(Pid(pid)));
        assert_eq!(find(57), find(42));
        assert_eq!(find(58), Err(NoTarget::NoProcess(Pid(58))));
    }

    #[test]
    fn a_process_seen_during_exec_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("42");
        fs::create_dir(&place).unwrap();
        let stat =
            |name| format!("42 ({name}) S 1 42 42 0 -1 0 10 0 7 0 250 50 0 0 20 0 9 0 99 0 2048 0");
        let write = |file: &str, text: &str| fs::write(place.join(file), text).unwrap();
        let mut discovery = Discovery::new(root.path());
        let mut found = || {
            let found = discovery.everything();
            let [process] = &found[..] else {
                panic!("{found:?}")
            };
            (process.command.clone(), process.rank)
        };
        write("stat", &stat("bash"));
        write("cmdline", "bash\0run.sh\0");
        write("environ", "");
        assert_eq!(found(), ("bash run.sh".into(), None));
        // The name is set first, then arguments and environment.
        write("stat", &stat("python3"));
        write("cmdline", "");
        assert_eq!(found(), (String::new(), None));
        write("cmdline", "python3\0train.py\0");
        write("environ", "RANK=3\0");
        assert_eq!(found(), ("python3 train.py".into(), Some(3)));
        // Then they are known, and not read again.
        write("cmdline", "python3\0other.py\0");
        assert_eq!(found(), ("python3 train.py".into(), Some(3)));
        // The same program with other arguments has another stack.
        let moved = format!("{} 0 0 140721", stat("python3"));
        write("stat", &moved);
        assert_eq!(found(), ("python3 other.py".into(), Some(3)));
    }

    /// Adds a process whose last thread has started others.
    fn process(root: &Path, pid: i32, parent: i32, threads: &[i32], children: &str) {
        let folder = root.join(pid.to_string());
        for thread in threads {
            let task = folder.join(format!("task/{thread}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("children"), "").unwrap();
        }
        let stat =
            format!("{pid} (python3) S {parent} 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 1 0 9 0 2 0");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cmdline"), format!("python3\0{pid}.py\0")).unwrap();
        let last = threads.last().unwrap();
        fs::write(folder.join(format!("task/{last}/children")), children).unwrap();
    }

    fn key(pid: i32) -> ProcessKey {
        ProcessKey {
            pid: Pid(pid),
            start_ticks: 9,
        }
    }

    fn found(discovery: &Discovery) -> Vec<i32> {
        let found = discovery.last_family().found.iter();
        found.map(|stat| stat.key.pid.0).collect()
    }

    #[test]
    fn of_4096_processes_as_many_are_read_as_fit_and_the_rest_is_counted() {
        let root = tempfile::tempdir().unwrap();
        let pids: Vec<i32> = (1_000..1_000 + 4_096).collect();
        let words: Vec<String> = pids.iter().map(i32::to_string).collect();
        process(root.path(), 42, 1, &[42], &words.join(" "));
        for pid in pids {
            process(root.path(), pid, 42, &[pid], "");
        }
        let mut discovery = Discovery::new(root.path());
        assert_eq!(discovery.everything().len(), 4_097);
        discovery.family(&[key(42)], true);
        let family = discovery.last_family();
        assert_eq!(
            (family.found.len(), family.left_out),
            (FAMILY, 4_097 - FAMILY)
        );
    }

    #[test]
    fn children_of_threads_are_kept_until_they_end() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 42, 1, &[42, 43], "50 51");
        process(root.path(), 50, 42, &[50], "60");
        process(root.path(), 51, 42, &[51], "");
        process(root.path(), 60, 50, &[60], "");
        let mut discovery = Discovery::new(root.path());
        assert_eq!(discovery.family(&[key(42)], true).len(), 3);
        assert_eq!(found(&discovery), [42, 50, 51, 60]);
        // The children of threads other than the main one are not read each time.
        assert_eq!(discovery.family(&[key(42)], false).len(), 3);
        assert_eq!(found(&discovery), [42, 50, 51, 60]);
        fs::remove_dir_all(root.path().join("50")).unwrap();
        discovery.family(&[key(42)], false);
        assert_eq!(found(&discovery), [42, 51], "60 has another parent by now");
        let reused = ProcessKey {
            start_ticks: 8,
            ..key(42)
        };
        assert_eq!(discovery.family(&[reused], true), []);
    }

    #[test]
    fn pipes_are_read_again_where_a_fork_server_has_started_others() {
        let root = tempfile::tempdir().unwrap();
        let server = "python3 -c from multiprocessing.forkserver import main; main(5, 6)";
        process(root.path(), 42, 1, &[42], "50");
        process(root.path(), 50, 42, &[50], "60");
        fs::write(root.path().join("50/cmdline"), server).unwrap();
        process(root.path(), 60, 50, &[60], "");
        let fd = root.path().join("42/fd");
        fs::create_dir(&fd).unwrap();
        symlink("pipe:[100]", fd.join("3")).unwrap();
        let mut discovery = Discovery::new(root.path());
        let mut pipes = || -> Vec<u64> {
            let found = discovery.family(&[key(42)], false);
            let pipes = found[0].pipes.iter().flatten();
            pipes.map(|pipe| pipe.inode).collect()
        };
        assert_eq!(pipes(), [100]);
        symlink("pipe:[200]", fd.join("4")).unwrap();
        assert_eq!(pipes(), [100], "nothing was started");
        process(root.path(), 61, 50, &[61], "");
        fs::write(root.path().join("50/task/50/children"), "61").unwrap();
        assert_eq!(pipes(), [100, 200]);
    }

    /// Workers that inherited a framework do not make a search for a job with hundreds of them slower.
    #[test]
    fn what_workers_have_inherited_is_not_read_in_a_search() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 42, 1, &[42], "50");
        process(root.path(), 50, 42, &[50], "");
        fs::write(root.path().join("50/cmdline"), "python3\0\x342.py\0").unwrap();
        let stat = "50 (pt_data_worker) S 42 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 1 0 9 0 2 0";
        fs::write(root.path().join("50/stat"), stat).unwrap();
        fs::write(root.path().join("uptime"), "9999.00 9999.00\n").unwrap();
        for pid in ["42", "50"] {
            fs::create_dir(root.path().join(pid).join("fd")).unwrap();
            symlink("pipe:[100]", root.path().join(pid).join("fd/3")).unwrap();
        }
        fs::write(
            root.path().join("42/maps"),
            "0-1 r-xp 0 0 0 /lib/libtorch.so\n",
        )
        .unwrap();
        let mut discovery = Discovery::new(root.path());
        let read = |found: Vec<Process>| -> Vec<(Option<bool>, Option<usize>)> {
            let pipes = |process: &Process| process.pipes.as_ref().map(Vec::len);
            found
                .iter()
                .map(|process| (process.framework, pipes(process)))
                .collect()
        };
        let [trainer, search] = [(Some(true), Some(1)), (Some(true), None)];
        assert_eq!(read(discovery.everything()), [trainer, search]);
        // To tell loaders apart, their pipes are needed.
        assert_eq!(read(discovery.family(&[key(42)], false)), [trainer; 2]);
        assert_eq!(read(discovery.everything()), [trainer; 2]);
    }

    #[test]
    fn a_python_with_another_name_is_found_once_it_has_loaded_its_libraries() {
        let root = tempfile::tempdir().unwrap();
        let of = |pid: i32, parent: i32, pages: u64, maps: &str| {
            let place = root.path().join(pid.to_string());
            fs::create_dir_all(&place).unwrap();
            let stat = format!(
                "{pid} (trainer) S {parent} 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 1 0 9 0 {pages} 0"
            );
            fs::write(place.join("stat"), stat).unwrap();
            fs::write(place.join("cmdline"), "./trainer\0train.py\0").unwrap();
            fs::write(place.join("maps"), maps).unwrap();
            let _ = symlink("/opt/trainer", place.join("exe"));
        };
        let mut discovery = Discovery::new(root.path());
        let mut pythons = || -> Vec<bool> {
            let mut found = discovery.everything();
            found.sort_by_key(|process| process.key);
            found.iter().map(Process::is_python).collect()
        };
        let module = "0-1 r-xp 0 0 0 /t/_C.cpython-311-x86_64-linux-gnu.so\n0-1 r-xp 0 0 0 /t/libtorch_cpu.so\n";
        of(42, 1, LARGE_PAGES - 1, module);
        // A debugger, for example.
        of(
            60,
            1,
            9 * LARGE_PAGES,
            "0-1 r-xp 0 0 0 /lib/libpython3.11.so.1.0\n",
        );
        assert_eq!(pythons(), [false; 2]);
        of(42, 1, LARGE_PAGES, module);
        // Its maps are not read: a fork has the libraries of its parent.
        of(50, 42, LARGE_PAGES, "");
        assert_eq!(pythons(), [true, true, false]);
        // Loaded since.
        of(60, 1, 17 * LARGE_PAGES, module);
        assert_eq!(pythons(), [true, true, false]);
        of(60, 1, 18 * LARGE_PAGES, module);
        assert_eq!(pythons(), [true; 3]);
    }

    #[test]
    fn a_kernel_that_lists_no_children_is_asked_for_parents() {
        let root = tempfile::tempdir().unwrap();
        for (pid, parent) in [(42, 1), (50, 42), (60, 50), (70, 1)] {
            process(root.path(), pid, parent, &[pid], "");
            fs::remove_dir_all(root.path().join(format!("{pid}/task"))).unwrap();
        }
        let mut discovery = Discovery::new(root.path());
        assert_eq!(discovery.below(Pid(42)).len(), 3);
        assert_eq!(found(&discovery), [42, 50, 60]);
    }

    #[test]
    fn a_temporarily_unreadable_process_has_not_ended() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 42, 1, &[42], "50");
        process(root.path(), 50, 42, &[50], "");
        let mut discovery = Discovery::new(root.path());
        let before = discovery.family(&[key(42)], false);
        assert_eq!(before.len(), 2);
        // Simulates any failure that is not caused by the process: the file exists but cannot be read.
        let stat = root.path().join("42/stat");
        fs::remove_file(&stat).unwrap();
        fs::create_dir(&stat).unwrap();
        assert_eq!(discovery.family(&[key(42)], false), before);
        fs::remove_dir_all(root.path().join("42")).unwrap();
        assert_eq!(discovery.family(&[key(42)], false), []);
    }

    #[test]
    fn a_family_that_is_too_large_is_read_in_part() {
        let root = tempfile::tempdir().unwrap();
        let many = 100..100 + i32::try_from(FAMILY).unwrap() + 9;
        let children: Vec<String> = many.clone().map(|pid| pid.to_string()).collect();
        process(root.path(), 42, 1, &[42], &children.join(" "));
        for pid in many {
            process(root.path(), pid, 42, &[pid], "");
        }
        let mut discovery = Discovery::new(root.path());
        discovery.family(&[key(42)], false);
        let family = discovery.last_family();
        assert_eq!((family.found.len(), family.left_out), (FAMILY, 10));
    }
}
