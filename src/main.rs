//! Starts [`pipetop::main`].

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's runtime, which replaces a closed standard output by `/dev/null`: a report would be lost without an
/// error.
#[expect(unsafe_code, reason = "needed to run before main")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_RUST: extern "C" fn() = check_stdout;

extern "C" fn check_stdout() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    STDOUT_IS_CLOSED.store(closed, Ordering::Relaxed);
}

fn main() -> ExitCode {
    pipetop::main(STDOUT_IS_CLOSED.load(Ordering::Relaxed))
}
