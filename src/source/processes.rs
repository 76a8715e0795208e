//! The job's processes as a tree, with what launched them and the threads of some.
//!
//! Reads only while somebody looks, no more often than each second, and no more at once than is set here. Knows the
//! ranks and workers from the job's sample, and asks nothing of them that stands there; asks for nothing that waits
//! for a lock on memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::time::Duration;

use crate::sample::{
    JobSample, ProcessRole, ProcessSample, ProcessSeen, ProcessesSample, ThreadsSample,
};
use crate::source::process::{ProcessReader, Stat};
use crate::units::{Pid, ProcessKey};

/// Between two readings, however short the interval.
const PAUSE: Duration = Duration::from_millis(800);
/// Processes in a reading.
const PROCESSES: usize = 1024;
/// Threads in a reading: some 20 us each.
const THREADS: usize = 256;
/// In every so many readings, threads other than the main one are asked for children, too.
const THOROUGH: u64 = 5;
/// Ancestors of a rank that are looked at.
const ANCESTORS: usize = 4;
/// Names of programs that launch ranks; so do scripts of Python.
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

/// What is read of the job's processes, and for whom.
#[derive(Debug)]
pub struct Processes {
    reader: ProcessReader,
    /// Whose threads are wanted. `None` = nobody looks.
    wanted: Option<BTreeSet<ProcessKey>>,
    read_at: Option<Duration>,
    readings: u64,
    /// Everything below the ranks that was found so far, by what `stat` said of it first.
    known: BTreeMap<ProcessKey, Stat>,
    threads: BTreeMap<ProcessKey, ThreadsSample>,
}

impl Processes {
    pub fn new(proc_root: &Path) -> Self {
        Self {
            reader: ProcessReader::new(proc_root),
            wanted: None,
            read_at: None,
            readings: 0,
            known: BTreeMap::new(),
            threads: BTreeMap::new(),
        }
    }

    /// Reads from now on, with the threads of these; nothing any more where nobody looks.
    pub fn watch(&mut self, wanted: Option<BTreeSet<ProcessKey>>) {
        if wanted.is_none() {
            self.known.clear();
            self.threads.clear();
            self.readings = 0;
        }
        // Who asks for more sees it with the next sample.
        self.read_at = None;
        self.wanted = wanted;
    }

    /// The processes of `job`. `None` where nobody looks, the job has ended, or the last reading is too near. `command`
    /// gives the arguments of a process where they are known: they are not asked for here.
    pub fn read<'a>(
        &mut self,
        now: Duration,
        job: &JobSample,
        command: impl Fn(ProcessKey) -> Option<&'a str>,
    ) -> Option<ProcessesSample> {
        let wanted = self.wanted.clone()?;
        let recently = |at: Duration| now.saturating_sub(at) < PAUSE;
        if job.ended || self.read_at.is_some_and(recently) {
            return None;
        }
        self.read_at = Some(now);
        let thorough = self.readings.is_multiple_of(THOROUGH);
        self.readings += 1;
        let counted = counted(job);
        let ranks: Vec<ProcessKey> = job.ranks.iter().map(|rank| rank.key).collect();
        let (below, left_out) = self.below(&ranks, thorough);
        let found = self.launchers(&ranks).into_iter().chain(below);
        let processes: Vec<ProcessSeen> = found
            .map(|(stat, launcher)| ProcessSeen {
                key: stat.key,
                parent: stat.parent,
                name: stat.comm,
                role: if launcher {
                    ProcessRole::Launcher
                } else {
                    role(command(stat.key))
                },
                process: match counted.get(&stat.key) {
                    Some(process) => (*process).clone(),
                    None => self.reader.sample(stat.key),
                },
            })
            .collect();
        let alive: BTreeSet<ProcessKey> = processes.iter().map(|process| process.key).collect();
        self.known.retain(|key, _| alive.contains(key));
        self.read_threads(now, &wanted.intersection(&alive).copied().collect());
        Some(ProcessesSample {
            processes,
            left_out,
            threads: self.threads.clone(),
        })
    }

    /// What started the ranks, the uppermost first.
    fn launchers(&mut self, ranks: &[ProcessKey]) -> Vec<(Stat, bool)> {
        let mut found: Vec<(Stat, bool)> = Vec::new();
        for rank in ranks {
            let mut above = Vec::new();
            let mut below = self.reader.stat(rank.pid).ok();
            while let Some(stat) = below.take()
                && above.len() < ANCESTORS
            {
                below = self.reader.stat(stat.parent).ok().filter(|parent| {
                    let known = found.iter().any(|(other, _)| other.key == parent.key);
                    !known && !ranks.contains(&parent.key) && launches(parent)
                });
                above.extend(below.clone());
            }
            found.extend(above.into_iter().rev().map(|stat| (stat, true)));
        }
        found
    }

    /// The ranks and everything below them, parents before children, and how many more there are at least.
    fn below(&mut self, ranks: &[ProcessKey], thorough: bool) -> (Vec<(Stat, bool)>, usize) {
        let mut found: Vec<(Stat, bool)> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next: VecDeque<Pid> = ranks.iter().map(|rank| rank.pid).collect();
        while found.len() < PROCESSES
            && let Some(pid) = next.pop_front()
        {
            let Ok(stat) = self.reader.stat(pid) else {
                continue;
            };
            // A damaged tree could name a process its own ancestor; one that has another parent by now is not ours.
            let ours = ranks.contains(&stat.key) || seen.contains(&stat.parent);
            if !ours || !seen.insert(pid) {
                continue;
            }
            let children = if thorough {
                self.reader.children(pid)
            } else {
                self.reader.children_of_main_thread(pid)
            };
            next.extend(children.unwrap_or_default());
            // Those that another thread has started, and that may still be there.
            let known = self.known.values().filter(|known| known.parent == pid);
            next.extend(known.map(|known| known.key.pid));
            self.known.insert(stat.key, stat.clone());
            found.push((stat, false));
        }
        next.retain(|pid| !seen.contains(pid));
        (found, next.len())
    }

    /// Reads the threads of as many processes as may be read at once: those first that were read longest ago.
    fn read_threads(&mut self, now: Duration, wanted: &BTreeSet<ProcessKey>) {
        self.threads.retain(|key, _| wanted.contains(key));
        let mut turns: Vec<ProcessKey> = wanted.iter().copied().collect();
        turns.sort_by_key(|key| self.threads.get(key).map(|threads| threads.at));
        let mut left = THREADS;
        for key in turns {
            let numbers = self.reader.thread_numbers(key.pid);
            // The first of all may be cut, every other waits for its turn.
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

/// The counters that the job's sample holds already.
fn counted(job: &JobSample) -> BTreeMap<ProcessKey, &ProcessSample> {
    let ranks = job.ranks.iter().map(|rank| (rank.key, &rank.process));
    let loaders = job.ranks.iter().flat_map(|rank| &rank.loaders);
    let workers = loaders.flat_map(|loader| &loader.workers);
    ranks
        .chain(workers.map(|worker| (worker.key, &worker.process)))
        .collect()
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

/// By its name, it may have started a rank.
fn launches(stat: &Stat) -> bool {
    let name = stat.comm.as_str();
    name.starts_with("python") || name.starts_with("pt_") || LAUNCHERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sample::literals;

    /// A temporary proc root.
    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        /// A process of these threads, each with 10 ticks of CPU time, that has started at tick 1.
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

        fn ends(&self, pid: i32) {
            fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
        }

        fn processes(&self) -> Processes {
            Processes::new(self.0.path())
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
        root.process(901, 900, "sh", &[], &[901]);
        root
    }

    fn pids(sample: &ProcessesSample) -> Vec<i32> {
        sample.processes.iter().map(|seen| seen.key.pid.0).collect()
    }

    #[test]
    fn nothing_is_read_where_nobody_looks() {
        let root = root();
        let mut processes = root.processes();
        assert_eq!(processes.read(seconds(1), &job(), |_| None), None);
        processes.watch(Some(BTreeSet::new()));
        assert!(processes.read(seconds(2), &job(), |_| None).is_some());
        assert_eq!(
            processes.read(Duration::from_millis(2500), &job(), |_| None),
            None
        );
        assert!(processes.read(seconds(3), &job(), |_| None).is_some());
        let mut ended = job();
        ended.ended = true;
        assert_eq!(processes.read(seconds(4), &ended, |_| None), None);
        processes.watch(None);
        assert_eq!(processes.read(seconds(5), &job(), |_| None), None);
    }

    #[test]
    fn the_tree_has_launcher_ranks_workers_and_what_they_started() {
        let root = root();
        let mut processes = root.processes();
        processes.watch(Some(BTreeSet::new()));
        let job = job();
        let command = |asked| (asked == key(901)).then_some("python -c multiprocessing.forkserver");
        let sample = processes.read(seconds(1), &job, command).unwrap();
        let rank = job.ranks[0].key;
        let workers = &job.ranks[0].loaders[0].workers;
        assert_eq!(sample.processes.len(), 4 + workers.len());
        // The shell above launched no rank, for all that is known.
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
        // Counters that are known are taken as they are, others are read.
        assert_eq!(of(rank).process, job.ranks[0].process);
        assert_eq!(of(key(900)).process.cpu, Some(Duration::from_millis(100)));
        assert_eq!(of(key(900)).parent, rank.pid);
        assert!(!of(key(900)).name.contains('\u{1b}'));
        assert_eq!(of(key(901)).parent, Pid(900));
        assert_eq!(of(key(901)).role, ProcessRole::ForkServer);
        assert_eq!(of(key(900)).role, ProcessRole::Other);
    }

    #[test]
    fn what_a_thread_has_started_stays_known_and_what_has_ended_goes() {
        let root = root();
        let mut processes = root.processes();
        processes.watch(Some(BTreeSet::new()));
        let first = processes.read(seconds(1), &job(), |_| None).unwrap();
        // Not asked for by each reading, as each of its threads would have to be.
        let second = processes.read(seconds(2), &job(), |_| None).unwrap();
        assert_eq!(pids(&first), pids(&second));
        root.ends(900);
        let third = processes.read(seconds(3), &job(), |_| None).unwrap();
        assert!(!pids(&third).contains(&900));
        assert!(!pids(&third).contains(&901), "its parent is another by now");
    }

    #[test]
    fn threads_are_read_of_those_alone_whose_are_wanted() {
        let root = root();
        let mut processes = root.processes();
        let job = job();
        let rank = job.ranks[0].key;
        processes.watch(Some([rank, key(4711)].into()));
        let sample = processes.read(seconds(1), &job, |_| None).unwrap();
        assert_eq!(sample.threads.keys().collect::<Vec<_>>(), [&rank]);
        let threads = &sample.threads[&rank];
        assert_eq!((threads.threads.len(), threads.left_out), (3, 0));
        assert_eq!(threads.threads[1].key.pid, Pid(1000));
        assert_eq!(threads.threads[1].cpu, Some(Duration::from_millis(5)));
        assert_eq!(threads.threads[1].run_delay, Some(Duration::from_millis(2)));
        processes.watch(Some(BTreeSet::new()));
        assert!(
            processes
                .read(seconds(2), &job, |_| None)
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
        let mut read_at = |at| {
            let sample = processes.read(seconds(at), &job, |_| None).unwrap();
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
