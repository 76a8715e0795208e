//! `/proc/diskstats`, and which device holds the files that a process has open.
//!
//! Does not depend on loaders, and opens no file of the job. `sysinfo` reads disks too, but only from the real `/proc`,
//! without their busy time, and queries their file systems for free space.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use procfs::DiskStat;
use rustix::fs::OFlags;

use crate::sample::{DiskSample, Gap};
use crate::source::file::{self, Failure, unparsable, unreadable};
use crate::source::mounts::{self, MountInfo};
use crate::source::open_files::opened;
use crate::units::{Bytes, Pid};

/// The kernel counts sectors of this many bytes, whatever the device's own sectors are.
const SECTOR: u64 = 512;

/// Reads every whole device: not partitions or RAM disks, and a loop device only if it holds files of the job
/// (images of containers and data sets are mounted this way). `holding`: the devices of the job's files.
pub fn read(
    proc_root: &Path,
    sys_root: &Path,
    holding: &BTreeSet<String>,
) -> (Vec<DiskSample>, Vec<Gap>) {
    let (diskstats, sys_block) = (proc_root.join("diskstats"), sys_root.join("block"));
    let text = match file::read(&diskstats) {
        Ok(text) => text,
        Err(error) => {
            return (Vec::new(), vec![unreadable("disk", &diskstats, &error)]);
        }
    };
    let (mut disks, mut torn) = (Vec::new(), false);
    for line in text.lines() {
        let Ok(stat) = DiskStat::from_line(line) else {
            torn = true;
            continue;
        };
        let held = holding.contains(&stat.name);
        let kept = held || !(stat.name.starts_with("loop") || stat.name.starts_with("ram"));
        if kept && is_whole(&sys_block, &stat.name) {
            disks.push(sample(stat, held));
        }
    }
    let mut gaps = Vec::new();
    if torn {
        gaps.push(unparsable("disk", &diskstats));
    }
    if !disks.is_empty() && !sys_block.is_dir() {
        gaps.push(Gap::new(
            "disk",
            format!(
                "no {}: cannot tell partitions from disks",
                sys_block.display()
            ),
            "mount sysfs at /sys",
        ));
    }
    (disks, gaps)
}

/// Whether this is a whole device. Without sysfs, partitions cannot be distinguished from disks, so everything counts
/// as whole.
fn is_whole(sys_block: &Path, name: &str) -> bool {
    sys_block.join(name.replace('/', "!")).is_dir() || !sys_block.is_dir()
}

fn sample(stat: DiskStat, holds_job_files: bool) -> DiskSample {
    DiskSample {
        device: stat.name,
        reads: stat.reads,
        read_bytes: Bytes(stat.sectors_read.saturating_mul(SECTOR)),
        read_time: Duration::from_millis(stat.time_reading),
        writes: stat.writes,
        write_bytes: Bytes(stat.sectors_written.saturating_mul(SECTOR)),
        write_time: Duration::from_millis(stat.time_writing),
        busy: Duration::from_millis(stat.time_in_progress),
        queued: Duration::from_millis(stat.weighted_time_in_progress),
        holds_job_files,
    }
}

/// Returns the whole devices, by their names in `/proc/diskstats`, of the files that the process has open for reading
/// (needs T1).
///
/// Reads `fdinfo` and the mount table, never the file itself: a call for a file on a dead server would hang.
pub fn devices_of_open_files(
    proc_root: &Path,
    sys_root: &Path,
    pid: Pid,
) -> Result<BTreeSet<String>, Gap> {
    let process = proc_root.join(pid.to_string());
    let mounts = mounts::read(&process)
        .map_err(|error| unreadable("disk", &process.join("mountinfo"), &error))?;
    let fdinfo = process.join("fdinfo");
    let entries = std::fs::read_dir(&fdinfo).map_err(|error| {
        let mut gap = unreadable("disk", &fdinfo, &error);
        if Failure::of(&error) == Failure::Denied {
            "run pipetop as the job's user or as root".clone_into(&mut gap.hint);
        }
        gap
    })?;
    // A descriptor that was closed meanwhile does not count.
    let mut used: Vec<&MountInfo> = entries
        .flatten()
        .filter_map(|entry| file::read(&entry.path()).ok())
        .filter_map(|text| mount_read_from(&text, &mounts))
        .collect();
    used.sort_by_key(|mount| mount.mnt_id);
    used.dedup_by_key(|mount| mount.mnt_id);
    Ok(used
        .into_iter()
        .filter_map(|mount| device_of_mount(sys_root, &mounts, mount))
        .collect())
}

/// Returns the mount of an open file, from its `fdinfo`. `None` for a file that is only written, such as a log.
fn mount_read_from<'a>(fdinfo: &str, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    let (flags, mount) = opened(fdinfo, mounts)?;
    (flags & OFlags::ACCMODE != OFlags::WRONLY).then_some(mount)
}

/// Returns the whole device of the files of `mount`; `None` for a file system that is not on a visible block device.
/// `mounts` are those of the same process.
pub fn device_of_mount(sys_root: &Path, mounts: &[MountInfo], mount: &MountInfo) -> Option<String> {
    let source = mount.mount_source.as_deref().unwrap_or_default();
    device_of(sys_root, &mount.majmin)
        // btrfs and others have an artificial device number, and their device as the source.
        .or_else(|| {
            let name = source.strip_prefix("/dev/")?;
            whole_device(&sys_root.join("class/block").join(name.replace('/', "!")))
        })
        .or_else(|| device_behind(sys_root, source))
        .or_else(|| upper_device(sys_root, mounts, mount))
}

/// Returns the device behind the source of a mount, found by its number, because a name such as `/dev/mapper/data` is a
/// link or a separate node.
fn device_behind(sys_root: &Path, source: &str) -> Option<String> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    if !source.starts_with("/dev/") {
        return None;
    }
    let node = std::fs::metadata(source).ok()?;
    let number = node.file_type().is_block_device().then(|| node.rdev())?;
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    device_of(sys_root, &format!("{major}:{minor}"))
}

/// Finds the device below an overlay, which writes to a directory of another file system. Inside a container that path
/// leads back to the overlay, and then the device is unknown.
fn upper_device(sys_root: &Path, mounts: &[MountInfo], mount: &MountInfo) -> Option<String> {
    let upper = mounts::option(mount, "upperdir")?;
    let below = mounts::covering(mounts, Path::new(upper))?;
    (below.fs_type != "overlay").then_some(())?;
    device_of_mount(sys_root, mounts, below)
}

/// Returns the whole device that a device number (`259:1`) belongs to, by its name in `/proc/diskstats`. `None` for a
/// number without a device (network file systems, overlays, tmpfs, btrfs) or if sysfs is not mounted.
fn device_of(sys_root: &Path, number: &str) -> Option<String> {
    whole_device(&sys_root.join("dev/block").join(number))
}

/// Returns the whole device of a link in sysfs: the directory of a partition is inside that of its disk.
fn whole_device(link: &Path) -> Option<String> {
    let entry = std::fs::canonicalize(link).ok()?;
    let whole = if entry.join("partition").exists() {
        entry.parent()?
    } else {
        &entry
    };
    Some(whole.file_name()?.to_str()?.replace('!', "/"))
}

#[cfg(test)]
mod tests {
    use support::fuzz;

    use super::*;

    proptest::proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_disks_and_open_files(text in fuzz::text([
            "pos:\t0\nflags:\t0100000\nmnt_id:\t27\nino:\t123\n",
            " 254       0 vda 57821 8340 4014674 10000 81205 71384 2948098 30000 0 40000 40000 0 0 0 0 100 5\n",
        ])) {
            let _ = mount_read_from(&text, &[]);
            for line in text.lines() {
                let _ = DiskStat::from_line(line).map(|stat| sample(stat, true));
            }
        }
    }
}
