//! The probe protocol, by which a job reports its own steps to pipetop (access tier T3). `docs/probe.md` describes it
//! for writers in other languages.
//!
//! Defines messages and their format; must not depend on the job or the listener. The environment variable [`VARIABLE`]
//! names a Unix datagram socket, and each datagram is a few lines of text:
//!
//! ```text
//! pipetop-probe/1 pid=4242 lost=0 rank=0 workers=4 pin=1 capacity=8
//! device NVIDIA H200
//! step 17 112233445566 112233449999 112233555555 ready=3 copy=1200000 busy=98000000
//! ```

#[cfg(feature = "lab")]
mod writer;

use std::fmt;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

#[cfg(feature = "lab")]
pub use writer::ProbeWriter;

/// The environment variable that names the socket: a path, or `@` and an abstract name.
pub const VARIABLE: &str = "PIPETOP_PROBE";

/// The first word of each datagram.
const MAGIC: &str = "pipetop-probe/1";
/// Maximum length of a device's name or of a notice in characters; the rest is cut off.
const MAX_TEXT: usize = 200;

/// Returns the time of the protocol's clock in nanoseconds: `CLOCK_MONOTONIC`, Python's `time.monotonic_ns()`.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds * 1_000_000_000 + nanoseconds
}

/// One step of a training loop. Times are of the protocol's clock, in nanoseconds.
#[cfg_attr(
    not(feature = "testing"),
    expect(
        clippy::struct_field_names,
        reason = "`step_to` ends what `wait_to` begins"
    )
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// Starts at 0; a gap means that reports of steps were lost.
    pub number: u64,
    /// When the trainer asked for a batch, when it had the batch, and when its step was done.
    pub wait_from: u64,
    pub wait_to: u64,
    pub step_to: u64,
    /// Batches that were ready when the trainer asked for one. `None` = not known.
    pub ready: Option<u32>,
    /// Time that copying the batch to the device took, on the device's clock.
    pub copy: Option<u64>,
    /// Time that the device computed for this step, on the device's clock.
    pub busy: Option<u64>,
    /// Part of the wait in which the device was idle, on the device's clock. At most the wait.
    pub idle: Option<u64>,
}

/// Batches that are reused in turn instead of loading new ones: an experiment of pipetop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cached {
    /// Number of last loaded batches that are reused, at least 1.
    pub batches: u32,
    /// Number of the first step with a reused batch.
    pub from: u64,
}

/// Content of one datagram.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The writer's PID in its own namespace.
    pub pid: i32,
    /// Steps that the writer could not send so far: it never waits for a reader.
    pub lost: u64,
    pub rank: Option<u32>,
    /// Number of worker processes; 0 = it loads itself.
    pub workers: Option<u32>,
    /// Whether batches are put into pinned memory, from which a device can copy directly.
    pub pin: Option<bool>,
    /// Maximum number of batches that can be ready.
    pub capacity: Option<u32>,
    /// `None` = every batch was loaded for its step.
    pub cached: Option<Cached>,
    /// Name of the device that the job computes on. Sent at the start and from time to time.
    pub device: Option<String>,
    /// A message for the user, one line.
    pub notice: Option<String>,
    /// Oldest first.
    pub steps: Vec<Step>,
}

impl Message {
    /// Parses a datagram. Unknown words are skipped, so that the protocol can grow; returns `None` if it is not a probe
    /// message.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let text = str::from_utf8(datagram).ok()?;
        let mut lines = text.lines();
        let mut header = lines.next()?.split_ascii_whitespace();
        if header.next()? != MAGIC {
            return None;
        }
        let mut message = Self::default();
        let (mut cached, mut cached_from) = (None, None);
        for (key, value) in header.filter_map(|word| word.split_once('=')) {
            match key {
                "pid" => message.pid = value.parse().ok()?,
                "lost" => message.lost = value.parse().ok()?,
                "rank" => message.rank = value.parse().ok(),
                "workers" => message.workers = value.parse().ok(),
                "pin" => message.pin = value.parse::<u8>().ok().map(|pin| pin != 0),
                "capacity" => message.capacity = value.parse().ok(),
                "cached" => cached = value.parse().ok(),
                "cached_from" => cached_from = value.parse().ok(),
                _ => {}
            }
        }
        message.cached = cached
            .zip(cached_from)
            .map(|(batches, from)| Cached { batches, from });
        for line in lines {
            match line.split_once(' ') {
                Some(("step", rest)) => message.steps.extend(Step::parse(rest)),
                Some(("device", rest)) => message.device = Some(words(rest)),
                Some(("notice", rest)) => message.notice = Some(words(rest)),
                _ => {}
            }
        }
        (message.pid > 0).then_some(message)
    }
}

/// Prepares text for the screen: one line, without control characters, and cut to the maximum length.
fn words(text: &str) -> String {
    let text: String = text.trim().chars().take(MAX_TEXT).collect();
    crate::units::printable(&text)
}

impl Step {
    /// Parses the text after `step`. `None` if a number is missing or times are not in order.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let mut number = || words.next()?.parse().ok();
        let mut step = Self {
            number: number()?,
            wait_from: number()?,
            wait_to: number()?,
            step_to: number()?,
            ..Self::default()
        };
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            match key {
                "ready" => step.ready = value.parse().ok(),
                "copy" => step.copy = value.parse().ok(),
                "busy" => step.busy = value.parse().ok(),
                "idle" => step.idle = value.parse().ok(),
                _ => {}
            }
        }
        (step.wait_from <= step.wait_to && step.wait_to <= step.step_to).then_some(step)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            wait_from,
            wait_to,
            step_to,
            ..
        } = self;
        write!(f, "step {number} {wait_from} {wait_to} {step_to}")?;
        let ready = self.ready.map(u64::from);
        for (name, value) in [
            ("ready", ready),
            ("copy", self.copy),
            ("busy", self.busy),
            ("idle", self.idle),
        ] {
            if let Some(value) = value {
                write!(f, " {name}={value}")?;
            }
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use support::fuzz;

    use super::*;

    const STEP: Step = Step {
        number: 17,
        wait_from: 100,
        wait_to: 250,
        step_to: 900,
        ready: Some(3),
        copy: None,
        busy: Some(600),
        idle: Some(100),
    };

    #[test]
    fn a_step_is_read_as_it_was_written() {
        let text =
            format!("{MAGIC} pid=7 lost=2 capacity=8 new=1\nfuture words\ndevice a b\n{STEP}");
        let message = Message::parse(text.as_bytes()).unwrap();
        assert_eq!((message.pid, message.lost), (7, 2));
        assert_eq!((message.rank, message.capacity), (None, Some(8)));
        assert_eq!(message.device.as_deref(), Some("a b"));
        assert_eq!(message.steps, [STEP]);
    }

    #[test]
    fn loader_properties_are_read_from_reports() {
        let read = |words: &str| Message::parse(format!("{MAGIC} pid=7 {words}").as_bytes());
        let message = read("workers=4 pin=1 cached=8 cached_from=20").unwrap();
        assert_eq!((message.workers, message.pin), (Some(4), Some(true)));
        let cached = Cached {
            batches: 8,
            from: 20,
        };
        assert_eq!(message.cached, Some(cached));
        let message = read("pin=0 workers=many cached=8").unwrap();
        assert_eq!((message.workers, message.pin), (None, Some(false)));
        assert_eq!(message.cached, None, "since when is not known");
    }

    #[test]
    fn text_for_the_screen_is_sanitised_and_shortened() {
        let long = "x".repeat(1000);
        let text = format!("{MAGIC} pid=7\ndevice a\u{1b}[2J\nnotice {long}\n");
        let message = Message::parse(text.as_bytes()).unwrap();
        assert_eq!(message.device.as_deref(), Some("a\u{fffd}[2J"));
        assert_eq!(message.notice.map(|notice| notice.len()), Some(MAX_TEXT));
    }

    #[test]
    fn malformed_and_backward_messages_are_rejected() {
        assert_eq!(Message::parse(b"pipetop-probe/2 pid=1"), None);
        assert_eq!(Message::parse(b"pipetop-probe/1 lost=0"), None);
        assert_eq!(Message::parse(b"\xff\xfe"), None);
        for step in ["1 2 3", "1 20 10 30", "1 10 20 15", "x 1 2 3"] {
            assert_eq!(Step::parse(step), None, "{step}");
        }
    }

    proptest::proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_datagrams(bytes in fuzz::bytes([
            "pipetop-probe/1 pid=42 lost=3 rank=1 workers=4 pin=1 capacity=8 cached=5 cached_from=2\nstep 7 10 20 30 ready=4 copy=1\n",
            "pipetop-probe/1 pid=1\ndevice cuda:0\nnotice a line\nstep 1 2 3 4 busy=5 idle=6\nstep 2 4 5 6\n",
        ])) {
            let Some(message) = Message::parse(&bytes) else {
                return Ok(());
            };
            proptest::prop_assert!(message.pid > 0);
            let ordered = |step: &Step| step.wait_from <= step.wait_to && step.wait_to <= step.step_to;
            proptest::prop_assert!(message.steps.iter().all(ordered));
        }
    }
}
