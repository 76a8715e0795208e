//! The directory of a process's control group, from `/proc/PID/cgroup` and the mount table.
//!
//! Does not depend on the files in a group.

use std::path::{Path, PathBuf};

use procfs::{FromRead as _, ProcessCGroup, ProcessCGroups};

use crate::sample::Gap;
use crate::source::file::printable;
use crate::source::mounts::{self, MountInfo};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CgroupVersion {
    V1,
    V2,
}

/// A group's directory, and the mount point above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) version: CgroupVersion,
    group: PathBuf,
    top: PathBuf,
}

impl Location {
    /// Returns the process's own group.
    pub(super) fn group(&self) -> &Path {
        &self.group
    }

    /// Returns the group and the visible groups above it.
    pub(super) fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.group
            .ancestors()
            .take_while(|group| group.starts_with(&self.top))
    }
}

/// The lines of `/proc/PID/cgroup`: `4:memory:/job_7`, and for version 2 `0::/job_7`.
#[derive(Debug, Clone)]
pub(super) struct Membership(Vec<ProcessCGroup>);

impl Membership {
    /// Returns `None` if no line can be parsed. Each line is parsed separately: procfs rejects all of them for a single
    /// torn one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let lines = text
            .lines()
            .map(|line| ProcessCGroups::from_read(line.as_bytes()));
        let groups = lines.filter_map(Result::ok).flatten();
        let groups = groups.filter(|group| group.pathname.starts_with('/'));
        let groups: Vec<_> = groups.collect();
        (!groups.is_empty()).then_some(Self(groups))
    }

    /// Returns the group's name: if hierarchies differ, the first of these that is not the root.
    pub(super) fn path(&self) -> String {
        let paths = ["cpu", "memory", "cpuset", ""].map(|controller| self.line(controller));
        let named = paths
            .into_iter()
            .flatten()
            .find(|path| *path != Path::new("/"));
        printable(named.unwrap_or(Path::new("/")))
    }

    /// Returns the path of the group in the hierarchy of this controller; `""` = in version 2.
    fn line(&self, controller: &str) -> Option<&Path> {
        let of = |group: &&ProcessCGroup| match controller {
            "" => group.controllers.is_empty(),
            _ => group.controllers.iter().any(|name| name == controller),
        };
        let path = &*self.0.iter().find(of)?.pathname;
        Some(Path::new(path.strip_suffix(" (deleted)").unwrap_or(path)))
    }

    /// Finds the group of the process for this controller: in version 1 if the controller has a hierarchy there, else
    /// in version 2; `""` = in version 2, with or without controllers. Returns `Ok(None)` if the kernel has neither.
    pub(super) fn place(
        &self,
        controller: &str,
        mounts: &[MountInfo],
        sys_root: &Path,
    ) -> Result<Option<Location>, Gap> {
        let (version, path) = match (self.line(controller), self.line("")) {
            (Some(path), _) if !controller.is_empty() => (CgroupVersion::V1, path),
            (_, Some(path)) => (CgroupVersion::V2, path),
            (_, None) => return Ok(None),
        };
        let hierarchies = mounts.iter().filter(|mount| match version {
            CgroupVersion::V1 => {
                mount.fs_type == "cgroup" && mounts::option(mount, controller).is_some()
            }
            CgroupVersion::V2 => mount.fs_type == "cgroup2",
        });
        find(version, path, hierarchies, sys_root).map(Some)
    }
}

/// Finds the mount that shows the group. A mount shows a part of the hierarchy: all of it on a host, the container's
/// own group in a container.
fn find<'a>(
    version: CgroupVersion,
    path: &Path,
    hierarchies: impl Iterator<Item = &'a MountInfo>,
    sys_root: &Path,
) -> Result<Location, Gap> {
    let mut mounted = false;
    for mount in hierarchies {
        mounted = true;
        let Ok(below) = path.strip_prefix(&mount.root) else {
            continue;
        };
        let top = under(sys_root, &mount.mount_point);
        let group = top.join(below);
        // `/../other` is a group beside or above those of our namespace.
        if !below.starts_with("..") && group.is_dir() {
            return Ok(Location {
                version,
                group,
                top,
            });
        }
    }
    let (reason, hint) = if mounted {
        (
            format!(
                "the job's control group {} is not visible here",
                printable(path)
            ),
            "run pipetop on the host or in the job's container",
        )
    } else {
        (
            "the control group file system is not mounted".to_owned(),
            "mount /sys/fs/cgroup, or run pipetop on the host",
        )
    };
    Err(Gap::new("cgroup", reason, hint))
}

/// Returns the mount point below `sys_root`, which may be another place than `/sys`.
fn under(sys_root: &Path, point: &Path) -> PathBuf {
    match point.strip_prefix("/sys") {
        Ok(rest) if !point.starts_with(sys_root) => sys_root.join(rest),
        _ => point.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use support::fuzz;

    use super::*;

    #[test]
    fn a_line_may_hold_colons_and_names_of_other_hierarchies() {
        let text = "9:name=systemd:/x\n4:cpu,cpuacct:/a:b\n3:cpuset:/\n0::/u (deleted)\nrubbish\n";
        let membership = Membership::parse(text).unwrap();
        assert_eq!(membership.line("cpu"), Some(Path::new("/a:b")));
        assert_eq!(membership.line("memory"), None);
        assert_eq!(membership.line(""), Some(Path::new("/u")));
        assert_eq!(membership.path(), "/a:b");
        let hostile = Membership::parse("0::/a\u{1b}[2J").unwrap();
        assert_eq!(hostile.path(), "/a\u{fffd}[2J");
        assert!(Membership::parse("rubbish\n7:cpu:relative\n").is_none());
    }

    proptest::proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_names_of_groups(text in fuzz::text([
            "9:name=systemd:/x\n4:cpu,cpuacct:/a:b\n3:cpuset:/\n0::/u (deleted)\n",
            "0::/../../a/../b\n",
        ])) {
            if let Some(membership) = Membership::parse(&text) {
                let _ = membership.path();
                let _ = ["cpu", "memory", ""].map(|controller| membership.line(controller));
            }
        }
    }
}
