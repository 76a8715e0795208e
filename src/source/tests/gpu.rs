//! Tests of the GPU source with real threads and the real nvml-wrapper on a scripted driver.

#![expect(
    clippy::disallowed_methods,
    reason = "real threads are waited for, up to a deadline"
)]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::sample::{Gap, GpuSample, Tail};
use crate::source::gpu::Gpus;
use crate::units::{Bytes, Moment, Pid};
use fake_nvml::FakeNvml;
use tempfile::TempDir;

const INTERVAL: Duration = Duration::from_millis(10);
/// Limit for tests that hang; deliberate hangs last twice as long.
const DEADLINE: Duration = Duration::from_mins(5);

fn now() -> Moment {
    static START: OnceLock<Instant> = OnceLock::new();
    Moment {
        since_start: START.get_or_init(Instant::now).elapsed(),
        wall: SystemTime::now(),
    }
}

/// Creates a driver for one test.
fn driver(script: &str) -> (TempDir, FakeNvml) {
    let directory = TempDir::new().expect("a temporary directory");
    let fake = FakeNvml::install(directory.path(), script);
    (directory, fake)
}

fn start(fake: &FakeNvml) -> Gpus {
    Gpus::start(Some(fake.library()), None, INTERVAL, now)
}

/// Polls the GPUs until `what` is true.
fn until(gpus: &Gpus, what: impl Fn(&[GpuSample], &[Gap]) -> bool) -> (Vec<GpuSample>, Vec<Gap>) {
    let began = Instant::now();
    loop {
        let (rows, gaps) = gpus.newest(1);
        if what(&rows, &gaps) {
            return (rows, gaps);
        }
        assert!(
            began.elapsed() < DEADLINE,
            "never seen; {rows:#?} {gaps:#?}"
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// Polls until every GPU was read.
fn all_read(gpus: &Gpus, count: usize) -> Vec<GpuSample> {
    until(gpus, |rows, _| {
        rows.len() == count && rows.iter().all(|row| row.read_at.is_some())
    })
    .0
}

/// Returns the gap that is reported if this library is opened.
fn failure(library: Option<PathBuf>) -> Gap {
    let gpus = Gpus::start(library, None, INTERVAL, now);
    let (rows, mut gaps) = until(&gpus, |_, gaps| {
        gaps.iter()
            .all(|gap| !gap.reason.contains("opening the NVIDIA driver"))
    });
    assert_eq!((rows.len(), gaps.len()), (0, 1));
    assert!(!gaps[0].hint.is_empty());
    gaps.remove(0)
}

#[test]
fn every_figure_of_a_gpu_is_read() {
    let (_directory, fake) = driver(
        "dev 0 name=NVIDIA_H200 uuid=GPU-5ac7 util=63 mem_util=21 total=141G used=40G\n\
         dev 0 power=512.5 limit=700 temp=61 sm=1755 memclk=3201 throttle=37\n\
         dev 0 procs=4242:30G:55:10,4243:1G",
    );
    let row = all_read(&start(&fake), 1).remove(0);
    assert_eq!(row.index, 0);
    assert_eq!(row.name.as_deref(), Some("NVIDIA H200"));
    assert_eq!(row.uuid.as_deref(), Some("GPU-5ac7"));
    assert_eq!(row.util_percent, Some(63.0));
    assert_eq!(row.mem_util_percent, Some(21.0));
    assert_eq!(row.mem_used, Some(Bytes(40 << 30)));
    assert_eq!(row.mem_total, Some(Bytes(141 << 30)));
    assert_eq!(row.power_watts, Some(512.5));
    assert_eq!(row.power_limit_watts, Some(700.0));
    assert_eq!(row.temperature_c, Some(61.0));
    assert_eq!(row.sm_clock_mhz, Some(1755.0));
    assert_eq!(row.mem_clock_mhz, Some(3201.0));
    // 37 = idle (1), which is not a reason, + power cap (4) + thermal (32).
    assert_eq!(row.throttle.unwrap(), ["power cap", "too hot"]);
    let processes = row.processes.unwrap();
    assert_eq!(processes.len(), 2);
    assert_eq!(processes[0].pid, Pid(4242));
    assert_eq!(processes[0].mem, Some(Bytes(30 << 30)));
    assert_eq!(processes[0].sm_percent, Some(55.0));
    assert_eq!(processes[1].sm_percent, None, "no sample is not 0 %");
    assert!(row.util_samples.newest.len() >= 7, "the last second");
    assert_eq!(row.gap, None);
}

#[test]
fn two_and_eight_gpus_come_in_order_each_with_its_own_figures() {
    for count in [2, 8] {
        let lines = (0..count).map(|i| format!("dev {i} util={}\n", i * 10));
        let script = format!("sys count={count}\n{}", lines.collect::<String>());
        let (_directory, fake) = driver(&script);
        let rows = all_read(&start(&fake), count);
        for (i, row) in rows.iter().enumerate() {
            assert_eq!(row.index as usize, i);
            assert_eq!(row.util_percent, Some(i as f64 * 10.0));
        }
    }
}

#[test]
fn a_square_wave_is_seen_now_and_in_the_history() {
    let (directory, fake) = driver("");
    fake.set_clock(100.0);
    let clock = directory.path().join("nvml.clock");
    fake.script(&format!(
        "sys clock={}\ndev 0 util=90~10/4 sample_ms=500",
        clock.display()
    ));
    let gpus = start(&fake);
    let row = all_read(&gpus, 1).remove(0);
    assert_eq!(row.util_percent, Some(90.0));
    let last_second = [(99_500_000, 10.0), (100_000_000, 90.0)];
    assert_eq!(row.util_samples, Tail::new(2, last_second));

    fake.set_clock(103.0);
    let (mut newer, mut known) = (Vec::new(), row.util_samples);
    let began = Instant::now();
    while newer.len() < 6 {
        assert!(began.elapsed() < DEADLINE, "{newer:?}");
        let now = gpus.newest(1).0.remove(0).util_samples;
        newer.extend(now.since(Some(&known)).copied());
        known = now;
        thread::yield_now();
    }
    let expected = [90.0, 90.0, 90.0, 10.0, 10.0, 10.0];
    let utils: Vec<_> = newer.iter().map(|(_, util)| *util).collect();
    assert_eq!(
        utils, expected,
        "each once, those before are not reported again"
    );
    until(&gpus, |rows, _| rows[0].util_percent == Some(10.0));
}

#[test]
fn a_lost_gpu_keeps_its_row_and_comes_back() {
    let (_directory, fake) = driver("sys count=2\ndev * util=50 procs=7:1G");
    let gpus = start(&fake);
    all_read(&gpus, 2);
    fake.script("sys count=2\ndev * util=50 procs=7:1G\ndev 1 fail=lost");
    let lost = |rows: &[GpuSample], _: &[Gap]| rows[1].gap.as_deref() == Some("lost");
    let (rows, gaps) = until(&gpus, lost);
    assert_eq!(gaps, []);
    assert_eq!(rows[0].util_percent, Some(50.0));
    assert_eq!(rows[0].gap, None);
    assert_eq!(rows[1].util_percent, None);
    assert_eq!(rows[1].processes, None);
    assert_eq!(rows[1].name.as_deref(), Some("NVIDIA H200"));
    fake.script("sys count=2\ndev * util=70 procs=7:1G");
    let (rows, _) = until(&gpus, |rows, _| rows[1].util_percent == Some(70.0));
    assert_eq!(rows[1].gap, None);
    assert_eq!(rows[1].processes.as_ref().unwrap().len(), 1);
}

#[test]
fn one_call_that_fails_takes_only_its_own_figure() {
    let (_directory, fake) = driver(
        "sys count=3\ndev * util=40\n\
         dev 0 fail.nvmlDeviceGetComputeRunningProcesses_v3=no-permission\n\
         dev 1 fail.nvmlDeviceGetPowerUsage=not-supported fail.nvmlDeviceGetTemperature=25\n\
         dev 2 fail.nvmlDeviceGetClockInfo=unknown",
    );
    let rows = all_read(&start(&fake), 3);
    for row in &rows {
        assert_eq!((row.util_percent, &row.gap), (Some(40.0), &None));
    }
    let why = |row: &GpuSample, figure: &str| {
        let mut absent = row.absent.iter();
        let found = absent.find(|absent| absent.figure == figure);
        found.map(|absent| absent.reason.clone())
    };
    assert_eq!(rows[0].processes, None);
    assert_eq!(why(&rows[0], "processes").as_deref(), Some("no permission"));
    assert_eq!((rows[1].power_watts, rows[1].temperature_c), (None, None));
    assert_eq!(rows[2].sm_clock_mhz, None);
    assert!(why(&rows[2], "sm_clock").is_some());
}

#[test]
fn a_gpu_that_denies_every_figure_says_so_in_its_row() {
    let (_directory, fake) = driver(
        "dev 0 util=40 fail.nvmlDeviceGetUtilizationRates=no-permission\n\
         dev 0 fail.nvmlDeviceGetMemoryInfo_v2=no-permission fail.nvmlDeviceGetMemoryInfo=no-permission\n\
         dev 0 fail.nvmlDeviceGetPowerUsage=no-permission fail.nvmlDeviceGetTemperature=no-permission",
    );
    let row = all_read(&start(&fake), 1).remove(0);
    assert_eq!((row.util_percent, row.mem_used), (None, None));
    assert_eq!(row.gap.as_deref(), Some("no permission"));
}

#[test]
fn a_gpu_divided_by_mig_says_why_it_has_no_utilisation() {
    let (_directory, fake) = driver("dev 0 mig=1 util=40 used=3G");
    let row = all_read(&start(&fake), 1).remove(0);
    assert_eq!(row.util_percent, None);
    assert_eq!(row.util_samples, Tail::default());
    assert_eq!(row.mem_used, Some(Bytes(3 << 30)));
    assert!(row.gap.unwrap().starts_with("MIG is on"));
}

#[test]
fn implausible_values_are_not_reported() {
    let (_directory, fake) = driver(
        "dev 0 util=4294967295 mem_util=101 total=80G used=81G power=4000000 limit=0\n\
         dev 0 temp=4294967295 sm=4294967295 memclk=99999 throttle=9223372036854775808\n\
         dev 0 procs=0:1G,4294967295:1G,5000000:1G,77:-:200,78:1G:400",
    );
    let row = all_read(&start(&fake), 1).remove(0);
    assert_eq!((row.util_percent, row.mem_util_percent), (None, None));
    assert_eq!((row.mem_used, row.mem_total), (None, None));
    assert_eq!((row.power_watts, row.power_limit_watts), (None, None));
    assert_eq!((row.temperature_c, row.sm_clock_mhz), (None, None));
    assert_eq!(
        (row.mem_clock_mhz, row.util_samples.newest.len()),
        (None, 0)
    );
    assert_eq!(row.throttle.unwrap(), ["other reason"]);
    let processes = row.processes.unwrap();
    let pids: Vec<_> = processes.iter().map(|process| process.pid.0).collect();
    assert_eq!(pids, [77, 78]);
    assert_eq!(processes[0].mem, None, "the driver does not know it");
    assert!(processes.iter().all(|process| process.sm_percent.is_none()));
}

#[test]
fn a_hanging_gpu_becomes_stale_and_blocks_nothing() {
    let (_directory, fake) = driver("sys count=2\ndev * util=10");
    let gpus = start(&fake);
    all_read(&gpus, 2);
    fake.script("sys count=2\ndev * util=20\ndev 1 hang.nvmlDeviceGetUtilizationRates=600");
    let stale =
        |rows: &[GpuSample], _: &[Gap]| rows[1].gap.is_some() && rows[0].util_percent == Some(20.0);
    let (rows, _) = until(&gpus, stale);
    assert_eq!(rows[1].gap.as_deref(), Some("driver not responding"));
    assert_eq!(rows[1].util_percent, Some(10.0), "the last that was known");
    assert_eq!((rows[0].util_percent, &rows[0].gap), (Some(20.0), &None));
    let age = |row: &GpuSample| now().seconds_since(&row.read_at.unwrap());
    assert!(age(&rows[1]) > 0.3);
    assert!(age(&rows[0]) < age(&rows[1]));

    // Reading the board does not wait for the driver, which still hangs.
    for _ in 0..100 {
        let (rows, _) = gpus.newest(1);
        assert_eq!(rows[1].gap.as_deref(), Some("driver not responding"));
    }
    // The driver answers again, so the GPU is shown again.
    fake.script("sys count=2\ndev * util=30");
    until(&gpus, |rows, _| {
        rows[1].util_percent == Some(30.0) && rows[1].gap.is_none()
    });

    fake.script("sys count=2\ndev * hang=600");
    let began = Instant::now();
    drop(gpus);
    assert!(began.elapsed() < DEADLINE, "no wait at the end");
    // Ends the hang, so that the threads can end.
    fake.script("sys count=2");
}

#[test]
fn a_driver_that_hangs_at_the_start_is_a_gap_and_seen_once_it_answers() {
    let (_directory, fake) = driver("sys hang.nvmlInit_v2=600\ndev 0 util=5");
    let gpus = start(&fake);
    // Neither call waits for the driver.
    let (rows, gaps) = gpus.newest(1);
    assert_eq!((rows.len(), gaps.len()), (0, 1));
    until(&gpus, |_, gaps| gaps[0].reason.contains("not responding"));
    fake.script("dev 0 util=5");
    // The row appears and the gap disappears, in either order.
    let (rows, _) = until(&gpus, |rows, gaps| {
        rows.iter().any(|row| row.util_percent == Some(5.0)) && gaps.is_empty()
    });
    assert_eq!(rows.len(), 1);
}

#[test]
fn each_way_that_nvml_fails_has_its_own_words() {
    for (error, reason) in [
        ("mismatch", "NVIDIA driver/library version mismatch"),
        ("not-loaded", "the NVIDIA driver is not loaded"),
        ("no-permission", "no permission to use the NVIDIA driver"),
        ("unknown", "cannot initialise NVML: "),
    ] {
        let (_directory, fake) = driver(&format!("sys init={error}"));
        let gap = failure(Some(fake.library()));
        assert_eq!(gap.source, "nvml");
        assert!(gap.reason.starts_with(reason), "{gap:?}");
    }
    let (_directory, fake) = driver("sys count=0");
    let gap = failure(Some(fake.library()));
    assert_eq!(gap.reason, "the NVIDIA driver lists no GPU");
}

#[test]
fn a_missing_and_a_wrong_library_are_distinguished() {
    let directory = TempDir::new().unwrap();
    let absent = directory.path().join("libnvidia-ml.so.1");
    let gap = failure(Some(absent.clone()));
    assert_eq!(gap.reason, format!("{} not found", absent.display()));
    assert!(gap.hint.contains("container"));

    let text = directory.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    let gap = failure(Some(text.clone()));
    let named = format!("cannot load {}: ", text.display());
    let why = gap.reason.strip_prefix(&named).expect("its name first");
    // The reason is in the dynamic loader's words, not in those of the crate.
    assert!(
        !why.contains("libloading") && !why.contains("text.so"),
        "{gap:?}"
    );

    let gap = failure(Some("libm.so.6".into()));
    assert_eq!(gap.reason, "libm.so.6 is not NVML");
}

#[test]
fn a_selection_shows_those_gpus_alone() {
    let (_directory, fake) = driver("sys count=4\ndev 3 uuid=GPU-beef-3");
    let words = |list: &[&str]| Some(list.iter().map(|&word| word.to_owned()).collect());
    let library = || Some(fake.library());
    let gpus = Gpus::start(library(), words(&["1", "GPU-beef"]), INTERVAL, now);
    let rows = all_read(&gpus, 2);
    assert_eq!((rows[0].index, rows[1].index), (1, 3));

    let gpus = Gpus::start(library(), words(&["0", "9"]), INTERVAL, now);
    let (_, gaps) = until(&gpus, |rows, gaps| {
        rows.len() == 1 && !gaps[0].reason.contains("opening the NVIDIA driver")
    });
    assert_eq!(gaps[0].reason, "no GPU \"9\"");
}
