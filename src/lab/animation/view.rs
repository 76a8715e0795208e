//! The simulation as it moves: loaders, the data queue, the trainer, in the order of a batch's way.
//!
//! ```text
//!  settings                                                        speed, paused
//! ─ loaders ──────────────────────────────────────────────────────────────────────
//!  each with the part of its batch that is done, in its own hue
//! ─ data queue ───────────────────────────────────────────────────────────────────
//!  batches that are ready, with number and hue of the loader that made them
//! ─ trainer ──────────────────────────────────────────────────────────────────────
//!  the batch in its step; the steps before it, with the waits between them
//! ─ so far ───────────────────────────────────────────────────────────────────────
//!  time, batches, share stalled
//!  keys
//! ```
//!
//! Knows no clock; what is shown is what the simulation and its past say.

mod figures;
mod footer;
mod header;
mod loaders;
mod queue;
mod region;
mod trainer;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::ui::layout::{BorderStyle, border};
use crate::ui::panel;

use region::RegionSize;
pub(super) use region::{PastMoment, SimulationView};

/// Draws the whole screen.
pub(super) fn draw(view: &SimulationView<'_>, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let border = border(area);
    let around = match border {
        BorderStyle::Boxed => 2,
        BorderStyle::Ruled => 1,
        BorderStyle::Bare => 0,
    };
    let mut rest = area;
    let lines = lines(area.height, around, view.simulation.settings().workers);
    header::draw(view, frame, cut(&mut rest, lines.header));
    let regions: [(&str, u16, Draw); 4] = [
        ("loaders", lines.loaders, loaders::draw),
        ("data queue", lines.queue, queue::draw),
        ("trainer", lines.trainer, trainer::draw),
        ("so far", lines.figures, figures::draw),
    ];
    for (name, lines, draw) in regions {
        if lines == 0 {
            continue;
        }
        let area = cut(&mut rest, lines + around);
        let inner = panel::set_off(
            view.config,
            frame,
            area,
            border,
            (false, name),
            &remark(view, name),
        );
        let inner = match border {
            BorderStyle::Boxed => inner,
            // A cell of air, as on the right.
            _ => Rect {
                x: inner.x + u16::from(inner.width > 0),
                width: inner.width.saturating_sub(1),
                ..inner
            },
        };
        let room = RegionSize {
            width: inner.width,
            lines: usize::from(inner.height),
            unnamed: border == BorderStyle::Bare,
        };
        let drawn = draw(view, room);
        panel::write(frame, inner, drawn);
    }
    let foot = Rect {
        y: area.bottom() - lines.footer,
        height: lines.footer,
        ..area
    };
    footer::draw(view, frame, foot);
}

/// Gives the lines of a region.
type Draw = fn(&SimulationView<'_>, RegionSize) -> Vec<Line<'static>>;

/// Lines of each region, without what sets it off.
#[derive(Debug, Default)]
struct RegionLines {
    header: u16,
    loaders: u16,
    queue: u16,
    trainer: u16,
    figures: u16,
    footer: u16,
}

/// What tells most gets its line first, so that it is the last to go; then each region gets its further lines.
fn lines(height: u16, around: u16, workers: u32) -> RegionLines {
    let mut lines = RegionLines::default();
    let mut left = height;
    let mut give = |to: &mut u16, wanted: u16, around: u16| {
        let first = if *to == 0 { around } else { 0 };
        let given = wanted.min(left.saturating_sub(first));
        if given > 0 {
            left -= given + first;
            *to += given;
        }
    };
    give(&mut lines.figures, 1, around);
    give(&mut lines.trainer, 1, around);
    give(&mut lines.loaders, 1, around);
    give(&mut lines.queue, 1, around);
    give(&mut lines.footer, 1, 0);
    give(&mut lines.header, 1, 0);
    give(&mut lines.trainer, 1, 0);
    give(&mut lines.queue, 1, 0);
    let workers = u16::try_from(workers).unwrap_or(u16::MAX);
    give(&mut lines.loaders, workers.saturating_sub(1), 0);
    lines
}

/// Cuts `height` lines, or what there is, from the top.
fn cut(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    rest.y += height;
    rest.height -= height;
    taken
}

fn remark(view: &SimulationView<'_>, name: &str) -> String {
    match name {
        "data queue" => queue::remark(view),
        "trainer" => trainer::remark(view),
        _ => String::new(),
    }
}
