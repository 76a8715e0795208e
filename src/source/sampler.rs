//! The thread that reads everything once per interval and sends one sample.
//!
//! Finds the job, watches it to its end, and searches for the next one. Must not depend on what the samples mean. Slow
//! sources have their own threads, whose newest reading is added to the sample.

mod common;
mod launched;
mod options;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::background::OwnedThread;
use crate::job::{Candidate, NoTarget, Target, resolve, script_name};
use crate::sample::{Gap, GpuSample, JobCandidate, JobSample, PressureSample, Sample};
use crate::source::clock::Clock;
use crate::source::discovery::Discovery;
use crate::source::gpu::{Gpus, Users};
use crate::source::job_view::JobView;
use crate::source::nvml::release::in_first_namespace;
use crate::source::open_files::FilesReader;
use crate::source::other_programs::OtherPrograms;
use crate::source::process::ProcessReader;
use crate::source::processes::Processes;
use crate::source::{disk, host};
use crate::units::{Pid, ProcessKey};
pub use common::Common;
use launched::LaunchSearch;
pub use options::{Options, Tee};

/// Shortest time between two searches of the whole machine for a job.
const SEARCH_PAUSE: Duration = Duration::from_secs(2);
/// If a sample is this late, pipetop itself was stopped, and the poller has seen nothing in the meantime.
const STOPPED: Duration = Duration::from_secs(1);
/// Time after such a stop in which the poller reports everything anew.
const POLLED_AGAIN: Duration = Duration::from_secs(1);

/// What the screen can request from the sampler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Changes the time from one sample to the next.
    Interval(Duration),
    /// Watches the job of this process.
    Attach(Pid),
    /// Watches no job, and lists the candidates.
    List,
    /// Lists the open files of this process of the job with each sample; `None` = of no process.
    Files(Option<ProcessKey>),
    /// Also reads all of the job's processes, and the threads of those named here; `None` stops both.
    Processes(Option<BTreeSet<ProcessKey>>),
}

/// The running thread. Dropping it stops it.
#[derive(Debug)]
pub struct Sampler {
    thread: OwnedThread<Request>,
}

impl Sampler {
    /// Starts to read. `job` is what the target was resolved to, if that was already done. Samples are passed to `send`
    /// until it returns `false`.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn start(
        options: Options,
        job: Option<Candidate>,
        send: impl FnMut(Sample) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let common = Common::start(&options);
        Self::start_with(common, options, job, send)
    }

    /// Starts a sampler that shares `common` with other samplers.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn start_with(
        common: Common,
        options: Options,
        job: Option<Candidate>,
        mut send: impl FnMut(Sample) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let work = move |asked: &_| SamplerState::new(options, common, job).run(asked, &mut send);
        Ok(Self {
            thread: OwnedThread::start("sampler", work)?,
        })
    }

    /// Sends a request, which applies from the next sample on.
    pub fn request(&self, request: Request) {
        self.thread.send(request);
    }
}

/// Finds the job that `target` names among the processes below `proc_root`.
///
/// # Errors
/// Returns an error if it names no job, several, or something that is not a training job.
pub fn find(proc_root: &Path, target: &Target) -> Result<Option<Candidate>, NoTarget> {
    Discovery::new(proc_root).find(target)
}

/// The state kept from one round to the next.
struct SamplerState {
    options: Options,
    clock: Clock,
    gpus: Arc<Gpus>,
    users: Users,
    reader: ProcessReader,
    processes: Processes,
    others: OtherPrograms,
    boot_ticks: Option<u64>,
    watched: Option<JobView>,
    /// What the newest job's Python runs.
    script: Option<String>,
    /// The target before a job was chosen from the list.
    listed: Option<Target>,
    /// When the job was last seen running, in ticks since boot. A process that began earlier is not the next job: it
    /// may be a worker that the last job left behind.
    ran_at: Option<u64>,
    candidates: Vec<JobCandidate>,
    searched_at: Option<Duration>,
    discovery: Discovery,
    /// The search below the process that launched a command.
    launched: Option<LaunchSearch>,
    gaps: Vec<Gap>,
    /// Why the job could not be read at the reading before.
    unread: Vec<Gap>,
    files: FilesReader,
}

impl SamplerState {
    fn new(options: Options, common: Common, job: Option<Candidate>) -> Self {
        let Common { clock, gpus } = common;
        let proc_root = &options.proc_root;
        let reader = ProcessReader::new(proc_root);
        let mut round = Self {
            clock,
            gpus,
            users: Users::new(proc_root, in_first_namespace(Path::new("/proc/self"))),
            boot_ticks: reader
                .uptime_ticks()
                .map(|now| now.saturating_sub(reader.in_ticks(clock.since_start()))),
            reader,
            processes: Processes::new(proc_root),
            others: OtherPrograms::new(proc_root),
            watched: None,
            script: None,
            listed: None,
            ran_at: None,
            candidates: vec![],
            searched_at: None,
            discovery: Discovery::new(proc_root),
            launched: match options.target {
                Target::Below(root) => Some(LaunchSearch::new(root, options.probe.clone())),
                _ => None,
            },
            gaps: vec![],
            unread: vec![],
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
                    Err(RecvTimeoutError::Timeout) => {
                        let now = self.clock.since_start();
                        if now.saturating_sub(due) < STOPPED {
                            break;
                        }
                        due = now + POLLED_AGAIN;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                    Ok(Request::Interval(interval)) => {
                        due = due.saturating_sub(self.options.interval) + interval;
                        self.options.interval = interval;
                    }
                    Ok(Request::Files(process)) => self.files.watch(process),
                    Ok(Request::Attach(pid)) => {
                        self.choose(pid);
                        break;
                    }
                    Ok(Request::List) => {
                        self.list();
                        break;
                    }
                    Ok(Request::Processes(wanted)) => self.processes.watch(wanted),
                }
            }
        }
    }

    /// Watches a job of the list, unless it has ended since it was listed.
    fn choose(&mut self, pid: Pid) {
        let before = std::mem::replace(&mut self.options.target, Target::Pid(pid));
        self.listed.get_or_insert(before);
        self.search(&Target::Pid(pid), None);
        if self.watched.is_none() {
            self.list();
        }
    }

    fn list(&mut self) {
        if let Some(target) = self.listed.take() {
            self.options.target = target;
        }
        (self.watched, self.ran_at, self.searched_at) = (None, None, None);
    }

    fn read(&mut self) -> Sample {
        self.gaps.clone_from(&self.options.lacking);
        let now = self.clock.since_start();
        self.search_below(now);
        let launched = matches!(self.options.target, Target::Launched(_) | Target::Below(_));
        if !launched && self.watched.as_ref().is_none_or(JobView::ended) {
            let recently = |at: Duration| now.saturating_sub(at) < SEARCH_PAUSE;
            if !self.searched_at.is_some_and(recently) {
                self.searched_at = Some(now);
                self.search_next();
            }
        }
        let at = self.clock.now();
        let (proc_root, sys_root) = (&self.options.proc_root, &self.options.sys_root);
        let (mut host, gaps) = host::read(proc_root, sys_root);
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
        let late = watched.map_or(0, JobView::late);
        let places = &self.options;
        let (disks, gaps) = disk::read(
            &places.proc_root,
            &places.sys_root,
            &devices.unwrap_or_default(),
        );
        self.gaps.extend(gaps);
        let gpus = self.gpus(now, job.as_ref());
        let files = self.files.read(now, job.as_ref());
        let found = self.watched.as_ref().map(JobView::discovery);
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
            own: host::own(&self.options.proc_root, late),
            processes,
            gaps: with_earlier(std::mem::take(&mut self.gaps), &mut self.unread),
        }
    }

    /// Returns the job's sample, and the pressure of its control group.
    fn job(&mut self, now: Duration) -> Option<(JobSample, Option<PressureSample>)> {
        let watched = self.watched.as_mut()?;
        let had_ended = watched.ended();
        let read = watched.read(now, &mut self.gaps);
        if read.is_none() {
            // Nothing of it can be shown.
            self.watched = None;
        } else if !watched.ended() {
            let since = self.reader.in_ticks(now);
            self.ran_at = self.boot_ticks.map(|boot| boot + since);
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
        self.users.annotate(now, &ranks, &mut gpus);
        gpus
    }

    /// Searches for the job below what was launched, until it is certain.
    fn search_below(&mut self, now: Duration) {
        let Some(launched) = &mut self.launched else {
            return;
        };
        let watched = self.watched.as_ref();
        let running = watched.filter(|watched| !watched.ended());
        let found = launched.search(now, running.map(JobView::first_ranks), &mut self.discovery);
        self.gaps.extend(launched.gap());
        if let Some(job) = found {
            self.attach(&job);
        }
    }

    /// Searches for the job that follows the one that has ended, or for the first one.
    fn search_next(&mut self) {
        let Target::Pid(pid) = self.options.target else {
            return self.search(&self.options.target.clone(), self.ran_at);
        };
        // Any other job may be somebody else's.
        self.search(&Target::Below(pid), self.ran_at);
        let found = self.watched.as_ref().is_some_and(|job| !job.ended());
        if let Some(script) = self.script.clone().filter(|_| !found) {
            self.search(&Target::Word(script), self.ran_at);
        }
    }

    /// Searches for the job among the processes that began at `since`, in ticks since boot, or later.
    fn search(&mut self, target: &Target, since: Option<u64>) {
        let mut processes = self.discovery.everything();
        self.gaps.extend(self.discovery.gap().cloned());
        processes.retain(|process| since.is_none_or(|since| process.key.start_ticks >= since));
        self.candidates.clear();
        let own_ancestors = self.discovery.own_ancestors(&processes);
        match resolve(&processes, target, &own_ancestors) {
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
            // While searching, it is normal that nothing matches yet.
            Ok(None) | Err(_) => {}
        }
    }

    fn attach(&mut self, job: &Candidate) {
        let Some(first) = job.ranks.first() else {
            return;
        };
        self.script = script_name(&job.command);
        let (proc_root, sys_root) = (&self.options.proc_root, &self.options.sys_root);
        let probe = self.options.probe.clone();
        match JobView::attach(proc_root, sys_root, self.clock, (job, *first), probe) {
            Ok(watched) => self.watched = Some(watched),
            Err(error) => self.gaps.push(Gap::new(
                "job",
                format!("cannot start a thread: {error}"),
                "raise the process limit (ulimit -u)",
            )),
        }
    }
}

/// Returns the gaps of this reading, and those for which the job could not be read at the one before: rates need two
/// readings.
fn with_earlier(mut gaps: Vec<Gap>, unread: &mut Vec<Gap>) -> Vec<Gap> {
    let now = gaps.iter().filter(|gap| gap.source == "job").cloned();
    let before = std::mem::replace(unread, now.collect());
    let other = before.into_iter().filter(|gap| !gaps.contains(gap));
    gaps.extend(other.collect::<Vec<_>>());
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_job_that_has_ended_leaves_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            proc_root: folder.path().to_owned(),
            sys_root: folder.path().to_owned(),
            nvml_lib: None,
            gpus: None,
            interval: Duration::from_secs(1),
            target: Target::Any,
            probe: None,
            recorder: None,
            tee: None,
            lacking: vec![],
        };
        let mut round = SamplerState::new(options.clone(), Common::start(&options), None);
        round.choose(Pid(8));
        assert_eq!((round.options.target, round.listed), (Target::Any, None));
    }

    #[test]
    fn what_kept_the_job_from_being_read_explains_the_next_reading_too() {
        let gap = |source| Gap::new(source, "too many open files", "raise the limit");
        let mut unread = vec![];
        let mut reading = |gaps: &[Gap]| with_earlier(gaps.to_vec(), &mut unread);
        let [job, disk] = [gap("job"), gap("disk")];
        let both = [job.clone(), disk];
        assert_eq!(reading(&both), both);
        assert_eq!(reading(&both), both);
        assert_eq!(reading(&[]), [job]);
        assert_eq!(reading(&[]), []);
    }
}
