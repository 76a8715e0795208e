//! A GPU as NVML, the NVIDIA driver's own library, describes it.
//!
//! Returns what the driver reports, without values that cannot be true. Does not depend on threads or on which
//! processes belong to the job. In a container the driver may number processes as in another PID namespace.

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
pub(crate) mod release;
mod traffic;
mod turn;

use std::path::Path;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use self::counters::Counters;
use self::errors::{Trouble, Troubles};
use self::events::XidEvents;
use self::hardware::has_nvidia_gpu;
use self::history::UtilHistory;
use self::instances::Instances;
use self::pace::{CallGroup, CallSchedule};
use self::plausible::{percent, text};
use self::processes::GpuProcesses;
use self::turn::CounterTurn;
use super::gpu::Gpu;
use crate::sample::{Gap, GpuSample};
use crate::units::Moment;

/// No machine has more; a larger number is an error of the driver.
const MAX_GPUS: u32 = 256;

/// Opens the GPUs of `library` (`None` = `libnvidia-ml.so.1`), in PCI bus order. May hang. Returns an error if the
/// library cannot be used or lists no GPU.
pub fn open(library: Option<&Path>) -> Result<Vec<Box<dyn Gpu>>, Gap> {
    let mut builder = Nvml::builder();
    if let Some(path) = library {
        builder.lib_path(path.as_os_str());
    }
    let open_error = |error: NvmlError| {
        // A library given by name is loaded, even on a machine without a GPU.
        let has_gpu = match library {
            Some(_) => None,
            None => has_nvidia_gpu(Path::new("/sys")),
        };
        errors::open_error(&error, library, has_gpu)
    };
    let nvml = builder.init().map_err(open_error)?;
    // Never closed: closing may hang like any other call, and another thread may be inside a call.
    let nvml: &'static Nvml = Box::leak(Box::new(nvml));
    let count = nvml.device_count();
    let count = count.map_err(open_error)?;
    if count == 0 {
        return Err(errors::no_gpu());
    }
    let count = count.min(MAX_GPUS);
    let version = nvml.sys_driver_version().ok();
    let same_namespace = release::lists_agree(
        version.as_deref(),
        release::in_first_namespace(Path::new("/proc/self")),
    );
    let gpu = |index| NvmlGpu {
        nvml,
        device: None,
        last: GpuSample {
            index,
            ..GpuSample::default()
        },
        mig: false,
        same_namespace,
        pace: CallSchedule::new(count),
        parts: CallState::default(),
        troubles: Default::default(),
    };
    Ok((0..count)
        .map(|index| Box::new(gpu(index)) as Box<dyn Gpu>)
        .collect())
}

struct NvmlGpu {
    nvml: &'static Nvml,
    /// The driver's handle. `None` until the driver returns one, and while the GPU is lost.
    device: Option<Device<'static>>,
    /// The newest value of everything that was read; each part has its own period.
    last: GpuSample,
    mig: bool,
    /// Whether the driver's two lists of processes number them in the same PID namespace.
    same_namespace: bool,
    pace: CallSchedule,
    parts: CallState,
    /// What failed at the newest turn of each kind of call.
    troubles: [Troubles; CallGroup::ALL.len()],
}

/// State that calls keep from one turn to the next.
#[derive(Default)]
struct CallState {
    history: UtilHistory,
    counters: Counters,
    processes: GpuProcesses,
    instances: Instances,
    events: XidEvents,
}

impl Gpu for NvmlGpu {
    fn read(&mut self, at: Moment) -> GpuSample {
        self.last.util_samples.newest.clear();
        let mut worst = self.identify();
        if let Some(device) = self.device.take() {
            for call in CallGroup::ALL {
                self.run_if_due(call, &device, at);
                if self.troubles[call as usize].is_lost() {
                    break;
                }
            }
            self.device = Some(device);
            let met = self.troubles.iter().filter_map(|met| met.worst.clone());
            worst = met.max();
        }
        if worst.as_ref().is_some_and(Trouble::is_lost) {
            self.close(at);
        }
        let mig = self.mig && self.last.util_percent.is_none();
        let mig = mig.then(|| "MIG is on: no whole-GPU utilisation".to_owned());
        self.last.read_at = Some(at);
        // A figure without permission is listed in `absent`; the other figures are still shown.
        let worst = worst.filter(|trouble| trouble.is_lost() || is_silent(&self.last));
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
    /// Makes one kind of call if it is due.
    fn run_if_due(&mut self, call: CallGroup, device: &Device<'static>, at: Moment) {
        let wanted = match call {
            CallGroup::Instances => self.mig,
            // The counters of a divided GPU are read per instance.
            CallGroup::Counters => !self.mig,
            CallGroup::Pcie => !traffic::has_pcie_rate(&self.last),
            _ => true,
        };
        let troubles = &mut self.troubles[call as usize];
        if !wanted {
            *troubles = Troubles::default();
            return;
        }
        let counts = matches!(call, CallGroup::Counters | CallGroup::Instances);
        if counts && !self.pace.is_due(call, at) {
            return;
        }
        // Not counted as time in the driver.
        let turn = counts.then(CounterTurn::take);
        if matches!(turn, Some(None)) {
            self.last.counters = None;
            return;
        }
        let (nvml, sample, parts) = (self.nvml, &mut self.last, &mut self.parts);
        let (mig, same_namespace) = (&mut self.mig, self.same_namespace);
        self.pace.run_if_due(call, at, || {
            *troubles = Troubles::of(*mig);
            match call {
                CallGroup::Util => read_util(device, sample, troubles),
                CallGroup::History => parts.history.read(device, at, sample, troubles),
                CallGroup::Counters => {
                    let take = || counters::supported(device).and_then(|()| device.gpm_sample());
                    sample.counters = parts.counters.read(nvml, at, take, troubles);
                }
                CallGroup::Gauges => gauges::read(device, sample, troubles),
                CallGroup::Traffic => traffic::read(device, at, sample, troubles),
                CallGroup::Events => sample.xids = parts.events.read(nvml, device, at, troubles),
                CallGroup::Processes => {
                    let newest = (sample, troubles);
                    parts
                        .processes
                        .read(device, at, same_namespace, &parts.history, newest);
                }
                CallGroup::Instances => {
                    sample.instances = parts.instances.read(nvml, device, at, troubles);
                }
                CallGroup::Health => {
                    *mig = device.mig_mode().is_ok_and(|mode| mode.current == 1);
                    if !*mig {
                        sample.instances.clear();
                    }
                    health::read(device, at, sample, troubles);
                }
                CallGroup::Pcie => traffic::sample_pcie(device, at, sample, troubles),
                CallGroup::Energy => gauges::read_energy(device, at, sample, troubles),
            }
        });
    }

    /// Finds the GPU if it is not known yet, and reads what does not change. Returns why there is no GPU, if there is
    /// none.
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

    /// Clears the figures of a GPU that is gone; keeps its identity and its Xid errors.
    fn close(&mut self, at: Moment) {
        self.device = None;
        let events = &mut self.parts.events;
        let (last_xids, _) = self.pace.timed(|| events.close(at));
        self.parts = CallState {
            events: std::mem::take(&mut self.parts.events),
            ..CallState::default()
        };
        self.pace.make_all_due();
        self.troubles = Default::default();
        let last = std::mem::take(&mut self.last);
        self.last = GpuSample {
            index: last.index,
            uuid: last.uuid,
            name: last.name,
            minor: last.minor,
            xids: last_xids.or(last.xids),
            ..GpuSample::default()
        };
    }
}

/// Whether all figures that every GPU has are unknown.
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
