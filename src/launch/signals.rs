//! Signals that pipetop receives and forwards to the command. Signals that were ignored when pipetop started, as with
//! `nohup`, stay ignored, also by the command.

use std::collections::BTreeSet;
use std::io;

use rustix::process::Signal;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::running::Running;
use super::supervisor::ENDING;
use crate::background::spawn;

/// The forwarded signals, and whether each goes to the command's whole process group. Those that a terminal sends do,
/// as if the terminal had sent them; the others go to the command alone.
const FORWARDED: [(Signal, bool); 6] = [
    (Signal::INT, true),
    (Signal::QUIT, true),
    (Signal::HUP, true),
    (Signal::TERM, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
];

/// Signals that pipetop receives for the command from now on. None of them ends pipetop any more. Registered before the
/// command starts, so that no signal is lost.
#[derive(Debug)]
pub struct Forward(Signals);

impl Forward {
    /// Registers the signals.
    ///
    /// # Errors
    /// Returns an error if the system refuses.
    pub fn take() -> io::Result<Self> {
        Signals::new(not_ignored(FORWARDED.map(|(signal, _)| signal))).map(Self)
    }

    /// Forwards past and future signals to the command. If a signal that requests the command to end arrives a second
    /// time, the command is killed: the sender has seen that the first one did not help.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
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
        spawn("signals", forward).map(drop)
    }
}

/// Calls `work` when an ending signal arrives, and then lets the signal end the program as it does by default.
///
/// # Errors
/// Returns an error if the system refuses, or no thread can be started.
pub fn before_the_end(work: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(not_ignored([Signal::INT, Signal::TERM, Signal::HUP]))?;
    let wait = move || {
        for number in signals.forever() {
            work();
            // Fails only for a number that is not a signal.
            let _ = emulate_default_handler(number);
        }
    };
    spawn("signals", wait).map(drop)
}

/// Returns the numbers of these signals, without those that we ignore. All of them if the kernel does not list ignored
/// signals.
pub fn not_ignored<const N: usize>(signals: [Signal; N]) -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first signal has the lowest bit.
    let ignored = mask.unwrap_or_default();
    let numbers = signals.into_iter().map(Signal::as_raw);
    numbers.filter(move |number| ignored >> (number - 1) & 1 == 0)
}
