//! Where the directory of a process's group lies.
//!
//! Knows `/proc/PID/cgroup` and the mount table; knows nothing of the files in a group.

use std::path::{Path, PathBuf};

use procfs::{FromRead as _, ProcessCGroup, ProcessCGroups};

use crate::sample::Gap;
use crate::source::file::printable;
use crate::source::mounts::{self, MountInfo};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// A group's directory, and the mount that it lies under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) version: Version,
    group: PathBuf,
    top: PathBuf,
}

impl Location {
    /// The process's own group.
    pub(super) fn group(&self) -> &Path {
        &self.group
    }

    /// The group and those above it, as far as they can be seen from here.
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
    /// `None` where no line is understood. Each is parsed alone: procfs refuses all for one that is torn.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let lines = text
            .lines()
            .map(|line| ProcessCGroups::from_read(line.as_bytes()));
        let groups = lines.filter_map(Result::ok).flatten();
        let groups = groups.filter(|group| group.pathname.starts_with('/'));
        let groups: Vec<_> = groups.collect();
        (!groups.is_empty()).then_some(Self(groups))
    }

    /// The group's name: where hierarchies differ, the first of these that is not the root.
    pub(super) fn path(&self) -> String {
        let paths = ["cpu", "memory", "cpuset", ""].map(|controller| self.line(controller));
        let named = paths
            .into_iter()
            .flatten()
            .find(|path| *path != Path::new("/"));
        printable(named.unwrap_or(Path::new("/")))
    }

    /// The path of the group in the hierarchy of this controller; `""` = in version 2.
    fn line(&self, controller: &str) -> Option<&Path> {
        let of = |group: &&ProcessCGroup| match controller {
            "" => group.controllers.is_empty(),
            _ => group.controllers.iter().any(|name| name == controller),
        };
        let path = &*self.0.iter().find(of)?.pathname;
        Some(Path::new(path.strip_suffix(" (deleted)").unwrap_or(path)))
    }

    /// The group that holds the process for this controller: version 1's where the controller has a
    /// hierarchy there, else version 2's. `Ok(None)` where the kernel has neither.
    pub(super) fn place(
        &self,
        controller: &str,
        mounts: &[MountInfo],
        sys_root: &Path,
    ) -> Result<Option<Location>, Gap> {
        let (version, path) = match (self.line(controller), self.line("")) {
            (Some(path), _) => (Version::V1, path),
            (None, Some(path)) => (Version::V2, path),
            (None, None) => return Ok(None),
        };
        let hierarchies = mounts.iter().filter(|mount| match version {
            Version::V1 => mount.fs_type == "cgroup" && mounts::option(mount, controller).is_some(),
            Version::V2 => mount.fs_type == "cgroup2",
        });
        find(version, path, hierarchies, sys_root).map(Some)
    }

    /// The process's directory in version 2, whatever controllers are there.
    pub(super) fn unified(&self, mounts: &[MountInfo], sys_root: &Path) -> Option<PathBuf> {
        let hierarchies = mounts.iter().filter(|mount| mount.fs_type == "cgroup2");
        let place = find(Version::V2, self.line("")?, hierarchies, sys_root).ok()?;
        Some(place.group)
    }
}

/// A mount shows a part of the hierarchy: all of it on a host, the container's own group in a container.
fn find<'a>(
    version: Version,
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
    Err(Gap {
        source: "cgroup".to_owned(),
        reason,
        hint: hint.to_owned(),
    })
}

/// The mount point as it is reached through `sys_root`, which may be another place than `/sys`.
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
