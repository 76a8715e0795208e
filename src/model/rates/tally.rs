//! How far the tallies grew that pipetop keeps since attaching.
//!
//! Where the older sample has no tally yet it counts from 0: a share of looks needs no interval, so
//! nothing can spike. `None` where any count went backwards or there was no look.

use std::collections::BTreeMap;

use crate::model::rates::Activity;
use crate::sample::{GilTally, MainTally, QueueSource, QueueTally, WorkerTally};
use crate::units::Share;

/// Functions that are kept of an activity: the hottest.
const HOTTEST: usize = 8;

pub(super) fn main(older: Option<MainTally>, newer: Option<MainTally>) -> Option<MainTally> {
    let (older, newer) = (older.unwrap_or_default(), newer?);
    let grown = MainTally {
        looks: newer.looks.checked_sub(older.looks)?,
        waiting: newer.waiting.checked_sub(older.waiting)?,
        receiving: newer.receiving.checked_sub(older.receiving)?,
        loading: newer.loading.checked_sub(older.loading)?,
        running: newer.running.checked_sub(older.running)?,
        other: newer.other.checked_sub(older.other)?,
        disk: newer.disk.checked_sub(older.disk)?,
        stopped: newer.stopped.checked_sub(older.stopped)?,
        unseen: newer.unseen.checked_sub(older.unseen)?,
        gil: match newer.gil {
            Some(newer) => Some(gil(older.gil.unwrap_or_default(), newer)?),
            None => None,
        },
    };
    (grown.looks > 0).then_some(grown)
}

fn gil(older: GilTally, newer: GilTally) -> Option<GilTally> {
    Some(GilTally {
        in_loader: newer.in_loader.checked_sub(older.in_loader)?,
        outside: newer.outside.checked_sub(older.outside)?,
    })
}

pub(super) fn worker(
    older: Option<WorkerTally>,
    newer: Option<WorkerTally>,
) -> Option<WorkerTally> {
    let (older, newer) = (older.unwrap_or_default(), newer?);
    let grown = WorkerTally {
        looks: newer.looks.checked_sub(older.looks)?,
        idle: newer.idle.checked_sub(older.idle)?,
        cpu: newer.cpu.checked_sub(older.cpu)?,
        disk: newer.disk.checked_sub(older.disk)?,
        network: newer.network.checked_sub(older.network)?,
        handover: newer.handover.checked_sub(older.handover)?,
        other: newer.other.checked_sub(older.other)?,
        now: newer.now,
    };
    (grown.looks > 0).then_some(grown)
}

/// Reports and looks count each for themselves. Looks that take the place of reports begin with their first look;
/// reports that take the place of looks count from the job's start, of which we may have seen nothing.
pub(super) fn queue(older: Option<QueueTally>, newer: Option<QueueTally>) -> Option<QueueTally> {
    let told = |tally: QueueTally| tally.source == QueueSource::Probe;
    let newer = newer?;
    let older = match older {
        Some(older) if told(older) == told(newer) => older,
        Some(_) if told(newer) => return None,
        _ => QueueTally::default(),
    };
    let grown = QueueTally {
        looks: newer.looks.checked_sub(older.looks)?,
        empty: newer.empty.checked_sub(older.empty)?,
        ready_sum: newer.ready_sum.checked_sub(older.ready_sum)?,
        ..newer
    };
    (grown.looks > 0).then_some(grown)
}

/// The share that each function has of the looks that saw one, hottest first. Empty where none did or
/// a count went backwards.
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
    // Stable: what is equally hot stays in the order of the names.
    grown.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let all: f64 = grown.iter().map(|(_, count)| *count as f64).sum();
    let hottest = grown.iter().take(HOTTEST);
    hottest
        .filter_map(|(name, count)| {
            Some(Activity {
                name: (*name).clone(),
                share: Share::of(*count as f64, all)?,
            })
        })
        .collect()
}
