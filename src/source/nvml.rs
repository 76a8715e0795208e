//! A GPU as NVML, the NVIDIA driver's own library, tells of it.
//!
//! Gives what the driver says, less what cannot be true; knows neither threads nor which processes
//! are the job's. In a container the driver may number processes as another namespace does.

mod errors;
mod plausible;

use std::path::Path;
use std::time::Duration;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, Sampling, TemperatureSensor};
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::error::{Bits, NvmlError};
use nvml_wrapper::{Device, Nvml};

use self::errors::{Trouble, Troubles, unopened};
use self::plausible::{celsius, megahertz, percent, pid, text, watts};
use super::gpu::Gpu;
use crate::sample::{Gap, GpuProcess, GpuSample};
use crate::units::{Bytes, Moment};

/// Power is an average of 1 s, temperature and clocks drift: not worth a call at each reading.
const GAUGES_EVERY: Duration = Duration::from_millis(500);
/// The driver keeps 10 s of utilisation samples, one each 140 ms or so.
const SAMPLES_EVERY: Duration = Duration::from_millis(250);
/// Listing processes walks the driver's clients: dearer than the rest.
const PROCESSES_EVERY: Duration = Duration::from_secs(1);
/// More than any machine has: a larger number is the driver's mistake.
const MOST_GPUS: u32 = 256;

/// The GPUs that `library` (`None` = `libnvidia-ml.so.1`) gives, in PCI bus order. May hang.
pub fn open(library: Option<&Path>) -> Result<Vec<Box<dyn Gpu>>, Gap> {
    let mut builder = Nvml::builder();
    if let Some(path) = library {
        builder.lib_path(path.as_os_str());
    }
    let nvml = builder.init().map_err(|error| unopened(&error, library))?;
    // Never closed: closing may hang as any call may, and another thread may be inside a call.
    let nvml: &'static Nvml = Box::leak(Box::new(nvml));
    let count = nvml.device_count();
    let count = count.map_err(|error| unopened(&error, library))?;
    if count == 0 {
        return Err(errors::no_gpu());
    }
    let gpu = |index| Box::new(NvmlGpu::new(nvml, index)) as Box<dyn Gpu>;
    Ok((0..count.min(MOST_GPUS)).map(gpu).collect())
}

struct NvmlGpu {
    nvml: &'static Nvml,
    /// `None` until it answers, and while it is lost.
    device: Option<Device<'static>>,
    /// What holds from one reading to the next: index, UUID, name, power limit.
    known: GpuSample,
    mig: bool,
    /// Memory, power, temperature, clocks.
    gauges: Periodic<GpuSample>,
    samples: Periodic<()>,
    processes: Periodic<Option<Vec<GpuProcess>>>,
}

/// A call that is made less often than the others.
#[derive(Default)]
struct Periodic<T> {
    /// Since pipetop started.
    next: Duration,
    /// Driver time of the newest that was seen, in us.
    seen: u64,
    last: T,
    trouble: Option<Trouble>,
}

impl Gpu for NvmlGpu {
    fn read(&mut self, at: Moment) -> GpuSample {
        let mut sample = GpuSample::default();
        let trouble = self.read_into(&mut sample, at);
        let gone = trouble.as_ref().is_some_and(Trouble::gone);
        if gone {
            self.device = None;
            self.gauges = Periodic::default();
            self.processes = Periodic::default();
            sample = GpuSample::default();
        }
        let mig = self.mig && sample.util_percent.is_none();
        GpuSample {
            index: self.known.index,
            uuid: self.known.uuid.clone(),
            name: self.known.name.clone(),
            power_limit_watts: self.known.power_limit_watts,
            read_at: Some(at),
            gap: trouble
                .map(|trouble| trouble.to_string())
                .or_else(|| mig.then(|| "MIG is on: no utilisation of the whole GPU".to_owned())),
            ..sample
        }
    }
}

impl NvmlGpu {
    fn new(nvml: &'static Nvml, index: u32) -> Self {
        Self {
            nvml,
            device: None,
            known: GpuSample {
                index,
                ..GpuSample::default()
            },
            mig: false,
            gauges: Periodic::default(),
            samples: Periodic::default(),
            processes: Periodic::default(),
        }
    }

    /// Fills in what the driver gives now and says the worst that it met.
    fn read_into(&mut self, sample: &mut GpuSample, at: Moment) -> Option<Trouble> {
        let mut troubles = Troubles::default();
        if self.device.is_none() {
            self.device = self.identify(&mut troubles);
        }
        if let Some(device) = &self.device {
            if self.gauges.due(at, GAUGES_EVERY) {
                read_gauges(device, &mut self.gauges);
            }
            *sample = self.gauges.last.clone();
            if let Some(util) = troubles.ask(device.utilization_rates()) {
                sample.util_percent = percent(f64::from(util.gpu));
                sample.mem_util_percent = percent(f64::from(util.memory));
            }
            if self.samples.due(at, SAMPLES_EVERY) {
                sample.util_samples = read_samples(device, &mut self.samples);
            }
            if self.processes.due(at, PROCESSES_EVERY) {
                read_processes(device, sample.mem_total, &mut self.processes);
            }
            sample.processes.clone_from(&self.processes.last);
            let periodic = [
                &self.gauges.trouble,
                &self.samples.trouble,
                &self.processes.trouble,
            ];
            periodic
                .into_iter()
                .cloned()
                .for_each(|trouble| troubles.add(trouble));
        }
        troubles.worst
    }

    /// Finds the GPU and asks what does not change.
    fn identify(&mut self, troubles: &mut Troubles) -> Option<Device<'static>> {
        let device = troubles.ask(self.nvml.device_by_index(self.known.index))?;
        self.known.uuid = troubles.ask(device.uuid()).and_then(|uuid| text(&uuid));
        self.known.name = troubles.ask(device.name()).and_then(|name| text(&name));
        let limit = troubles.ask(device.enforced_power_limit());
        self.known.power_limit_watts = limit.and_then(watts).filter(|limit| *limit > 0.0);
        self.mig = device.mig_mode().is_ok_and(|mode| mode.current == 1);
        Some(device)
    }
}

impl<T> Periodic<T> {
    fn due(&mut self, at: Moment, every: Duration) -> bool {
        let due = at.since_start >= self.next;
        if due {
            self.next = at.since_start + every;
            // A clock that was set back, or a wild time stamp, must not hide what comes after it.
            let now = at.wall.duration_since(std::time::UNIX_EPOCH);
            let now_us = now.map_or(0, |now| now.as_micros());
            self.seen = self.seen.min(u64::try_from(now_us).unwrap_or(u64::MAX));
        }
        due
    }
}

fn read_gauges(device: &Device<'_>, periodic: &mut Periodic<GpuSample>) {
    let mut troubles = Troubles::default();
    let memory = troubles.ask(device.memory_info());
    let memory = memory.filter(|memory| memory.used <= memory.total && memory.total > 0);
    let power = troubles.ask(device.power_usage());
    let temperature = troubles.ask(device.temperature(TemperatureSensor::Gpu));
    let sm_clock = troubles.ask(device.clock_info(Clock::SM));
    let mem_clock = troubles.ask(device.clock_info(Clock::Memory));
    let throttle = match device.current_throttle_reasons_strict() {
        Err(NvmlError::IncorrectBits(Bits::U64(bits))) => Ok(bits),
        known => known.map(|reasons| reasons.bits()),
    };
    periodic.last = GpuSample {
        mem_used: memory.as_ref().map(|memory| Bytes(memory.used)),
        mem_total: memory.as_ref().map(|memory| Bytes(memory.total)),
        power_watts: power.and_then(watts),
        temperature_c: temperature.and_then(celsius),
        sm_clock_mhz: sm_clock.and_then(megahertz),
        mem_clock_mhz: mem_clock.and_then(megahertz),
        throttle: troubles.ask(throttle).map(throttle_words),
        ..GpuSample::default()
    };
    periodic.trouble = troubles.worst;
}

/// Utilisation since the last look: (driver time in us, percent), oldest first.
fn read_samples(device: &Device<'_>, periodic: &mut Periodic<()>) -> Vec<(u64, f64)> {
    let mut troubles = Troubles::default();
    let answer = troubles.ask(device.samples(Sampling::GpuUtilization, periodic.seen));
    periodic.trouble = troubles.worst;
    let number = |value| match value {
        SampleValue::F64(number) => number,
        SampleValue::U32(number) => f64::from(number),
        SampleValue::U64(number) => number as f64,
        SampleValue::I64(number) => number as f64,
    };
    let mut samples: Vec<_> = answer
        .into_iter()
        .flatten()
        .filter(|sample| sample.timestamp > periodic.seen)
        .filter_map(|sample| Some((sample.timestamp, percent(number(sample.value))?)))
        .collect();
    samples.sort_by_key(|(time, _)| *time);
    periodic.seen = samples.last().map_or(periodic.seen, |(time, _)| *time);
    samples
}

fn read_processes(
    device: &Device<'_>,
    mem_total: Option<Bytes>,
    periodic: &mut Periodic<Option<Vec<GpuProcess>>>,
) {
    let mut troubles = Troubles::default();
    let listed = troubles.ask(device.running_compute_processes());
    let shares = troubles.ask(device.process_utilization_stats(periodic.seen));
    periodic.trouble = troubles.worst;
    let mut shares = shares.unwrap_or_default();
    shares.retain(|share| share.timestamp > periodic.seen && share.sm_util <= 100);
    let newest = shares.iter().map(|share| share.timestamp).max();
    periodic.seen = newest.unwrap_or(periodic.seen);
    let process = |number: u32, mem| {
        let of_it = shares.iter().filter(|share| share.pid == number);
        let share = of_it.max_by_key(|share| share.timestamp);
        Some(GpuProcess {
            pid: pid(number)?,
            mem: match mem {
                UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
                UsedGpuMemory::Unavailable => None,
            }
            .filter(|mem| mem_total.is_none_or(|total| *mem <= total)),
            sm_percent: share.map(|share| f64::from(share.sm_util)),
        })
    };
    periodic.last = listed.map(|list| {
        list.into_iter()
            .filter_map(|info| process(info.pid, info.used_gpu_memory))
            .collect()
    });
}

/// Why the clock is held down. An idle GPU's clock is low too, but nothing holds it there.
fn throttle_words(bits: u64) -> Vec<String> {
    const WORDS: [(ThrottleReasons, &str); 8] = [
        (ThrottleReasons::SW_POWER_CAP, "power cap"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power brake"),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "too hot (hardware)"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "too hot"),
        (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
        (ThrottleReasons::SYNC_BOOST, "sync boost"),
        (
            ThrottleReasons::APPLICATIONS_CLOCKS_SETTING,
            "clocks set by hand",
        ),
        (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display clocks"),
    ];
    let named = WORDS.iter().filter(|(reason, _)| bits & reason.bits() != 0);
    let other = bits & !ThrottleReasons::all().bits() != 0;
    let words = named.map(|(_, word)| *word);
    let words = words.chain(other.then_some("other reason"));
    words.map(str::to_owned).collect()
}
