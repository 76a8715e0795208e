//! The device that the trainer uses now. One that fails is told of once and replaced by the simulated one, as
//! the user came to see a loader at work.

use crate::probe::Writer;
use crate::workload::device::{self, Device, DeviceError, DeviceOptions};
use crate::workload::settings::DeviceKind;

#[derive(Debug)]
pub(super) struct Seat {
    device: Box<dyn Device>,
    options: DeviceOptions,
}

impl Seat {
    /// Opens a device, and says which one it is.
    pub(super) fn open(
        kind: DeviceKind,
        options: DeviceOptions,
        mut probe: Option<&mut Writer>,
    ) -> Self {
        let (device, notice) = device::open(kind, &options);
        if let Some(probe) = &mut probe {
            probe.device(device.name());
            if let Some(notice) = notice {
                probe.notice(&notice);
            }
        }
        Self { device, options }
    }

    /// Brings a batch to the device, whichever it is then.
    pub(super) fn copy(&mut self, batch: &[u8], mut probe: Option<&mut Writer>) {
        if self
            .run(probe.as_deref_mut(), |device| device.copy(batch))
            .is_none()
        {
            self.run(probe, |device| device.copy(batch));
        }
    }

    /// Lets the device do something. `None` where it failed and was replaced.
    pub(super) fn run<T>(
        &mut self,
        probe: Option<&mut Writer>,
        act: impl FnOnce(&mut dyn Device) -> Result<T, DeviceError>,
    ) -> Option<T> {
        match act(&mut *self.device) {
            Ok(done) => Some(done),
            Err(error) => {
                let failed = self.device.name().to_owned();
                self.device = device::open(DeviceKind::Sim, &self.options).0;
                if let Some(probe) = probe {
                    probe.device(self.device.name());
                    probe.notice(&format!(
                        "{failed} failed ({error}): the device is simulated from here on"
                    ));
                }
                None
            }
        }
    }
}
