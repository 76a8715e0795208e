//! Facts in, checks out. Pure.

use crate::doctor::facts::Facts;
use crate::doctor::terminal::{characters, colour, terminal};
use crate::doctor::{Check, State};
use crate::sample::{CgroupSample, Gap};

/// Every check, in the order in which they are told: the GPU, the job's processes, the machine, the screen.
pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        gpus(facts),
        pid_namespace(facts),
        attach(facts),
        python(facts),
        probe(facts),
        processes(facts),
        process_files(facts),
        delay_accounting(facts),
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

pub(super) fn ok(id: &'static str, found: impl Into<String>) -> Check {
    Check {
        id,
        state: State::Ok,
        found: found.into(),
        hint: None,
    }
}

pub(super) fn limited(id: &'static str, found: impl Into<String>, hint: &str) -> Check {
    Check {
        id,
        state: State::Limited,
        found: found.into(),
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
    }
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
        let name = gpu.name.as_deref().unwrap_or("no name");
        match &gpu.gap {
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
    } else if gpus.iter().any(|gpu| gpu.gap.is_some()) {
        limited(
            "nvml",
            found,
            "see `nvidia-smi`, and `sudo dmesg` for Xid errors",
        )
    } else {
        ok("nvml", found)
    }
}

fn pid_namespace(facts: &Facts) -> Check {
    const ID: &str = "pid-namespace";
    match facts.inner_pid_namespace {
        Some(false) => ok(
            ID,
            "the machine's own: GPU processes carry the numbers seen here",
        ),
        Some(true) => limited(
            ID,
            "one of its own: the driver may number GPU processes as the host does",
            "run pipetop on the host, or the container with `docker run --pid=host`",
        ),
        None => limited(ID, "not known: GPU processes may carry other numbers", ""),
    }
}

/// The right to attach (access tier T2).
fn attach(facts: &Facts) -> Check {
    const ID: &str = "attach";
    const SETCAP: &str = "`sudo pipetop`, or once `sudo setcap cap_sys_ptrace+ep \"$(command -v pipetop)\"`; in docker `--cap-add SYS_PTRACE`";
    let privileged = facts.process.cap_sys_ptrace == Some(true);
    match (facts.ptrace_scope, privileged) {
        (Some(3..), _) => missing(
            ID,
            "nobody may attach to a running process (kernel.yama.ptrace_scope=3)",
            "nothing until a reboot: boot with kernel.yama.ptrace_scope=1 or 0",
        ),
        (_, true) => ok(ID, "may attach to any process (CAP_SYS_PTRACE)"),
        (None | Some(0), false) => ok(
            ID,
            "may attach to own processes; not to those of other users",
        ),
        (Some(1), false) => limited(
            ID,
            "only to own children (kernel.yama.ptrace_scope=1)",
            "`sudo sysctl kernel.yama.ptrace_scope=0`, or `sudo pipetop`",
        ),
        (Some(_), false) => limited(
            ID,
            "to no process without CAP_SYS_PTRACE (kernel.yama.ptrace_scope=2)",
            SETCAP,
        ),
    }
}

fn python(facts: &Facts) -> Check {
    let attach = attach(facts);
    let found = match attach.state {
        State::Ok => "stacks, loader settings and exact batch counts can be read",
        State::Limited => {
            "stacks only of jobs that may be attached to; else estimates from system calls"
        }
        State::Missing => {
            "no stacks: loader settings and batch counts are estimates from system calls"
        }
    };
    Check {
        id: "python",
        found: found.to_owned(),
        hint: (attach.state != State::Ok).then(|| "see attach".to_owned()),
        ..attach
    }
}

/// Jobs that tell of their own steps (access tier T3).
fn probe(facts: &Facts) -> Check {
    const ID: &str = "probe";
    match &facts.unheard {
        None => ok(ID, "a job that pipetop launches can report its own steps"),
        Some(why) => missing(
            ID,
            format!("no socket to report steps to: {why}"),
            "allow Unix sockets in the sandbox that this runs in",
        ),
    }
}

fn processes(facts: &Facts) -> Check {
    const ID: &str = "processes";
    match &facts.hidepid {
        None => ok(ID, "all processes are listed"),
        Some(option) if facts.process.cap_sys_ptrace == Some(true) => ok(
            ID,
            format!("all processes are listed (/proc has {option}, and this user may look)"),
        ),
        Some(option) => limited(
            ID,
            format!("only own processes are listed (/proc has {option})"),
            "enough for an own job; for others `sudo pipetop`, or `sudo mount -o remount,hidepid=0 /proc`",
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
            format!("no {absent}: the waits of processes are seen less well"),
            "a kernel with CONFIG_SCHED_INFO, CONFIG_TASK_IO_ACCOUNTING and CONFIG_KALLSYMS, and a /proc that is not masked",
        )
    }
}

fn delay_accounting(facts: &Facts) -> Check {
    const ID: &str = "delay-accounting";
    match facts.delay_accounting {
        Some(true) => ok(ID, "on: time that processes wait for disks is exact"),
        Some(false) => limited(
            ID,
            "off: waits for disks are sampled, not counted",
            "`sudo sysctl kernel.task_delayacct=1` (costs every process a little); not needed for a verdict",
        ),
        None => limited(
            ID,
            "not known: this kernel has no kernel.task_delayacct",
            "",
        ),
    }
}

/// How many CPUs a shell like this one may use; a job's own limits are read when it is watched.
fn cpus(facts: &Facts) -> Check {
    const ID: &str = "cpus";
    let online = facts.host.cpus;
    match facts.process.cpus_allowed {
        _ if online == 0 => missing(ID, "the number of CPUs is not known", ""),
        None => limited(
            ID,
            format!("{online} online; how many are allowed is not known"),
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
            "no control groups: CPU quotas and memory limits are not known",
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
        (Some(_), _) => ok(ID, "waits for CPU, disk and memory are counted (PSI)"),
        (None, Some(gap)) => of_gap(State::Missing, ID, gap),
        (None, None) => missing(ID, "no pressure figures (PSI)", ""),
    }
}

fn disks(facts: &Facts) -> Check {
    const ID: &str = "disks";
    match (facts.disks.is_empty(), facts.disk_gaps.first()) {
        (true, Some(gap)) => of_gap(State::Missing, ID, gap),
        (true, None) => limited(ID, "no block device is listed", ""),
        (false, Some(gap)) => of_gap(State::Limited, ID, gap),
        (false, None) => ok(ID, facts.disks.join(", ")),
    }
}

fn container(facts: &Facts) -> Check {
    match &facts.container {
        Some(kind) => ok(
            "container",
            format!("marks of {kind}: limits are the container's, disks the machine's"),
        ),
        None => ok("container", "none found"),
    }
}
