//! The instances of a GPU that is divided by MIG. The driver has no utilisation for them: only the performance
//! counters, if the card has them.

use std::collections::BTreeMap;

use nvml_wrapper::{Device, Nvml};

use super::counters::{self, Counters};
use super::errors::Troubles;
use super::plausible::text;
use super::{gauges, processes, raw};
use crate::sample::GpuInstance;
use crate::units::{Bytes, Moment};

/// No card has more instances.
const MAX_INSTANCES: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct Instances {
    /// Keyed by the number of the GPU instance.
    counters: BTreeMap<u32, Counters>,
}

impl Instances {
    pub(super) fn read(
        &mut self,
        nvml: &'static Nvml,
        device: &Device<'static>,
        at: Moment,
        troubles: &mut Troubles,
    ) -> Vec<GpuInstance> {
        // The driver returns the maximum; some places may be empty.
        let places = troubles.ask("instances", device.mig_device_count());
        let places = 0..places.unwrap_or(0).min(MAX_INSTANCES);
        let found: Vec<_> = places
            .filter_map(|place| troubles.ask("instances", device.mig_device_by_index(place)))
            .map(|part| self.one(nvml, device, &part, at))
            .collect();
        let numbers: Vec<_> = found.iter().filter_map(|part| part.gpu_instance).collect();
        self.counters.retain(|number, _| numbers.contains(number));
        found
    }

    fn one(
        &mut self,
        nvml: &'static Nvml,
        whole: &Device<'static>,
        part: &Device<'static>,
        at: Moment,
    ) -> GpuInstance {
        let mut troubles = Troubles::default();
        let uuid = troubles.ask("uuid", part.uuid());
        let numbers = troubles.ask("instances", raw::instance(part));
        let memory = gauges::memory(part, &mut troubles);
        let mem_total = memory.as_ref().map(|memory| Bytes(memory.total));
        let listed = processes::list(part, mem_total, &mut troubles);
        let had = counters::supported(whole);
        let counters = numbers.and_then(|(number, _)| {
            troubles.ask("counters", had)?;
            let counters = self.counters.entry(number).or_default();
            let take = || whole.gpm_mig_sample(number);
            counters.read(nvml, at, take, &mut troubles)
        });
        let lacks = troubles
            .absent
            .iter()
            .find(|absent| absent.figure == "counters");
        GpuInstance {
            uuid: uuid.and_then(|uuid| text(&uuid)),
            gpu_instance: numbers.map(|(number, _)| number),
            compute_instance: numbers.map(|(_, number)| number),
            mem_used: memory.map(|memory| Bytes(memory.used)),
            mem_total,
            counters,
            processes: listed,
            gap: lacks.map(|lacks| format!("no utilisation: {}", lacks.reason)),
        }
    }
}
