//! The CUDA device end to end: the real cudarc on a scripted driver, whose time passes only in calls that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::iter;
use std::time::Duration;

use cudarc::driver::sys;
use fake_cuda::Driver;

use super::{Device, DeviceOptions, StepTimes, open};
use crate::lab::workload::settings::DeviceKind;

const HERE: &str = module_path!();
/// Environment variable with the notice that opening the device must return.
const NOTICE: &str = "PIPETOP_TEST_CUDA_NOTICE";
const MS: Duration = Duration::from_millis(1);

fn options(pin_memory: bool, batch_bytes: usize) -> DeviceOptions {
    DeviceOptions {
        step: 10 * MS,
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

/// Runs a training loop that copies the next batch while a step is computed.
fn train(device: &mut dyn Device, batch: &[u8], steps: usize) {
    device.copy(batch).unwrap();
    for _ in 0..steps {
        device.step().unwrap();
        device.copy(batch).unwrap();
        device.finish().unwrap();
    }
}

#[test]
fn each_step_reads_its_own_batch_and_everything_is_given_back() {
    let test = "each_step_reads_its_own_batch_and_everything_is_given_back";
    if !Driver::is_here() {
        for script in [
            [("PIN", "1"), ("FAKE_CUDA_POOLS", "1")],
            [("PIN", "0"), ("FAKE_CUDA_POOLS", "0")],
        ] {
            let log = Driver::new().run(HERE, test, &script);
            let read = log.iter().filter(|line| line.starts_with("touch"));
            let read: Vec<_> = read
                .skip_while(|line| !line.ends_with("sum=2000"))
                .collect();
            // 1000 bytes are 62 and a half pieces; the rest of the last piece was never written.
            let sums = ["2000", "3000", "4000", "5000", "6000", "7000"];
            assert_eq!(
                read,
                sums.map(|sum| format!("touch bytes=1008 sum={sum}"))
                    .each_ref()
            );
            let left = "left streams=0 events=0 modules=0 device=0 pinned=0";
            assert_eq!(log.last().map(String::as_str), Some(left));
        }
        return;
    }
    let pin_memory = env::var("PIN").unwrap() == "1";
    let mut device = cuda(&DeviceOptions {
        step: MS,
        copy: Some(MS),
        ..options(pin_memory, 1000)
    });
    device.copy(&[2; 1000]).unwrap();
    for next in 3..=7 {
        device.step().unwrap();
        device.copy(&[next; 1000]).unwrap();
        device.finish().unwrap();
    }
    device.step().unwrap();
    device.finish().unwrap();
    // A copy is still in progress when the device is dropped.
    device.copy(&[8; 1000]).unwrap();
}

#[test]
fn calls_in_the_wrong_order_and_too_large_a_batch_are_errors() {
    if !Driver::is_here() {
        let test = "calls_in_the_wrong_order_and_too_large_a_batch_are_errors";
        Driver::new().run(HERE, test, &[]);
        return;
    }
    let mut device = cuda(&options(true, 1000));
    assert!(device.step().is_err());
    assert!(device.finish().is_err());
    let error = device.copy(&[0; 1009]).unwrap_err();
    assert_eq!(error.0, "a batch of 1009 bytes does not fit into 1008");
    device.copy(&[]).unwrap();
    device.copy(&[0; 1000]).unwrap();
    assert!(device.copy(&[0; 1000]).is_err());
    device.step().unwrap();
    device.finish().unwrap();
    device.copy(&[0; 1000]).unwrap();
}

/// Runs in the child process: opens the simulated device, and checks that the notice has the reason.
fn assert_simulated() {
    for kind in [DeviceKind::Auto, DeviceKind::Cuda] {
        let (mut device, notice) = open(kind, &options(true, 1000));
        assert_eq!(notice, env::var(NOTICE).ok());
        assert_eq!(device.name(), "simulated");
        train(&mut *device, &[0; 1000], 2);
    }
}

#[test]
fn a_driver_that_fails_gives_the_simulated_device_and_says_why() {
    let test = "a_driver_that_fails_gives_the_simulated_device_and_says_why";
    if Driver::is_here() {
        return assert_simulated();
    }
    let memory = "cannot allocate memory for the batches: out of memory";
    let kernels = "the GPU driver rejected the kernels";
    for (variable, value, why) in [
        ("FAKE_CUDA_DEVICES", "0", "the CUDA driver finds no GPU"),
        (
            "FAKE_CUDA_FAIL",
            "cuInit=100",
            "the CUDA driver finds no GPU",
        ),
        (
            "FAKE_CUDA_FAIL",
            "cuInit=34",
            "the CUDA library is the toolkit's stub, not the driver's (check LD_LIBRARY_PATH)",
        ),
        (
            "FAKE_CUDA_FAIL",
            "cuInit=803",
            "CUDA library and kernel driver versions differ (reboot after an update)",
        ),
        (
            "FAKE_CUDA_FAIL",
            "cuInit=999",
            "cuInit failed: unknown error",
        ),
        ("FAKE_CUDA_FAIL", "cuInit=7777", "cuInit failed: error 7777"),
        (
            "FAKE_CUDA_FAIL",
            "cuDevicePrimaryCtxRetain=2",
            "cannot use the GPU: out of memory",
        ),
        ("FAKE_CUDA_FAIL", "cuMemAllocAsync=2", memory),
        ("FAKE_CUDA_FAIL", "cuMemAllocAsync=2@3", memory),
        ("FAKE_CUDA_FAIL", "cuMemHostAlloc=2", memory),
        (
            "FAKE_CUDA_FAIL",
            "cuModuleLoadData=222",
            &format!("{kernels}: the provided PTX was compiled with an unsupported toolchain"),
        ),
        (
            "FAKE_CUDA_FAIL",
            "cuModuleGetFunction=500",
            &format!("{kernels}: named symbol not found"),
        ),
        (
            "FAKE_CUDA_FAIL",
            "cuMemcpyHtoDAsync_v2=2",
            "cannot copy a batch to the GPU: out of memory",
        ),
        (
            "FAKE_CUDA_FAIL",
            "kernel=700",
            "a step failed on the GPU: an illegal memory access was encountered",
        ),
    ] {
        let notice = format!("{why}: simulating the device");
        Driver::new().run(HERE, test, &[(variable, value), (NOTICE, &notice)]);
    }
}

#[test]
fn a_missing_driver_gives_the_simulated_device_and_says_so() {
    if Driver::is_here() {
        return assert_simulated();
    }
    // Files that are not libraries precede the machine's driver, if there is one.
    let driver = Driver::new();
    fs::write(driver.library(), "no library").unwrap();
    let test = "a_missing_driver_gives_the_simulated_device_and_says_so";
    let notice = "no CUDA driver (libcuda.so.1 not found): simulating the device";
    driver.run(HERE, test, &[(NOTICE, notice)]);
}

#[test]
fn a_driver_that_lacks_a_function_gives_the_simulated_device_and_names_it() {
    let test = "a_driver_that_lacks_a_function_gives_the_simulated_device_and_names_it";
    if Driver::is_here() {
        if env::var_os(NOTICE).is_some() {
            return assert_simulated();
        }
        let options = DeviceOptions {
            copy: Some(MS),
            ..options(true, 1000)
        };
        train(&mut *cuda(&options), &[0; 1000], 3);
        return;
    }
    // All functions that a whole run calls, both on a GPU with memory pools and on one without.
    let mut called = BTreeSet::new();
    for pools in ["0", "1"] {
        called.extend(Driver::new().run(HERE, test, &[("FAKE_CUDA_POOLS", pools)]));
    }
    called.retain(|line| line.starts_with("cu"));
    assert!(called.len() > 30, "{called:?}");
    let whole = fs::read(Driver::new().library()).unwrap();
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut at = 0;
    for word in whole.split(|byte| *byte == 0) {
        if let Some(symbol) = str::from_utf8(word).ok().and_then(|word| called.get(word)) {
            places.entry(symbol).or_default().push(at);
        }
        at += word.len() + 1;
    }
    assert_eq!(places.len(), called.len());
    for (symbol, places) in places {
        let driver = Driver::new();
        let mut library = whole.clone();
        for at in places {
            library[at] = b'-';
        }
        fs::write(driver.library(), library).unwrap();
        let notice = format!("the CUDA driver lacks {symbol}: simulating the device");
        driver.run(HERE, test, &[(NOTICE, &notice)]);
    }
}

/// Runs in the child process: a device works at first, and later fails with this error.
fn assert_fails_later(why: &str) {
    let batch = [7; 1000];
    let mut device = cuda(&options(true, batch.len()));
    device.copy(&batch).unwrap();
    let mut steps = 0;
    let error = loop {
        let step = device.step().and_then(|()| device.copy(&batch));
        if let Err(error) = step.and_then(|()| device.finish()) {
            break error;
        }
        steps += 1;
    };
    // A kernel's failure may be reported by any later call.
    assert!(error.0.ends_with(why), "{error}");
    assert!((2..=20).contains(&steps), "{steps} steps");
    assert!(device.copy(&batch).is_err() || device.finish().is_err());
    drop(device);
    let (mut device, notice) = open(DeviceKind::Sim, &options(true, batch.len()));
    assert_eq!(notice, None);
    train(&mut *device, &batch, 2);
}

#[test]
fn memory_that_runs_out_later_is_an_error() {
    if Driver::is_here() {
        return assert_fails_later("cannot copy a batch to the GPU: out of memory");
    }
    let script = [("FAKE_CUDA_FAIL", "cuMemcpyHtoDAsync_v2=2@20")];
    Driver::new().run(HERE, "memory_that_runs_out_later_is_an_error", &script);
}

#[test]
fn a_kernel_that_fails_later_is_an_error() {
    if Driver::is_here() {
        return assert_fails_later(": unspecified launch failure");
    }
    let script = [("FAKE_CUDA_FAIL", "kernel=719@30")];
    Driver::new().run(HERE, "a_kernel_that_fails_later_is_an_error", &script);
}

/// Returns the time of the scripted driver, in milliseconds.
#[expect(unsafe_code, reason = "calls into the driver's library")]
fn clock() -> f64 {
    // SAFETY: the scripted driver is there, and its function has this type.
    let nanoseconds = unsafe {
        let clock = sys::culib().get::<unsafe extern "C" fn() -> u64>("fakeCudaClock");
        clock.unwrap()()
    };
    nanoseconds as f64 / 1e6
}

/// Trains until the times repeat. Returns, in milliseconds, the time of the last copy, that of its step, and the time
/// from the end of the step before to the end of that step.
fn last_times(options: &DeviceOptions, batch: &[u8]) -> [f64; 3] {
    let mut device = cuda(options);
    train(&mut *device, batch, 3);
    let before = clock();
    device.step().unwrap();
    device.copy(batch).unwrap();
    let StepTimes { copy, busy } = device.finish().unwrap();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    [ms(copy), ms(busy), clock() - before]
}

fn assert_times(found: [f64; 3], wanted: [f64; 3], within: f64) {
    let near = |(found, wanted): (f64, f64)| (found - wanted).abs() <= within;
    let all = iter::zip(found, wanted).all(near);
    assert!(
        all,
        "copy, step and both: {found:?} ms, not {wanted:?} within {within}"
    );
}

#[test]
fn pinned_copies_overlap_with_steps_and_pageable_ones_do_not() {
    if !Driver::is_here() {
        let test = "pinned_copies_overlap_with_steps_and_pageable_ones_do_not";
        Driver::new().run(HERE, test, &[]);
        return;
    }
    let batch = vec![7; 1 << 20];
    for (pin_memory, both) in [(true, 10.0), (false, 15.0)] {
        let options = DeviceOptions {
            copy: Some(5 * MS),
            ..options(pin_memory, batch.len())
        };
        assert_times(last_times(&options, &batch), [5.0, 10.0, both], 0.01);
    }
}

#[test]
fn a_copy_takes_what_its_bytes_take_and_a_step_what_was_asked_for() {
    if !Driver::is_here() {
        let test = "a_copy_takes_what_its_bytes_take_and_a_step_what_was_asked_for";
        // Both kernels end late, which must not change the length of a step.
        Driver::new().run(HERE, test, &[("FAKE_CUDA_LATE_US", "700")]);
        return;
    }
    let batch = vec![7; 24 << 20];
    for (pin_memory, bytes_per_ms) in [(true, 25e6), (false, 6e6)] {
        let copy = batch.len() as f64 / bytes_per_ms;
        let both = if pin_memory { 10.0 } else { 10.0 + copy };
        let found = last_times(&options(pin_memory, batch.len()), &batch);
        assert_times(found, [copy, 10.0, both], 0.001);
    }
    // A step of length 0 only reads the batch.
    let options = DeviceOptions {
        step: Duration::ZERO,
        ..options(true, 4096)
    };
    assert_times(last_times(&options, &batch[..4096]), [0.0, 0.7, 0.7], 0.001);
}
