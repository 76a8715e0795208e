//! What is to be done after an event, as data: `update` only says it, the runtime does it.

use crate::source::sampler::Request;

/// One thing to do outside of the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Draw what has changed.
    Draw,
    /// Draw every cell anew.
    Redraw,
    /// Send this to the sampler.
    Sampler(Request),
    /// Watch all jobs for the list of them; `false` = not any more.
    WatchAll(bool),
    /// Write picture and report to files.
    Save,
    /// Put this into the terminal's clipboard.
    Copy(String),
    /// Give the terminal to the shell.
    SuspendTerminal,
    /// Take the terminal again.
    ResumeTerminal,
    /// Ask the launched command to end.
    EndCommand,
    /// Kill what is left of it.
    KillCommand,
    Quit,
}
