//! A row of the timeline for a worker, the queue, the trainer or a GPU: its name, its cells and its figure.

use ratatui::style::Style;
use ratatui::text::Line;

use super::cells::{self, TrainerCell};
use crate::config::Role::{self, Compute, Dim, Focus, Full, Text, Trouble, Unknown, Wait};
use crate::model::history::Point;
use crate::model::rates::{GpuRates, LoaderRates, RankRates, WorkerRates};
use crate::model::timeline::Slot;
use crate::model::{Axis, MarkKind, WorkerPlace};
use crate::sample::{LoaderKind, WorkerNow};
use crate::ui::glyphs::{GAP, doing};
use crate::ui::panel::Inside;
use crate::ui::{View, format, history};

/// Cells for the names on the left and the figures on the right.
pub(super) const LABEL: usize = 12;
pub(super) const FIGURE: usize = 13;

/// One row.
pub(super) struct TimelineRow {
    name: String,
    hue: Style,
    pub(super) cells: Vec<(Style, &'static str)>,
    figure: (Role, String),
    /// The reason that is shown if nothing is known.
    why: &'static str,
}

/// The time that is drawn.
pub(super) struct Scale {
    pub(super) axis: Axis,
    pub(super) cells: Vec<(f64, f64)>,
    /// Number of cells with a part of the polled time.
    pub(super) drawn: usize,
    /// The cell under the cursor.
    pub(super) cursor: Option<usize>,
    /// The first and the last slot of that time.
    pub(super) slots: (u64, u64),
    /// A cell is at least as long as a reading, so the history is fine enough.
    pub(super) coarse: bool,
}

/// Returns colour and sign of a worker's state; `None` = the worker's own hue. Few states have a colour of their own:
/// on a slow link, each change of colour costs as much as four cells.
pub(super) fn sign(view: &View<'_>, now: WorkerNow) -> (Option<Role>, &'static str) {
    match doing(now, view.glyphs()) {
        (Unknown, ..) => (Some(Unknown), GAP),
        (Trouble, _, sign) => (Some(Trouble), sign),
        (_, _, sign) => (None, sign),
    }
}

pub(super) fn worker_row(
    view: &View<'_>,
    rank: &RankRates,
    (loader, worker, slow): (&LoaderRates, &WorkerRates, bool),
    scale: &Scale,
) -> TimelineRow {
    let place = WorkerPlace::new(rank.key, loader.id, worker.id);
    let hue = view.config.theme.hue(worker.id);
    let seen = view.history.timeline().worker(place, scale.slots);
    let mut states = cells::most_frequent(&seen, scale.slots.0, &scale.cells);
    if scale.coarse {
        let past = view.history.states(&scale.axis, place);
        for (state, what) in states.iter_mut().zip(past) {
            *state = state.or(what.map(|what| Slot { what, bound: false }));
        }
    }
    let begins = cells::begins(view.history.timeline().batches(place), &scale.cells);
    let works = |state: Option<Slot<WorkerNow>>| {
        state.is_some_and(|slot| !matches!(slot.what, WorkerNow::Idle | WorkerNow::Unknown))
    };
    let cell = |(place, state): (usize, &Option<Slot<WorkerNow>>)| {
        let Some(Slot { what, bound }) = *state else {
            return (Style::new(), GAP);
        };
        let (paint, sign) = sign(view, what);
        let style = paint.map_or(hue, |paint| view.config.theme.style(paint));
        // Without this sign, two batches without a pause between them would look like one.
        let begins = begins.contains(&place) && place > 0 && works(states[place - 1]);
        let sign = if begins && works(*state) {
            view.glyphs().begin
        } else {
            sign
        };
        (if bound { style.dim() } else { style }, sign)
    };
    TimelineRow {
        name: format!("worker {}", view.worker_id(loader, worker.id)),
        hue,
        cells: states.iter().enumerate().map(cell).collect(),
        figure: (
            if slow { Trouble } else { Text },
            format!(
                "{}{:>7}",
                if slow { "slow " } else { "" },
                format::millis(worker.load_ms)
            ),
        ),
        why: "n/a  its state is not visible",
    }
}

pub(super) fn queue(
    view: &View<'_>,
    rank: &RankRates,
    loader: &LoaderRates,
    scale: &Scale,
) -> TimelineRow {
    let mean = loader.queue;
    let capacity = mean.and_then(|queue| queue.capacity);
    let seen = view
        .history
        .timeline()
        .queue(rank.key, loader.id, scale.slots);
    let ready = cells::mean(&seen, scale.slots.0, &scale.cells);
    let capacity = capacity.filter(|capacity| *capacity > 0);
    let mut shares: Vec<Option<f64>> = ready
        .into_iter()
        .map(|ready| Some(ready? / f64::from(capacity?)))
        .collect();
    let main = view.loader().is_some_and(|main| main.id == loader.id);
    if scale.coarse && main {
        let number = view.rank_number();
        let past = |point: &Point| point.rank(number)?.queue.get();
        let past = view.history.means(&scale.axis, past);
        for (share, past) in shares.iter_mut().zip(past) {
            *share = share.or(past);
        }
    }
    let figure = format::known(mean.map(format::ready));
    let name = match view.loader_number(loader) {
        Some(number) => format!("queue {number}"),
        None => "queue".to_owned(),
    };
    let why = match mean {
        Some(_) => "n/a  only the mean is known",
        None => "n/a  ready batches are not visible",
    };
    TimelineRow::of_shares(view, name, (Full, shares), figure, why)
}

pub(super) fn trainer(view: &View<'_>, rank: &RankRates, scale: &Scale) -> TimelineRow {
    let timeline = view.history.timeline();
    let seen = timeline.trainer(rank.key, scale.slots);
    let waits: Vec<_> = timeline.waits(rank.key).copied().collect();
    let worker_of = worker_of(view);
    let mut shown = cells::trainer(&seen, scale.slots.0, &waits, &scale.cells, worker_of);
    // Nothing is known after the last poll.
    for (cell, (from, _)) in shown.iter_mut().zip(&scale.cells) {
        if *from >= scale.axis.to() {
            *cell = None;
        }
    }
    if scale.coarse {
        let number = view.rank_number();
        let past = view.history.means(&scale.axis, |point| {
            point.rank(number)?.wait.get().map(|wait| 1.0 - wait)
        });
        for (cell, share) in shown.iter_mut().zip(past) {
            *cell = cell.or(share.map(|share| TrainerCell::Stepping {
                share,
                worker: None,
            }));
        }
    }
    let theme = &view.config.theme;
    let cell = |cell: Option<TrainerCell>| match cell {
        None => (Style::new(), GAP),
        Some(TrainerCell::Idle) => (theme.style(Wait), view.glyphs().sign(Wait)),
        Some(TrainerCell::Stopped) => (theme.style(Trouble), view.glyphs().sign(Trouble)),
        Some(TrainerCell::Stepping { share, worker }) => {
            let style = match worker {
                _ if share < 0.5 => theme.style(Trouble),
                Some(worker) => theme.hue(worker),
                None => theme.style(Compute),
            };
            (style, view.glyphs().level(share))
        }
    };
    let figure = format::known(rank.wait_share().map(|wait| format!("waits {wait}")));
    TimelineRow {
        name: "trainer".to_owned(),
        hue: theme.style(Dim),
        cells: shown.into_iter().map(cell).collect(),
        figure: (Text, figure),
        why: "n/a  steps and waits cannot be told apart",
    }
}

/// Returns a function that says which worker makes a batch. This is known if there is a single loader that hands out
/// batches in turn and delivers them in order, and if batches are counted over the whole time. A `DataLoader` begins
/// with its first worker in each epoch, so its worker is known only during the first.
pub(super) fn worker_of<'a>(view: &View<'a>) -> impl Fn(u64) -> Option<u32> + use<'a> {
    let alone = view.loaders().len() == 1;
    let loader = view.loader().filter(|loader| {
        let marks = view.history.marks().between(f64::MIN, f64::MAX);
        let mut kinds = marks.iter().map(|mark| mark.kind);
        let one_pass = !kinds.any(|kind| matches!(kind, MarkKind::Epoch | MarkKind::Validation));
        let in_order = loader.settings.in_order == Some(true);
        alone && in_order && (loader.kind == LoaderKind::Builtin || one_pass)
    });
    let workers = loader.and_then(|loader| loader.settings.num_workers);
    move |batch| {
        let workers = workers.filter(|workers| *workers > 0)?;
        u32::try_from(batch % u64::from(workers)).ok()
    }
}

pub(super) fn gpu_row(view: &View<'_>, place: usize, gpu: &GpuRates, scale: &Scale) -> TimelineRow {
    let util = |point: &Point| history::gpu_util(point, place);
    let shares = view.history.means(&scale.axis, util);
    let busy = gpu.util_percent.map(|util| format!("busy {util:.0} %"));
    let name = format!("GPU {}", gpu.now.index);
    let why = "n/a  the driver does not report its load";
    TimelineRow::of_shares(view, name, (Compute, shares), format::known(busy), why)
}

/// Returns the row of the device that the job reports, if the driver shows none.
pub(super) fn device_row(view: &View<'_>, scale: &Scale) -> Option<TimelineRow> {
    let device = view.device_alone()?;
    let number = view.rank_number();
    let busy = |point: &Point| point.rank(number)?.device_busy.get();
    let shares = (Compute, view.history.means(&scale.axis, busy));
    let figure = format!("busy {}", format::percent(device.busy));
    let why = "n/a  the job does not report how busy it is";
    let name = "device".to_owned();
    Some(TimelineRow::of_shares(view, name, shares, figure, why))
}

impl TimelineRow {
    /// Returns a row of bars whose heights are these shares.
    fn of_shares(
        view: &View<'_>,
        name: String,
        (paint, shares): (Role, Vec<Option<f64>>),
        figure: String,
        why: &'static str,
    ) -> Self {
        let (theme, glyphs) = (&view.config.theme, view.glyphs());
        let style = theme.style(paint);
        let sign = |share: Option<f64>| share.map_or(GAP, |share| glyphs.level(share));
        Self {
            name,
            hue: theme.style(Dim),
            cells: shares
                .into_iter()
                .map(|share| (style, sign(share)))
                .collect(),
            figure: (Text, figure),
            why,
        }
    }

    pub(super) fn line(
        mut self,
        view: &View<'_>,
        inside: Inside,
        (room, cursor): (usize, Option<usize>),
    ) -> Line<'static> {
        let (mut row, indent) = (inside.row(view), inside.border.indent());
        row.styled(self.hue, &self.name);
        row.to(indent + LABEL);
        if self.cells.iter().all(|(_, sign)| *sign == GAP) {
            row.text(Unknown, self.why);
        } else {
            if let Some(cell) = cursor.and_then(|cursor| self.cells.get_mut(cursor)) {
                *cell = (view.config.theme.style(Focus), view.glyphs().cursor);
            }
            row.signs(&self.cells);
        }
        row.to(indent + LABEL + room);
        row.right(self.figure.0, &self.figure.1, FIGURE);
        row.line()
    }
}
