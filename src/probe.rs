//! The probe protocol: how a job tells pipetop of its own steps (access tier T3). `docs/probe.md` describes it
//! for those who write it from another language.
//!
//! Holds what travels and how it reads; knows nothing of who trains or who listens. A writer finds in
//! [`VARIABLE`] the name of a Unix datagram socket, and each datagram is a few lines of text:
//!
//! ```text
//! pipetop-probe/1 pid=4242 lost=0 rank=0 workers=4 pin=1 capacity=8
//! device NVIDIA H200
//! step 17 112233445566 112233449999 112233555555 ready=3 copy=1200000 busy=98000000
//! ```

mod writer;

use std::fmt;

use rustix::time::{ClockId, clock_gettime};

pub use writer::ProbeWriter;

/// The environment variable that names the socket: a path, or `@` and an abstract name.
pub const VARIABLE: &str = "PIPETOP_PROBE";

/// The first word of each datagram.
const MAGIC: &str = "pipetop-probe/1";
/// Characters of a device's name or of a notice; what is beyond is cut off.
const LONGEST: usize = 200;

/// Nanoseconds on the clock of the protocol: `CLOCK_MONOTONIC`, Python's `time.monotonic_ns()`.
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
    /// Counts from 0; a gap tells of steps whose report was lost.
    pub number: u64,
    /// The trainer came for a batch, had it, and had done its step with it.
    pub wait_from: u64,
    pub wait_to: u64,
    pub step_to: u64,
    /// Batches that lay ready when the trainer came. `None` = not known.
    pub ready: Option<u32>,
    /// Time that the copy of the batch to the device took, on the device's clock.
    pub copy: Option<u64>,
    /// Time that the device computed for this step, on the device's clock.
    pub busy: Option<u64>,
    /// Time of the wait in which the device had nothing to do, on the device's clock. At most the wait.
    pub idle: Option<u64>,
}

/// Batches that are handed out again and again, in place of newly loaded ones: an experiment of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cached {
    /// So many, in turn.
    pub batches: u32,
    /// Since the step of this number.
    pub from: u64,
}

/// What one datagram says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The writer's process number as it sees it.
    pub pid: i32,
    /// Steps that the writer could not send so far: it never waits for a reader.
    pub lost: u64,
    pub rank: Option<u32>,
    /// Processes that load for it; 0 = it loads itself.
    pub workers: Option<u32>,
    /// Batches are put into memory from which a device copies by itself.
    pub pin: Option<bool>,
    /// The most batches that can be ready.
    pub capacity: Option<u32>,
    /// `None` = every batch was loaded for its step.
    pub cached: Option<Cached>,
    /// What the job computes on, in words. Said at the start and now and then.
    pub device: Option<String>,
    /// Something that the user should know, one line.
    pub notice: Option<String>,
    /// Oldest first.
    pub steps: Vec<Step>,
}

impl Message {
    /// Reads a datagram. Words that it does not know are passed over, so that the protocol can grow; `None`
    /// where it is no probe message at all.
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

/// Words that are for the screen: one line of what no terminal obeys, and no longer than a line can be.
fn words(text: &str) -> String {
    let text: String = text.trim().chars().take(LONGEST).collect();
    crate::units::printable(&text)
}

impl Step {
    /// Reads what follows `step`. `None` where a number is missing, or time runs backwards.
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
        if let Some(ready) = self.ready {
            write!(f, " ready={ready}")?;
        }
        if let Some(copy) = self.copy {
            write!(f, " copy={copy}")?;
        }
        if let Some(busy) = self.busy {
            write!(f, " busy={busy}")?;
        }
        if let Some(idle) = self.idle {
            write!(f, " idle={idle}")?;
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
    fn what_the_loader_is_like_is_read_where_it_is_told() {
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
        assert_eq!(message.cached, None, "since when is not told");
    }

    #[test]
    fn words_for_the_screen_are_made_harmless_and_short() {
        let long = "x".repeat(1000);
        let text = format!("{MAGIC} pid=7\ndevice a\u{1b}[2J\nnotice {long}\n");
        let message = Message::parse(text.as_bytes()).unwrap();
        assert_eq!(message.device.as_deref(), Some("a\u{fffd}[2J"));
        assert_eq!(message.notice.map(|notice| notice.len()), Some(LONGEST));
    }

    #[test]
    fn what_is_no_message_and_what_runs_backwards_is_refused() {
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
