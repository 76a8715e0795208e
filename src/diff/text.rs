//! The comparison as text: a table and a sentence.

use super::{Comparison, Outcome, Pace, Side};
use crate::report::Cause;
use crate::units::{Share, known};

/// Returns the text, which ends with a line end.
pub(crate) fn text(comparison: &Comparison) -> String {
    let (before, after) = (&comparison.before, &comparison.after);
    let row = |name: &str, of: fn(&Side) -> Option<String>, change: Option<String>| {
        [
            name.to_owned(),
            known(of(before)),
            known(of(after)),
            change.unwrap_or_default(),
        ]
    };
    let times = ratio(comparison).map(|ratio| format!("{ratio:.2}x"));
    // Computed from the rounded figures that are shown, so that the line adds up.
    let points = |of: fn(&Side) -> Option<Share>| {
        let shown = |side| Some(of(side)?.percent().round());
        Some(signed_points(shown(after)? - shown(before)?))
    };
    let longer = |of: fn(&Side) -> Option<f64>| {
        let shown = |side| Some((of(side)? * 10.0).round() / 10.0);
        Some(signed_ms(shown(after)? - shown(before)?))
    };
    let rows = [
        [
            String::new(),
            before.file.clone(),
            after.file.clone(),
            "change".to_owned(),
        ],
        row(
            "observed",
            |side| Some(format!("{:.0} s", side.seconds)),
            None,
        ),
        row("verdict", |side| Some(side.kind.to_string()), None),
        // Some kinds have no cause, which is not a gap: `-` instead of `n/a`.
        row(
            "cause",
            |side| Some(side.cause.map_or("-", Cause::words).to_owned()),
            None,
        ),
        row("batches/s", |side| side.pace.map(pace), times),
        row("wait", wait, points(|side| side.wait_share)),
        row(
            "step",
            |side| side.step_ms.map(ms),
            longer(|side| side.step_ms),
        ),
        row(
            "load",
            |side| side.load_ms.map(ms),
            longer(|side| side.load_ms),
        ),
        row("queue", queue, None),
        row(
            device(comparison),
            |side| side.gpu_busy_share.map(|share| share.to_string()),
            points(|side| side.gpu_busy_share),
        ),
    ];
    let mut widths = [0; 4];
    for cells in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |cells: &[String; 4]| {
        let cells = cells.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let table: String = rows.iter().map(line).collect();
    format!("{table}\n{}\n", sentence(comparison))
}

/// Returns what its busy share is of: a device that only the job's reports show need not be a GPU.
fn device(comparison: &Comparison) -> &'static str {
    if comparison.before.other_device || comparison.after.other_device {
        "device busy"
    } else {
        "GPU busy"
    }
}

fn sentence(comparison: &Comparison) -> String {
    let interval = comparison.speedup.and_then(|speedup| speedup.interval);
    let [low, high] = interval.unwrap_or_default();
    let ratio = ratio(comparison).unwrap_or_default();
    let file = &comparison.after.file;
    match comparison.outcome {
        Outcome::Faster => {
            format!("{file} is faster: {ratio:.2}x the batches per second ({low:.2} to {high:.2}).")
        }
        Outcome::Slower => {
            format!("{file} is slower: {ratio:.2}x the batches per second ({low:.2} to {high:.2}).")
        }
        Outcome::NotToldApart => format!(
            "The two cannot be told apart: {low:.2} to {high:.2} times the batches per second."
        ),
        Outcome::Unknown => format!(
            "It is unknown whether it is faster: {}.",
            comparison.why.as_deref().unwrap_or_default()
        ),
    }
}

/// Returns the ratio of the rates that are shown, so that the line adds up.
fn ratio(comparison: &Comparison) -> Option<f64> {
    let exact = comparison.speedup?.ratio;
    let shown = |side: &Side| {
        let rate = side.pace?.batches_per_s;
        let scale = 10_f64.powi(i32::try_from(decimals(rate)).ok()?);
        Some((rate * scale).round() / scale).filter(|rate| *rate > 0.0)
    };
    let shown = shown(&comparison.after).zip(shown(&comparison.before));
    Some(shown.map_or(exact, |(after, before)| after / before))
}

/// Returns with how many decimals a rate is shown: enough that rounding hardly changes a ratio.
fn decimals(rate: f64) -> usize {
    match rate {
        100.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        _ => 4,
    }
}

/// Formats a rate, for example `9.71 (9.52-9.90)`.
fn pace(pace: Pace) -> String {
    let decimals = decimals(pace.batches_per_s);
    let rate = format!("{:.decimals$}", pace.batches_per_s);
    pace.interval.map_or(rate.clone(), |[low, high]| {
        format!("{rate} ({low:.decimals$}-{high:.decimals$})")
    })
}

/// Formats a wait share, for example `63 % (61-66)`.
fn wait(side: &Side) -> Option<String> {
    let share = side.wait_share?;
    let [low, high] = side.wait_interval?.map(Share::percent);
    Some(format!("{share} ({low:.0}-{high:.0})"))
}

/// Formats the fill level of a queue, for example `0.4 of 8`.
fn queue(side: &Side) -> Option<String> {
    let ready = side.queue_ready?;
    let capacity = side.queue_capacity;
    Some(capacity.map_or_else(
        || format!("{ready:.1}"),
        |capacity| format!("{ready:.1} of {capacity}"),
    ))
}

fn ms(ms: f64) -> String {
    format!("{ms:.1} ms")
}

fn signed_ms(ms: f64) -> String {
    signed(&format!("{ms:+.1} ms"))
}

fn signed_points(points: f64) -> String {
    let one = (0.5..1.5).contains(&points.abs());
    let plural = if one { "" } else { "s" };
    signed(&format!("{points:+.0} point{plural}"))
}

/// Returns the change, without its sign if it is shown as 0.
fn signed(change: &str) -> String {
    let is_zero = !change.contains(|digit| ('1'..='9').contains(&digit));
    change[usize::from(is_zero)..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_0_has_no_sign() {
        let points = [-0.4, 0.4, -0.6, 0.6].map(signed_points);
        assert_eq!(points, ["0 points", "0 points", "-1 point", "+1 point"]);
        let ms = [-0.04, 0.04, -0.06, 10.0].map(signed_ms);
        assert_eq!(ms, ["0.0 ms", "0.0 ms", "-0.1 ms", "+10.0 ms"]);
    }
}
