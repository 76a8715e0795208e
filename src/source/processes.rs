//! The job's processes as a tree, with the processes that launched them and the threads of some.
//!
//! Reads only while the processes are shown, at most once a second, and at most a fixed number at once. The ranks, the
//! workers and the tree below them come from what was read for the job's sample. Reads nothing that waits for a lock on
//! memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::job::ancestors;
use crate::sample::{JobSample, ProcessRole, ProcessSeen, ProcessesSample, ThreadsSample};
use crate::source::discovery::Discovery;
use crate::source::process::{ProcessReader, Stat};
use crate::units::ProcessKey;

/// Shortest time between two readings, even if the interval is shorter.
const PAUSE: Duration = Duration::from_millis(800);
/// Maximum number of threads in a reading, which takes about 20 us for each.
const THREADS: usize = 256;
/// Maximum number of ancestors of a rank that are checked.
const ANCESTORS: usize = 4;
/// Names of programs that launch ranks, besides Python scripts.
const LAUNCHERS: [&str; 8] = [
    "torchrun",
    "accelerate",
    "deepspeed",
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "horovodrun",
];

/// Returns the CPU time of the job's processes that are neither ranks nor workers, as `discovery` found them for its sample.
/// Without pipetop, which the job may have started.
pub(super) fn others(
    job: &JobSample,
    discovery: &Discovery,
    reader: &ProcessReader,
) -> Vec<(ProcessKey, Duration)> {
    let known: BTreeSet<ProcessKey> = job.processes().map(|(key, _)| key).collect();
    let found = discovery.last_family().found.iter();
    let others = found
        .filter(|stat| !known.contains(&stat.key) && Some(stat.key.pid) != discovery.own)
        .filter_map(|stat| Some((stat.key, reader.ticks(stat.cpu_ticks)?)));
    others.collect()
}

/// Reads the job's processes.
#[derive(Debug)]
pub struct Processes {
    reader: ProcessReader,
    /// Processes whose threads are wanted. `None` = processes are not shown.
    wanted: Option<BTreeSet<ProcessKey>>,
    read_at: Option<Duration>,
    threads: BTreeMap<ProcessKey, ThreadsSample>,
}

impl Processes {
    pub fn new(proc_root: &Path) -> Self {
        Self {
            reader: ProcessReader::new(proc_root),
            wanted: None,
            read_at: None,
            threads: BTreeMap::new(),
        }
    }

    /// Sets the processes whose threads are read from now on; `None` stops all reading.
    pub fn watch(&mut self, wanted: Option<BTreeSet<ProcessKey>>) {
        if wanted.is_none() {
            self.threads.clear();
        }
        // A new request is answered by the next sample.
        self.read_at = None;
        self.wanted = wanted;
    }

    /// Returns the processes of `job`, as `discovery` found them for its sample. `None` if they are not shown, the job
    /// has ended, or the last reading was too recent.
    pub fn read(
        &mut self,
        now: Duration,
        job: &JobSample,
        discovery: &Discovery,
    ) -> Option<ProcessesSample> {
        let wanted = self.wanted.clone()?;
        let recently = |at: Duration| now.saturating_sub(at) < PAUSE;
        if job.ended || self.read_at.is_some_and(recently) {
            return None;
        }
        self.read_at = Some(now);
        let counted: BTreeMap<_, _> = job.processes().collect();
        let ranks: Vec<ProcessKey> = job.ranks.iter().map(|rank| rank.key).collect();
        let family = discovery.last_family();
        let launchers = self.launchers(&ranks).into_iter();
        let launchers = launchers.map(|stat| (stat, ProcessRole::Launcher));
        let below = family.found.iter().map(|stat| {
            let role = role(discovery.command(stat.key));
            (stat.clone(), role)
        });
        let processes: Vec<ProcessSeen> = launchers
            .chain(below)
            .map(|(stat, role)| ProcessSeen {
                process: match counted.get(&stat.key) {
                    Some(process) => (*process).clone(),
                    None => self.reader.sample_with(&stat),
                },
                key: stat.key,
                parent: stat.parent,
                name: stat.comm,
                role,
            })
            .collect();
        let alive: BTreeSet<ProcessKey> = processes.iter().map(|process| process.key).collect();
        self.read_threads(now, &wanted.intersection(&alive).copied().collect());
        Some(ProcessesSample {
            processes,
            left_out: family.left_out,
            threads: self.threads.clone(),
        })
    }

    /// Returns the processes that started the ranks, topmost first.
    fn launchers(&mut self, ranks: &[ProcessKey]) -> Vec<Stat> {
        let mut found: Vec<Stat> = Vec::new();
        for rank in ranks {
            let mut above: Vec<Stat> = Vec::new();
            ancestors(rank.pid, |pid| {
                let parent = match above.last() {
                    Some(below) => below.parent,
                    None => self.reader.stat(pid).ok()?.parent,
                };
                let parent = self.reader.stat(parent).ok()?;
                let known = found.iter().any(|other| other.key == parent.key)
                    || ranks.contains(&parent.key);
                if known || above.len() >= ANCESTORS || !launches(&parent) {
                    return None;
                }
                let pid = parent.key.pid;
                above.push(parent);
                Some(pid)
            });
            found.extend(above.into_iter().rev());
        }
        found
    }

    /// Reads the threads of as many processes as fit in one reading, those read longest ago first.
    fn read_threads(&mut self, now: Duration, wanted: &BTreeSet<ProcessKey>) {
        self.threads.retain(|key, _| wanted.contains(key));
        let mut turns: Vec<ProcessKey> = wanted.iter().copied().collect();
        turns.sort_by_key(|key| self.threads.get(key).map(|threads| threads.at));
        let mut left = THREADS;
        for key in turns {
            let numbers = self.reader.thread_numbers(key.pid);
            // Only the first process may be read in part; the others wait for their turn.
            if numbers.len() > left && left < THREADS {
                break;
            }
            let (read, left_out) = numbers.split_at(numbers.len().min(left));
            left -= read.len();
            let mut threads = ThreadsSample {
                at: now,
                threads: Vec::with_capacity(read.len()),
                left_out: left_out.len(),
            };
            let read = read.iter();
            threads
                .threads
                .extend(read.filter_map(|thread| self.reader.thread(key.pid, *thread)));
            self.threads.insert(key, threads);
        }
    }
}

fn role(command: Option<&str>) -> ProcessRole {
    let runs = |module| command.is_some_and(|command| command.contains(module));
    if runs("multiprocessing.forkserver") {
        ProcessRole::ForkServer
    } else if runs("multiprocessing.resource_tracker") {
        ProcessRole::ResourceTracker
    } else {
        ProcessRole::Other
    }
}

/// Whether it may have started a rank, judged by its name.
fn launches(stat: &Stat) -> bool {
    let name = stat.comm.as_str();
    name.starts_with("python") || name.starts_with("pt_") || LAUNCHERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sample::literals;
    use crate::units::Pid;

    /// A temporary proc root.
    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        /// Adds a process with these threads, each with 10 ticks of CPU time, started at tick 1.
        fn process(&self, pid: i32, parent: i32, name: &str, children: &[i32], threads: &[i32]) {
            let stat = |id: i32| {
                format!(
                    "{id} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 {} 0 1 0 2 0",
                    threads.len()
                )
            };
            let folder = self.0.path().join(pid.to_string());
            for thread in threads {
                let task = folder.join(format!("task/{thread}"));
                fs::create_dir_all(&task).unwrap();
                fs::write(task.join("stat"), stat(*thread)).unwrap();
                fs::write(task.join("schedstat"), "5000000 2000000 9").unwrap();
                fs::write(task.join("children"), "").unwrap();
            }
            fs::write(folder.join("stat"), stat(pid)).unwrap();
            // The last thread is the one that starts others.
            let last = folder.join(format!("task/{}/children", threads.last().unwrap()));
            let children: Vec<String> = children.iter().map(i32::to_string).collect();
            fs::write(last, children.join(" ")).unwrap();
        }

        fn command(&self, pid: i32, arguments: &str) {
            let folder = self.0.path().join(pid.to_string());
            fs::write(folder.join("cmdline"), arguments).unwrap();
        }

        fn processes(&self) -> Processes {
            Processes::new(self.0.path())
        }

        /// Returns the discovery of this job's processes.
        fn found(&self, job: &JobSample) -> Discovery {
            let ranks: Vec<ProcessKey> = job.ranks.iter().map(|rank| rank.key).collect();
            let mut discovery = Discovery::new(self.0.path());
            discovery.family(&ranks, true);
            discovery
        }
    }

    fn key(pid: i32) -> ProcessKey {
        literals::key(pid)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The job of `literals`: rank 100 with the workers 201 and 202.
    fn job() -> JobSample {
        literals::training(5.0).job.unwrap()
    }

    fn root() -> Root {
        let root = Root::new();
        let job = job();
        let rank = job.ranks[0].key.pid.0;
        root.process(9, 1, "bash", &[10], &[9]);
        root.process(10, 9, "torchrun", &[rank], &[10]);
        let workers: Vec<i32> = job.ranks[0].loaders[0]
            .workers
            .iter()
            .map(|worker| worker.key.pid.0)
            .collect();
        let children: Vec<i32> = workers.iter().copied().chain([900]).collect();
        root.process(rank, 10, "python3", &children, &[rank, 1000, 1001]);
        for worker in workers {
            root.process(worker, rank, "pt_data_worker", &[], &[worker]);
        }
        root.process(900, rank, "a) b\u{1b}[2J", &[901], &[900]);
        root.command(
            900,
            "python\0-c\0from multiprocessing.forkserver import main",
        );
        root.process(901, 900, "sh", &[], &[901]);
        root
    }

    #[test]
    fn what_ranks_and_workers_started_is_counted_by_itself() {
        let root = root();
        let reader = ProcessReader::new(root.0.path());
        let others = others(&job(), &root.found(&job()), &reader);
        let pids: Vec<i32> = others.iter().map(|(key, _)| key.pid.0).collect();
        assert_eq!(pids, [900, 901]);
        assert!(others.iter().all(|(_, cpu)| !cpu.is_zero()));
    }

    #[test]
    fn nothing_is_read_while_processes_are_hidden() {
        let root = root();
        let mut processes = root.processes();
        let found = root.found(&job());
        assert_eq!(processes.read(seconds(1), &job(), &found), None);
        processes.watch(Some(BTreeSet::new()));
        assert!(processes.read(seconds(2), &job(), &found).is_some());
        assert_eq!(
            processes.read(Duration::from_millis(2500), &job(), &found),
            None
        );
        assert!(processes.read(seconds(3), &job(), &found).is_some());
        let mut ended = job();
        ended.ended = true;
        assert_eq!(processes.read(seconds(4), &ended, &found), None);
        processes.watch(None);
        assert_eq!(processes.read(seconds(5), &job(), &found), None);
    }

    #[test]
    fn the_tree_has_launcher_ranks_workers_and_what_they_started() {
        let root = root();
        let mut processes = root.processes();
        processes.watch(Some(BTreeSet::new()));
        let job = job();
        let sample = processes.read(seconds(1), &job, &root.found(&job));
        let sample = sample.unwrap();
        let rank = job.ranks[0].key;
        let workers = &job.ranks[0].loaders[0].workers;
        assert_eq!(sample.processes.len(), 4 + workers.len());
        // The shell above is not known to launch ranks.
        let launchers: Vec<_> = sample
            .processes
            .iter()
            .filter(|seen| seen.role == ProcessRole::Launcher)
            .collect();
        assert_eq!(launchers.len(), 1);
        assert_eq!(launchers[0].name, "torchrun");
        let of = |key| {
            sample
                .processes
                .iter()
                .find(|seen| seen.key == key)
                .unwrap()
        };
        // Known counters are used as they are, others are read.
        assert_eq!(of(rank).process, job.ranks[0].process);
        assert_eq!(of(key(900)).process.cpu, Some(Duration::from_millis(100)));
        assert_eq!(of(key(900)).parent, rank.pid);
        assert!(!of(key(900)).name.contains('\u{1b}'));
        assert_eq!(of(key(901)).parent, Pid(900));
        assert_eq!(of(key(900)).role, ProcessRole::ForkServer);
        assert_eq!(of(rank).role, ProcessRole::Other);
    }

    #[test]
    fn threads_are_read_only_for_requested_processes() {
        let root = root();
        let mut processes = root.processes();
        let job = job();
        let rank = job.ranks[0].key;
        processes.watch(Some([rank, key(4711)].into()));
        let sample = processes.read(seconds(1), &job, &root.found(&job)).unwrap();
        assert_eq!(sample.threads.keys().collect::<Vec<_>>(), [&rank]);
        let threads = &sample.threads[&rank];
        assert_eq!((threads.threads.len(), threads.left_out), (3, 0));
        assert_eq!(threads.threads[1].key.pid, Pid(1000));
        assert_eq!(
            threads.threads[1].process.cpu,
            Some(Duration::from_millis(5))
        );
        assert_eq!(
            threads.threads[1].process.main_run_delay,
            Some(Duration::from_millis(2))
        );
        processes.watch(Some(BTreeSet::new()));
        assert!(
            processes
                .read(seconds(2), &job, &root.found(&job))
                .unwrap()
                .threads
                .is_empty()
        );
    }

    #[test]
    fn a_reading_of_threads_has_a_bound_and_all_have_their_turn() {
        let root = Root::new();
        let mut job = job();
        job.ranks[0].loaders.clear();
        let rank = job.ranks[0].key.pid.0;
        let many = |from: i32, count: i32| (from..from + count).collect::<Vec<i32>>();
        let crowd = i32::try_from(THREADS).unwrap();
        root.process(rank, 1, "python3", &[2000, 4000, 6000], &many(rank, 1));
        for pid in [2000, 4000] {
            root.process(pid, rank, "sh", &[], &many(pid, crowd - 10));
        }
        root.process(6000, rank, "sh", &[], &many(6000, crowd + 10));
        let mut processes = root.processes();
        processes.watch(Some([2000, 4000, 6000].map(key).into()));
        let found = root.found(&job);
        let mut read_at = |at| {
            let sample = processes.read(seconds(at), &job, &found).unwrap();
            let read = sample
                .threads
                .values()
                .filter(|read| read.at == seconds(at));
            (read.map(|read| read.threads.len()).sum::<usize>(), sample)
        };
        for at in 1..=6 {
            let (read, sample) = read_at(at);
            assert!((1..=THREADS).contains(&read), "{read} at once");
            if at >= 3 {
                assert_eq!(sample.threads.len(), 3, "each had its turn");
                assert_eq!(sample.threads[&key(6000)].left_out, 10);
            }
        }
    }
}
