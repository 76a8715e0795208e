//! The real terminal: raw mode and the alternate screen, and both undone on every way out.
//!
//! ratatui's own backend writes each frame into a buffer; the buffer goes out as one synchronized update, through a
//! thread that may wait for the terminal where nothing else does. Must not know what is drawn.

mod writer;

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::queue;
use crossterm::style::force_color_output;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};

use crate::foreign;
use writer::WRITER;

pub type Backend = CrosstermBackend<Output>;

/// Mouse reports are enabled while the terminal is ours.
static MOUSE: AtomicBool = AtomicBool::new(false);
/// Buttons and the wheel only: movements would keep a slow link busy.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// How long leaving waits for a frame that is still being written.
const PATIENCE: Duration = Duration::from_secs(1);
/// When nothing reads the terminal, leaving discards the kernel's output queue up to this many times, and waits this
/// long after each: the rest of a frame can be more than the queue holds.
const DISCARDS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// How long a terminal may take to say its colours. Nearly all answer one of two questions at once, over a network in a
/// round trip.
const ANSWER: Duration = Duration::from_millis(300);
/// Ends an escape sequence that was cut short.
const CANCEL: u8 = 0x18;

/// A terminal shows nothing new between these, so nobody sees half a frame, however slow the link is. Terminals that
/// do not know this private mode ignore it.
const FRAME_BEGIN: &[u8] = b"\x1b[?2026h";
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// The terminal's background is dark, as far as it says so. Waits for its answer: before the screen is taken.
pub fn is_dark() -> bool {
    let mut options = QueryOptions::default();
    options.timeout = ANSWER;
    theme_mode(options).is_ok_and(|mode| mode == ThemeMode::Dark)
}

/// Collects a frame and hands it to the writer thread in one piece. Never waits for the terminal.
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
        let sent = WRITER.send(&self.frame);
        self.frame.clear();
        sent
    }
}

/// Whether the next screen that is opened reports mouse buttons and the wheel.
pub fn use_mouse(wanted: bool) {
    MOUSE.store(wanted, Ordering::SeqCst);
}

/// Calls `changed` with true when output starts to wait for the terminal, and with false when all of it is written.
pub fn on_output(changed: impl Fn(bool) + Send + 'static) {
    WRITER.watch(changed);
}

/// Raw mode and the alternate screen are on; whatever ends the program restores them, once.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode on its alternate screen; dropping it restores the terminal.
#[derive(Debug)]
pub struct Screen {
    pub terminal: Terminal<Backend>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Where standard output is no terminal, or the writer thread cannot be started.
    pub fn open() -> io::Result<Self> {
        restore_on_panic();
        // The palette decides on colours, NO_COLOR included; crossterm must not decide again.
        force_color_output(true);
        WRITER.start()?;
        take()?;
        let backend = CrosstermBackend::new(Output::default());
        let terminal = Terminal::new(backend).inspect_err(|_| restore())?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, stops as `ctrl-z` stops any program, and takes the terminal again when continued.
pub fn suspend() -> io::Result<()> {
    restore();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
    take()
}

/// Takes the terminal again after something else stopped and continued us: the shell has reset it.
pub fn resume() -> io::Result<()> {
    restore();
    take()
}

/// Asks the terminal to put this into its clipboard (OSC 52), over ssh, too. Those that do not know that ignore it.
pub fn copy(text: &str) -> io::Result<()> {
    let mut bytes = Vec::new();
    queue!(bytes, CopyToClipboard::to_clipboard_from(text))?;
    WRITER.send(&bytes)
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    let mut bytes = Vec::new();
    // A terminal without an alternate screen still shows the shell's lines, and frames only write what changes.
    enable_raw_mode()
        .and_then(|()| queue!(bytes, EnterAlternateScreen, Clear(ClearType::All), Hide))
        .inspect(|()| {
            if MOUSE.load(Ordering::SeqCst) {
                bytes.extend_from_slice(MOUSE_ON);
            }
        })
        .and_then(|()| WRITER.send(&bytes))
        .inspect_err(|_| restore())
}

fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut bytes = Vec::new();
    if !WRITER.wait(PATIENCE) {
        // Nobody reads: unwritten output must not keep us from ending.
        for _ in 0..DISCARDS {
            WRITER.discard();
            if WRITER.wait(PAUSE) {
                break;
            }
        }
        bytes.push(CANCEL);
        bytes.extend_from_slice(FRAME_END);
    }
    if MOUSE.load(Ordering::SeqCst) {
        bytes.extend_from_slice(MOUSE_OFF);
    }
    // A terminal that is gone needs nothing restored.
    let _ = queue!(bytes, Show, LeaveAlternateScreen).and_then(|()| WRITER.send(&bytes));
    WRITER.wait(PATIENCE);
    let _ = disable_raw_mode();
}

/// A panic's message must be readable: restore the screen before it is printed.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !foreign::is_calling() {
                restore();
            }
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
