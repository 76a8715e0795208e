//! The real terminal: taken in raw mode on its alternate screen, given back on every path out.
//!
//! Knows nothing of what is drawn on it.

use std::io::{self, BufWriter, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// A frame goes out in one write.
pub type Backend = CrosstermBackend<BufWriter<Stdout>>;

/// The terminal is ours; what panics or ends must give it back, once.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours; dropping it gives it back.
#[derive(Debug)]
pub struct Screen {
    pub terminal: Terminal<Backend>,
}

impl Screen {
    /// Takes the terminal.
    pub fn open() -> io::Result<Self> {
        give_back_on_panic();
        take()?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        let terminal = Terminal::new(backend).inspect_err(|_| give_back())?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, stops as `ctrl-z` stops any program, and takes it again when continued.
pub fn suspend() -> io::Result<()> {
    give_back();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
    take()
}

/// Takes the terminal again after something else stopped and continued us: the shell has reset it.
pub fn resume() -> io::Result<()> {
    give_back();
    take()
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()
        .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, Hide))
        .inspect_err(|_| give_back())
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Of a terminal that is gone there is nothing to give back.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// A panic's message must be readable: the screen goes before it is printed.
fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            print(panic);
        }));
    });
}

/// The terminal went away: a closed window, a dropped connection.
pub fn is_gone(error: &(dyn std::error::Error + 'static)) -> bool {
    use rustix::io::Errno;
    let Some(error) = error.downcast_ref::<io::Error>() else {
        return false;
    };
    let gone = [
        Errno::IO,
        Errno::PIPE,
        Errno::NXIO,
        Errno::BADF,
        Errno::NOTTY,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| gone.iter().any(|gone| gone.raw_os_error() == code))
        || matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero
        )
}
