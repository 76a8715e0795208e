//! The real terminal: raw mode and the alternate screen, both restored on every way out.
//!
//! A backend that needs few bytes writes each frame into a buffer; the buffer goes out as one synchronized update,
//! through a separate thread that may block. Must not know what is drawn.

mod backend;
mod writer;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::queue;
use crossterm::style::force_color_output;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdout;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook_registry::register_sigaction;
use terminal_colorsaurus::{Error, QueryOptions, ThemeMode, theme_mode};

use crate::foreign;
use backend::TerseBackend;
use writer::WRITER;

pub type Backend = TerseBackend<Output>;

/// Whether mouse reports are enabled while the screen is open.
static MOUSE: AtomicBool = AtomicBool::new(false);
/// Buttons and the wheel only: movements would keep a slow link busy.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// Bracketed paste: pasted text arrives as a whole rather than as keys, one of which could end a command.
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// How long closing waits for a frame that is still being written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// If nothing reads the terminal, closing discards the kernel's output queue up to this many times, and waits this
/// long after each: the rest of a frame can be more than the queue holds.
const DISCARDS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// How long a terminal may take to report its colours. Nearly all answer one of the two queries at once, over a network
/// within a round trip.
const ANSWER: Duration = Duration::from_millis(300);
/// `SI_TKILL`: pipetop sent the signal to itself, as `abort` does.
const SENT_BY_ITSELF: i32 = -6;
/// Leaves the screen, even in the middle of an escape sequence, and says why.
const ABORTED: &[u8] = b"\x18\x1b[?2026l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l\
error: pipetop cannot go on: out of memory, or a library that it calls has given up\r\n";
/// Ends an escape sequence that was cut short.
const CANCEL: u8 = 0x18;

/// A terminal shows nothing new between these two, so half a frame is never visible, however slow the link is.
/// Terminals that do not know this private mode ignore it.
const FRAME_BEGIN: &[u8] = b"\x1b[?2026h";
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// What the terminal reports of its background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    Dark,
    /// It is light, or the terminal does not report it.
    Other,
    /// There was no answer in time: it may come later, among the keys.
    Late,
}

/// Asks the terminal for its background. Waits for the answer, so it must run before the screen is opened.
pub fn background() -> Background {
    let mut options = QueryOptions::default();
    options.timeout = ANSWER;
    match theme_mode(options) {
        Ok(ThemeMode::Dark) => Background::Dark,
        Err(Error::Timeout(_)) => Background::Late,
        Ok(ThemeMode::Light) | Err(_) => Background::Other,
    }
}

/// Collects a frame and passes it to the writer thread in one piece. Never waits for the terminal.
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

/// Sets whether the next screen that is opened reports mouse buttons and the wheel.
pub fn use_mouse(wanted: bool) {
    MOUSE.store(wanted, Ordering::SeqCst);
}

/// Calls `changed` with true when output starts to wait for the terminal, and with false when all of it is written.
pub fn on_output(changed: impl Fn(bool) + Send + 'static) {
    WRITER.watch(changed);
}

/// Settings of the terminal before the screen was opened, for `restore_on_abort`.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// Whether raw mode and the alternate screen are on. Ensures that the terminal is restored only once.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode on its alternate screen; dropping it restores the terminal.
#[derive(Debug)]
pub struct Screen {
    pub terminal: Terminal<Backend>,
}

impl Screen {
    /// Switches the terminal to raw mode and the alternate screen.
    ///
    /// # Errors
    /// Returns an error if standard output is not a terminal or the writer thread cannot be started.
    pub fn open() -> io::Result<Self> {
        restore_on_panic();
        if let Ok(before) = tcgetattr(stdout()) {
            BEFORE.get_or_init(|| before);
        }
        restore_on_abort()?;
        // The palette decides on colours, NO_COLOR included; crossterm must not decide again.
        force_color_output(true);
        WRITER.start()?;
        take()?;
        let backend = TerseBackend::new(Output::default());
        let terminal = Terminal::new(backend).inspect_err(|_| restore())?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, stops like any program on `ctrl-z`, and opens the screen again when continued.
pub fn suspend() -> io::Result<()> {
    restore();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
    take()
}

/// Opens the screen again after another program stopped and continued pipetop: the shell has reset the terminal.
pub fn resume() -> io::Result<()> {
    restore();
    take()
}

/// Copies text to the terminal's clipboard (OSC 52), also over ssh. Terminals without support ignore it.
pub fn copy(text: &str) -> io::Result<()> {
    let mut bytes = Vec::new();
    queue!(bytes, CopyToClipboard::to_clipboard_from(text))?;
    WRITER.send(&bytes)
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    let mut bytes = PASTE_ON.to_vec();
    // Cleared, because a terminal without an alternate screen still shows the shell's lines, and frames write only what
    // changes.
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
    if !WRITER.wait(CLOSE_TIMEOUT) {
        // Nothing reads the terminal: unwritten output must not keep pipetop from ending.
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
    bytes.extend_from_slice(PASTE_OFF);
    // A terminal that is gone cannot be restored; the error does not matter.
    let _ = queue!(bytes, Show, LeaveAlternateScreen).and_then(|()| WRITER.send(&bytes));
    WRITER.wait(CLOSE_TIMEOUT);
    let _ = disable_raw_mode();
}

/// Restores the screen before a panic's message is printed, so that it is readable.
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

/// Restores the screen when pipetop aborts itself: no memory is left, or a library that it calls gives up. Nothing is
/// unwound then, and locks may be held.
#[expect(unsafe_code, reason = "installs a signal handler")]
fn restore_on_abort() -> io::Result<()> {
    static HANDLER: Once = Once::new();
    let mut installed = Ok(());
    HANDLER.call_once(|| {
        let abort = rustix::process::Signal::ABORT.as_raw();
        // SAFETY: the handler only makes system calls; it takes no locks and allocates no memory.
        let registered = unsafe {
            register_sigaction(abort, |signal| {
                if signal.si_code == SENT_BY_ITSELF {
                    restore_at_once();
                }
            })
        };
        installed = registered.map(drop);
    });
    installed
}

/// Restores the terminal without taking locks or allocating memory.
fn restore_at_once() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // A terminal that accepts no output must not keep pipetop from ending.
    let mut ready = [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)];
    if poll(&mut ready, Some(&Timespec::default())) == Ok(1) {
        let _ = rustix::io::write(stdout(), ABORTED);
    }
    if let Some(before) = BEFORE.get() {
        let _ = tcsetattr(stdout(), OptionalActions::Now, before);
    }
}

/// Whether the error means that the terminal is gone: a closed window, a dropped connection.
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
