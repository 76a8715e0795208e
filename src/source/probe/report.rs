//! The reports of each process: the steps since they were last taken, and sums over all of them, in bounded memory.
//!
//! Pure: does not use a socket or a clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nix::errno::Errno;

use crate::probe::{Cached, Message, Step};
use crate::sample::{DeviceTime, QueueSource, QueueTally, Reported};
use crate::units::{Pid, keep_newest};

/// Maximum number of steps of one process that wait to be taken: half a minute at two thousand steps a second.
const STEPS: usize = 65_536;
/// Maximum number of processes whose reports are kept: a further one replaces the one that was silent for longest.
const WRITERS: usize = 64;
/// A step that ends this much later than now, in nanoseconds, was measured by another clock.
const AHEAD: u64 = 1_000_000_000;

/// Reports of one process so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProbeReport {
    /// Steps since they were last taken, oldest first.
    pub steps: VecDeque<Step>,
    /// Steps since they were last taken that are in the sums but not in the list, because they were not taken in time.
    pub dropped: u64,
    /// Sums since it started to report, or since its step numbers restarted. Times are of the protocol's clock.
    pub totals: Reported,
    /// Number of the newest step. `None` before the first.
    pub last_number: Option<u64>,
    /// Number of batches that were ready when the trainer asked for one. `None` if no step reported it.
    pub queue: Option<QueueTally>,
    /// Steps that are not counted because their times are in the future: measured by another clock than the protocol's.
    pub misdated: u64,
    pub rank: Option<u32>,
    /// Worker processes of the loader that it used last; 0 = it loads itself. `None` = not reported.
    pub workers: Option<u32>,
    /// Whether that loader puts its batches into pinned memory. `None` = not reported.
    pub pin: Option<bool>,
    /// `None` = every batch was loaded for its step.
    pub cached: Option<Cached>,
    /// The device that it computes on. `None` = not reported.
    pub device: Option<String>,
    /// The newest notice for the user. `None` = not reported.
    pub notice: Option<String>,
}

impl ProbeReport {
    fn add(&mut self, step: &Step) {
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        let waited = between(step.wait_from, step.wait_to);
        let stepped = between(step.wait_to, step.step_to);
        let totals = &mut self.totals;
        if totals.steps == 0 {
            totals.first_from = Duration::from_nanos(step.wait_from);
        }
        totals.steps += 1;
        totals.waited = totals.waited.saturating_add(waited);
        totals.stepped = totals.stepped.saturating_add(stepped);
        let add = |sum: &mut Option<DeviceTime>, took: Option<u64>| {
            if let Some(took) = took.map(Duration::from_nanos) {
                let sum = sum.get_or_insert_default();
                sum.took = sum.took.saturating_add(took);
                sum.of = sum.of.saturating_add(waited).saturating_add(stepped);
            }
        };
        add(&mut totals.copy, step.copy);
        add(&mut totals.busy, step.busy);
        let most = step.wait_to.saturating_sub(step.wait_from);
        add(&mut totals.idle, step.idle.map(|idle| idle.min(most)));
        let busy = Duration::from_nanos(step.busy.unwrap_or_default());
        totals.overrun = totals.overrun.saturating_add(busy.saturating_sub(stepped));
        totals.last_to = Duration::from_nanos(step.step_to);
        if let Some(ready) = step.ready {
            let queue = self.queue.get_or_insert(QueueTally {
                source: QueueSource::Probe,
                ..QueueTally::default()
            });
            queue.count(ready);
        }
        self.last_number = Some(step.number);
    }
}

/// The reports of all processes.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    writers: BTreeMap<Pid, Account>,
    pub(super) refused: u64,
    /// Why nothing more is received. `None` while the listener runs.
    pub(super) broken: Option<Errno>,
}

#[derive(Debug, Default)]
struct Account {
    report: ProbeReport,
    received_at: u64,
    /// Step numbers skipped since the first step.
    gaps: u64,
    capacity: Option<u32>,
}

impl Accounts {
    pub(super) fn writers(&self) -> Vec<Pid> {
        self.writers.keys().copied().collect()
    }

    pub(super) fn take(&mut self, pid: Pid) -> Option<ProbeReport> {
        let account = self.writers.get_mut(&pid)?;
        let steps = std::mem::take(&mut account.report.steps);
        let dropped = std::mem::take(&mut account.report.dropped);
        let mut report = ProbeReport {
            steps,
            dropped,
            ..account.report.clone()
        };
        if let Some(queue) = &mut report.queue {
            queue.capacity = account.capacity;
        }
        Some(report)
    }

    /// Adds a message from `pid`, received at `now` on the protocol's clock.
    pub(super) fn add(&mut self, pid: Pid, message: Message, now: u64) {
        if !self.writers.contains_key(&pid) && self.writers.len() == WRITERS {
            let silent = self
                .writers
                .iter()
                .min_by_key(|(_, account)| account.received_at)
                .map(|(pid, _)| *pid);
            silent.and_then(|pid| self.writers.remove(&pid));
        }
        let account = self.writers.entry(pid).or_default();
        account.received_at = now;
        account.add(message, now);
    }
}

impl Account {
    fn add(&mut self, message: Message, now: u64) {
        let report = &mut self.report;
        report.rank = message.rank.or(report.rank);
        report.workers = message.workers.or(report.workers);
        report.pin = message.pin.or(report.pin);
        report.cached = message.cached.or(report.cached);
        report.device = message.device.or(report.device.take());
        report.notice = message.notice.or(report.notice.take());
        self.capacity = message.capacity.or(self.capacity);
        for step in message.steps {
            if step.step_to > now.saturating_add(AHEAD) {
                report.misdated += 1;
                continue;
            }
            match report.last_number {
                Some(last) if step.number > last => {
                    self.gaps = self.gaps.saturating_add(step.number - last - 1);
                }
                Some(_) => {
                    // The loop restarted, or the PID was reused by another process.
                    (report.totals, report.queue) = (Reported::default(), None);
                    report.cached = message.cached;
                    self.gaps = 0;
                }
                None => {}
            }
            report.add(&step);
            report.dropped += u64::from(keep_newest(&mut report.steps, step, STEPS));
        }
        report.totals.lost = self.gaps.max(message.lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A step that waits 1 ms and computes 3 ms, from millisecond `4 * number` on.
    fn step(number: u64) -> Step {
        let from = number * 4_000_000;
        Step {
            number,
            wait_from: from,
            wait_to: from + 1_000_000,
            step_to: from + 4_000_000,
            ..Step::default()
        }
    }

    fn message(lost: u64, steps: impl IntoIterator<Item = Step>) -> Message {
        Message {
            pid: 7,
            lost,
            steps: steps.into_iter().collect(),
            ..Message::default()
        }
    }

    #[test]
    fn steps_are_handed_over_once_and_sums_go_on() {
        let mut accounts = Accounts::default();
        accounts.add(Pid(7), message(0, [step(0), step(1)]), SECOND);
        let report = accounts.take(Pid(7)).unwrap();
        assert_eq!(report.steps, [step(0), step(1)]);
        accounts.add(Pid(7), message(0, [step(2)]), SECOND);
        let report = accounts.take(Pid(7)).unwrap();
        assert_eq!((report.steps.len(), report.totals.steps), (1, 3));
        assert_eq!(report.totals.waited, Duration::from_millis(3));
        assert_eq!(report.totals.stepped, Duration::from_millis(9));
        assert_eq!(
            (report.totals.first_from, report.totals.last_to),
            (Duration::ZERO, Duration::from_millis(12))
        );
        assert_eq!(accounts.take(Pid(8)), None);
    }

    #[test]
    fn lost_steps_are_counted_once() {
        let mut accounts = Accounts::default();
        // 1 and 2 were lost by the writer, and make a gap; 4 to 6 were lost on the way.
        accounts.add(Pid(7), message(0, [step(0)]), SECOND);
        accounts.add(Pid(7), message(2, [step(3)]), SECOND);
        assert_eq!(accounts.take(Pid(7)).unwrap().totals.lost, 2);
        accounts.add(Pid(7), message(2, [step(7)]), SECOND);
        let report = accounts.take(Pid(7)).unwrap();
        assert_eq!((report.totals.lost, report.totals.steps), (5, 3));
        assert_eq!(report.last_number, Some(7));
        // A writer that cannot number its lost steps reports how many there were.
        accounts.add(Pid(7), message(9, [step(8)]), SECOND);
        assert_eq!(accounts.take(Pid(7)).unwrap().totals.lost, 9);
    }

    #[test]
    fn restarted_numbers_start_new_sums() {
        let mut accounts = Accounts::default();
        let cached = Message {
            cached: Some(Cached {
                batches: 2,
                from: 9,
            }),
            ..message(3, [step(8), step(9)])
        };
        accounts.add(Pid(7), cached.clone(), SECOND);
        assert_eq!(accounts.take(Pid(7)).unwrap().cached, cached.cached);
        accounts.add(Pid(7), message(0, [step(0)]), SECOND);
        let report = accounts.take(Pid(7)).unwrap();
        assert_eq!((report.totals.steps, report.totals.lost), (1, 0));
        assert_eq!(report.cached, None);
    }

    #[test]
    fn times_of_another_clock_are_rejected() {
        let mut accounts = Accounts::default();
        accounts.add(Pid(7), message(0, [step(1000)]), SECOND);
        let report = accounts.take(Pid(7)).unwrap();
        assert_eq!((report.misdated, report.totals.steps), (1, 0));
        assert!(report.steps.is_empty());
    }

    #[test]
    fn device_times_count_the_steps_that_report_them() {
        let mut accounts = Accounts::default();
        let timed = |number, busy| Step {
            busy: Some(busy),
            copy: None,
            ready: Some(2),
            ..step(number)
        };
        let steps = [step(0), timed(1, 2_000_000), timed(2, 5_000_000)];
        accounts.add(Pid(7), message(0, steps), SECOND);
        let report = accounts.take(Pid(7)).unwrap();
        let totals = &report.totals;
        let ms = Duration::from_millis;
        assert_eq!(totals.copy, None);
        let busy = totals.busy.unwrap();
        assert_eq!((busy.took, busy.of), (ms(7), ms(8)));
        assert_eq!(totals.overrun, ms(2));
        assert_eq!(totals.idle, None);
        let queue = report.queue.unwrap();
        assert_eq!((queue.polls, queue.empty, queue.ready_sum), (2, 0, 4));
    }

    #[test]
    fn a_device_idles_in_a_wait_no_longer_than_the_wait() {
        let mut accounts = Accounts::default();
        let idle = |number, idle| Step {
            idle: Some(idle),
            ..step(number)
        };
        let steps = [step(0), idle(1, 400_000), idle(2, 7_000_000)];
        accounts.add(Pid(7), message(0, steps), SECOND);
        let idle = accounts.take(Pid(7)).unwrap().totals.idle.unwrap();
        assert_eq!(
            (idle.took, idle.of),
            (Duration::from_micros(1400), Duration::from_millis(8))
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut accounts = Accounts::default();
        let many = STEPS as u64 + 10;
        accounts.add(Pid(7), message(0, (0..many).map(step)), u64::MAX);
        let report = accounts.take(Pid(7)).unwrap();
        assert_eq!((report.steps.len(), report.dropped), (STEPS, 10));
        assert_eq!(report.steps[0].number, 10);
        assert_eq!(report.totals.steps, many);
        for pid in (100_u32..300).map(u32::cast_signed) {
            accounts.add(Pid(pid), message(0, [step(0)]), u64::MAX);
        }
        assert!(accounts.writers().len() <= WRITERS);
        assert!(accounts.take(Pid(299)).is_some());
    }

    proptest::proptest! {
        #[test]
        fn no_report_makes_it_panic(numbers in proptest::collection::vec(proptest::num::u64::ANY, 8..80)) {
            let mut accounts = Accounts::default();
            for part in numbers.chunks_exact(8) {
                let mut times = [part[1], part[2], part[3]];
                times.sort_unstable();
                let step = Step {
                    number: part[0],
                    wait_from: times[0],
                    wait_to: times[1],
                    step_to: times[2],
                    ready: u32::try_from(part[4] >> 32).ok(),
                    copy: Some(part[5]),
                    busy: Some(part[6]),
                    idle: Some(part[7]),
                };
                accounts.add(Pid(1), message(part[7], [step]), u64::MAX);
            }
            proptest::prop_assert!(accounts.take(Pid(1)).is_some());
        }
    }
}
