//! The first line: the job, and the settings of its loader.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{Attach, View, format, panel};
use crate::config::Role::{Dim, Focus, Text, Trouble};
use crate::job::{BUILTIN_COMMAND, script};
use crate::model::rates::{JobRates, LoaderRates};
use crate::sample::{LoaderKind, RunSource};
use crate::units::counted;

/// The flags that distinguish built-in jobs, each with the value that changes nothing. The others are shown among the
/// loader's settings or do not matter.
const DISTINCTIVE_FLAGS: [(&str, &str); 8] = [
    ("--load-ms", ""),
    ("--decodes", "1"),
    ("--step-ms", ""),
    ("--step-share", ""),
    ("--copy-ms", ""),
    ("--slow-worker", "1"),
    ("--load-jitter", "0"),
    ("--direct", ""),
];

/// Most columns for the name of a run.
const RUN: usize = 24;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let mut row = view.row(area.width);
    row.space(1);
    let mut settings = view.loader().map(settings).unwrap_or_default();
    if let (2.., Some(loader)) = (view.loaders().len(), view.loader()) {
        settings[0] = format!("{}: {}", loader.title(), settings[0]);
    }
    match view.job() {
        None => {
            row.text(Text, "pipetop");
        }
        Some(job) => {
            let room = usize::from(area.width);
            if let Some(flags) = job.command.strip_prefix(BUILTIN_COMMAND) {
                let place = place(view, job, room).width();
                let others = 1 + 2 + place + 2 + format::width(&settings.join("  ")) + 1;
                row.text(Text, &builtin(flags, room.saturating_sub(others)));
            } else {
                // At most half of the line: pid and settings must stay visible.
                row.up_to(1 + room / 2, Text, &script(&job.command));
            }
            let place = place(view, job, row.left().saturating_sub(2));
            row.space(2);
            row.append(&place);
        }
    }
    if view.state.paused {
        row.item(2, &[(Focus, "PAUSED")]);
    }
    if view.state.replay.is_some() {
        row.item(2, &[(Focus, "REPLAY")]);
    } else if view.state.recording {
        row.item(2, &[(Focus, "REC")]);
    }
    // If not all settings fit, the most important ones stay.
    let pytorch = view
        .loader()
        .is_some_and(|loader| loader.kind == LoaderKind::PytorchProcesses);
    let full = pytorch && {
        let text = format!("PyTorch DataLoader  {} ", settings.join("  "));
        row.at_end(&[(Dim, &text)])
    };
    for kept in (1..=settings.len()).rev().filter(|_| !full) {
        let text = settings[..kept].join("  ");
        if row.at_end(&[(Dim, &format!("{text} "))]) {
            break;
        }
    }
    panel::write(frame, area, vec![row.line()]);
}

/// Draws which of the job's processes is shown, and how long it has been running.
fn place(view: &View<'_>, job: &JobRates, room: usize) -> Line<'static> {
    let mut row = view.row(super::layout::count(room));
    if let Some(rank) = view.rank() {
        let place = view.rank_number();
        let all = rank.world_size.map_or(job.ranks.len() as u64, u64::from);
        if all > 1 {
            row.figure(2, "rank ", &format!("{place} of {all}"));
        }
        row.figure(2, "pid ", &rank.key.pid.to_string());
    }
    // A run without a name is identified by its process, which is already shown.
    let run = job.run.as_ref();
    if let Some(run) = run.filter(|run| run.source != RunSource::Process) {
        let name = format::clean(&run.id, view.config.ascii);
        row.item(2, &[(Text, &format::cut(&name, RUN, view.glyphs().more))]);
    }
    if *view.attach == Attach::Ended || job.ended {
        row.item(2, &[(Trouble, "ended")]);
    }
    if let Some(uptime) = view.uptime {
        row.figure(2, "up ", &format::clock(uptime.as_secs()));
    }
    row.line()
}

/// Formats `pipetop demo --load-ms 2000 --step-ms 100`: whole flags only, as many as fit.
fn builtin(flags: &str, room: usize) -> String {
    let mut shown = "pipetop demo".to_owned();
    for (name, plain) in DISTINCTIVE_FLAGS {
        let set = flags.split(' ').find_map(|flag| {
            let value = flag.strip_prefix(name)?;
            if value.is_empty() {
                return Some("");
            }
            value.strip_prefix('=')
        });
        let Some(value) = set.filter(|value| value.is_empty() || *value != plain) else {
            continue;
        };
        let gap = if value.is_empty() { "" } else { " " };
        let flag = format!(" {name}{gap}{value}");
        if format::width(&shown) + format::width(&flag) > room {
            break;
        }
        shown.push_str(&flag);
    }
    shown
}

/// Returns the settings of the loader, the most important first.
fn settings(loader: &LoaderRates) -> Vec<String> {
    let set = &loader.settings;
    let mut words = Vec::new();
    match loader.kind {
        LoaderKind::PytorchMain => words.push("loads in the main thread".to_owned()),
        LoaderKind::Reported => words.push("reports its own steps".to_owned()),
        LoaderKind::Other if loader.workers.is_empty() => {
            words.push(
                loader
                    .name
                    .clone()
                    .unwrap_or_else(|| "own loader".to_owned()),
            );
        }
        LoaderKind::PytorchProcesses
        | LoaderKind::Processes
        | LoaderKind::Builtin
        | LoaderKind::Other => {
            let count = set
                .num_workers
                .map_or(loader.workers.len() as u64, u64::from);
            words.push(counted(count, "worker"));
        }
    }
    if let Some(prefetch) = set.prefetch_factor {
        words.push(format!("prefetch {prefetch}"));
    }
    if let Some(pinned) = set.pin_memory {
        words.push(if pinned { "pinned" } else { "not pinned" }.to_owned());
    }
    if let Some(size) = set.batch_size {
        words.push(format!("batch {size}"));
    }
    if let Some(method) = &set.start_method {
        words.push(method.clone());
    }
    if set.in_order == Some(false) {
        words.push("any order".to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_built_in_job_is_named_by_its_distinctive_flags() {
        let slow = "--workers=4 --load-ms=60 --load-jitter=0 --slow-worker=6 --step-ms=40 --seed=0";
        let named = |flags, room| super::builtin(flags, room);
        assert_eq!(
            named(slow, 80),
            "pipetop demo --load-ms 60 --step-ms 40 --slow-worker 6"
        );
        assert_eq!(named(slow, 41), "pipetop demo --load-ms 60 --step-ms 40");
        assert_eq!(named(slow, 0), "pipetop demo");
        let disk = "--decodes=0 --dataset=/a/b --direct --slow-worker=1 --step-share=0.3";
        assert_eq!(
            named(disk, 80),
            "pipetop demo --decodes 0 --step-share 0.3 --direct"
        );
    }
}
