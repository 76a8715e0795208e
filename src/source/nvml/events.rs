//! Xid errors that the driver reports: each once, kept with the time at which it was read.

use std::collections::VecDeque;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::event::EventSet;
use nvml_wrapper::{Device, Nvml};

use super::errors::Troubles;
use crate::sample::Xid;
use crate::units::Moment;

/// Maximum number of errors kept, and of errors read in one poll.
const MAX_XIDS: usize = 16;
/// NVIDIA's number for an error of unknown number.
const UNKNOWN_XID: u64 = 999;

#[derive(Debug, Default)]
pub(super) struct XidEvents {
    set: Option<EventSet<'static>>,
    xids: VecDeque<Xid>,
}

impl XidEvents {
    /// Returns all errors read so far, oldest first; `None` if this driver reports none.
    pub(super) fn read(
        &mut self,
        nvml: &'static Nvml,
        device: &Device<'static>,
        at: Moment,
        troubles: &mut Troubles,
    ) -> Option<Vec<Xid>> {
        if self.set.is_none() {
            self.set = troubles.ask("xid", listen(nvml, device));
        }
        self.set.as_ref()?;
        self.read_pending(at, troubles);
        Some(self.xids.iter().copied().collect())
    }

    /// Reads the pending events.
    fn read_pending(&mut self, at: Moment, troubles: &mut Troubles) {
        let Some(set) = &self.set else { return };
        for _ in 0..MAX_XIDS {
            match set.wait(0) {
                Ok(event) => self.xids.extend(event.event_data.map(|number| Xid {
                    number: match number {
                        XidError::Value(number) => number,
                        XidError::Unknown => UNKNOWN_XID,
                    },
                    at,
                })),
                Err(NvmlError::Timeout) => break,
                Err(error) => {
                    troubles.ask("xid", Err::<(), _>(error));
                    break;
                }
            }
        }
        let surplus = self.xids.len().saturating_sub(MAX_XIDS);
        self.xids.drain(..surplus);
    }

    /// Called when the GPU is gone: reads the pending events, which say why, and drops the event set.
    pub(super) fn close(&mut self, at: Moment) -> Option<Vec<Xid>> {
        self.set.as_ref()?;
        self.read_pending(at, &mut Troubles::default());
        self.set = None;
        Some(self.xids.iter().copied().collect())
    }
}

fn listen(nvml: &'static Nvml, device: &Device<'static>) -> Result<EventSet<'static>, NvmlError> {
    // Dropping a set calls the driver, and panics if the driver lacks the call.
    if nvml.lib().nvmlEventSetFree.is_err() {
        return Err(NvmlError::FunctionNotFound);
    }
    let set = nvml.create_event_set()?;
    let set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set);
    set.map_err(|failed| failed.error)
}
