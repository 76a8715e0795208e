//! The device that the trainer uses. If it fails, the failure is reported once and a simulated device replaces it,
//! because the demo is about the loader.

use crate::lab::workload::device::{self, Device, DeviceError, DeviceOptions, StepTimes};
use crate::lab::workload::settings::DeviceKind;
use crate::probe::ProbeWriter;

#[derive(Debug)]
pub(super) struct FallbackDevice {
    /// Where the steps are reported, if they are.
    pub(super) probe: Option<ProbeWriter>,
    device: Box<dyn Device>,
    options: DeviceOptions,
    /// Number of copied batches that wait for their step, and of started steps that were not waited for.
    copied: usize,
    started: usize,
}

impl FallbackDevice {
    /// Opens a device, and reports which one it is.
    pub(super) fn open(
        kind: DeviceKind,
        options: DeviceOptions,
        mut probe: Option<ProbeWriter>,
    ) -> Self {
        let (device, notice) = device::open(kind, &options);
        if let Some(probe) = &mut probe {
            probe.device(device.name());
            if let Some(notice) = notice {
                probe.notice(&notice);
            }
        }
        Self {
            probe,
            device,
            options,
            copied: 0,
            started: 0,
        }
    }

    pub(super) fn copy(&mut self, batch: &[u8]) {
        self.act(|device| device.copy(batch));
        self.copied += 1;
    }

    pub(super) fn step(&mut self) {
        self.act(Device::step);
        self.copied = self.copied.saturating_sub(1);
        self.started += 1;
    }

    /// Waits for the step that was started; its times are those of the device that finished it.
    pub(super) fn finish(&mut self) -> Option<StepTimes> {
        let times = self.act(Device::finish);
        self.started = self.started.saturating_sub(1);
        times
    }

    /// Calls the device; if it fails, calls its replacement.
    fn act<T>(
        &mut self,
        act: impl Fn(&mut (dyn Device + 'static)) -> Result<T, DeviceError>,
    ) -> Option<T> {
        match act(&mut *self.device) {
            Ok(done) => Some(done),
            Err(error) => {
                self.replace(&error);
                act(&mut *self.device).ok()
            }
        }
    }

    /// Switches to the simulated device, in the state of the failed one.
    fn replace(&mut self, error: &DeviceError) {
        let failed = self.device.name().to_owned();
        self.device = device::open(DeviceKind::Sim, &self.options).0;
        if let Some(probe) = &mut self.probe {
            probe.device(self.device.name());
            let notice = format!("{failed} failed ({error}): simulating the device from now on");
            probe.notice(&notice);
        }
        // The simulated device stores no bytes, so none are missing.
        for _ in 0..self.started {
            let _ = self.device.copy(&[]).and_then(|()| self.device.step());
        }
        for _ in 0..self.copied {
            let _ = self.device.copy(&[]);
        }
    }
}
