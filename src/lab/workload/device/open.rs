//! Chooses the device.

use super::{Device, DeviceOptions, cuda, sim};
use crate::lab::workload::settings::DeviceKind;

/// Opens a device of that kind, and returns a notice for the user: one line without a full stop. If no GPU can be used,
/// the device is simulated and the notice gives the reason; a requested simulated device has no notice.
pub fn open(kind: DeviceKind, options: &DeviceOptions) -> (Box<dyn Device>, Option<String>) {
    let notice = match kind {
        DeviceKind::Sim => None,
        DeviceKind::Auto | DeviceKind::Cuda => match cuda::open(options) {
            Ok(device) => return (Box::new(device), None),
            Err(error) => Some(format!("{error}: simulating the device")),
        },
    };
    (Box::new(sim::Sim::new(options)), notice)
}
