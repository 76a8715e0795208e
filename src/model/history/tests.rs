use proptest::prelude::*;

use super::*;
use crate::units::Pid;
use crate::units::ProcessKey;

fn place(id: u32) -> WorkerPlace {
    WorkerPlace {
        rank: ProcessKey {
            pid: Pid(1),
            start_ticks: 1,
        },
        loader: 0,
        id,
    }
}

fn reading(from: f64, to: f64, wait: Option<f64>) -> Reading {
    Reading {
        from,
        to,
        ranks: vec![RankPoint {
            number: 0,
            wait: wait.into(),
            queue: None.into(),
            device_busy: None.into(),
        }],
        ..Reading::default()
    }
}

fn wait(point: &Point) -> Option<f64> {
    point.rank(0)?.wait.get()
}

/// Returns the wait shares of the newest `seconds`, in `cells` cells.
fn waits(history: &History, seconds: f64, cells: usize) -> Vec<Option<f64>> {
    let axis = history
        .axis(None, seconds, cells)
        .expect("there are readings");
    history.means(&axis, wait)
}

#[test]
fn a_reading_a_cell_where_they_are_as_long_and_come_a_little_late() {
    let mut history = History::new();
    for at in 0..10_u32 {
        let late = |at: u32| f64::from(at) + f64::from(at % 3) * 0.004;
        history.add(reading(late(at), late(at + 1), Some(f64::from(at) / 10.0)));
    }
    let values: Vec<_> = waits(&history, 5.0, 5)
        .into_iter()
        .map(|value| (value.unwrap_or(9.0) * 10.0).round())
        .collect();
    assert_eq!(values, [5.0, 6.0, 7.0, 8.0, 9.0]);
}

#[test]
fn a_longer_interval_takes_more_cells_and_a_pause_stays_open() {
    let mut history = History::new();
    for (from, to, wait) in [
        (0.0, 1.0, 0.25),
        (1.0, 2.0, 0.5),
        (6.0, 8.0, 0.75),
        (8.0, 9.0, 1.0),
    ] {
        history.add(reading(from, to, Some(wait)));
    }
    assert_eq!(
        waits(&history, 9.0, 9),
        [
            Some(0.25),
            Some(0.5),
            None,
            None,
            None,
            None,
            Some(0.75),
            Some(0.75),
            Some(1.0)
        ]
    );
    // Wider cells hold the mean over the known time, narrower ones repeat the value.
    let wide = waits(&history, 9.0, 3);
    assert_eq!(wide[..2], [Some(0.375), None]);
    assert!((wide[2].unwrap() - 2.5 / 3.0).abs() < 1e-6);
    assert_eq!(
        waits(&history, 2.0, 4),
        [Some(0.75), Some(0.75), Some(1.0), Some(1.0)]
    );
}

#[test]
fn unknown_values_are_gaps_and_not_zero() {
    let mut history = History::new();
    for at in 0..4_u32 {
        let wait = (at != 2).then_some(0.5);
        history.add(reading(f64::from(at), f64::from(at + 1), wait));
    }
    assert_eq!(
        waits(&history, 4.0, 4),
        [Some(0.5), Some(0.5), None, Some(0.5)]
    );
    assert_eq!(waits(&history, 4.0, 2), [Some(0.5), Some(0.5)]);
}

#[test]
fn a_short_past_begins_at_the_left_and_grows_until_it_fills_the_axis() {
    let mut history = History::new();
    for at in 0..9_u32 {
        // The first reading starts some time after pipetop did.
        let from = f64::from(at) + 3.4;
        history.add(reading(from, from + 1.0, Some(f64::from(at) / 8.0)));
        let values = waits(&history, 6.0, 6);
        let newest = at.min(5) as usize;
        assert_eq!(values[0], Some(f64::from(at.saturating_sub(5)) / 8.0));
        assert_eq!(values[newest], Some(f64::from(at) / 8.0));
        assert_eq!(values[newest + 1..], [None; 6][newest + 1..]);
    }
}

#[test]
fn the_free_end_of_the_axis_shows_nothing_of_what_came_later() {
    let mut history = History::new();
    for at in 0..5_u32 {
        history.add(reading(f64::from(at), f64::from(at + 1), Some(0.5)));
    }
    let axis = history.axis(Some(Duration::from_secs(2)), 6.0, 6).unwrap();
    let values = history.means(&axis, wait);
    assert_eq!(values[..2], [Some(0.5); 2]);
    assert_eq!(values[2..], [None; 4]);
    assert!((axis.to() - 2.0).abs() < 1e-9);
}

#[test]
fn a_cell_keeps_its_value_while_scrolling() {
    let mut history = History::new();
    let mut before: Option<(Axis, Vec<Option<f64>>)> = None;
    for at in 0..500_u32 {
        let wait = Some(f64::from(at * 37 % 100) / 100.0);
        history.add(reading(f64::from(at), f64::from(at + 1), wait));
        let axis = history.axis(None, 60.0, 13).unwrap();
        let now = history.means(&axis, super::tests::wait);
        if let Some((old, values)) = before.replace((axis, now.clone())) {
            let moved = (axis.from() - old.from()) / (60.0 / 13.0);
            assert!(
                (moved - moved.round()).abs() < 1e-6,
                "by whole cells: {moved}"
            );
            let moved = usize::from(moved.round() > 0.0);
            // Compares all cells except the newest, which is still being filled, and the empty ones.
            let known = values.iter().filter(|value| value.is_some()).count();
            let whole = known.saturating_sub(1);
            assert_eq!(values[moved..whole], now[..whole - moved]);
        }
    }
}

#[test]
fn a_moment_lies_in_the_same_part_of_every_picture() {
    let mut history = History::new();
    for at in 0..2000_u32 {
        history.add(reading(f64::from(at), f64::from(at + 1), None));
    }
    for seconds in [10.0, 98.0, 600.0, 1999.0] {
        for at in [1999_u64, 1996, 1950, 1700, 700] {
            let place = |cells: usize| {
                let axis = history.axis(None, seconds, cells).unwrap();
                history
                    .cell(&axis, Duration::from_secs(at))
                    .map(|cell| (cell as f64 + 0.5) / cells as f64)
            };
            let all: Vec<_> = [11, 40, 97, 178].map(place).into_iter().collect();
            let known: Vec<f64> = all.iter().copied().flatten().collect();
            let spread = known.iter().copied().fold(0.0, f64::max)
                - known.iter().copied().fold(1.0, f64::min);
            assert!(
                known.is_empty() || spread <= 1.5 / 11.0,
                "{seconds} {at}: {all:?}"
            );
        }
    }
}

#[test]
fn the_past_ends_where_it_is_asked_to() {
    let mut history = History::new();
    for at in 0..100_u32 {
        history.add(reading(
            f64::from(at),
            f64::from(at + 1),
            Some(f64::from(at) / 128.0),
        ));
    }
    let axis = history.axis(Some(Duration::from_secs(50)), 4.0, 4).unwrap();
    let values = history.means(&axis, wait);
    assert_eq!(values, [46.0, 47.0, 48.0, 49.0].map(|at| Some(at / 128.0)));
    assert_eq!(history.cell(&axis, Duration::from_secs(49)), Some(2));
    assert_eq!(history.cell(&axis, Duration::from_secs(51)), None);
    assert_eq!(history.axis(Some(Duration::from_millis(500)), 4.0, 4), None);
    assert_eq!(history.axis(None, 4.0, 0), None);
}

#[test]
fn time_that_runs_backwards_restarts_the_history() {
    let mut history = History::new();
    for at in [5, 6, 7, 2, 3] {
        history.add(reading(f64::from(at) - 1.0, f64::from(at), Some(0.5)));
    }
    assert_eq!(history.span(), Some((1.0, 3.0)));
    assert_eq!(history.len(), 2);
}

#[test]
fn changing_workers_reuse_fixed_memory() {
    let mut history = History::new();
    let axis = |history: &History| history.axis(None, 10.0, 10).unwrap();
    for at in 0..3000_u32 {
        let one = |id| (place(id), WorkerNow::Cpu);
        // Worker 0 stays; another worker comes each time.
        history.add(Reading {
            workers: vec![one(0), one(at + 1)],
            ..reading(f64::from(at), f64::from(at + 1), None)
        });
    }
    assert_eq!(history.places(), 1024);
    assert_eq!(
        history.states(&axis(&history), place(0)),
        [Some(WorkerNow::Cpu); 10]
    );
    let mut last = vec![None; 10];
    last[9] = Some(WorkerNow::Cpu);
    // A reused slot must show only its new owner's past.
    assert_eq!(history.states(&axis(&history), place(3000)), last);
    assert!(!history.has_worker(place(5)));
}

#[test]
fn current_workers_keep_their_slots() {
    let mut history = History::new();
    for at in 0..20_u32 {
        // Every other time in reverse order, so that the last ones come first.
        let mut workers: Vec<_> = (0..1100).map(|id| (place(id), WorkerNow::Cpu)).collect();
        if at % 2 == 1 {
            workers.reverse();
        }
        history.add(Reading {
            workers,
            ..reading(f64::from(at), f64::from(at + 1), None)
        });
    }
    assert_eq!(history.places(), 1024);
    let axis = history.axis(None, 20.0, 20).unwrap();
    assert_eq!(history.states(&axis, place(0)), [Some(WorkerNow::Cpu); 20]);
    assert_eq!(history.states(&axis, place(1099)), [None; 20]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_value_lies_outside_of_what_was_read(
        readings in prop::collection::vec((1..50_u32, prop::option::of(0..1000_u32)), 1..9000),
        seconds in 1..500_000_u32, cells in 1..200_usize,
    ) {
        let mut history = History::new();
        let mut now = 0.0;
        for (length, wait) in &readings {
            let to = now + f64::from(*length) / 10.0;
            history.add(reading(now, to, wait.map(|wait| f64::from(wait) / 1000.0)));
            now = to;
        }
        let known = readings.iter().filter_map(|(_, wait)| *wait);
        let (low, high) = (known.clone().min(), known.max());
        let axis = history.axis(None, f64::from(seconds) / 10.0, cells).unwrap();
        let values = history.means(&axis, wait);
        prop_assert_eq!(values.len(), cells);
        for value in values.into_iter().flatten() {
            let (low, high) = (f64::from(low.unwrap()), f64::from(high.unwrap()));
            prop_assert!((low - 0.01..=high + 0.01).contains(&(value * 1000.0)), "{value}: {low} to {high}");
        }
        let (from, to) = history.span().unwrap();
        // Leading readings are left out as long as their wait is not known.
        let blind = readings.iter().take_while(|(_, wait)| wait.is_none());
        let blind: f64 = blind.map(|(length, _)| f64::from(*length) / 10.0).sum();
        prop_assert!((0.0..=blind + 1e-9).contains(&from) && (to - now).abs() < 1e-6);
    }
}

#[test]
fn a_new_job_is_shown_from_its_first_report() {
    let mut history = History::new();
    for second in 0..20_u32 {
        let wait = (second >= 3).then_some(0.5);
        history.add(reading(f64::from(second), f64::from(second + 1), wait));
    }
    assert_eq!(history.span(), Some((3.0, 20.0)));
    // If no reading has a known wait, none is left out.
    let mut unseen = History::new();
    for second in 0..20_u32 {
        unseen.add(reading(f64::from(second), f64::from(second + 1), None));
    }
    assert_eq!(unseen.span(), Some((0.0, 20.0)));
}
