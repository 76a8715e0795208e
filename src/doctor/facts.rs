//! Facts about the machine, the process and the terminal, without judgement.
//!
//! Only reads; knows neither what is sufficient nor how to fix anything.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use sysinfo::{CpuRefreshKind, RefreshKind, System};

use crate::doctor::terminal::Terminal;
use crate::loaders::Names;
use crate::sample::{CgroupSample, Gap, GpuSample, HostSample};
use crate::source::cgroup::Cgroup;
use crate::source::disk::Disks;
use crate::source::file;
use crate::source::host::{Host, cpus_in_list};
use crate::source::mounts::{self, MountInfo};
use crate::source::probe::Listener;
use crate::units::Pid;

/// A driver that has not answered by then hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The first PID namespace of a machine has this number, whatever the machine.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Everything that the checks rest on. `None` = not known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    pub gpus: Result<Vec<GpuSample>, Gap>,
    pub process: Process,
    /// `kernel.yama.ptrace_scope`; `None` = the kernel has no Yama, so the user alone counts.
    pub ptrace_scope: Option<u32>,
    /// Options of the mount at `/proc` that hide other users' processes: `hidepid=invisible`.
    pub hidepid: Option<String>,
    /// Files of the own process that a kernel may be built without or a sandbox may mask: name, there.
    pub process_files: Vec<(&'static str, bool)>,
    /// Why no job could report its steps to pipetop. `None` = it could.
    pub unheard: Option<String>,
    /// `kernel.task_delayacct`; `None` = an older kernel, where it is a boot option.
    pub delay_accounting: Option<bool>,
    /// The machine in words: system, kernel and processor. `None` where `--proc-root` names that of another.
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
    /// The container's kind where one shows; `None` = none found.
    pub container: Option<String>,
    /// This process lives in a PID namespace of its own.
    pub inner_pid_namespace: Option<bool>,
    pub terminal: Terminal,
    /// Loaders that are known by name, beside PyTorch's; or what is wrong with the user's file of such names.
    pub loaders: Result<Vec<String>, String>,
}

/// From `/proc/self/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Process {
    pub pid: Option<Pid>,
    /// Effective user.
    pub uid: Option<u32>,
    /// May attach to processes of other users, and whatever Yama says below 3.
    pub cap_sys_ptrace: Option<bool>,
    pub cpus_allowed: Option<u32>,
}

impl Facts {
    pub(crate) fn read<G>(proc_root: &Path, sys_root: &Path, terminal: Terminal, gpus: G) -> Self
    where
        G: FnOnce() -> Result<Vec<GpuSample>, Gap> + Send + 'static,
    {
        let own = proc_root.join("self");
        let text = |path: &Path| file::read(path).ok();
        let process = process(&text(&own.join("status")).unwrap_or_default());
        let mounts = mounts::read(&own).unwrap_or_default();
        let (host, host_gaps) = Host::new(proc_root, sys_root).read();
        let (disks, disk_gaps) = Disks::new(proc_root, sys_root).read(&[].into());
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
            gpus: within(PATIENCE, gpus),
            ptrace_scope: setting("yama/ptrace_scope"),
            hidepid: hidepid(&mounts),
            // Opening alone tells: reading `syscall` of oneself says nothing of others.
            process_files: ["schedstat", "io", "wchan", "syscall"]
                .map(|name| (name, std::fs::File::open(own.join(name)).is_ok()))
                .into(),
            unheard: Listener::bind().err().map(|error| error.to_string()),
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
            inner_pid_namespace: std::fs::read_link(own.join("ns/pid"))
                .ok()
                .map(|namespace| namespace != Path::new(FIRST_PID_NAMESPACE)),
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

/// Asks in a thread of its own, which is left behind when it does not come back.
fn within<G>(patience: Duration, gpus: G) -> Result<Vec<GpuSample>, Gap>
where
    G: FnOnce() -> Result<Vec<GpuSample>, Gap> + Send + 'static,
{
    let (answer, answered) = mpsc::channel();
    let thread = thread::Builder::new().name("doctor-gpu".to_owned());
    let gap = |reason: String, hint: &str| Gap {
        source: "nvml".to_owned(),
        reason,
        hint: hint.to_owned(),
    };
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

/// `Linux (Debian GNU/Linux 12), kernel 6.18.0, x86_64, AMD EPYC 9654`, as far as it is known.
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

/// Not with procfs: it refuses the whole file where one of some twenty lines is missing, as in sandboxes that write it
/// themselves, and the doctor is asked there above all.
fn process(status: &str) -> Process {
    const CAP_SYS_PTRACE: u32 = 19;
    let field = |name| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    // Real, effective, saved, file system.
    let effective = |ids: &str| ids.split_ascii_whitespace().nth(1)?.parse().ok();
    let capabilities = field("CapEff:").and_then(|set| u64::from_str_radix(set, 16).ok());
    Process {
        pid: field("Pid:").and_then(|pid| pid.parse().ok()).map(Pid),
        uid: field("Uid:").and_then(effective),
        cap_sys_ptrace: capabilities.map(|set| set >> CAP_SYS_PTRACE & 1 == 1),
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

/// By the marks that container engines leave, then by the group's name.
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
    // systemd's convention: the manager of the container writes its name there.
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
    fn a_driver_that_hangs_is_left_behind() {
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
        let expected = Process {
            pid: Some(Pid(42)),
            uid: Some(0),
            cap_sys_ptrace: Some(true),
            cpus_allowed: Some(5),
        };
        assert_eq!(process(status), expected);
        assert_eq!(process("CapEff:\tzz\nUid:\t\nPid:"), Process::default());
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
