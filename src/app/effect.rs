//! The effects of an event, as data: `update` returns them, the runtime carries them out.

use crate::source::sampler::Request;

/// One effect outside of the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Draw what has changed.
    Draw,
    /// Draw every cell anew.
    Redraw,
    /// Send this request to the sampler.
    Sampler(Request),
    /// Watch all jobs, for the list of jobs; `false` = stop watching them.
    WatchAll(bool),
    /// Write the picture and the report to files.
    Save,
    /// Copy this to the terminal's clipboard.
    Copy(String),
    /// Restore the terminal and suspend pipetop.
    SuspendTerminal,
    /// Open the screen again.
    ResumeTerminal,
    /// Send the launched command a signal to end.
    EndCommand,
    /// Kill what is left of the command.
    KillCommand,
    Quit,
}
