//! The cost of keeping the past: memory for a day, and time per sample.

use pipetop::sample::WorkerNow;
use pipetop::testing::model::WorkerPlace;
use pipetop::testing::model::history::{GpuPoint, History, RankPoint, Reading};
use pipetop::testing::record::Ring;
use pipetop::units::{Pid, ProcessKey};
use support::machine::{Place, Share, note};
use support::noise::Noise;

use crate::allocated::{in_use, since};

/// Most bytes that the kept samples may use.
const BUDGET: usize = 2 << 20;

fn place(id: u32) -> WorkerPlace {
    WorkerPlace {
        rank: ProcessKey {
            pid: Pid(1),
            start_ticks: 1,
        },
        loader: 0,
        id,
    }
}

fn reading(at: u32, workers: u32, gpus: usize) -> Reading {
    let rank = |number| RankPoint {
        number,
        wait: Some(0.5).into(),
        queue: Some(0.5).into(),
        device_busy: None.into(),
    };
    Reading {
        from: f64::from(at),
        to: f64::from(at + 1),
        ranks: (0..8).map(rank).collect(),
        gpus: vec![GpuPoint::default(); gpus],
        workers: (0..workers).map(|id| (place(id), WorkerNow::Cpu)).collect(),
        ..Reading::default()
    }
}

#[test]
fn the_past_takes_what_it_says() {
    let _place = Place::take(Share::Half);
    let before = in_use();
    let mut history = History::new();
    let mut half = 0;
    for at in 0..172_800 {
        history.add(reading(at, 16, 8));
        if at == 86_400 {
            half = since(before);
        }
    }
    let grown = since(before) - half;
    assert!(half < 4 << 20, "{half} bytes for a day");
    assert!(grown < 1 << 19, "{grown} bytes more for another day");

    note(&format!(
        "16 workers, 8 GPUs: {half} bytes for a day, {grown} more for another"
    ));
}

#[test]
fn the_past_keeps_samples_within_its_budget() {
    let _place = Place::take(Share::Half);
    let before = in_use();
    let mut noise = Noise::of(16, 8);
    let mut ring = Ring::new(BUDGET);
    let (mut half, mut most) = (0, 0);
    for second in 1..=7200 {
        let sample = noise.sample(second);
        ring.push(&sample).expect("it can be compressed");
        drop(sample);
        most = most.max(since(before));
        if second == 3600 {
            half = most;
        }
    }
    let kept = ring.samples().len() - ring.samples().first();
    note(&format!(
        "16 workers, 8 GPUs: {kept} samples in a ring of {BUDGET} bytes, which takes {most}"
    ));
    assert!(kept > 600, "{kept} samples");
    assert!(most < 5 << 19, "{most} bytes");
    assert!(most - half < 1 << 17, "{half} and then {most} bytes");
}
