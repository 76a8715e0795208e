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

/// Forwards signals to the command from now on, and for as long as pipetop runs: none of them ends pipetop any more.
///
/// # Errors
/// Where no thread can be started.
pub fn forward(running: &Running) -> io::Result<()> {
    let orders = running.orders()?;
    let mut signals = Signals::new(FORWARDED.map(|(signal, _)| signal.as_raw()))?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for number in signals.forever() {
                let group = FORWARDED
                    .iter()
                    .any(|(signal, group)| signal.as_raw() == number && *group);
                orders.signal(number, group);
            }
        })?;
    Ok(())
}
