//! Waiting for real programs: until there is an answer, and not for ever.

use std::time::{Duration, Instant};

/// Looks until there is an answer.
pub(crate) fn wait<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_telling(what, look, String::new)
}

/// The same; in vain, it says how things stood then.
pub(crate) fn wait_telling<T>(
    what: &str,
    mut look: impl FnMut() -> Option<T>,
    stood: impl Fn() -> String,
) -> T {
    let deadline = now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < deadline, "waited in vain for {what}\n{}", stood());
        pause(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "real programs are waited for")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "real programs are waited for")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
