//! Figures of the present: memory, power, temperature, clocks and what limits them.

use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::struct_wrappers::device::MemoryInfo;

use super::errors::Troubles;
use super::plausible::{celsius, megahertz, watts};
use super::raw;
use crate::sample::GpuSample;
use crate::units::{Bytes, Moment};

pub(super) fn read(device: &Device<'_>, sample: &mut GpuSample, troubles: &mut Troubles) {
    read_memory(device, sample, troubles);
    let power = troubles.ask("power", device.power_usage());
    sample.power_watts = power.and_then(watts);
    let heat = troubles.ask("temperature", device.temperature(TemperatureSensor::Gpu));
    sample.temperature_c = heat.and_then(celsius);
    let clock = troubles.ask("sm_clock", device.clock_info(Clock::SM));
    sample.sm_clock_mhz = clock.and_then(megahertz);
    let clock = troubles.ask("mem_clock", device.clock_info(Clock::Memory));
    sample.mem_clock_mhz = clock.and_then(megahertz);
    let reasons = troubles.ask("throttle", raw::clock_reasons(device));
    sample.throttle = reasons.map(throttle_words);
}

pub(super) fn read_energy(
    device: &Device<'_>,
    at: Moment,
    sample: &mut GpuSample,
    troubles: &mut Troubles,
) {
    let energy = troubles.ask("energy", device.total_energy_consumption());
    sample.energy_joules = energy.map(|millijoules| millijoules as f64 / 1000.0);
    sample.energy_read_at = energy.map(|_| at);
}

/// Returns the memory of a GPU or of a part of one, if it is plausible.
pub(super) fn memory(device: &Device<'_>, troubles: &mut Troubles) -> Option<MemoryInfo> {
    let memory = troubles.ask("mem", device.memory_info());
    memory.filter(|memory| memory.used <= memory.total && memory.total > 0)
}

fn read_memory(device: &Device<'_>, sample: &mut GpuSample, troubles: &mut Troubles) {
    let memory = memory(device, troubles);
    sample.mem_used = memory.as_ref().map(|memory| Bytes(memory.used));
    sample.mem_total = memory.as_ref().map(|memory| Bytes(memory.total));
    let reserved = memory.map(|memory| Bytes(memory.reserved));
    sample.mem_reserved =
        reserved.filter(|reserved| sample.mem_total.is_some_and(|total| *reserved <= total));
}

/// Returns why the clock is limited. An idle GPU also has a low clock, but no limit.
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
            "application clocks",
        ),
        (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display clocks"),
    ];
    let named = WORDS.iter().filter(|(reason, _)| bits & reason.bits() != 0);
    let other = bits & !ThrottleReasons::all().bits() != 0;
    let words = named.map(|(_, word)| *word);
    let words = words.chain(other.then_some("other reason"));
    words.map(str::to_owned).collect()
}
