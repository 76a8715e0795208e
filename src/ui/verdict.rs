//! The answer: kind, share lost, cause, how sure; what to do; what speaks for it and against it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;

use super::layout::BorderStyle;
use super::state::Panel;
use super::{Attach, View, format, panel};
use crate::config::Role;
use crate::sample::Tier;
use crate::verdict::{Cause, Headline, Kind, Resource, Verdict};

/// Cells that the labels `do`, `for`, `but`, `n/a` take.
const LABEL: usize = 6;
/// The source of what the GPU's driver tells.
const DRIVER: &str = "nvml";

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, border: BorderStyle) {
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
        border,
        Panel::Verdict,
        "verdict",
        &remark,
    );
    // Without a box the text keeps one cell of air, where there is any.
    let inner = if border == BorderStyle::Boxed || inner.width < 39 {
        inner
    } else {
        Rect {
            x: inner.x + 1,
            width: inner.width - 1,
            ..inner
        }
    };
    panel::write(frame, inner, lines(view, inner.width));
    if let Some(paint) = view.verdict.and_then(bar) {
        let first = Rect { height: 1, ..inner };
        let style = view
            .config
            .theme
            .style(paint)
            .add_modifier(Modifier::REVERSED);
        frame
            .buffer_mut()
            .set_style(first.intersection(inner), style);
    }
}

/// The colour of the bar that the first line of a verdict stands on, so that it is the first thing seen. `None` where there
/// is no answer yet.
fn bar(verdict: &Verdict) -> Option<Role> {
    let answered = !matches!(verdict.kind, Kind::WarmingUp | Kind::Unknown);
    answered.then(|| paint(verdict))
}

/// Kind, number, cause and how sure, in one line.
pub(super) fn first_line(view: &View<'_>, width: u16) -> Line<'static> {
    if let Some(verdict) = view.verdict {
        return headline(view, verdict, width);
    }
    let mut row = view.row(width);
    row.bold(Role::Unknown, Kind::WarmingUp.words())
        .item(2, &[(Role::Text, "collecting the first samples")]);
    row.line()
}

/// Every line that there is to say, the most important first.
pub(super) fn lines(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![first_line(view, width)];
    let Some(verdict) = view.verdict else {
        return lines;
    };
    let say = |label: &str, paint: Role, text: &str| {
        let mut row = view.row(width);
        row.padded(Role::Dim, label, LABEL).sentence(paint, text);
        row.line()
    };
    let mut advice = verdict.advice.iter();
    if let Some(first) = advice.next() {
        // The remedy is read in full: it may take a second line.
        let room = usize::from(width).saturating_sub(LABEL);
        let parts = format::wrap(first, room);
        lines.push(say("do", Role::Text, &parts[0]));
        if parts.len() > 1 {
            lines.push(say("", Role::Text, &parts[1..].join(" ")));
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
        lines.push(say(format::UNKNOWN, Role::Text, &text));
    }
    lines.extend(advice.take(2).map(|text| say("also", Role::Text, text)));
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
    let reports_device = view.rank().is_some_and(|rank| rank.device.is_some());
    parts
        .into_iter()
        .filter(|(what, ..)| !reports_device || *what != DRIVER)
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
    row.padded(Role::Dim, label, LABEL)
        .sentence(Role::Text, first);
    for fact in facts {
        row.item(3, &[(Role::Text, fact)]);
    }
    Some(row.line())
}

fn headline(view: &View<'_>, verdict: &Verdict, width: u16) -> Line<'static> {
    let paint = paint(verdict);
    let Headline {
        kind,
        loss: [long, medium, short],
        cause,
        certainty,
    } = verdict.headline(view.figures());
    // While warming up, the next line says how far it is.
    let sure = certainty.filter(|_| verdict.warming_up.is_none());
    let sure_cells = sure.as_ref().map_or(0, String::len);
    let mut row = view.row(width);
    let cause = cause.as_deref();
    row.bold(paint, &kind);

    // With room for everything, how sure stands at the right edge.
    let full_cause = cause.map(|cause| format!("cause: {cause}"));
    let needed = 6
        + format::width(&long)
        + full_cause
            .as_deref()
            .map_or(0, |cause| 6 + format::width(cause))
        + sure_cells;
    if needed <= row.left() {
        row.item(3, &[(Role::Text, &long)]);
        if let Some(cause) = &full_cause {
            row.item(6, &[(paint, cause)]);
        }
        if let Some(sure) = &sure {
            row.at_end(&[(Role::Dim, sure)]);
        }
        return row.line();
    }
    let after = cause.map_or(0, |cause| 2 + format::width(cause));
    let all = 2 + format::width(&medium) + after + 2 + sure_cells;
    let middle = if all <= row.left() { &medium } else { &short };
    if !middle.is_empty() {
        row.item(2, &[(Role::Text, middle)]);
    }
    if let Some(cause) = cause {
        row.item(2, &[(paint, cause)]);
    }
    if let Some(sure) = &sure {
        row.item(2, &[(Role::Dim, sure)]);
    }
    row.line()
}

/// The panel that shows what the job has too little of. `None` where all matter alike.
pub(super) fn matters(view: &View<'_>) -> Option<Panel> {
    let verdict = view.verdict?;
    match (verdict.kind, verdict.cause.map(Cause::resource)) {
        (Kind::ComputeBound, _) => Some(Panel::Gpu),
        (Kind::DataBound, Some(Resource::Input)) => Some(Panel::Disk),
        _ => None,
    }
}

/// The colour of what the job has too little of.
pub(super) fn paint(verdict: &Verdict) -> Role {
    paint_of(verdict.kind, verdict.cause)
}

pub(super) fn paint_of(kind: Kind, cause: Option<Cause>) -> Role {
    match (kind, cause.map(Cause::resource)) {
        (Kind::WarmingUp | Kind::Unknown, _) => Role::Unknown,
        (Kind::Stalled, _) | (_, Some(Resource::Memory)) => Role::Trouble,
        (Kind::ComputeBound | Kind::Balanced, _) => Role::Compute,
        (_, Some(Resource::Input)) => Role::Read,
        (_, Some(Resource::Cpu)) | (Kind::HostBound, _) => Role::Cpu,
        (_, Some(Resource::CpuTime)) => Role::Runnable,
        (_, Some(Resource::Handover)) => Role::Full,
        _ => Role::Wait,
    }
}
