//! Signals that pipetop gets and that are meant for the command.

use std::io;

use rustix::process::Signal;
use signal_hook::iterator::Signals;

use super::running::Running;

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
        // What we were started to ignore, as by `nohup`, the command ignores as well.
        let ignored = ignored();
        let taken = FORWARDED.iter().map(|(signal, _)| signal.as_raw());
        let taken = taken.filter(|number| ignored >> (number - 1) & 1 == 0);
        Signals::new(taken).map(Self)
    }

    /// Hands to the command what came and what comes.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn to(mut self, running: &Running) -> io::Result<()> {
        let orders = running.orders()?;
        let forward = move || {
            for number in self.0.forever() {
                let group = FORWARDED
                    .iter()
                    .any(|(signal, group)| signal.as_raw() == number && *group);
                orders.signal(number, group);
            }
        };
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(forward).map(drop)
    }
}

/// The signals that we ignore, the first in the lowest bit. None where the kernel does not tell.
pub(super) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
