//! Runs the real program for two minutes while everything around it changes: nothing may stay open.
//!
//! This is the longest test of all, so it must begin early: the runner starts tests in the order of their names.

use support::machine::{Place, Share, note, torches};

/// The same as `cargo bench --bench soak`, which runs for hours.
#[test]
fn two_minutes_of_everything_that_changes_leave_nothing_open() {
    let _place = Place::take(Share::Eighth);
    let python = torches().first().map(|python| python.path.as_str());
    let mut seen = Vec::new();
    support::soak::soak(2, python, |usage| {
        note(&format!("{usage:?}"));
        seen.push(*usage);
    });
    let [first, last] = seen[..] else {
        unreachable!("two rounds");
    };
    // Each round has hundreds of workers, whose descriptors would accumulate.
    assert!(last.descriptors < first.descriptors + 10, "{seen:?}");
    assert!(last.threads < first.threads + 4, "{seen:?}");
}
