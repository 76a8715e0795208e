//! Receives signals that end an experiment, so that what it launched is ended first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use signal_hook::flag;

use crate::launch::not_ignored;

/// The signal that was received and is to end pipetop, if any.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Listens from now on; a second signal ends pipetop at once.
    ///
    /// # Errors
    /// Returns an error if the signals cannot be registered.
    pub fn listen() -> io::Result<Self> {
        let ours = Self::default();
        let again = Arc::new(AtomicBool::new(false));
        for number in not_ignored([Signal::INT, Signal::TERM, Signal::HUP]) {
            // Handlers run in the order of registration: at the first signal, `again` is not set yet.
            flag::register_conditional_default(number, Arc::clone(&again))?;
            flag::register(number, Arc::clone(&again))?;
            let value = usize::try_from(number).unwrap_or_default();
            flag::register_usize(number, Arc::clone(&ours.0), value)?;
        }
        Ok(ours)
    }

    /// Returns the number of the signal. `None` if none was received.
    pub fn received(&self) -> Option<i32> {
        let number = i32::try_from(self.0.load(Ordering::SeqCst)).ok();
        number.filter(|number| *number > 0)
    }
}
