//! The first line: whose screen this is, and how its loader is set.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::{Attach, View, format, panel};
use crate::config::Paint::{Dim, Focus, Text, Trouble};
use crate::model::rates::LoaderRates;
use crate::sample::LoaderKind;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let mut row = view.row(area.width);
    row.space(1);
    let settings = view.loader().map(settings).unwrap_or_default();
    match view.figures().and_then(|rates| rates.job.as_ref()) {
        None => {
            row.text(Text, "pipetop");
        }
        Some(job) => {
            let command = command(&job.command);
            // Half of the line at most: pid and settings must stay.
            let room = usize::from(area.width) / 2;
            let command = format::clean(&command, view.config.ascii);
            row.text(Text, &format::cut(&command, room, view.glyphs().more));
            if let Some(rank) = view.rank() {
                let place = rank.rank.map_or(view.rank_place() as u64, u64::from);
                let all = rank.world_size.map_or(job.ranks.len() as u64, u64::from);
                row.item(2, &[(Dim, "rank "), (Text, &format!("{place} of {all}"))]);
                row.item(2, &[(Dim, "pid "), (Text, &rank.key.pid.to_string())]);
            }
            if *view.attach == Attach::Ended || job.ended {
                row.item(2, &[(Trouble, "ended")]);
            }
            if let Some(uptime) = view.uptime {
                row.item(2, &[(Dim, "up "), (Text, &format::clock(uptime.as_secs()))]);
            }
        }
    }
    if view.state.frozen {
        row.item(2, &[(Focus, "FROZEN")]);
    }
    // The most telling settings stay when there is no room for all.
    let kind = view.loader().and_then(|loader| match loader.kind {
        LoaderKind::PytorchProcesses => Some("PyTorch DataLoader"),
        LoaderKind::Builtin => Some("built-in loader"),
        LoaderKind::PytorchMain | LoaderKind::Reported => None,
    });
    let full = kind.is_some_and(|kind| {
        let text = format!("{kind}  {} ", settings.join("  "));
        row.at_end(&[(Dim, &text)])
    });
    for kept in (1..=settings.len()).rev().filter(|_| !full) {
        let text = settings[..kept].join("  ");
        if row.at_end(&[(Dim, &format!("{text} "))]) {
            break;
        }
    }
    panel::write(frame, area, vec![row.line()]);
}

/// The script rather than the interpreter's path: `train.py --lr 1` of `/usr/bin/python3 -u train.py --lr 1`.
fn command(line: &str) -> String {
    if line.starts_with("pipetop builtin-trainer ") {
        return "pipetop demo".to_owned();
    }
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let script = words.find(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        !name.starts_with("python") && !name.starts_with('-')
    });
    let Some(script) = script else {
        return line.to_owned();
    };
    let name = script.rsplit('/').next().unwrap_or(script);
    std::iter::once(name)
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The most telling first.
fn settings(loader: &LoaderRates) -> Vec<String> {
    let set = &loader.settings;
    let mut words = Vec::new();
    match loader.kind {
        LoaderKind::PytorchMain => words.push("loads in the main thread".to_owned()),
        LoaderKind::Reported => words.push("reports its own steps".to_owned()),
        LoaderKind::PytorchProcesses | LoaderKind::Builtin => {
            let count = set
                .num_workers
                .map_or(loader.workers.len() as u64, u64::from);
            let workers = if count == 1 { "worker" } else { "workers" };
            words.push(format!("{count} {workers}"));
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
    fn the_script_stands_for_the_command() {
        assert_eq!(
            super::command("/usr/bin/python3 -u /home/me/train.py --lr 1"),
            "train.py --lr 1"
        );
        assert_eq!(super::command("python3"), "python3");
        assert_eq!(super::command("./bench"), "bench");
        assert_eq!(
            super::command("pipetop builtin-trainer --workers=4"),
            "pipetop demo"
        );
    }
}
