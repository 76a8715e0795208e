//! Signals that end pipetop, heard in place of being obeyed, so that what it has launched is ended first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::Signal;
use signal_hook::flag;
use signal_hook::low_level::register;

use super::forward::ignored;

const ENDING: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// Whether such a signal came.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Listens from now on; a second signal ends pipetop at once. What is ignored, as under `nohup`, stays so.
    ///
    /// # Errors
    /// Where it cannot be listened to.
    #[expect(
        unsafe_code,
        reason = "what runs in a signal handler only sets a number"
    )]
    pub fn listen() -> io::Result<Self> {
        let ours = Self::default();
        let again = Arc::new(AtomicBool::new(false));
        let ignored = ignored();
        for number in ENDING.map(Signal::as_raw) {
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            // In the order in which they are registered: the first signal finds nothing set.
            flag::register_conditional_default(number, Arc::clone(&again))?;
            flag::register(number, Arc::clone(&again))?;
            let came = Arc::clone(&ours.0);
            // SAFETY: storing into an atomic is all that it does.
            unsafe { register(number, move || came.store(number, Ordering::SeqCst)) }?;
        }
        Ok(ours)
    }

    /// The number of the signal. `None` where none came.
    pub fn came(&self) -> Option<i32> {
        Some(self.0.load(Ordering::SeqCst)).filter(|number| *number > 0)
    }
}
