//! The CUDA device end to end: the real cudarc on a scripted driver. The driver's library is found by its name, so
//! each test runs itself again in a process whose library path begins with a directory of its own.

#![expect(clippy::disallowed_methods, reason = "what a device does takes time")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/measured.rs"]
mod measured;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use measured::measured;
use pipetop::workload::device::{Device, DeviceOptions, open};
use pipetop::workload::settings::DeviceKind;
use tempfile::TempDir;

/// Set in the process that has the scripted driver.
const CHILD: &str = "PIPETOP_TEST_CUDA_CHILD";
/// The line that the device is to be opened with.
const NOTICE: &str = "PIPETOP_TEST_CUDA_NOTICE";
const MS: Duration = Duration::from_millis(1);

fn in_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// A directory with a driver.
struct Driver(TempDir);

impl Driver {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        fake_cuda::install(directory.path());
        Self(directory)
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("libcuda.so.1")
    }

    /// Runs that test again on this driver, and gives what was called of it. It measures real times.
    fn run(&self, test: &str, script: &[(&str, &str)]) -> Vec<String> {
        let log = self.0.path().join("log");
        let measure = || {
            let _ = fs::remove_file(&log);
            let output = Command::new(env::current_exe().unwrap())
                .args(["--exact", test, "--nocapture"])
                .env(CHILD, "1")
                .env("LD_LIBRARY_PATH", self.0.path())
                .env("FAKE_CUDA_LOG", &log)
                .envs(script.iter().copied())
                .output();
            output.unwrap()
        };
        let output = measured(measure, |output| output.status.success());
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let passed = output.status.success() && out.contains("1 passed");
        assert!(passed, "{script:?}: {}\n{out}\n{err}", output.status);
        assert!(!err.contains("panicked"), "{script:?}: {err}");
        let log = fs::read_to_string(log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

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

struct Medians {
    /// From one step's end to the next one's.
    wall: Duration,
    copy: Duration,
    busy: Duration,
}

/// A training loop that brings the next batch while a step is computed.
fn train(device: &mut dyn Device, batch: &[u8], steps: usize) -> Medians {
    let (mut walls, mut copies, mut steps_took) = (Vec::new(), Vec::new(), Vec::new());
    device.copy(batch).unwrap();
    let mut last = Instant::now();
    for _ in 0..steps {
        device.step().unwrap();
        device.copy(batch).unwrap();
        let times = device.finish().unwrap();
        walls.push(last.elapsed());
        last = Instant::now();
        copies.push(times.copy);
        steps_took.push(times.busy);
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    Medians {
        wall: median(walls),
        copy: median(copies),
        busy: median(steps_took),
    }
}

fn assert_near(time: Duration, wanted: Duration, within: Duration) {
    let off = time.abs_diff(wanted);
    assert!(
        off <= within,
        "{time:?} is not {wanted:?} within {within:?}"
    );
}

#[test]
fn pinned_copies_overlap_with_steps_and_pageable_ones_do_not() {
    if !in_child() {
        let test = "pinned_copies_overlap_with_steps_and_pageable_ones_do_not";
        Driver::new().run(test, &[]);
        return;
    }
    let batch = vec![7; 1 << 20];
    for (pin_memory, wall) in [(true, 10 * MS), (false, 15 * MS)] {
        let copy = Some(5 * MS);
        let options = DeviceOptions {
            copy,
            ..options(pin_memory, batch.len())
        };
        let medians = train(&mut *cuda(&options), &batch, 15);
        assert_near(medians.wall, wall, 2 * MS);
        assert_near(medians.copy, 5 * MS, MS / 2);
        assert_near(medians.busy, 10 * MS, MS / 5);
    }
}

#[test]
fn a_copy_takes_what_its_bytes_take_and_a_step_what_was_asked_for() {
    if !in_child() {
        let test = "a_copy_takes_what_its_bytes_take_and_a_step_what_was_asked_for";
        // Both kernels end late, which the step's length must not show.
        Driver::new().run(test, &[("FAKE_CUDA_LATE_US", "700")]);
        return;
    }
    let batch = vec![7; 24 << 20];
    for (pin_memory, bytes_per_nanosecond) in [(true, 25), (false, 6)] {
        let medians = train(&mut *cuda(&options(pin_memory, batch.len())), &batch, 9);
        let copy = Duration::from_nanos(batch.len() as u64 / bytes_per_nanosecond);
        assert_near(medians.copy, copy, MS / 5);
        assert_near(medians.busy, 10 * MS, MS / 5);
    }
    // A step of no length only reads the batch.
    let options = DeviceOptions {
        step: Duration::ZERO,
        ..options(true, 4096)
    };
    let medians = train(&mut *cuda(&options), &batch[..4096], 9);
    assert_near(medians.busy, MS * 7 / 10, MS / 5);
}

#[test]
fn each_step_reads_its_own_batch_and_everything_is_given_back() {
    let test = "each_step_reads_its_own_batch_and_everything_is_given_back";
    if !in_child() {
        for script in [
            [("PIN", "1"), ("FAKE_CUDA_POOLS", "1")],
            [("PIN", "0"), ("FAKE_CUDA_POOLS", "0")],
        ] {
            let log = Driver::new().run(test, &script);
            let read = log.iter().filter(|line| line.starts_with("touch"));
            let read: Vec<_> = read
                .skip_while(|line| !line.ends_with("sum=2000"))
                .collect();
            // 1000 bytes are 62 and a half pieces; nothing was ever written behind them.
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
    // A copy is still under way when the device is given back.
    device.copy(&[8; 1000]).unwrap();
}

#[test]
fn calls_in_the_wrong_order_and_too_large_a_batch_are_errors() {
    if !in_child() {
        let test = "calls_in_the_wrong_order_and_too_large_a_batch_are_errors";
        Driver::new().run(test, &[]);
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

/// In the child: the simulated device, with the line that is to say why.
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
    if in_child() {
        return assert_simulated();
    }
    let memory = "cannot take memory for the batches: out of memory";
    let kernels = "the GPU's driver refuses the kernels";
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
            "the CUDA library found is the toolkit's stub, not the driver's (see LD_LIBRARY_PATH)",
        ),
        (
            "FAKE_CUDA_FAIL",
            "cuInit=803",
            "the CUDA library and the kernel's driver are of different versions (restart after an update)",
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
        let notice = format!("{why}: the device is simulated");
        Driver::new().run(test, &[(variable, value), (NOTICE, &notice)]);
    }
}

#[test]
fn a_missing_driver_gives_the_simulated_device_and_says_so() {
    if in_child() {
        return assert_simulated();
    }
    // Files that are no libraries stand before the machine's driver, should it have one.
    let driver = Driver::new();
    fs::write(driver.library(), "no library").unwrap();
    let test = "a_missing_driver_gives_the_simulated_device_and_says_so";
    let notice = "no CUDA driver here (libcuda.so.1 not found): the device is simulated";
    driver.run(test, &[(NOTICE, notice)]);
}

#[test]
fn a_driver_that_lacks_a_function_gives_the_simulated_device_and_names_it() {
    let test = "a_driver_that_lacks_a_function_gives_the_simulated_device_and_names_it";
    if in_child() {
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
    // All that a whole run calls, on a GPU with memory pools and on one without.
    let mut called = BTreeSet::new();
    for pools in ["0", "1"] {
        called.extend(Driver::new().run(test, &[("FAKE_CUDA_POOLS", pools)]));
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
        let notice = format!("the CUDA driver lacks {symbol}: the device is simulated");
        driver.run(test, &[(NOTICE, &notice)]);
    }
}

/// In the child: a device that works at first, until it fails with that error.
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
    // A kernel's failure is heard of at whatever call comes next.
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
    if in_child() {
        return assert_fails_later("cannot copy a batch to the GPU: out of memory");
    }
    let script = [("FAKE_CUDA_FAIL", "cuMemcpyHtoDAsync_v2=2@20")];
    Driver::new().run("memory_that_runs_out_later_is_an_error", &script);
}

#[test]
fn a_kernel_that_fails_later_is_an_error() {
    if in_child() {
        return assert_fails_later(": unspecified launch failure");
    }
    let script = [("FAKE_CUDA_FAIL", "kernel=719@30")];
    Driver::new().run("a_kernel_that_fails_later_is_an_error", &script);
}

/// Prints what a card does, and checks what must hold on every one.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_real_gpu_keeps_its_times() {
    for step in [MS / 2, 2 * MS, 10 * MS, 100 * MS] {
        for copy in [None, Some(5 * MS)] {
            let mut rates = Vec::new();
            for pin_memory in [true, false] {
                let batch = vec![7; 64 << 20];
                let options = DeviceOptions {
                    step,
                    copy,
                    ..options(pin_memory, batch.len())
                };
                let (mut device, notice) = open(DeviceKind::Cuda, &options);
                assert_eq!(notice, None);
                let medians = train(&mut *device, &batch, 20);
                let rate = batch.len() as f64 / medians.copy.as_secs_f64() / 1e9;
                let Medians {
                    wall,
                    copy: took,
                    busy,
                } = medians;
                let name = device.name();
                println!(
                    "{name}, pinned {pin_memory}, {step:?} and {copy:?} asked: step {busy:?}, copy {took:?} ({rate:.1} GB/s), wall {wall:?}"
                );
                assert_near(busy, step, step / 50 + MS / 20);
                rates.push(rate);
            }
            assert!(copy.is_some() || rates[0] > rates[1], "{rates:?}");
        }
    }
}
