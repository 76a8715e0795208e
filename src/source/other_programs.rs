//! Programs outside the job that use the CPUs, by name.
//!
//! Listing all processes is expensive, so it is done seldom, and only while few CPUs are free. In a container only its
//! own processes are visible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::sample::OtherProgram;
use crate::source::process::ProcessReader;
use crate::units::{Pid, ProcessKey};

/// Shortest time between two listings, in all and per process, so that thousands of processes do not cost more.
const PAUSE: Duration = Duration::from_secs(4);
const PAUSE_EACH: Duration = Duration::from_millis(2);
/// All processes are listed if at least this share of the machine's CPU time is in use. They are forgotten if it was less for
/// this long: a machine that is full on average has short breaks.
const FULL: f64 = 0.9;
const FORGET_AFTER: Duration = Duration::from_secs(10);
/// Maximum number of programs named, and the least number of CPUs that each must use.
const MAX_PROGRAMS: usize = 3;
const MIN_CPUS: f64 = 0.1;

/// State kept from one listing to the next.
#[derive(Debug)]
pub(super) struct OtherPrograms {
    reader: ProcessReader,
    /// When the machine's busy time was last read, and its value.
    busy: Option<(Duration, Duration)>,
    /// When the machine was last full.
    full: Option<Duration>,
    /// CPU time of each process at the last listing, in clock ticks.
    listed: Option<(Duration, BTreeMap<ProcessKey, u64>)>,
    found: Vec<OtherProgram>,
}

impl OtherPrograms {
    pub(super) fn new(proc_root: &Path) -> Self {
        Self {
            reader: ProcessReader::new(proc_root),
            busy: None,
            full: None,
            listed: None,
            found: vec![],
        }
    }

    /// Returns the programs of the last listing. `busy` is the busy time of the machine's `cpus` since boot; `ours`
    /// returns the job's processes and pipetop.
    pub(super) fn read(
        &mut self,
        now: Duration,
        busy: Option<Duration>,
        cpus: u32,
        ours: impl FnOnce() -> BTreeSet<Pid>,
    ) -> Vec<OtherProgram> {
        let full = self.is_full(now, busy, cpus);
        if full {
            self.full = Some(now);
        }
        let recently = |at| now.saturating_sub(at) < FORGET_AFTER;
        if !self.full.is_some_and(recently) {
            (self.listed, self.found) = (None, vec![]);
            return vec![];
        }
        let due = |(at, known): &(Duration, BTreeMap<_, _>)| {
            let each = u32::try_from(known.len()).unwrap_or(u32::MAX);
            now.saturating_sub(*at) >= PAUSE.max(PAUSE_EACH.saturating_mul(each))
        };
        if full && self.listed.as_ref().is_none_or(due) {
            self.list(now, &ours());
        }
        self.found.clone()
    }

    fn is_full(&mut self, now: Duration, busy: Option<Duration>, cpus: u32) -> bool {
        let before = self.busy;
        self.busy = busy.map(|busy| (now, busy));
        let (Some((at, before)), Some(busy)) = (before, busy) else {
            return false;
        };
        let whole = now.saturating_sub(at).as_secs_f64() * f64::from(cpus);
        busy.saturating_sub(before).as_secs_f64() >= FULL * whole
    }

    fn list(&mut self, now: Duration, ours: &BTreeSet<Pid>) {
        let all = self.reader.all().unwrap_or_default();
        let before = self.listed.take();
        let mut listed = BTreeMap::new();
        let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
        for pid in all.into_iter().filter(|pid| !ours.contains(pid)) {
            let Ok(stat) = self.reader.stat(pid) else {
                continue;
            };
            // A process that is new since the last listing has used all of its CPU time since then.
            let known = before.as_ref().and_then(|(_, ticks)| ticks.get(&stat.key));
            let used = stat.cpu_ticks.saturating_sub(known.copied().unwrap_or(0));
            *by_name.entry(stat.comm).or_default() += used;
            listed.insert(stat.key, stat.cpu_ticks);
        }
        self.found = before.map_or_else(Vec::new, |(at, _)| {
            let seconds = now.saturating_sub(at).as_secs_f64();
            let ticks = seconds * self.reader.ticks_per_second() as f64;
            let mut found: Vec<_> = by_name
                .into_iter()
                .map(|(name, used)| OtherProgram {
                    name,
                    cpus: used as f64 / ticks,
                })
                .filter(|program| program.cpus >= MIN_CPUS)
                .collect();
            found.sort_by(|one, other| other.cpus.total_cmp(&one.cpus));
            found.truncate(MAX_PROGRAMS);
            found
        });
        self.listed = Some((now, listed));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn those_that_use_the_cpus_are_named_while_few_are_free() {
        let root = tempfile::tempdir().unwrap();
        let has = |pid: i32, name: &str, ticks: u64| {
            let folder = root.path().join(pid.to_string());
            fs::create_dir_all(&folder).unwrap();
            let text = format!(
                "{pid} ({name}) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 77 1 1 0 0 0"
            );
            fs::write(folder.join("stat"), text).unwrap();
        };
        let ours = || BTreeSet::from([Pid(7)]);
        let mut others = OtherPrograms::new(root.path());
        let mut read = |at: u64, busy: u64| {
            let (now, busy) = (Duration::from_secs(at), Duration::from_secs(busy));
            let found = others.read(now, Some(busy), 2, ours);
            let found = found.into_iter();
            found
                .map(|program| (program.name, (program.cpus * 100.0).round()))
                .collect::<Vec<_>>()
        };
        has(7, "python3", 0);
        has(8, "cc1", 1000);
        has(9, "cc1", 0);
        has(10, "sh", 0);
        assert_eq!(read(0, 0), []);
        assert_eq!(read(1, 2), [], "one listing says nothing");
        has(7, "python3", 300);
        has(8, "cc1", 1300);
        has(9, "cc1", 150);
        has(10, "sh", 1);
        has(11, "mandb", 60);
        assert_eq!(read(3, 6), [], "not so soon again");
        let found = [("cc1".to_owned(), 90.0), ("mandb".to_owned(), 12.0)];
        assert_eq!(read(6, 12), found);
        assert_eq!(read(7, 14), found);
        assert_eq!(read(8, 15), found, "a break");
        assert_eq!(read(17, 25), [], "there are CPUs free");
    }
}
