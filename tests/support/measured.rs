//! What measures the time of a machine that others use, too.

/// Tries in all: who takes the CPUs in the middle of one lets go of them again.
const TRIES: usize = 4;

/// Measures until what was found is as it is in peace; else the last that was found, for the test to judge.
pub(crate) fn measured<T>(mut measure: impl FnMut() -> T, in_peace: impl Fn(&T) -> bool) -> T {
    let mut tries = (1..TRIES).map(|_| measure());
    let found = tries.find(|found| in_peace(found));
    drop(tries);
    found.unwrap_or_else(measure)
}
