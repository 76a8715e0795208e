//! Turns what was seen in slots of time into one value per cell. Pure; does not depend on the screen or colours.

use std::time::Duration;

use crate::model::timeline::{Batch, Slot};
use crate::sample::{SLOT, TrainerNow, Wait};
use crate::units::whole;

/// Least length of a batch, in cells, for its beginning to be shown.
const MIN_BATCH_CELLS: f64 = 3.0;

/// What a cell shows of the trainer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TrainerCell {
    /// The share of the cell in which the trainer was not in the loader, and the worker that made its batch, if known.
    Stepping {
        share: f64,
        worker: Option<u32>,
    },
    /// The trainer was in an event loop, in no function of its program.
    Idle,
    Stopped,
}

/// Returns the slots whose middle is in the cell; for a cell shorter than a slot, the slot around it. `first` is the
/// number of the first of `slots`; the cell is given as its start and end in seconds.
fn of_cell<T>(slots: &[Option<T>], first: u64, (from, to): (f64, f64)) -> &[Option<T>] {
    let place = |at: f64| at / SLOT.as_secs_f64() - first as f64;
    let begin = (place(from) - 0.5).ceil();
    let end = (place(to) - 0.5).ceil();
    let (begin, end) = if end > begin {
        (begin, end)
    } else {
        let within = place(f64::midpoint(from, to)).floor();
        (within, within + 1.0)
    };
    let [begin, end] = [begin, end].map(|place| whole(place).min(slots.len()));
    &slots[begin..end]
}

/// Returns the most frequent state in each cell, marked as a bound only if nothing in the cell was polled.
pub(super) fn most_frequent<T: Copy + PartialEq>(
    slots: &[Option<Slot<T>>],
    first: u64,
    cells: &[(f64, f64)],
) -> Vec<Option<Slot<T>>> {
    let of = |cell: &(f64, f64)| {
        let seen = of_cell(slots, first, *cell).iter().flatten();
        let bound = seen.clone().all(|slot| slot.bound);
        let mut counted: Vec<(T, u32)> = Vec::new();
        for slot in seen {
            match counted.iter_mut().find(|(what, _)| *what == slot.what) {
                Some((_, count)) => *count += 1,
                None => counted.push((slot.what, 1)),
            }
        }
        // If two states are equally frequent, the first one.
        let most = counted.iter().rev().max_by_key(|(_, count)| *count);
        most.map(|&(what, _)| Slot { what, bound })
    };
    cells.iter().map(of).collect()
}

/// Returns the cells in which a batch begins, if batches are long enough to be distinguished.
pub(super) fn begins<'a>(
    batches: impl Iterator<Item = &'a Batch>,
    cells: &[(f64, f64)],
) -> Vec<usize> {
    let Some((first, cell)) = cells.first().map(|(from, to)| (*from, to - from)) else {
        return Vec::new();
    };
    let long = batches.filter(|batch| batch.to - batch.from >= MIN_BATCH_CELLS * cell);
    let places = long.map(|batch| (batch.from - first) / cell);
    places
        .filter(|place| (0.0..cells.len() as f64).contains(place))
        .map(whole)
        .collect()
}

/// Returns the mean of each cell.
pub(super) fn mean(
    slots: &[Option<Slot<u32>>],
    first: u64,
    cells: &[(f64, f64)],
) -> Vec<Option<f64>> {
    let of = |cell: &(f64, f64)| {
        let known = of_cell(slots, first, *cell).iter().flatten();
        let (sum, count) = known.fold((0.0, 0_u32), |(sum, count), slot| {
            (sum + f64::from(slot.what), count + 1)
        });
        (count > 0).then(|| sum / f64::from(count))
    };
    cells.iter().map(of).collect()
}

/// Returns what the trainer did in each cell. Between the first and the last completed wait, this comes from the waits;
/// elsewhere, and where waits may have been lost, from the polls. `worker_of` returns the worker that made a batch.
pub(super) fn trainer(
    slots: &[Option<Slot<TrainerNow>>],
    first: u64,
    waits: &[Wait],
    cells: &[(f64, f64)],
    worker_of: impl Fn(u64) -> Option<u32>,
) -> Vec<Option<TrainerCell>> {
    let seconds = |time: Duration| time.as_secs_f64();
    let known = waits.first().zip(waits.last());
    let known = known.map(|(first, last)| (seconds(first.from), seconds(last.to)));
    let of = |&(from, to): &(f64, f64)| {
        let seen = of_cell(slots, first, (from, to)).iter().flatten();
        let count = |now| seen.clone().filter(|slot| slot.what == now).count();
        let (stepping, waiting) = (count(TrainerNow::Stepping), count(TrainerNow::Waiting));
        let all = seen.clone().count();
        if count(TrainerNow::Stopped) * 2 > all {
            return Some(TrainerCell::Stopped);
        }
        if count(TrainerNow::Idle) * 2 > all {
            return Some(TrainerCell::Idle);
        }
        let next = waits.partition_point(|wait| seconds(wait.to) <= from);
        let inside = || {
            let inside = waits[next..].iter();
            inside.take_while(|wait| seconds(wait.from) < to)
        };
        // Between two waits that are far apart, other waits may have been lost.
        let exact = known.is_some_and(|(begin, end)| begin <= from && to <= end)
            && (inside().next().is_some() || batch_at(waits, f64::midpoint(from, to)).is_some());
        let share = if exact {
            let waited =
                inside().map(|wait| seconds(wait.to).min(to) - seconds(wait.from).max(from));
            1.0 - waited.sum::<f64>() / (to - from)
        } else if stepping + waiting > 0 {
            stepping as f64 / (stepping + waiting) as f64
        } else {
            return None;
        };
        let batches = inside().filter(|wait| seconds(wait.to) < to).count();
        let worker = if batches > 1 {
            None
        } else {
            batch_at(waits, f64::midpoint(from, to)).and_then(&worker_of)
        };
        Some(TrainerCell::Stepping {
            share: share.clamp(0.0, 1.0),
            worker,
        })
    };
    cells.iter().map(of).collect()
}

/// What the trainer did at a moment: it waited for this batch, or was in the step with it.
pub(super) struct AtCursor {
    pub(super) batch: u64,
    pub(super) waited: f64,
    pub(super) waits: bool,
}

/// Returns what the trainer did at this moment; `None` if unknown.
pub(super) fn at_cursor(waits: &[Wait], at: f64) -> Option<AtCursor> {
    let next = waits.partition_point(|wait| wait.to.as_secs_f64() <= at);
    let waiting = waits.get(next).filter(|wait| wait.from.as_secs_f64() <= at);
    // If the waits before and after are not for consecutive batches, the waits between them were lost.
    let stepping = || batch_at(waits, at).and(waits[..next].last());
    let wait = waiting.or_else(stepping)?;
    Some(AtCursor {
        batch: wait.batch?,
        waited: wait.seconds(),
        waits: waiting.is_some(),
    })
}

/// Returns the batch of the step under way at this moment; during a wait, of the step before it. Known only if the
/// waits before and after that step are for consecutive batches.
fn batch_at(waits: &[Wait], at: f64) -> Option<u64> {
    let next = waits.partition_point(|wait| wait.to.as_secs_f64() <= at);
    let before = waits[..next].last()?.batch?;
    let after = waits.get(next)?.batch?;
    (before.checked_add(1) == Some(after)).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::WorkerNow::{self, Cpu, Idle};

    fn seen<T: Copy>(what: &[Option<T>]) -> Vec<Option<Slot<T>>> {
        let slot = |what: &Option<T>| what.map(|what| Slot { what, bound: false });
        what.iter().map(slot).collect()
    }

    fn cells(count: u32, ms: u32) -> Vec<(f64, f64)> {
        let at = |cell: u32| f64::from(cell * ms) / 1000.0;
        (0..count).map(|cell| (at(cell), at(cell + 1))).collect()
    }

    fn wait(from: u64, to: u64, batch: u64) -> Wait {
        Wait {
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
            batch: Some(batch),
            first: None,
            begins: false,
        }
    }

    fn shares(cells: &[Option<TrainerCell>]) -> Vec<Option<(f64, Option<u32>)>> {
        let share = |cell: &Option<TrainerCell>| match (*cell)? {
            TrainerCell::Stepping { share, worker } => Some(((share * 100.0).round(), worker)),
            TrainerCell::Idle | TrainerCell::Stopped => None,
        };
        cells.iter().map(share).collect()
    }

    #[test]
    fn a_cell_shows_what_was_so_for_most_of_it() {
        let what: Vec<_> = [Cpu, Cpu, Idle, Cpu, Idle, Idle, Cpu, Idle]
            .map(Some)
            .into();
        let slots = seen(&what);
        let shown = |ms| -> Vec<Option<WorkerNow>> {
            let shown = most_frequent(&slots, 0, &cells(200 / ms, ms));
            shown
                .iter()
                .map(|slot| slot.map(|slot| slot.what))
                .collect()
        };
        assert_eq!(shown(100), [Some(Cpu), Some(Idle)]);
        assert_eq!(shown(25), what);
        let twice = |place: u32| what[place as usize / 2];
        assert_eq!(shown(200), [Some(Cpu)]);
        let fine = most_frequent(&slots, 0, &cells(14, 12));
        assert_eq!(fine.len(), 14);
        assert_eq!(fine[2].map(|slot| slot.what), twice(2));
    }

    #[test]
    fn a_cell_in_which_something_was_polled_is_no_bound() {
        let slot = |what, bound| Some(Slot { what, bound });
        let slots = [slot(Cpu, false), slot(Idle, true), slot(Idle, true)];
        assert_eq!(most_frequent(&slots, 0, &cells(1, 75)), [slot(Idle, false)]);
        assert_eq!(most_frequent(&slots, 0, &cells(3, 25)), slots);
    }

    #[test]
    fn batches_begin_in_cells_where_they_are_long_enough() {
        let batch = |from: f64, to: f64| Batch {
            number: 0,
            from,
            to,
        };
        let batches = [batch(0.0, 0.35), batch(0.35, 0.7), batch(0.7, 0.8)];
        assert_eq!(begins(batches.iter(), &cells(10, 100)), [0, 3]);
        assert_eq!(begins(batches.iter(), &cells(5, 200)), [0_usize; 0]);
    }

    #[test]
    fn under_the_cursor_is_a_wait_or_the_step_after_it() {
        let waits = [wait(0, 60, 4), wait(100, 130, 5), wait(900, 950, 9)];
        let at = |at: f64| {
            let at_cursor = at_cursor(&waits, at)?;
            let waited = (1000.0 * at_cursor.waited).round();
            Some((at_cursor.batch, waited, at_cursor.waits))
        };
        assert_eq!(at(0.03), Some((4, 60.0, true)));
        assert_eq!(at(0.08), Some((4, 60.0, false)));
        assert_eq!(at(0.11), Some((5, 30.0, true)));
        // The waits between batches 5 and 9 were lost, and no wait follows the last one.
        assert_eq!((at(0.5), at(2.0)), (None, None));
    }

    #[test]
    fn unpolled_cells_are_blank_and_bounds_stay_bounds() {
        let bound = Slot {
            what: Cpu,
            bound: true,
        };
        let slots = [None, None, Some(bound), Some(bound)];
        let shown = most_frequent(
            &slots,
            40,
            &[(1.0, 1.05), (1.05, 1.1), (1.1, 1.2), (0.0, 0.1)],
        );
        assert_eq!(shown, [None, Some(bound), None, None]);
        assert_eq!(
            mean(&seen(&[Some(2), Some(4), None]), 0, &cells(2, 50)),
            [Some(3.0), None]
        );
    }

    #[test]
    fn steps_have_a_worker_and_waits_have_none() {
        // Two steps of 100 ms after waits of 100 ms each. The waits for the batches between 5 and 9 were lost.
        let waits = [wait(0, 100, 4), wait(200, 300, 5), wait(400, 500, 9)];
        let worker_of = |batch: u64| u32::try_from(batch % 4).ok();
        let shown = trainer(&[], 0, &waits, &cells(6, 100), worker_of);
        let step = |worker| Some((100.0, worker));
        assert_eq!(
            shares(&shown),
            [
                Some((0.0, None)),
                step(Some(0)),
                Some((0.0, Some(0))),
                None,
                Some((0.0, None)),
                None
            ]
        );
    }

    #[test]
    fn an_unfinished_wait_comes_from_polls() {
        use TrainerNow::{Idle, Stepping, Stopped, Waiting};
        let waits = [wait(0, 100, 4)];
        let slots: Vec<_> = [
            [Waiting; 4],
            [Stepping; 4],
            [Stepping, Waiting, Waiting, Waiting],
            [Stopped; 4],
            [Idle, Idle, Idle, Waiting],
        ]
        .concat()
        .into_iter()
        .map(Some)
        .collect();
        let shown = trainer(&seen(&slots), 0, &waits, &cells(6, 100), |_| None);
        assert_eq!(
            shares(&shown),
            [
                Some((0.0, None)),
                Some((100.0, None)),
                Some((25.0, None)),
                None,
                None,
                None
            ]
        );
        assert_eq!(shown[3], Some(TrainerCell::Stopped));
        assert_eq!(shown[4], Some(TrainerCell::Idle));
    }

    #[test]
    fn of_many_steps_in_a_cell_none_gives_the_hue() {
        let waits: Vec<Wait> = (0..10).map(|at| wait(40 * at, 40 * at + 10, at)).collect();
        let shown = trainer(&[], 0, &waits, &cells(3, 120), |_| Some(1));
        assert_eq!(shares(&shown), [Some((75.0, None)); 3]);
    }
}
