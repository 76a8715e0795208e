//! Waiting for real programs: until there is an answer, and not for ever.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Ends a hang. Nothing that is waited for takes this long, however loaded the machine is.
pub const HANG: Duration = Duration::from_mins(5);

/// Looks until there is an answer.
///
/// # Panics
/// Where there is none before [`HANG`].
pub fn wait<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    wait_telling(what, poll, String::new)
}

/// The same; the failure says how things stood then.
///
/// # Panics
/// Where there is no answer before [`HANG`].
pub fn wait_telling<T>(
    what: &str,
    mut poll: impl FnMut() -> Option<T>,
    stood: impl Fn() -> String,
) -> T {
    let deadline = now() + HANG;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(now() < deadline, "waited in vain for {what}\n{}", stood());
        pause(Duration::from_millis(5));
    }
}

/// A program that ends. The standard library waits for it for ever; this panics where it has not ended, or somebody else
/// still holds its outputs, before [`HANG`].
pub trait ToEnd {
    /// How it ended, and what of its outputs is piped to us and was not taken.
    fn to_end(&mut self) -> Output;
}

impl ToEnd for Command {
    fn to_end(&mut self) -> Output {
        let pipes = self.stdin(Stdio::null()).stdout(Stdio::piped());
        let started = pipes.stderr(Stdio::piped()).spawn();
        started.expect("it starts").to_end()
    }
}

impl ToEnd for Child {
    fn to_end(&mut self) -> Output {
        drop(self.stdin.take());
        let outputs = [
            self.stdout.take().map(all_of),
            self.stderr.take().map(all_of),
        ];
        let status = ended(self);
        let [stdout, stderr] = outputs.map(|output| {
            output.map_or_else(Vec::new, |all| {
                all.recv_timeout(HANG).expect("its outputs end with it")
            })
        });
        Output {
            status,
            stdout,
            stderr,
        }
    }
}

/// How it ended, once it has. Its outputs are left as they are.
///
/// # Panics
/// Where it has not ended before [`HANG`].
pub fn ended(child: &mut Child) -> ExitStatus {
    wait("a program to end", || child.try_wait().expect("our child"))
}

/// All that comes, once nobody has its other end.
fn all_of(mut output: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (whole, comes) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = output.read_to_end(&mut all);
        let _ = whole.send(all);
    });
    comes
}

#[expect(clippy::disallowed_methods, reason = "real programs are waited for")]
pub fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "real programs are waited for")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
