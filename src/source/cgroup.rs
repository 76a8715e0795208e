//! The control group of a process: its limits (the tightest of its own and of the groups above) and their effects.
//!
//! Supports version 1, version 2 and both at once, nested, on the host and in a container. Does not depend on what the
//! process does.

mod files;
mod membership;

use std::path::{Path, PathBuf};

use crate::sample::{CgroupSample, Gap, PressureSample};
use crate::source::file::{self, unparsable, unreadable};
use crate::source::host::pressure;
use crate::source::mounts;
use crate::units::{Bytes, Pid};

use files::{cpu_quota, cpuset, is_frozen, memory_limit, memory_used, read_throttling};
use membership::{Location, Membership};

/// Reads one process's control group. Follows the process when it is moved to another group.
#[derive(Debug)]
pub struct Cgroup {
    proc_root: PathBuf,
    sys_root: PathBuf,
    /// Path of `/proc/PID/cgroup`, and its text when `groups` was made from it.
    membership: PathBuf,
    text: String,
    groups: Option<CgroupLocations>,
}

/// Result of reading a group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CgroupReading {
    /// `None` if the process's group is not known.
    pub cgroup: Option<CgroupSample>,
    /// Pressure within the group: only in version 2, and preferred to the machine's if it exists.
    pub pressure: Option<PressureSample>,
    pub gaps: Vec<Gap>,
}

impl Cgroup {
    /// Creates the reader; reads nothing yet.
    pub fn new(proc_root: &Path, sys_root: &Path, pid: Pid) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            sys_root: sys_root.to_owned(),
            membership: proc_root.join(format!("{pid}/cgroup")),
            text: String::new(),
            groups: None,
        }
    }

    pub fn read(&mut self) -> CgroupReading {
        let unknown = |gap| CgroupReading {
            gaps: vec![gap],
            ..CgroupReading::default()
        };
        match file::read(&self.membership) {
            Ok(text) if text == self.text && self.groups.is_some() => {}
            Ok(text) => {
                self.groups = CgroupLocations::find(&self.proc_root, &self.sys_root, &text);
                self.text = text;
            }
            Err(error) => return unknown(unreadable("cgroup", &self.membership, &error)),
        }
        match &self.groups {
            Some(groups) => groups.read(),
            None => unknown(unparsable("cgroup", &self.membership)),
        }
    }
}

/// Locations of the process's groups. `None` if the kernel has no such controller, or it cannot be found.
#[derive(Debug)]
struct CgroupLocations {
    path: String,
    cpu: Option<Location>,
    cpuset: Option<Location>,
    memory: Option<Location>,
    freezer: Option<Location>,
    unified: Option<Location>,
    /// Reasons for locations that could not be found.
    gaps: Vec<Gap>,
}

impl CgroupLocations {
    fn find(proc_root: &Path, sys_root: &Path, text: &str) -> Option<Self> {
        let membership = Membership::parse(text)?;
        let mut gaps = Vec::new();
        // A process's group is named, and mounts are numbered, relative to the reader's namespaces, so the mount table
        // must be our own, wherever the job runs.
        let own = proc_root.join("self");
        let mounts = mounts::read(&own).unwrap_or_else(|error| {
            gaps.push(unreadable("cgroup", &own.join("mountinfo"), &error));
            Vec::new()
        });
        let mut place = |controller: &str| match membership.place(controller, &mounts, sys_root) {
            Ok(place) => place,
            Err(gap) => {
                if !gaps.contains(&gap) {
                    gaps.push(gap);
                }
                None
            }
        };
        let (cpu, cpuset, memory) = (place("cpu"), place("cpuset"), place("memory"));
        // If the freezer's location is not visible, polls still show most frozen groups.
        let optional = |controller| membership.place(controller, &mounts, sys_root).ok()?;
        Some(Self {
            path: membership.path(),
            cpu,
            cpuset,
            memory,
            freezer: optional("freezer"),
            unified: optional(""),
            gaps,
        })
    }

    fn read(&self) -> CgroupReading {
        let mut gaps = self.gaps.clone();
        let mut sample = CgroupSample {
            path: self.path.clone(),
            ..CgroupSample::default()
        };
        if let Some(place) = &self.cpu {
            let quota = |group: &Path| cpu_quota(place.version, group);
            let (group, limit) = tightest(place.upwards(), quota, &mut gaps);
            sample.cpu_quota = limit;
            read_throttling(group.unwrap_or_else(|| place.group()), &mut sample);
        }
        // Not every group has the file.
        sample.cpuset = self.cpuset.as_ref().and_then(|place| {
            let mut groups = place.upwards();
            groups.find_map(|group| cpuset(place.version, group))
        });
        if let Some(place) = &self.memory {
            let limit = |group: &Path| memory_limit(place.version, group);
            let (group, limit) = tightest(place.upwards(), limit, &mut gaps);
            sample.mem_limit = limit.map(Bytes);
            let group = group.unwrap_or_else(|| place.group());
            sample.mem_used = memory_used(place.version, group);
        }
        sample.frozen = self.freezer.as_ref().and_then(is_frozen);
        CgroupReading {
            cgroup: Some(sample),
            // If the group has no pressure, the machine's is used, and its reader reports why that is missing.
            pressure: self.unified.as_ref().and_then(|own| {
                let file = |resource: &str| own.group().join(format!("{resource}.pressure"));
                pressure(file).ok()
            }),
            gaps,
        }
    }
}

/// Returns the lowest limit of the groups and the group that sets it, which is the lower one if two are equal. `None`
/// if no group sets one.
fn tightest<'a, T: PartialOrd + Copy>(
    groups: impl Iterator<Item = &'a Path>,
    limit: impl Fn(&Path) -> Result<Option<T>, Gap>,
    gaps: &mut Vec<Gap>,
) -> (Option<&'a Path>, Option<T>) {
    let mut best: (Option<&Path>, Option<T>) = (None, None);
    for group in groups {
        match limit(group) {
            Ok(Some(new)) if best.1.is_none_or(|low| new < low) => best = (Some(group), Some(new)),
            Ok(_) => {}
            Err(gap) => gaps.push(gap),
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_equal_limits_the_group_further_down_counts() {
        let of = |limits: &[Option<f64>]| {
            let groups: Vec<PathBuf> = (0..limits.len()).map(|at| at.to_string().into()).collect();
            let limit = |group: &Path| {
                let at: usize = group.to_str().unwrap().parse().unwrap();
                Ok(limits[at])
            };
            let groups = groups.iter().map(PathBuf::as_path);
            let (group, limit) = tightest(groups, limit, &mut Vec::new());
            (group.map(|group| group.to_str().unwrap().to_owned()), limit)
        };
        let group = |at: &str, limit| (Some(at.to_owned()), Some(limit));
        assert_eq!(of(&[Some(2.0), Some(2.0)]), group("0", 2.0));
        assert_eq!(of(&[Some(4.0), Some(2.0)]), group("1", 2.0));
        assert_eq!(of(&[None, None, None, Some(2.0)]), group("3", 2.0));
        assert_eq!(of(&[Some(2.0), None]), group("0", 2.0));
        assert_eq!(of(&[None, None]), (None, None));
    }
}
