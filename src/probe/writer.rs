//! The sending end of the probe protocol: never blocks, and counts what it could not send.

use std::ffi::OsStr;
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::{Cached, MAGIC, Step, VARIABLE, words};

/// Longest time, in nanoseconds, that steps are collected before they are sent: a datagram for each of two thousand
/// steps a second would cost more than the steps.
const GATHERED: u64 = 20_000_000;
/// Number of collected bytes at which they are sent.
const SEND_AT: usize = 4096;
/// Maximum number of bytes kept while the reader is behind; if there are more, all of them are lost.
const MAX_BYTES: usize = 32 * 1024;

/// Reports the steps of one trainer.
#[derive(Debug)]
pub struct ProbeWriter {
    socket: UnixDatagram,
    capacity: Option<u32>,
    cached: Option<Cached>,
    device: Option<String>,
    /// Lines that were not sent yet, and the number of steps among them.
    lines: String,
    steps: u64,
    sent_at: u64,
    lost: u64,
}

impl ProbeWriter {
    /// Connects to the socket named in the environment. `None` if none is named, or if nothing listens there: then
    /// reports are not wanted.
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

    /// Sets the device that the job computes on. It is sent with every datagram, because any of them may be the first
    /// that is read.
    pub fn device(&mut self, name: &str) {
        self.device = Some(words(name));
    }

    /// Sends a message for the user at once.
    pub fn notice(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.lines, "notice {}", words(text));
        self.flush();
    }

    /// Adds a step that has ended. Collected steps are sent with a later step or by [`ProbeWriter::flush`], which a
    /// trainer should call before a long wait.
    pub fn step(&mut self, step: &Step) {
        let _ = write!(self.lines, "{step}");
        self.steps += 1;
        if step.step_to.saturating_sub(self.sent_at) >= GATHERED || self.lines.len() >= SEND_AT {
            self.sent_at = step.step_to;
            self.flush();
        }
    }

    /// Returns the number of steps that could not be sent so far.
    #[cfg(test)]
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Sends the collected lines without blocking. If the reader has no room, they are kept for the next call, and
    /// counted as lost once there are too many.
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
            if error.kind() == ErrorKind::WouldBlock && self.lines.len() < MAX_BYTES {
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
