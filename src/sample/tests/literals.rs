//! Samples for tests: a machine and a job with round figures.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::sample::{
    BatchClock, BatchCount, CgroupSample, DiskSample, GpuProcess, GpuSample, HostSample, IoSample,
    JobSample, LoaderKind, LoaderSample, LoaderSettings, MainTally, OwnSample, PollTrace,
    PressureSample, ProcessPlace, ProcessSample, QueueSource, QueueTally, RankSample, Run,
    RunSource, Sample, Tail, Tier, Wait, WorkerNow, WorkerSample, WorkerTally,
};
use crate::units::{Bytes, Moment, Pid, ProcessKey};

pub(crate) fn secs(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap()
}

pub(crate) fn moment(seconds: f64) -> Moment {
    Moment {
        since_start: secs(seconds),
        wall: SystemTime::UNIX_EPOCH + secs(seconds),
    }
}

pub(crate) fn key(pid: i32) -> ProcessKey {
    ProcessKey {
        pid: Pid(pid),
        start_ticks: 1,
    }
}

pub(crate) fn wait(from: f64, to: f64, batch: Option<u64>) -> Wait {
    Wait {
        from: secs(from),
        to: secs(to),
        batch,
        first: None,
        begins: false,
    }
}

/// Returns a machine without a job. pipetop started 1000 s after boot.
pub(crate) fn machine(at: f64) -> Sample {
    Sample {
        host: HostSample {
            cpus: 4,
            cpu_busy: Some(secs(2.0 * at)),
            cpu_stolen: Some(secs(0.01 * at)),
            mem_total: Some(Bytes(64 << 30)),
            mem_available: Some(Bytes(32 << 30)),
            swapped_in: Some(0),
            pressure: Some(PressureSample {
                cpu: Some(secs(0.5 * at)),
                io: Some(Duration::ZERO),
                memory: None,
            }),
            boot_ticks_at_start: Some(100_000),
            ticks_per_second: Some(100),
            others: vec![],
        },
        disks: vec![disk(at)],
        gpus: vec![gpu(at)],
        own: OwnSample {
            cpu: Some(secs(0.01 * at)),
            rss: Some(Bytes(8 << 20)),
            late: 2,
        },
        gaps: Vec::new(),
        ..Sample::new(moment(at))
    }
}

/// A disk with 100 reads and 50 MB per second, 2 ms each.
fn disk(at: f64) -> DiskSample {
    DiskSample {
        device: "nvme0n1".to_owned(),
        reads: whole(100.0 * at),
        read_bytes: Bytes(whole(50e6 * at)),
        read_time: secs(0.2 * at),
        writes: 0,
        write_bytes: Bytes(0),
        write_time: Duration::ZERO,
        busy: secs(0.1 * at),
        queued: secs(0.2 * at),
        holds_job_files: true,
    }
}

fn gpu(at: f64) -> GpuSample {
    GpuSample {
        index: 0,
        uuid: Some("GPU-0".to_owned()),
        name: Some("NVIDIA H200".to_owned()),
        read_at: Some(moment(at)),
        util_percent: Some(40.0),
        util_samples: utilisation(at),
        mem_used: Some(Bytes(20 << 30)),
        mem_total: Some(Bytes(140 << 30)),
        processes: Some(vec![GpuProcess {
            pid: Pid(100),
            mem: Some(Bytes(20 << 30)),
            sm_percent: None,
            sm_at: None,
            place: ProcessPlace::Here,
        }]),
        ..GpuSample::default()
    }
}

/// Two samples per second, alternating between 30 and 50 %. The last three seconds of them, since samples overlap by
/// two seconds.
fn utilisation(at: f64) -> Tail<(u64, f64)> {
    let count = whole(2.0 * at);
    let of = |number: u64| match number % 2 {
        0 => (500_000 * number, 30.0),
        _ => (500_000 * number, 50.0),
    };
    Tail::new(count, (count.saturating_sub(6)..count).map(of))
}

/// Returns the machine with a job since time 0: ten batches and ten waits per second, 60 % of the time in waits, and
/// two workers that are busy 90 % of the time.
pub(crate) fn training(at: f64) -> Sample {
    let mut sample = machine(at);
    sample.job = Some(JobSample {
        key: key(100),
        command: "python train.py".to_owned(),
        run: Some(run()),
        access: Tier::T2,
        ranks: vec![rank(at)],
        others: vec![],
        cgroup: Some(CgroupSample {
            path: "/job".to_owned(),
            cpu_quota: Some(4.0),
            periods: Some(whole(10.0 * at)),
            throttled_periods: Some(whole(at)),
            cpuset: Some(4),
            ..CgroupSample::default()
        }),
        cpus_allowed: Some(4),
        ended: false,
    });
    sample
}

fn rank(at: f64) -> RankSample {
    // The waits of the last three seconds, since samples overlap by two seconds.
    let ended = whole(10.0 * at);
    let waits = (ended.saturating_sub(30)..ended).map(|number| {
        let from = 0.1 * number as f64;
        wait(from, from + 0.06, None)
    });
    RankSample {
        rank: Some(0),
        world_size: Some(1),
        process: process(at, 0.3),
        main: Some(MainTally {
            polls: whole(200.0 * at),
            observed: whole(100.0 * at),
            waiting: whole(100.0 * at),
            receiving: whole(20.0 * at),
            running: whole(80.0 * at),
            ..MainTally::default()
        }),
        waits: Tail::new(ended, waits),
        activity: BTreeMap::from([
            ("Tensor.item".to_owned(), whole(30.0 * at)),
            ("SGD.step".to_owned(), whole(10.0 * at)),
        ]),
        loaders: vec![LoaderSample {
            settings: LoaderSettings {
                num_workers: Some(2),
                prefetch_factor: Some(2),
                ..LoaderSettings::default()
            },
            workers: vec![worker(at, 0), worker(at, 1)],
            queue: Some(QueueTally {
                polls: whole(100.0 * at),
                empty: whole(75.0 * at),
                ready_sum: whole(50.0 * at),
                ready: 1,
                capacity: Some(4),
                source: QueueSource::Pipe,
                gone: 0,
            }),
            batches: Some(BatchCount {
                count: 500 + whole(10.0 * at),
                source: BatchClock::Iterator,
            }),
            ..LoaderSample::new(7, LoaderKind::PytorchProcesses)
        }],
        ..RankSample::new(key(100))
    }
}

pub(crate) fn process(at: f64, cpu: f64) -> ProcessSample {
    ProcessSample {
        state: Some('S'),
        cpu: Some(secs(cpu * at)),
        children_cpu: None,
        main_cpu: Some(secs(cpu * at)),
        main_run_delay: Some(secs(0.1 * at)),
        io: Some(IoSample {
            rchar: Bytes(whole(100e6 * at)),
            read_bytes: Bytes(whole(20e6 * at)),
            ..IoSample::default()
        }),
        major_faults: Some(whole(5.0 * at)),
        threads: Some(1),
        cpus_allowed: Some(4),
        rss: None,
    }
}

pub(crate) fn worker(at: f64, id: u32) -> WorkerSample {
    WorkerSample {
        key: key(200 + id.cast_signed()),
        id,
        thread: false,
        process: process(at, 0.8),
        tally: Some(WorkerTally {
            polls: whole(100.0 * at),
            idle: whole(10.0 * at),
            cpu: whole(80.0 * at),
            disk: whole(10.0 * at),
            now: WorkerNow::Cpu,
            ..WorkerTally::default()
        }),
        batches: Some(whole(5.0 * at)),
        activity: BTreeMap::from([("Image.resize".to_owned(), whole(80.0 * at))]),
        loads: None,
        polls: PollTrace::default(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "round figures of tests"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Returns the first rank of a sample's job.
pub(crate) fn first_rank(sample: &mut Sample) -> &mut RankSample {
    &mut sample.job.as_mut().unwrap().ranks[0]
}

/// Returns the first loader of a sample's first rank.
pub(crate) fn first_loader(sample: &mut Sample) -> &mut LoaderSample {
    &mut first_rank(sample).loaders[0]
}

fn run() -> Run {
    Run {
        id: "host-100-1".to_owned(),
        source: RunSource::Process,
        host: "host".to_owned(),
        user: Some("anna".to_owned()),
        ..Run::default()
    }
}
