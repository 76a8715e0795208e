//! Reports for tests: a job and a machine with known figures.

use std::time::Duration;

use crate::model::Model;
use crate::model::literals::{first_loader, first_rank, moment, secs, training};
use crate::report::Report;
use crate::sample::{
    Absent, BatchLoad, DeviceTime, Gap, GpuCounters, GpuHealth, GpuInstance, GpuProcess,
    GpuTraffic, GpuUser, JobCandidate, Link, ProcessPlace, Reported, Sample, UsedBy, WorkerLoads,
    Xid,
};
use crate::units::{Bytes, BytesPerSecond, Pid, Share};
use crate::verdict::{
    Cause, Evidence, Expected, Headspace, Interval, Kind, Level, Limit, Missing, Verdict,
    WarmingUp, WorkerAdvice,
};

fn interval(share: f64, low: f64, high: f64) -> Interval {
    Interval {
        share: Share(share),
        low: Share(low),
        high: Share(high),
    }
}

pub(super) fn empty_verdict() -> Verdict {
    Verdict {
        kind: Kind::WarmingUp,
        cause: None,
        level: Level::None,
        rank: None,
        rank_key: None,
        wait: None,
        gpu_idle: None,
        stall: None,
        confidence: Share::ZERO,
        headspace: None,
        workers: None,
        what_if: Err("there is no verdict yet".to_owned()),
        limit: None,
        period_batches: None,
        evidence: Vec::new(),
        missing: Vec::new(),
        advice: Vec::new(),
        seconds: 0.0,
        batches: None,
        warming_up: Some(WarmingUp {
            batches: Some(5),
            batches_needed: 20,
            seconds: 3.0,
            seconds_needed: 10.0,
            unclear: false,
        }),
    }
}

pub(super) fn full_verdict() -> Verdict {
    let fact = |id, supports, text: &str| Evidence {
        id,
        supports,
        value: 0.910_000_000_1,
        threshold: Some(0.5),
        text: text.to_owned(),
    };
    Verdict {
        kind: Kind::DataBound,
        cause: Some(Cause::CpuPreprocess),
        level: Level::High,
        rank: Some(0),
        wait: Some(interval(0.6, 0.55, 0.65)),
        gpu_idle: Some(Share(0.6)),
        stall: Some(interval(0.633_333_333, 0.61, 0.66)),
        confidence: Share(0.94),
        headspace: Some(Headspace {
            speedup_max: f64::INFINITY,
            step_ms_now: Some(100.0),
            step_ms_free: Some(40.0),
        }),
        workers: Some(WorkerAdvice {
            now: 2,
            match_step: Some(5),
            cpu_allows: Some(4),
            advised: Some(4),
        }),
        what_if: Ok(vec![Expected {
            workers: 5,
            wait: interval(0.0, 0.0, 0.083_333_333),
            batches_per_s: 24.999_999,
        }]),
        period_batches: Some(2),
        evidence: vec![
            fact("queue-empty", true, "queue empty 91 % of the time"),
            fact("overlap", false, "2 % of the waits overlap GPU work"),
        ],
        missing: vec![Missing {
            id: "sm".to_owned(),
            why: "no GPM".to_owned(),
            hint: String::new(),
        }],
        advice: vec!["num_workers 2 -> 4".to_owned()],
        seconds: 6.0,
        batches: Some(60),
        warming_up: None,
        ..empty_verdict()
    }
}

pub(super) fn watched() -> Model {
    let mut model = Model::new(Duration::from_secs(10));
    for at in 1..8_u32 {
        let mut sample = training(f64::from(at));
        sample.gaps.push(Gap {
            source: "psi".to_owned(),
            reason: "the kernel has none".to_owned(),
            hint: "boot with psi=1".to_owned(),
        });
        first_loader(&mut sample).workers[0].loads = Some(WorkerLoads {
            ended: vec![BatchLoad {
                batch: at.into(),
                low_ms: 363,
                high_ms: 464,
                ended: None,
            }]
            .into(),
            ..WorkerLoads::default()
        });
        model.apply(sample);
    }
    model
}

pub(super) fn empty() -> Model {
    Model::new(Duration::from_secs(10))
}

pub(crate) fn candidate(pid: i32) -> JobCandidate {
    JobCandidate {
        pid: Pid(pid),
        command: "python train.py".to_owned(),
        ranks: 1,
        workers: 4,
    }
}

/// Returns a job and a machine with every figure known.
pub(super) fn rich() -> Model {
    let mut model = watched();
    for at in 8..12_u32 {
        let mut sample = training(f64::from(at));
        enrich(&mut sample, at);
        model.apply(sample);
    }
    model
}

pub(super) fn rich_verdict() -> Verdict {
    Verdict {
        limit: Some(Limit::SmallKernels),
        warming_up: empty_verdict().warming_up,
        ..full_verdict()
    }
}

fn enrich(sample: &mut Sample, at: u32) {
    sample.candidates = vec![candidate(7)];
    sample.gaps.push(Gap {
        source: "psi".to_owned(),
        reason: "the kernel has none".to_owned(),
        hint: "boot with psi=1".to_owned(),
    });
    let rank = first_rank(sample);
    let time = |ms: u64| Duration::from_millis(ms) * at;
    let of = time(1000);
    let device = |ms| Some(DeviceTime { took: time(ms), of });
    rank.reported = Some(Reported {
        steps: u64::from(at) * 10,
        waited: time(250),
        stepped: time(750),
        last_to: of,
        busy: device(930),
        copy: device(123),
        device: Some("simulated".to_owned()),
        notice: Some("no GPU here".to_owned()),
        ..Reported::default()
    });
    let settings = &mut rank.loaders[0].settings;
    settings.pin_memory = Some(true);
    settings.persistent_workers = Some(false);
    settings.in_order = Some(true);
    settings.start_method = Some("spawn".to_owned());
    settings.batch_size = Some(32);
    rich_gpu(sample, f64::from(at));
}

fn rich_gpu(sample: &mut Sample, at: f64) {
    let process = GpuProcess {
        pid: Pid(4711),
        mem: Some(Bytes(1 << 30)),
        sm_percent: Some(33.333),
        sm_at: Some(secs(at - 0.25)),
        place: ProcessPlace::Outside,
    };
    let rate = |of: f64| Some(BytesPerSecond(of + 0.4));
    let counters = GpuCounters {
        from: moment(at - 1.0),
        to: moment(at),
        graphics: Some(Share(0.777_777)),
        sm_active: Some(Share(0.666_666)),
        sm_occupancy: Some(Share(0.555_555)),
        tensor: Some(Share(0.444_444)),
        dram: Some(Share(0.333_333)),
        pcie_rx: rate(1e9),
        pcie_tx: rate(2e9),
        nvlink_rx: rate(3e9),
        nvlink_tx: rate(4e9),
    };
    let gpu = &mut sample.gpus[0];
    gpu.mem_reserved = Some(Bytes(5 << 20));
    gpu.power_watts = Some(412.349);
    gpu.power_instant_watts = Some(420.06);
    gpu.power_limit_watts = Some(700.0);
    gpu.energy_joules = Some(412.349 * at);
    gpu.energy_read_at = Some(moment(at));
    gpu.temperature_c = Some(61.0);
    gpu.mem_temperature_c = Some(70.5);
    gpu.sm_clock_mhz = Some(1979.6);
    gpu.mem_clock_mhz = Some(3201.0);
    gpu.throttle = Some(vec!["power limit".to_owned()]);
    gpu.counters = Some(counters);
    gpu.traffic = Some(GpuTraffic {
        read_at: moment(at),
        pcie_rx: None,
        pcie_tx: None,
        nvlink_rx: None,
        nvlink_tx: None,
        pcie_sampled: None,
    });
    gpu.health = Some(health(at));
    gpu.xids = Some(vec![Xid {
        number: 79,
        at: moment(2.0),
    }]);
    gpu.instances = vec![GpuInstance {
        uuid: Some("MIG-1".to_owned()),
        gpu_instance: Some(3),
        compute_instance: Some(0),
        mem_used: Some(Bytes(1 << 30)),
        mem_total: Some(Bytes(10 << 30)),
        counters: Some(counters),
        processes: Some(vec![process.clone()]),
        gap: Some("no history".to_owned()),
    }];
    gpu.processes = Some(vec![process]);
    gpu.users = Some(vec![GpuUser {
        pid: Pid(100),
        by: UsedBy::DeviceFile,
        instance: Some(3),
    }]);
    gpu.driver_time = secs(0.004_567 * at);
    gpu.absent = vec![Absent {
        figure: "fan".to_owned(),
        reason: "not supported by this GPU".to_owned(),
    }];
    gpu.gap = Some("divided".to_owned());
    gpu.visible_to_job = Some(true);
}

fn health(at: f64) -> GpuHealth {
    GpuHealth {
        read_at: moment(at - 0.5),
        link: Some(Link {
            generation: 5,
            width: 8,
            max_generation: Some(5),
            max_width: Some(16),
        }),
        encoder_percent: Some(3.6),
        decoder_percent: Some(0.0),
        ecc_corrected: Some(2),
        ecc_uncorrected: Some(0),
        retired_pages: Some(1),
        retirement_pending: Some(false),
        remapped_rows: Some(4),
        remapping_pending: Some(true),
        remapping_failed: Some(false),
        persistence: Some(true),
    }
}

/// Returns the report of a job with the usual figures known.
pub(crate) fn full_report() -> Report {
    Report::new(&watched(), &full_verdict())
}

/// Returns the report before the first sample.
pub(crate) fn empty_report() -> Report {
    Report::new(&empty(), &empty_verdict())
}

/// Returns the report of a job and a machine with every figure known.
pub(crate) fn rich_report() -> Report {
    Report::new(&rich(), &rich_verdict())
}
