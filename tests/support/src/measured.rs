//! Rules for measurements that the noise of a machine affects: the median of figures, the shortest of times that noise
//! can only lengthen, and two of three trials.

use std::iter::repeat_with;
use std::panic::resume_unwind;
use std::thread;

/// Requires two of three trials to succeed, as other load of the machine may disturb one. Runs the third only if the
/// first two disagree. Returns the error of the first that failed.
pub fn two_of_three<E>(mut trial: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    majority([trial(), trial()], trial)
}

/// Like [`two_of_three`], for reports on one job. They do not disturb each other, so the first two are made at the same
/// time.
pub fn two_of_three_at_once<E: Send>(report: impl Fn() -> Result<(), E> + Sync) -> Result<(), E> {
    let first = thread::scope(|scope| {
        let other = scope.spawn(&report);
        let one = report();
        let other = other.join();
        [one, other.unwrap_or_else(|panic| resume_unwind(panic))]
    });
    majority(first, report)
}

fn majority<E>(
    first: [Result<(), E>; 2],
    mut third: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    match first {
        [Ok(()), Ok(())] => Ok(()),
        [Err(why), Err(_)] => Err(why),
        [Err(why), Ok(())] | [Ok(()), Err(why)] => third().map_err(|_| why),
    }
}

/// Returns the median of `runs` figures (an odd number). Every run is made, whatever the results of the earlier ones.
pub fn median_of(runs: usize, measure: impl FnMut() -> f64) -> f64 {
    median(repeat_with(measure).take(runs).collect())
}

/// Returns the median of at least one figure.
pub fn median(figures: Vec<f64>) -> f64 {
    median_by(figures, |figure| *figure)
}

/// Returns the value whose figure is the median. There must be at least one value.
pub fn median_by<T>(mut all: Vec<T>, figure: impl Fn(&T) -> f64) -> T {
    all.sort_unstable_by(|a, b| figure(a).total_cmp(&figure(b)));
    all.swap_remove(all.len() / 2)
}

/// Returns the shortest time. On a shared machine, noise can only lengthen the times of a scripted device.
pub fn shortest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
