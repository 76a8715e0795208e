//! Resource usage of the job's processes and threads over the last seconds, for a tree of them.
//!
//! Works on samples only. Every sample has the ranks and workers; other processes and threads are only in samples for
//! which they were requested. Does not depend on how the tree is shown.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::model::usage::Delta;
use crate::sample::{ProcessSample, ProcessSeen, Sample, ThreadsSample};
use crate::units::{Bytes, BytesPerSecond, ProcessKey, Share};

/// Time that the figures cover, once that much is available.
const SPAN: Duration = Duration::from_secs(5);
/// Minimum time between two readings that are kept: a second, minus a margin for timers that fire early.
const MIN_INTERVAL: Duration = Duration::from_millis(900);

/// All known processes of the job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessFigures {
    /// Usage by process.
    pub figures: BTreeMap<ProcessKey, Figures>,
    /// Further data of each process, parents before children; empty if only ranks and workers were read.
    pub others: Vec<ProcessSeen>,
    /// Number of processes that were not read because there were too many.
    pub left_out: usize,
    /// By process whose threads were read.
    pub threads: BTreeMap<ProcessKey, Threads>,
}

/// Resource usage of a process or a thread.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Time that the rates cover, in seconds; `None` after only one reading.
    pub seconds: Option<f64>,
    /// State (`R`, `S`, `D`, `T`, `Z`, ...) of the thread, or of the process's main thread; `None` once gone.
    pub state: Option<char>,
    /// CPU time in cores; above 1 for a process with several busy threads.
    pub cpu: Option<f64>,
    /// Share of the time runnable but not running; for a process, that of its main thread.
    pub delay: Option<Share>,
    /// Read from block devices; not read for threads.
    pub read: Option<BytesPerSecond>,
    /// Resident memory; not reported for a thread.
    pub rss: Option<Bytes>,
    /// Number of threads; not reported for a thread.
    pub threads: Option<u32>,
}

/// The threads of one process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Threads {
    /// Ordered by thread id, each with its name.
    pub threads: Vec<(ProcessKey, String, Figures)>,
    /// Number of threads that were not read because there were too many.
    pub left_out: usize,
}

/// The readings that figures are computed from.
#[derive(Debug, Clone, Default)]
pub(super) struct ProcessReadings {
    processes: Readings,
    /// Those of the threads, by process.
    threads: BTreeMap<ProcessKey, Readings>,
    tree: ProcessFigures,
}

/// Readings of several processes or threads, with their times, oldest first.
#[derive(Debug, Clone, Default)]
struct Readings(VecDeque<(Duration, BTreeMap<ProcessKey, ProcessSample>)>);

impl Readings {
    /// Adds the newest reading, and drops those that the figures no longer need.
    fn push(&mut self, at: Duration, now: BTreeMap<ProcessKey, ProcessSample>) {
        self.0.push_back((at, now));
        while self.0.len() > 2 && at.saturating_sub(self.0[1].0) >= SPAN {
            self.0.pop_front();
        }
    }

    /// Returns when the newest reading was made.
    fn last(&self) -> Option<Duration> {
        self.0.back().map(|(at, _)| *at)
    }

    /// Returns the figures of all in the newest reading, by key.
    fn figures(&self) -> BTreeMap<ProcessKey, Figures> {
        let newest = self.0.back().into_iter();
        let each = newest.flat_map(|(at, now)| now.iter().map(move |one| (*at, one)));
        each.map(|(at, (key, now))| {
            let mut readings = self.0.iter();
            let first = readings.find_map(|(at, then)| Some((*at, then.get(key)?)));
            (*key, figures(first, now, at))
        })
        .collect()
    }
}

impl ProcessReadings {
    /// Adds the processes in a sample, and removes from the sample what is used nowhere else.
    pub(super) fn apply(&mut self, sample: &mut Sample) {
        let seen = sample.processes.take();
        let at = sample.at.since_start;
        let Some(job) = sample.job.as_ref().filter(|job| !job.ended) else {
            return;
        };
        let soon = |last| at.saturating_sub(last) < MIN_INTERVAL;
        if seen.is_none() && self.processes.last().is_some_and(soon) {
            return;
        }
        let processes = job.processes();
        let mut now: BTreeMap<_, _> = processes
            .map(|(key, process)| (key, process.clone()))
            .collect();
        if let Some(seen) = seen {
            let others = seen.processes.iter();
            now.extend(others.map(|seen| (seen.key, seen.process.clone())));
            self.take_threads(seen.threads);
            self.tree.left_out = seen.left_out;
            self.tree.others = seen.processes;
        }
        self.processes.push(at, now);
        self.tree.figures = self.processes.figures();
    }

    fn take_threads(&mut self, seen: BTreeMap<ProcessKey, ThreadsSample>) {
        self.threads.retain(|key, _| seen.contains_key(key));
        self.tree.threads.retain(|key, _| seen.contains_key(key));
        for (key, sample) in seen {
            let readings = self.threads.entry(key).or_default();
            if readings.last() == Some(sample.at) {
                continue;
            }
            let threads = sample.threads.into_iter();
            let (names, now): (Vec<_>, _) = threads
                .map(|thread| (thread.name, (thread.key, thread.process)))
                .unzip();
            readings.push(sample.at, now);
            let figures = names.into_iter().zip(readings.figures());
            let threads = Threads {
                threads: figures.map(|(name, (key, row))| (key, name, row)).collect(),
                left_out: sample.left_out,
            };
            self.tree.threads.insert(key, threads);
        }
    }

    /// Drops everything about processes other than ranks and workers, after the list was closed.
    pub(super) fn drop_others(&mut self) {
        self.threads.clear();
        self.tree.threads.clear();
        self.tree.others.clear();
        self.tree.left_out = 0;
    }

    pub(super) fn tree(&self) -> &ProcessFigures {
        &self.tree
    }
}

fn figures(
    first: Option<(Duration, &ProcessSample)>,
    newest: &ProcessSample,
    to: Duration,
) -> Figures {
    let first = first.filter(|(from, _)| *from < to);
    let seconds = first.map(|(from, _)| to.saturating_sub(from).as_secs_f64());
    let usage = first
        .zip(seconds)
        .map(|((_, first), seconds)| Delta::between(first, newest, seconds).usage())
        .unwrap_or_default();
    Figures {
        seconds,
        state: newest.state,
        cpu: usage.cpu,
        delay: usage.run_delay,
        read: usage.read,
        rss: newest.rss,
        threads: newest.threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::literals::{key, process, secs, training};
    use crate::sample::{ProcessRole, ProcessesSample, ThreadSample};
    use crate::units::Pid;

    fn thread(pid: i32, cpu: f64) -> ThreadSample {
        ThreadSample {
            key: key(pid),
            name: format!("thread {pid}"),
            process: ProcessSample {
                state: Some('S'),
                cpu: Some(secs(cpu)),
                ..ProcessSample::default()
            },
        }
    }

    /// Returns a job with an additional process that uses half a core, and a thread that uses a fifth.
    fn polled(at: f64) -> Sample {
        let mut sample = training(at);
        let other = ProcessSeen {
            key: key(900),
            parent: Pid(100),
            name: "sh".to_owned(),
            role: ProcessRole::Other,
            process: process(at, 0.5),
        };
        let threads = ThreadsSample {
            at: secs(at),
            threads: vec![thread(100, 0.2 * at), thread(101, 3.0)],
            left_out: 1,
        };
        sample.processes = Some(ProcessesSample {
            processes: vec![other],
            left_out: 0,
            threads: [(key(100), threads)].into(),
        });
        sample
    }

    fn after(samples: impl IntoIterator<Item = Sample>) -> ProcessReadings {
        let mut processes = ProcessReadings::default();
        for mut sample in samples {
            processes.apply(&mut sample);
            assert_eq!(sample.processes, None);
        }
        processes
    }

    fn near(value: Option<f64>, wanted: f64) -> bool {
        value.is_some_and(|value| (value - wanted).abs() < 1e-6)
    }

    #[test]
    fn ranks_and_workers_are_known_from_any_sample() {
        let processes = after((0..=20).map(|at| training(f64::from(at))));
        let tree = processes.tree();
        assert_eq!(tree.figures.len(), 3);
        let rank = tree.figures[&key(100)];
        assert!(near(rank.cpu, 0.3) && near(rank.seconds, 5.0), "{rank:?}");
        assert!(near(rank.delay.map(|delay| delay.0), 0.1));
        assert!(near(rank.read.map(|read| read.0), 20e6));
        assert_eq!((rank.state, rank.rss), (Some('S'), None));
        assert!(tree.others.is_empty() && tree.threads.is_empty());
    }

    #[test]
    fn one_reading_has_no_rates() {
        let processes = after([polled(3.0)]);
        let figures = processes.tree().figures[&key(900)];
        assert_eq!(
            (figures.seconds, figures.cpu, figures.delay),
            (None, None, None)
        );
        assert_eq!(figures.threads, Some(1));
        assert_eq!(processes.tree().threads[&key(100)].threads[0].2.cpu, None);
    }

    #[test]
    fn others_and_threads_are_known_while_they_are_read() {
        let mut processes = after((0..=9).map(|at| polled(f64::from(at))));
        let tree = processes.tree();
        assert!(near(tree.figures[&key(900)].cpu, 0.5));
        let threads = &tree.threads[&key(100)];
        assert_eq!(threads.left_out, 1);
        assert!(near(threads.threads[0].2.cpu, 0.2));
        assert!(near(threads.threads[1].2.cpu, 0.0));
        // A process that has ended is missing in later readings.
        processes.apply(&mut training(10.0));
        assert!(!processes.tree().figures.contains_key(&key(900)));
        processes.drop_others();
        assert!(processes.tree().others.is_empty() && processes.tree().threads.is_empty());
    }

    #[test]
    fn decreasing_or_denied_counters_are_unknown() {
        let mut later = polled(1.0);
        let seen = later.processes.as_mut().unwrap();
        seen.processes[0].process.cpu = Some(Duration::ZERO);
        seen.processes[0].process.io = None;
        let mut earlier = polled(0.0);
        earlier.processes.as_mut().unwrap().processes[0].process.cpu = Some(secs(9.0));
        let processes = after([earlier, later]);
        let figures = processes.tree().figures[&key(900)];
        assert_eq!((figures.cpu, figures.read), (None, None));
        assert!(figures.delay.is_some());
    }

    #[test]
    fn memory_is_fixed_over_many_readings() {
        let processes = after((0..5000).map(|at| polled(f64::from(at) * 0.1)));
        let readings = |processes: &ProcessReadings| processes.processes.0.len();
        assert!(readings(&processes) <= 60, "{}", readings(&processes));
        let quick = after((0..5000).map(|at| training(f64::from(at) * 0.1)));
        assert!(readings(&quick) <= 7, "{}", readings(&quick));
    }

    #[test]
    fn an_ended_job_keeps_its_last_figures() {
        let mut processes = after((0..=3).map(|at| polled(f64::from(at))));
        let before = processes.tree().clone();
        let mut ended = training(4.0);
        ended.job.as_mut().unwrap().ended = true;
        processes.apply(&mut ended);
        assert_eq!(*processes.tree(), before);
    }
}
