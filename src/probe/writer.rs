//! The writing end of the probe protocol: never waits, counts what it could not send.

use std::ffi::OsStr;
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::{Cached, MAGIC, Step, VARIABLE, words};

/// Steps are gathered for at most so long before they are sent, in nanoseconds: a datagram for each of two
/// thousand steps a second would cost more than the steps.
const GATHERED: u64 = 20_000_000;
/// And at most so many bytes of them.
const LARGEST: usize = 4096;
/// While the reader is behind, so many bytes are kept for it; then all of them are lost.
const KEPT: usize = 32 * 1024;

/// Reports the steps of one trainer.
#[derive(Debug)]
pub struct ProbeWriter {
    socket: UnixDatagram,
    capacity: Option<u32>,
    cached: Option<Cached>,
    device: Option<String>,
    /// Lines that were not sent yet, and the steps among them.
    lines: String,
    steps: u64,
    sent_at: u64,
    lost: u64,
}

impl ProbeWriter {
    /// Connects to the socket that the environment names. `None` where it names none, or where nobody
    /// listens there: then nobody wants to know.
    pub fn from_environment(capacity: Option<u32>, cached: Option<Cached>) -> Option<Self> {
        let mut writer = Self::connect(&std::env::var_os(VARIABLE)?, capacity)?;
        writer.cached = cached;
        Some(writer)
    }

    /// Connects to the socket of this name.
    pub fn connect(name: &OsStr, capacity: Option<u32>) -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(name),
        };
        socket.connect_addr(&address.ok()?).ok()?;
        Some(Self {
            socket,
            capacity,
            cached: None,
            device: None,
            lines: String::new(),
            steps: 0,
            sent_at: 0,
            lost: 0,
        })
    }

    /// Says what the job computes on; sent with every datagram, as any of them may be the first that is read.
    pub fn device(&mut self, name: &str) {
        self.device = Some(words(name));
    }

    /// Says something that the user should know, at once.
    pub fn notice(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.lines, "notice {}", words(text));
        self.flush();
    }

    /// Takes note of a step that has ended. What was gathered goes out with a later step or with
    /// [`ProbeWriter::flush`]: a trainer that is about to wait for long calls that first.
    pub fn step(&mut self, step: &Step) {
        let _ = write!(self.lines, "{step}");
        self.steps += 1;
        if step.step_to.saturating_sub(self.sent_at) >= GATHERED || self.lines.len() >= LARGEST {
            self.sent_at = step.step_to;
            self.flush();
        }
    }

    /// Steps that could not be sent so far.
    #[cfg(test)]
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Sends what was gathered, without waiting. What the reader has no room for is tried again with the
    /// next, and counted as lost once it is too much.
    pub fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let mut text = format!("{MAGIC} pid={} lost={}", std::process::id(), self.lost);
        if let Some(capacity) = self.capacity {
            let _ = write!(text, " capacity={capacity}");
        }
        if let Some(Cached { batches, from }) = self.cached {
            let _ = write!(text, " cached={batches} cached_from={from}");
        }
        if let Some(device) = &self.device {
            let _ = write!(text, "\ndevice {device}");
        }
        text.push('\n');
        text.push_str(&self.lines);
        if let Err(error) = self.socket.send(text.as_bytes()) {
            if error.kind() == ErrorKind::WouldBlock && self.lines.len() < KEPT {
                return;
            }
            self.lost += self.steps;
        }
        self.lines.clear();
        self.steps = 0;
    }
}

impl Drop for ProbeWriter {
    fn drop(&mut self) {
        self.flush();
    }
}
