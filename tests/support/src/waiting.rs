//! Waits for real programs, with a limit, until there is an answer.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Limit that ends a hang. Nothing takes this long, however loaded the machine is.
pub const HANG: Duration = Duration::from_mins(5);

/// Polls until there is an answer.
///
/// # Panics
/// Panics if there is none before [`HANG`].
pub fn wait<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    wait_with_state(what, poll, String::new)
}

/// Like [`wait`]; the message of a failure includes the state at that time.
///
/// # Panics
/// Panics if there is no answer before [`HANG`].
pub fn wait_with_state<T>(
    what: &str,
    mut poll: impl FnMut() -> Option<T>,
    state: impl Fn() -> String,
) -> T {
    let deadline = now() + HANG;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(now() < deadline, "waited in vain for {what}\n{}", state());
        pause(Duration::from_millis(5));
    }
}

/// Waits for a program to end. The standard library does so without a limit; this panics if the program has not ended
/// before [`HANG`], or if another process still has its outputs open.
pub trait ToEnd {
    /// Returns the exit status, and the unread part of the piped outputs.
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

/// Waits until the child has ended, and returns its exit status. Does not read its outputs.
///
/// # Panics
/// Panics if it has not ended before [`HANG`].
pub fn ended(child: &mut Child) -> ExitStatus {
    wait("a program to end", || child.try_wait().expect("our child"))
}

/// Returns a receiver of the whole output, which arrives once no process has the other end open.
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
