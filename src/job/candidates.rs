//! Which job is meant: by number, by a word of the command line, or the one that is there.

use thiserror::Error;

use super::{Process, Tree};
use crate::units::{Pid, ProcessKey};

/// What the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Pid(Pid),
    Word(String),
    /// The trainer that we have launched: once it has ended, no other job is meant.
    Launched(Pid),
    /// Whatever trains below this process, which we have launched, and after its end the next one there.
    Below(Pid),
    /// Nothing: the best that is there.
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
}

/// Why there is nothing to watch; each with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoTarget {
    #[error("no process {0} here")]
    NoProcess(Pid),
    #[error("process {0} is a thread of the kernel")]
    Kernel(Pid),
    #[error("process {0} ({1}) has ended and waits for its parent")]
    Zombie(Pid, String),
    #[error("process {0} ({1}) is no training job: no Python runs in it or below it")]
    NoPython(Pid, String),
    #[error(
        "process {0} ({1}) is no training job: it has no loader workers and no deep-learning library loaded"
    )]
    NoFramework(Pid, String),
    #[error("no running command line has `{0}` in it")]
    NoMatch(String),
    #[error("`{0}` is in several command lines, but none of them is a training job")]
    NoJobMatches(String),
    #[error("several training jobs are running")]
    Several(Vec<Candidate>),
}

impl NoTarget {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoProcess(_) | Self::NoMatch(_) => {
                "run `pipetop` without a target: it finds training jobs by itself"
            }
            Self::Several(_) => "name one by its number: `pipetop PID`",
            _ => "name the trainer or its launcher, or run `pipetop` alone to look for jobs",
        }
    }
}

/// The job that `target` names. `None` where `Target::Any` finds nothing yet.
///
/// # Errors
/// Where the target cannot be a job, or is not one but several.
pub fn resolve(processes: &[Process], target: &Target) -> Result<Option<Candidate>, NoTarget> {
    let tree = Tree::new(processes);
    match target {
        Target::Pid(pid) | Target::Launched(pid) => by_pid(&tree, *pid).map(Some),
        Target::Word(word) => by_word(&tree, processes, word).map(Some),
        Target::Below(pid) => Ok(below(&tree, *pid, &[])),
        Target::Any => {
            let mut found = candidates(processes);
            match found.len() {
                0 => Ok(None),
                1 => Ok(found.pop()),
                _ => Err(NoTarget::Several(found)),
            }
        }
    }
}

/// Every training job, the likeliest first: those with loader workers, then those that have a framework
/// loaded.
pub fn candidates(processes: &[Process]) -> Vec<Candidate> {
    let tree = Tree::new(processes);
    let mut found: Vec<Candidate> = Vec::new();
    for process in processes
        .iter()
        .filter(|process| is_trainer(&tree, process))
    {
        if found.iter().any(|known| known.ranks.contains(&process.key)) {
            continue;
        }
        found.push(job_of(&tree, process));
    }
    found.sort_by_key(|job| {
        (
            std::cmp::Reverse(job.workers),
            job.ranks.first().map(|key| key.start_ticks),
        )
    });
    found
}

/// The job below `root`: that of a process that `reports` its steps, else the likeliest of those that look like one.
/// Launchers load a framework before the trainers that they start are there: ask again until it is sure.
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
    let below = tree.descendants(pid);
    if let Some(trainer) = below.iter().find(|process| is_trainer(tree, process)) {
        return Ok(job_of(tree, trainer));
    }
    match below.iter().find(|process| process.is_python()) {
        None => Err(NoTarget::NoPython(pid, process.comm.clone())),
        // Not looked at, or denied: give it the benefit of the doubt.
        Some(python) if python.framework.is_none() => Ok(job_of(tree, python)),
        Some(_) => Err(NoTarget::NoFramework(pid, process.comm.clone())),
    }
}

fn by_word(tree: &Tree<'_>, processes: &[Process], word: &str) -> Result<Candidate, NoTarget> {
    let named: Vec<&Process> = processes
        .iter()
        .filter(|process| process.command.contains(word) || process.comm == word)
        .collect();
    let mut jobs: Vec<Candidate> = Vec::new();
    for process in &named {
        if let Ok(job) = by_pid(tree, process.key.pid)
            && !jobs.contains(&job)
        {
            jobs.push(job);
        }
    }
    match (jobs.len(), named.as_slice()) {
        (1, _) => jobs.pop().ok_or_else(|| NoTarget::NoMatch(word.to_owned())),
        (0, []) => Err(NoTarget::NoMatch(word.to_owned())),
        (0, [only]) => match by_pid(tree, only.key.pid) {
            Ok(job) => Ok(job),
            Err(error) => Err(error),
        },
        (0, _) => Err(NoTarget::NoJobMatches(word.to_owned())),
        _ => Err(NoTarget::Several(jobs)),
    }
}

/// Trains, as far as can be told: Python with loader workers, or with a framework loaded and not itself
/// a worker or a helper of somebody.
fn is_trainer(tree: &Tree<'_>, process: &Process) -> bool {
    if process.is_builtin_trainer() {
        return process.state != 'Z';
    }
    if process.kernel || process.state == 'Z' || !process.is_python() {
        return false;
    }
    if process.is_fresh_child() || process.is_multiprocessing_service() {
        return false;
    }
    if tree.trainer_of(process).is_some() {
        return false;
    }
    if !tree.workers(process).is_empty() {
        return !is_launcher(tree, process);
    }
    process.framework == Some(true) && !is_launcher(tree, process)
}

/// Starts ranks and does not train: ranks below it that it does not itself belong to.
fn is_launcher(tree: &Tree<'_>, process: &Process) -> bool {
    process.rank.is_none()
        && tree
            .children(process.key.pid)
            .any(|child| child.rank.is_some())
}

/// The job that `trainer` belongs to: its sibling ranks, too, where a launcher started several.
fn job_of(tree: &Tree<'_>, trainer: &Process) -> Candidate {
    let mut ranks: Vec<&Process> = match trainer.rank {
        Some(_) if trainer.world_size != Some(1) => tree
            .children(trainer.parent)
            .filter(|sibling| sibling.rank.is_some() && sibling.state != 'Z' && sibling.is_python())
            .collect(),
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
            .map_or_else(String::new, |rank| rank.command.clone()),
        ranks: ranks.iter().map(|rank| rank.key).collect(),
    }
}
