//! Who started whom: the one place in which a tree of processes is walked, up or down.
//!
//! Pure. Knows numbers only: where they were read, and what the processes are, is for the caller.

use std::collections::{BTreeMap, BTreeSet};

use crate::units::Pid;

/// The children of each process, of all that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessTree {
    children: BTreeMap<Pid, Vec<Pid>>,
}

impl FromIterator<(Pid, Pid)> for ProcessTree {
    /// From each process and its parent.
    fn from_iter<I: IntoIterator<Item = (Pid, Pid)>>(links: I) -> Self {
        let mut tree = Self::default();
        for (pid, parent) in links {
            tree.children.entry(parent).or_default().push(pid);
        }
        tree
    }
}

impl ProcessTree {
    /// In the order in which they were given.
    pub fn children(&self, pid: Pid) -> &[Pid] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Everything below `root`, which is not part of it, parents before children.
    pub fn descendants(&self, root: Pid) -> Vec<Pid> {
        descendants(root, |pid| self.children(pid).to_vec())
    }
}

/// Everything below `root`, which is not part of it, parents before children; `children` gives those of one process,
/// and is asked once for each.
pub fn descendants(root: Pid, mut children: impl FnMut(Pid) -> Vec<Pid>) -> Vec<Pid> {
    // A damaged tree could name a process its own ancestor: each is taken once.
    let mut seen = BTreeSet::from([root]);
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let new = children(*pid);
        found.extend(new.into_iter().filter(|child| seen.insert(*child)));
        next += 1;
    }
    found.remove(0);
    found
}

/// What is above `pid`, the nearest first; `parent` gives that of one process, and `None` to stop there.
pub fn ancestors(pid: Pid, mut parent: impl FnMut(Pid) -> Option<Pid>) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut below = pid;
    while let Some(above) = parent(below)
        && above != pid
        && !found.contains(&above)
    {
        found.push(above);
        below = above;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(links: &[(i32, i32)]) -> ProcessTree {
        let links = links.iter().copied();
        links.map(|(pid, parent)| (Pid(pid), Pid(parent))).collect()
    }

    fn pids(pids: &[i32]) -> Vec<Pid> {
        pids.iter().copied().map(Pid).collect()
    }

    #[test]
    fn parents_come_before_their_children() {
        let tree = tree(&[(5, 3), (2, 1), (3, 1), (4, 2), (9, 8)]);
        assert_eq!(tree.children(Pid(1)), pids(&[2, 3]));
        assert_eq!(tree.children(Pid(4)), []);
        assert_eq!(tree.descendants(Pid(1)), pids(&[2, 3, 4, 5]));
        assert_eq!(tree.descendants(Pid(4)), []);
    }

    #[test]
    fn a_tree_that_names_itself_ends() {
        let tree = tree(&[(1, 2), (2, 1), (3, 3)]);
        assert_eq!(tree.descendants(Pid(1)), pids(&[2]));
        assert_eq!(tree.descendants(Pid(3)), []);
        let parent = |pid| Some(if pid == Pid(1) { Pid(2) } else { Pid(1) });
        assert_eq!(ancestors(Pid(1), parent), pids(&[2]));
        assert_eq!(ancestors(Pid(7), parent), pids(&[1, 2]));
    }

    #[test]
    fn ancestors_end_where_the_caller_stops() {
        let parent = |pid: Pid| (pid.0 > 2).then(|| Pid(pid.0 - 1));
        assert_eq!(ancestors(Pid(5), parent), pids(&[4, 3, 2]));
        assert_eq!(ancestors(Pid(2), parent), []);
    }
}
