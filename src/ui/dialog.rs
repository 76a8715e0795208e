//! The question on quitting: what to do with the launched command.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::Clear;

use super::layout::BorderStyle;
use super::{View, format, panel};
use crate::action::Action;
use crate::config::Role::{Dim, Key, Text};

const WIDTH: u16 = 64;

pub(super) fn draw(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    output_path: &str,
) {
    let answers = [
        (Action::EndCommand, "stop it (killed after 10 s)"),
        (Action::Detach, "leave it running; its output:"),
        (Action::Cancel, "keep watching"),
    ];
    let width = WIDTH.min(area.width);
    let height = (super::layout::count(answers.len()) + 5).min(area.height);
    let at = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, at);
    let border = BorderStyle::boxed_if(height >= 8);
    let inner = panel::open(view, frame, at, border, "quit", "");
    let mut first = view.row(inner.width);
    let room = usize::from(inner.width).saturating_sub(20);
    let name = format::cut(without_folder(name), room, view.glyphs().more);
    first.bold(Text, &name).text(Text, " is still running");
    let mut lines = vec![first.line(), ratatui::text::Line::default()];
    for (action, words) in answers {
        let key = view.key(action);
        let key = key.map_or_else(String::new, |key| key.to_string());
        lines.push(
            view.row(inner.width)
                .padded(Key, &key, 6)
                .sentence(Dim, words)
                .line(),
        );
        if action == Action::Detach {
            let mut row = view.row(inner.width);
            let room = row.space(6).left();
            lines.push(row.ending(Dim, output_path, room).line());
        }
    }
    panel::write(frame, inner, lines);
}

/// Returns the command without the folder of its program, which would take the room of the script's name.
fn without_folder(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or_default();
    // A quoted program may contain spaces, so this may be only its first part: it keeps its folder.
    let folder = program
        .rfind('/')
        .filter(|_| !command.starts_with('\''))
        .map_or(0, |at| at + 1);
    &command[folder..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_without_the_folder_of_its_program() {
        for (command, name) in [
            (
                "/opt/env/bin/python /data/train.py",
                "python /data/train.py",
            ),
            ("python train.py", "python train.py"),
            (
                "'/my env/bin/python' train.py",
                "'/my env/bin/python' train.py",
            ),
            ("", ""),
        ] {
            assert_eq!(without_folder(command), name);
        }
    }
}
