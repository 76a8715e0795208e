//! Numbers of threads: a process in its own PID namespace, as in a container, numbers them differently.
//!
//! Does not depend on what the threads do.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::file::field;
use crate::units::Pid;

#[derive(Debug)]
pub(super) struct ThreadNumbers {
    /// `None` if the process is in our PID namespace.
    tasks: Option<PathBuf>,
    /// Our number, by the process's own.
    ours: HashMap<Pid, Pid>,
}

impl ThreadNumbers {
    pub(super) fn of(proc_root: &Path, process: Pid) -> Self {
        let folder = proc_root.join(process.to_string());
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        let own = numbers(&status).is_some_and(|numbers| numbers.count() > 1);
        Self {
            tasks: own.then(|| folder.join("task")),
            ours: HashMap::new(),
        }
    }

    /// Reads the numbers of these threads, given as in their process, for [`Self::ours`].
    pub(super) fn learn(&mut self, own: impl IntoIterator<Item = Pid>) {
        let Some(tasks) = &self.tasks else { return };
        if own.into_iter().all(|own| self.ours.contains_key(&own)) {
            return;
        }
        let tasks = fs::read_dir(tasks).into_iter().flatten().flatten();
        let numbered = tasks.filter_map(|task| {
            let ours = task.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let own = numbers(&status)?.next_back()?;
            Some((own, Pid(ours)))
        });
        self.ours = numbered.collect();
    }

    /// Returns our number of the thread that its process numbers `own`. `None` if there is no such thread.
    pub(super) fn ours(&self, own: Pid) -> Option<Pid> {
        match self.tasks {
            None => Some(own),
            Some(_) => self.ours.get(&own).copied(),
        }
    }
}

/// Returns the numbers of a thread, from our namespace to its own: `NSpid` of proc(5). `None` before Linux 4.1.
fn numbers(status: &str) -> Option<impl DoubleEndedIterator<Item = Pid>> {
    Some(
        field(status, "NSpid:")?
            .split_whitespace()
            .filter_map(|number| number.parse().ok().map(Pid)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(tree: &Path, threads: &[(i32, &str)]) -> ThreadNumbers {
        let folder = tree.join("50");
        for (ours, line) in threads {
            let task = folder.join(format!("task/{ours}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("status"), format!("Name:\tpython\n{line}\n")).unwrap();
        }
        let first = threads.first().map_or("", |(_, line)| line);
        fs::write(folder.join("status"), format!("Name:\tpython\n{first}\n")).unwrap();
        ThreadNumbers::of(tree, Pid(50))
    }

    #[test]
    fn threads_of_another_namespace_have_our_numbers() {
        let tree = tempfile::tempdir().unwrap();
        let lines = [(50, "NSpid:\t50\t1"), (57, "NSpid:\t57\t8")];
        let mut numbers = process(tree.path(), &lines);
        assert_eq!(numbers.ours(Pid(8)), None);
        numbers.learn([Pid(8)]);
        assert_eq!(numbers.ours(Pid(8)), Some(Pid(57)));
        assert_eq!(numbers.ours(Pid(57)), None);
        // A thread that was started later.
        let lines = [(50, "NSpid:\t50\t1"), (61, "NSpid:\t61\t9")];
        process(tree.path(), &lines);
        numbers.learn([Pid(8)]);
        assert_eq!(numbers.ours(Pid(9)), None);
        numbers.learn([Pid(8), Pid(9)]);
        assert_eq!(numbers.ours(Pid(9)), Some(Pid(61)));
    }

    #[test]
    fn threads_of_our_namespace_are_called_as_they_are() {
        for line in ["NSpid:\t50", "", "NSpid:\tx"] {
            let tree = tempfile::tempdir().unwrap();
            let mut numbers = process(tree.path(), &[(50, line)]);
            numbers.learn([Pid(8)]);
            assert_eq!(numbers.ours(Pid(8)), Some(Pid(8)), "{line}");
        }
    }
}
