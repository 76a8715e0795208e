//! The real terminal: taken in raw mode on its alternate screen, given back on every path out.
//!
//! Knows nothing of what is drawn on it.

mod link;
mod pen;
mod shift;
mod spot;
mod thrift;

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::queue;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;

use link::LINK;
pub use thrift::Thrifty;

pub type Backend = Thrifty<Output>;

/// Clicks and the wheel are wanted.
static MOUSE: AtomicBool = AtomicBool::new(false);
/// Clicks and the wheel alone, without the movements between, which would keep a slow link busy.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// How long a frame that is on its way may hold up the end.
const PATIENCE: Duration = Duration::from_secs(1);
/// What is on its way to a terminal that takes nothing is thrown away so often, and so much time lies between: the
/// rest of a frame can be more than the kernel holds at once.
const CLEARINGS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// Ends an escape sequence that was cut short.
const CANCEL: u8 = 0x18;

/// Between these a terminal shows nothing new: no half of a frame is seen, however slow the link is. Those that do not
/// know this private mode pass over it.
const FRAME_BEGIN: &[u8] = b"\x1b[?2026h";
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// Collects a frame, and sends it on its way in one piece. It never waits for the terminal.
#[derive(Debug, Default)]
pub struct Output {
    frame: Vec<u8>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.frame.is_empty() {
            self.frame.extend_from_slice(FRAME_BEGIN);
        }
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        self.frame.extend_from_slice(FRAME_END);
        let sent = LINK.send(&self.frame);
        self.frame.clear();
        sent
    }
}

/// The next screen that is opened tells clicks and the wheel.
pub fn use_mouse(wanted: bool) {
    MOUSE.store(wanted, Ordering::SeqCst);
}

/// From now on `told` hears that the terminal has not yet taken a frame, and that it has.
pub fn on_output(told: impl Fn(bool) + Send + 'static) {
    LINK.watch(told);
}

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
        LINK.start()?;
        take()?;
        let backend = Thrifty::new(Output::default(), can_shift());
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

/// The terminal can delete and insert characters in a line, as the VT100 itself cannot. Those that are named can, and
/// ncurses asks it of them; of another it is not known.
fn can_shift() -> bool {
    const THEY_CAN: [&str; 10] = [
        "xterm",
        "screen",
        "tmux",
        "linux",
        "alacritty",
        "foot",
        "kitty",
        "konsole",
        "gnome",
        "wezterm",
    ];
    let term = std::env::var("TERM").unwrap_or_default();
    let name = term.split(['-', '.']).next().unwrap_or_default();
    THEY_CAN.contains(&name)
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    let mut bytes = Vec::new();
    enable_raw_mode()
        .and_then(|()| queue!(bytes, EnterAlternateScreen, Hide))
        .inspect(|()| {
            if MOUSE.load(Ordering::SeqCst) {
                bytes.extend_from_slice(MOUSE_ON);
            }
        })
        .and_then(|()| LINK.send(&bytes))
        .inspect_err(|_| give_back())
}

fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut bytes = Vec::new();
    if !LINK.wait(PATIENCE) {
        // Nobody reads: what is on its way must not keep us from ending.
        for _ in 0..CLEARINGS {
            LINK.drop_all();
            if LINK.wait(PAUSE) {
                break;
            }
        }
        bytes.push(CANCEL);
        bytes.extend_from_slice(FRAME_END);
    }
    if MOUSE.load(Ordering::SeqCst) {
        bytes.extend_from_slice(MOUSE_OFF);
    }
    // Of a terminal that is gone there is nothing to give back.
    let _ = queue!(bytes, Show, LeaveAlternateScreen).and_then(|()| LINK.send(&bytes));
    LINK.wait(PATIENCE);
    let _ = disable_raw_mode();
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
