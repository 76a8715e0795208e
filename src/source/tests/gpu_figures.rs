//! Tests of the figures in one reading of a GPU, and of how often each call is made: the real nvml-wrapper on the
//! scripted driver, with the clocks of both set by hand, so that nothing waits and every figure is exact.
//!
//! The longer a call takes, the less often it is made, and on a loaded machine all calls take long. Tests of repeated
//! calls therefore let the longest period pass.

use std::thread::ScopedJoinHandle;
use std::time::{Duration, SystemTime};

use crate::sample::{GpuSample, Link};
use crate::source::gpu::Gpu;
use crate::source::nvml;
use crate::units::{Bytes, BytesPerSecond, Moment, Share};
use fake_nvml::FakeNvml;
use tempfile::TempDir;

/// GPUs of a scripted driver, each read when the test requests it.
struct Machine {
    _directory: TempDir,
    fake: FakeNvml,
    gpus: Vec<Box<dyn Gpu>>,
}

fn moment(seconds: f64) -> Moment {
    let since_start = Duration::try_from_secs_f64(seconds).expect("a time");
    Moment {
        since_start,
        wall: SystemTime::UNIX_EPOCH + since_start,
    }
}

impl Machine {
    fn new(script: &str) -> Self {
        Self::without(script, &[])
    }

    /// Simulates an older driver, which lacks `symbols`.
    fn without(script: &str, symbols: &[&str]) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let clock = directory.path().join("nvml.clock");
        let script = format!("sys clock={}\n{script}", clock.display());
        let fake = FakeNvml::install_without(directory.path(), &script, symbols);
        fake.set_clock(0.0);
        let gpus = nvml::open(Some(&fake.library())).expect("the driver opens");
        Self {
            _directory: directory,
            fake,
            gpus,
        }
    }

    fn read(&mut self, gpu: usize, seconds: f64) -> GpuSample {
        self.fake.set_clock(seconds);
        self.gpus[gpu].read(moment(seconds))
    }
}

fn absent<'a>(sample: &'a GpuSample, figure: &str) -> Option<&'a str> {
    let mut absent = sample.absent.iter();
    let found = absent.find(|absent| absent.figure == figure)?;
    Some(&found.reason)
}

#[test]
fn driver_counters_are_read_in_their_own_units() {
    let mut machine = Machine::new(
        "dev 0 minor=4 total=80G used=40G reserved=1G power=500~300/4 limit=650 instant=533.25 mem_temp=77\n\
         dev 0 pcie_counters=1 pcie_rx=2000000000 pcie_tx=500000000 nvlink_rx=1048576 nvlink_tx=2097152\n\
         dev 0 pcie_gen=4 pcie_width=8 enc=3 dec=7 persistence=0 ecc_corrected=5 ecc_uncorrected=1\n\
         dev 0 remapped=2:1:1:0",
    );
    let sample = machine.read(0, 10.0);
    assert_eq!(sample.minor, Some(4));
    assert_eq!(sample.mem_reserved, Some(Bytes(1 << 30)));
    assert_eq!(sample.power_instant_watts, Some(533.25));
    assert_eq!(sample.power_limit_watts, Some(650.0));
    assert_eq!(sample.mem_temperature_c, Some(77.0));
    // 500 W in the first half of every 4 s, 300 W in the second: 6 s and 4 s of 10 s.
    let joules = sample.energy_joules.expect("energy");
    assert!((joules - 4200.0).abs() < 1.0, "{joules}");
    let traffic = sample.traffic.expect("traffic");
    let near = |bytes: Option<Bytes>, expected: f64| {
        let bytes = bytes.expect("counted").0 as f64;
        assert!(
            (bytes / expected - 1.0).abs() < 1e-3,
            "{bytes} of {expected}"
        );
    };
    near(traffic.pcie_rx, 20e9);
    near(traffic.pcie_tx, 5e9);
    near(traffic.nvlink_rx, 10.0 * 1_048_576.0);
    near(traffic.nvlink_tx, 20.0 * 1_048_576.0);
    assert_eq!(
        traffic.pcie_sampled, None,
        "nobody asks for 20 ms what is counted"
    );
    let health = sample.health.expect("health");
    let link = Link {
        generation: 4,
        width: 8,
        max_generation: Some(5),
        max_width: Some(16),
    };
    assert_eq!(health.link, Some(link));
    assert_eq!(
        (health.encoder_percent, health.decoder_percent),
        (Some(3.0), Some(7.0))
    );
    assert_eq!(
        (health.ecc_corrected, health.ecc_uncorrected),
        (Some(5), Some(1))
    );
    assert_eq!(health.persistence, Some(false));
    assert_eq!(health.remapped_rows, Some(3));
    assert_eq!(health.remapping_pending, Some(true));
    assert_eq!(health.remapping_failed, Some(false));
    assert_eq!(health.retired_pages, None);
    assert_eq!(
        absent(&sample, "retired_pages"),
        Some("not supported by this GPU")
    );
    assert_eq!(sample.gap, None, "what a GPU does not have is no trouble");
}

#[test]
fn counters_are_means_between_two_polls() {
    let mut machine = Machine::new(
        "dev 0 gpm=1 gpm.1=100~0/2 gpm.2=40 gpm.3=12.5 gpm.5=30 gpm.10=55 gpm.20=1000 gpm.21=2000\n\
         dev 0 gpm.60=10 pcie_counters=none",
    );
    assert_eq!(machine.read(0, 10.0).counters, None, "one look is none");
    assert_eq!(machine.read(0, 10.05).counters, None, "nor are two at once");
    let counters = machine.read(0, 131.0).counters.expect("two looks");
    assert_eq!((counters.from, counters.to), (moment(10.0), moment(131.0)));
    let close = |share: Option<Share>, expected: f64| {
        let share = share.expect("known").0;
        assert!((share - expected).abs() < 1e-6, "{share}");
    };
    close(counters.sm_active, 0.4);
    close(counters.sm_occupancy, 0.125);
    close(counters.tensor, 0.3);
    close(counters.dram, 0.55);
    let mib = |rate: Option<BytesPerSecond>| rate.map(|rate| (rate.0 / 1_048_576.0).round());
    assert_eq!(
        (mib(counters.pcie_tx), mib(counters.pcie_rx)),
        (Some(1000.0), Some(2000.0))
    );
    assert_eq!(
        (mib(counters.nvlink_rx), mib(counters.nvlink_tx)),
        (Some(10.0), None)
    );
    // Each interval begins at the previous poll. 61 s of the first 121 s have a kernel, then 61 s of 122 s.
    close(counters.graphics, 61.0 / 121.0);
    let counters = machine.read(0, 253.0).counters.expect("known");
    assert_eq!((counters.from, counters.to), (moment(131.0), moment(253.0)));
    close(counters.graphics, 0.5);
}

#[test]
fn the_slow_call_is_rare_and_a_last_resort() {
    let mut machine = Machine::new(
        "sys log=1\n\
         dev 0 pcie_rx=3000000000 pcie_tx=1000000 cost.nvmlDeviceGetPcieThroughput=20",
    );
    let times = (0..40).map(|second| 100.0 + f64::from(second));
    let samples: Vec<_> = times.map(|at| machine.read(0, at)).collect();
    let sampled = samples[0].traffic.and_then(|traffic| traffic.pcie_sampled);
    let sampled = sampled.expect("measured");
    assert_eq!(sampled.rx, BytesPerSecond(3e9));
    assert_eq!(sampled.tx, BytesPerSecond(1e6));
    let kept = samples[4].traffic.and_then(|traffic| traffic.pcie_sampled);
    assert_eq!(kept.expect("kept").read_at, moment(100.0), "with its age");
    let calls = machine.fake.calls();
    let slow = calls
        .iter()
        .filter(|call| call.symbol == "nvmlDeviceGetPcieThroughput");
    // A reading of 40 ms within a budget of 1.5 ms a second: twice at the start, then every 27 s.
    assert!((2..=8).contains(&slow.count()), "{calls:#?}");
}

#[test]
fn eight_gpus_cost_little_whatever_calls_cost_and_no_call_comes_early() {
    // Expensive process lists, expensive samples, and the slow PCIe call: more than was measured on any card.
    const COSTS: [(&str, f64); 9] = [
        ("nvmlDeviceGetUtilizationRates", 0.02),
        ("nvmlDeviceGetSamples", 0.4),
        ("nvmlDeviceGetMemoryInfo_v2", 0.02),
        ("nvmlDeviceGetPowerUsage", 0.1),
        ("nvmlDeviceGetTemperature", 0.1),
        ("nvmlDeviceGetFieldValues", 0.3),
        ("nvmlDeviceGetComputeRunningProcesses_v3", 4.5),
        ("nvmlDeviceGetPcieThroughput", 20.0),
        ("nvmlDeviceGetTotalEccErrors", 1.0),
    ];
    // More than the longest period.
    const SECONDS: u32 = 135;
    let costs = COSTS.map(|(symbol, cost)| format!(" cost.{symbol}={cost}"));
    let mut machine = Machine::new(&format!(
        "sys count=8 log=1{}\ndev * util=70 procs=77:1G:50",
        costs.concat()
    ));
    let mut last = GpuSample::default();
    for second in 0..SECONDS {
        for gpu in 0..8 {
            last = machine.read(gpu, 100.0 + f64::from(second));
        }
    }
    let calls = machine.fake.calls();
    // In the first seconds, each call is made once.
    let steady = calls.iter().filter(|call| call.at >= 110.0);
    let spent: f64 = steady.map(|call| call.cost_ms).sum();
    let per_second = spent / (f64::from(SECONDS) - 10.0);
    assert!(per_second < 20.0, "{per_second} ms a second");
    assert!(per_second > 0.0, "it is read at all");
    // The reported time of all calls on one GPU is at least what the script says.
    let of_last: f64 = calls
        .iter()
        .filter(|call| call.gpu == Some(7))
        .map(|call| call.cost_ms)
        .sum();
    let said = last.driver_time.as_secs_f64() * 1000.0;
    assert!(said >= of_last, "{said} ms said, {of_last} ms spent");

    // Each call keeps its period, which is longer for expensive calls. One call belongs to two groups.
    let gaps = |symbol: &str| {
        let mut times: Vec<f64> = calls
            .iter()
            .filter(|call| call.symbol == symbol && call.gpu == Some(3))
            .map(|call| call.at)
            .collect();
        times.dedup();
        // The cost of a call is known from its second time on.
        times.remove(0);
        assert!(times.len() > 1, "{symbol} is called again");
        times
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .fold(f64::INFINITY, f64::min)
    };
    assert!(gaps("nvmlDeviceGetUtilizationRates") >= 0.1);
    assert!(gaps("nvmlDeviceGetSamples") >= 0.5);
    assert!(gaps("nvmlDeviceGetPowerUsage") >= 0.5);
    // A call of 4.5 ms within 12 % of a budget of 1.9 ms a second: every 20 s.
    assert!(gaps("nvmlDeviceGetComputeRunningProcesses_v3") >= 15.0);
    assert!(gaps("nvmlDeviceGetPcieThroughput") >= 100.0);
    assert!(gaps("nvmlDeviceGetTotalEccErrors") >= 5.0);
}

#[test]
fn an_xid_keeps_its_time_and_survives_the_loss() {
    let mut machine = Machine::new(
        "@140 dev 0 xid=13\n@400 dev 0 xid=79\n@400 dev 0 fail=lost\n@530 dev 0 fail=no\ndev 0 util=5",
    );
    assert_eq!(machine.read(0, 10.0).xids, Some(vec![]));
    let heard = |sample: &GpuSample| -> Vec<(u64, Moment)> {
        let xids = sample.xids.iter().flatten();
        xids.map(|xid| (xid.number, xid.at)).collect()
    };
    assert_eq!(heard(&machine.read(0, 141.0)), [(13, moment(141.0))]);
    let both = [(13, moment(141.0)), (79, moment(400.5))];
    assert_eq!(heard(&machine.read(0, 399.0)), both[..1]);
    let lost = machine.read(0, 400.5);
    assert_eq!(lost.gap.as_deref(), Some("lost"));
    assert_eq!((lost.util_percent, lost.power_watts), (None, None));
    assert_eq!(heard(&lost), both, "why it is lost stays");
    let back = machine.read(0, 530.0);
    assert_eq!((back.gap.as_deref(), back.util_percent), (None, Some(5.0)));
    assert!(back.power_watts.is_some(), "everything is asked at once");
}

#[test]
fn a_divided_gpu_has_a_row_for_each_part() {
    let mut machine = Machine::new(
        "dev 0 mig=1 gpm=1 total=80G used=9G\n\
         dev 0.0 uuid=MIG-a gi=1 ci=0 total=40G used=6G procs=77:5G gpm.1=80 gpm.2=60\n\
         dev 0.3 uuid=MIG-b gi=5 ci=2 total=20G used=3G gpm.1=0 gpm.2=0",
    );
    machine.read(0, 10.0);
    let sample = machine.read(0, 131.0);
    assert_eq!(sample.util_percent, None);
    assert!(
        sample
            .gap
            .as_deref()
            .is_some_and(|gap| gap.starts_with("MIG is on"))
    );
    assert_eq!(
        absent(&sample, "util"),
        Some("not available while MIG is on")
    );
    let [one, other] = sample.instances.as_slice() else {
        panic!("two parts: {sample:#?}");
    };
    assert_eq!(one.uuid.as_deref(), Some("MIG-a"));
    assert_eq!((one.gpu_instance, one.compute_instance), (Some(1), Some(0)));
    assert_eq!(
        (one.mem_used, one.mem_total),
        (Some(Bytes(6 << 30)), Some(Bytes(40 << 30)))
    );
    assert_eq!(one.processes.as_ref().map(Vec::len), Some(1));
    assert_eq!(one.gap, None);
    let active = |part: &crate::sample::GpuInstance| part.counters?.sm_active;
    assert_eq!(
        (active(one), active(other)),
        (Some(Share(0.6)), Some(Share(0.0)))
    );
    assert_eq!(other.gpu_instance, Some(5));
}

#[test]
fn a_part_without_counters_says_why() {
    let mut machine = Machine::new("dev 0 mig=1\ndev 0.0 gi=1 total=40G used=6G");
    let sample = machine.read(0, 10.0);
    let part = &sample.instances[0];
    assert_eq!(part.counters, None);
    assert_eq!(
        part.gap.as_deref(),
        Some("no utilisation: not supported by this GPU")
    );
}

#[test]
fn an_old_driver_gives_what_it_has() {
    let newer = [
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetMigMode",
        "nvmlGpmQueryDeviceSupport",
        "nvmlGpmSampleAlloc",
        "nvmlGpmSampleFree",
        "nvmlGpmSampleGet",
        "nvmlGpmMetricsGet",
        "nvmlEventSetFree",
        "nvmlDeviceGetTotalEnergyConsumption",
    ];
    let mut machine = Machine::without(
        "dev 0 util=44 power=200 throttle=4 procs=77:1G:30 gpm=1 pcie_rx=1000000",
        &newer,
    );
    let sample = machine.read(0, 10.0);
    let old = Some("the driver is too old");
    for figure in ["mem", "energy", "fields", "counters", "xid"] {
        assert_eq!(absent(&sample, figure), old, "{figure}");
    }
    assert_eq!(sample.util_percent, Some(44.0));
    assert_eq!(sample.power_watts, Some(200.0));
    assert_eq!(
        sample.throttle.as_deref(),
        Some(&["power cap".to_owned()][..])
    );
    assert_eq!(
        sample.processes.as_ref().map(Vec::len),
        Some(1),
        "by the older name"
    );
    assert_eq!(sample.xids, None, "not heard is not none");
    let sampled = sample.traffic.and_then(|traffic| traffic.pcie_sampled);
    assert_eq!(sampled.map(|sampled| sampled.rx), Some(BytesPerSecond(1e6)));
    assert_eq!(sample.gap, None);
}

#[test]
fn a_driver_with_other_structures_is_rejected() {
    let mut machine = Machine::new(
        "dev 0 util=44 total=80G used=1G procs=7701:30G:55,7702:1G:10,7703:2G,7704:2G drift=1\n\
         dev 1 util=1\nsys count=2\n\
         dev 1 fail.nvmlDeviceGetMemoryInfo_v2=25 procs=7701:30G",
    );
    let sample = machine.read(0, 10.0);
    assert_eq!(sample.processes, None, "rather than wrong ones");
    let reason = absent(&sample, "processes").expect("known");
    assert!(reason.contains("form"), "{reason}");
    assert_eq!(sample.util_percent, Some(44.0));
    let other = machine.read(1, 10.0);
    assert_eq!(other.mem_used, None);
    assert_eq!(
        absent(&other, "mem"),
        Some("unknown format from this driver")
    );
    assert_eq!(other.processes.map(|list| list.len()), Some(1));
    assert_eq!(other.gap, None);
}

#[test]
fn the_share_of_a_process_has_an_age_and_ends() {
    let mut machine =
        Machine::new("dev 0 util=50 procs=77:1G:30,78:1G procs_age=2\n@100 dev 0 sm_procs=99:0:90");
    let find = |sample: &GpuSample, pid| {
        let mut list = sample.processes.clone().into_iter().flatten();
        list.find(|process| process.pid.0 == pid).expect("listed")
    };
    let sample = machine.read(0, 12.0);
    let process = find(&sample, 77);
    assert_eq!(process.sm_percent, Some(30.0));
    let at = process.sm_at.expect("its time").as_secs_f64();
    assert!((at - 10.0).abs() < 0.2, "two seconds old: {at}");
    let idle = find(&sample, 78);
    assert_eq!(
        (idle.sm_percent, idle.sm_at),
        (None, None),
        "no sample is not 0 %"
    );
    // Long after the driver's last sample of this process, but with newer samples of another.
    machine.read(0, 133.0);
    let later = find(&machine.read(0, 254.0), 77);
    assert_eq!((later.sm_percent, later.sm_at), (None, None));
}

#[test]
fn each_sample_of_the_history_comes_once_with_its_time() {
    let mut machine = Machine::new("dev 0 util=100~0/20 sample_ms=2000");
    let first = machine.read(0, 200.0);
    assert_eq!(
        first.util_samples.newest.len(),
        1,
        "what was long before the first look is left"
    );
    assert_eq!(
        first.driver_zero_us,
        Some(0),
        "the driver goes by the same clock"
    );
    let next = machine.read(0, 321.0).util_samples.newest;
    let times: Vec<u64> = next.iter().map(|(time, _)| time / 1_000_000).collect();
    assert_eq!(times, (101..=160).map(|n| 2 * n).collect::<Vec<_>>());
    let high = next.iter().filter(|(_, util)| *util > 50.0).count();
    assert_eq!(high, 30);
    assert_eq!(machine.read(0, 321.01).util_samples.newest, []);
}

/// On a real driver, two of these calls at the same time crash the process.
#[test]
fn the_counters_of_several_gpus_are_read_one_after_the_other() {
    let mut machine = Machine::new("sys count=8 gpm_ms=2\ndev * gpm=1 gpm.1=50");
    let mut read = |seconds| {
        machine.fake.set_clock(seconds);
        std::thread::scope(|scope| {
            let gpus = machine.gpus.iter_mut();
            let read = |gpu: &'_ mut Box<dyn Gpu>| gpu.read(moment(seconds));
            let threads: Vec<_> = gpus.map(|gpu| scope.spawn(move || read(gpu))).collect();
            let threads = threads.into_iter().map(ScopedJoinHandle::join);
            threads.collect::<Result<Vec<_>, _>>().expect("no panic")
        })
    };
    read(0.0);
    for sample in read(200.0) {
        assert_eq!(absent(&sample, "counters"), None, "GPU {}", sample.index);
        let counters = sample.counters.expect("counters");
        assert_eq!(counters.graphics, Some(Share(0.5)));
    }
}
