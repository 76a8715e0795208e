//! The processes below one: who they are, and a signal for all of them.

use std::collections::BTreeMap;

use procfs::process::all_processes;
use rustix::process::{Pid, Signal, kill_process};

/// Everything below `root`, which is not part of it. Processes that end meanwhile may be among it, and may be not.
pub(super) fn below(root: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let all = all_processes().into_iter().flatten().flatten();
    for stat in all.filter_map(|process| process.stat().ok()) {
        children.entry(stat.ppid).or_default().push(stat.pid);
    }
    let mut found = children
        .remove(&root.as_raw_nonzero().get())
        .unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        // Each is taken out with its parent: a damaged tree has an end, too.
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}

/// Sends a signal to everything below `root`; who has ended has nothing to hear.
pub(super) fn signal_below(root: Pid, signal: Signal) {
    for pid in below(root) {
        let _ = kill_process(pid, signal);
    }
}
