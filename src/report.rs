//! What was found, without a screen: one JSON document, a page of text or of
//! Markdown, or one line per interval.
//!
//! Reads the model and the verdict; measures nothing, judges nothing and writes to no file.

mod json;
mod line;
mod markdown;
mod text;

#[cfg(test)]
mod tests;

use crate::model::rates::RankRates;
use crate::units::Share;
use crate::verdict::{Interval, Kind, Verdict};

pub use json::json;
pub use line::line;
pub use markdown::markdown;
pub use text::text;

/// `63 % of the time is lost waiting for data (61-66 %)`; empty where it is not known.
fn loss(verdict: &Verdict) -> String {
    let (interval, words) = match (verdict.stall, verdict.wait) {
        (Some(stall), _) => (stall, "of the time is lost waiting for data"),
        (None, Some(wait)) => (wait, "of the time waits for data"),
        (None, None) => return String::new(),
    };
    let Interval { share, low, high } = interval;
    let (low, high) = (low.percent(), high.percent());
    format!("{share} {words} ({low:.0}-{high:.0} %)")
}

/// How far the warm-up is, or how sure the verdict.
fn certainty(verdict: &Verdict) -> String {
    match (verdict.kind, verdict.warming_up) {
        (Kind::WarmingUp, Some(so_far)) => {
            let batches = so_far
                .batches
                .map_or_else(|| "n/a".to_owned(), |batches| batches.to_string());
            format!(
                "{batches} of {} batches, {:.0} of {:.0} s",
                so_far.batches_needed, so_far.seconds, so_far.seconds_needed
            )
        }
        _ => format!("{} sure", verdict.confidence),
    }
}

fn or_unknown<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| value.to_string())
}

/// `412 ms`; below ten with one decimal.
fn ms(value: Option<f64>) -> String {
    or_unknown(value.map(|ms| format!("{ms:.*} ms", usize::from(ms < 9.95))))
}

fn per_second(value: Option<f64>, what: &str) -> String {
    let rate = value.map(|rate| format!("{rate:.1}"));
    format!("{} {what}/s", or_unknown(rate))
}

fn wait_share(rank: &RankRates) -> Option<Share> {
    rank.wait.map(|wait| wait.share)
}

/// `0.4 of 8, empty 91 %`
fn queue(rank: &RankRates) -> String {
    let queue = rank.busiest_loader().and_then(|loader| loader.queue);
    or_unknown(queue.map(|queue| {
        let capacity = or_unknown(queue.capacity);
        let (ready, empty) = (queue.mean_ready, queue.empty);
        format!("{ready:.1} of {capacity}, empty {empty}")
    }))
}
