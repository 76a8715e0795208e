//! The path of a batch: the states of the workers, the slots of the queue, what the trainer does.

use ratatui::style::Style;
use ratatui::text::Line;

use crate::config::Role::{self, Compute, Cpu, Dim, Text, Trouble, Unknown, Wait};
use crate::model::WorkerPlace;
use crate::model::rates::{LoaderRates, QueueRates};
use crate::sample::LoaderKind;
use crate::ui::glyphs::{GAP, doing};
use crate::ui::line_builder::LineBuilder;
use crate::ui::view::Attach;
use crate::ui::{View, axis, format};
use crate::units::Share;
use crate::verdict::Kind;

/// Most boxes of the queue; a larger queue is drawn to scale.
const SLOTS: u32 = 16;

/// Draws workers, queue and trainer.
pub(super) fn flow(view: &View<'_>, width: u16, wide: bool, alone: bool) -> Line<'static> {
    let mut row = view.row(width);
    if !wide {
        row.space(1);
    }
    let Some(loader) = view.loader() else {
        let why = match view.figures() {
            None => "n/a  collecting the first samples",
            Some(_) => "n/a  no loader seen in this process yet",
        };
        row.text(Unknown, why);
        return row.line();
    };
    let (arrow, gap) = (view.glyphs().arrow, if wide { 3 } else { 2 });
    let state = trainer(view);
    let mut tail: LineBuilder<'_> = view.row(width);
    queue(view, &mut tail, wide, width);
    tail.item(gap, &[(Dim, arrow)]);
    let name = if wide { "trainer  " } else { "" };
    tail.item(gap, &[(Dim, name), (state.0, &state.1)]);
    if alone && width >= 60 {
        let step = view.rank().map(|rank| rank.step).unwrap_or_default();
        tail.figure(3, "step ", &format::millis(step.step_ms));
        tail.figure(2, "wait ", &format::millis(step.wait_ms));
    }
    let tail = tail.line();
    if wide {
        match view.loader_number(loader) {
            Some(_) => row.text(Dim, &loader.title()).space(1),
            None => row.text(Dim, "workers  "),
        };
    }
    let room = row.left().saturating_sub(tail.width() + gap);
    strip(view, loader, &mut row, room);
    row.space(gap);
    row.append(&tail);
    row.line()
}

/// Draws each worker's last states in its own hue: many cells for few workers, one for many.
fn strip(view: &View<'_>, loader: &LoaderRates, row: &mut LineBuilder<'_>, room: usize) {
    match loader.kind {
        LoaderKind::PytorchMain => {
            row.text(Text, "main thread");
            return;
        }
        LoaderKind::Reported | LoaderKind::Other if loader.workers.is_empty() => {
            row.text(Unknown, "n/a");
            return;
        }
        _ => {}
    }
    let Some(rank) = view.rank() else { return };
    let workers = &loader.workers;
    let digits = workers
        .iter()
        .map(|worker| worker.id.to_string().len())
        .max()
        .unwrap_or(1);
    let at = |id| WorkerPlace::new(rank.key, loader.id, id);
    let past = |id| view.history.has_worker(at(id));
    // If the past is not kept, one cell for the current state is enough.
    let lived = workers.iter().any(|worker| past(worker.id));
    let most = if lived { usize::MAX } else { 1 };
    let needed =
        |ticks: usize, label: usize, gap: usize| workers.len() * (ticks.min(most) + label + gap);
    let options = [
        (8, digits + 1, 3),
        (6, digits + 1, 2),
        (4, digits + 1, 2),
        (4, 0, 1),
        (2, 0, 1),
        (1, 0, 0),
    ];
    let (ticks, label, gap) = options
        .into_iter()
        .find(|(ticks, label, gap)| needed(*ticks, *label, *gap) <= room + gap)
        .unwrap_or((1, 0, 0));
    let ticks = ticks.min(most);
    let more = format!(" +{}", workers.len());
    let fits = if needed(ticks, label, gap) <= room + gap {
        workers.len()
    } else {
        room.saturating_sub(more.len())
    };
    let axis = axis::newest(view, ticks);
    for (place, worker) in workers.iter().take(fits).enumerate() {
        let hue = view.config.theme.hue(worker.id);
        if place > 0 {
            row.space(gap);
        }
        if label > 0 {
            row.styled(hue, &format!("{:>digits$} ", worker.id));
        }
        let mut states =
            axis.map_or_else(Vec::new, |axis| view.history.states(&axis, at(worker.id)));
        if !past(worker.id) {
            states = vec![Some(worker.now)];
        }
        row.space(ticks.saturating_sub(states.len()));
        for state in states {
            let now = state.map(|now| doing(now, view.glyphs()));
            let (paint, _, sign) = now.unwrap_or((Unknown, "", GAP));
            let style = match paint {
                Trouble | Unknown => view.config.theme.style(paint),
                _ => hue,
            };
            row.styled(style, sign);
        }
    }
    if fits < workers.len() {
        row.text(Dim, &format!(" +{}", workers.len() - fits));
    }
}

/// Draws the mean of the ready batches as boxes and as a number.
fn queue(view: &View<'_>, row: &mut LineBuilder<'_>, wide: bool, view_width: u16) {
    row.text(Dim, view.glyphs().arrow)
        .space(if wide { 3 } else { 2 })
        .text(Dim, if wide { "queue  " } else { "" });
    let Some(mean) = view.loader().and_then(|loader| loader.queue) else {
        row.text(Unknown, "n/a");
        return;
    };
    if wide || view_width >= 60 {
        boxes(view, row, &mean);
    }
    let of = if wide { " of " } else { "/" };
    let capacity = mean
        .capacity
        .map_or_else(String::new, |capacity| format!("{of}{capacity}"));
    let ready = format::per_second(Some(mean.mean_ready));
    let gap = match (wide, view_width >= 60) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    };
    row.item(gap, &[(Text, &ready), (Dim, &capacity)]);
}

fn boxes(view: &View<'_>, row: &mut LineBuilder<'_>, queue: &QueueRates) {
    let Some(capacity) = queue.capacity.filter(|capacity| *capacity > 0) else {
        return;
    };
    let slots = capacity.min(SLOTS);
    // The boxes show the same rounded mean as the number beside them: the momentary length of a queue that fills and
    // empties would differ in each frame.
    let shown = (10.0 * queue.mean_ready).round() / 10.0;
    let full = (shown * f64::from(slots) / f64::from(capacity)).ceil();
    for slot in 0..slots {
        let (style, sign) = if f64::from(slot) < full {
            (slot_style(view, slot, capacity), view.glyphs().slot_full)
        } else {
            (view.config.theme.style(Dim), view.glyphs().slot_empty)
        };
        row.styled(style, sign);
    }
}

/// Returns the style of a batch in the queue: its worker's hue if the worker is known. Batches are handed out in turn
/// and taken in order, so the next one comes from worker `batches taken % workers`.
fn slot_style(view: &View<'_>, slot: u32, capacity: u32) -> Style {
    let next = view.loader_now().and_then(|loader| {
        let workers = loader.settings.num_workers.filter(|count| *count > 0)?;
        let in_order = loader.settings.in_order == Some(true) && capacity <= SLOTS;
        let taken = loader.batches_taken.filter(|_| in_order)?;
        u32::try_from((taken + u64::from(slot)) % u64::from(workers)).ok()
    });
    next.map_or_else(
        || view.config.theme.style(Text),
        |worker| view.config.theme.hue(worker),
    )
}

/// Returns what the trainer's main thread mostly does in the window.
fn trainer(view: &View<'_>) -> (Role, String) {
    let Some(rank) = view.rank() else {
        return (Unknown, "n/a".to_owned());
    };
    match view.rank_now().map_or(rank.state, |now| now.state) {
        None if *view.attach == Attach::Ended => return (Trouble, "ended".to_owned()),
        None => return (Unknown, "n/a".to_owned()),
        Some('T' | 't') => return (Trouble, "stopped".to_owned()),
        Some(_) if view.is_frozen() => return (Trouble, "frozen".to_owned()),
        Some(_) => {}
    }
    let Some(wait) = rank.wait_share() else {
        return (Unknown, "n/a".to_owned());
    };
    let loading = rank.loading.unwrap_or_default();
    let idle = rank.idle();
    let stepping = Share(wait.complement().0 - idle.0).clamped();
    if loading.0 >= 0.5 {
        (Cpu, format!("loading {loading}"))
    } else if wait.0 >= 0.5 {
        (Trouble, format!("waiting {wait}"))
    } else if idle >= stepping && idle > Share::ZERO {
        (Wait, format!("idle {idle}"))
    } else if view
        .verdict
        .is_some_and(|verdict| verdict.kind == Kind::HostBound)
    {
        // A step in which the device mostly idles does not count as computing.
        (Cpu, format!("in the step {stepping}"))
    } else {
        (Compute, format!("computing {stepping}"))
    }
}
