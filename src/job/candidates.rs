//! Which job the user means: by PID, by a word of the command line, or the only one that is running.

use thiserror::Error;

use super::process::{Process, Tree, shares_a_queue};
use crate::units::{Pid, ProcessKey, shortened};

/// The job that the user asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    Pid(Pid),
    Word(String),
    /// The trainer that pipetop launched: once it has ended, no other job is watched.
    Launched(Pid),
    /// The job below this process, which pipetop launched; after the end of that job, the next one there.
    Below(Pid),
    /// Not given: the only job that is running.
    #[default]
    Any,
}

/// A training job that could be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Trainer processes, ordered by rank, then by start.
    pub ranks: Vec<ProcessKey>,
    pub command: String,
    /// Loader workers of all ranks.
    pub workers: usize,
    /// The Python that started the job's only rank through `multiprocessing`. Perhaps it is the trainer, and the rank
    /// only loads for it.
    pub starter: Option<ProcessKey>,
}

/// Maximum length of a word in an error message, in characters.
const WORD: usize = 100;

/// Why there is nothing to watch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoTarget {
    #[error("no process with PID {0}")]
    NoProcess(Pid),
    #[error("process {0} is a kernel thread")]
    Kernel(Pid),
    #[error("process {0} ({1}) has exited (zombie)")]
    Zombie(Pid, String),
    #[error(
        "process {0} ({1}) is not a training job: neither its program nor a child's is named python"
    )]
    NoPython(Pid, String),
    #[error(
        "process {0} ({1}) is not a training job: no loader workers, no deep-learning library loaded"
    )]
    NoFramework(Pid, String),
    #[error("no running command line contains `{}`", shortened(.0, WORD, "..."))]
    NoMatch(String),
    #[error("several command lines contain `{}`, but none is a training job", shortened(.0, WORD, "..."))]
    NoJobMatches(String),
    /// Contains the reason.
    #[error("cannot read all processes: {0}")]
    Unread(String),
    #[error("several training jobs are running")]
    Several(Vec<Candidate>),
    #[error("process {0} ({1}) has several training jobs below it")]
    SeveralBelow(Pid, String, Vec<Candidate>),
}

impl NoTarget {
    /// Returns what the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoProcess(_) | Self::NoMatch(_) => {
                "run `pipetop` without a target to find training jobs automatically"
            }
            Self::Several(_) | Self::SeveralBelow(..) => "choose one by its PID: `pipetop PID`",
            Self::Unread(_) => "raise the open file limit (`ulimit -n`), or free memory",
            _ => "name the trainer or its launcher, or run `pipetop` alone to find jobs",
        }
    }
}

/// Returns the job that `target` names. `None` if `Target::Any` or `Target::Below` finds nothing yet. `ours` are
/// pipetop and the processes that started it: a word matches them only if they train.
///
/// # Errors
/// Returns an error if the target cannot be a job, is not one, or is several.
pub fn resolve(
    processes: &[Process],
    target: &Target,
    ours: &[Pid],
) -> Result<Option<Candidate>, NoTarget> {
    let tree = Tree::new(processes);
    match target {
        Target::Pid(pid) | Target::Launched(pid) => by_pid(&tree, *pid).map(Some),
        Target::Word(word) => by_word(&tree, processes, word, ours).map(Some),
        Target::Below(pid) => Ok(below(&tree, *pid, &[])),
        Target::Any => {
            let mut found = candidates(processes);
            // A notebook that runs no cell is not meant if there is another job.
            if found.iter().any(|job| !is_idle_notebook(&tree, job)) {
                found.retain(|job| !is_idle_notebook(&tree, job));
            }
            match found.len() {
                0 => Ok(None),
                1 => Ok(found.pop()),
                _ => Err(NoTarget::Several(found)),
            }
        }
    }
}

/// Returns every training job, the likeliest first: by number of loader workers, then by start time.
pub(super) fn candidates(processes: &[Process]) -> Vec<Candidate> {
    let tree = Tree::new(processes);
    let mut found = jobs_of(&tree, processes);
    found.sort_by_key(|job| {
        (
            std::cmp::Reverse(job.workers),
            job.ranks.first().map(|key| key.start_ticks),
        )
    });
    found
}

/// Returns the job of each process that trains, without duplicates.
fn jobs_of<'a>(
    tree: &Tree<'a>,
    processes: impl IntoIterator<Item = &'a Process>,
) -> Vec<Candidate> {
    let mut jobs: Vec<Candidate> = Vec::new();
    for process in processes {
        let known = jobs.iter().any(|job| job.ranks.contains(&process.key));
        if !known && is_trainer(tree, process) {
            jobs.push(job_of(tree, process));
        }
    }
    jobs
}

/// Returns the job below `root`: that of a process in `reports` (the processes that report their steps), or else the
/// likeliest candidate. A launcher loads a framework before its trainers exist, so the caller must ask again until the
/// result is certain.
pub fn below(tree: &Tree<'_>, root: Pid, reports: &[Pid]) -> Option<Candidate> {
    let below = tree.descendants(root);
    let reporter = below
        .iter()
        .find(|process| reports.contains(&process.key.pid) && process.state != 'Z');
    if let Some(reporter) = reporter {
        return Some(job_of(tree, reporter));
    }
    let trainers = below
        .iter()
        .filter(|process| process.key.pid != root && is_trainer(tree, process));
    let jobs = trainers.map(|trainer| job_of(tree, trainer));
    jobs.max_by_key(|job| job.workers)
}

fn by_pid(tree: &Tree<'_>, pid: Pid) -> Result<Candidate, NoTarget> {
    let process = tree.get(pid).ok_or(NoTarget::NoProcess(pid))?;
    if process.kernel {
        return Err(NoTarget::Kernel(pid));
    }
    if process.state == 'Z' {
        return Err(NoTarget::Zombie(pid, process.comm.clone()));
    }
    if let Some(trainer) = tree.trainer_of(process) {
        return Ok(job_of(tree, trainer));
    }
    if is_trainer(tree, process) {
        return Ok(job_of(tree, process));
    }
    let below = tree.descendants(pid);
    let mut jobs = jobs_of(tree, below.iter().copied());
    if jobs.len() > 1 {
        return Err(NoTarget::SeveralBelow(pid, process.comm.clone(), jobs));
    }
    if let Some(job) = jobs.pop() {
        return Ok(job);
    }
    match below.iter().find(|process| process.is_python()) {
        None => Err(NoTarget::NoPython(pid, process.comm.clone())),
        // Not read, or not permitted: assume that it trains.
        Some(python) if python.framework.is_none() => Ok(job_of(tree, python)),
        Some(_) => Err(NoTarget::NoFramework(pid, process.comm.clone())),
    }
}

fn by_word(
    tree: &Tree<'_>,
    processes: &[Process],
    word: &str,
    ours: &[Pid],
) -> Result<Candidate, NoTarget> {
    // The process that started pipetop may have the word in its command line, too; it is meant only if it trains.
    let ours = |process: &Process| ours.contains(&process.key.pid) && !is_trainer(tree, process);
    let lower = word.to_lowercase();
    let matches = |process: &&Process| {
        process.command.to_lowercase().contains(&lower) || process.comm.to_lowercase() == lower
    };
    let named: Vec<&Process> = processes
        .iter()
        .filter(|process| !ours(process))
        .filter(matches)
        .collect();
    let mut jobs: Vec<Candidate> = Vec::new();
    for process in &named {
        let found = match by_pid(tree, process.key.pid) {
            Ok(job) => vec![job],
            Err(NoTarget::SeveralBelow(.., jobs)) => jobs,
            Err(_) => vec![],
        };
        for job in found {
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
    }
    match (jobs.len(), named.as_slice()) {
        (1, _) => jobs.pop().ok_or_else(|| NoTarget::NoMatch(word.to_owned())),
        (0, []) => Err(NoTarget::NoMatch(word.to_owned())),
        (0, [only]) => by_pid(tree, only.key.pid),
        (0, _) => Err(NoTarget::NoJobMatches(word.to_owned())),
        _ => Err(NoTarget::Several(jobs)),
    }
}

/// Whether the process appears to train: a Python that has loader workers, or has a framework loaded and does not only
/// start trainers. A worker, a helper or a launcher of ranks does not train.
fn is_trainer(tree: &Tree<'_>, process: &Process) -> bool {
    if process.is_builtin_trainer() {
        return process.state != 'Z';
    }
    if process.kernel || process.state == 'Z' || !process.is_python() {
        return false;
    }
    // A worker continues for a while after its trainer was killed, so its name must be enough.
    let service = process.is_multiprocessing_service()
        || process.is_pytorch_worker()
        || tree.is_fork_server(process);
    if service || is_helper(tree, process) {
        return false;
    }
    let trains = process.framework == Some(true) && !starts_trainers(tree, process);
    (trains || !tree.workers(process).is_empty()) && !starts_ranks(tree, process)
}

fn is_idle_notebook(tree: &Tree<'_>, job: &Candidate) -> bool {
    let kernel = job.ranks.first().and_then(|rank| tree.get(rank.pid));
    let idle = |process: &Process| process.is_notebook_kernel() && process.only_waits == Some(true);
    job.workers == 0 && kernel.is_some_and(idle)
}

/// Whether the process runs a part of the program that started it: a worker, a process of a pool, a logger. A process
/// with its own workers or its own rank is no helper; nor is a fresh interpreter that has a GPU open, or that shares no
/// queue with a starter that has no workers and was not seen to work.
fn is_helper(tree: &Tree<'_>, process: &Process) -> bool {
    let Some(starter) = tree.starter(process).filter(|above| above.is_python()) else {
        return process.is_fresh_child();
    };
    if tree.trainer_of(process).is_some() {
        return true;
    }
    let own_rank = process.rank.is_some() && process.rank != starter.rank;
    if own_rank || !tree.workers(process).is_empty() {
        return false;
    }
    let shares = shares_a_queue(process, starter);
    if process.command == starter.command {
        return true;
    }
    if process.is_fresh_child() {
        let handed_none = shares == Some(false) && tree.workers(starter).is_empty();
        let is_rank = handed_none && starter.only_waits != Some(false);
        return process.may_be_part(tree) && !is_rank;
    }
    shares == Some(true)
}

/// Whether the process starts ranks and does not train: it has no rank, but its children do. Workers are not counted:
/// if a rank got its number only after its start, its workers have that number, too.
fn starts_ranks(tree: &Tree<'_>, process: &Process) -> bool {
    let is_rank = |child: &Process| {
        let service = child.is_multiprocessing_service() || tree.is_fork_server(child);
        child.rank.is_some() && !service && tree.trainer_of(child).is_none()
    };
    process.rank.is_none() && tree.children(process.key.pid).any(is_rank)
}

/// Whether the process starts trainers and only waits for them, although it has loaded a framework itself. A trainer
/// may start others, too, such as one that evaluates, but it does not only wait.
fn starts_trainers(tree: &Tree<'_>, process: &Process) -> bool {
    if process.only_waits == Some(false) {
        return false;
    }
    let started = tree.started(process);
    started.iter().any(|child| is_trainer(tree, child))
}

/// Returns the job that `trainer` belongs to, with its sibling ranks if a launcher started several.
fn job_of(tree: &Tree<'_>, trainer: &Process) -> Candidate {
    let mut ranks: Vec<&Process> = match trainer.rank {
        Some(_) if trainer.world_size != Some(1) => tree
            .children(trainer.parent)
            .filter(|sibling| sibling.rank.is_some() && sibling.state != 'Z' && sibling.is_python())
            .collect(),
        _ if trainer.is_fresh_child() => {
            let starter = tree.starter(trainer);
            let started = starter.map_or_else(Vec::new, |starter| tree.started(starter));
            let fresh = started.into_iter().filter(|child| child.is_fresh_child());
            fresh.filter(|child| is_trainer(tree, child)).collect()
        }
        _ => vec![],
    };
    if !ranks.iter().any(|rank| rank.key == trainer.key) {
        ranks = tree.get(trainer.key.pid).into_iter().collect();
    }
    ranks.sort_by_key(|rank| (rank.rank, rank.key.start_ticks, rank.key.pid));
    Candidate {
        workers: ranks.iter().map(|rank| tree.workers(rank).len()).sum(),
        command: ranks
            .first()
            .map_or_else(String::new, |rank| command(tree, rank)),
        ranks: ranks.iter().map(|rank| rank.key).collect(),
        starter: match ranks[..] {
            [rank] => starter(tree, rank),
            _ => None,
        },
    }
}

/// Returns the Python with a framework that started `rank` through `multiprocessing`.
fn starter(tree: &Tree<'_>, rank: &Process) -> Option<ProcessKey> {
    let starter = tree.starter(rank)?;
    let copies = rank.command == starter.command || rank.is_fresh_child();
    (copies && starter.is_python() && starter.framework == Some(true)).then_some(starter.key)
}

/// Returns the command line that the user entered: for a process with a command line of `multiprocessing`, that of its
/// starter.
fn command(tree: &Tree<'_>, rank: &Process) -> String {
    let starter = tree.starter(rank).filter(|_| rank.is_fresh_child());
    starter.unwrap_or(rank).command.clone()
}
