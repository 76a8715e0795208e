//! Days of uptime within seconds: a model, a verdict and a screen get far more data than they may keep.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use pipetop::sample::{Gap, GpuSample, HostSample, JobSample, Sample};
use pipetop::testing::config::Config;
use pipetop::testing::engine::Engine;
use pipetop::testing::model::HISTORY;
use pipetop::testing::ui::{Attach, UiState, View, draw};
use pipetop::units::{Moment, Pid, ProcessKey};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use support::machine::{Place, Share, note};
use support::noise::Noise;

use crate::allocated::{in_use, since};

const WORKERS: u32 = 8;
const MAX_GPUS: u32 = 4;
/// Intervals after which a loader is replaced by one with another number.
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

/// Returns a job in which nearly everything changes all the time.
fn job(noise: &mut Noise, at: u32) -> JobSample {
    let mut job = noise.sample(at.into()).job.expect("it has one");
    // Sometimes it is another job, or one that has ended.
    job.key = key(100 + at / 5_000, 0);
    job.ended = at % 5_000 > 4_900;
    let rank = &mut job.ranks[0];
    rank.key = job.key;
    // Functions get a new name each time.
    rank.activity = BTreeMap::from([(format!("step_{at}"), 1)]);
    rank.gil_holders = BTreeMap::from([(format!("hold_{at}"), 1)]);
    // As in a recording of version 1.
    rank.waits.count = None;
    let loader = &mut rank.loaders[0];
    loader.id = u64::from(at / LOADER_LIVES);
    loader.workers_started = u64::from(at * WORKERS / 2);
    loader.batches = loader.batches.filter(|_| !at.is_multiple_of(13));
    for worker in &mut loader.workers {
        // Workers restart every other interval, so that none lives long.
        let born = at - (at + worker.id) % 2;
        worker.key = key(1_000 + worker.id + at % 7 * 100, born);
        worker.activity = BTreeMap::from([(format!("decode_{at} (train.py)"), 20)]);
        if let Some(loads) = &mut worker.loads {
            loads.ended.count = None;
        }
    }
    job
}

fn gpu(index: u32, at: u32) -> GpuSample {
    GpuSample {
        index,
        // If the driver hangs, the previous values stay.
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

fn sample(noise: &mut Noise, at: u32) -> Sample {
    let gpus = at / 3 % (MAX_GPUS + 1);
    Sample {
        host: HostSample {
            cpus: 4,
            cpu_busy: Some(seconds(at)),
            boot_ticks_at_start: Some(1_000),
            ticks_per_second: Some(100),
            ..HostSample::default()
        },
        gpus: (0..gpus).map(|index| gpu(index, at)).collect(),
        job: (!at.is_multiple_of(997)).then(|| job(noise, at)),
        gaps: vec![Gap {
            source: "nvml".to_owned(),
            reason: format!("reason {at}"),
            hint: String::new(),
        }],
        ..Sample::new(moment(at))
    }
}

/// Feeds samples and draws frames. Returns by how many bytes the memory in use grew during the second half.
fn soak(window: Duration, rounds: u32) -> i64 {
    let mut noise = Noise::of(WORKERS, 0);
    let before = in_use();
    let mut engine = Engine::new(window);
    let state = UiState::default();
    let config = Config::default();
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).expect("a test backend");
    let mut half = 0;
    for at in 1..=rounds {
        let known = engine.push(sample(&mut noise, at));
        let model = &known.model;
        if at.is_multiple_of(20) {
            let view = View {
                window: model.window(),
                latest: model.latest(),
                history: model.history(),
                steps: model.steps(),
                files: None,
                verdict: known.verdict(),
                listed: false,
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
        assert!(history.gpus() <= MAX_GPUS as usize);
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

fn memory_stays_the_same(window: Duration, rounds: u32) {
    let _place = Place::take(Share::Half);
    let grown = soak(window, rounds);
    note(&format!(
        "{grown} bytes more after {rounds} rounds than after half of them"
    ));
    assert!(grown < 2 << 20, "{grown} bytes more");
}

#[test]
fn memory_stays_the_same_however_long_it_runs() {
    memory_stays_the_same(Duration::from_secs(10), 12_000);
}

#[test]
fn memory_of_a_whole_session_stays_the_same() {
    memory_stays_the_same(Duration::MAX, 4_000);
}
