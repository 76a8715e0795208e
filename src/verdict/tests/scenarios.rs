//! Tests of the judge on tables that a user can read: each file of `tests/scenarios/*.toml` has what was seen in a
//! window, and the verdict that must follow. Every wrong verdict becomes another file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::model::rates::{
    Activity, Bounds, CgroupRates, CounterRates, DeviceRates, DiskRates, Estimate, GilRates,
    GpuRates, HostRates, JobRates, LoaderRates, QueueRates, RankRates, Rates, StepRates,
    ValidationRates, WorkerRates,
};
use crate::model::{Oscillation, Overlap, Progress, between};
use crate::sample::literals::secs;
use crate::sample::{
    BatchClock, BatchCount, GpuProcess, GpuSample, GpuUser, JobSample, LoaderKind, LoaderSample,
    LoaderSettings, MainTally, OtherProgram, ProcessPlace, QueueSource, RankSample, Reported,
    SYNCHRONIZE, Sample, Tier, UsedBy, WorkerNow,
};
use crate::units::{BytesPerSecond, Moment, Pid, ProcessKey, Share};
use crate::verdict::{Cause, Kind, Limit, Verdict, assess};
use serde::Deserialize;

/// What was seen, and the verdict that must follow. Shares are of the time, from 0 to 1. A field that is absent was not
/// seen.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    /// What the scenario represents, in a sentence.
    what: String,
    #[serde(default = "twelve")]
    seconds: f64,
    #[serde(default = "hundred")]
    batches_in_all: u64,
    /// Whether anything counts the batches.
    #[serde(default = "yes")]
    counted: bool,
    /// Whether the job has ended.
    #[serde(default)]
    ended: bool,
    seconds_without_batch: Option<f64>,
    usual_pause: Option<f64>,
    /// Seconds since the newest workers were started, if these may not be the first.
    seconds_of_workers: Option<f64>,
    #[serde(default = "two")]
    access: u8,
    #[serde(default = "sixteen")]
    cpus: u32,
    /// The busy share of the machine's CPUs, and the cores that the job uses of them.
    host_cpu: Option<f64>,
    job_cpu_cores: Option<f64>,
    /// Programs outside the job, each with the number of CPUs that it uses.
    #[serde(default)]
    other_programs: Vec<(String, f64)>,
    cpu_quota: Option<f64>,
    throttled_periods: Option<f64>,
    /// Whether the cgroup is frozen now; absent = not known.
    #[serde(default)]
    frozen: Option<bool>,
    pressure_cpu: Option<f64>,
    pressure_memory: Option<f64>,
    swapped_in_per_s: Option<f64>,
    /// The disk that holds the job's files.
    disk: Option<Disk>,
    #[serde(default)]
    gpu_busy: Vec<f64>,
    /// Further figures of the first GPU.
    #[serde(default)]
    gpu: Gpu,
    rank: Rank,
    #[serde(default)]
    other_ranks_wait: Vec<f64>,
    /// Whether the other ranks wait for batches that one of the ranks sends.
    #[serde(default)]
    others_get_batches: bool,
    expected: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rank {
    /// `?` = it cannot be read.
    #[serde(default = "sleeping")]
    state: char,
    /// Whether a loader was recognised.
    #[serde(default = "yes")]
    has_loader: bool,
    /// Name of a loader of another library; empty = it has no name.
    other_loader: Option<String>,
    /// Known only of PyTorch's loader.
    batch_size: Option<u32>,
    waiting: Option<f64>,
    #[serde(default)]
    receiving: f64,
    #[serde(default)]
    loading: f64,
    /// Part of `waiting`: for batches that another rank sends.
    #[serde(default)]
    dispatched: f64,
    /// Part of `loading`: blocked on a network.
    #[serde(default)]
    network: f64,
    /// Part of `loading`: outside PyTorch's loader.
    #[serde(default)]
    in_loop: f64,
    /// Part of `waiting`: while the pinning thread is working on a batch.
    #[serde(default)]
    pinning: f64,
    /// Half the width of the interval of the wait share.
    #[serde(default = "narrow")]
    wait_within: f64,
    /// Half the width of the wait share's interval for an early verdict; absent = there is none.
    early_within: Option<f64>,
    /// Share of the time in which the loader was not recognised.
    #[serde(default)]
    unrecognised: f64,
    /// Batches in the window.
    #[serde(default = "hundred")]
    batches: u64,
    startup: Option<f64>,
    /// Share of the time in waits for the first batch of an epoch.
    first_batches: Option<f64>,
    run_delay: Option<f64>,
    /// Share of the time in which nothing of the process ran; absent = not known.
    blocked: Option<f64>,
    #[serde(default = "hardly")]
    main_cpu: f64,
    world_size: Option<u32>,
    #[serde(default)]
    nccl: bool,
    /// Functions in which the main thread was seen.
    #[serde(default)]
    activity: Vec<Seen>,
    /// Share of the polls whose stack names a function; absent = all but those in waits.
    named: Option<f64>,
    /// Share of the time in which stacks show a model or its training; absent = not known.
    computing: Option<f64>,
    /// What the main thread waits for other than batches, as shares of the time.
    #[serde(default)]
    not_data: Vec<Seen>,
    /// Half the width of the interval of waits for the device.
    #[serde(default = "narrow")]
    synchronize_within: f64,
    /// Share of the time in which the main thread waits for the interpreter's lock; absent = not known.
    gil: Option<f64>,
    /// Part of `gil`: in the loader.
    #[serde(default)]
    gil_in_loader: f64,
    #[serde(default)]
    gil_holders: Vec<Seen>,
    /// Overlap of the rank's waits with the idle time of the first GPU.
    beside_gpu: Option<OverlapSpec>,
    /// Share of the time in waits that were seen one by one; absent = in all of them.
    counted_waits: Option<f64>,
    /// Passes through the data since attaching.
    epoch: Option<u64>,
    /// Share of the time in validation, and the part of that in the validation's loader.
    validation: Option<(f64, f64)>,
    batches_per_s: Option<f64>,
    num_workers: Option<u32>,
    in_order: Option<bool>,
    pin_memory: Option<bool>,
    persistent_workers: Option<bool>,
    stopped: Option<f64>,
    /// Seconds since the loader's workers ended, as between two epochs.
    gone_seconds: Option<f64>,
    /// Batches of the longest pass through the data.
    longest_pass: Option<u64>,
    queue_empty: Option<f64>,
    /// The same as `queue_empty` if absent.
    queue_empty_at_most: Option<f64>,
    /// Length of the long waits; absent = not known.
    wait_seconds: Option<f64>,
    /// How full the queue is; absent = not known.
    occupancy: Option<f64>,
    /// What the rank's device reports: the share in which it computes, and in which it copies. `rests`: whether it is
    /// idle at the end of each step.
    device_busy: Option<f64>,
    copying: Option<f64>,
    /// Share of the time in waits in which the device has nothing to do, by the job's own events.
    idle_in_waits: Option<f64>,
    #[serde(default = "yes")]
    rests: bool,
    /// Reports of the rank's steps. If present, the waits and steps above are what polls saw at the same time.
    reported: Option<Reports>,
    #[serde(default)]
    workers: Vec<Worker>,
    /// Share of the time in waits for this loader, if the rank takes batches from others as well.
    loader_wait: Option<f64>,
    #[serde(default)]
    other_loaders: Vec<OtherLoader>,
}

/// Another loader from which the rank takes batches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherLoader {
    wait: f64,
    batches_per_s: f64,
    /// Step time of the validation, if this is the validation's loader.
    validation_step_ms: Option<f64>,
    workers: Vec<Worker>,
}

/// Reads and bytes per second.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    reads: f64,
    bytes: f64,
}

fn disk(seen: &Disk) -> DiskRates {
    DiskRates {
        device: "sda".into(),
        read: BytesPerSecond(seen.bytes),
        write: BytesPerSecond(0.0),
        reads_per_s: seen.reads,
        util: Share(0.9),
        await_ms: None,
        queue_depth: 1.0,
        holds_job_files: true,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpu {
    sm_active: Option<f64>,
    tensor: Option<f64>,
    dram: Option<f64>,
    copies_only: Option<f64>,
    #[serde(default)]
    throttle: Vec<String>,
    /// Seconds from one rise of the utilisation to the next.
    swing: Option<f64>,
    /// Half the width of the idle share's interval for an early verdict; absent = there is none.
    early_within: Option<f64>,
    /// Percent of the multiprocessors' time that a process of another program uses.
    other_program: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    name: String,
    share: f64,
}

/// Bounds of the share in which the rank waits while the GPU is idle, and the correlation of the two.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverlapSpec {
    both: (f64, f64),
    correlation: Option<f64>,
}

/// Equal steps that were reported in the window.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reports {
    steps: u32,
    #[serde(default)]
    lost: u32,
    wait_ms: f64,
    step_ms: f64,
    /// Seconds between the last reported step and the end of the window.
    #[serde(default)]
    silent: f64,
}

/// A number of equal workers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Worker {
    #[serde(default = "one")]
    count: u32,
    /// Whether these are threads of the trainer.
    #[serde(default)]
    thread: bool,
    /// Whether a signal or a debugger has stopped the worker.
    #[serde(default)]
    stopped: bool,
    /// Share of the time in which the worker was stopped.
    was_stopped: Option<f64>,
    busy: Option<f64>,
    cpu: Option<f64>,
    /// The main thread's part of `cpu`; absent = all of it.
    main_cpu: Option<f64>,
    run_delay: Option<f64>,
    #[serde(default)]
    disk: f64,
    #[serde(default)]
    network: f64,
    #[serde(default)]
    asleep: f64,
    /// Part of `disk` and `network`: in calls that open, list or query files.
    #[serde(default)]
    about_files: f64,
    /// Share in which a command that the worker waits for is on a CPU.
    #[serde(default)]
    commands: f64,
    /// Part of `asleep`: on a lock that processes share.
    #[serde(default)]
    locked: f64,
    /// Shares in which it trains a model, or runs one.
    #[serde(default)]
    trains: f64,
    #[serde(default)]
    infers: f64,
    /// Page faults per second that had to wait for a read.
    major_faults: Option<f64>,
    /// Bytes per second from block devices, and by read calls.
    read: Option<f64>,
    rchar: Option<f64>,
    batches_per_s: Option<f64>,
    cpus_allowed: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: Kind,
    cause: Option<Cause>,
    /// Words that some advice must contain, in this order; and words that no advice may contain.
    #[serde(default)]
    advice: Vec<String>,
    #[serde(default)]
    not_advice: Vec<String>,
    limit: Option<Limit>,
    /// Words that some fact, or the reason of a missing signal, must contain; and words that none may contain.
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    not_says: Vec<String>,
    /// Ids of facts or of missing signals that must be there.
    #[serde(default)]
    evidence: Vec<String>,
    /// Ids of facts that must support the verdict, and of those that must speak against it.
    #[serde(default)]
    supporting: Vec<String>,
    #[serde(default)]
    against: Vec<String>,
    #[serde(default)]
    missing: Vec<String>,
    /// Ids of missing signals that must not be there.
    #[serde(default)]
    not_missing: Vec<String>,
    headline: Option<String>,
    workers_match: Option<u32>,
    workers_advised: Option<u32>,
    confidence_below: Option<f64>,
    confidence_above: Option<f64>,
    stall_between: Option<(f64, f64)>,
    /// Maximum width of the stall's interval.
    stall_narrower: Option<f64>,
    /// Minimum width of the stall's interval.
    stall_wider: Option<f64>,
    wait_between: Option<(f64, f64)>,
    /// Minimum width of the waits' interval.
    wait_wider: Option<f64>,
}

fn yes() -> bool {
    true
}
fn twelve() -> f64 {
    12.0
}
fn hundred() -> u64 {
    100
}
fn two() -> u8 {
    2
}
fn sixteen() -> u32 {
    16
}
fn one() -> u32 {
    1
}
fn sleeping() -> char {
    'S'
}
fn narrow() -> f64 {
    0.02
}
fn hardly() -> f64 {
    0.1
}

fn key(pid: i32) -> ProcessKey {
    ProcessKey {
        pid: Pid(pid),
        start_ticks: 1,
    }
}

fn workers(workers: &[Worker]) -> Vec<WorkerRates> {
    let each = workers.iter();
    let each = each.flat_map(|worker| (0..worker.count).map(move |_| worker));
    (0..)
        .zip(each)
        .map(|(id, worker)| WorkerRates {
            key: key(100 + i32::try_from(id).unwrap()),
            id,
            thread: worker.thread,
            now: if worker.stopped {
                WorkerNow::Stopped
            } else {
                WorkerNow::Cpu
            },
            cpu: worker.cpu,
            main_cpu: worker.main_cpu.or(worker.cpu).map(Share),
            run_delay: worker.run_delay.map(Share),
            busy: worker.busy.map(Share),
            stopped: worker.was_stopped.map(Share),
            disk: Some(Share(worker.disk)),
            network: Some(Share(worker.network)),
            handover: Some(Share::ZERO),
            asleep: Some(Share(worker.asleep)),
            about_files: Some(Share(worker.about_files)),
            commands: Some(Share(worker.commands)),
            locked: Some(Share(worker.locked)),
            trains: Some(Share(worker.trains)),
            infers: Some(Share(worker.infers)),
            read: worker.read.map(BytesPerSecond),
            rchar: worker.rchar.map(BytesPerSecond),
            write: None,
            major_faults_per_s: worker.major_faults,
            batches_per_s: worker.batches_per_s,
            load_ms: None,
            cpus_allowed: worker.cpus_allowed,
            activity: vec![],
            loads: None,
        })
        .collect()
}

fn loader(rank: &Rank) -> LoaderRates {
    let workers = workers(&rank.workers);
    let num_workers = rank
        .num_workers
        .unwrap_or(u32::try_from(workers.len()).unwrap());
    LoaderRates {
        gone_seconds: rank.gone_seconds,
        id: 0,
        kind: if rank.other_loader.is_some() {
            LoaderKind::Other
        } else if num_workers == 0 {
            LoaderKind::PytorchMain
        } else {
            LoaderKind::PytorchProcesses
        },
        name: rank.other_loader.clone().filter(|name| !name.is_empty()),
        settings: LoaderSettings {
            // Threads have no setting: they are counted as they are seen.
            num_workers: workers
                .iter()
                .all(|worker| !worker.thread)
                .then_some(num_workers),
            prefetch_factor: Some(2),
            batch_size: rank.batch_size,
            in_order: rank.in_order,
            pin_memory: rank.pin_memory,
            persistent_workers: rank.persistent_workers,
            ..LoaderSettings::default()
        },
        workers_started: 0,
        queue: rank.queue_empty.map(|empty| QueueRates {
            ready: 0,
            mean_ready: 0.0,
            capacity: Some(2 * num_workers),
            occupancy: rank.occupancy.map(Share),
            empty: Share(empty),
            empty_at_most: Share(rank.queue_empty_at_most.unwrap_or(empty)),
            source: QueueSource::Pipe,
        }),
        batches_per_s: rank.batches_per_s,
        wait: rank.loader_wait.map(Share),
        validates: false,
        step_ms: None,
        batches_taken: None,
        longest_pass: rank.longest_pass,
        workers,
    }
}

/// Returns the other loaders, configured like the first one except for what the scenario gives.
fn other_loaders(rank: &Rank) -> impl Iterator<Item = LoaderRates> {
    let others = (1..).zip(&rank.other_loaders);
    others.map(|(id, other)| {
        let loader = loader(rank);
        let workers = workers(&other.workers);
        LoaderRates {
            id,
            settings: LoaderSettings {
                num_workers: u32::try_from(workers.len()).ok(),
                ..loader.settings
            },
            workers,
            wait: Some(Share(other.wait)),
            validates: other.validation_step_ms.is_some(),
            step_ms: other.validation_step_ms,
            batches_per_s: Some(other.batches_per_s),
            ..loader
        }
    })
}

fn estimate(share: f64, within: f64, early_within: Option<f64>) -> Estimate {
    Estimate {
        share: Share(share),
        low: Share(share - within).clamped(),
        high: Share(share + within).clamped(),
        polls: 1000,
        unknown: Share::ZERO,
        unclear: Share::ZERO,
        early: early_within.map(|within| around(share, within)),
    }
}

fn around(share: f64, within: f64) -> Bounds {
    Bounds {
        low: Share(share - within).clamped(),
        high: Share(share + within).clamped(),
    }
}

fn device(rank: &Rank) -> Option<DeviceRates> {
    rank.device_busy.or(rank.copying).or(rank.idle_in_waits)?;
    Some(DeviceRates {
        name: Some("simulated".into()),
        notice: None,
        busy: rank.device_busy.map(Share),
        copying: rank.copying.map(Share),
        idle_in_waits: rank.idle_in_waits.map(Share),
        rests_with_each_step: rank.rests,
    })
}

fn rank(scenario: &Scenario) -> RankRates {
    let rank = &scenario.rank;
    let share = rank
        .waiting
        .map(|waiting| waiting + rank.receiving + rank.loading);
    let loader = loader(rank);
    let busy: f64 = loader
        .workers
        .iter()
        .filter_map(|worker| Some(worker.busy?.0))
        .sum();
    let period = rank.batches_per_s.map(|rate| 1000.0 / rate);
    let part = |share: Option<f64>| Some(share? * period?);
    RankRates {
        key: key(1),
        rank: None,
        number: 0,
        world_size: rank.world_size,
        local_rank: None,
        nccl: rank.nccl,
        state: Some(rank.state).filter(|state| *state != '?'),
        wait: share.map(|share| Estimate {
            unknown: Share(rank.unrecognised),
            unclear: Share(rank.unrecognised),
            ..estimate(share, rank.wait_within, rank.early_within)
        }),
        waiting: rank.waiting.map(Share),
        receiving: rank.waiting.map(|_| Share(rank.receiving)),
        loading: rank.waiting.map(|_| Share(rank.loading)),
        dispatched: rank.waiting.map(|_| Share(rank.dispatched)),
        pinning: rank.waiting.map(|_| Share(rank.pinning)),
        network: rank.waiting.map(|_| Share(rank.network)),
        in_loop: rank.waiting.map(|_| Share(rank.in_loop)),
        disk: None,
        polled: Some(Share::ONE),
        stopped: rank.stopped.map(Share),
        blocked: rank.blocked.map(Share),
        computing: rank.computing.map(Share),
        main_cpu: Some(Share(rank.main_cpu)),
        main_run_delay: rank.run_delay.map(Share),
        io: None,
        not_data: rank.not_data.iter().map(activity).collect(),
        synchronized_at_least: synchronized_at_least(rank),
        epoch: rank.epoch,
        validation: rank.validation.map(|(time, waiting)| ValidationRates {
            time: Share(time),
            waiting: Share(waiting),
        }),
        startup: rank.startup.map(Share),
        first_batches: rank.first_batches.map(Share),
        period_batches: None,
        wait_seconds: rank.wait_seconds,
        step: StepRates {
            batches: rank.batches_per_s.map(|_| rank.batches),
            batches_per_s: rank.batches_per_s,
            step_ms: part(share.map(|share| 1.0 - share)),
            wait_ms: part(share),
            load_ms: part(Some(busy)).filter(|_| busy > 0.0),
        },
        overlaps: overlaps(scenario),
        slow_overlaps: vec![],
        device: device(rank),
        activity: rank.activity.iter().map(activity).collect(),
        named: rank.named.map(Share),
        gil: rank.gil.map(|gil| GilRates {
            in_loader: Share(rank.gil_in_loader),
            outside: Share(gil - rank.gil_in_loader),
        }),
        gil_holders: rank.gil_holders.iter().map(activity).collect(),
        loaders: {
            let own = rank.has_loader.then_some(loader);
            own.into_iter().chain(other_loaders(rank)).collect()
        },
    }
}

fn synchronized_at_least(rank: &Rank) -> Share {
    let mut waits = rank.not_data.iter();
    let wait = waits.find(|wait| wait.name == SYNCHRONIZE);
    let least = wait.map_or(0.0, |wait| wait.share - rank.synchronize_within);
    Share(least).clamped()
}

fn activity(seen: &Seen) -> Activity {
    Activity {
        name: seen.name.clone(),
        share: Share(seen.share),
    }
}

fn overlaps(scenario: &Scenario) -> Vec<Overlap> {
    let rank = &scenario.rank;
    let waits = rank.waiting.unwrap_or(0.0) + rank.receiving + rank.loading;
    let busy = scenario.gpu_busy.first().copied().unwrap_or(0.0);
    let overlap = |beside: &OverlapSpec| Overlap {
        gpu: 0,
        seconds: scenario.seconds,
        wait: Share(rank.counted_waits.unwrap_or(waits)),
        idle: Share(1.0 - busy),
        low: Share(beside.both.0),
        high: Share(beside.both.1),
        correlation: beside.correlation,
    };
    rank.beside_gpu.iter().map(overlap).collect()
}

/// Returns the first rank as the driver itself lists it.
fn listed() -> GpuUser {
    GpuUser {
        pid: Pid(1),
        by: UsedBy::Listed,
        instance: None,
    }
}

fn on_gpu(pid: i32, sm_percent: f64) -> GpuProcess {
    GpuProcess {
        pid: Pid(pid),
        mem: None,
        sm_percent: Some(sm_percent),
        sm_at: None,
        place: ProcessPlace::Here,
    }
}

fn gpu_with(gpu: &Gpu) -> GpuRates {
    GpuRates {
        now: GpuSample {
            visible_to_job: Some(true),
            throttle: Some(gpu.throttle.clone()),
            users: gpu.other_program.map(|_| vec![listed()]),
            processes: gpu.other_program.map(|percent| vec![on_gpu(99, percent)]),
            ..GpuSample::default()
        },
        counters: CounterRates {
            sm_active: gpu.sm_active.map(Share),
            sm_occupancy: None,
            tensor: gpu.tensor.map(Share),
            dram: gpu.dram.map(Share),
        },
        copies_only: gpu.copies_only.map(Share),
        swing: gpu.swing.map(|period| Oscillation {
            seconds: 12.0,
            period,
            regular: true,
            resting: Share(0.5),
        }),
        ..GpuRates::default()
    }
}

/// Returns the rank with the rates of its reports, if it has any.
fn reporting_rank(scenario: &Scenario) -> RankRates {
    let seen = rank(scenario);
    let Some(reports) = &scenario.rank.reported else {
        return seen;
    };
    let end = scenario.seconds - reports.silent;
    let all = f64::from(reports.steps);
    let reported = Reported {
        steps: reports.steps.into(),
        lost: reports.lost.into(),
        waited: secs(all * reports.wait_ms / 1000.0),
        stepped: secs(all * reports.step_ms / 1000.0),
        last_to: secs(end),
        ..Reported::default()
    };
    let polls = |share: Option<f64>| Share(1000.0 * share.unwrap_or_default());
    let main = scenario.rank.waiting.map(|waiting| MainTally {
        polls: 1000,
        waiting: round(polls(Some(waiting))),
        receiving: round(polls(Some(scenario.rank.receiving))),
        loading: round(polls(Some(scenario.rank.loading))),
        ..MainTally::default()
    });
    let sample = |at: f64, main, reported| sample(at, main, Some(reported));
    let older = sample(0.0, None, Reported::default());
    let rates = between(&older, &sample(scenario.seconds, main, reported)).unwrap();
    let exact = rates.job.unwrap().ranks.remove(0);
    RankRates {
        wait: exact.wait,
        waiting: exact.waiting,
        receiving: exact.receiving,
        loading: exact.loading,
        step: StepRates {
            load_ms: seen.step.load_ms,
            ..exact.step
        },
        ..seen
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of a table"
)]
fn round(count: Share) -> u64 {
    count.0.round() as u64
}

/// Returns a machine with one rank and nothing else.
fn sample(at: f64, main: Option<MainTally>, reported: Option<Reported>) -> Sample {
    let steps = reported.as_ref().map_or(0, |reported| reported.steps);
    let loader = LoaderSample {
        batches: Some(BatchCount {
            count: steps,
            source: BatchClock::Probe,
        }),
        ..LoaderSample::new(0, LoaderKind::Reported)
    };
    Sample {
        job: Some(JobSample {
            ranks: vec![RankSample {
                main,
                reported,
                loaders: vec![loader],
                ..RankSample::new(key(1))
            }],
            ..JobSample::new(key(1), "python train.py", Tier::T3)
        }),
        ..Sample::new(Moment {
            since_start: secs(at),
            wall: SystemTime::UNIX_EPOCH + secs(at),
        })
    }
}

fn rates(scenario: &Scenario) -> Rates {
    let first = reporting_rank(scenario);
    let others = (2..)
        .zip(&scenario.other_ranks_wait)
        .map(|(pid, wait)| RankRates {
            key: key(pid),
            wait: Some(estimate(*wait, 0.02, None)),
            dispatched: scenario.others_get_batches.then_some(Share(*wait)),
            loaders: vec![],
            ..first.clone()
        });
    let ranks: Vec<_> = std::iter::once(first.clone()).chain(others).collect();
    let read = ranks.iter().flat_map(RankRates::workers);
    let read: Option<f64> = read.map(|worker| Some(worker.read?.0)).sum();
    let gpus = (0..).zip(&scenario.gpu_busy).map(|(index, busy)| {
        let others = Gpu::default();
        let more = if index == 0 { &scenario.gpu } else { &others };
        let mut gpu = gpu_with(more);
        gpu.now.index = index;
        gpu.util_percent = Some(busy * 100.0);
        gpu.busy = Some(Share(*busy));
        gpu.early_idle = more.early_within.map(|within| around(1.0 - busy, within));
        gpu
    });
    Rates {
        seconds: scenario.seconds,
        host: HostRates {
            cpus: scenario.cpus,
            cpu: scenario.host_cpu.map(Share),
            others: scenario
                .other_programs
                .iter()
                .map(|(name, cpus)| OtherProgram {
                    name: name.clone(),
                    cpus: *cpus,
                })
                .collect(),
            pressure_cpu: scenario.pressure_cpu.map(Share),
            pressure_memory: scenario.pressure_memory.map(Share),
            swapped_in_per_s: scenario.swapped_in_per_s,
            ..HostRates::default()
        },
        disks: scenario.disk.iter().map(disk).collect(),
        gpus: gpus.collect(),
        job: Some(JobRates {
            key: key(1),
            command: "python train.py".into(),
            run: None,
            access: [Tier::T0, Tier::T1, Tier::T2, Tier::T3][usize::from(scenario.access)],
            ended: scenario.ended,
            ranks,
            cgroup: Some(CgroupRates {
                cpu_quota: scenario.cpu_quota,
                throttled_periods: scenario.throttled_periods.map(Share),
                frozen: scenario.frozen,
                ..CgroupRates::default()
            }),
            cpus_allowed: Some(scenario.cpus),
            cpu_cores: scenario.job_cpu_cores,
            read: read.map(BytesPerSecond),
            rchar: None,
        }),
        own_cpu: None,
    }
}

fn read(path: &Path) -> Scenario {
    let text = fs::read_to_string(path).unwrap();
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn judge(scenario: &Scenario) -> (Rates, Verdict) {
    let progress = Progress {
        seconds: scenario.seconds,
        batches: scenario.counted.then_some(scenario.batches_in_all),
        seconds_without_batch: scenario.seconds_without_batch,
        usual_pause: scenario.usual_pause,
        seconds_of_workers: scenario.seconds_of_workers,
    };
    let rates = rates(scenario);
    let verdict = assess(Some(&rates), &progress, &[]);
    (rates, verdict)
}

/// Returns what was seen in each scenario, with the verdict.
pub(crate) fn all() -> Vec<(PathBuf, Rates, Verdict)> {
    let judged = scenarios().into_iter().map(|path| {
        let (rates, verdict) = judge(&read(&path));
        (path, rates, verdict)
    });
    judged.collect()
}

fn check(path: &Path) {
    let name = path.file_name().unwrap().to_string_lossy();
    let scenario = read(path);
    let (_, verdict) = judge(&scenario);
    let expected = &scenario.expected;
    let about = format!("{name}: {}\n{verdict:#?}", scenario.what);
    assert_eq!(
        (verdict.kind, verdict.cause),
        (expected.kind, expected.cause),
        "{about}"
    );
    let advised = |word: &String| verdict.advice.iter().any(|advice| advice.contains(word));
    let place = |word: &String| verdict.advice.iter().position(|it| it.contains(word));
    let places: Option<Vec<_>> = expected.advice.iter().map(place).collect();
    assert!(places.is_some_and(|places| places.is_sorted()), "{about}");
    assert_eq!(verdict.limit, expected.limit, "{about}");
    let facts = verdict.evidence.iter().map(|fact| &fact.text);
    let texts: Vec<&String> = facts
        .chain(verdict.missing.iter().map(|missing| &missing.why))
        .collect();
    let said = |words: &String| texts.iter().any(|text| text.contains(words));
    assert!(expected.says.iter().all(said), "{about}");
    assert!(!expected.not_says.iter().any(said), "{about}");
    assert!(!expected.not_advice.iter().any(advised), "{about}");
    for id in &expected.evidence {
        assert!(
            verdict.evidence.iter().any(|fact| fact.id == id),
            "no {id} in {about}"
        );
    }
    for (ids, supports) in [(&expected.supporting, true), (&expected.against, false)] {
        let facts = &verdict.evidence;
        let on_this_side = |id: &String| {
            facts
                .iter()
                .any(|it| it.id == id && it.supports == supports)
        };
        assert!(ids.iter().all(on_this_side), "{about}");
    }
    let missing = |id: &String| verdict.missing.iter().any(|missing| missing.id == *id);
    assert!(expected.missing.iter().all(missing), "{about}");
    assert!(!expected.not_missing.iter().any(missing), "{about}");
    if let Some(headline) = &expected.headline {
        assert_eq!(verdict.headline(None).loss[0], *headline, "{about}");
    }
    let workers = verdict.workers;
    if expected.workers_match.is_some() {
        let found = workers.and_then(|workers| workers.match_step);
        assert_eq!(found, expected.workers_match, "{about}");
    }
    if expected.workers_advised.is_some() {
        assert_eq!(
            workers.and_then(|workers| workers.advised),
            expected.workers_advised,
            "{about}"
        );
    }
    check_figures(&verdict, expected, &about);
}

/// Checks the verdict's shares and its confidence.
fn check_figures(verdict: &Verdict, expected: &Expected, about: &str) {
    let confidence = verdict.confidence.0;
    assert!(
        expected
            .confidence_below
            .is_none_or(|most| confidence < most),
        "{about}"
    );
    assert!(
        expected
            .confidence_above
            .is_none_or(|least| confidence > least),
        "{about}"
    );
    let waits = verdict.wait;
    if let Some((low, high)) = expected.wait_between {
        let wait = waits.map(|wait| wait.share.0);
        assert!(
            wait.is_some_and(|wait| (low..=high).contains(&wait)),
            "{about}"
        );
    }
    if let Some(least) = expected.wait_wider {
        let width = waits.map(|wait| wait.high.0 - wait.low.0);
        assert!(width.is_some_and(|width| width >= least), "{about}");
    }
    if let Some(most) = expected.stall_narrower {
        let width = verdict.stall.map(|stall| stall.high.0 - stall.low.0);
        assert!(width.is_some_and(|width| width <= most), "{about}");
    }
    if let Some(least) = expected.stall_wider {
        let width = verdict.stall.map(|stall| stall.high.0 - stall.low.0);
        assert!(width.is_some_and(|width| width >= least), "{about}");
    }
    if let Some((low, high)) = expected.stall_between {
        let stall = verdict.stall.map(|stall| stall.share.0);
        assert!(
            stall.is_some_and(|stall| (low..=high).contains(&stall)),
            "{about}"
        );
    }
}

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    files(&folder)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn the_judge_is_right_on_every_scenario() {
    let paths = scenarios();
    assert!(paths.len() >= 25, "scenarios went missing: {}", paths.len());
    for path in paths {
        check(&path);
    }
}

/// A new cause needs one file in `rules/` and one scenario: fails if one of them is missing.
#[test]
fn every_rule_file_is_listed_and_has_a_scenario() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let expected: Vec<Cause> = scenarios()
        .iter()
        .filter_map(|path| read(path).expected.cause)
        .collect();
    let rules = files(&root.join("src/verdict/rules"));
    assert_eq!(
        rules.len(),
        Cause::ALL.len(),
        "rule files and listed causes"
    );
    for path in rules {
        let file = path.file_stem().unwrap().to_string_lossy();
        let name = file.replace('_', "-");
        let cause = Cause::ALL.iter().find(|cause| cause.to_string() == name);
        let cause = cause.unwrap_or_else(|| panic!("{name} is not in the list of rules.rs"));
        assert!(
            expected.contains(cause),
            "{name} has no file in tests/scenarios"
        );
    }
}
