//! The times of steps and copies that the CUDA device measures, on a scripted driver with the timing of a GPU.

#![expect(clippy::disallowed_methods, reason = "device operations take time")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use fake_cuda::Driver;
use pipetop::testing::lab::workload::device::{Device, DeviceOptions, open};
use pipetop::testing::lab::workload::settings::DeviceKind;
use support::machine::{Place, Share};
use support::measured::{median, shortest};

const HERE: &str = module_path!();
/// Steps of a training run, whose median or shortest time counts.
const STEPS: usize = 15;

fn options(pin_memory: bool, batch_bytes: usize) -> DeviceOptions {
    DeviceOptions {
        step: Duration::from_millis(10),
        copy: None,
        pin_memory,
        batch_bytes,
    }
}

fn cuda(options: &DeviceOptions) -> Box<dyn Device> {
    let (device, notice) = open(DeviceKind::Cuda, options);
    assert_eq!(notice, None);
    assert_eq!(device.name(), "Fake GPU");
    device
}

/// Times over the steps, in milliseconds.
struct Times {
    /// Medians: from one step's end to the next by the host's clock, and of copy and step by the device's.
    wall: f64,
    copy: f64,
    busy: f64,
    /// Shortest times by the device's clock: those of its script.
    shortest_copy: f64,
    shortest_busy: f64,
}

/// Runs a training loop that copies the next batch while a step is computed.
fn train(device: &mut dyn Device, batch: &[u8]) -> Times {
    let (mut walls, mut copies, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    device.copy(batch).unwrap();
    let mut last = Instant::now();
    for _ in 0..STEPS {
        device.step().unwrap();
        device.copy(batch).unwrap();
        let times = device.finish().unwrap();
        walls.push(ms(last.elapsed()));
        last = Instant::now();
        copies.push(ms(times.copy));
        steps.push(ms(times.busy));
    }
    Times {
        shortest_copy: shortest(&copies),
        shortest_busy: shortest(&steps),
        wall: median(walls),
        copy: median(copies),
        busy: median(steps),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn assert_near(time: f64, wanted: f64, within: f64) {
    let off = (time - wanted).abs();
    assert!(off <= within, "{time} ms is not {wanted} within {within}");
}

#[test]
fn pinned_copies_overlap_with_steps_and_pageable_ones_do_not() {
    if !Driver::is_here() {
        let _machine = Place::take(Share::Whole);
        let test = "pinned_copies_overlap_with_steps_and_pageable_ones_do_not";
        Driver::new().run(HERE, test, &[]);
        return;
    }
    let batch = vec![7; 1 << 20];
    let train = |pin_memory| {
        let options = DeviceOptions {
            copy: Some(Duration::from_millis(5)),
            ..options(pin_memory, batch.len())
        };
        train(&mut *cuda(&options), &batch)
    };
    let times = [true, false].map(train);
    for times in &times {
        assert_near(times.shortest_copy, 5.0, 0.5);
        assert_near(times.shortest_busy, 10.0, 0.2);
    }
    // Compared with the device's own times of the same steps.
    let [pinned, pageable] = times;
    let Times {
        wall, copy, busy, ..
    } = pinned;
    assert!(wall < busy + copy / 2.0, "{wall} ms of {busy} and {copy}");
    let Times {
        wall, copy, busy, ..
    } = pageable;
    assert!(wall > busy + 0.9 * copy, "{wall} ms of {busy} and {copy}");
}

#[test]
fn a_copy_takes_what_its_bytes_take_and_a_step_what_was_asked_for() {
    if !Driver::is_here() {
        let _machine = Place::take(Share::Whole);
        let test = "a_copy_takes_what_its_bytes_take_and_a_step_what_was_asked_for";
        // Both kernels end late, which must not affect the length of a step.
        Driver::new().run(HERE, test, &[("FAKE_CUDA_LATE_US", "700")]);
        return;
    }
    let batch = vec![7; 24 << 20];
    for (pin_memory, bytes_per_ms) in [(true, 25e6), (false, 6e6)] {
        let times = train(&mut *cuda(&options(pin_memory, batch.len())), &batch);
        assert_near(times.shortest_copy, batch.len() as f64 / bytes_per_ms, 0.2);
        assert_near(times.shortest_busy, 10.0, 0.2);
    }
    // A step of length 0 only reads the batch.
    let options = DeviceOptions {
        step: Duration::ZERO,
        ..options(true, 4096)
    };
    let times = train(&mut *cuda(&options), &batch[..4096]);
    assert_near(times.shortest_busy, 0.7, 0.2);
}

/// Prints the times of a real card, and checks what must hold on every card.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_real_gpu_keeps_its_times() {
    for step in [0.5, 2.0, 10.0, 100.0] {
        for copy in [None, Some(Duration::from_millis(5))] {
            let rates = [true, false].map(|pin_memory| {
                let batch = vec![7; 64 << 20];
                let options = DeviceOptions {
                    step: Duration::try_from_secs_f64(step / 1e3).unwrap(),
                    copy,
                    ..options(pin_memory, batch.len())
                };
                let (mut device, notice) = open(DeviceKind::Cuda, &options);
                assert_eq!(notice, None);
                let times = train(&mut *device, &batch);
                let rate = batch.len() as f64 / times.copy / 1e6;
                let Times {
                    wall,
                    copy: took,
                    busy,
                    ..
                } = times;
                let name = device.name();
                println!(
                    "{name}, pinned {pin_memory}, {step} ms and {copy:?} asked: step {busy}, copy {took} ({rate:.1} GB/s), wall {wall}"
                );
                assert_near(busy, step, step / 50.0 + 0.05);
                rate
            });
            assert!(copy.is_some() || rates[0] > rates[1], "{rates:?}");
        }
    }
}
