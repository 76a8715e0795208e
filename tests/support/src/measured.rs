//! The rules for what the noise of a machine moves: the median of figures, the shortest of times that noise can only
//! lengthen, and two of three trials.

use std::iter::repeat_with;

/// Two of three trials must hold: one may fall into a moment in which others take the machine. The third is made only
/// where the first two disagree. Gives why the first that failed did.
pub fn two_of_three<E>(mut trial: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    match (trial(), trial()) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(why), Err(_)) => Err(why),
        (Err(why), Ok(())) | (Ok(()), Err(why)) => trial().map_err(|_| why),
    }
}

/// The median of `runs` figures (an odd number). Every run is made, whatever the ones before it gave.
pub fn median_of(runs: usize, measure: impl FnMut() -> f64) -> f64 {
    median(repeat_with(measure).take(runs).collect())
}

/// The median of figures that are there, of which there is at least one.
pub fn median(figures: Vec<f64>) -> f64 {
    median_by(figures, |figure| *figure)
}

/// The one in the middle of at least one.
pub fn median_by<T>(mut all: Vec<T>, figure: impl Fn(&T) -> f64) -> T {
    all.sort_unstable_by(|a, b| figure(a).total_cmp(&figure(b)));
    all.swap_remove(all.len() / 2)
}

/// The shortest of times that a machine with other tenants can only lengthen: what a scripted device took.
pub fn shortest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
