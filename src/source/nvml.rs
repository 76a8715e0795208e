//! A GPU as NVML, the NVIDIA driver's own library, tells of it.
//!
//! Gives what the driver says, less what cannot be true; knows neither threads nor which processes
//! are the job's. In a container the driver may number processes as another namespace does.

mod counters;
mod errors;
mod events;
mod gauges;
mod hardware;
mod health;
mod history;
mod instances;
mod pace;
mod plausible;
mod processes;
mod raw;
pub(in crate::source) mod release;
mod traffic;

use std::path::Path;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use self::counters::Counters;
use self::errors::{Trouble, Troubles};
use self::events::Events;
use self::hardware::has_nvidia_gpu;
use self::history::History;
use self::instances::Instances;
use self::pace::{Call, Pace};
use self::plausible::{percent, text};
use self::processes::Processes;
use super::gpu::Gpu;
use crate::sample::{Gap, GpuSample};
use crate::units::Moment;

/// More than any machine has: a larger number is the driver's mistake.
const MOST_GPUS: u32 = 256;

/// The GPUs that `library` (`None` = `libnvidia-ml.so.1`) gives, in PCI bus order. May hang.
pub fn open(library: Option<&Path>) -> Result<Vec<Box<dyn Gpu>>, Gap> {
    let mut builder = Nvml::builder();
    if let Some(path) = library {
        builder.lib_path(path.as_os_str());
    }
    let unopened = |error: NvmlError| {
        // A library that somebody names is wanted, whatever the machine has.
        let has_gpu = match library {
            Some(_) => None,
            None => has_nvidia_gpu(Path::new("/sys")),
        };
        errors::unopened(&error, library, has_gpu)
    };
    let nvml = builder.init().map_err(unopened)?;
    // Never closed: closing may hang as any call may, and another thread may be inside a call.
    let nvml: &'static Nvml = Box::leak(Box::new(nvml));
    let count = nvml.device_count();
    let count = count.map_err(unopened)?;
    if count == 0 {
        return Err(errors::no_gpu());
    }
    let count = count.min(MOST_GPUS);
    let version = nvml.sys_driver_version().ok();
    let joined = release::lists_agree(version.as_deref(), release::in_first_namespace());
    let gpu = |index| NvmlGpu {
        nvml,
        device: None,
        last: GpuSample {
            index,
            ..GpuSample::default()
        },
        mig: false,
        joined,
        pace: Pace::new(count),
        parts: Parts::default(),
        troubles: Default::default(),
    };
    Ok((0..count)
        .map(|index| Box::new(gpu(index)) as Box<dyn Gpu>)
        .collect())
}

struct NvmlGpu {
    nvml: &'static Nvml,
    /// `None` until it answers, and while it is lost.
    device: Option<Device<'static>>,
    /// All that was read, each part when it was its turn.
    last: GpuSample,
    mig: bool,
    /// The driver's lists of processes have numbers of one kind.
    joined: bool,
    pace: Pace,
    parts: Parts,
    /// What went wrong at the newest turn of each kind of call.
    troubles: [Troubles; Call::ALL.len()],
}

/// What calls need to know of earlier ones.
#[derive(Default)]
struct Parts {
    history: History,
    counters: Counters,
    processes: Processes,
    instances: Instances,
    events: Events,
}

impl Gpu for NvmlGpu {
    fn read(&mut self, at: Moment) -> GpuSample {
        self.last.util_samples.newest.clear();
        let mut worst = self.identify();
        if let Some(device) = self.device.take() {
            for call in Call::ALL {
                self.turn(call, &device, at);
                if self.troubles[call as usize].is_gone() {
                    break;
                }
            }
            self.device = Some(device);
            let met = self.troubles.iter().filter_map(|met| met.worst.clone());
            worst = met.max();
        }
        if worst.as_ref().is_some_and(Trouble::gone) {
            self.forget(at);
        }
        let mig = self.mig && self.last.util_percent.is_none();
        let mig = mig.then(|| "MIG is on: no whole-GPU utilisation".to_owned());
        self.last.read_at = Some(at);
        // A figure that is denied is named in `absent`; the others are still worth their row.
        let worst = worst.filter(|trouble| trouble.gone() || is_silent(&self.last));
        self.last.gap = worst.map(|trouble| trouble.to_string()).or(mig);
        self.last.driver_time = self.pace.spent();
        let absent = self.troubles.iter().flat_map(|met| &met.absent);
        self.last.absent = absent.cloned().collect();
        self.last.absent.sort();
        self.last.absent.dedup();
        self.last.clone()
    }
}

impl NvmlGpu {
    /// Makes one kind of call where it is due.
    fn turn(&mut self, call: Call, device: &Device<'static>, at: Moment) {
        let wanted = match call {
            Call::Instances => self.mig,
            // Of a divided GPU the counters are read part by part.
            Call::Counters => !self.mig,
            Call::Pcie => !traffic::pcie_is_told(&self.last),
            _ => true,
        };
        let troubles = &mut self.troubles[call as usize];
        if !wanted {
            *troubles = Troubles::default();
            return;
        }
        let (nvml, sample, parts) = (self.nvml, &mut self.last, &mut self.parts);
        let (mig, joined) = (&mut self.mig, self.joined);
        self.pace.turn(call, at, || {
            *troubles = Troubles::of(*mig);
            match call {
                Call::Util => read_util(device, sample, troubles),
                Call::History => parts.history.read(device, at, sample, troubles),
                Call::Counters => {
                    let take = || counters::supported(device).and_then(|()| device.gpm_sample());
                    sample.counters = parts.counters.read(nvml, at, take, troubles);
                }
                Call::Gauges => gauges::read(device, sample, troubles),
                Call::Traffic => traffic::read(device, at, sample, troubles),
                Call::Events => sample.xids = parts.events.read(nvml, device, at, troubles),
                Call::Processes => {
                    let newest = (sample, troubles);
                    parts
                        .processes
                        .read(device, at, joined, &parts.history, newest);
                }
                Call::Instances => {
                    sample.instances = parts.instances.read(nvml, device, at, troubles);
                }
                Call::Health => {
                    *mig = device.mig_mode().is_ok_and(|mode| mode.current == 1);
                    if !*mig {
                        sample.instances.clear();
                    }
                    health::read(device, at, sample, troubles);
                }
                Call::Pcie => traffic::sample_pcie(device, at, sample, troubles),
            }
        });
    }

    /// Finds the GPU where it is not known, and asks what does not change. Says why there is none.
    fn identify(&mut self) -> Option<Trouble> {
        if self.device.is_some() {
            return None;
        }
        let mut troubles = Troubles::default();
        let (nvml, sample) = (self.nvml, &mut self.last);
        let (device, _) = self.pace.timed(|| {
            let device = troubles.ask("gpu", nvml.device_by_index(sample.index))?;
            let uuid = troubles.ask("uuid", device.uuid());
            sample.uuid = uuid.and_then(|uuid| text(&uuid));
            let name = troubles.ask("name", device.name());
            sample.name = name.and_then(|name| text(&name));
            sample.minor = device.minor_number().ok();
            let mig = device.mig_mode().is_ok_and(|mode| mode.current == 1);
            Some((device, mig))
        });
        self.mig = device.as_ref().is_some_and(|(_, mig)| *mig);
        self.device = device.map(|(device, _)| device);
        troubles.worst
    }

    /// What a GPU was cannot be said of one that is gone; what it is and what befell it stays.
    fn forget(&mut self, at: Moment) {
        self.device = None;
        let events = &mut self.parts.events;
        let (last_words, _) = self.pace.timed(|| events.forget(at));
        self.parts = Parts {
            events: std::mem::take(&mut self.parts.events),
            ..Parts::default()
        };
        self.pace.anew();
        self.troubles = Default::default();
        let last = std::mem::take(&mut self.last);
        self.last = GpuSample {
            index: last.index,
            uuid: last.uuid,
            name: last.name,
            minor: last.minor,
            xids: last_words.or(last.xids),
            ..GpuSample::default()
        };
    }
}

/// None of the figures that every GPU gives is known.
fn is_silent(sample: &GpuSample) -> bool {
    sample.util_percent.is_none()
        && sample.mem_used.is_none()
        && sample.power_watts.is_none()
        && sample.temperature_c.is_none()
}

fn read_util(device: &Device<'_>, sample: &mut GpuSample, troubles: &mut Troubles) {
    let util = troubles.ask("util", device.utilization_rates());
    let of = |part: Option<u32>| part.map(f64::from).and_then(percent);
    sample.util_percent = of(util.as_ref().map(|util| util.gpu));
    sample.mem_util_percent = of(util.map(|util| util.memory));
}
