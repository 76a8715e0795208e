//! Facts in, checks out. Pure.

use crate::doctor::check::{Check, State, limited, ok};
use crate::doctor::facts::Facts;
use crate::doctor::terminal::{characters, colour, terminal};
use crate::sample::{CgroupSample, Gap, GpuSample, NO_PERMISSION};

/// Every check, in the order of the output: GPU, the job's processes, machine, screen.
pub(crate) fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        gpus(facts),
        pid_namespace(facts),
        attach(facts),
        python(facts),
        loaders(facts),
        probe(facts),
        processes(facts),
        process_files(facts),
        delay_accounting(facts),
        system(facts),
        cpus(facts),
        cgroup(facts),
        pressure(facts),
        disks(facts),
        container(facts),
        terminal(&facts.terminal),
        characters(&facts.terminal),
        colour(&facts.terminal),
    ]
}

fn missing(id: &'static str, found: impl Into<String>, hint: &str) -> Check {
    Check {
        state: State::Missing,
        ..limited(id, found, hint)
    }
}

fn of_gap(state: State, id: &'static str, gap: &Gap) -> Check {
    Check {
        state,
        ..limited(id, &*gap.reason, &gap.hint)
    }
}

fn gpus(facts: &Facts) -> Check {
    let gpus = match &facts.gpus {
        Ok(gpus) => gpus,
        Err(gap) => return of_gap(State::Missing, "nvml", gap),
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
        missing(
            "nvml",
            "the NVIDIA driver lists no GPU",
            "see `nvidia-smi -L`",
        )
    } else if gpus.iter().any(|gpu| gpu_trouble(gpu).is_some()) {
        limited(
            "nvml",
            found,
            "see `nvidia-smi`, and `sudo dmesg` for Xid errors",
        )
    } else {
        ok("nvml", found)
    }
}

/// Why a GPU gives nothing, or which figures it denies.
fn gpu_trouble(gpu: &GpuSample) -> Option<String> {
    let denied = gpu.absent.iter();
    let denied = denied.filter(|absent| absent.reason == NO_PERMISSION);
    let denied: Vec<_> = denied.map(|absent| absent.figure.as_str()).collect();
    let denied = (!denied.is_empty()).then(|| format!("{NO_PERMISSION}: {}", denied.join(", ")));
    gpu.gap.clone().or(denied)
}

fn pid_namespace(facts: &Facts) -> Check {
    const ID: &str = "pid-namespace";
    match facts.inner_pid_namespace {
        Some(false) => ok(
            ID,
            "shared with the host: GPU processes have the same PIDs here",
        ),
        Some(true) => limited(
            ID,
            "not shared with the host: the driver may report GPU processes with host PIDs",
            "run pipetop on the host, or start the container with `docker run --pid=host`",
        ),
        None => limited(ID, "unknown: GPU processes may have other PIDs", ""),
    }
}

/// The right to attach (access tier T2).
fn attach(facts: &Facts) -> Check {
    const ID: &str = "attach";
    const SETCAP: &str = "`sudo pipetop`, or once `sudo setcap cap_sys_ptrace+ep \"$(command -v pipetop)\"`; in Docker `--cap-add SYS_PTRACE`";
    let privileged = facts.process.cap_sys_ptrace == Some(true);
    match (facts.ptrace_scope, privileged) {
        (Some(3..), _) => missing(
            ID,
            "attaching to processes is disabled (kernel.yama.ptrace_scope=3)",
            "reboot with kernel.yama.ptrace_scope=1 or 0",
        ),
        (_, true) => ok(ID, "any process (CAP_SYS_PTRACE)"),
        (None | Some(0), false) => ok(ID, "your own processes, not those of other users"),
        (Some(1), false) => limited(
            ID,
            "child processes only (kernel.yama.ptrace_scope=1)",
            "`sudo sysctl kernel.yama.ptrace_scope=0`, or `sudo pipetop`",
        ),
        (Some(_), false) => limited(
            ID,
            "no process without CAP_SYS_PTRACE (kernel.yama.ptrace_scope=2)",
            SETCAP,
        ),
    }
}

fn python(facts: &Facts) -> Check {
    let attach = attach(facts);
    let found = match attach.state {
        State::Ok => "stacks, loader settings and exact batch counts are readable",
        State::Limited => {
            "stacks only where pipetop may attach; otherwise estimates from system calls"
        }
        State::Missing => {
            "no stacks: loader settings and batch counts are estimated from system calls"
        }
    };
    Check {
        id: "python",
        found: found.to_owned(),
        hint: (attach.state != State::Ok).then(|| "see attach".to_owned()),
        ..attach
    }
}

/// What is known by name; any other is learned from the training loop.
fn loaders(facts: &Facts) -> Check {
    const ID: &str = "loaders";
    match &facts.loaders {
        Ok(names) => ok(ID, format!("PyTorch, {}", names.join(", "))),
        Err(trouble) => limited(
            ID,
            format!("ignoring your own loader names: {trouble}"),
            "`pipetop config --check` checks the file",
        ),
    }
}

/// Jobs that report their own steps (access tier T3).
fn probe(facts: &Facts) -> Check {
    const ID: &str = "probe";
    match &facts.unheard {
        None => ok(ID, "jobs started with `pipetop run` can report their steps"),
        Some(why) => missing(
            ID,
            format!("no socket for reporting steps: {why}"),
            "allow Unix sockets in this sandbox",
        ),
    }
}

fn processes(facts: &Facts) -> Check {
    const ID: &str = "processes";
    match &facts.hidepid {
        None => ok(ID, "all processes are visible"),
        Some(option) if facts.process.cap_sys_ptrace == Some(true) => ok(
            ID,
            format!(
                "all processes are visible (/proc has {option}, but CAP_SYS_PTRACE overrides it)"
            ),
        ),
        Some(option) => limited(
            ID,
            format!("only your own processes are visible (/proc has {option})"),
            "enough for your own jobs; for others use `sudo pipetop` or `sudo mount -o remount,hidepid=0 /proc`",
        ),
    }
}

fn process_files(facts: &Facts) -> Check {
    const ID: &str = "process-files";
    let named = |there: bool| {
        let names = facts
            .process_files
            .iter()
            .filter(|(_, found)| *found == there);
        names.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    let absent = named(false);
    if absent.is_empty() {
        ok(ID, named(true))
    } else {
        limited(
            ID,
            format!("no {absent}: less detail on why processes wait"),
            "needs a kernel with CONFIG_SCHED_INFO, CONFIG_TASK_IO_ACCOUNTING and CONFIG_KALLSYMS, and an unmasked /proc",
        )
    }
}

fn delay_accounting(facts: &Facts) -> Check {
    const ID: &str = "delay-accounting";
    match facts.delay_accounting {
        Some(true) => ok(ID, "on: disk wait times are exact"),
        Some(false) => limited(
            ID,
            "off: disk wait times are sampled",
            "optional: `sudo sysctl kernel.task_delayacct=1` (small cost for every process); verdicts do not need it",
        ),
        None => limited(ID, "unknown: this kernel has no kernel.task_delayacct", ""),
    }
}

/// What a bug report should say about the machine.
fn system(facts: &Facts) -> Check {
    const ID: &str = "system";
    match &facts.system {
        Some(system) => ok(ID, &**system),
        None => ok(ID, "not shown: --proc-root may point at another machine"),
    }
}

/// How many CPUs a shell like this one may use; a job's own limits are read when it is watched.
fn cpus(facts: &Facts) -> Check {
    const ID: &str = "cpus";
    let online = facts.host.cpus;
    match facts.process.cpus_allowed {
        _ if online == 0 => missing(ID, "unknown number of CPUs", ""),
        None => limited(
            ID,
            format!("{online} online, unknown how many are allowed"),
            "",
        ),
        Some(allowed) if allowed < online => {
            ok(ID, format!("{allowed} allowed of {online} online"))
        }
        Some(_) => ok(ID, format!("all {online} allowed")),
    }
}

fn cgroup(facts: &Facts) -> Check {
    const ID: &str = "cgroup";
    if let Some(gap) = facts.cgroup_gaps.first() {
        return of_gap(State::Limited, ID, gap);
    }
    match (facts.cgroup_version, &facts.cgroup) {
        (Some(version), Some(group)) => {
            ok(ID, format!("{version}, {}: {}", group.path, limits(group)))
        }
        _ => missing(
            ID,
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
    const ID: &str = "pressure";
    match (
        facts.host.pressure,
        facts.host_gaps.iter().find(|gap| gap.source == "psi"),
    ) {
        (Some(_), _) => ok(ID, "CPU, I/O and memory pressure available (PSI)"),
        (None, Some(gap)) => of_gap(State::Missing, ID, gap),
        (None, None) => missing(ID, "no pressure figures (PSI)", ""),
    }
}

fn disks(facts: &Facts) -> Check {
    const ID: &str = "disks";
    match (facts.disks.is_empty(), facts.disk_gaps.first()) {
        (true, Some(gap)) => of_gap(State::Missing, ID, gap),
        (true, None) => limited(ID, "no block devices found", ""),
        (false, Some(gap)) => of_gap(State::Limited, ID, gap),
        (false, None) => ok(ID, facts.disks.join(", ")),
    }
}

fn container(facts: &Facts) -> Check {
    match &facts.container {
        Some(kind) => ok(
            "container",
            format!("{kind}: limits are the container's, disks are the host's"),
        ),
        None => ok("container", "none detected"),
    }
}
