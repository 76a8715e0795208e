//! Formats figures as text of a fixed width, and names as text that is safe to print.
//!
//! Knows units and widths; must not depend on a panel.

use std::borrow::Cow;
use std::time::SystemTime;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::rates::QueueRates;
use crate::units::{Bytes, Share, scaled};
pub(crate) use crate::units::{UNKNOWN, known, span};

/// Formats a share as `63 %`, at most 5 wide below 1000 %.
pub(crate) fn percent(share: Option<Share>) -> String {
    whole_percent(share.map(Share::percent))
}

/// Formats a figure that is already in percent.
pub(crate) fn whole_percent(percent: Option<f64>) -> String {
    known(percent.map(|percent| format!("{:.0} %", percent.max(0.0))))
}

/// Formats CPUs in use, in percent of one.
pub(crate) fn cores(cores: Option<f64>) -> String {
    whole_percent(cores.map(|cores| 100.0 * cores))
}

/// Formats the batches that are ready in a queue: `0.4 of 8`.
pub(crate) fn ready(queue: QueueRates) -> String {
    let ready = per_second(Some(queue.mean_ready));
    let capacity = queue
        .capacity
        .map(|capacity| format!("{ready} of {capacity}"));
    capacity.unwrap_or(ready)
}

/// Formats a share with one decimal below 10 %, `0.4 %`, without from there on.
pub(crate) fn fine_percent(share: Option<Share>) -> String {
    match share {
        Some(share) if share.percent() < 9.95 => format!("{:.1} %", share.percent()),
        other => percent(other),
    }
}

/// Formats milliseconds as `412 ms`, `9.7 ms` or `12.4 s`: at most 7 wide. From 1 ms on, the text is within 3 % of the
/// figure, so that figures on screen can be checked against each other.
pub(crate) fn millis(value: Option<f64>) -> String {
    known(value.map(|ms| match ms {
        ..19.95 => format!("{ms:.1} ms"),
        ..9999.5 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1000.0),
    }))
}

/// Formats a number per second: `9.7`, `124`.
pub(crate) fn per_second(value: Option<f64>) -> String {
    known(value.map(|value| format!("{value:.*}", usize::from(value < 99.95))))
}

/// Formats bytes as `53 MB`, `1.9 GB` or `0 B`: two or three digits, decimal units, at most 6 wide.
pub(crate) fn bytes(value: Option<f64>) -> String {
    known(value.map(|value| scaled(value, 1000.0, &["B", "KB", "MB", "GB", "TB"], 9.95)))
}

/// Formats bytes per second: `53 MB/s`.
pub(crate) fn rate(value: Option<f64>) -> String {
    known(value.map(|value| format!("{}/s", bytes(Some(value)))))
}

/// Formats used memory in the unit of the total: `21.4 / 140 GiB`.
pub(crate) fn of_memory(used: Option<Bytes>, total: Option<Bytes>) -> String {
    const GIB: f64 = (1_u64 << 30) as f64;
    let gib = |bytes: Option<Bytes>| {
        known(bytes.map(|Bytes(bytes)| {
            let gib = bytes as f64 / GIB;
            let decimals = usize::from(gib < 99.95);
            format!("{gib:.decimals$}")
        }))
    };
    let whole = known(total.map(|Bytes(bytes)| format!("{:.0}", bytes as f64 / GIB)));
    format!("{} / {whole} GiB", gib(used))
}

/// Formats a duration: `14:07` in minutes and seconds, `3:14:07` with hours, `2 d 03:14` with days.
pub(crate) fn clock(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes:02}:{rest:02}"),
        (0, _) => self::hours(seconds),
        _ => format!("{days} d {hours:02}:{minutes:02}"),
    }
}

/// Formats how long ago something was: `0:42`, `12:05`, `3:14:07`.
pub(crate) fn ago(seconds: u64) -> String {
    match seconds {
        0..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => hours(seconds),
    }
}

/// Formats a time as `1:11:11` or `26:00:00`, so that two times are easy to compare.
pub(crate) fn hours(seconds: u64) -> String {
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    format!("{}:{minutes:02}:{rest:02}", seconds / 3600)
}

/// Formats the time of day: `14:03:22 UTC`.
pub(crate) fn time_of_day(wall: SystemTime) -> String {
    let since = wall
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let of_day = since.as_secs() % 86_400;
    let (hours, minutes, rest) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{hours:02}:{minutes:02}:{rest:02} UTC")
}

/// Returns how many cells a text takes.
pub(crate) fn width(text: &str) -> usize {
    if text.chars().all(is_plain) {
        return text.chars().count();
    }
    UnicodeWidthStr::width(text)
}

/// Whether the character takes one cell by itself: ASCII, and those that boxes and graphs are drawn with. They make up
/// nearly all of a frame; looking each of them up in tables took 4 % of a frame's instructions (`benches/drawing.rs`).
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}')
}

/// Returns the text without anything that a terminal would act on: control characters become `?`, characters without a
/// width (marks, direction changes) are removed. With `ascii`, all other characters that are not ASCII become `?`, as a
/// small font may lack them.
pub(crate) fn clean(text: &str, ascii: bool) -> Cow<'_, str> {
    if text
        .chars()
        .all(|c| is_plain(c) && (c.is_ascii() || !ascii))
    {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().filter_map(|c| match c.width() {
        None => Some('?'),
        Some(0) => None,
        Some(_) if ascii && !c.is_ascii() => Some('?'),
        Some(_) => Some(c),
    });
    Cow::Owned(shown.collect())
}

/// Returns the start of a text that fits into `room` cells, with `more` as its last cell if it was cut.
pub(crate) fn cut(text: &str, room: usize, more: &str) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let keep = room.saturating_sub(width(more));
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let cells = c.width().unwrap_or(0);
        if used + cells > keep {
            break;
        }
        used += cells;
        kept.push(c);
    }
    if room >= width(more) {
        kept.push_str(more);
    }
    kept
}

/// Returns the end of a text that fits into `room` cells, with `more` as its first cell if it was cut.
pub(crate) fn cut_left(text: &str, room: usize, more: &str) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mirrored: String = text.chars().rev().collect();
    cut(&mirrored, room, more).chars().rev().collect()
}

/// Like [`cut`], but cuts between words if that leaves at least half of the room in use.
pub(crate) fn cut_words(text: &str, room: usize, more: &str) -> String {
    let cut = cut(text, room, more);
    if cut == text {
        return cut;
    }
    let body = cut.strip_suffix(more).unwrap_or(&cut);
    let next_is_space = text[body.len()..].starts_with(' ');
    match body.rfind(' ') {
        Some(at) if !next_is_space && at * 2 >= room => {
            format!(
                "{}{more}",
                body[..at].trim_end_matches([' ', ',', ';', ':'])
            )
        }
        _ => cut,
    }
}

/// Breaks a text between words into lines of at most `room` cells.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_width() {
        assert_eq!(millis(Some(19.949)), "19.9 ms");
        assert_eq!(millis(Some(19.96)), "20 ms");
        assert_eq!(millis(Some(12_400.0)), "12.4 s");
        assert_eq!(bytes(Some(0.0)), "0 B");
        assert_eq!(bytes(Some(999_600.0)), "1.0 MB");
        assert_eq!(rate(Some(53_000_000.0)), "53 MB/s");
        assert_eq!(percent(None), "n/a");
        assert_eq!(clock(847), "14:07");
        assert_eq!(clock(200_000), "2 d 07:33");
        assert_eq!(
            (ago(42), ago(725), ago(11_647)),
            ("0:42".to_owned(), "12:05".to_owned(), "3:14:07".to_owned())
        );
        let wall = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(5 * 86_400 + 50_602);
        assert_eq!(time_of_day(wall), "14:03:22 UTC");
        assert_eq!(span(10.04), "10 s");
        assert_eq!(span(120.0), "2 min");
        assert_eq!(span(3600.0), "60 min");
        assert_eq!(span(12_600.0), "3.5 h");
        assert_eq!(span(86_400.0), "24 h");
        let used = Bytes(22_978_772_992);
        assert_eq!(
            of_memory(Some(used), Some(Bytes(140 << 30))),
            "21.4 / 140 GiB"
        );
    }

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(clean("a\u{1b}[31mb\nc\u{9b}d", false), "a?[31mb?c?d");
        assert_eq!(clean("x\u{202e}y\u{200b}z", false), "xyz");
        assert_eq!(clean("école", true), "?cole");
        assert_eq!(clean("训练", false), "训练");
    }

    #[test]
    fn texts_are_cut_by_cells_and_between_words() {
        assert_eq!(cut("训练脚本", 5, "…"), "训练…");
        assert_eq!(cut("abc", 0, "…"), "");
        assert_eq!(
            cut_words("raise num_workers to 11", 19, "…"),
            "raise num_workers…"
        );
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert!(wrap("", 8).is_empty());
    }
}
