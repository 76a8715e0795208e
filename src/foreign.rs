//! Calls code that may panic on some of its input, mostly that of libraries: the panic becomes an ordinary error.
//!
//! Does not depend on any library. Such a panic prints nothing and does not change the screen.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `call`; `None` if it panics.
pub(crate) fn call<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if is_calling() {
                tracing::warn!("{panic}");
            } else {
                print(panic);
            }
        }));
    });
    let outer = CALLING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    CALLING.set(outer);
    result.ok()
}

/// Whether this thread is inside [`call`]: a panic must not restore the terminal then.
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
        let nested = call(|| (call(|| panic!("within")), is_calling()));
        assert_eq!(nested, Some((None::<()>, true)));
        assert!(!is_calling());
    }
}
