//! Where each panel stands: a pure function of the room and of how much there is to show.
//!
//! Knows sizes alone; no figure, no colour.

use ratatui::layout::Rect;

use super::state::Panel;

/// Narrower or lower than this there is room for the verdict alone, in one line.
const SMALLEST: (u16, u16) = (40, 10);
/// From this size on, panels stand in boxes, GPU and disk side by side.
const BOXED: (u16, u16) = (100, 26);
/// From this height on, each panel has a rule with its name.
const RULED: u16 = 18;

/// From this height on, in boxes, the newest seconds have a panel of their own; lower, where it has the keys.
const ROOM_FOR_TIMELINE: u16 = 34;

/// Lines from which on one of several GPUs is shown in full: with fewer, the others matter more.
pub(super) const ROOM_FOR_ONE: u16 = 10;

/// How a panel is set off from its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BorderStyle {
    Boxed,
    /// A line with the panel's name above it.
    Ruled,
    /// Nothing: the panel names itself in its line.
    Bare,
}

/// How many lines each part could fill. At least 1 where there is anything to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeHints {
    pub verdict: u16,
    pub pipeline: u16,
    /// Of the pipeline's lines, those of loaders beside the first.
    pub other_loaders: u16,
    pub gpus: u16,
    /// With one of several GPUs in full, and with each; next to nothing is gained by fewer lines than that.
    pub gpus_open: u16,
    pub gpus_in_full: u16,
    /// Without the line of column names.
    pub workers: u16,
    pub disk: u16,
    /// All whose polls are shown, a line each; 0 = nobody was looked at.
    pub timeline: u16,
    /// Figures of the past, one line each at least.
    pub history: u16,
    /// Lines that a launched command has printed; 0 = there is no such command.
    pub log: u16,
    /// The panel that has the keys: it gets room first.
    pub focus: Panel,
    /// The panel that shows what the verdict speaks of: it gets room next.
    pub matters: Option<Panel>,
}

/// Where everything stands. An empty area is not drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regions {
    pub border: BorderStyle,
    pub header: Rect,
    pub footer: Rect,
    panels: [Rect; 8],
}

impl Regions {
    pub fn panel(&self, panel: Panel) -> Rect {
        self.panels[panel as usize]
    }

    /// Every area, drawn or not.
    #[cfg(feature = "testing")]
    pub fn all(&self) -> impl Iterator<Item = Rect> + '_ {
        [self.header, self.footer].into_iter().chain(self.panels)
    }
}

/// There is room for one line alone, and that is the verdict's.
pub(super) fn is_too_small(area: Rect) -> bool {
    area.width < SMALLEST.0 || area.height < SMALLEST.1
}

/// How panels are set off on a screen of this size.
pub(crate) fn border(area: Rect) -> BorderStyle {
    if area.width >= BOXED.0 && area.height >= BOXED.1 {
        BorderStyle::Boxed
    } else if area.width >= SMALLEST.0 && area.height >= RULED {
        BorderStyle::Ruled
    } else {
        BorderStyle::Bare
    }
}

/// The timeline has a panel on a screen of this size, whoever has the keys.
pub(super) fn shows_timeline(area: Rect) -> bool {
    border(area) == BorderStyle::Boxed && area.height >= ROOM_FOR_TIMELINE
}

/// Lines inside each panel, by `Panel as usize`; 0 = not shown.
type Lines = [u16; 8];

/// Divides the room.
pub fn regions(area: Rect, wants: &SizeHints) -> Regions {
    let border = border(area);
    let mut lines: Lines = [0; 8];
    if is_too_small(area) {
        lines[Panel::Verdict as usize] = area.height.min(1);
        return place(area, border, &lines, false, false);
    }
    for panel in Panel::ALL {
        let there = match panel {
            Panel::Log => wants.log > 0,
            Panel::Timeline => wants.timeline > 0 && (shows_timeline(area) || wants.focus == panel),
            _ => true,
        };
        lines[panel as usize] = u16::from(there);
    }
    // Header and footer have a line each; so has every panel, in the smallest room, too.
    let room = area.height - 2;
    for (panel, target) in steps(border, wants) {
        let place = panel as usize;
        while lines[place] > 0 {
            let before = lines[place];
            lines[place] = next(panel, before, wants);
            if panel == Panel::Workers && before == 1 {
                // Column names and a single worker.
                lines[place] = lines[place].min(target.max(2));
            }
            if lines[place] > target || height(border, &lines) > room {
                lines[place] = before;
                break;
            }
        }
    }
    // What nobody could use up is the past's: no empty band above the footer.
    if border != BorderStyle::Bare {
        lines[Panel::History as usize] += room.saturating_sub(height(border, &lines));
    }
    place(area, border, &lines, true, true)
}

/// The next number of lines at which a panel shows more.
fn next(panel: Panel, lines: u16, wants: &SizeHints) -> u16 {
    match (panel, lines) {
        // From one line for all to column names and workers.
        (Panel::Workers, 1) => 3,
        (Panel::Gpu, lines) if (wants.gpus..wants.gpus_open).contains(&lines) => {
            wants.gpus_open.min(ROOM_FOR_ONE).max(lines + 1)
        }
        (Panel::Gpu, lines) if lines >= wants.gpus => wants.gpus_in_full.max(lines + 1),
        (Panel::History, 2..) => next_history(lines, wants.history),
        _ => lines.saturating_add(1),
    }
}

/// One line for each figure, two, three, then more with air between them.
fn next_history(lines: u16, figures: u16) -> u16 {
    let figures = figures.clamp(2, 4);
    let steps = [figures, 2 * figures, 3 * figures, 4 * figures - 1];
    steps
        .into_iter()
        .find(|step| *step > lines)
        .unwrap_or(lines.saturating_add(figures))
}

/// How panels grow beyond one line, the most useful line first.
fn steps(border: BorderStyle, wants: &SizeHints) -> Vec<(Panel, u16)> {
    let gpus = wants.gpus.max(1);
    let figures = wants.history.clamp(2, 4);
    let all_workers = wants.workers.saturating_add(1);
    if border == BorderStyle::Bare {
        return vec![
            (Panel::Verdict, wants.verdict.min(3)),
            (Panel::Log, wants.log.min(3)),
            (Panel::Workers, all_workers.min(5)),
            (Panel::Verdict, wants.verdict.min(4)),
            (Panel::Workers, all_workers),
            (Panel::History, 2),
        ];
    }
    // Beside the way of a batch a bar for the workers and one for the trainer; in less room, one for both.
    let bars = if border == BorderStyle::Boxed { 3 } else { 2 };
    let mut steps = vec![
        (Panel::Verdict, wants.verdict.min(3)),
        (Panel::Workers, all_workers.min(3)),
        (Panel::History, 2),
        (Panel::Log, wants.log.min(2)),
        (Panel::Workers, all_workers.min(5)),
        (Panel::Verdict, wants.verdict.min(4)),
        (
            Panel::Pipeline,
            wants.pipeline.min(bars + wants.other_loaders.min(2)),
        ),
        (Panel::Verdict, wants.verdict.min(5)),
    ];
    if border == BorderStyle::Boxed || gpus < 4 {
        steps.push((Panel::Gpu, gpus.min(4)));
    }
    if border == BorderStyle::Boxed {
        // Of several ranks a line each.
        steps.push((Panel::Pipeline, wants.pipeline.min(12)));
    }
    steps.push((Panel::Timeline, wants.timeline.min(7)));
    let first = |panel| match panel {
        Panel::Verdict => (Panel::Verdict, wants.verdict),
        Panel::Pipeline => (Panel::Pipeline, wants.pipeline),
        Panel::Gpu => (Panel::Gpu, wants.gpus_open.max(gpus)),
        Panel::Workers => (Panel::Workers, all_workers.min(17)),
        Panel::Disk => (Panel::Disk, wants.disk),
        Panel::Timeline => (Panel::Timeline, wants.timeline.min(20)),
        Panel::History => (Panel::History, 2 * figures),
        Panel::Log => (Panel::Log, wants.log.min(20)),
    };
    steps.push(first(wants.focus));
    steps.extend(wants.matters.map(first));
    steps.extend([
        (Panel::Disk, 2),
        (Panel::Log, wants.log.min(4)),
        (Panel::Gpu, gpus.min(8)),
        (Panel::Disk, wants.disk.min(4)),
        (Panel::Timeline, wants.timeline.min(11)),
        (Panel::Workers, all_workers.min(9)),
        (Panel::Pipeline, wants.pipeline),
        (Panel::Verdict, wants.verdict),
        (Panel::Gpu, gpus),
        (Panel::History, figures),
        (Panel::Timeline, wants.timeline.min(20)),
        (Panel::Log, wants.log.min(8)),
        (Panel::Workers, all_workers.min(33)),
        (Panel::Disk, wants.disk),
        (Panel::Gpu, wants.gpus_in_full),
        (Panel::History, 5 * figures - 1),
        (Panel::Timeline, wants.timeline),
        (Panel::Workers, all_workers),
        (Panel::History, 8 * figures - 1),
        (Panel::Log, wants.log),
    ]);
    steps
}

/// Lines that a panel takes with what sets it off.
fn outer(border: BorderStyle, panel: Panel, lines: u16) -> u16 {
    match (border, panel) {
        _ if lines == 0 => 0,
        (BorderStyle::Boxed, _) => lines.saturating_add(2),
        (BorderStyle::Ruled, Panel::Verdict) | (BorderStyle::Bare, _) => lines,
        (BorderStyle::Ruled, _) => lines.saturating_add(1),
    }
}

/// Lines that all panels take together.
fn height(border: BorderStyle, lines: &Lines) -> u16 {
    let of = |panel: Panel| outer(border, panel, lines[panel as usize]);
    let beside = match border {
        BorderStyle::Boxed => of(Panel::Gpu).min(of(Panel::Disk)),
        _ => 0,
    };
    Panel::ALL
        .iter()
        .fold(0_u16, |sum, panel| sum.saturating_add(of(*panel)))
        .saturating_sub(beside)
}

fn place(area: Rect, border: BorderStyle, lines: &Lines, header: bool, footer: bool) -> Regions {
    let mut rest = area;
    let header = take(&mut rest, u16::from(header));
    let footer_height = u16::from(footer).min(rest.height);
    rest.height -= footer_height;
    let footer = Rect {
        y: rest.bottom(),
        height: footer_height,
        ..rest
    };
    let mut panels = [Rect::default(); 8];
    for panel in Panel::ALL {
        let own = outer(border, panel, lines[panel as usize]);
        panels[panel as usize] = match (border, panel) {
            (BorderStyle::Boxed, Panel::Gpu) => {
                let disk = outer(border, Panel::Disk, lines[Panel::Disk as usize]);
                let both = take(&mut rest, own.max(disk));
                let left = both.width.div_ceil(2);
                panels[Panel::Disk as usize] = Rect {
                    x: both.x + left,
                    width: both.width - left,
                    ..both
                };
                Rect {
                    width: left,
                    ..both
                }
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

/// Cuts `height` lines, or what there is, from the top.
fn take(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    rest.y += height;
    rest.height -= height;
    taken
}

/// A number of lines for the layout.
pub(super) fn count(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}
