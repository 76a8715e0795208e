//! The verdict: kind, share lost, cause, certainty; what to do; the evidence for and against it.

mod large;

use ratatui::text::Line;

use super::layout::BorderStyle;
use super::panel::{Content, Inside};
use super::state::Panel;
use super::{Attach, View, format};
use crate::config::Role;
use crate::sample::Tier;
use crate::verdict::{Cause, Headline, Kind, Resource, Verdict};

/// Cells of the labels `do`, `for`, `but`, `n/a`.
const LABEL: usize = 6;
/// The name of the GPU driver as a source of figures.
const DRIVER: &str = "nvml";
/// Shown before anything is known.
const FIRST: &str = "collecting the first samples";
/// Additional lines of a headline in large letters.
const EXTRA_HEADLINE_LINES: u16 = 2;

/// Returns the lines wanted, at least as many as are reserved.
pub(super) fn wanted(view: &View<'_>, width: u16) -> u16 {
    super::layout::count(lines(view, width).len()).max(view.room)
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let covers = view.verdict.map_or_else(
        || view.span(),
        |verdict| format!("last {}", format::span(verdict.seconds)),
    );
    let remark = if view.listed {
        "from the list of jobs".to_owned()
    } else if *view.attach == Attach::Ended {
        format!("job ended: the {covers} of it")
    } else {
        covers
    };
    let Inside { width, height, .. } = inside;
    // The headline keeps its size, even if other lines appear and disappear.
    let tall = inside.border == BorderStyle::Boxed
        && height >= usize::from(wanted(view, width) + EXTRA_HEADLINE_LINES);
    let mut lines = lines_within(view, inside);
    let large = large_headline(view, width).filter(|_| tall);
    let letters = large.is_some() && !view.config.ascii;
    let head = large.as_ref().map_or(1, |_| 1 + EXTRA_HEADLINE_LINES);
    if let Some(large) = large {
        lines.splice(..1, large);
    }
    if let Some(paint) = view.verdict.and_then(answer_colour).filter(|_| !letters) {
        let style = view.config.theme.style(paint).reversed();
        let head = lines.iter_mut().take(usize::from(head));
        head.for_each(|line| line.style = style);
    }
    Content::new("verdict", &remark, lines)
}

/// Returns the colour of the headline, which draws the eye to it. `None` if there is no answer yet.
fn answer_colour(verdict: &Verdict) -> Option<Role> {
    let answered = !matches!(verdict.kind, Kind::WarmingUp | Kind::Unknown);
    answered.then(|| paint(verdict))
}

/// Draws kind, number, cause and certainty in one line.
pub(super) fn first_line(view: &View<'_>, width: u16) -> Line<'static> {
    if let Some(verdict) = view.verdict {
        return headline(view, verdict, width);
    }
    view.row(width)
        .bold(Role::Unknown, Kind::WarmingUp.words())
        .item(2, &[(Role::Text, FIRST)])
        .line()
}

/// Returns how many more lines the verdict could fill with a large headline.
pub(super) fn extra_headline_lines(view: &View<'_>, width: u16) -> u16 {
    large_headline(view, width).map_or(0, |_| EXTRA_HEADLINE_LINES)
}

/// Draws the kind in large letters of its colour, and beside it the number, the cause and the certainty. In ASCII, draws a
/// bar of the same height instead. `None` if there is no room beside the letters.
fn large_headline(view: &View<'_>, width: u16) -> Option<Vec<Line<'static>>> {
    if view.config.ascii {
        return Some(vec![
            Line::default(),
            first_line(view, width),
            Line::default(),
        ]);
    }
    let (kind, paint, headline) = match view.verdict {
        None => (Kind::WarmingUp, Role::Unknown, None),
        Some(verdict) => {
            let headline = verdict.headline(view.figures());
            (verdict.kind, paint(verdict), Some(headline))
        }
    };
    let headline = headline.unwrap_or_else(|| Headline {
        loss: [FIRST; 3].map(str::to_owned),
        ..Headline::default()
    });
    let [long, ..] = headline.loss;
    let cause = headline.cause.map(|cause| format!("cause: {cause}"));
    // While warming up, the first line already shows the progress.
    let sure = headline.certainty.filter(|_| kind != Kind::WarmingUp);
    let sure = sure.map_or_else(String::new, |sure| format!(", {sure}"));
    let last = format!("{}{sure}", kind.words());
    let beside = [Some(long), cause, Some(last)].into_iter().flatten();
    let beside: Vec<String> = beside.chain([String::new()]).collect();
    let letters = large::lines(kind.words())?;
    let longest = beside.iter().map(|text| format::width(text)).max()?;
    let fits = letters[0].chars().count() + 3 + longest <= usize::from(width);
    let words = view.verdict.and_then(answer_colour).unwrap_or(Role::Text);
    let lines = letters.iter().zip(beside).map(|(letters, text)| {
        let mut row = view.row(width);
        row.space(1).text(paint, letters).space(1);
        row.bold(words, &text);
        row.line()
    });
    fits.then(|| lines.collect())
}

/// A sentence of the panel behind its label, and further facts beside it.
struct Statement<'v> {
    label: &'static str,
    text: &'v str,
    beside: Vec<&'v str>,
}

/// Returns all lines, the most important first.
pub(super) fn lines(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let inside = Inside {
        width,
        height: usize::MAX,
        border: BorderStyle::Bare,
    };
    lines_within(view, inside)
}

/// Returns the lines for which there is room. A statement is shown in full or not at all, except that evidence is cut
/// to one line, the first statement to the room, and another one to lines that a low screen would leave blank.
fn lines_within(view: &View<'_>, inside: Inside) -> Vec<Line<'static>> {
    let Inside { width, height, .. } = inside;
    let mut lines = vec![first_line(view, width)];
    let Some(verdict) = view.verdict else {
        return lines;
    };
    let room = usize::from(width).saturating_sub(LABEL);
    let missing = missing(view, verdict, room);
    // The first statement without room for all its lines, and its place.
    let mut left_out = None;
    for (place, statement) in statements(verdict, &missing).into_iter().enumerate() {
        let left = height.saturating_sub(lines.len());
        let parts = format::wrap(statement.text, room);
        let advises = statement.label == "do";
        let most = match statement.label {
            // The page of the verdict shows the evidence in full.
            "for" | "but" => 1,
            // A line is left for the evidence.
            _ if place == 0 => left - usize::from(advises && left > 2),
            _ => parts.len(),
        };
        let parts = joined(parts, most);
        if parts.len() > left {
            left_out.get_or_insert((lines.len(), statement, parts));
            continue;
        }
        lines.extend(drawn(view, verdict, width, &statement, &parts));
    }
    // On a low screen, its beginning is worth more than blank lines.
    let left = height.saturating_sub(lines.len());
    let cuts = inside.border == BorderStyle::Bare && left > 0;
    if let Some((place, statement, parts)) = left_out.filter(|_| cuts) {
        let parts = joined(parts, left);
        let cut = drawn(view, verdict, width, &statement, &parts);
        lines.splice(place..place, cut);
    }
    lines
}

/// Puts all lines from `most` on into one, which is cut when it is drawn.
fn joined(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if (1..lines.len()).contains(&most) {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(rest);
    }
    lines
}

/// Draws the lines of a statement.
fn drawn(
    view: &View<'_>,
    verdict: &Verdict,
    width: u16,
    statement: &Statement<'_>,
    parts: &[String],
) -> Vec<Line<'static>> {
    // The label of the advice has the verdict's colour: it is read next after the verdict.
    let name = match statement.label {
        "do" => paint(verdict),
        _ => Role::Dim,
    };
    let line = |(number, part): (usize, &String)| {
        let label = if number == 0 { statement.label } else { "" };
        let mut row = view.row(width);
        row.padded(name, label, LABEL).sentence(Role::Text, part);
        for fact in &statement.beside {
            row.item(3, &[(Role::Text, fact)]);
        }
        row.line()
    };
    parts.iter().enumerate().map(line).collect()
}

/// Returns the statements below the headline, the most important first.
fn statements<'v>(verdict: &'v Verdict, missing: &'v [String]) -> Vec<Statement<'v>> {
    let alone = |label, text| Statement {
        label,
        text,
        beside: vec![],
    };
    let facts = |label, supports| {
        let facts = verdict.evidence.iter();
        let facts = facts.filter(|fact| fact.supports == supports);
        let mut facts = facts.map(|fact| fact.text.as_str());
        let text = facts.next()?;
        let beside = facts.collect();
        Some(Statement {
            label,
            text,
            beside,
        })
    };
    let mut advice = verdict.advice.iter().map(String::as_str);
    let first = advice.next().map(|text| alone("do", text));
    let facts = [("for", true), ("but", false)].map(|(label, supports)| facts(label, supports));
    let also = advice.take(2).map(|text| alone("also", text));
    let missing = missing.iter().map(|text| alone(format::UNKNOWN, text));
    let all = first.into_iter().chain(facts.into_iter().flatten());
    all.chain(also).chain(missing).collect()
}

/// Returns what data the verdict lacked, at most two items.
fn missing(view: &View<'_>, verdict: &Verdict, room: usize) -> Vec<String> {
    // Little can be seen of a job that belongs to another user.
    let foreign = view.job().is_some_and(|job| job.access == Tier::T0);
    let parts: Vec<(&str, &str, &str)> = if verdict.missing.is_empty() && foreign {
        let gaps = view.gaps.iter().filter(|gap| !gap.hint.is_empty());
        gaps.map(|gap| (gap.source.as_str(), gap.reason.as_str(), gap.hint.as_str()))
            .collect()
    } else {
        let missing = verdict.missing.iter();
        missing
            .map(|gap| (gap.id.as_str(), gap.why.as_str(), gap.hint.as_str()))
            .collect()
    };
    // If the job reports its device, the missing driver does not matter.
    let reports_device = view.rank().is_some_and(|rank| rank.device.is_some());
    parts
        .into_iter()
        .filter(|(what, ..)| !reports_device || *what != DRIVER)
        .take(2)
        .map(|(what, why, hint)| {
            let alone = format!("{what}: {why}");
            let text = format!("{alone}; {hint}");
            // The panel of the GPUs also shows the hint about the driver.
            let cut = what == DRIVER && format::width(&text) > room;
            if cut || hint.is_empty() { alone } else { text }
        })
        .collect()
}

fn headline(view: &View<'_>, verdict: &Verdict, width: u16) -> Line<'static> {
    let paint = paint(verdict);
    let Headline {
        kind,
        loss: [long, medium, short],
        cause,
        certainty,
    } = verdict.headline(view.figures());
    // While warming up, the next line shows the progress.
    let sure = certainty.filter(|_| verdict.warming_up.is_none());
    let sure_cells = sure.as_ref().map_or(0, String::len);
    let mut row = view.row(width);
    let cause = cause.as_deref();
    row.bold(paint, &kind);

    // If everything fits, the certainty is at the right edge.
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

/// Returns the panel for the resource that the job lacks. `None` if no panel matters more.
pub(super) fn relevant(view: &View<'_>) -> Option<Panel> {
    let verdict = view.verdict?;
    match (verdict.kind, verdict.cause.map(Cause::resource)) {
        (Kind::ComputeBound, _) => Some(Panel::Gpu),
        (Kind::DataBound, Some(Resource::Input)) => Some(Panel::Disk),
        _ => None,
    }
}

/// Returns the colour of the resource that the job lacks.
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
