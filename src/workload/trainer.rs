//! The trainer: takes batches from the loader, copies them to the device and computes with them, step by step,
//! and reports each step through the probe protocol.
//!
//! Knows nothing of how batches are made.

mod feed;
mod seat;

use super::child;
use super::clock::{nanoseconds, now};
use super::device::DeviceOptions;
use super::error::WorkloadError;
use super::settings::Settings;
use super::step_time::step_time;
use crate::job::BUILTIN_TRAINER;
use crate::probe::{Step, Writer};
use feed::Feed;
use seat::Seat;

/// Trains until it has done what was asked for, or for ever.
///
/// # Errors
/// Where a worker ends, or memory or the data set fails. A device that fails is replaced by the simulated one.
pub fn train(settings: &Settings, parent: i32) -> Result<(), WorkloadError> {
    child::become_one(BUILTIN_TRAINER, parent)?;
    let options = DeviceOptions {
        step: step_time(settings)?,
        copy: settings.copy,
        pin_memory: settings.pin_memory,
        batch_bytes: settings.batch_bytes(),
    };
    let mut probe = Writer::from_environment(Some(settings.capacity()));
    let mut seat = Seat::open(settings.device, options, probe.as_mut());
    let began = now();
    let mut feed = Feed::start(settings)?;
    let end = settings
        .duration
        .map(|duration| began + nanoseconds(duration));
    let steps = settings.steps.unwrap_or(u64::MAX);
    let mut copied = false;
    for number in 0..steps {
        let wait_from = if number == 0 { began } else { now() };
        let ready = feed.ready().saturating_add(u32::from(copied));
        if !copied {
            feed.fetch()?;
        }
        let wait_to = now();
        if !copied {
            seat.copy(feed.batch(), probe.as_mut());
            feed.release();
        }
        seat.step(probe.as_mut());
        // From pinned memory the next copy runs beside this step.
        copied = settings.pin_memory && feed.fetch_if_ready()?;
        if copied {
            seat.copy(feed.batch(), probe.as_mut());
            feed.release();
        }
        let times = seat.finish(probe.as_mut());
        let step_to = now();
        if let Some(probe) = &mut probe {
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
