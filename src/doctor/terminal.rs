//! The terminal: how it describes itself, and whether that is enough for the screen.
//!
//! Depends on stdout and the environment only.

use std::io::IsTerminal as _;

use crate::doctor::check::{Check, limited, ok};

/// Stdout, and the environment variables about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terminal {
    pub is_tty: bool,
    pub term: String,
    /// The locale for characters: the first of `LC_ALL`, `LC_CTYPE`, `LANG` that is set.
    pub locale: String,
    pub colorterm: String,
    pub no_color: bool,
    /// Columns and rows.
    pub size: Option<(u16, u16)>,
}

impl Terminal {
    /// Reads this process's stdout and environment.
    pub(crate) fn current() -> Self {
        let variable = |name| {
            std::env::var_os(name)
                .map(|value| value.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
        let is_tty = std::io::stdout().is_terminal();
        Self {
            is_tty,
            term: variable("TERM"),
            locale: locale
                .into_iter()
                .find(|value| !value.is_empty())
                .unwrap_or_default(),
            colorterm: variable("COLORTERM"),
            no_color: !variable("NO_COLOR").is_empty(),
            size: is_tty.then(crossterm::terminal::size).and_then(Result::ok),
        }
    }
}

pub(super) fn terminal(terminal: &Terminal) -> Check {
    const SMALLEST: (u16, u16) = (40, 10);
    let Terminal { term, .. } = terminal;
    if !terminal.is_tty {
        return limited(
            "output is not a terminal: one line per interval",
            "over SSH use `ssh -t HOST pipetop`; in Docker `docker run -it`",
        );
    }
    match &**term {
        "" => return limited("TERM is not set", "`export TERM=xterm-256color`"),
        "dumb" => {
            return limited(
                "TERM is dumb: one line per interval",
                "`export TERM=xterm-256color` if the terminal is not dumb",
            );
        }
        _ => {}
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
    let locale = terminal.locale.to_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") {
        ok(format!("UTF-8 ({})", terminal.locale))
    } else {
        let set = if locale.is_empty() {
            "no locale set"
        } else {
            &*terminal.locale
        };
        limited(format!("plain ASCII: {set}"), "`export LANG=C.UTF-8`")
    }
}

pub(super) fn colour(terminal: &Terminal) -> Check {
    if terminal.no_color {
        ok("off (NO_COLOR)")
    } else if matches!(&*terminal.colorterm, "truecolor" | "24bit") {
        ok("16 million colours")
    } else if terminal.term.contains("256color") {
        ok("256 colours")
    } else if matches!(
        &*terminal.term,
        "" | "dumb" | "vt52" | "vt100" | "vt102" | "vt220"
    ) {
        limited("none", "`export TERM=xterm-256color`")
    } else {
        ok("16 colours")
    }
}
