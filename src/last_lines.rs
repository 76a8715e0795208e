//! The last lines of a command's output, as a terminal would show them.
//!
//! Pure: turns bytes into lines that are safe to show.

use std::collections::VecDeque;

use console::strip_ansi_codes;

use crate::units::{keep_newest, printable};

/// Number of lines kept.
const MAX_LINES: usize = 1000;
/// Bytes kept of a line that has not ended yet.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The last lines of an output.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    whole: VecDeque<String>,
    /// Number of lines that have ended, including those that are no longer kept.
    ended: usize,
    /// The line that has not ended yet.
    rest: Vec<u8>,
    /// The same line, as it is shown.
    open: String,
}

impl Lines {
    /// Adds output of the command.
    pub fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.rest.extend_from_slice(text);
            let excess = self.rest.len().saturating_sub(MAX_LINE_BYTES);
            self.rest.drain(..excess);
            if ends {
                keep_newest(&mut self.whole, shown(&self.rest), MAX_LINES);
                self.rest.clear();
                self.ended += 1;
            } else if let Some(at) = last_return(&self.rest) {
                // A progress bar has overwritten this part.
                self.rest.drain(..at);
            }
        }
        self.open = shown(&self.rest);
    }

    /// Returns the newest `count` lines, oldest first, after leaving out the `skip` newest.
    pub fn last(&self, count: usize, skip: usize) -> impl Iterator<Item = &str> {
        let open = Some(self.open.as_str()).filter(|line| !line.is_empty());
        let all = self.len().saturating_sub(skip);
        let lines = self.whole.iter().map(String::as_str).chain(open);
        lines.take(all).skip(all.saturating_sub(count))
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.whole.len() + usize::from(!self.open.is_empty())
    }

    /// Returns the number of lines so far, including those that are no longer kept.
    pub fn total(&self) -> usize {
        self.ended + usize::from(!self.open.is_empty())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the position of the last carriage return that is followed by text.
fn last_return(line: &[u8]) -> Option<usize> {
    let end = line.iter().rposition(|byte| *byte != b'\r')? + 1;
    line[..end]
        .iter()
        .rposition(|byte| *byte == b'\r')
        .map(|at| at + 1)
}

/// Returns what a terminal would show of a line: the text written last, without colours and cursor movements.
fn shown(line: &[u8]) -> String {
    let from = last_return(line).unwrap_or(0);
    let text = String::from_utf8_lossy(&line[from..]);
    let text = strip_ansi_codes(text.trim_end_matches('\r'));
    printable(&text.replace('\t', "    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &Lines) -> Vec<&str> {
        lines.last(usize::MAX, 0).collect()
    }

    #[test]
    fn lines_come_whole_however_they_were_written() {
        let text = "one\ntwo \u{1b}[31mred\u{1b}[0m\r\nthr\u{e9}e\nopen";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            text.as_bytes()
                .chunks(size)
                .for_each(|chunk| lines.feed(chunk));
            assert_eq!(all(&lines), ["one", "two red", "thrée", "open"], "{size}");
        }
    }

    #[test]
    fn only_the_newest_state_of_a_progress_bar_is_kept() {
        let mut lines = Lines::default();
        lines.feed(b"\r 10 %\r 20 %");
        assert_eq!(all(&lines), [" 20 %"]);
        lines.feed(b"\r");
        assert_eq!(all(&lines), [" 20 %"]);
        lines.feed(b" 30 %\r\x1b[A");
        lines.feed(b"\rdone\nnext\n");
        assert_eq!(all(&lines), ["done", "next"]);
    }

    #[test]
    fn control_characters_are_removed_and_memory_is_bounded() {
        let mut lines = Lines::default();
        lines.feed(b"\x1b]0;title\x07a\x08b\xff\n");
        assert!(all(&lines)[0].ends_with("a\u{fffd}b\u{fffd}"), "{lines:?}");
        for _ in 0..3 * MAX_LINES {
            lines.feed(b"x\n");
        }
        lines.feed(&vec![b'y'; 3 * MAX_LINE_BYTES]);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines.total(), 3 * MAX_LINES + 2);
        assert_eq!(lines.rest.len(), MAX_LINE_BYTES);
        assert_eq!(lines.last(2, 1).collect::<Vec<_>>(), ["x", "x"]);
    }
}
