//! The screen as a picture and the report as text, in two files of the current directory.
//!
//! A thread writes them: a network folder that hangs must not stop the screen.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tokio::sync::mpsc;

use super::{App, Event, trouble};
use crate::background::spawn;
use crate::output;
use crate::report::Report;
use crate::ui::{self, Notice, picture};
use crate::verdict::assess;

/// Maximum number of names that are tried if several screens are saved in the same second.
const TRIES: u32 = 100;

/// The contents of the two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Saved {
    picture: String,
    pub(super) report: String,
}

impl App {
    /// Renders the screen at this size, and the report on what it shows.
    pub(super) fn saved(&self, width: u16, height: u16) -> io::Result<Saved> {
        let mut state = self.state.clone();
        // The notice about an earlier picture does not belong in this one.
        state.notice = None;
        let view = ui::View {
            state: &state,
            ..self.view()
        };
        let mut terminal =
            Terminal::new(TestBackend::new(width, height)).map_err(io::Error::other)?;
        let drawn = terminal.draw(|frame| ui::draw(&view, frame));
        let drawn = drawn.map_err(io::Error::other)?;
        // The verdict may be the one from the list of jobs.
        let (shown, model) = (self.shown(), &self.shown().model);
        let report = match view.verdict.or(shown.verdict()) {
            Some(verdict) => Report::new(model, verdict),
            None => Report::new(model, &assess(None, &model.progress(), &[])),
        };
        Ok(Saved {
            picture: picture::svg(drawn.buffer, &self.config.theme),
            report: output::markdown(&report),
        })
    }
}

/// Writes to new files in `folder` and sends a notice with the result.
pub(super) fn write(saved: io::Result<Saved>, folder: PathBuf, tell: mpsc::Sender<Event>) {
    let writing = move || {
        #[expect(clippy::disallowed_methods, reason = "files are named by the time")]
        let now = SystemTime::now();
        let written = saved.and_then(|saved| write_as(&saved, &folder, now));
        let notice = match written {
            Ok(name) => Notice {
                text: format!("saved {name}.svg and {name}.md"),
                trouble: false,
            },
            Err(error) => trouble(format!("cannot save to the current directory: {error}")),
        };
        // If the screen is closed, nobody needs the notice.
        let _ = tell.blocking_send(Event::Notice(notice));
    };
    // If no thread can be started, the key does nothing.
    let _ = spawn("save", writing);
}

/// Writes both files without overwriting any. Returns their name without the extension.
fn write_as(saved: &Saved, folder: &Path, now: SystemTime) -> io::Result<String> {
    let time = humantime::format_rfc3339_seconds(now).to_string();
    let time = time.replace(':', "").replace('T', "-");
    let time = time.trim_end_matches('Z');
    for number in 1..=TRIES {
        let name = match number {
            1 => format!("pipetop-{time}"),
            _ => format!("pipetop-{time}-{number}"),
        };
        let new = |ending: &str| {
            let path = folder.join(format!("{name}.{ending}"));
            OpenOptions::new().write(true).create_new(true).open(path)
        };
        let taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        let mut picture = match new("svg") {
            Err(error) if taken(&error) => continue,
            file => file?,
        };
        let mut report = match new("md") {
            Err(error) if taken(&error) => {
                drop(picture);
                std::fs::remove_file(folder.join(format!("{name}.svg")))?;
                continue;
            }
            file => file?,
        };
        let written = picture
            .write_all(saved.picture.as_bytes())
            .and_then(|()| report.write_all(saved.report.as_bytes()));
        if written.is_err() {
            // A partial file is of no use, and the disk may be full.
            for ending in ["svg", "md"] {
                let _ = std::fs::remove_file(folder.join(format!("{name}.{ending}")));
            }
        }
        return written.map(|()| name);
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    fn saved() -> Saved {
        Saved {
            picture: "<svg/>".into(),
            report: "# report\n".into(),
        }
    }

    #[test]
    fn files_are_named_by_the_time_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let write = || write_as(&saved(), folder.path(), now).unwrap();
        assert_eq!(write(), "pipetop-2023-11-14-221320");
        assert_eq!(write(), "pipetop-2023-11-14-221320-2");
        fs::write(folder.path().join("pipetop-2023-11-14-221320-3.md"), "mine").unwrap();
        assert_eq!(write(), "pipetop-2023-11-14-221320-4");
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 7, "{names:?}");
        assert_eq!(fs::read(folder.path().join(&names[0])).unwrap().len(), 9);
    }

    #[tokio::test]
    async fn an_unwritable_folder_is_reported() {
        let (tell, mut results) = mpsc::channel(1);
        write(Ok(saved()), PathBuf::from("/proc/nothing/here"), tell);
        let Some(Event::Notice(notice)) = results.recv().await else {
            panic!("no notice");
        };
        assert!(notice.trouble);
        assert!(notice.text.contains("cannot save"), "{}", notice.text);
    }
}
