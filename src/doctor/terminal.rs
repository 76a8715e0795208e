//! The terminal: how it describes itself, and whether that is enough for the screen.
//!
//! Depends on stdout and the environment only.

use std::io::IsTerminal as _;

use crate::config::Environment;
use crate::doctor::check::{Check, limited, ok};

/// Stdout, and the environment variables about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terminal {
    pub is_tty: bool,
    pub environment: Environment,
    pub colorterm: String,
    /// Columns and rows.
    pub size: Option<(u16, u16)>,
}

impl Terminal {
    /// Reads this process's stdout and environment.
    pub(crate) fn current() -> Self {
        let is_tty = std::io::stdout().is_terminal();
        Self {
            is_tty,
            environment: Environment::read(),
            colorterm: std::env::var("COLORTERM").unwrap_or_default(),
            size: is_tty.then(crossterm::terminal::size).and_then(Result::ok),
        }
    }
}

pub(super) fn terminal(terminal: &Terminal) -> Check {
    const SMALLEST: (u16, u16) = (40, 10);
    if !terminal.is_tty {
        return limited(
            "output is not a terminal: one line per interval",
            "over SSH use `ssh -t HOST pipetop`; in Docker `docker run -it`",
        );
    }
    let Some(term) = &terminal.environment.term else {
        return limited("TERM is not set", "`export TERM=xterm-256color`");
    };
    if !terminal.environment.can_draw() {
        return limited(
            "TERM is dumb: one line per interval",
            "`export TERM=xterm-256color` if the terminal is not dumb",
        );
    }
    match terminal.size {
        Some((columns, rows)) if columns < SMALLEST.0 || rows < SMALLEST.1 => limited(
            format!("{term}, {columns} x {rows}: too small for the panels"),
            "enlarge the window to at least 80 x 24",
        ),
        Some((columns, rows)) => ok(format!("{term}, {columns} x {rows}")),
        None => limited(format!("{term}, size unknown"), "`stty rows 24 cols 80`"),
    }
}

pub(super) fn characters(terminal: &Terminal) -> Check {
    let locale = terminal.environment.locale.as_deref();
    let locale = locale.unwrap_or("no locale set");
    if terminal.environment.has_utf8() {
        ok(format!("UTF-8 ({locale})"))
    } else {
        limited(format!("plain ASCII: {locale}"), "`export LANG=C.UTF-8`")
    }
}

pub(super) fn colour(terminal: &Terminal) -> Check {
    let term = terminal.environment.term.as_deref().unwrap_or_default();
    if terminal.environment.no_color {
        ok("off (NO_COLOR)")
    } else if matches!(&*terminal.colorterm, "truecolor" | "24bit") {
        ok("16 million colours")
    } else if term.contains("256color") {
        ok("256 colours")
    } else if term.is_empty() || !terminal.environment.has_colours() {
        limited("none", "`export TERM=xterm-256color`")
    } else {
        ok("16 colours")
    }
}
