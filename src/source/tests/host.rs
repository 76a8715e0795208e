//! Tests of the sources around the job (disks, control groups, the host) on directory trees that imitate machines.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::doctor::{self, Facts, Terminal};
use crate::sample::{CgroupSample, Gap, PressureSample};
use crate::source::cgroup::{Cgroup, CgroupReading};
use crate::source::disk;
use crate::source::host;
use crate::source::mounts::{self, MountInfo};
use crate::units::{Bytes, Pid};
use proptest::prelude::*;
use support::fake_root::FakeRoot;

const JOB: Pid = Pid(4242);
const GIB: u64 = 1 << 30;

const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
34 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
35 31 0:33 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
";
const HYBRID: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
const PSI: &str = "some avg10=1.42 avg60=0.56 avg300=0.35 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n";

fn grouped(membership: &str, mountinfo: &str) -> FakeRoot {
    let root = FakeRoot::new();
    root.file("proc/4242/cgroup", membership)
        .file("proc/self/mountinfo", mountinfo);
    root
}

fn reader(root: &FakeRoot) -> Cgroup {
    Cgroup::new(&root.proc(), &root.sys(), JOB)
}

fn group(root: &FakeRoot) -> CgroupSample {
    let reading = reader(root).read();
    assert_eq!(reading.gaps, [], "nothing should be missing");
    reading.cgroup.expect("the group is known")
}

fn reasons(reading: &CgroupReading) -> String {
    let reasons: Vec<_> = reading.gaps.iter().map(|gap| &*gap.reason).collect();
    reasons.join("; ")
}

#[test]
fn version_2_nested_takes_the_tightest_limit_up_the_tree_and_its_own_accounting() {
    let root = grouped("0::/system.slice/slurm/job_7/step_0/task_1\n", V2);
    let at = |below: &str| format!("sys/fs/cgroup/{below}");
    root.file(&at("cgroup.controllers"), "cpuset cpu io memory")
        .file(&at("cpuset.cpus.effective"), "0-63\n")
        .files(
            &at("system.slice/slurm/job_7"),
            &[
                ("cpu.max", "1600000 100000\n"),
                (
                    "cpu.stat",
                    "usage_usec 9\nnr_periods 500\nnr_throttled 40\nthrottled_usec 7000000\n",
                ),
                ("cpuset.cpus.effective", "0-7,32-39\n"),
                ("memory.max", "68719476736\n"),
                ("memory.current", "34359738368\n"),
                (
                    "memory.stat",
                    "anon 5\ninactive_file 2147483648\nactive_file 6\n",
                ),
            ],
        )
        .files(
            &at("system.slice/slurm/job_7/step_0"),
            &[
                ("cpu.max", "max 100000\n"),
                (
                    "cpu.stat",
                    "nr_periods 1\nnr_throttled 1\nthrottled_usec 1\n",
                ),
                ("memory.max", "max\n"),
                ("memory.current", "1\n"),
            ],
        )
        .file(
            &at("system.slice/slurm/job_7/step_0/task_1/cgroup.procs"),
            "4242\n",
        )
        .file(&at("system.slice/cpu.max"), "3200000 100000\n");
    assert_eq!(
        group(&root),
        CgroupSample {
            path: "/system.slice/slurm/job_7/step_0/task_1".into(),
            cpu_quota: Some(16.0),
            periods: Some(500),
            throttled_periods: Some(40),
            throttled: Some(Duration::from_secs(7)),
            cpuset: Some(16),
            mem_limit: Some(Bytes(64 * GIB)),
            mem_used: Some(Bytes(30 * GIB)),
            frozen: None,
        }
    );
}

#[test]
fn a_frozen_group_is_recognised_in_both_versions() {
    let two = grouped("0::/job_7\n", V2);
    let events = "sys/fs/cgroup/job_7/cgroup.events";
    let one = grouped(
        "2:freezer:/job_7\n",
        "32 31 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n",
    );
    let state = "sys/fs/cgroup/freezer/job_7/freezer.state";
    let frozen = |root: &FakeRoot| reader(root).read().cgroup.expect("it is known").frozen;
    for (root, file, text, expected) in [
        (&two, events, "populated 1\nfrozen 0\n", Some(false)),
        (&two, events, "populated 1\nfrozen 1\n", Some(true)),
        (&one, state, "THAWED\n", Some(false)),
        (&one, state, "FROZEN\n", Some(true)),
    ] {
        root.file(file, text);
        assert_eq!(frozen(root), expected, "{text}");
    }
}

#[test]
fn version_1_has_one_tree_for_each_controller() {
    let root = grouped(
        "4:memory:/slurm/uid_0/job_7\n3:cpuset:/slurm/uid_0/job_7\n2:cpu,cpuacct:/slurm/job_7\n1:name=systemd:/x\n",
        V1,
    );
    root.files(
        "sys/fs/cgroup/cpu,cpuacct/slurm/job_7",
        &[
            ("cpu.cfs_quota_us", "-1\n"),
            ("cpu.cfs_period_us", "100000\n"),
        ],
    )
    .files(
        "sys/fs/cgroup/cpu,cpuacct/slurm",
        &[
            ("cpu.cfs_quota_us", "150000\n"),
            ("cpu.cfs_period_us", "50000\n"),
            (
                "cpu.stat",
                "nr_periods 10\nnr_throttled 3\nthrottled_time 2000000000\n",
            ),
        ],
    )
    .file(
        "sys/fs/cgroup/cpuset/slurm/uid_0/job_7/cpuset.effective_cpus",
        "4-5\n",
    )
    .files(
        "sys/fs/cgroup/memory/slurm/uid_0/job_7",
        &[
            ("memory.limit_in_bytes", "1073741824\n"),
            ("memory.usage_in_bytes", "536870912\n"),
            ("memory.stat", "inactive_file 1\ntotal_inactive_file 12\n"),
        ],
    )
    .file(
        "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes",
        "9223372036854771712\n",
    );
    assert_eq!(
        group(&root),
        CgroupSample {
            path: "/slurm/job_7".into(),
            cpu_quota: Some(3.0),
            periods: Some(10),
            throttled_periods: Some(3),
            throttled: Some(Duration::from_secs(2)),
            cpuset: Some(2),
            mem_limit: Some(Bytes(GIB)),
            mem_used: Some(Bytes(GIB / 2 - 12)),
            frozen: None,
        }
    );
    assert_eq!(
        reader(&root).read().pressure,
        None,
        "version 1 has no pressure"
    );
}

#[test]
fn hybrid_takes_limits_from_version_1_and_pressure_from_version_2() {
    let root = grouped(
        "2:cpu,cpuacct:/job\n3:cpuset:/\n4:memory:/job\n0::/job\n",
        &format!("{V1}{HYBRID}"),
    );
    root.files(
        "sys/fs/cgroup/cpu,cpuacct/job",
        &[
            ("cpu.cfs_quota_us", "50000"),
            ("cpu.cfs_period_us", "100000"),
        ],
    )
    .file("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1")
    .file(
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes",
        "9223372036854771712",
    )
    .file("sys/fs/cgroup/unified/job/cpu.max", "100 100000")
    .file("sys/fs/cgroup/unified/job/cpu.pressure", PSI);
    let reading = reader(&root).read();
    let sample = reading.cgroup.unwrap();
    assert_eq!(sample.cpu_quota, Some(0.5));
    assert_eq!(sample.cpuset, Some(2));
    assert_eq!(
        sample.mem_limit, None,
        "the largest number of version 1 is no limit"
    );
    assert_eq!(
        reading.pressure,
        Some(PressureSample {
            cpu: Some(Duration::from_millis(2500)),
            io: None,
            memory: None,
        })
    );
}

#[test]
fn a_container_sees_its_own_group_as_the_root() {
    // In a cgroup namespace the group is called `/`; without one the mount shows only the group.
    let namespaced = grouped("0::/\n", V2);
    let bound = grouped(
        "2:cpu,cpuacct:/docker/abc\n",
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
    );
    namespaced.file("sys/fs/cgroup/cpu.max", "200000 100000\n");
    bound.files(
        "sys/fs/cgroup/cpu,cpuacct",
        &[
            ("cpu.cfs_quota_us", "400000\n"),
            ("cpu.cfs_period_us", "100000\n"),
        ],
    );
    assert_eq!(group(&namespaced).cpu_quota, Some(2.0));
    assert_eq!(group(&bound).cpu_quota, Some(4.0));
}

#[test]
fn a_group_outside_the_namespace_or_without_a_mount_is_a_gap_with_a_way_out() {
    let outside = grouped("0::/../other.scope\n", V2);
    outside.file("sys/fs/cgroup/cpu.max", "200000 100000\n");
    let unmounted = grouped("0::/a\n", "");
    let gone = grouped("0::/a\n", V2);
    gone.file("sys/fs/cgroup/cpu.max", "200000 100000\n");
    for (root, expected) in [
        (
            &outside,
            "the job's control group /../other.scope is not visible here",
        ),
        (&unmounted, "the control group file system is not mounted"),
        (&gone, "the job's control group /a is not visible here"),
    ] {
        let reading = reader(root).read();
        assert_eq!(reasons(&reading), expected);
        assert!(!reading.gaps[0].hint.is_empty());
        assert_eq!(
            reading.cgroup.unwrap().cpu_quota,
            None,
            "not that of another group"
        );
    }
}

#[test]
fn a_torn_limit_is_a_gap_and_the_limits_above_still_hold() {
    let root = grouped("0::/a/b\n", V2);
    root.file("sys/fs/cgroup/a/b/cpu.max", "15")
        .file("sys/fs/cgroup/a/cpu.max", "800000 100000")
        .file("sys/fs/cgroup/a/b/memory.max", [0xff, 0xfe]);
    let reading = reader(&root).read();
    let path = root.sys().join("fs/cgroup/a/b");
    assert_eq!(
        reasons(&reading),
        format!(
            "cannot read {0}/cpu.max: unexpected format; cannot read {0}/memory.max: unexpected format",
            path.display()
        )
    );
    let sample = reading.cgroup.unwrap();
    assert_eq!(sample.mem_limit, None);
    assert_eq!(sample.cpu_quota, Some(8.0), "that of the group above holds");
}

#[test]
fn counters_move_limits_change_and_the_process_may_change_its_group() {
    let root = grouped("0::/a\n", V2);
    root.file("sys/fs/cgroup/a/cpu.max", "200000 100000")
        .file("sys/fs/cgroup/a/cpu.stat", "nr_periods 5\n")
        .file("sys/fs/cgroup/b/cpu.max", "300000 100000");
    let mut cgroup = reader(&root);
    let mut seen = || {
        let sample = cgroup.read().cgroup.unwrap();
        (sample.path, sample.cpu_quota, sample.periods)
    };
    assert_eq!(seen(), ("/a".into(), Some(2.0), Some(5)));
    root.file("sys/fs/cgroup/a/cpu.max", "100000 100000")
        .file("sys/fs/cgroup/a/cpu.stat", "nr_periods 15\n");
    assert_eq!(seen(), ("/a".into(), Some(1.0), Some(15)));
    root.file("proc/4242/cgroup", "0::/b\n");
    assert_eq!(seen(), ("/b".into(), Some(3.0), None));
}

#[test]
fn a_process_without_a_group_file_is_a_gap() {
    let root = FakeRoot::new();
    let reading = reader(&root).read();
    assert_eq!(reading.cgroup, None);
    assert!(reasons(&reading).ends_with("proc/4242/cgroup: no such file"));
}

const DISKSTATS: &str = "\
   7       0 loop0 9 0 8 0 0 0 0 0 0 0 0
   7       1 loop1 0 0 0 0 0 0 0 0 0 0 0
   1       0 ram0 0 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 100 5 2048 70 20 3 8 4 0 60 74 0 0 0 0 9 1
 259       1 nvme0n1p1 100 5 2048 70 20 3 8 4 0 60 74
 253       0 dm-0 1 0 1 1 0 0 0 0 0 1 1
   9       0 md0 1 0 1 1 0 0 0 0 0 1 1
 254       0 zram0 0 0 0 0 0 0 0 0 0 0 0
 104       0 cciss/c0d0 1 0 1 1 0 0 0 0 0 1 1
";

/// Devices as in sysfs: a directory for each disk, partitions within their disk's, and links by number.
fn with_devices() -> FakeRoot {
    let root = FakeRoot::new();
    root.file("proc/diskstats", DISKSTATS);
    let devices = [
        ("nvme0n1", "259:0"),
        ("dm-0", "253:0"),
        ("md0", "9:0"),
        ("zram0", "254:0"),
        ("cciss!c0d0", "104:0"),
        ("loop0", "7:0"),
        ("loop1", "7:1"),
        ("ram0", "1:0"),
    ];
    for (name, number) in devices {
        root.file(&format!("sys/devices/{name}/size"), "1")
            .link(&format!("sys/block/{name}"), format!("../devices/{name}"))
            .link(
                &format!("sys/class/block/{name}"),
                format!("../../devices/{name}"),
            )
            .link(
                &format!("sys/dev/block/{number}"),
                format!("../../devices/{name}"),
            );
    }
    let partition = "../../devices/nvme0n1/nvme0n1p1";
    root.file("sys/devices/nvme0n1/nvme0n1p1/partition", "1")
        .link("sys/class/block/nvme0n1p1", partition)
        .link("sys/dev/block/259:1", partition);
    root
}

#[test]
fn whole_disks_are_read_and_a_loop_device_only_where_it_holds_the_jobs_files() {
    let root = with_devices();
    let read = |holding: &BTreeSet<String>| disk::read(&root.proc(), &root.sys(), holding);
    let names = |holding: &[&str]| {
        let holding = holding.iter().map(ToString::to_string).collect();
        let (found, gaps) = read(&holding);
        assert_eq!(gaps, []);
        let mut names = found
            .iter()
            .map(|disk| disk.device.clone())
            .collect::<Vec<_>>();
        names.push(format!(
            "held: {}",
            found.iter().filter(|disk| disk.holds_job_files).count()
        ));
        names.join(" ")
    };
    assert_eq!(names(&[]), "nvme0n1 dm-0 md0 zram0 cciss/c0d0 held: 0");
    assert_eq!(
        names(&["loop0", "nvme0n1"]),
        "loop0 nvme0n1 dm-0 md0 zram0 cciss/c0d0 held: 2"
    );

    let (found, _) = read(&BTreeSet::new());
    let nvme = &found[0];
    assert_eq!((nvme.reads, nvme.read_bytes), (100, Bytes(2048 * 512)));
    assert_eq!((nvme.writes, nvme.write_bytes), (20, Bytes(8 * 512)));
    let ms = Duration::from_millis;
    assert_eq!((nvme.read_time, nvme.write_time), (ms(70), ms(4)));
    assert_eq!((nvme.busy, nvme.queued), (ms(60), ms(74)));
}

#[test]
fn a_torn_or_missing_diskstats_is_a_gap_and_keeps_what_is_whole() {
    let root = with_devices();
    root.file(
        "proc/diskstats",
        format!("{DISKSTATS} 8 0 sda 1 x\n8 16 sdb\n"),
    );
    let (found, gaps) = disk::read(&root.proc(), &root.sys(), &BTreeSet::new());
    assert_eq!((found.len(), gaps.len()), (5, 1));
    root.remove("proc/diskstats");
    let (found, gaps) = disk::read(&root.proc(), &root.sys(), &BTreeSet::new());
    assert_eq!(found, []);
    assert!(gaps[0].reason.ends_with("diskstats: no such file"));

    let bare = FakeRoot::new();
    bare.file("proc/diskstats", DISKSTATS);
    let (found, gaps) = disk::read(&bare.proc(), &bare.sys(), &BTreeSet::new());
    assert_eq!(
        found.len(),
        6,
        "without sysfs a partition cannot be told from a disk"
    );
    assert!(gaps[0].reason.contains("cannot tell partitions from disks"));
}

const JOB_MOUNTS: &str = "\
1 0 0:50 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/upper/diff,workdir=/w
2 1 259:1 / /data rw - ext4 /dev/nvme0n1p1 rw
3 1 0:44 / /net rw - nfs4 server:/x rw
4 1 0:21 / /proc rw - proc proc rw
5 1 0:60 /@data /tree rw - btrfs /dev/md0 rw
6 1 259:0 / /upper rw - xfs /dev/nvme0n1 rw
7 1 253:0 / /logs rw - ext4 /dev/mapper/logs rw
8 1 0:25 / /dev/shm rw - tmpfs tmpfs rw
9 1 0:70 / /odd rw - fuse.sshfs me@there: rw
";

#[test]
fn files_lie_on_a_disk_if_it_is_in_sight() {
    let root = with_devices();
    let mounts = mounts::parse(JOB_MOUNTS);
    let holder = |mounts: &[MountInfo], path: &str| {
        let mount = mounts::covering(mounts, Path::new(path)).unwrap();
        disk::device_of_mount(&root.sys(), mounts, mount)
    };
    let on = |path: &str| holder(&mounts, path);
    let device = |name: &str| Some(name.to_owned());
    assert_eq!(on("/data/a"), device("nvme0n1"), "a partition is its disk");
    assert_eq!(
        on("/tree/a"),
        device("md0"),
        "btrfs has a made-up device number"
    );
    assert_eq!(
        on("/app"),
        device("nvme0n1"),
        "an overlay lies where it writes"
    );
    assert_eq!(on("/logs/a"), device("dm-0"));
    for path in ["/net/a", "/dev/shm/a", "/odd/a"] {
        assert_eq!(on(path), None, "{path}");
    }

    let inside = mounts::parse("1 0 0:50 / / rw - overlay overlay rw,upperdir=/host/diff\n");
    assert_eq!(
        holder(&inside, "/app"),
        None,
        "inside a container the directory below is out of sight"
    );
}

#[test]
fn what_a_process_reads_from_is_found_without_touching_its_files() {
    let root = with_devices();
    let info =
        |flags: &str, mount: u32| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t{mount}\nino:\t1\n");
    root.file("proc/4242/mountinfo", JOB_MOUNTS)
        .file("proc/4242/fdinfo/0", info("0100000", 2))
        .file("proc/4242/fdinfo/1", info("0100001", 7))
        .file("proc/4242/fdinfo/2", info("0100002", 3))
        .file("proc/4242/fdinfo/3", info("0100000", 4))
        .file("proc/4242/fdinfo/4", info("02", 999))
        .file("proc/4242/fdinfo/5", "torn");
    assert_eq!(
        disk::devices_of_open_files(&root.proc(), &root.sys(), JOB).unwrap(),
        BTreeSet::from(["nvme0n1".to_owned()]),
        "not the log that is only written, not /proc, not a pipe"
    );
    let gap = disk::devices_of_open_files(&root.proc(), &root.sys(), Pid(1)).unwrap_err();
    assert_eq!(gap.source, "disk");
}

#[test]
fn the_host_is_read_again_and_again() {
    let root = FakeRoot::new();
    root.file("sys/devices/system/cpu/online", "0-3\n")
        .file("proc/stat", "cpu  100 0 0 50 0 0 0 0 0 0\ncpu0 1\n")
        .file(
            "proc/meminfo",
            "MemTotal:  1024 kB\nMemFree: 1 kB\nMemAvailable:  512 kB\n",
        )
        .files(
            "proc/pressure",
            &[("cpu", PSI), ("io", PSI), ("memory", PSI)],
        );
    let read = || host::read(&root.proc(), &root.sys());
    let (first, gaps) = read();
    assert_eq!(gaps, []);
    assert_eq!(first.cpus, 4);
    assert_eq!(first.mem_total, Some(Bytes(1 << 20)));
    assert_eq!(first.mem_available, Some(Bytes(1 << 19)));
    assert_eq!(
        first.pressure.unwrap().io,
        Some(Duration::from_millis(2500))
    );
    root.file("proc/stat", "cpu  150 0 0 50 0 0 0 0 0 0\ncpu0 1\n");
    let (second, _) = read();
    let ticks = rustix::param::clock_ticks_per_second();
    assert_eq!(
        second
            .cpu_busy
            .unwrap()
            .checked_sub(first.cpu_busy.unwrap())
            .unwrap(),
        Duration::from_millis(50 * 1000 / ticks)
    );
}

#[test]
fn missing_host_figures_are_unknown_with_a_reason() {
    let root = FakeRoot::new();
    root.file("proc/stat", "cpu  1 2\ncpu0 1\ncpu1 1\n")
        .file("proc/meminfo", "MemTotal:  1024 kB\n");
    let (sample, gaps) = host::read(&root.proc(), &root.sys());
    assert_eq!(sample.cpus, 2, "counted in /proc/stat");
    assert_eq!(sample.cpu_busy, None);
    assert_eq!(sample.mem_total, Some(Bytes(1 << 20)));
    assert_eq!(sample.mem_available, None);
    assert_eq!(sample.pressure, None);
    let sources: Vec<_> = gaps.iter().map(|gap| &*gap.source).collect();
    assert_eq!(sources, ["host", "host", "psi"]);
    assert_eq!(gaps[2].hint, "use a kernel with CONFIG_PSI=y");
}

#[test]
fn this_machine_gives_sane_figures() {
    let (proc_root, sys_root) = (Path::new("/proc"), Path::new("/sys"));
    let (sample, _) = host::read(proc_root, sys_root);
    assert!((1..100_000).contains(&sample.cpus));
    assert!(sample.cpu_busy.unwrap() > Duration::ZERO);
    assert!(sample.mem_available.unwrap() < sample.mem_total.unwrap());

    let (before, after) = (host::own(proc_root, 0), host::own(proc_root, 3));
    assert!(before.cpu.unwrap() <= after.cpu.unwrap());
    assert!((1 << 20..64 * GIB).contains(&after.rss.unwrap().0));
    assert_eq!(after.late, 3);

    let me = Pid(i32::try_from(std::process::id()).unwrap());
    let reading = Cgroup::new(proc_root, sys_root, me).read();
    if let Some(group) = reading.cgroup {
        assert!(group.path.starts_with('/'));
        assert!(group.cpu_quota.is_none_or(|cpus| cpus > 0.0));
    }
    let (disks, _) = disk::read(proc_root, sys_root, &BTreeSet::new());
    assert!(disks.iter().all(|disk| !disk.device.starts_with("loop")));
    disk::devices_of_open_files(proc_root, sys_root, me).unwrap();
}

#[test]
fn the_doctor_checks_a_tree_and_this_machine() {
    let root = grouped(
        "0::/docker/abc\n",
        &format!("{V2}4 1 0:21 / /proc rw - proc proc rw,hidepid=2\n"),
    );
    root.file(
        "proc/self/status",
        "Pid:\t4242\nUid:\t1 1 1 1\nCapEff:\t0\nCpus_allowed_list:\t0-1\n",
    )
    .file("proc/self/root/.dockerenv", "")
    .file("proc/sys/kernel/yama/ptrace_scope", "1\n")
    .file("proc/sys/kernel/task_delayacct", "0\n")
    .file("sys/devices/system/cpu/online", "0-3\n")
    .file("sys/fs/cgroup/docker/abc/cpu.max", "150000 100000\n")
    .link("proc/self/ns/pid", "pid:[4026532201]");
    let no_gpu = || {
        Err(Gap {
            source: "nvml".into(),
            reason: "scripted".into(),
            hint: String::new(),
        })
    };
    let (proc_root, sys_root) = (root.proc(), root.sys());
    let facts = Facts::read(&proc_root, &sys_root, Terminal::default(), no_gpu);
    let checks = doctor::checks(&facts);
    let found = |id: &str| {
        let check = checks.iter().find(|check| check.id == id).unwrap();
        format!("{}: {}", check.state, check.found)
    };
    assert_eq!(found("nvml"), "missing: scripted");
    assert_eq!(
        found("attach"),
        "limited: child processes only (kernel.yama.ptrace_scope=1)"
    );
    assert_eq!(
        found("processes"),
        "limited: only your own processes are visible (/proc has hidepid=2)"
    );
    assert_eq!(found("cpus"), "ok: 2 allowed of 4 online");
    assert_eq!(
        found("cgroup"),
        "ok: version 2, /docker/abc: quota 1.5 CPUs"
    );
    assert_eq!(
        found("container"),
        "ok: docker: limits are the container's, disks are the host's"
    );
    assert!(found("delay-accounting").starts_with("limited: off"));
    assert!(found("pid-namespace").starts_with("limited: not shared with the host"));
    assert!(found("pressure").starts_with("missing: "));

    let (proc_root, sys_root) = (Path::new("/proc"), Path::new("/sys"));
    let here = Facts::read(proc_root, sys_root, Terminal::current(), no_gpu);
    assert_eq!(doctor::checks(&here).len(), checks.len());
}

/// Every file that a source parses, filled with random bytes by the test.
const PARSED: [&str; 20] = [
    "proc/self/status",
    "proc/self/cgroup",
    "proc/sys/kernel/yama/ptrace_scope",
    "proc/self/root/run/systemd/container",
    "proc/4242/cgroup",
    "proc/self/mountinfo",
    "proc/4242/mountinfo",
    "proc/4242/fdinfo/3",
    "proc/diskstats",
    "proc/stat",
    "proc/meminfo",
    "proc/pressure/cpu",
    "proc/self/statm",
    "sys/devices/system/cpu/online",
    "sys/fs/cgroup/a/cpu.max",
    "sys/fs/cgroup/a/cpu.stat",
    "sys/fs/cgroup/a/cpuset.cpus.effective",
    "sys/fs/cgroup/a/memory.max",
    "sys/fs/cgroup/a/memory.current",
    "sys/fs/cgroup/a/memory.stat",
];

fn read_everything(root: &FakeRoot) {
    let (proc_root, sys_root) = (root.proc(), root.sys());
    host::read(&proc_root, &sys_root);
    host::own(&proc_root, 0);
    disk::read(&proc_root, &sys_root, &BTreeSet::from(["a".to_owned()]));
    Cgroup::new(&proc_root, &sys_root, JOB).read();
    drop(disk::devices_of_open_files(&proc_root, &sys_root, JOB));
    let no_gpu = || Ok(Vec::new());
    let facts = Facts::read(&proc_root, &sys_root, Terminal::default(), no_gpu);
    let checks = doctor::checks(&facts);
    assert!(!doctor::text(&checks).contains('\u{1b}'));
}

#[test]
fn fifos_and_folders_instead_of_files_do_not_block() {
    for make in [
        (|path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap())
            as fn(&Path),
        |path: &Path| std::fs::create_dir(path).unwrap(),
    ] {
        let root = FakeRoot::new();
        for path in PARSED {
            root.file(path, "");
            root.remove(path);
            make(&root.proc().parent().unwrap().join(path));
        }
        read_everything(&root);
        let (_, gaps) = host::read(&root.proc(), &root.sys());
        assert!(
            gaps[0].reason.ends_with("stat: not a regular file"),
            "{gaps:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let root = FakeRoot::new();
        for path in PARSED {
            root.file(path, &bytes);
        }
        read_everything(&root);
        // Once more with a valid group and mount, so that the group's own files are read, too.
        root.file("proc/4242/cgroup", "0::/a\n").file("proc/self/mountinfo", V2);
        read_everything(&root);
    }

    #[test]
    fn words_and_numbers_in_any_order_never_panic(
        text in "((cpu|some|total=|max|nr_periods|inactive_file|MemTotal:|0::/|-|:|flags:|mnt_id:|[0-9]{1,22}|-1|\\\\[0-7]{0,3}) ?\n?){0,40}"
    ) {
        let root = FakeRoot::new();
        for path in PARSED {
            root.file(path, &text);
        }
        root.file("proc/4242/cgroup", "0::/a\n").file("proc/self/mountinfo", V2);
        read_everything(&root);
        mounts::parse(&text);
    }
}
