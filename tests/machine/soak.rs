//! Days of uptime in seconds: a model, a judge and a screen that are fed far more than they may keep. And two minutes of
//! the real program.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use pipetop::sample::{
    BatchClock, BatchCount, BatchLoad, Gap, GpuSample, HostSample, IoSample, JobSample, LoaderKind,
    LoaderSample, LoaderSettings, MainTally, PollTrace, ProcessSample, QueueSource, QueueTally,
    RankSample, Sample, Tier, Wait, WorkerLoads, WorkerNow, WorkerSample, WorkerTally,
};
use pipetop::testing::config::Config;
use pipetop::testing::engine::Engine;
use pipetop::testing::model::HISTORY;
use pipetop::testing::ui::{Attach, UiState, View, draw};
use pipetop::units::{Bytes, Moment, Pid, ProcessKey};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use support::machine::{Place, Share, note, torches};

use crate::allocated::{in_use, since};

const WORKERS: u32 = 8;
const MOST_GPUS: u32 = 4;
/// Intervals after which a loader comes back under another number.
const LOADER_LIVES: u32 = 50;

fn seconds(at: u32) -> Duration {
    Duration::from_secs(at.into())
}

fn key(pid: u32, born: u32) -> ProcessKey {
    ProcessKey {
        pid: Pid(pid.cast_signed()),
        start_ticks: 1_000 + u64::from(born) * 100,
    }
}

fn process(age: u32) -> ProcessSample {
    ProcessSample {
        state: Some('S'),
        cpu: Some(seconds(age) / 2),
        main_cpu: Some(seconds(age) / 2),
        main_run_delay: Some(seconds(age) / 50),
        io: Some(IoSample {
            rchar: Bytes(u64::from(age) << 20),
            read_bytes: Bytes(u64::from(age) << 10),
            ..IoSample::default()
        }),
        cpus_allowed: Some(4),
        ..ProcessSample::default()
    }
}

/// Re-made every other interval, so that no two workers ever are the same for long.
fn worker(id: u32, at: u32) -> WorkerSample {
    let born = at - (at + id) % 2;
    let polls = u64::from(at - born) * 20;
    WorkerSample {
        key: key(1_000 + id + at % 7 * 100, born),
        id,
        thread: false,
        process: process(at - born),
        tally: Some(WorkerTally {
            polls,
            cpu: polls,
            now: WorkerNow::Cpu,
            ..WorkerTally::default()
        }),
        batches: Some(u64::from(at - born)),
        // Functions with a name of its own each time.
        activity: BTreeMap::from([(format!("decode_{at} (train.py)"), polls)]),
        loads: Some(WorkerLoads {
            ended: vec![
                BatchLoad {
                    batch: u64::from(at),
                    low_ms: 300,
                    high_ms: 400,
                    ended: None,
                };
                5
            ]
            .into(),
            short: u64::from(at - born),
            under_way: None,
        }),
        polls: PollTrace::default(),
    }
}

fn job(at: u32) -> JobSample {
    let polls = u64::from(at) * 100;
    // Now and then another job, and one that has ended.
    let epoch = at / 5_000;
    let loader = LoaderSample {
        id: u64::from(at / LOADER_LIVES),
        kind: LoaderKind::PytorchProcesses,
        name: None,
        settings: LoaderSettings {
            num_workers: Some(WORKERS),
            prefetch_factor: Some(2),
            ..LoaderSettings::default()
        },
        workers: (0..WORKERS).map(|id| worker(id, at)).collect(),
        workers_started: u64::from(at * WORKERS / 2),
        queue: Some(QueueTally {
            polls,
            empty: polls / 2,
            ready_sum: polls,
            ready: at % 17,
            capacity: Some(16),
            source: QueueSource::Pipe,
        }),
        batches: (!at.is_multiple_of(13)).then_some(BatchCount {
            count: u64::from(at) * 10,
            source: BatchClock::Iterator,
        }),
        queue_polls: PollTrace::default(),
    };
    let waits = (0..10_u32).map(|n| {
        let from = seconds(at).saturating_sub(Duration::from_millis(u64::from(10 - n) * 100));
        Wait {
            from,
            to: from + Duration::from_millis(60),
            batch: Some(u64::from(at * 10 + n)),
        }
    });
    let trainer = key(100 + epoch, 0);
    JobSample {
        key: trainer,
        command: "python train.py".to_owned(),
        run: None,
        access: Tier::T2,
        ranks: vec![RankSample {
            rank: Some(0),
            world_size: Some(1),
            process: process(at),
            main: Some(MainTally {
                polls,
                waiting: polls / 2,
                running: polls / 2,
                ..MainTally::default()
            }),
            waits: waits.collect::<Vec<_>>().into(),
            activity: BTreeMap::from([(format!("step_{at}"), 1)]),
            gil_holders: BTreeMap::from([(format!("hold_{at}"), 1)]),
            loaders: vec![loader],
            ..RankSample::new(trainer)
        }],
        cgroup: None,
        cpus_allowed: Some(4),
        ended: at % 5_000 > 4_900,
    }
}

fn gpu(index: u32, at: u32) -> GpuSample {
    GpuSample {
        index,
        // A driver that hangs leaves the reading of before.
        read_at: Some(moment(at - at % 3)),
        util_percent: (!at.is_multiple_of(5)).then_some(f64::from(at % 101)),
        util_samples: vec![(u64::from(at) * 1_000_000, 50.0)].into(),
        gap: at.is_multiple_of(5).then(|| "lost".to_owned()),
        ..GpuSample::default()
    }
}

fn moment(at: u32) -> Moment {
    Moment {
        since_start: seconds(at),
        wall: SystemTime::UNIX_EPOCH + seconds(at),
    }
}

fn sample(at: u32) -> Sample {
    let gpus = at / 3 % (MOST_GPUS + 1);
    Sample {
        host: HostSample {
            cpus: 4,
            cpu_busy: Some(seconds(at)),
            boot_ticks_at_start: Some(1_000),
            ticks_per_second: Some(100),
            ..HostSample::default()
        },
        gpus: (0..gpus).map(|index| gpu(index, at)).collect(),
        job: (!at.is_multiple_of(997)).then(|| job(at)),
        gaps: vec![Gap {
            source: "nvml".to_owned(),
            reason: format!("reason {at}"),
            hint: String::new(),
        }],
        ..Sample::new(moment(at))
    }
}

/// Feeds it, looks at it, and gives how many bytes more it has after the second half.
fn soak(window: Duration, rounds: u32) -> i64 {
    let before = in_use();
    let mut engine = Engine::new(window);
    let state = UiState::default();
    let config = Config::default();
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).expect("a test backend");
    let mut half = 0;
    for at in 1..=rounds {
        let known = engine.push(sample(at));
        let model = &known.model;
        if at.is_multiple_of(20) {
            let view = View {
                window: model.window(),
                latest: model.latest(),
                history: model.history(),
                steps: model.steps(),
                files: None,
                verdict: known.verdict(),
                processes: model.processes(),
                gaps: &[],
                state: &state,
                config: &config,
                attach: &Attach::Attached,
                uptime: None,
                command: None,
                past: None,
                room: 0,
                screen: ratatui::layout::Rect::ZERO,
            };
            terminal
                .draw(|frame| draw(&view, frame))
                .expect("a test backend");
        }
        let history = model.history();
        assert!(history.len() <= HISTORY);
        assert!(history.gpus() <= MOST_GPUS as usize);
        assert!(history.places() <= 1024, "{}", history.places());
        for rank in model
            .latest()
            .iter()
            .filter_map(|rates| rates.job.as_ref())
            .flat_map(|job| &job.ranks)
        {
            assert!(model.waits(rank.key).count() <= 4_096);
        }
        if at == rounds / 2 {
            half = since(before);
        }
    }
    since(before) - half
}

#[test]
fn memory_stays_the_same_however_long_it_runs() {
    let _place = Place::take(Share::Quarter);
    for (window, rounds) in [(Duration::from_secs(10), 12_000), (Duration::MAX, 4_000)] {
        let grown = soak(window, rounds);
        note(&format!(
            "{grown} bytes more after {rounds} rounds than after half of them"
        ));
        assert!(grown < 2 << 20, "{grown} bytes more");
    }
}

/// What `cargo bench --bench soak` does for hours.
#[test]
fn two_minutes_of_everything_that_changes_leave_nothing_open() {
    let _place = Place::take(Share::Quarter);
    let python = torches().first().map(|python| python.path.as_str());
    let mut seen = Vec::new();
    support::soak::soak(2, python, |usage| {
        note(&format!("{usage:?}"));
        seen.push(*usage);
    });
    let [first, last] = seen[..] else {
        unreachable!("two rounds");
    };
    // Each round has hundreds of workers.
    assert!(last.descriptors < first.descriptors + 10, "{seen:?}");
    assert!(last.threads < first.threads + 4, "{seen:?}");
}
