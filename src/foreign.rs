//! Calls into libraries that panic over what they are given: to pipetop that is an error as any other.
//!
//! Knows no library. Such a panic prints nothing and leaves the screen as it is.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

/// What `call` gives; `None` where it panics. Calls do not nest.
pub(crate) fn call<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !is_calling() {
                print(panic);
            }
        }));
    });
    CALLING.set(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    CALLING.set(false);
    result.ok()
}

/// Whether this thread is in such a call: a panic there is nothing to restore a terminal for.
pub(crate) fn is_calling() -> bool {
    CALLING.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_gives_nothing_and_ends_with_the_call() {
        assert_eq!(call(is_calling), Some(true));
        assert!(!is_calling());
        assert_eq!(call(|| panic!("over what it read")), None::<()>);
        assert!(!is_calling());
    }
}
