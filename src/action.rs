//! The actions that keys can trigger, with their texts for the footer and the help.
//!
//! Must not know which keys trigger an action or how it is carried out.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines the actions from a table of names, each with a word for the footer and a sentence for the help.
macro_rules! actions {
    ($($(#[$attribute:meta])* $name:ident, $short:literal, $words:literal;)*) => {
        /// One action. Its name in `[keys]` of the configuration is the variant's in kebab-case.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Action {
            $($(#[$attribute])* #[doc = $words] $name,)*
        }

        impl Action {
            /// All actions, in the order of the help.
            pub const ALL: [Self; [$($short),*].len()] = [$(Self::$name),*];

            /// Returns the word for the footer, where every letter counts.
            pub fn short(self) -> &'static str {
                match self {
                    $(Self::$name => $short,)*
                }
            }

            /// Returns the sentence for the help.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

impl fmt::Display for Action {
    /// Writes its name in the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

actions! {
    Help, "help", "show or hide this help";
    #[serde(alias = "freeze")]
    Pause, "pause", "pause or resume";
    NextPanel, "panel", "focus the next panel: it grows and scrolls";
    PreviousPanel, "prev panel", "focus the previous panel";
    Up, "move up", "move up one line";
    Down, "move", "move down one line";
    PageUp, "page up", "move up ten lines";
    PageDown, "page down", "move down ten lines";
    Select, "details", "open the panel or the selected row";
    Tree, "tree", "show all processes and threads as a tree";
    Filter, "filter", "filter workers, jobs or processes";
    SortNext, "sort", "sort by the next column";
    SortReverse, "reverse", "reverse the order";
    NextRank, "rank", "show the next rank";
    IntervalShorter, "faster", "update more often";
    IntervalLonger, "slower", "update less often";
    ZoomIn, "zoom", "zoom in on the history, down to 10 s";
    ZoomOut, "zoom out", "zoom out, up to the whole history";
    SeekBack, "back", "go back 10 s";
    SeekForward, "forward", "go forward 10 s";
    LeapBack, "far back", "go back 10 min";
    LeapForward, "far fwd", "go forward 10 min";
    StepBack, "step back", "go back one sample";
    StepForward, "step", "go forward one sample";
    ToBegin, "start", "jump to the start, or the oldest sample kept";
    ToEnd, "end", "jump to the end, or back to now";
    Save, "save", "save screen (SVG) and report (Markdown) in this directory";
    Copy, "copy", "copy the advice to the clipboard";
    Redraw, "redraw", "redraw the screen";
    Suspend, "suspend", "suspend to the shell";
    EndCommand, "stop it", "when quitting: stop the launched command";
    PrintCommand, "command", "in `fleet`: quit, print the command";
    Detach, "detach", "when quitting: leave the launched command running";
    Cancel, "close", "close; clear the filter; stay";
    Quit, "quit", "quit";
}
