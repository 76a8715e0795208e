//! The times of steps and copies on a real GPU. The tests beside the CUDA device's source check them on a scripted
//! driver.

#![expect(clippy::disallowed_methods, reason = "device operations take time")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use pipetop::testing::lab::workload::device::{Device, DeviceOptions, open};
use pipetop::testing::lab::workload::settings::DeviceKind;
use support::measured::median;

/// Number of steps of a run; the median of their times counts.
const STEPS: usize = 15;

/// Medians over the steps, in milliseconds. `wall` is from one step's end to the next by the host's clock; the others
/// are measured by the device's clock.
struct Times {
    wall: f64,
    copy: f64,
    busy: f64,
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
        wall: median(walls),
        copy: median(copies),
        busy: median(steps),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
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
                    pin_memory,
                    batch_bytes: batch.len(),
                };
                let (mut device, notice) = open(DeviceKind::Cuda, &options);
                assert_eq!(notice, None);
                let times = train(&mut *device, &batch);
                let rate = batch.len() as f64 / times.copy / 1e6;
                let Times {
                    wall,
                    copy: took,
                    busy,
                } = times;
                let name = device.name();
                println!(
                    "{name}, pinned {pin_memory}, {step} ms and {copy:?} asked: step {busy}, copy {took} ({rate:.1} GB/s), wall {wall}"
                );
                let off = (busy - step).abs();
                assert!(off <= step / 50.0 + 0.05, "{busy} ms is not {step}");
                rate
            });
            assert!(copy.is_some() || rates[0] > rates[1], "{rates:?}");
        }
    }
}
