//! What a user can ask for, in the words of the key file, the footer and the help.
//!
//! Knows no key, no screen and nothing of how a wish is met.

use serde::{Deserialize, Serialize};

/// One wish. The name in `[keys]` of the configuration is the variant's in kebab-case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Quit,
    Help,
    Freeze,
    NextPanel,
    PreviousPanel,
    Up,
    Down,
    PageUp,
    PageDown,
    Select,
    /// The job's processes as a tree.
    Tree,
    Filter,
    SortNext,
    SortReverse,
    NextRank,
    IntervalShorter,
    IntervalLonger,
    /// A shorter part of the past.
    ZoomIn,
    /// A longer one.
    ZoomOut,
    /// The screen as a picture and the report as text, in files.
    Save,
    SeekBack,
    SeekForward,
    LeapBack,
    LeapForward,
    StepBack,
    StepForward,
    ToBegin,
    ToEnd,
    Redraw,
    Suspend,
    EndCommand,
    Detach,
    Cancel,
}

impl Action {
    /// In the order of the help.
    pub const ALL: [Self; 33] = [
        Self::Help,
        Self::Freeze,
        Self::NextPanel,
        Self::PreviousPanel,
        Self::Up,
        Self::Down,
        Self::PageUp,
        Self::PageDown,
        Self::Select,
        Self::Tree,
        Self::Filter,
        Self::SortNext,
        Self::SortReverse,
        Self::NextRank,
        Self::IntervalShorter,
        Self::IntervalLonger,
        Self::ZoomIn,
        Self::ZoomOut,
        Self::SeekBack,
        Self::SeekForward,
        Self::LeapBack,
        Self::LeapForward,
        Self::StepBack,
        Self::StepForward,
        Self::ToBegin,
        Self::ToEnd,
        Self::Save,
        Self::Redraw,
        Self::Suspend,
        Self::EndCommand,
        Self::Detach,
        Self::Cancel,
        Self::Quit,
    ];

    /// It goes to another moment: of a replay, or of what is kept of a job that runs.
    pub fn is_in_time(self) -> bool {
        matches!(
            self,
            Self::SeekBack
                | Self::SeekForward
                | Self::LeapBack
                | Self::LeapForward
                | Self::StepBack
                | Self::StepForward
                | Self::ToBegin
                | Self::ToEnd
        )
    }

    /// One or two words for the footer.
    pub fn short(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Help => "help",
            Self::Freeze => "freeze",
            Self::NextPanel => "panel",
            Self::PreviousPanel => "panel back",
            Self::Up => "move up",
            Self::Down => "move",
            Self::PageUp => "page up",
            Self::PageDown => "page down",
            Self::Select => "details",
            Self::Tree => "tree",
            Self::Filter => "filter",
            Self::SortNext => "sort",
            Self::SortReverse => "reverse",
            Self::NextRank => "rank",
            Self::IntervalShorter => "faster",
            Self::IntervalLonger => "slower",
            Self::ZoomIn => "zoom",
            Self::ZoomOut => "zoom out",
            Self::Save => "save",
            Self::SeekBack => "back",
            Self::SeekForward => "on",
            Self::LeapBack => "far back",
            Self::LeapForward => "far on",
            Self::StepBack => "step back",
            Self::StepForward => "step",
            Self::ToBegin => "begin",
            Self::ToEnd => "end",
            Self::Redraw => "redraw",
            Self::Suspend => "suspend",
            Self::EndCommand => "end it",
            Self::Detach => "leave it",
            Self::Cancel => "close",
        }
    }

    /// A sentence part for the help.
    pub fn words(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Help => "open and close this help",
            Self::Freeze => "freeze the screen, and go on with what is now",
            Self::NextPanel => "next panel: it gets room first and scrolls",
            Self::PreviousPanel => "previous panel",
            Self::Up => "one line up",
            Self::Down => "one line down",
            Self::PageUp => "ten lines up",
            Self::PageDown => "ten lines down",
            Self::Select => "open the panel, or what is marked in it",
            Self::Tree => "all processes and threads, as a tree",
            Self::Filter => "find workers, jobs, processes by words",
            Self::SortNext => "sort by the next column",
            Self::SortReverse => "reverse that order",
            Self::NextRank => "show the next rank",
            Self::IntervalShorter => "read more often",
            Self::IntervalLonger => "read less often",
            Self::ZoomIn => "show less of the past, more finely: down to 10 s",
            Self::ZoomOut => "show more of the past: up to all that there is",
            Self::Save => "save the screen (SVG) and the report (Markdown) here",
            Self::SeekBack => "10 s back in time",
            Self::SeekForward => "10 s on",
            Self::LeapBack => "10 min back",
            Self::LeapForward => "10 min on",
            Self::StepBack => "one reading back",
            Self::StepForward => "one reading on",
            Self::ToBegin => "to the begin, or the oldest that is kept",
            Self::ToEnd => "to the end, or back to now",
            Self::Redraw => "draw the whole screen anew",
            Self::Suspend => "suspend to the shell",
            Self::EndCommand => "on quitting: end the launched command",
            Self::Detach => "on quitting: leave the launched command running",
            Self::Cancel => "close; show all again; on quitting: go on",
        }
    }
}
