//! Turns facts into checks. Pure.

use crate::doctor::check::{Check, CheckState, limited, ok};
use crate::doctor::facts::Facts;
use crate::doctor::terminal::{characters, colour, terminal};
use crate::sample::{CgroupSample, Gap, GpuSample, NO_PERMISSION};

/// Returns every check, in the order of the output: GPU, the job's processes, machine, screen.
pub(crate) fn checks(facts: &Facts) -> Vec<Check> {
    let checks = [
        ("nvml", gpus(facts)),
        ("pid-namespace", pid_namespace(facts)),
        ("attach", attach(facts)),
        ("python", python(facts)),
        ("loaders", loaders(facts)),
        ("probe", probe(facts)),
        ("processes", processes(facts)),
        ("process-files", process_files(facts)),
        ("delay-accounting", delay_accounting(facts)),
        ("system", system(facts)),
        ("cpus", cpus(facts)),
        ("cgroup", cgroup(facts)),
        ("pressure", pressure(facts)),
        ("disks", disks(facts)),
        ("container", container(facts)),
        ("terminal", terminal(&facts.terminal)),
        ("characters", characters(&facts.terminal)),
        ("colour", colour(&facts.terminal)),
    ];
    checks
        .into_iter()
        .map(|(id, check)| Check { id, ..check })
        .collect()
}

fn missing(found: impl Into<String>, hint: &str) -> Check {
    Check {
        state: CheckState::Missing,
        ..limited(found, hint)
    }
}

fn of_gap(state: CheckState, gap: &Gap) -> Check {
    Check {
        state,
        ..limited(&*gap.reason, &gap.hint)
    }
}

fn gpus(facts: &Facts) -> Check {
    let gpus = match &facts.gpus {
        Ok(gpus) => gpus,
        Err(gap) => return of_gap(CheckState::Missing, gap),
    };
    let each = gpus.iter().map(|gpu| {
        let name = gpu.name.as_deref().unwrap_or("unnamed");
        match gpu_trouble(gpu) {
            Some(gap) => format!("{} {name} ({gap})", gpu.index),
            None => format!("{} {name}", gpu.index),
        }
    });
    let found = each.collect::<Vec<_>>().join(", ");
    if gpus.is_empty() {
        missing("the NVIDIA driver lists no GPU", "see `nvidia-smi -L`")
    } else if gpus.iter().any(|gpu| gpu_trouble(gpu).is_some()) {
        limited(found, "see `nvidia-smi`, and `sudo dmesg` for Xid errors")
    } else {
        ok(found)
    }
}

/// Returns why a GPU has no figures, or which ones are denied.
fn gpu_trouble(gpu: &GpuSample) -> Option<String> {
    let denied = gpu.absent.iter();
    let denied = denied.filter(|absent| absent.reason == NO_PERMISSION);
    let denied: Vec<_> = denied.map(|absent| absent.figure.as_str()).collect();
    let denied = (!denied.is_empty()).then(|| format!("{NO_PERMISSION}: {}", denied.join(", ")));
    gpu.gap.clone().or(denied)
}

fn pid_namespace(facts: &Facts) -> Check {
    match facts.inner_pid_namespace {
        Some(false) => ok("shared with the host: GPU processes have the same PIDs here"),
        Some(true) => limited(
            "not shared with the host: the driver may report GPU processes with host PIDs",
            "run pipetop on the host, or start the container with `docker run --pid=host`",
        ),
        None => limited("unknown: GPU processes may have other PIDs", ""),
    }
}

/// Checks the permission to attach (access tier T2).
fn attach(facts: &Facts) -> Check {
    const SETCAP: &str = "`sudo pipetop`, or once `sudo setcap cap_sys_ptrace+ep \"$(command -v pipetop)\"`; in Docker `--cap-add SYS_PTRACE`";
    if facts.process.pid.is_none() {
        return limited(
            "unknown: no process can be read",
            "name the mount point of a procfs with --proc-root, e.g. /proc",
        );
    }
    let privileged = facts.process.cap_sys_ptrace == Some(true);
    match (facts.ptrace_scope, privileged) {
        (Some(3..), _) => missing(
            "attaching to processes is disabled (kernel.yama.ptrace_scope=3)",
            "reboot with kernel.yama.ptrace_scope=1 or 0",
        ),
        (_, true) if facts.process.reads_all_files == Some(false) => ok(
            "your own processes (CAP_SYS_PTRACE); those of other users need CAP_DAC_READ_SEARCH as well",
        ),
        (_, true) => ok("any process (CAP_SYS_PTRACE)"),
        (None | Some(0), false) => ok("your own processes, not those of other users"),
        (Some(1), false) => limited(
            "child processes only (kernel.yama.ptrace_scope=1)",
            "`sudo sysctl kernel.yama.ptrace_scope=0`, or `sudo pipetop`",
        ),
        (Some(_), false) => limited(
            "no process without CAP_SYS_PTRACE (kernel.yama.ptrace_scope=2)",
            SETCAP,
        ),
    }
}

fn python(facts: &Facts) -> Check {
    let attach = attach(facts);
    let found = match attach.state {
        CheckState::Ok => "stacks, loader settings and exact batch counts are readable",
        CheckState::Limited => {
            "stacks only where pipetop may attach; otherwise estimates from system calls"
        }
        CheckState::Missing => {
            "no stacks: loader settings and batch counts are estimated from system calls"
        }
    };
    Check {
        found: found.to_owned(),
        hint: (attach.state != CheckState::Ok).then(|| "see `attach` above".to_owned()),
        ..attach
    }
}

/// Lists the loaders known by name; others are detected from the training loop.
fn loaders(facts: &Facts) -> Check {
    match &facts.loaders {
        Ok(names) => ok(format!("PyTorch, {}", names.join(", "))),
        Err(trouble) => limited(
            format!("pipetop will not start: {trouble}"),
            "`pipetop config --check` checks the file",
        ),
    }
}

/// Checks whether jobs can report their own steps (access tier T3).
fn probe(facts: &Facts) -> Check {
    match &facts.no_reports_reason {
        None => ok("jobs started with `pipetop run` can report their steps"),
        Some(why) => missing(
            format!("no socket for reporting steps: {why}"),
            "allow Unix sockets in this sandbox",
        ),
    }
}

fn processes(facts: &Facts) -> Check {
    match &facts.hidepid {
        None if !facts.mounts_known => limited(
            "unknown: how /proc is mounted cannot be read",
            "name the mount point of a procfs with --proc-root, e.g. /proc",
        ),
        None => ok("all processes are visible"),
        Some(option) if facts.process.cap_sys_ptrace == Some(true) => ok(format!(
            "all processes are visible (/proc has {option}, but CAP_SYS_PTRACE overrides it)"
        )),
        Some(option) => limited(
            format!("only your own processes are visible (/proc has {option})"),
            "enough for your own jobs; for others use `sudo pipetop` or `sudo mount -o remount,hidepid=0 /proc`",
        ),
    }
}

fn process_files(facts: &Facts) -> Check {
    let named = |there: bool| {
        let names = facts
            .process_files
            .iter()
            .filter(|(_, found)| *found == there);
        names.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    let absent = named(false);
    if absent.is_empty() {
        ok(named(true))
    } else {
        limited(
            format!("no {absent}: less detail on why processes wait"),
            "needs a kernel with CONFIG_SCHED_INFO, CONFIG_TASK_IO_ACCOUNTING and CONFIG_KALLSYMS, and an unmasked /proc",
        )
    }
}

fn delay_accounting(facts: &Facts) -> Check {
    match facts.delay_accounting {
        Some(true) => ok("on: disk wait times are exact"),
        Some(false) => limited(
            "off: disk wait times are sampled",
            "optional: `sudo sysctl kernel.task_delayacct=1` (small cost for every process); verdicts do not need it",
        ),
        None => limited("unknown: this kernel has no kernel.task_delayacct", ""),
    }
}

/// Describes the machine for a bug report.
fn system(facts: &Facts) -> Check {
    match &facts.system {
        Some(system) => ok(&**system),
        None => ok("not shown: --proc-root may point at another machine"),
    }
}

/// Checks how many CPUs pipetop itself may use; a job's own limits are read when it is watched.
fn cpus(facts: &Facts) -> Check {
    let online = facts.host.cpus;
    match facts.process.cpus_allowed {
        _ if online == 0 => missing("unknown number of CPUs", ""),
        None => limited(format!("{online} online, unknown how many are allowed"), ""),
        Some(allowed) if allowed < online => ok(format!("{allowed} allowed of {online} online")),
        Some(_) => ok(format!("all {online} allowed")),
    }
}

fn cgroup(facts: &Facts) -> Check {
    if let Some(gap) = facts.cgroup_gaps.first() {
        return of_gap(CheckState::Limited, gap);
    }
    match (facts.cgroup_version, &facts.cgroup) {
        (Some(version), Some(group)) => ok(format!("{version}, {}: {}", group.path, limits(group))),
        _ => missing(
            "no control groups: CPU quotas and memory limits are unknown",
            "mount /sys/fs/cgroup, or run pipetop on the host",
        ),
    }
}

fn limits(group: &CgroupSample) -> String {
    let limits = [
        group.cpu_quota.map(|cpus| format!("quota {cpus:.1} CPUs")),
        group.mem_limit.map(|bytes| format!("memory {bytes}")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        "no limit".to_owned()
    } else {
        limits.join(", ")
    }
}

fn pressure(facts: &Facts) -> Check {
    match (
        facts.host.pressure,
        facts.host_gaps.iter().find(|gap| gap.source == "psi"),
    ) {
        (Some(_), _) => ok("CPU, I/O and memory pressure available (PSI)"),
        (None, Some(gap)) => of_gap(CheckState::Missing, gap),
        (None, None) => missing("no pressure figures (PSI)", ""),
    }
}

fn disks(facts: &Facts) -> Check {
    match (facts.disks.is_empty(), facts.disk_gaps.first()) {
        (true, Some(gap)) => of_gap(CheckState::Missing, gap),
        (true, None) => limited("no block devices found", ""),
        (false, Some(gap)) => of_gap(CheckState::Limited, gap),
        (false, None) => ok(facts.disks.join(", ")),
    }
}

fn container(facts: &Facts) -> Check {
    match &facts.container {
        Some(kind) => ok(format!(
            "{kind}: limits are the container's, disks are the host's"
        )),
        None => ok("none detected"),
    }
}
