//! The actions that keys can trigger, with their texts for the footer and the help.
//!
//! Knows no keys, no screen and not how an action is carried out.

use serde::{Deserialize, Serialize};

/// One action. Its name in `[keys]` of the configuration is the variant's in kebab-case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Quit,
    Help,
    #[serde(alias = "freeze")]
    Pause,
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
    /// A shorter part of the history.
    ZoomIn,
    /// A longer one.
    ZoomOut,
    /// Saves the screen as a picture and the report as text.
    Save,
    /// The first advice, to the terminal's clipboard.
    Copy,
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
    pub const ALL: [Self; 34] = [
        Self::Help,
        Self::Pause,
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
        Self::Copy,
        Self::Redraw,
        Self::Suspend,
        Self::EndCommand,
        Self::Detach,
        Self::Cancel,
        Self::Quit,
    ];

    /// One or two words for the footer.
    pub fn short(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Help => "help",
            Self::Pause => "pause",
            Self::NextPanel => "panel",
            Self::PreviousPanel => "prev panel",
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
            Self::Copy => "copy",
            Self::SeekBack => "back",
            Self::SeekForward => "forward",
            Self::LeapBack => "far back",
            Self::LeapForward => "far fwd",
            Self::StepBack => "step back",
            Self::StepForward => "step",
            Self::ToBegin => "start",
            Self::ToEnd => "end",
            Self::Redraw => "redraw",
            Self::Suspend => "suspend",
            Self::EndCommand => "stop it",
            Self::Detach => "detach",
            Self::Cancel => "close",
        }
    }

    /// The description in the help.
    pub fn words(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Help => "show or hide this help",
            Self::Pause => "pause or resume",
            Self::NextPanel => "focus the next panel: it grows and scrolls",
            Self::PreviousPanel => "focus the previous panel",
            Self::Up => "move up one line",
            Self::Down => "move down one line",
            Self::PageUp => "move up ten lines",
            Self::PageDown => "move down ten lines",
            Self::Select => "open the panel or the selected row",
            Self::Tree => "show all processes and threads as a tree",
            Self::Filter => "filter workers, jobs or processes",
            Self::SortNext => "sort by the next column",
            Self::SortReverse => "reverse the order",
            Self::NextRank => "show the next rank",
            Self::IntervalShorter => "update more often",
            Self::IntervalLonger => "update less often",
            Self::ZoomIn => "zoom in on the history, down to 10 s",
            Self::ZoomOut => "zoom out, up to the whole history",
            Self::Save => "save screen (SVG) and report (Markdown) in this directory",
            Self::Copy => "copy the advice to the clipboard",
            Self::SeekBack => "go back 10 s",
            Self::SeekForward => "go forward 10 s",
            Self::LeapBack => "go back 10 min",
            Self::LeapForward => "go forward 10 min",
            Self::StepBack => "go back one sample",
            Self::StepForward => "go forward one sample",
            Self::ToBegin => "jump to the start, or the oldest sample kept",
            Self::ToEnd => "jump to the end, or back to now",
            Self::Redraw => "redraw the screen",
            Self::Suspend => "suspend to the shell",
            Self::EndCommand => "when quitting: stop the launched command",
            Self::Detach => "when quitting: leave the launched command running",
            Self::Cancel => "close; clear the filter; when quitting: keep watching",
        }
    }
}
