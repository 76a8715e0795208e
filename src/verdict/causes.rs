//! Why data comes too slowly, or why the device idles without waiting for it: one plain function a cause,
//! asked in the order of [`DATA_RULES`] and [`HOST_RULES`]. Each answers with the fact that decides, or
//! abstains where its signal is missing.

use super::case::{Case, median};
use super::{Cause, Evidence, Kind};
use crate::model::rates::WorkerRates;
use crate::units::Share;

type Rule = fn(&Case<'_>) -> Option<Evidence>;

/// A cause that would hide behind another one comes first: what blocks many workers explains more than
/// what each is busy with.
const DATA_RULES: [(Cause, Rule); 14] = [
    (Cause::Gil, gil_in_loader),
    (Cause::InMain, in_main),
    (Cause::WorkerRestart, worker_restart),
    (Cause::FewShards, few_shards),
    (Cause::HeadOfLine, head_of_line),
    (Cause::Ipc, ipc),
    (Cause::MemoryPressure, memory_pressure),
    (Cause::Disk, disk),
    (Cause::Network, network),
    (Cause::CpuQuota, cpu_quota),
    (Cause::CpuAffinity, cpu_affinity),
    (Cause::CpuOversubscribed, cpu_oversubscribed),
    (Cause::CpuPreprocess, cpu_preprocess),
    (Cause::Straggler, straggler),
];

/// Of a device that idles though batches are ready.
const HOST_RULES: [(Cause, Rule); 4] = [
    (Cause::Transfer, transfer),
    (Cause::Gil, gil),
    (Cause::Sync, sync),
    (Cause::Launch, launch),
];

/// The first cause of this kind whose rule speaks. `None` also for kinds that have no causes.
pub(super) fn cause(case: &Case<'_>, kind: Kind) -> Option<(Cause, Evidence)> {
    let rules: &[(Cause, Rule)] = match kind {
        Kind::DataBound => &DATA_RULES,
        Kind::HostBound => &HOST_RULES,
        _ => &[],
    };
    rules
        .iter()
        .find_map(|(cause, rule)| Some((*cause, rule(case)?)))
}

fn fact(id: &'static str, value: f64, threshold: f64, text: String) -> Evidence {
    Evidence {
        id,
        supports: true,
        value,
        threshold: Some(threshold),
        text,
    }
}

/// At least this part of the waits must have one explanation.
const MOST_OF_THE_WAIT: f64 = 0.5;

fn part_of_wait(case: &Case<'_>, part: Option<Share>) -> Option<Share> {
    Share::of(part?.0, case.wait()?.share.0)
}

fn in_main(case: &Case<'_>) -> Option<Evidence> {
    let part = part_of_wait(case, case.rank.loading)?;
    let loading = case.rank.loading?;
    (case.loads_in_main() && part.0 >= MOST_OF_THE_WAIT).then(|| {
        let text = format!("the main thread makes batches itself {loading} of the time");
        fact("loads-in-main", loading.0, MOST_OF_THE_WAIT, text)
    })
}

fn worker_restart(case: &Case<'_>) -> Option<Evidence> {
    let part = part_of_wait(case, case.rank.startup)?;
    let startup = case.rank.startup?;
    (part.0 >= MOST_OF_THE_WAIT).then(|| {
        let text = format!("{startup} of the time goes to starting workers");
        fact("worker-start", startup.0, MOST_OF_THE_WAIT, text)
    })
}

/// Workers that have nothing to load, as a part of all.
fn few_shards(case: &Case<'_>) -> Option<Evidence> {
    const UNUSED: f64 = 0.25;
    const IDLE: f64 = 0.1;
    let wanted = f64::from(case.loader?.settings.num_workers?);
    let counted = case
        .workers()
        .iter()
        .any(|worker| worker.batches_per_s > Some(0.0));
    // One that has never handed over a batch has no count at all.
    let makes_none = |worker: &&WorkerRates| {
        let idle = worker.busy.is_some_and(|busy| busy.0 < IDLE);
        counted && idle && worker.batches_per_s.is_none_or(|rate| rate == 0.0)
    };
    let useful = case.workers().iter().filter(|worker| !makes_none(worker));
    let useful = useful.count() as f64;
    let unused = Share::of(wanted - useful, wanted)?;
    (useful > 0.0 && unused.0 >= UNUSED).then(|| {
        let text = format!("{useful:.0} of {wanted:.0} workers have anything to load");
        fact("unused-workers", unused.0, UNUSED, text)
    })
}

/// One worker is busy all the time, the others could be and are not: batches are handed over in order,
/// and an index goes out only for a batch that was taken.
fn head_of_line(case: &Case<'_>) -> Option<Evidence> {
    const BUSY: f64 = 0.75;
    const IDLE: f64 = 0.5;
    const SLOWER: f64 = 3.0;
    if case.loader?.settings.in_order == Some(false) {
        return None;
    }
    let mut workers: Vec<(f64, u32)> = case
        .workers()
        .iter()
        .filter_map(|worker| Some((worker.busy?.0, worker.id)))
        .collect();
    workers.sort_by(|one, other| other.0.total_cmp(&one.0));
    let ((busiest, id), others) = workers.split_first()?;
    let others = median(others.iter().map(|(busy, _)| *busy).collect())?;
    let slower = busiest / others.max(0.01);
    (*busiest >= BUSY && 1.0 - others >= IDLE && slower >= SLOWER).then(|| {
        let text = format!(
            "worker {id} is busy {} of the time, the others idle {}: batches are handed over in order",
            Share(*busiest),
            Share(1.0 - others)
        );
        fact("head-of-line", 1.0 - others, IDLE, text)
    })
}

fn ipc(case: &Case<'_>) -> Option<Evidence> {
    let receiving = case.rank.receiving?;
    let part = part_of_wait(case, case.rank.receiving)?;
    // Who gets no CPU is slow at everything: a trainer at receiving, workers at answering it.
    let trainer = case
        .rank
        .main_run_delay
        .map(|delay| delay.0 >= receiving.0 / 2.0);
    let workers = case
        .of_busy(|worker| worker.run_delay)
        .map(|delay| delay.0 >= DELAYED);
    let held_up = trainer == Some(true) || workers == Some(true);
    (!case.loads_in_main() && !held_up && part.0 >= MOST_OF_THE_WAIT).then(|| {
        let text =
            format!("the trainer spends {receiving} of the time receiving batches that are ready");
        fact("receiving", receiving.0, MOST_OF_THE_WAIT, text)
    })
}

fn memory_pressure(case: &Case<'_>) -> Option<Evidence> {
    const PRESSURE: f64 = 0.2;
    let pressure = case.rates.host.pressure_memory?;
    (pressure.0 >= PRESSURE).then(|| {
        let text = format!("something waits for memory {pressure} of the time");
        fact("memory-pressure", pressure.0, PRESSURE, text)
    })
}

/// Share of the workers' busy time from which on one kind of sleep is what they are slow by.
const MOST_OF_BUSY: f64 = 0.4;

fn disk(case: &Case<'_>) -> Option<Evidence> {
    let share = case.of_busy(|worker| worker.disk)?;
    (share.0 >= MOST_OF_BUSY).then(|| {
        let text = format!("workers wait for the disk {share} of their busy time");
        fact("disk-wait", share.0, MOST_OF_BUSY, text)
    })
}

fn network(case: &Case<'_>) -> Option<Evidence> {
    let share = case.of_busy(|worker| worker.network)?;
    (share.0 >= MOST_OF_BUSY).then(|| {
        let text = format!("workers wait for the network {share} of their busy time");
        fact("network-wait", share.0, MOST_OF_BUSY, text)
    })
}

/// CPU time or the wait for it, of the workers' busy time: below this, CPUs are not what is short.
const MOSTLY_CPU: f64 = 0.5;

/// That share, where it is large enough.
fn mostly_cpu(case: &Case<'_>) -> Option<Share> {
    let on_cpu = |worker: &WorkerRates| {
        let running = Share(worker.cpu?.min(1.0));
        Some(Share(running.0 + worker.run_delay.map_or(0.0, |delay| delay.0)).clamped())
    };
    case.of_busy(on_cpu).filter(|share| share.0 >= MOSTLY_CPU)
}

fn cpu_quota(case: &Case<'_>) -> Option<Evidence> {
    const THROTTLED: f64 = 0.25;
    let group = case.cgroup()?;
    let throttled = group.throttled_periods?;
    (mostly_cpu(case).is_some() && throttled.0 >= THROTTLED).then(|| {
        let quota = group
            .cpu_quota
            .map_or(String::new(), |quota| format!(" of {quota:.1} CPUs"));
        let text =
            format!("the cgroup's quota{quota} cut short {throttled} of the scheduler periods");
        fact("cpu-quota", throttled.0, THROTTLED, text)
    })
}

/// Share of busy time that workers were runnable without running.
const DELAYED: f64 = 0.3;

/// Workers are kept to fewer CPUs than the job could use, and use those up.
fn cpu_affinity(case: &Case<'_>) -> Option<Evidence> {
    const USED_UP: f64 = 0.8;
    let delay = case.of_busy(|worker| worker.run_delay)?;
    let allowed = case
        .workers()
        .iter()
        .filter_map(|worker| worker.cpus_allowed)
        .max()?;
    let could = case.rates.host.cpus;
    let could = case
        .cgroup()
        .and_then(|group| group.cpuset)
        .map_or(could, |set| set.min(could));
    let used = case.workers_cpu()? / f64::from(allowed);
    (allowed < could && delay.0 >= DELAYED && used >= USED_UP).then(|| {
        let text = format!(
            "workers may run on {allowed} of {could} CPUs and wait for them {delay} of their busy time"
        );
        fact("cpu-affinity", delay.0, DELAYED, text)
    })
}

/// CPUs' worth of time that trainer and workers use or are runnable for.
fn cpu_wanted(case: &Case<'_>) -> f64 {
    let wanted = |cpu: Option<f64>, delay: Option<Share>| {
        cpu.unwrap_or(0.0) + delay.map_or(0.0, |delay| delay.0)
    };
    let workers = case.workers().iter();
    let workers: f64 = workers
        .map(|worker| wanted(worker.cpu, worker.run_delay))
        .sum();
    workers
        + wanted(
            case.rank.main_cpu.map(|cpu| cpu.0),
            case.rank.main_run_delay,
        )
}

/// Workers wait for CPUs that they themselves use up: where the job wants fewer than there are, others took them.
fn cpu_oversubscribed(case: &Case<'_>) -> Option<Evidence> {
    let delay = case.of_busy(|worker| worker.run_delay)?;
    let too_many = case.cpus().is_none_or(|cpus| cpu_wanted(case) > cpus);
    (mostly_cpu(case).is_some() && too_many && delay.0 >= DELAYED).then(|| {
        let text = format!("workers are runnable without running {delay} of their busy time");
        fact("run-delay", delay.0, DELAYED, text)
    })
}

fn cpu_preprocess(case: &Case<'_>) -> Option<Evidence> {
    let wanted = mostly_cpu(case)?;
    let cpu = case.of_busy(|worker| worker.cpu.map(|cpu| Share(cpu.min(1.0))));
    // The figure that is shown is the one that counts.
    let (share, how) = match cpu.filter(|cpu| cpu.0 >= MOSTLY_CPU) {
        Some(cpu) => (cpu, "are on the CPU"),
        None => (wanted, "are on a CPU or wait for one"),
    };
    let mut text = format!("workers {how} {share} of their busy time");
    if let Some((name, share)) = case.hottest() {
        text = format!("{text}, {share} in {name}");
    }
    Some(fact("worker-cpu", share.0, MOSTLY_CPU, text))
}

/// This rank waits much longer than the others of the same job.
fn straggler(case: &Case<'_>) -> Option<Evidence> {
    const APART: f64 = 0.2;
    let own = case.wait()?.share.0;
    let others = case
        .job
        .ranks
        .iter()
        .filter(|rank| rank.key != case.rank.key);
    let others = median(others.filter_map(|rank| Some(rank.wait?.share.0)).collect())?;
    (own - others >= APART).then(|| {
        let text = format!("other ranks wait {} of the time", Share(others));
        fact("straggler", own - others, APART, text)
    })
}

/// Most of the device's idle time passes in copies of batches that no computing hides. The reports hold sums
/// alone, so how much of the copies runs beside computing is not known: copies from memory that is not
/// pinned hold up the trainer, so none of it; with pinned memory as much as can be.
fn transfer(case: &Case<'_>) -> Option<Evidence> {
    const MOST_OF_THE_IDLE: f64 = 0.5;
    let device = case.rank.device.as_ref()?;
    let (copying, busy) = (device.copying?, device.busy?);
    let waiting = case.wait()?.share.0;
    let idle = case.reported_idle()?.0;
    let pinned = case.loader.and_then(|loader| loader.settings.pin_memory);
    let (exposed, bound) = match pinned {
        Some(true) => (copying.0 - busy.0, "at least "),
        Some(false) => (copying.0, ""),
        None => (copying.0, "up to "),
    };
    // What the device idles while the trainer waits for data is no copy.
    let exposed = exposed.min(idle - waiting).max(0.0);
    let part = Share::of(exposed, idle)?;
    (part.0 >= MOST_OF_THE_IDLE).then(|| {
        let text = format!(
            "batches are copied to the device {copying} of the time; it idles {bound}{} for that",
            Share(exposed)
        );
        fact("copying", part.0, MOST_OF_THE_IDLE, text)
    })
}

/// What looks like a wait for data is one for the lock: a batch is there, and cannot be taken.
fn gil_in_loader(case: &Case<'_>) -> Option<Evidence> {
    let part = part_of_wait(case, Some(case.rank.gil?.in_loader))?;
    gil(case).filter(|_| part.0 >= MOST_OF_THE_WAIT)
}

/// The main thread could go on, but another thread of its process runs Python. The step is slow by it, and no
/// timer around the loader shows that.
pub(super) fn gil(case: &Case<'_>) -> Option<Evidence> {
    const OFTEN: f64 = 0.2;
    let waits = case.rank.gil?;
    let waits = Share(waits.in_loader.0 + waits.outside.0).clamped();
    (waits.0 >= OFTEN).then(|| {
        let holder = case.rank.gil_holders.first();
        let holder = holder.map_or_else(String::new, |holder| {
            format!(", {} of it for {}", holder.share, holder.name)
        });
        let text = format!("main thread waits for Python's lock (GIL) {waits} of the time{holder}");
        fact("gil", waits.0, OFTEN, text)
    })
}

/// The main thread is seen in a call that waits until the GPU has done all of its work. The shorter waits
/// of `.item()` and its like leave no function of Python's on the stack.
fn sync(case: &Case<'_>) -> Option<Evidence> {
    const OFTEN: f64 = 0.2;
    let share = case.time_in(|name| name.starts_with("synchronize "));
    (share.0 >= OFTEN).then(|| {
        let text = format!("main thread in synchronize {share} of the time");
        fact("synchronize", share.0, OFTEN, text)
    })
}

/// The main thread never rests, and yet the GPU does: it cannot be given work any faster.
fn launch(case: &Case<'_>) -> Option<Evidence> {
    const NEVER_RESTS: f64 = 0.8;
    let cpu = case.rank.main_cpu?;
    (cpu.0 >= NEVER_RESTS).then(|| {
        let text = format!("main thread on a CPU {cpu} of the time");
        fact("main-thread-busy", cpu.0, NEVER_RESTS, text)
    })
}
