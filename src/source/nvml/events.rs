//! Xid errors as the driver tells them: each once, kept with the time at which it was heard.

use std::collections::VecDeque;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::event::EventSet;
use nvml_wrapper::{Device, Nvml};

use super::errors::Troubles;
use crate::sample::Xid;
use crate::units::Moment;

/// Errors that are kept, and that are taken at one poll.
const KEPT: usize = 16;
/// How NVIDIA writes an error whose number it does not tell.
const NUMBERLESS: u64 = 999;

#[derive(Debug, Default)]
pub(super) struct Events {
    set: Option<EventSet<'static>>,
    heard: VecDeque<Xid>,
}

impl Events {
    /// All that were heard, oldest first; `None` where this driver tells of none.
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
        self.hear(at, troubles);
        Some(self.heard.iter().copied().collect())
    }

    /// Takes what there is to hear.
    fn hear(&mut self, at: Moment, troubles: &mut Troubles) {
        let Some(set) = &self.set else { return };
        for _ in 0..KEPT {
            match set.wait(0) {
                Ok(event) => self.heard.extend(event.event_data.map(|number| Xid {
                    number: match number {
                        XidError::Value(number) => number,
                        XidError::Unknown => NUMBERLESS,
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
        let surplus = self.heard.len().saturating_sub(KEPT);
        self.heard.drain(..surplus);
    }

    /// The GPU is gone, and with it what it was listened to by. Its last words say why.
    pub(super) fn forget(&mut self, at: Moment) -> Option<Vec<Xid>> {
        self.set.as_ref()?;
        self.hear(at, &mut Troubles::default());
        self.set = None;
        Some(self.heard.iter().copied().collect())
    }
}

fn listen(nvml: &'static Nvml, device: &Device<'static>) -> Result<EventSet<'static>, NvmlError> {
    // Letting go of a set calls the driver, and panics where it lacks the call.
    if nvml.lib().nvmlEventSetFree.is_err() {
        return Err(NvmlError::FunctionNotFound);
    }
    let set = nvml.create_event_set()?;
    let set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set);
    set.map_err(|failed| failed.error)
}
