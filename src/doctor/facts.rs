//! Facts about the machine, the process and the terminal, without judgement.
//!
//! Only reads. Must not decide what is sufficient or how to fix anything.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use sysinfo::{CpuRefreshKind, RefreshKind, System};

use crate::doctor::terminal::Terminal;
use crate::loaders::Names;
use crate::sample::{CgroupSample, Gap, GpuSample, HostSample};
use crate::source::cgroup::Cgroup;
use crate::source::host::{self, cpus_in_list};
use crate::source::mounts::{self, MountInfo};
use crate::source::nvml::release::in_first_namespace;
use crate::source::probe::Listener;
use crate::source::{disk, file};
use crate::units::Pid;

/// If the driver has not responded within this time, it is taken to hang.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);

/// The input of the checks. `None` = unknown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    pub gpus: Result<Vec<GpuSample>, Gap>,
    pub process: OwnProcess,
    /// `kernel.yama.ptrace_scope`; `None` = the kernel has no Yama, so only the user matters.
    pub ptrace_scope: Option<u32>,
    /// Options of the mount at `/proc` that hide other users' processes: `hidepid=invisible`.
    pub hidepid: Option<String>,
    /// Whether these options could be read.
    pub mounts_known: bool,
    /// Files of the own process that the kernel may lack or a sandbox may hide: name, and whether it can be opened.
    pub process_files: Vec<(&'static str, bool)>,
    /// Why jobs cannot report their steps to pipetop. `None` = they can.
    pub no_reports_reason: Option<String>,
    /// `kernel.task_delayacct`; `None` = an older kernel, where it is a boot option.
    pub delay_accounting: Option<bool>,
    /// System, kernel and processor. `None` if `--proc-root` is that of another machine.
    pub system: Option<String>,
    pub host: HostSample,
    pub host_gaps: Vec<Gap>,
    /// `version 1`, `version 2`, `versions 1 and 2`; `None` = not mounted.
    pub cgroup_version: Option<&'static str>,
    pub cgroup: Option<CgroupSample>,
    pub cgroup_gaps: Vec<Gap>,
    /// Names of the disks with figures.
    pub disks: Vec<String>,
    pub disk_gaps: Vec<Gap>,
    /// The kind of container; `None` = none detected.
    pub container: Option<String>,
    /// Whether this process is in a PID namespace other than the initial one.
    pub inner_pid_namespace: Option<bool>,
    pub terminal: Terminal,
    /// Loaders known by name besides PyTorch's, or the error in the user's file of loaders.
    pub loaders: Result<Vec<String>, String>,
}

/// Facts from `/proc/self/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnProcess {
    pub pid: Option<Pid>,
    /// Whether it may attach at any Yama setting below 3, also to processes of other users.
    pub cap_sys_ptrace: Option<bool>,
    /// Whether it may open files in `/proc` that only the owner of a process may read.
    pub reads_all_files: Option<bool>,
    pub cpus_allowed: Option<u32>,
}

impl Facts {
    /// Examines the machine. `gpus` opens the driver and reads each GPU once; only this call uses NVML. It may hang,
    /// and is then abandoned.
    pub(crate) fn read(
        proc_root: &Path,
        sys_root: &Path,
        terminal: Terminal,
        gpus: impl FnOnce() -> Result<Vec<GpuSample>, Gap> + Send + 'static,
    ) -> Self {
        let own = proc_root.join("self");
        let text = |path: &Path| file::read(path).ok();
        let process = process(&text(&own.join("status")).unwrap_or_default());
        let mounts = mounts::read(&own);
        let mounts_known = mounts.is_ok();
        let mounts = mounts.unwrap_or_default();
        let (host, host_gaps) = host::read(proc_root, sys_root);
        let (disks, disk_gaps) = disk::read(proc_root, sys_root, &[].into());
        let group = process
            .pid
            .map(|pid| Cgroup::new(proc_root, sys_root, pid).read());
        let group = group.unwrap_or_default();
        let setting = |name: &str| {
            text(&proc_root.join("sys/kernel").join(name))?
                .trim()
                .parse::<u32>()
                .ok()
        };
        Self {
            gpus: within(DRIVER_TIMEOUT, gpus),
            ptrace_scope: setting("yama/ptrace_scope"),
            hidepid: hidepid(&mounts),
            mounts_known,
            // Opening is the test: reading one's own `syscall` proves nothing about other processes.
            process_files: ["schedstat", "io", "wchan", "syscall"]
                .map(|name| (name, std::fs::File::open(own.join(name)).is_ok()))
                .into(),
            no_reports_reason: Listener::bind().err().map(|error| error.to_string()),
            delay_accounting: setting("task_delayacct").map(|on| on != 0),
            system: (proc_root == Path::new("/proc")).then(system),
            host,
            host_gaps,
            cgroup_version: cgroup_version(&mounts),
            cgroup: group.cgroup,
            cgroup_gaps: group.gaps,
            disks: disks.into_iter().map(|disk| disk.device).collect(),
            disk_gaps,
            container: container(&own),
            inner_pid_namespace: in_first_namespace(&own).map(|first| !first),
            process,
            terminal,
            loaders: Names::trouble().map_or_else(
                || {
                    let known = Names::known().loaders.iter();
                    Ok(known.map(|loader| loader.name.clone()).collect())
                },
                Err,
            ),
        }
    }
}

/// Reads the GPUs in a separate thread, which is abandoned if it does not respond in time.
fn within(
    patience: Duration,
    gpus: impl FnOnce() -> Result<Vec<GpuSample>, Gap> + Send + 'static,
) -> Result<Vec<GpuSample>, Gap> {
    let (answer, answered) = mpsc::channel();
    let thread = thread::Builder::new().name("doctor-gpu".to_owned());
    let gap = |reason: String, hint: &str| Gap::new("nvml", reason, hint);
    thread.spawn(move || answer.send(gpus())).map_err(|error| {
        gap(
            format!("cannot start a thread: {error}"),
            "raise the process limit (ulimit -u)",
        )
    })?;
    answered.recv_timeout(patience).unwrap_or_else(|_| {
        Err(gap(
            format!("the NVIDIA driver did not respond within {patience:?}"),
            "check whether `nvidia-smi` responds, and `sudo dmesg` for Xid errors",
        ))
    })
}

/// Formats the known parts of `Linux (Debian GNU/Linux 12), kernel 6.18.0, x86_64, AMD EPYC 9654`.
fn system() -> String {
    let cpus = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let cpus = System::new_with_specifics(cpus).ok();
    let processor = cpus.and_then(|system| Some(system.cpus().first()?.brand().to_owned()));
    let kernel = System::kernel_version();
    let facts = [
        System::long_os_version().ok(),
        kernel.ok().map(|version| format!("kernel {version}")),
        Some(System::cpu_arch()),
        processor.filter(|brand| !brand.is_empty()),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Parses the status file. Does not use procfs, which rejects the whole file if one of some twenty lines is missing.
/// That happens in sandboxes that emulate the file, where the doctor is needed most.
fn process(status: &str) -> OwnProcess {
    const CAP_DAC_OVERRIDE: u32 = 1;
    const CAP_DAC_READ_SEARCH: u32 = 2;
    const CAP_SYS_PTRACE: u32 = 19;
    let field = |name| file::field(status, name);
    let has = |set: u64, capability: u32| set >> capability & 1 == 1;
    let capabilities = field("CapEff:").and_then(|set| u64::from_str_radix(set, 16).ok());
    OwnProcess {
        pid: field("Pid:").and_then(|pid| pid.parse().ok()).map(Pid),
        cap_sys_ptrace: capabilities.map(|set| has(set, CAP_SYS_PTRACE)),
        reads_all_files: capabilities
            .map(|set| has(set, CAP_DAC_OVERRIDE) || has(set, CAP_DAC_READ_SEARCH)),
        cpus_allowed: field("Cpus_allowed_list:").and_then(cpus_in_list),
    }
}

fn hidepid(mounts: &[MountInfo]) -> Option<String> {
    let proc = Path::new("/proc");
    let table = mounts.iter().rfind(|mount| mount.mount_point == proc)?;
    let value = mounts::option(table, "hidepid")?;
    (!matches!(value, "0" | "off")).then(|| format!("hidepid={value}"))
}

fn cgroup_version(mounts: &[MountInfo]) -> Option<&'static str> {
    let mounted = |fs| mounts.iter().any(|mount| mount.fs_type == fs);
    match (mounted("cgroup"), mounted("cgroup2")) {
        (true, true) => Some("versions 1 and 2"),
        (true, false) => Some("version 1"),
        (false, true) => Some("version 2"),
        (false, false) => None,
    }
}

/// Detects a container by the files that container engines create, then by the name of the cgroup.
fn container(own: &Path) -> Option<String> {
    let marks = [
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
        (".singularity.d", "apptainer"),
        ("run/secrets/kubernetes.io", "kubernetes"),
    ];
    let root = own.join("root");
    if let Some((_, kind)) = marks.iter().find(|(mark, _)| root.join(mark).exists()) {
        return Some((*kind).to_owned());
    }
    // systemd's convention: the container manager writes its name to this file.
    if let Ok(name) = file::read(&root.join("run/systemd/container")) {
        return Some(name.trim().replace(char::is_control, ""));
    }
    let group = file::read(&own.join("cgroup")).ok()?;
    ["kubepods", "docker", "libpod", "lxc"]
        .into_iter()
        .find(|kind| group.contains(kind))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hanging_driver_does_not_block_the_doctor() {
        let (hold, held) = mpsc::channel::<()>();
        let gap = within(Duration::from_millis(20), move || {
            let _ = held.recv();
            Ok(Vec::new())
        });
        assert!(
            gap.unwrap_err()
                .reason
                .contains("did not respond within 20ms")
        );
        drop(hold);
        let answered = within(Duration::from_mins(5), || Ok(Vec::new()));
        assert_eq!(answered, Ok(Vec::new()));
    }

    #[test]
    fn the_own_process_says_who_it_is() {
        let status = "Name:\tx\nPid:\t42\nUid:\t1000\t0\t0\t0\nCapEff:\t0000000000080000\nCpus_allowed_list:\t0-3,8\n";
        let expected = OwnProcess {
            pid: Some(Pid(42)),
            cap_sys_ptrace: Some(true),
            reads_all_files: Some(false),
            cpus_allowed: Some(5),
        };
        assert_eq!(process(status), expected);
        assert_eq!(process("CapEff:\tzz\nUid:\t\nPid:"), OwnProcess::default());
    }

    #[test]
    fn hidepid_counts_where_it_hides() {
        let table =
            |options: &str| mounts::parse(&format!("4 1 0:21 / /proc rw - proc proc {options}\n"));
        assert_eq!(
            hidepid(&table("rw,hidepid=2")),
            Some("hidepid=2".to_owned())
        );
        assert_eq!(
            hidepid(&table("rw,gid=5,hidepid=invisible")),
            Some("hidepid=invisible".to_owned())
        );
        assert_eq!(hidepid(&table("rw,hidepid=0")), None);
        assert_eq!(hidepid(&table("rw")), None);
    }
}
