//! Searches for the job below a command that pipetop launched. The job takes time to start, and another process may
//! look like it at first: launchers load a framework, too.
//!
//! Does not depend on how a job is watched.

use std::sync::Arc;
use std::time::Duration;

use crate::job::{Candidate, Process, Tree, below};
use crate::sample::Gap;
use crate::source::discovery::Discovery;
use crate::source::probe::Listener;
use crate::units::{Pid, ProcessKey};

/// Shortest time between two searches, which only read the processes below the command.
const PAUSE: Duration = Duration::from_millis(500);

/// What is known of a launched command.
#[derive(Debug)]
pub(super) struct LaunchSearch {
    root: Pid,
    probe: Option<Arc<Listener>>,
    searched_at: Option<Duration>,
    /// Whether the watched ranks report steps, or have loaders, so that the search is over.
    sure: bool,
    seen: Below,
}

/// The most that was seen below the command so far, in increasing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Below {
    Nothing,
    Python,
    Framework,
    Job,
}

impl LaunchSearch {
    pub(super) fn new(root: Pid, probe: Option<Arc<Listener>>) -> Self {
        Self {
            root,
            probe,
            searched_at: None,
            sure: false,
            seen: Below::Nothing,
        }
    }

    /// Returns the job, unless it is the one with these ranks, which is `watched` already.
    pub(super) fn search(
        &mut self,
        now: Duration,
        watched: Option<&[ProcessKey]>,
        discovery: &mut Discovery,
    ) -> Option<Candidate> {
        let recently = |at: Duration| now.saturating_sub(at) < PAUSE;
        if watched.is_some() && self.sure || self.searched_at.is_some_and(recently) {
            return None;
        }
        self.searched_at = Some(now);
        let processes = discovery.below(self.root);
        let tree = Tree::new(&processes);
        let reports = self.probe.as_ref().map(|probe| probe.writers());
        let reports = reports.unwrap_or_default();
        let found = below(&tree, self.root, &reports);
        self.seen = self.seen.max(self.poll(&processes, found.as_ref()));
        let found = found?;
        let reporting = |key: &ProcessKey| reports.contains(&key.pid);
        self.sure = if self.probe.is_some() {
            found.ranks.iter().any(reporting)
        } else {
            found.workers > 0
        };
        (watched != Some(&found.ranks)).then_some(found)
    }

    fn poll(&self, processes: &[Process], found: Option<&Candidate>) -> Below {
        let mut below = processes
            .iter()
            .filter(|process| process.key.pid != self.root);
        if found.is_some() {
            Below::Job
        } else if below.any(|process| process.framework == Some(true)) {
            Below::Framework
        } else if processes.iter().any(Process::is_python) {
            Below::Python
        } else {
            Below::Nothing
        }
    }

    /// Returns why there is no job yet.
    pub(super) fn gap(&self) -> Option<Gap> {
        let (reason, hint) = match self.seen {
            Below::Nothing => (
                "no Python was seen below the command",
                "name the training script, or the script that starts it",
            ),
            Below::Python => (
                "the command's Python has not loaded PyTorch",
                "check that this is the training script and the right Python",
            ),
            Below::Framework => (
                "the command has loaded PyTorch, but has not trained",
                "name the training script, or the script that starts it",
            ),
            Below::Job => return None,
        };
        Some(Gap::new("job", reason, hint))
    }
}
