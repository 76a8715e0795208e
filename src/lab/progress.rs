//! How far something has come that takes seconds: a bar on a terminal, else a line at the start and the end.
//!
//! Knows nothing of what is done; only how many there are of it. Never writes to standard output.

use std::io::{self, Write as _};
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// As in `making 1,536 images  [=====>    ]  61 %  3.2 s left`.
const TEMPLATE: &str = "creating {human_len} {msg}  [{bar:30}]  {percent:>3} %  {left} left";

/// Gone from the screen when it is dropped before its end.
#[derive(Debug)]
pub(super) struct ProgressLine {
    bar: ProgressBar,
    what: String,
    /// So many were done before.
    before: u64,
}

impl ProgressLine {
    /// `done` of `total` of `what`, in the plural, on standard error.
    pub(super) fn on_stderr(what: &str, done: u64, total: u64) -> Self {
        let progress = Self::new(ProgressDrawTarget::stderr(), what, done, total);
        if progress.bar.is_hidden() {
            line(&progress.start_line());
        }
        progress
    }

    fn new(target: ProgressDrawTarget, what: &str, done: u64, total: u64) -> Self {
        let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // What cannot be written is not shown; there is nobody to tell.
            let _ = write!(out, "{:.1} s", state.eta().as_secs_f64());
        };
        // The template is ours: one that does not hold shows in the test below.
        let style = ProgressStyle::with_template(TEMPLATE)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ")
            .with_key("left", left);
        let bar = ProgressBar::with_draw_target(Some(total), target)
            .with_style(style)
            .with_message(what.to_owned())
            .with_position(done);
        // What was there before says nothing of how long the rest takes.
        bar.reset_eta();
        bar.tick();
        Self {
            bar,
            what: what.to_owned(),
            before: done,
        }
    }

    /// How many there were to do.
    fn count(&self) -> HumanCount {
        HumanCount(self.bar.length().unwrap_or(0).saturating_sub(self.before))
    }

    fn start_line(&self) -> String {
        format!("creating {} {}", self.count(), self.what)
    }

    /// So many are done now.
    pub(super) fn at(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// All are done: the bar goes, a line stays.
    pub(super) fn end(self) {
        let end = self.end_line(self.bar.elapsed());
        self.bar.finish_and_clear();
        line(&end);
    }

    fn end_line(&self, took: Duration) -> String {
        let seconds = took.as_secs_f64();
        format!("created {} {} in {seconds:.1} s", self.count(), self.what)
    }
}

/// A closed standard error is no reason to stop.
fn line(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 80 columns that keeps what was drawn last.
    #[derive(Debug, Clone, Default)]
    struct FakeTerminal(Arc<Mutex<String>>);

    impl TermLike for FakeTerminal {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_reads_well_and_leaves_nothing() {
        let screen = FakeTerminal::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen.clone()), 255);
        let progress = ProgressLine::new(target, "images", 0, 1536);
        progress.at(937);
        progress.bar.force_draw();
        let shown = screen.0.lock().unwrap().trim_end().to_owned();
        let (bar, left) = shown.rsplit_once("  ").unwrap();
        assert_eq!(
            bar,
            "creating 1,536 images  [==================>           ]   61 %"
        );
        assert!(left.ends_with(" s left"), "{left}");
        let end = progress.end_line(Duration::from_secs(3));
        assert_eq!(end, "created 1,536 images in 3.0 s");
        drop(progress);
        assert_eq!(screen.0.lock().unwrap().trim(), "");
    }

    #[test]
    fn without_a_terminal_there_is_a_line_before_and_one_after() {
        // Of 2,000 there are some from before.
        let progress = ProgressLine::new(ProgressDrawTarget::hidden(), "images", 464, 2000);
        assert!(progress.bar.is_hidden());
        assert_eq!(progress.start_line(), "creating 1,536 images");
        progress.at(2000);
        let end = progress.end_line(Duration::from_millis(250));
        assert_eq!(end, "created 1,536 images in 0.2 s");
    }
}
