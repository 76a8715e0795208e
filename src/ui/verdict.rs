//! The answer: kind, share lost, cause, how sure; what to do; what speaks for it and against it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::layout::Chrome;
use super::row::Row;
use super::state::Panel;
use super::{Attach, View, format, panel};
use crate::config::Paint;
use crate::sample::Tier;
use crate::verdict::{Cause, Interval, Kind, Verdict, WarmingUp};

/// Cells that the labels `do`, `for`, `but`, `n/a` take.
const LABEL: usize = 6;
/// The source of what the GPU's driver tells.
const DRIVER: &str = "nvml";

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, chrome: Chrome) {
    let covers = view.verdict.map_or_else(
        || view.span(),
        |verdict| format!("last {}", format::span(verdict.seconds)),
    );
    let remark = if *view.attach == Attach::Ended {
        format!("job ended: the {covers} of it")
    } else {
        covers
    };
    let inner = panel::open(
        view,
        frame,
        area,
        chrome,
        Panel::Verdict,
        "verdict",
        &remark,
    );
    // Without a box the text keeps one cell of air, where there is any.
    let inner = if chrome == Chrome::Boxed || inner.width < 39 {
        inner
    } else {
        Rect {
            x: inner.x + 1,
            width: inner.width - 1,
            ..inner
        }
    };
    panel::write(frame, inner, lines(view, inner.width));
}

/// Kind, number, cause and how sure, in one line.
pub(super) fn first_line(view: &View<'_>, width: u16) -> Line<'static> {
    if let Some(verdict) = view.verdict {
        return headline(view, verdict, width);
    }
    let mut row = view.row(width);
    row.bold(Paint::Unknown, Kind::WarmingUp.words())
        .item(2, &[(Paint::Text, "the first readings are being taken")]);
    row.line()
}

/// Every line that there is to say, the most important first.
pub(super) fn lines(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![first_line(view, width)];
    let Some(verdict) = view.verdict else {
        return lines;
    };
    let say = |label: &str, paint: Paint, text: &str| {
        let mut row = view.row(width);
        row.padded(Paint::Dim, label, LABEL).sentence(paint, text);
        row.line()
    };
    if let Some(progress) = &verdict.warming_up {
        lines.push(countdown(view, progress, width));
    }
    let mut advice = verdict.advice.iter();
    if let Some(first) = advice.next() {
        // The remedy is read in full: it may take a second line.
        let room = usize::from(width).saturating_sub(LABEL);
        let parts = format::wrap(first, room);
        lines.push(say("do", Paint::Text, &parts[0]));
        if parts.len() > 1 {
            lines.push(say("", Paint::Text, &parts[1..].join(" ")));
        }
    }
    for (label, supports) in [("for", true), ("but", false)] {
        let facts = verdict
            .evidence
            .iter()
            .filter(|fact| fact.supports == supports);
        lines.extend(joined(
            view,
            label,
            facts.map(|fact| fact.text.as_str()),
            width,
        ));
    }
    for text in missing(view, verdict, usize::from(width).saturating_sub(LABEL)) {
        lines.push(say(format::UNKNOWN, Paint::Text, &text));
    }
    lines.extend(advice.take(2).map(|text| say("also", Paint::Text, text)));
    lines
}

/// What the verdict had to do without, two at most.
fn missing(view: &View<'_>, verdict: &Verdict, room: usize) -> Vec<String> {
    let parts: Vec<(&str, &str, &str)> = if verdict.missing.is_empty() && no_permission(view) {
        let gaps = view.gaps.iter().filter(|gap| !gap.hint.is_empty());
        gaps.map(|gap| (gap.source.as_str(), gap.reason.as_str(), gap.hint.as_str()))
            .collect()
    } else {
        let missing = verdict.missing.iter();
        missing
            .map(|gap| (gap.id.as_str(), gap.why.as_str(), gap.hint.as_str()))
            .collect()
    };
    // A job that tells of its device leaves nothing for the driver to say.
    let told = view.rank().is_some_and(|rank| rank.device.is_some());
    parts
        .into_iter()
        .filter(|(what, ..)| !told || *what != DRIVER)
        .take(2)
        .map(|(what, why, hint)| {
            let alone = format!("{what}: {why}");
            let text = format!("{alone}; {hint}");
            // What there is to do about the driver stands in the panel of the GPUs, too.
            let cut = what == DRIVER && format::width(&text) > room;
            if cut || hint.is_empty() { alone } else { text }
        })
        .collect()
}

/// The job belongs to someone else: little can be seen.
fn no_permission(view: &View<'_>) -> bool {
    let job = view.figures().and_then(|rates| rates.job.as_ref());
    job.is_some_and(|job| job.access == Tier::T0)
}

/// Facts side by side, whole ones only; the first is cut where even it does not fit.
fn joined<'t>(
    view: &View<'_>,
    label: &str,
    mut facts: impl Iterator<Item = &'t str>,
    width: u16,
) -> Option<Line<'static>> {
    let first = facts.next()?;
    let mut row = view.row(width);
    row.padded(Paint::Dim, label, LABEL)
        .sentence(Paint::Text, first);
    for fact in facts {
        row.item(3, &[(Paint::Text, fact)]);
    }
    Some(row.line())
}

fn headline(view: &View<'_>, verdict: &Verdict, width: u16) -> Line<'static> {
    let kind = verdict.kind.words();
    let paint = paint(verdict);
    let cause = verdict.cause.map(Cause::words);
    let sure = format!("{} sure", verdict.confidence);
    let [long, medium, short] = sentence(view, verdict);
    let sure_known = !matches!(verdict.kind, Kind::WarmingUp | Kind::Unknown);
    let mut row = view.row(width);
    row.bold(paint, kind);

    // With room for everything, how sure stands at the right edge.
    let full_cause = cause.map(|cause| format!("cause: {cause}"));
    let needed = 6
        + format::width(&long)
        + full_cause
            .as_deref()
            .map_or(0, |cause| 6 + format::width(cause))
        + sure.len();
    if needed <= row.left() {
        row.item(3, &[(Paint::Text, &long)]);
        if let Some(cause) = &full_cause {
            row.item(6, &[(paint, cause)]);
        }
        if sure_known {
            row.at_end(&[(Paint::Dim, &sure)]);
        }
        return row.line();
    }
    let after = cause.map_or(0, |cause| 2 + format::width(cause));
    let all = 2 + format::width(&medium) + after + 2 + sure.len();
    let middle = if all <= row.left() { &medium } else { &short };
    if !middle.is_empty() {
        row.item(2, &[(Paint::Text, middle)]);
    }
    if let Some(cause) = cause {
        row.item(2, &[(paint, cause)]);
    }
    if sure_known {
        row.item(2, &[(Paint::Dim, &sure)]);
    }
    row.line()
}

/// The number in words, in three lengths.
pub(super) fn sentence(view: &View<'_>, verdict: &Verdict) -> [String; 3] {
    let who = match verdict.rank {
        Some(rank) if view.ranks().len() > 1 => format!("rank {rank}: "),
        _ => String::new(),
    };
    let lost = verdict.stall.or(verdict.wait);
    let texts = match (verdict.kind, lost) {
        (Kind::WarmingUp, _) => ["watching until there is enough to go by"; 3].map(str::to_owned),
        (Kind::Stalled, _) => {
            let text = format!("no batch in the last {}", format::span(verdict.seconds));
            [text.clone(), text.clone(), text]
        }
        (Kind::Unknown, _) => [
            "what can be seen does not allow an answer",
            "not enough can be seen",
            "",
        ]
        .map(str::to_owned),
        (Kind::HostBound, _) if verdict.gpu_idle.is_some() => {
            let idle = format::percent(verdict.gpu_idle);
            let waits = format::percent(verdict.wait.map(|wait| wait.share));
            let what = if view.gpus().is_empty() {
                "device"
            } else {
                "GPU"
            };
            [
                format!(
                    "the {what} is idle {idle} of the time, yet only {waits} is lost waiting for data"
                ),
                format!("{what} idle {idle}, waiting for data {waits}"),
                format!("{what} idle {idle}"),
            ]
        }
        (_, None) => {
            ["how much is lost is not known", "share lost not known", ""].map(str::to_owned)
        }
        (_, Some(Interval { share, low, high })) => {
            let (low, high) = (low.percent(), high.percent());
            [
                format!("{share} of the time is lost waiting for data ({low:.0}-{high:.0} %)"),
                format!("{share} lost waiting ({low:.0}-{high:.0})"),
                format!("{share} lost"),
            ]
        }
    };
    texts.map(|text| {
        if text.is_empty() {
            text
        } else {
            format!("{who}{text}")
        }
    })
}

/// How far the first verdict is: the slower of batches and seconds as a bar, both in numbers.
fn countdown(view: &View<'_>, progress: &WarmingUp, width: u16) -> Line<'static> {
    let part = |seen: f64, needed: f64| (seen / needed.max(1e-9)).clamp(0.0, 1.0);
    let seconds = part(progress.seconds, progress.seconds_needed);
    let batches = progress
        .batches
        .map(|seen| part(seen as f64, progress.batches_needed as f64));
    let mut row: Row<'_> = view.row(width);
    row.padded(Paint::Dim, "seen", LABEL);
    let share = batches.map_or(seconds, |batches| batches.min(seconds));
    let cells = row.left().min(20);
    let full = (share * cells as f64).floor();
    let glyphs = view.glyphs();
    for cell in 0..cells {
        let sign = if (cell as f64) < full {
            glyphs.bar_full
        } else {
            glyphs.bar_empty
        };
        row.text(Paint::Unknown, sign);
    }
    let seen = progress.batches.map_or_else(
        || format::UNKNOWN.to_owned(),
        |seen| seen.min(progress.batches_needed).to_string(),
    );
    row.item(
        2,
        &[(
            Paint::Text,
            &format!("{seen} of {} batches", progress.batches_needed),
        )],
    );
    let text = format!(
        "{:.0} of {:.0} s",
        progress.seconds, progress.seconds_needed
    );
    row.item(2, &[(Paint::Text, &text)]);
    row.line()
}

/// The verdict wears the colour of its cause.
pub(super) fn paint(verdict: &Verdict) -> Paint {
    match (verdict.kind, verdict.cause) {
        (Kind::WarmingUp | Kind::Unknown, _) => Paint::Unknown,
        (Kind::Stalled, _) | (_, Some(Cause::MemoryPressure)) => Paint::Trouble,
        (Kind::ComputeBound | Kind::Balanced, _) => Paint::Compute,
        (_, Some(Cause::Disk | Cause::Network)) => Paint::Read,
        (_, Some(Cause::CpuPreprocess | Cause::InMain)) | (Kind::HostBound, _) => Paint::Cpu,
        (_, Some(Cause::CpuOversubscribed | Cause::CpuQuota | Cause::CpuAffinity)) => {
            Paint::Runnable
        }
        (_, Some(Cause::Ipc)) => Paint::Full,
        _ => Paint::Wait,
    }
}
