//! The thread that reads everything once an interval and sends one sample.
//!
//! Finds the job, stays with it to its end, and looks for the next one. Knows nothing of what the
//! samples will mean; slow sources have threads of their own, whose newest reading it takes along.

mod common;
mod launched;
mod options;
mod watched;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::job::{Candidate, NoTarget, Target, resolve};
use crate::sample::{Gap, GpuSample, JobCandidate, JobSample, PressureSample, Sample};
use crate::source::clock::Clock;
use crate::source::discovery::Discovery;
use crate::source::disk::Disks;
use crate::source::gpu::{Gpus, Users};
use crate::source::host::{Host, Own};
use crate::source::nvml::release::in_first_namespace;
use crate::source::open_files::FilesReader;
use crate::source::other_programs::OtherPrograms;
use crate::source::process::ProcessReader;
use crate::source::processes::Processes;
use crate::units::{Pid, ProcessKey};
pub use common::Common;
use launched::Launched;
pub use options::{Options, Tee};
use watched::Watched;

/// Between two searches of the whole machine for a job.
const SEARCH_PAUSE: Duration = Duration::from_secs(2);

/// What the screen can ask of the sampler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// From one sample to the next, from now on.
    Interval(Duration),
    /// Watch the job of this process.
    Attach(Pid),
    /// Watch none, and list what there is to watch.
    List,
    /// List the open files of this process of the job with each sample; `None` = of nobody any more.
    Files(Option<ProcessKey>),
    /// Read all of the job's processes, too, with the threads of these; `None` = not any more.
    Processes(Option<BTreeSet<ProcessKey>>),
}

/// The running thread; dropping it ends it.
#[derive(Debug)]
pub struct Sampler {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts to read. `job` is what the target was resolved to, where that was done already. Samples
    /// go to `send`, until it answers that nobody takes them any more.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn start(
        options: Options,
        job: Option<Candidate>,
        send: impl FnMut(Sample) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let common = Common::start(&options);
        Self::beside(common, options, job, send)
    }

    /// The same beside others.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn beside(
        common: Common,
        options: Options,
        job: Option<Candidate>,
        mut send: impl FnMut(Sample) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let (requests, asked) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || Round::new(options, common, job).run(&asked, &mut send))?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// Asks for something else from the next sample on.
    pub fn request(&self, request: Request) {
        if let Some(requests) = &self.requests {
            // A sampler that has ended has nobody to tell.
            let _ = requests.send(request);
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.requests.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The job that `target` names, among the processes below `proc_root`.
///
/// # Errors
/// Where it names none, several, or something that is no training job.
pub fn find(proc_root: &Path, target: &Target) -> Result<Option<Candidate>, NoTarget> {
    Discovery::new(proc_root).find(target)
}

/// The job of a trainer that was just started, and need not look like one yet. `None` where it is gone.
pub fn launched(proc_root: &Path, trainer: Pid) -> Option<Candidate> {
    let mut reader = ProcessReader::new(proc_root);
    let stat = reader.stat(trainer).ok()?;
    Some(Candidate {
        ranks: vec![stat.key],
        command: reader.command(trainer).unwrap_or_default(),
        workers: 0,
    })
}

/// Everything that one round needs from the round before.
struct Round {
    options: Options,
    clock: Clock,
    host: Host,
    disks: Disks,
    own: Own,
    gpus: Arc<Gpus>,
    users: Users,
    reader: ProcessReader,
    processes: Processes,
    others: OtherPrograms,
    boot_ticks: Option<u64>,
    watched: Option<Watched>,
    /// What was named before one was chosen from the list.
    listed: Option<Target>,
    /// When the job was last seen to run, in ticks since boot: what began before is no job that comes after it, as are
    /// the workers that it leaves behind.
    ran_at: Option<u64>,
    candidates: Vec<JobCandidate>,
    searched_at: Option<Duration>,
    discovery: Discovery,
    /// Where a command was launched: what is known below it.
    launched: Option<Launched>,
    gaps: Vec<Gap>,
    files: FilesReader,
}

impl Round {
    fn new(options: Options, common: Common, job: Option<Candidate>) -> Self {
        let Common { clock, gpus } = common;
        let (proc_root, sys_root) = (&options.proc_root, &options.sys_root);
        let reader = ProcessReader::new(proc_root);
        let mut round = Self {
            clock,
            host: Host::new(proc_root, sys_root),
            disks: Disks::new(proc_root, sys_root),
            own: Own::new(proc_root),
            gpus,
            users: Users::new(proc_root, in_first_namespace()),
            boot_ticks: reader.uptime_ticks().map(|now| {
                let since = clock.since_start().as_secs_f64() * reader.ticks_per_second() as f64;
                now.saturating_sub(
                    Duration::try_from_secs_f64(since).map_or(0, |ticks| ticks.as_secs()),
                )
            }),
            reader,
            processes: Processes::new(proc_root),
            others: OtherPrograms::new(proc_root),
            watched: None,
            listed: None,
            ran_at: None,
            candidates: vec![],
            searched_at: None,
            discovery: Discovery::new(proc_root),
            launched: match options.target {
                Target::Below(root) => Some(Launched::new(root, options.probe.clone())),
                _ => None,
            },
            gaps: vec![],
            files: FilesReader::new(proc_root),
            options,
        };
        if let Some(job) = job {
            round.attach(&job);
        }
        round
    }

    fn run(mut self, asked: &mpsc::Receiver<Request>, send: &mut impl FnMut(Sample) -> bool) {
        let mut due = self.clock.since_start();
        loop {
            let mut sample = self.read();
            if let Some(recorder) = &self.options.recorder {
                sample.gaps.extend(recorder.take(&sample));
            }
            if let Some(Tee(see)) = &self.options.tee {
                see(&sample);
            }
            if !send(sample) {
                return;
            }
            due = (due + self.options.interval).max(self.clock.since_start());
            loop {
                let pause = due.saturating_sub(self.clock.since_start());
                match asked.recv_timeout(pause) {
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Ok(Request::Interval(interval)) => {
                        due = due.saturating_sub(self.options.interval) + interval;
                        self.options.interval = interval;
                    }
                    Ok(Request::Files(process)) => self.files.watch(process),
                    Ok(Request::Attach(pid)) => {
                        let before = std::mem::replace(&mut self.options.target, Target::Pid(pid));
                        self.listed.get_or_insert(before);
                        self.search(&Target::Pid(pid), None);
                        break;
                    }
                    Ok(Request::List) => {
                        if let Some(target) = self.listed.take() {
                            self.options.target = target;
                        }
                        (self.watched, self.ran_at, self.searched_at) = (None, None, None);
                        break;
                    }
                    Ok(Request::Processes(wanted)) => self.processes.watch(wanted),
                }
            }
        }
    }

    fn read(&mut self) -> Sample {
        self.gaps.clone_from(&self.options.lacking);
        let now = self.clock.since_start();
        self.search_below(now);
        let launched = matches!(self.options.target, Target::Launched(_) | Target::Below(_));
        if !launched && self.watched.as_ref().is_none_or(Watched::ended) {
            let recently = |at: Duration| now.saturating_sub(at) < SEARCH_PAUSE;
            if !self.searched_at.is_some_and(recently) {
                self.searched_at = Some(now);
                // A process that was named is not waited for again; any job that begins now is taken.
                let target = match &self.options.target {
                    Target::Word(word) => Target::Word(word.clone()),
                    _ => Target::Any,
                };
                self.search(&target, self.ran_at);
            }
        }
        let at = self.clock.now();
        let (mut host, gaps) = self.host.read();
        self.gaps.extend(gaps);
        host.boot_ticks_at_start = self.boot_ticks;
        host.ticks_per_second = Some(self.reader.ticks_per_second());
        let job = self.job(now);
        if let Some(pressure) = job.as_ref().and_then(|(_, pressure)| *pressure) {
            host.pressure = Some(pressure);
        }
        let job = job.map(|(job, _)| job);
        let watched = self.watched.as_ref();
        let devices = watched.map(|watched| watched.devices().clone());
        let late = watched.map_or(0, Watched::late);
        let (disks, gaps) = self.disks.read(&devices.unwrap_or_default());
        self.gaps.extend(gaps);
        let gpus = self.gpus(now, job.as_ref());
        let files = self.files.read(now, job.as_ref());
        let found = self.watched.as_ref().map(Watched::discovery);
        if let Some(found) = found {
            host.others = self.others.read(now, host.cpu_busy, host.cpus, || {
                let family = found.last_family().found.iter();
                let own = i32::try_from(std::process::id()).map(Pid);
                family.map(|stat| stat.key.pid).chain(own).collect()
            });
        }
        let processes = job
            .as_ref()
            .zip(found)
            .and_then(|(job, found)| self.processes.read(now, job, found));
        Sample {
            at,
            host,
            disks,
            gpus,
            job,
            candidates: self.candidates.clone(),
            files,
            own: self.own.read(late),
            processes,
            gaps: std::mem::take(&mut self.gaps),
        }
    }

    /// The job's sample, and its own group's pressure.
    fn job(&mut self, now: Duration) -> Option<(JobSample, Option<PressureSample>)> {
        let watched = self.watched.as_mut()?;
        let had_ended = watched.ended();
        let read = watched.read(now, &mut self.gaps);
        if read.is_none() {
            // There is nothing to show of it.
            self.watched = None;
        } else if !watched.ended() {
            let ticks = now.as_secs_f64() * self.reader.ticks_per_second() as f64;
            let ticks = Duration::try_from_secs_f64(ticks).map_or(0, |ticks| ticks.as_secs());
            self.ran_at = self.boot_ticks.map(|boot| boot + ticks);
        } else if !had_ended {
            self.searched_at = Some(now);
        }
        read
    }

    fn gpus(&mut self, now: Duration, job: Option<&JobSample>) -> Vec<GpuSample> {
        let (mut gpus, gaps) = self.gpus.newest(Arc::strong_count(&self.gpus));
        self.gaps.extend(gaps);
        let ranks = job.filter(|job| !job.ended).map(|job| &job.ranks);
        let ranks: Vec<_> = ranks.into_iter().flatten().map(|rank| rank.key).collect();
        self.users.mark(now, &ranks, &mut gpus);
        gpus
    }

    /// Looks for the job below what was launched, until it is found for sure.
    fn search_below(&mut self, now: Duration) {
        let Some(launched) = &mut self.launched else {
            return;
        };
        let watched = self.watched.as_ref();
        let running = watched.filter(|watched| !watched.ended());
        let found = launched.search(now, running.map(Watched::ranks), &mut self.discovery);
        self.gaps.extend(launched.gap());
        if let Some(job) = found {
            self.attach(&job);
        }
    }

    /// Looks for the job among what began at `since`, in ticks since boot, or later.
    fn search(&mut self, target: &Target, since: Option<u64>) {
        let mut processes = self.discovery.everything();
        self.gaps.extend(self.discovery.gap().cloned());
        processes.retain(|process| since.is_none_or(|since| process.key.start_ticks >= since));
        self.candidates.clear();
        let ours = self.discovery.ours(&processes);
        match resolve(&processes, target, &ours) {
            Ok(Some(job)) => self.attach(&job),
            Err(NoTarget::Several(jobs)) => {
                let choice = |job: Candidate| {
                    Some(JobCandidate {
                        pid: job.ranks.first()?.pid,
                        command: job.command,
                        ranks: job.ranks.len(),
                        workers: job.workers,
                    })
                };
                self.candidates = jobs.into_iter().filter_map(choice).collect();
            }
            // While looking on, that nothing matches yet is no news.
            Ok(None) | Err(_) => {}
        }
    }

    fn attach(&mut self, job: &Candidate) {
        let Some(first) = job.ranks.first() else {
            return;
        };
        match Watched::attach(&self.options, self.clock, job, *first) {
            Ok(watched) => self.watched = Some(watched),
            Err(error) => self.gaps.push(Gap {
                source: "job".into(),
                reason: format!("cannot start a thread: {error}"),
                hint: "raise the process limit (ulimit -u)".into(),
            }),
        }
    }
}
