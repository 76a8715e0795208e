//! The position of each panel: a pure function of the screen size and of how much there is to show.
//!
//! Holds sizes only; does not depend on figures or colours.

use ratatui::layout::Rect;

use super::state::Panel;

/// Least width and height for more than the verdict in one line.
const SMALLEST: (u16, u16) = (40, 10);
/// Least width and height at which panels have boxes, with GPU and disk side by side.
const BOXED: (u16, u16) = (100, 26);
/// Least height at which each panel has a rule with its name.
const RULED: u16 = 18;

/// Least height, with boxes, at which the timeline has a panel. On a lower screen it has one while it is focused.
const ROOM_FOR_TIMELINE: u16 = 34;

/// Least number of lines at which one of several GPUs is shown in full: with fewer, the others are more important.
pub(super) const ROOM_FOR_ONE: u16 = 10;

/// How a panel is separated from its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BorderStyle {
    Boxed,
    /// A line with the panel's name above it.
    Ruled,
    /// Nothing: the panel's line contains its name.
    Bare,
}

/// How many lines each panel could fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeHints {
    /// Indexed by `Panel as usize`; the workers without the line of column names. 0 = there is nothing to show.
    pub lines: PanelLines,
    /// Lines of the verdict with a headline in large letters.
    pub verdict_tall: u16,
    /// Lines of the pipeline that are for loaders other than the first.
    pub loaders: u16,
    /// Number of GPUs.
    pub gpus: u16,
    /// Lines of the GPUs with one of several in full, and with each in full. Somewhat fewer lines show almost nothing
    /// more.
    pub gpus_open: u16,
    pub gpus_in_full: u16,
    /// The focused panel: it is enlarged first.
    pub focus: Panel,
    /// The panel that the verdict is about: it is enlarged next.
    pub relevant: Option<Panel>,
}

impl SizeHints {
    fn of(&self, panel: Panel) -> u16 {
        self.lines[panel as usize]
    }
}

/// The area of each part of the screen. An empty area is not drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regions {
    pub border: BorderStyle,
    pub header: Rect,
    pub footer: Rect,
    panels: [Rect; Panel::ALL.len()],
}

impl Regions {
    pub fn panel(&self, panel: Panel) -> Rect {
        self.panels[panel as usize]
    }
}

/// Whether there is room only for the verdict, in one line.
pub(super) fn is_too_small(area: Rect) -> bool {
    area.width < SMALLEST.0 || area.height < SMALLEST.1
}

/// Returns how panels are separated on a screen of this size.
pub(crate) fn border(area: Rect) -> BorderStyle {
    if area.width >= BOXED.0 && area.height >= BOXED.1 {
        BorderStyle::Boxed
    } else if area.width >= SMALLEST.0 && area.height >= RULED {
        BorderStyle::Ruled
    } else {
        BorderStyle::Bare
    }
}

/// Whether a screen of this size has a timeline, whatever panel is focused.
pub(super) fn shows_timeline(area: Rect) -> bool {
    border(area) == BorderStyle::Boxed && area.height >= ROOM_FOR_TIMELINE
}

/// Panels that are shown even if they have nothing to show.
const ALWAYS: [Panel; 6] = [
    Panel::Verdict,
    Panel::Pipeline,
    Panel::Gpu,
    Panel::Workers,
    Panel::Disk,
    Panel::History,
];

/// Lines inside each panel, indexed by `Panel as usize`; 0 = not shown.
type PanelLines = [u16; Panel::ALL.len()];

/// Divides the screen among the panels.
pub fn regions(area: Rect, wants: &SizeHints) -> Regions {
    let border = border(area);
    let mut lines = PanelLines::default();
    if is_too_small(area) {
        lines[Panel::Verdict as usize] = area.height.min(1);
        return place(area, border, &lines, 0);
    }
    for panel in Panel::ALL {
        let says = ALWAYS.contains(&panel) || wants.of(panel) > 0;
        let fits = panel != Panel::Timeline || shows_timeline(area) || wants.focus == panel;
        let there = says && fits;
        lines[panel as usize] = u16::from(there);
    }
    // Header and footer have one line each. On a low screen, some panels that are not always shown get no line.
    let room = area.height - 2;
    for panel in Panel::ALL.into_iter().rev() {
        let may_go = !ALWAYS.contains(&panel) && panel != Panel::Log && panel != wants.focus;
        if may_go && height(border, &lines) > room {
            lines[panel as usize] = 0;
        }
    }
    for (panel, target) in steps(border, wants) {
        let place = panel as usize;
        while lines[place] > 0 {
            let before = lines[place];
            lines[place] = next(panel, before, wants);
            if panel == Panel::Workers && before == 1 {
                // Column names and a single worker take two lines.
                lines[place] = lines[place].min(target.max(2));
            }
            if lines[place] > target || height(border, &lines) > room {
                lines[place] = before;
                break;
            }
        }
    }
    // Remaining lines go to the history, so that there is no empty band above the footer.
    lines[Panel::History as usize] += room.saturating_sub(height(border, &lines));
    place(area, border, &lines, 1)
}

/// Returns the next number of lines at which a panel shows more.
fn next(panel: Panel, lines: u16, wants: &SizeHints) -> u16 {
    match (panel, lines) {
        // After one line for all workers come column names and a line per worker.
        (Panel::Workers, 1) => 3,
        (Panel::Verdict, lines) if lines == wants.of(Panel::Verdict) => {
            wants.verdict_tall.max(lines + 1)
        }
        (Panel::Gpu, lines) if (wants.of(Panel::Gpu)..wants.gpus_open).contains(&lines) => {
            wants.gpus_open.min(ROOM_FOR_ONE).max(lines + 1)
        }
        (Panel::Gpu, 2..) if lines < wants.gpus && wants.gpus == wants.of(Panel::Gpu) => {
            // Several GPUs in a line: more lines show more only if there are fewer columns.
            let columns = wants.gpus.div_ceil(lines);
            wants.gpus.div_ceil(columns - 1)
        }
        (Panel::Gpu, lines) if lines >= wants.of(Panel::Gpu) => wants.gpus_in_full.max(lines + 1),
        (Panel::History, 2..) => next_history(lines, wants.of(Panel::History)),
        _ => lines.saturating_add(1),
    }
}

/// Returns the next number of lines: one per figure, two, three, then three with a blank line between figures.
fn next_history(lines: u16, figures: u16) -> u16 {
    let figures = figures.clamp(2, 4);
    let steps = [figures, 2 * figures, 3 * figures, 4 * figures - 1];
    steps
        .into_iter()
        .find(|step| *step > lines)
        .unwrap_or(lines.saturating_add(figures))
}

/// Returns the order in which panels grow beyond one line, the most useful line first.
fn steps(border: BorderStyle, wants: &SizeHints) -> Vec<(Panel, u16)> {
    let gpus = wants.of(Panel::Gpu).max(1);
    let figures = wants.of(Panel::History).clamp(2, 4);
    let all_workers = wants.of(Panel::Workers).saturating_add(1);
    let timeline = |most| (Panel::Timeline, wants.of(Panel::Timeline).min(most));
    if border == BorderStyle::Bare {
        return bare_steps(wants);
    }
    // The flow, a bar for the workers and one for the trainer; with less room, the flow and one line for both.
    let bars = if border == BorderStyle::Boxed { 3 } else { 2 };
    let strip = bars + wants.loaders.min(2);
    // With many ranks, the line of a single worker says little; the timeline shows which worker is slow.
    let ranks = wants.of(Panel::Pipeline).saturating_sub(3 + wants.loaders);
    let crowded = border == BorderStyle::Boxed && ranks > 4 && wants.of(Panel::Timeline) > 1;
    let mut steps = vec![
        (Panel::Verdict, wants.of(Panel::Verdict).min(3)),
        (Panel::Workers, if crowded { 1 } else { all_workers.min(3) }),
        (Panel::History, 2),
        (Panel::Log, wants.of(Panel::Log).min(2)),
    ];
    steps.push(if border == BorderStyle::Boxed {
        // Room for a line per rank.
        (Panel::Pipeline, wants.of(Panel::Pipeline).min(12))
    } else {
        // In narrow lines, advice and evidence take several lines each.
        (Panel::Verdict, wants.of(Panel::Verdict).min(7))
    });
    if crowded {
        steps.extend([(Panel::Gpu, gpus.min(3)), timeline(5)]);
    }
    steps.extend([
        (Panel::Workers, all_workers.min(5)),
        (Panel::Verdict, wants.of(Panel::Verdict).min(4)),
        (Panel::Pipeline, wants.of(Panel::Pipeline).min(strip)),
        (Panel::Verdict, wants.of(Panel::Verdict).min(5)),
    ]);
    if border == BorderStyle::Boxed || gpus < 4 {
        steps.push((Panel::Gpu, gpus.min(3)));
    }
    steps.push(timeline(7));
    if border == BorderStyle::Boxed {
        steps.push((Panel::Verdict, wants.verdict_tall));
        steps.push((Panel::Gpu, gpus.min(4)));
        // Room for the queue and a worker of each loader.
        steps.push(timeline(7 + wants.loaders.min(4)));
    }
    let first = |panel| match panel {
        Panel::Gpu => (Panel::Gpu, wants.gpus_open.max(gpus)),
        Panel::Workers => (Panel::Workers, all_workers.min(17)),
        Panel::Timeline => timeline(20),
        Panel::History => (Panel::History, 2 * figures),
        Panel::Log => (Panel::Log, wants.of(Panel::Log).min(20)),
        _ => (panel, wants.of(panel)),
    };
    steps.push(first(wants.focus));
    steps.extend(wants.relevant.map(first));
    steps.extend([
        (Panel::Disk, 2),
        (Panel::Log, wants.of(Panel::Log).min(4)),
        (Panel::Gpu, gpus.min(8)),
        (Panel::Disk, wants.of(Panel::Disk).min(4)),
        timeline(11),
        (Panel::Workers, all_workers.min(9)),
        (Panel::Pipeline, wants.of(Panel::Pipeline)),
        (Panel::Verdict, wants.of(Panel::Verdict)),
        (Panel::Gpu, gpus),
        (Panel::History, figures),
        timeline(20),
        (Panel::Log, wants.of(Panel::Log).min(8)),
        (Panel::Workers, all_workers.min(33)),
        (Panel::Disk, wants.of(Panel::Disk)),
        (Panel::Gpu, wants.gpus_in_full),
        (Panel::History, 5 * figures - 1),
        (Panel::Timeline, wants.of(Panel::Timeline)),
        (Panel::Workers, all_workers),
        (Panel::History, 8 * figures - 1),
    ]);
    // Finally, every panel gets all lines that it could fill.
    steps.extend(Panel::ALL.map(|panel| (panel, wants.of(panel))));
    steps
}

/// Returns the same order for a screen on which panels have no rules.
fn bare_steps(wants: &SizeHints) -> Vec<(Panel, u16)> {
    let all_workers = wants.of(Panel::Workers).saturating_add(1);
    vec![
        (Panel::Verdict, wants.of(Panel::Verdict).min(3)),
        (Panel::Log, wants.of(Panel::Log).min(3)),
        (Panel::Workers, all_workers.min(5)),
        (Panel::Verdict, wants.of(Panel::Verdict).min(4)),
        (Panel::Workers, all_workers),
        (Panel::History, 2),
        (Panel::Verdict, wants.of(Panel::Verdict)),
        (Panel::Log, wants.of(Panel::Log).min(8)),
        (Panel::Pipeline, wants.of(Panel::Pipeline).min(2)),
        (Panel::Disk, wants.of(Panel::Disk).min(2)),
    ]
}

/// Returns the lines of a panel including its box or rule.
fn height_with_border(border: BorderStyle, panel: Panel, lines: u16) -> u16 {
    match (border, panel) {
        _ if lines == 0 => 0,
        (BorderStyle::Boxed, _) => lines.saturating_add(2),
        (BorderStyle::Ruled, Panel::Verdict) | (BorderStyle::Bare, _) => lines,
        (BorderStyle::Ruled, _) => lines.saturating_add(1),
    }
}

/// Returns the lines of all panels together.
fn height(border: BorderStyle, lines: &PanelLines) -> u16 {
    let of = |panel: Panel| height_with_border(border, panel, lines[panel as usize]);
    let beside = match border {
        BorderStyle::Boxed => of(Panel::Gpu).min(of(Panel::Disk)),
        _ => 0,
    };
    Panel::ALL
        .iter()
        .fold(0_u16, |sum, panel| sum.saturating_add(of(*panel)))
        .saturating_sub(beside)
}

/// Puts the panels below each other, between header and footer, which have `around` lines each.
fn place(area: Rect, border: BorderStyle, lines: &PanelLines, around: u16) -> Regions {
    let mut rest = area;
    let header = take(&mut rest, around);
    let footer = take_last(&mut rest, around);
    let mut panels = [Rect::default(); Panel::ALL.len()];
    for panel in Panel::ALL {
        let own = height_with_border(border, panel, lines[panel as usize]);
        panels[panel as usize] = match (border, panel) {
            (BorderStyle::Boxed, Panel::Gpu) => {
                let disk = height_with_border(border, Panel::Disk, lines[Panel::Disk as usize]);
                let both = take(&mut rest, own.max(disk));
                let left = both.width.div_ceil(2);
                panels[Panel::Disk as usize] = indented(both, left);
                both.resize((left, both.height).into())
            }
            (BorderStyle::Boxed, Panel::Disk) => continue,
            _ => take(&mut rest, own),
        };
    }
    Regions {
        border,
        header,
        footer,
        panels,
    }
}

impl BorderStyle {
    /// Returns the style of a region that has a box if there is room for it.
    pub(super) fn boxed_if(room: bool) -> Self {
        if room { Self::Boxed } else { Self::Bare }
    }

    /// Returns the number of blank cells before each line; the margin of a box already has them.
    pub(super) fn indent(self) -> usize {
        usize::from(self != Self::Boxed)
    }
}

/// Cuts at most `height` lines from the bottom.
pub(crate) fn take_last(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    rest.height -= height;
    Rect {
        y: rest.bottom(),
        height,
        ..*rest
    }
}

/// Leaves out the first cells of each line.
pub(super) fn indented(area: Rect, cells: u16) -> Rect {
    let cells = cells.min(area.width);
    Rect {
        x: area.x + cells,
        width: area.width - cells,
        ..area
    }
}

/// Cuts at most `height` lines from the top.
pub(crate) fn take(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    rest.y += height;
    rest.height -= height;
    taken
}

/// Converts a number of lines for the layout.
pub(super) fn count(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}
