//! Growth of the tallies that pipetop keeps since attaching.
//!
//! If the older sample has no tally yet, it counts from 0: a share of polls needs no interval, so nothing can spike.
//! The result is `None` if any count went backwards or there was no poll.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::rates::Activity;
use crate::model::usage::Usage;
use crate::sample::{
    BEAT, CELLS, COMMUNICATION, COPIES, EVENTS, MainTally, QueueSource, QueueTally, RankSample,
    ReadyTally, SYNCHRONIZE,
};
use crate::units::{Share, total, whole};

/// Number of functions kept of an activity: the hottest.
const MAX_FUNCTIONS: usize = 8;
/// The [`BEAT`] of recordings that do not say for how long the time on a CPU was counted.
const OLDER_BEAT: Duration = Duration::from_millis(10);
/// Minimum number of polls of a ready thread, and of a sleeping one, for each kind to be weighted separately.
const OF_EACH_KIND: u64 = 60;
/// Error of the share that delayed polls see, compared with the share at the times when they were due, within two
/// standard deviations: measured in ten jobs of 5 to 20 ms per batch next to 15 busy threads on two CPUs.
const DELAYED_OFF: f64 = 0.25;
/// Changes of state per batch: from a wait to a step, and from the step to the next wait.
const CHANGES_A_BATCH: f64 = 2.0;
/// Maximum part of the time on a CPU taken by a hypervisor for the kernel's count of a thread's ready time to be used:
/// `update_rq_clock_task` leaves that part out, so the count is too low. With 25 % taken, the wait shares of a main
/// thread that computes in its waits were 0.05 and 0.08 too low in two reports.
const STOLEN: Share = Share(0.02);
/// Standard deviations within which a difference counts as chance.
const CHANCE: f64 = 2.0;

/// Polls of the main thread that can tell waits from steps, and the number of polls before them that cannot.
#[derive(Debug, Clone, Copy)]
pub(super) struct MainGrown {
    pub(super) tally: MainTally,
    pub(super) before: u64,
    /// Number of these that were in a loader, if that was known.
    pub(super) waited_before: u64,
    /// By how much the polls misjudge the share of time in which the thread was ready, beyond chance.
    pub(super) skew: Share,
    /// By how much delayed polls may misjudge the share of waits.
    pub(super) delayed: Share,
}

/// Returns the growth of the main thread's tally; from `recognised` on, polls tell waits from steps. `stolen` is the part of
/// the time on a CPU that a hypervisor took.
pub(super) fn main(
    older: Option<MainTally>,
    newer: Option<MainTally>,
    recognised: Option<MainTally>,
    stolen: Share,
) -> Option<MainGrown> {
    let older = older.unwrap_or_default();
    let late = recognised.filter(|recognised| recognised.polls > older.polls);
    let before = late.and_then(|late| main_grown(older, late));
    let mut tally = main_grown(late.unwrap_or(older), newer?)?;
    tally.ready = tally.ready.filter(|_| stolen <= STOLEN);
    Some(MainGrown {
        skew: skew(&tally).unwrap_or_default(),
        delayed: delayed(&tally),
        tally: post_stratified(tally),
        before: before.map_or(0, |before| before.polls),
        waited_before: before.map_or(0, MainTally::in_loader),
    })
}

fn main_grown(older: MainTally, newer: MainTally) -> Option<MainTally> {
    let mut grown = newer.since(Some(older))?;
    // Polls that could not be classified may have been classified as no wait since.
    grown.unseen = newer.unseen.saturating_sub(older.unseen);
    if let Some(gil) = &mut grown.gil {
        *gil = gil.since(older.gil)?;
    }
    if let Some(ready) = &mut grown.ready {
        *ready = ready.since(older.ready)?;
    }
    (grown.polls > 0).then_some(grown)
}

/// Returns by how much the polls misjudge how long the thread was ready, beyond what chance explains. The kernel's count is
/// exact; polls that come late see some states more often than others. `None` if the kernel does not count it.
fn skew(polled: &MainTally) -> Option<Share> {
    let ready = polled.ready.filter(|ready| !ready.time.is_zero())?;
    let counted = ready_share(polled, ready)?;
    let seen = Share::of(awake(polled, ready) as f64, polled.polls as f64)?;
    let spread = seen.0 * seen.complement().0;
    let by_chance = CHANCE * (spread / polled.observed.max(1) as f64).sqrt();
    Some(Share((seen.0 - counted.0).abs() - by_chance).clamped())
}

impl MainGrown {
    /// Returns the share of `seconds` in which the thread was polled.
    pub(super) fn polled(&self, seconds: f64) -> Share {
        let polls = (self.tally.polls + self.before) as f64;
        Share::of(polls * BEAT.as_secs_f64(), seconds).map_or(Share::ZERO, Share::clamped)
    }

    /// Returns a lower bound of the share of time that the main thread spent in something that polls saw with the share
    /// `seen`, in a job with this many batches per second.
    pub(super) fn at_least(self, seen: Share, batches_per_second: Option<f64>) -> Share {
        let spread = seen.0 * seen.complement().0;
        let by_chance = CHANCE * (spread / self.tally.observed.max(1) as f64).sqrt();
        Share(seen.0 - by_chance - self.with_delays(batches_per_second).skew.0).clamped()
    }

    /// Returns the same growth, with the skew that delayed polls may cause at this many batches per second. A delayed
    /// poll sees the wrong state only if the thread has meanwhile gone on to the next wait or step.
    pub(super) fn with_delays(self, batches_per_second: Option<f64>) -> Self {
        let changes = batches_per_second.map_or(f64::INFINITY, |batches| {
            let delay = self.tally.delay.as_secs_f64() / self.tally.observed.max(1) as f64;
            CHANGES_A_BATCH * batches * delay
        });
        let skew = self.skew.0.max(self.delayed.0.min(changes));
        Self {
            skew: Share(skew).clamped(),
            ..self
        }
    }
}

/// Returns by how much delayed polls may misjudge the share of waits. A poll waits for a CPU as long as the job keeps
/// all CPUs busy, so the job determines when it comes, and it does not see what it would have seen when it was due. The
/// error is taken to be at least the measured one ([`DELAYED_OFF`]), and at least the amount by which delayed polls
/// change the share.
fn delayed(polled: &MainTally) -> Share {
    let in_loader = |of: u64, polls: u64| Share::of(of as f64, polls as f64);
    let all = in_loader(polled.in_loader(), polled.polls);
    let in_time = in_loader(
        polled.in_loader().saturating_sub(polled.delayed_in_loader),
        polled.polls.saturating_sub(polled.delayed),
    );
    let part = Share::of(polled.delayed as f64, polled.polls as f64).unwrap_or_default();
    match (all, in_time) {
        (Some(all), Some(in_time)) => {
            Share((all.0 - in_time.0).abs().max(DELAYED_OFF * part.0)).clamped()
        }
        // All polls were delayed.
        _ => Share::ONE,
    }
}

/// Returns the share of the time in which the thread was ready, as the kernel has counted it.
fn ready_share(polled: &MainTally, ready: ReadyTally) -> Option<Share> {
    let span = if ready.span.is_zero() {
        polled.polls as f64 * OLDER_BEAT.as_secs_f64()
    } else {
        ready.span.as_secs_f64()
    };
    Some(Share::of(ready.time.as_secs_f64(), span)?.clamped())
}

/// Returns the polls at which the thread was on a CPU or waiting for one.
fn awake(polled: &MainTally, ready: ReadyTally) -> u64 {
    let in_loader = [ready.waiting, ready.receiving, ready.loading];
    total(in_loader.into_iter().chain([polled.running]))
}

/// Weights the polls of a ready thread, and those of a sleeping one, by the kernel's count of the time in each. Polls
/// are a sample, and come late when CPUs are short. Since it is known exactly how long a thread was ready, the sample
/// only has to show what it does within each kind. Returns the tally unchanged if there are too few polls of either
/// kind.
fn post_stratified(polled: MainTally) -> MainTally {
    let Some(ready) = polled.ready.filter(|ready| !ready.time.is_zero()) else {
        return polled;
    };
    let all = polled.polls;
    let awake = awake(&polled, ready);
    let asleep = all.saturating_sub(awake);
    if awake.min(asleep) < OF_EACH_KIND {
        return polled;
    }
    let Some(counted) = ready_share(&polled, ready) else {
        return polled;
    };
    let ready_polls = counted.0 * all as f64;
    let (for_awake, for_asleep) = (
        ready_polls / awake as f64,
        (all as f64 - ready_polls) / asleep as f64,
    );
    let weighed = |awake: u64, asleep: u64| {
        let weighed = (awake as f64).mul_add(for_awake, asleep as f64 * for_asleep);
        whole(weighed.round()) as u64
    };
    let split = |of: u64, awake: u64| weighed(awake, of.saturating_sub(awake));
    let running = weighed(polled.running, 0);
    let (disk, other) = (weighed(0, polled.disk), weighed(0, polled.other));
    let waiting = split(polled.waiting, ready.waiting);
    let receiving = split(polled.receiving, ready.receiving);
    let loading = split(polled.loading, ready.loading);
    let stopped = weighed(0, polled.stopped);
    let part = |part: u64, of: u64, weighed: u64| {
        let share = Share::of(part as f64, of as f64).unwrap_or_default();
        whole((share.0 * weighed as f64).round()) as u64
    };
    let outside = total([polled.running, polled.disk, polled.other]);
    let weighed_outside = total([running, disk, other]);
    let unseen = part(polled.unseen, outside, weighed_outside);
    let in_generator = part(polled.in_generator, outside, weighed_outside);
    let preparing = part(polled.preparing, outside, weighed_outside);
    let dispatched = part(polled.dispatched, polled.waiting, waiting);
    let pinning = part(polled.pinning, polled.waiting, waiting);
    let network = part(polled.network, polled.loading, loading);
    let in_loop = part(polled.in_loop, polled.loading, loading);
    let blocked = part(polled.blocked, polled.other, other);
    MainTally {
        polls: total([waiting, receiving, loading, weighed_outside, stopped]),
        waiting,
        receiving,
        loading,
        running,
        disk,
        other,
        stopped,
        unseen,
        in_generator,
        preparing,
        dispatched,
        pinning,
        network,
        in_loop,
        blocked,
        ..polled
    }
}

/// Returns the growth of a queue's tally. Reports and polls are counted separately: polls that replace reports count
/// from their first poll, but reports that replace polls count from the job's start, which pipetop may not have seen,
/// so their first growth is `None`.
pub(super) fn queue(older: Option<QueueTally>, newer: Option<QueueTally>) -> Option<QueueTally> {
    let from_probe = |tally: QueueTally| tally.source == QueueSource::Probe;
    let newer = newer?;
    let older = match older {
        Some(older) if from_probe(older) == from_probe(newer) => older,
        Some(_) if from_probe(newer) => return None,
        _ => QueueTally::default(),
    };
    let grown = newer.since(Some(older))?;
    (grown.polls > 0).then_some(grown)
}

/// Returns the shares of the time in which the main thread waited for something other than a batch, longest first. Such
/// a wait may include work, as on a line of a log, which takes longer while all CPUs are busy: the time in which the
/// thread is ready but has no CPU does not count as part of the wait.
pub(super) fn not_data(
    older: Option<&RankSample>,
    newer: &RankSample,
    polled: Option<&MainGrown>,
    usage: Usage,
) -> Vec<Activity> {
    let polls = polled.map_or(0, |polled| polled.tally.polls + polled.before);
    let shares = |of: fn(&RankSample) -> &BTreeMap<String, u64>| {
        shares_of_polls(older.map(of), of(newer), polls)
    };
    let mut all = shares(|rank| &rank.not_data);
    let ready = shares(|rank| &rank.not_data_ready);
    let delay = usage.run_delay.zip(usage.main_cpu);
    let without_a_cpu = delay.and_then(|(delay, cpu)| Share::of(delay.0, delay.0 + cpu.0));
    for wait in all.iter_mut().filter(|wait| is_other(&wait.name)) {
        let delayed = time(&ready, &wait.name).0 * without_a_cpu.unwrap_or_default().0;
        wait.share = Share(wait.share.0 - delayed).clamped();
    }
    all.sort_by(|one, other| other.share.0.total_cmp(&one.share.0));
    all
}

/// Whether `what` is a wait of the program itself: not for its device, not for other ranks, and not in an event loop.
pub(super) fn is_other(what: &str) -> bool {
    ![COMMUNICATION, SYNCHRONIZE, COPIES, EVENTS, CELLS].contains(&what)
}

/// Returns the share of the time in which the main thread waited for `what`.
pub(super) fn time(not_data: &[Activity], what: &str) -> Share {
    let wait = not_data.iter().find(|wait| wait.name == what);
    wait.map_or(Share::ZERO, |wait| wait.share)
}

/// Returns the share of each function in all polls. Empty if a count went backwards.
fn shares_of_polls(
    older: Option<&BTreeMap<String, u64>>,
    newer: &BTreeMap<String, u64>,
    polls: u64,
) -> Vec<Activity> {
    let before = |name| older.and_then(|older| older.get(name).copied());
    let grown = newer.iter();
    let grown = grown.filter_map(|(name, count)| count.checked_sub(before(name).unwrap_or(0)));
    let grown = total(grown);
    let mut rows = activity(older, newer);
    rows.retain_mut(|row| {
        let share = Share::of(row.share.0 * grown as f64, polls as f64);
        row.share = share.unwrap_or_default();
        share.is_some()
    });
    rows
}

/// Returns the share of each function in the polls that saw one, hottest first. Empty if none did or a count went
/// backwards.
pub(super) fn activity(
    older: Option<&BTreeMap<String, u64>>,
    newer: &BTreeMap<String, u64>,
) -> Vec<Activity> {
    let grown: Option<Vec<(&String, u64)>> = newer
        .iter()
        .map(|(name, count)| {
            let before = older.and_then(|older| older.get(name)).unwrap_or(&0);
            Some((name, count.checked_sub(*before)?))
        })
        .collect();
    let mut grown = grown.unwrap_or_default();
    grown.retain(|(_, count)| *count > 0);
    // The sort is stable: equally hot functions stay ordered by name.
    grown.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let all: f64 = grown.iter().map(|(_, count)| *count as f64).sum();
    let hottest = grown.iter().take(MAX_FUNCTIONS);
    hottest
        .filter_map(|(name, count)| {
            Some(Activity {
                name: (*name).clone(),
                share: Share::of(*count as f64, all)?,
            })
        })
        .collect()
}
