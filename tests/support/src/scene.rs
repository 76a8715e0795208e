//! Situations as input of the screen: consistent figures, built from a few numbers.

use std::time::Duration;

use pipetop::sample::{
    BatchLoad, Gap, GpuProcess, GpuSample, LoaderKind, LoaderSettings, OpenFiles, PollTrace,
    ProcessPlace, QueueSource, Tail, Tier, TrainerNow, UnderWay, Wait, WorkerNow,
};
use pipetop::testing::config::Config;
use pipetop::testing::last_lines::Lines;
use pipetop::testing::model::history::{GpuPoint, RankPoint, Reading};
use pipetop::testing::model::rates::{
    Activity, CgroupRates, DiskRates, GpuRates, HostRates, IoRates, JobRates, LoadRates,
    LoaderRates, QueueRates, RankRates, StepRates, WorkerRates,
};
use pipetop::testing::model::{Estimate, History, ProcessFigures, Rates, Steps, WorkerPlace};
use pipetop::testing::ui::{Attach, CommandView, Past, UiState, View};
use pipetop::testing::verdict::{
    Cause, Evidence, Expected, Headspace, Interval, Kind, Level, Missing, Verdict, WorkerAdvice,
};
use pipetop::units::{Bytes, BytesPerSecond, Pid, ProcessKey, Share};
use ratatui::layout::Rect;

use crate::noise::Noise;

/// Owns what a [`View`] borrows.
#[derive(Debug)]
pub struct Scene {
    pub window: Option<Rates>,
    pub latest: Option<Rates>,
    pub history: History,
    pub steps: Steps,
    pub files: Option<OpenFiles>,
    pub verdict: Option<Verdict>,
    pub processes: ProcessFigures,
    pub gaps: Vec<Gap>,
    pub state: UiState,
    pub config: Config,
    pub attach: Attach,
    pub uptime: Option<Duration>,
    pub launched: Option<CommandView>,
    pub past: Option<Past>,
}

impl Scene {
    pub fn view(&self) -> View<'_> {
        View {
            window: self.window.as_ref(),
            latest: self.latest.as_ref(),
            history: &self.history,
            steps: &self.steps,
            files: self.files.as_ref(),
            verdict: self.verdict.as_ref(),
            listed: false,
            processes: &self.processes,
            gaps: &self.gaps,
            state: &self.state,
            config: &self.config,
            attach: &self.attach,
            uptime: self.uptime,
            command: self.launched.as_ref(),
            past: self.past,
            room: 0,
            screen: Rect::ZERO,
        }
    }

    /// Changes the job in both the window and the last interval.
    pub fn each_job(&mut self, change: impl Fn(&mut JobRates)) {
        for rates in [&mut self.window, &mut self.latest].into_iter().flatten() {
            rates.job.iter_mut().for_each(&change);
        }
    }

    pub fn each_rates(&mut self, change: impl Fn(&mut Rates)) {
        [&mut self.window, &mut self.latest]
            .into_iter()
            .flatten()
            .for_each(change);
    }
}

/// Milliseconds of load and step; all other figures follow from them.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub load_ms: f64,
    pub step_ms: f64,
    pub workers: u32,
}

impl Pace {
    /// Returns the time between two batches: the slower of all workers together and the step.
    pub fn period_ms(self) -> f64 {
        (self.load_ms / f64::from(self.workers.max(1))).max(self.step_ms)
    }

    pub fn wait_ms(self) -> f64 {
        self.period_ms() - self.step_ms
    }

    pub fn wait_share(self) -> f64 {
        self.wait_ms() / self.period_ms()
    }
}

pub fn key(pid: i32) -> ProcessKey {
    ProcessKey {
        pid: Pid(pid),
        start_ticks: 1_000_000,
    }
}

const STARVED: Pace = Pace {
    load_ms: 412.0,
    step_ms: 38.0,
    workers: 4,
};

/// Returns the history of a starved job without GPU figures.
pub fn starved_without_gpu() -> History {
    let mut history = History::new();
    remember(&mut history, STARVED, 0, 1);
    history
}

/// A job that waits for its data: 412 ms to load a batch, 38 ms to use it, four workers.
pub fn starved() -> Scene {
    let pace = STARVED;
    let mut scene = scene(pace, 1, 1);
    let lost = pace.wait_share();
    let verdict = Verdict {
        kind: Kind::DataBound,
        cause: Some(Cause::CpuPreprocess),
        level: Level::High,
        stall: Some(interval(lost, 0.025)),
        wait: Some(interval(lost, 0.025)),
        gpu_idle: Some(Share(0.63)),
        confidence: Share(0.94),
        headspace: Some(Headspace {
            speedup_max: 2.7,
            step_ms_now: Some(103.0),
            step_ms_free: Some(38.0),
        }),
        workers: Some(WorkerAdvice {
            now: 4,
            match_step: Some(11),
            cpu_allows: Some(14),
            advised: Some(11),
        }),
        what_if: Ok((1..=12).map(|count| what_if(pace, count)).collect()),
        evidence: vec![
            fact("queue-empty", true, "queue empty 91 % of the time"),
            fact(
                "workers-busy",
                true,
                "workers busy 99 %: 78 % in Image.resize (PIL)",
            ),
            fact("gpu-idle", true, "GPU idle 63 % while waiting"),
            fact("overlap", false, "2 % of the waits overlap GPU work"),
        ],
        advice: vec![
            "num_workers 4 -> 11 (matches the GPU; 16 CPUs allow 14): up to 2.7x faster".to_owned(),
            "make Image.resize cheaper: resize once and store, or decode smaller".to_owned(),
        ],
        ..verdict(Kind::DataBound)
    };
    scene.verdict = Some(verdict);
    // The trainer waits for each batch, and every tenth step is a long one.
    let mut at = 0;
    for batch in 0..400 {
        let wait = Wait {
            from: Duration::from_millis(at),
            to: Duration::from_millis(at + 62 + batch % 7),
            batch: Some(batch),
            first: None,
            begins: false,
        };
        scene.steps.add_wait(rank_key(0), wait);
        at += 100 + batch % 5 + if batch % 10 == 0 { 20 } else { 0 };
    }
    scene
}

/// Returns a job with eight GPUs that are always busy.
pub fn compute_bound() -> Scene {
    let pace = Pace {
        load_ms: 210.0,
        step_ms: 180.0,
        workers: 6,
    };
    let mut scene = scene(pace, 8, 1);
    scene.verdict = Some(Verdict {
        stall: Some(Interval {
            share: Share(0.01),
            low: Share(0.0),
            high: Share(0.02),
        }),
        confidence: Share(0.97),
        evidence: vec![
            fact("queue-full", true, "queue full 96 % of the time"),
            fact("workers-idle", true, "workers idle 81 %"),
            fact("gpu-busy", true, "GPU busy 98 %"),
        ],
        advice: vec!["look at the model, not at the data: batches are ready in time".to_owned()],
        ..verdict(Kind::ComputeBound)
    });
    scene
}

pub fn verdict(kind: Kind) -> Verdict {
    Verdict {
        kind,
        cause: None,
        level: Level::None,
        rank: Some(0),
        rank_key: Some(key(48213)),
        wait: None,
        gpu_idle: None,
        stall: None,
        confidence: Share(0.5),
        headspace: None,
        workers: None,
        what_if: Err("there is no verdict yet".to_owned()),
        period_batches: None,
        limit: None,
        evidence: Vec::new(),
        missing: Vec::new(),
        advice: Vec::new(),
        seconds: 10.0,
        batches: Some(97),
        warming_up: None,
    }
}

pub fn missing(id: &str, why: &str, hint: &str) -> Missing {
    Missing {
        id: id.to_owned(),
        why: why.to_owned(),
        hint: hint.to_owned(),
    }
}

pub fn gap(source: &str, reason: &str, hint: &str) -> Gap {
    Gap {
        source: source.to_owned(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}

fn interval(share: f64, half: f64) -> Interval {
    Interval {
        share: Share(share),
        low: Share(share - half),
        high: Share(share + half),
    }
}

/// Returns the expected wait share with this many workers, if the present wait share is known to ±2.5 percentage
/// points.
fn what_if(pace: Pace, workers: u32) -> Expected {
    let every = pace.load_ms / f64::from(workers);
    let expected = (1.0 - pace.step_ms / every).max(0.0);
    let half = 0.025 * (1.0 - expected) / (1.0 - pace.wait_share());
    Expected {
        workers,
        wait: Interval {
            share: Share(expected),
            low: Share((expected - half).max(0.0)),
            high: Share((expected + half).min(1.0)),
        },
        batches_per_s: 1000.0 / every.max(pace.step_ms),
    }
}

fn fact(id: &'static str, supports: bool, text: &str) -> Evidence {
    Evidence {
        id,
        supports,
        value: 0.0,
        threshold: None,
        text: text.to_owned(),
    }
}

/// Returns the state before the first sample.
pub fn nothing() -> Scene {
    Scene {
        window: None,
        latest: None,
        history: History::new(),
        steps: Steps::default(),
        files: None,
        verdict: None,
        processes: ProcessFigures::default(),
        gaps: Vec::new(),
        state: UiState::default(),
        config: Config::default(),
        attach: Attach::Attached,
        uptime: None,
        launched: None,
        past: None,
    }
}

/// Returns a job with a window of 10 s and two minutes of history, all from one pace.
pub fn scene(pace: Pace, gpus: u32, ranks: u32) -> Scene {
    let rates = |seconds: f64| Rates {
        seconds,
        host: HostRates {
            cpus: 16,
            cpu: Some(Share(0.31)),
            mem_total: Some(Bytes(256 << 30)),
            mem_available: Some(Bytes(190 << 30)),
            pressure_cpu: Some(Share(0.04)),
            pressure_io: Some(Share(0.0)),
            pressure_memory: Some(Share(0.0)),
            others: vec![],
            swapped_in_per_s: Some(0.0),
        },
        disks: vec![DiskRates {
            device: "nvme0n1".to_owned(),
            read: BytesPerSecond(212e6),
            write: BytesPerSecond(0.0),
            reads_per_s: 1700.0,
            util: Share(0.11),
            await_ms: Some(0.1),
            queue_depth: 0.2,
            holds_job_files: true,
        }],
        gpus: (0..gpus).map(|index| gpu(index, gpus, pace)).collect(),
        job: Some(job(pace, ranks)),
        own_cpu: Some(Share(0.004)),
    };
    let mut scene = Scene {
        window: Some(rates(10.0)),
        latest: Some(rates(1.0)),
        uptime: Some(Duration::from_secs(847)),
        launched: None,
        ..nothing()
    };
    remember(&mut scene.history, pace, gpus, ranks);
    scene
}

/// Adds two minutes of history: the queue empties, and waits follow.
fn remember(history: &mut History, pace: Pace, gpus: u32, ranks: u32) {
    let lost = pace.wait_share();
    for second in 0..120_u32 {
        let onset = (f64::from(second) / 6.0 - 0.8).clamp(0.0, 1.0);
        let sway = f64::from(second * 7 % 5) / 100.0;
        let wait = lost * onset + sway * lost;
        // A minute ago a sample is missing.
        let known = second != 60;
        let queue = if lost > 0.05 {
            1.0 - 0.95 * onset
        } else {
            0.97
        };
        let util = |place: u32| {
            let beat = f64::from((second + place) % 3) * lost * 30.0;
            (100.0 - lost * 90.0 + beat - 12.0 * lost).clamp(0.0, 100.0)
        };
        let gpu = |place| GpuPoint {
            util_percent: Some(util(place)).into(),
            sm_active: Some(0.6 * util(place) / 100.0).into(),
            dram: Some(0.3 * util(place) / 100.0).into(),
            power_watts: Some(90.0 + 5.0 * util(place)).into(),
            pcie_rx: Some(2e7 * util(place)).into(),
        };
        let rank = |number| RankPoint {
            number,
            wait: known.then_some(wait.min(1.0)).into(),
            queue: known.then_some(queue).into(),
            device_busy: known.then_some(1.0 - wait.min(1.0)).into(),
        };
        let places = (0..ranks).flat_map(|rank| (0..pace.workers).map(move |id| (rank, id)));
        let worker = |(rank, id)| {
            let at = WorkerPlace {
                rank: rank_key(rank),
                loader: 1,
                id,
            };
            (at, doing(pace, id, second))
        };
        history.add(Reading {
            from: f64::from(second),
            to: f64::from(second + 1),
            ranks: (0..ranks).map(rank).collect(),
            disk_read: Some(212e6 * (0.98 + sway)).into(),
            cpu_cores: Some(4.9).into(),
            gpus: (0..gpus).map(gpu).collect(),
            workers: places.map(worker).collect(),
        });
    }
}

/// Adds polls of the first rank in the last 12 seconds: its workers load and idle in turn, those in `slow` never idle,
/// and all deliver in order. For a second there are no polls, then half a second of complete polls follows.
pub fn polled(scene: &mut Scene, workers: u32, slow: &[u32]) {
    let mut sample = Noise::of(workers, 0).sample(120);
    let ms = Duration::from_millis;
    let times = || {
        (108_000..120_000_u64)
            .step_by(50)
            .filter(|at| !(118_500..119_500).contains(at))
    };
    let Some(rank) = sample.job.as_mut().and_then(|job| job.ranks.first_mut()) else {
        return;
    };
    rank.key = rank_key(0);
    rank.polls = PollTrace::default();
    let batches = (0..48).flat_map(|round| (0..4).map(move |batch| (round, batch)));
    let waits = batches.map(|(round, batch)| {
        let from = 108_000 + 1000 * round + 100 * batch;
        Wait {
            from: ms(from),
            to: ms(from + if batch == 0 { 600 } else { 0 } + 2),
            batch: Some(4 * round + batch),
            first: None,
            begins: false,
        }
    });
    // The batches made during the stall arrive at once after it.
    let waits = waits.map(|wait| match wait.batch {
        Some(batch) if batch % 4 > 0 => Wait {
            from: wait.from + ms(600),
            to: wait.to + ms(600),
            ..wait
        },
        _ => wait,
    });
    let waits: Vec<Wait> = waits.filter(|wait| wait.to < ms(118_000)).collect();
    rank.waits = Tail::new(waits.len() as u64, waits);
    for at in times() {
        let now = if at % 1000 < 600 {
            TrainerNow::Waiting
        } else {
            TrainerNow::Stepping
        };
        rank.polls.record(ms(at), now, 800);
    }
    for loader in &mut rank.loaders {
        loader.queue_polls = PollTrace::default();
        for at in times() {
            let ready = 4 * u32::try_from(at % 1000 / 150).unwrap_or(0) / 4;
            loader.queue_polls.record(ms(at), ready, 800);
        }
        for worker in &mut loader.workers {
            worker.polls = PollTrace::default();
            for at in times() {
                let place = (at + 130 * u64::from(worker.id)) % 1000;
                let now = match place {
                    _ if slow.contains(&worker.id) => WorkerNow::Cpu,
                    0..200 => WorkerNow::Read,
                    200..300 => WorkerNow::Cpu,
                    300..350 => WorkerNow::Handover,
                    _ => WorkerNow::Idle,
                };
                worker.polls.record(ms(at), now, 800);
            }
        }
    }
    scene.history.add_polls(None, &sample);
}

fn rank_key(rank: u32) -> ProcessKey {
    key(48213 + i32::try_from(rank).unwrap_or(0) * 1000)
}

fn doing(pace: Pace, id: u32, second: u32) -> WorkerNow {
    if pace.wait_share() < 0.05 && !(second + id).is_multiple_of(5) {
        return WorkerNow::Idle;
    }
    match (second + id * 3) % 11 {
        10 => WorkerNow::Read,
        _ => WorkerNow::Cpu,
    }
}

fn job(pace: Pace, ranks: u32) -> JobRates {
    JobRates {
        key: key(48213),
        command: "/usr/bin/python3 train.py --epochs 90".to_owned(),
        run: None,
        access: Tier::T2,
        ended: false,
        ranks: (0..ranks)
            .map(|rank| rank_rates(pace, rank, ranks))
            .collect(),
        cgroup: Some(CgroupRates::default()),
        cpus_allowed: Some(16),
        cpu_cores: Some(4.9),
        read: Some(BytesPerSecond(212e6)),
        rchar: Some(BytesPerSecond(2.112e9)),
    }
}

fn rank_rates(pace: Pace, rank: u32, ranks: u32) -> RankRates {
    let lost = Share(pace.wait_share());
    let rate = 1000.0 / pace.period_ms();
    let starved = lost.0 > 0.05;
    let capacity = (pace.workers * 2).max(1);
    let mean_ready = if starved {
        0.4
    } else {
        f64::from(capacity) - 0.3
    };
    let loader = LoaderRates {
        gone_seconds: None,
        id: 1,
        kind: LoaderKind::PytorchProcesses,
        name: None,
        settings: LoaderSettings {
            num_workers: Some(pace.workers),
            prefetch_factor: Some(2),
            pin_memory: Some(true),
            persistent_workers: Some(true),
            in_order: Some(true),
            start_method: Some("fork".to_owned()),
            batch_size: Some(64),
        },
        workers: (0..pace.workers).map(|id| worker(pace, rank, id)).collect(),
        workers_started: 0,
        queue: Some(QueueRates {
            ready: if starved { 1 } else { capacity },
            mean_ready,
            capacity: Some(capacity),
            occupancy: Some(Share(mean_ready / f64::from(capacity))),
            empty: Share(if starved { 0.91 } else { 0.0 }),
            empty_at_most: Share(if starved { 0.91 } else { 0.0 }),
            source: QueueSource::Pipe,
        }),
        batches_per_s: Some(rate),
        wait: None,
        validates: false,
        step_ms: None,
        batches_taken: Some(970),
        longest_pass: None,
    };
    RankRates {
        key: rank_key(rank),
        rank: Some(rank),
        number: rank,
        world_size: Some(ranks),
        local_rank: Some(rank),
        nccl: false,
        state: Some('S'),
        wait: Some(Estimate {
            share: lost,
            low: lost,
            high: lost,
            polls: 200,
            unknown: Share::ZERO,
            unclear: Share::ZERO,
            early: None,
        }),
        waiting: Some(lost),
        receiving: Some(Share::ZERO),
        loading: Some(Share::ZERO),
        dispatched: Some(Share::ZERO),
        pinning: Some(Share::ZERO),
        network: Some(Share::ZERO),
        in_loop: Some(Share::ZERO),
        disk: Some(Share::ZERO),
        polled: Some(Share::ONE),
        stopped: Some(Share::ZERO),
        blocked: None,
        computing: None,
        main_cpu: Some(lost.complement()),
        main_run_delay: Some(Share(0.01)),
        io: Some(IoRates {
            read: BytesPerSecond(0.0),
            write: BytesPerSecond(4e6),
            rchar: BytesPerSecond(5e3),
        }),
        not_data: vec![],
        synchronized_at_least: Share::ZERO,
        epoch: Some(1),
        validation: None,
        startup: None,
        first_batches: None,
        period_batches: None,
        wait_seconds: None,
        step: StepRates {
            batches: Some(97),
            batches_per_s: Some(rate),
            step_ms: Some(pace.step_ms),
            wait_ms: Some(pace.wait_ms()),
            load_ms: Some(pace.load_ms),
        },
        overlaps: vec![],
        slow_overlaps: vec![],
        device: None,
        activity: Vec::new(),
        named: None,
        gil: None,
        gil_holders: Vec::new(),
        loaders: vec![loader],
    }
}

/// Returns sixteen batches, one of which took five times as long as the others.
fn loads(pace: Pace, id: u32) -> LoadRates {
    let number = |place: u32| u64::from((520 - place) * pace.workers + id);
    let last = (1..=16_u32).map(|place| {
        let slow = if place == 6 { 5.0 } else { 1.0 };
        let load = pace.load_ms * slow * (1.0 + 0.01 * f64::from(place * 7 % 11) - 0.05);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some hundred milliseconds"
        )]
        let ms = |time: f64| time.max(0.0) as u32;
        BatchLoad {
            batch: number(place),
            low_ms: ms(load - 50.0),
            high_ms: ms(load + 50.0),
            ended: None,
        }
    });
    LoadRates {
        last: last.collect(),
        short: 0,
        under_way: Some(UnderWay {
            batch: number(0),
            for_ms: 120,
        }),
    }
}

fn worker(pace: Pace, rank: u32, id: u32) -> WorkerRates {
    let busy = (pace.load_ms / f64::from(pace.workers.max(1)) / pace.period_ms()).min(1.0) * 0.99;
    let number = i32::try_from(id + 1).unwrap_or(0) + 16;
    WorkerRates {
        key: key(rank_key(rank).pid.0 + number),
        id,
        thread: false,
        now: doing(pace, id, 119),
        cpu: Some(busy - 0.01 * f64::from(id % 3)),
        main_cpu: None,
        run_delay: Some(Share(0.01 * f64::from(id % 2 + 1))),
        busy: Some(Share(busy)),
        stopped: Some(Share::ZERO),
        disk: Some(Share(0.02)),
        network: Some(Share::ZERO),
        handover: Some(Share::ZERO),
        asleep: Some(Share::ZERO),
        about_files: Some(Share::ZERO),
        commands: Some(Share::ZERO),
        locked: Some(Share::ZERO),
        trains: Some(Share::ZERO),
        infers: Some(Share::ZERO),
        read: Some(BytesPerSecond(212e6 / f64::from(pace.workers.max(1)))),
        rchar: Some(BytesPerSecond(2.112e9 / f64::from(pace.workers.max(1)))),
        write: Some(BytesPerSecond(0.0)),
        major_faults_per_s: Some(0.0),
        batches_per_s: Some(1000.0 / pace.period_ms() / f64::from(pace.workers.max(1))),
        load_ms: Some(pace.load_ms),
        cpus_allowed: Some(16),
        activity: vec![Activity {
            name: "PIL.Image.resize".to_owned(),
            share: Share(0.78),
        }],
        loads: Some(loads(pace, id)),
    }
}

fn gpu(index: u32, all: u32, pace: Pace) -> GpuRates {
    let busy = 1.0 - pace.wait_share();
    GpuRates {
        now: GpuSample {
            index,
            uuid: Some(format!("GPU-{index}")),
            name: Some("NVIDIA H200".to_owned()),
            util_percent: Some(busy * 100.0),
            mem_util_percent: Some(busy * 60.0),
            mem_used: Some(Bytes(22_978_772_992)),
            mem_total: Some(Bytes(140 << 30)),
            power_watts: Some(100.0 + 500.0 * busy),
            power_limit_watts: Some(700.0),
            temperature_c: Some(54.0),
            sm_clock_mhz: Some(1980.0),
            mem_clock_mhz: Some(3201.0),
            throttle: Some(Vec::new()),
            processes: Some(vec![GpuProcess {
                pid: Pid(48213),
                mem: Some(Bytes(22_000_000_000)),
                sm_percent: Some(busy * 95.0),
                sm_at: None,
                place: ProcessPlace::Here,
            }]),
            visible_to_job: Some(all < 2 || index + 1 < all),
            ..GpuSample::default()
        },
        util_percent: Some(busy * 100.0),
        busy: Some(Share(busy)),
        stale_seconds: None,
        ..GpuRates::default()
    }
}

/// Returns the same job, launched by pipetop.
pub fn launched(mut scene: Scene, lines: usize) -> Scene {
    let mut printed = Lines::default();
    for step in 0..lines {
        printed.feed(
            format!(
                "epoch 1  step {:>4}  loss {:.3}\n",
                step * 20,
                7.0 - 0.01 * step as f64
            )
            .as_bytes(),
        );
    }
    scene.launched = Some(CommandView {
        name: "python train.py --epochs 90".to_owned(),
        output_path: "/home/ann/resnet/nohup.out".to_owned(),
        printed,
        ..CommandView::default()
    });
    scene.state.log = true;
    scene
}
