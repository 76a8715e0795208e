//! The control group of a process: its limits, the tightest on the way up, and what they did.
//!
//! Version 1, version 2 and both at once, nested, on the host and in a container. Knows the group's files;
//! knows nothing of what the process does.

mod files;
mod place;

use std::io;
use std::path::{Path, PathBuf};

use crate::sample::{CgroupSample, Gap, PressureSample};
use crate::source::file::KernelFile;
use crate::source::host::{Pressure, cpus_in_list};
use crate::source::mounts;
use crate::units::{Bytes, Pid};

use files::{CpuFiles, MemoryFiles};
use place::{Membership, Place, Version};

/// The reader of one process's control group. Follows the process when it is moved to another group.
#[derive(Debug)]
pub struct Cgroup {
    proc_root: PathBuf,
    sys_root: PathBuf,
    /// `/proc/PID/cgroup`, and its text when `groups` was made from it.
    membership: KernelFile,
    text: String,
    groups: Option<Groups>,
}

/// What one reading of a group brought.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CgroupReading {
    /// `None` where the process's group is not known.
    pub cgroup: Option<CgroupSample>,
    /// Pressure within the group: in version 2 only, and better than the machine's where it exists.
    pub pressure: Option<PressureSample>,
    pub gaps: Vec<Gap>,
}

impl Cgroup {
    /// Opens nothing yet.
    pub fn new(proc_root: &Path, sys_root: &Path, pid: Pid) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            sys_root: sys_root.to_owned(),
            membership: KernelFile::new(proc_root.join(format!("{pid}/cgroup"))),
            text: String::new(),
            groups: None,
        }
    }

    pub fn read(&mut self) -> CgroupReading {
        match self.membership.read() {
            Ok(text) if text == self.text && self.groups.is_some() => {}
            Ok(text) => {
                text.clone_into(&mut self.text);
                self.groups = Groups::find(&self.proc_root, &self.sys_root, &self.text);
            }
            Err(error) => {
                return CgroupReading {
                    gaps: vec![self.membership.gap("cgroup", &error)],
                    ..CgroupReading::default()
                };
            }
        }
        match &mut self.groups {
            Some(groups) => groups.read(),
            None => CgroupReading {
                gaps: vec![
                    self.membership
                        .gap("cgroup", &io::ErrorKind::InvalidData.into()),
                ],
                ..CgroupReading::default()
            },
        }
    }
}

/// The files of the process's groups; each list starts with its own group and goes up.
#[derive(Debug)]
struct Groups {
    path: String,
    cpu: Vec<CpuFiles>,
    cpuset: Vec<KernelFile>,
    memory: Vec<MemoryFiles>,
    pressure: Option<Pressure>,
    /// What could not be placed.
    gaps: Vec<Gap>,
}

impl Groups {
    fn find(proc_root: &Path, sys_root: &Path, text: &str) -> Option<Self> {
        let membership = Membership::parse(text)?;
        let mut gaps = Vec::new();
        // A process's group is named, and mounts are numbered, as the reader's namespaces see them: so the
        // mount table is our own, wherever the job lives.
        let own = proc_root.join("self");
        let mounts = mounts::read(&own).unwrap_or_else(|error| {
            gaps.push(crate::source::file::unreadable(
                "cgroup",
                &own.join("mountinfo"),
                &error,
            ));
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
        let unified = membership.unified(&mounts, sys_root);
        Some(Self {
            path: membership.path(),
            cpu: levels(cpu, CpuFiles::new),
            cpuset: levels(cpuset, |version, group| {
                KernelFile::new(group.join(match version {
                    Version::V1 => "cpuset.effective_cpus",
                    Version::V2 => "cpuset.cpus.effective",
                }))
            }),
            memory: levels(memory, MemoryFiles::new),
            pressure: unified.map(|own| Pressure::new(|what| own.join(format!("{what}.pressure")))),
            gaps,
        })
    }

    fn read(&mut self) -> CgroupReading {
        let mut gaps = self.gaps.clone();
        let mut sample = CgroupSample {
            path: self.path.clone(),
            ..CgroupSample::default()
        };

        let mut tightest = (0, None);
        for (level, files) in self.cpu.iter_mut().enumerate() {
            match files.quota() {
                Ok(quota) => tightest = tighter(tightest, (level, quota)),
                Err(gap) => gaps.push(gap),
            }
        }
        sample.cpu_quota = tightest.1;
        if let Some(files) = self.cpu.get_mut(tightest.0) {
            files.read_stat(&mut sample);
        }

        // Already the effective one: what the groups above leave. Not every group has the file.
        sample.cpuset = self
            .cpuset
            .iter_mut()
            .find_map(|file| file.read().ok().and_then(cpus_in_list));

        let mut tightest = (0, None);
        for (level, files) in self.memory.iter_mut().enumerate() {
            match files.limit() {
                Ok(limit) => tightest = tighter(tightest, (level, limit)),
                Err(gap) => gaps.push(gap),
            }
        }
        sample.mem_limit = tightest.1.map(Bytes);
        sample.mem_used = self.memory.get_mut(tightest.0).and_then(MemoryFiles::used);

        CgroupReading {
            cgroup: Some(sample),
            // Where the group has none, the machine's own stands and its reader says why it is missing.
            pressure: self
                .pressure
                .as_mut()
                .and_then(|pressure| pressure.read().ok()),
            gaps,
        }
    }
}

fn levels<T>(place: Option<Place>, files: impl Fn(Version, &Path) -> T) -> Vec<T> {
    place.map_or_else(Vec::new, |place| {
        place
            .upwards()
            .map(|group| files(place.version, group))
            .collect()
    })
}

/// The lower limit of the two and the level it was found at; the level further down where they are equal.
fn tighter<T: PartialOrd>(
    best: (usize, Option<T>),
    next: (usize, Option<T>),
) -> (usize, Option<T>) {
    match (&best.1, &next.1) {
        (_, None) => best,
        (Some(low), Some(new)) if low <= new => best,
        _ => next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_equal_limits_the_group_further_down_counts() {
        assert_eq!(tighter((0, Some(2.0)), (1, Some(2.0))), (0, Some(2.0)));
        assert_eq!(tighter((0, Some(4.0)), (1, Some(2.0))), (1, Some(2.0)));
        assert_eq!(tighter((0, None), (3, Some(2.0))), (3, Some(2.0)));
        assert_eq!(tighter((0, Some(2.0)), (1, None)), (0, Some(2.0)));
    }
}
