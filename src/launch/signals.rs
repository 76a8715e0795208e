//! Signals that pipetop gets: handed on to the command, or kept as a wish to end, so that what was launched is ended
//! first. What pipetop was started to ignore, as by `nohup`, stays ignored, and the command ignores it as well.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::running::Running;
use super::supervisor::ENDING;

/// What a terminal sends goes to all of the command's process group, as the terminal would have it; what somebody
/// sends to one process goes to one.
const FORWARDED: [(Signal, bool); 6] = [
    (Signal::INT, true),
    (Signal::QUIT, true),
    (Signal::HUP, true),
    (Signal::TERM, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
];

/// Signals that are kept for the command from now on, and for as long as pipetop runs: none of them ends pipetop any
/// more. Taken before the command starts, so that none gets lost.
#[derive(Debug)]
pub struct Forward(Signals);

impl Forward {
    /// # Errors
    /// Where the system refuses.
    pub fn take() -> io::Result<Self> {
        Signals::new(heeded(FORWARDED.map(|(signal, _)| signal))).map(Self)
    }

    /// Hands to the command what came and what comes. A signal that asks it to end and comes a second time kills it:
    /// whoever sends it has seen it ignored.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn to(mut self, running: &Running) -> io::Result<()> {
        let command = running.handle().clone();
        let forward = move || {
            let mut asked = BTreeSet::new();
            for number in self.0.forever() {
                if ENDING.iter().any(|signal| signal.as_raw() == number) && !asked.insert(number) {
                    command.kill();
                    continue;
                }
                let group = FORWARDED
                    .iter()
                    .any(|(signal, group)| signal.as_raw() == number && *group);
                command.signal(number, group);
            }
        };
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(forward).map(drop)
    }
}

/// Whether a signal came that ends pipetop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Listens from now on; a second signal ends pipetop at once.
    ///
    /// # Errors
    /// Where it cannot be listened to.
    pub fn listen() -> io::Result<Self> {
        let ours = Self::default();
        let again = Arc::new(AtomicBool::new(false));
        for number in heeded([Signal::INT, Signal::TERM, Signal::HUP]) {
            // In the order in which they are registered: the first signal finds nothing set.
            flag::register_conditional_default(number, Arc::clone(&again))?;
            flag::register(number, Arc::clone(&again))?;
            let value = usize::try_from(number).unwrap_or_default();
            flag::register_usize(number, Arc::clone(&ours.0), value)?;
        }
        Ok(ours)
    }

    /// The number of the signal. `None` where none came.
    pub fn came(&self) -> Option<i32> {
        let number = i32::try_from(self.0.load(Ordering::SeqCst)).ok();
        number.filter(|number| *number > 0)
    }
}

/// The numbers of these signals but for those that we ignore. All of them where the kernel does not tell.
fn heeded<const N: usize>(signals: [Signal; N]) -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first signal has the lowest bit.
    let ignored = mask.unwrap_or_default();
    let numbers = signals.into_iter().map(Signal::as_raw);
    numbers.filter(move |number| ignored >> (number - 1) & 1 == 0)
}
