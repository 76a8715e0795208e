//! Parents and children: the only code that walks a tree of processes, up or down.
//!
//! Pure. Depends only on PIDs, not on how they were read or what the processes are.

use std::collections::{BTreeMap, BTreeSet};

use crate::units::Pid;

/// The children of each known process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessTree {
    children: BTreeMap<Pid, Vec<Pid>>,
}

impl FromIterator<(Pid, Pid)> for ProcessTree {
    /// Builds the tree from each process and its parent.
    fn from_iter<I: IntoIterator<Item = (Pid, Pid)>>(links: I) -> Self {
        let mut tree = Self::default();
        for (pid, parent) in links {
            tree.children.entry(parent).or_default().push(pid);
        }
        tree
    }
}

impl ProcessTree {
    /// Returns the children in the order in which they were given.
    pub fn children(&self, pid: Pid) -> &[Pid] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Returns everything below `root`, without `root`, parents before children.
    pub fn descendants(&self, root: Pid) -> Vec<Pid> {
        descendants(root, |pid| self.children(pid).to_vec())
    }
}

/// Returns everything below `root`, without `root`, parents before children. `children` returns those of one process
/// and is called once for each.
pub fn descendants(root: Pid, mut children: impl FnMut(Pid) -> Vec<Pid>) -> Vec<Pid> {
    // A damaged tree could contain a process as its own ancestor: each is visited once.
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

/// Returns the ancestors of `pid`, nearest first. `parent` returns the parent of a process, or `None` to stop there.
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
    fn a_cyclic_process_tree_terminates() {
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
