//! What the regions of the animation are made from, and how large they are.

use std::collections::VecDeque;

use ratatui::style::{Modifier, Style};

use crate::config::Config;
use crate::lab::experiments::simulate::Simulation;
use crate::ui::glyphs;
use crate::ui::line_builder::LineBuilder;

/// Everything that one frame shows.
#[derive(Debug, Clone, Copy)]
pub(in crate::lab::animation) struct SimulationView<'a> {
    pub simulation: &'a Simulation,
    /// At equal distances in time, the newest last.
    pub past: &'a VecDeque<PastMoment>,
    /// Simulated seconds in a second.
    pub speed: f64,
    pub paused: bool,
    pub config: &'a Config,
}

/// What is kept of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lab::animation) struct PastMoment {
    /// Batches that were ready.
    pub ready: usize,
    /// The loader of the batch in its step; `None` while the trainer waited.
    pub training: Option<u32>,
}

/// The room of a region.
#[derive(Debug, Clone, Copy)]
pub(super) struct RegionSize {
    pub(super) width: u16,
    pub(super) lines: usize,
    /// Nothing around it says what it is.
    pub(super) unnamed: bool,
}

/// A part as a bar of `cells`.
pub(super) fn bar(row: &mut LineBuilder<'_>, style: Style, empty: Style, done: f64, cells: usize) {
    let full = (0..cells).filter(|cell| (*cell as f64 + 0.5) / (cells as f64) < done);
    let full = full.count();
    let glyphs = row.glyphs();
    row.styled(style, &glyphs.bar_full.repeat(full));
    row.styled(empty, &glyphs.bar_empty.repeat(cells - full));
}

impl SimulationView<'_> {
    pub(super) fn row(&self, width: u16) -> LineBuilder<'_> {
        LineBuilder::new(&self.config.theme, glyphs::of(self.config), width)
    }

    /// What a loader, and each batch that it made, is drawn in.
    pub(super) fn hue(&self, worker: u32) -> Style {
        self.config.theme.hue(worker)
    }

    /// A batch: the number of its loader on a ground of its hue.
    pub(super) fn batch(&self, worker: u32) -> Style {
        self.hue(worker).add_modifier(Modifier::REVERSED)
    }

    /// The newest moments that fit into `room` cells, behind as many empty cells as are left.
    pub(super) fn past(
        &self,
        row: &mut LineBuilder<'_>,
        room: usize,
    ) -> impl Iterator<Item = &PastMoment> {
        row.space(room.saturating_sub(self.past.len()));
        self.past.iter().skip(self.past.len().saturating_sub(room))
    }

    /// Cells that the number of a loader takes.
    pub(super) fn digits(&self) -> usize {
        let workers = self.simulation.settings().workers;
        workers.saturating_sub(1).to_string().len()
    }
}
