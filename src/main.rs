//! Starts [`pipetop::main`].

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's own start, which opens `/dev/null` in the place of a closed standard output: a report would be
/// lost without an error.
#[expect(unsafe_code, reason = "a place that runs that early")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_RUST: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    STDOUT_IS_CLOSED.store(closed, Ordering::Relaxed);
}

fn main() -> ExitCode {
    pipetop::main(STDOUT_IS_CLOSED.load(Ordering::Relaxed))
}
