//! The trainer: takes batches from the loader, copies them to the device and computes with them, step by step,
//! and reports each step through the probe protocol.
//!
//! Does not depend on how batches are made.

mod batch_source;
mod fallback_device;

use super::child;
use super::clock::{nanoseconds, now};
use super::device::DeviceOptions;
use super::settings::JobSettings;
use super::step_time::step_time;
use crate::error::Hinted;
use crate::job::BUILTIN_TRAINER;
use crate::probe::{ProbeWriter, Step};
use batch_source::BatchSource;
use fallback_device::FallbackDevice;

/// Trains until the requested end, or for ever.
///
/// # Errors
/// Returns an error if a worker ends, or memory or the data set fails. A failed device is replaced by the simulated one.
pub fn train(settings: &JobSettings) -> Result<(), Hinted> {
    child::set_up_process(BUILTIN_TRAINER)?;
    let options = DeviceOptions {
        step: step_time(settings)?,
        copy: settings.copy,
        pin_memory: settings.pin_memory,
        batch_bytes: settings.batch_bytes(),
    };
    let probe = ProbeWriter::from_environment(Some(settings.capacity()), settings.cache);
    let mut device = FallbackDevice::open(settings.device, options, probe);
    let began = now();
    let mut batches = BatchSource::start(settings)?;
    let end = settings
        .duration
        .map(|duration| began + nanoseconds(duration));
    let steps = settings.steps.unwrap_or(u64::MAX);
    let mut copied = false;
    for number in 0..steps {
        let wait_from = if number == 0 { began } else { now() };
        let ready = batches.ready().saturating_add(u32::from(copied));
        if !copied {
            batches.fetch(true)?;
        }
        let wait_to = now();
        if !copied {
            device.copy(batches.batch());
            batches.release();
        }
        device.step();
        // With pinned memory the next copy runs in parallel with this step.
        copied = settings.pin_memory && batches.fetch(false)?;
        if copied {
            device.copy(batches.batch());
            batches.release();
        }
        let times = device.finish();
        let step_to = now();
        if let Some(probe) = &mut device.probe {
            probe.step(&Step {
                number,
                wait_from,
                wait_to,
                step_to,
                ready: Some(ready.min(settings.capacity())),
                copy: times.map(|times| nanoseconds(times.copy)),
                busy: times.map(|times| nanoseconds(times.busy)),
                idle: None,
            });
        }
        if end.is_some_and(|end| step_to >= end) {
            break;
        }
    }
    Ok(())
}
