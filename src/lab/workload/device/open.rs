//! Picks the device.

use super::{Device, DeviceOptions, cuda, sim};
use crate::lab::workload::settings::DeviceKind;

/// The device of that kind, and what the user should know of it: one line without a full stop. Where no GPU can
/// be used it is the simulated one, and the line says why; asking for that one gives no line.
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
