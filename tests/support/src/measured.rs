//! Rules for measurements that the noise of a machine affects: the median of figures, the shortest of times that noise
//! can only lengthen, and two of three trials.

use std::iter::repeat_with;

/// Requires two of three trials to succeed: one may coincide with other load of the machine. Runs the third only if the
/// first two disagree. Returns the error of the first that failed.
pub fn two_of_three<E>(mut trial: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    match (trial(), trial()) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(why), Err(_)) => Err(why),
        (Err(why), Ok(())) | (Ok(()), Err(why)) => trial().map_err(|_| why),
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

/// Returns the value with the median figure, of at least one.
pub fn median_by<T>(mut all: Vec<T>, figure: impl Fn(&T) -> f64) -> T {
    all.sort_unstable_by(|a, b| figure(a).total_cmp(&figure(b)));
    all.swap_remove(all.len() / 2)
}

/// Returns the shortest time. On a shared machine, noise can only lengthen the times of a scripted device.
pub fn shortest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
