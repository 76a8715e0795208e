//! A study as a page of plain text, at most 80 columns wide.

use super::{SimulationSettings, Study, WhatIf};
use crate::units::{Share, UNKNOWN, counted, known, typed};

/// Bars of eight heights, lowest first.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// Returns the page with a final newline, in ASCII only if `ascii` is set.
pub fn text(study: &Study, ascii: bool) -> String {
    let settings = &study.settings;
    let mut lines = vec![heading(settings), seeds(study), String::new()];
    let batches = study.batches();
    let band = if batches.low < batches.high {
        format!("{:.0} to {:.0} per run", batches.low, batches.high)
    } else {
        String::new()
    };
    let decimals = usize::from(batches.mean.fract() != 0.0);
    lines.push(entry(
        "batches",
        &format!("{:.decimals$}", batches.mean),
        &band,
    ));
    let first = study.mean(|run| Some(run.first_batch?.as_secs_f64()));
    let since = first.map_or_else(
        || "no batch was ready in this time".to_owned(),
        |first| format!("from the first batch, at {}", seconds(first)),
    );
    let &WhatIf { stall, empty, .. } = &study.now;
    let rate = per_second(study.now.batches_per_s);
    lines.push(entry("batches/s", &rate, &since));
    let rhythm = match study.period_batches() {
        Some(period) => format!("the trainer waits for a batch, every {period} batches"),
        None if settings.workers == 1 && settings.load_jitter == 0.0 => {
            "the trainer waits for each batch".to_owned()
        }
        None => "the trainer waits for a batch, without a clear rhythm".to_owned(),
    };
    let stalls = stall.is_some_and(|stall| stall > Share::ZERO);
    let rhythm = if stalls { rhythm } else { String::new() };
    lines.push(entry("stalled", &known(stall), &rhythm));
    let ready = study.mean(|run| run.mean_ready);
    let capacity = settings.capacity();
    let of = format!(
        "of {capacity} ready on average, empty {} of the time",
        known(empty)
    );
    let of = if ready.is_some() { of } else { String::new() };
    let ready = known(ready.map(|ready| format!("{ready:.1}")));
    lines.push(entry("queue", &ready, &of));
    // Without a batch, the lowest bars would look like a trainer that takes each one at once.
    lines.push(match first {
        Some(_) => {
            let heights = spark(&study.ready_over_time(), capacity, ascii);
            format!("over time  {heights}")
        }
        None => entry("over time", UNKNOWN, "no batch was ready"),
    });
    if settings.in_order && turns(stall, empty) {
        lines.push("           in order: ready batches wait for earlier ones".to_owned());
    }
    lines.push(String::new());
    let shortest = study.what_if.iter().map(|row| row.span).min();
    let shorter = shortest.filter(|span| *span < settings.span);
    let over = shorter.map_or_else(String::new, |span| {
        format!(", over at least the first {}", seconds(span.as_secs_f64()))
    });
    lines.push(format!("with other numbers of workers{over}:"));
    lines.push(format!(
        "{:>9}  {:>9}  {:>9}  {:>11}",
        "workers", "batches/s", "stalled", "queue empty"
    ));
    lines.extend(
        study
            .what_if
            .iter()
            .map(|row| self::row(row, settings.workers)),
    );
    lines.push(String::new());
    lines.join("\n")
}

/// Whether the trainer waits much longer than the queue is empty.
fn turns(stall: Option<Share>, empty: Option<Share>) -> bool {
    stall
        .zip(empty)
        .is_some_and(|(stall, empty)| stall.0 > empty.0 + 0.05)
}

fn heading(settings: &SimulationSettings) -> String {
    let millis = |time: std::time::Duration| format!("{} ms", time.as_secs_f64() * 1000.0);
    let varying = if settings.load_jitter > 0.0 {
        let percent = (settings.load_jitter * 1000.0).round() / 10.0;
        format!(" (varies by {percent} %)")
    } else {
        String::new()
    };
    let mut parts = vec![
        counted(settings.workers, "worker"),
        format!("prefetch {}", settings.prefetch_factor),
        format!("load {}{varying}", millis(settings.load)),
        format!("step {}", millis(settings.step)),
        if settings.in_order {
            "in order"
        } else {
            "any order"
        }
        .to_owned(),
    ];
    parts.extend(
        settings
            .clock
            .map(|clock| format!("clock {}", millis(clock))),
    );
    parts.extend(settings.desync.then(|| "desynchronised".to_owned()));
    wrapped(&parts)
}

/// Joins parts on a line, and starts a new line before 80 columns are exceeded.
fn wrapped(parts: &[String]) -> String {
    let mut text = String::new();
    let mut used = 0;
    for part in parts {
        if used > 0 && used + 3 + part.len() > 80 {
            text.push('\n');
            used = 0;
        } else if used > 0 {
            text.push_str("   ");
            used += 3;
        }
        text.push_str(part);
        used += part.len();
    }
    text
}

fn seeds(study: &Study) -> String {
    let span = typed(study.settings.span);
    match (study.runs.first(), study.runs.last()) {
        (Some(first), Some(last)) if study.runs.len() > 1 => {
            let count = study.runs.len();
            format!(
                "{span}, mean of {count} runs with seeds {} to {}",
                first.seed, last.seed
            )
        }
        (Some(only), _) if study.settings.has_chance() => {
            format!("{span}, one run with seed {}", only.seed)
        }
        _ => format!("{span}, one run"),
    }
}

/// Formats `workers    batches/s    stalled    queue empty`, with a mark on the row of the settings.
fn row(row: &WhatIf, now: u32) -> String {
    let mark = if row.workers == now { ">" } else { "" };
    format!(
        "{mark:>2}{:>7}  {:>9}  {:>9}  {:>11}",
        row.workers,
        per_second(row.batches_per_s),
        known(row.stall),
        known(row.empty),
    )
}

fn entry(name: &str, figure: &str, words: &str) -> String {
    format!("{name:<9}  {figure:>9}  {words}")
        .trim_end()
        .to_owned()
}

fn spark(ready: &[f64], capacity: u64, ascii: bool) -> String {
    let levels = if ascii { ASCII_LEVELS } else { LEVELS };
    let level = |ready: &f64| {
        let height = ready / capacity.max(1) as f64;
        let step = (1..LEVELS.len())
            .rev()
            .find(|step| height * 8.0 >= *step as f64);
        levels[step.unwrap_or(0)]
    };
    ready.iter().map(level).collect()
}

fn seconds(seconds: f64) -> String {
    if seconds < 9.95 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.0} s")
    }
}

/// Formats a rate with enough digits that a low one does not look like 0.
fn per_second(value: Option<f64>) -> String {
    known(value.map(|value| {
        let decimals = match value {
            100.0.. => 1,
            0.095.. => 2,
            _ => 4,
        };
        format!("{value:.decimals$}")
    }))
}
