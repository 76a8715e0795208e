//! Progress of something that takes seconds: a bar on a terminal, otherwise a line at the start and the end.
//!
//! Does not depend on the task, only on the number of items. Never writes to standard output.

use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::error::write_error;

/// Shows `creating 1,536 images  [=====>    ]  61 %  3.2 s left`.
const TEMPLATE: &str = "creating {human_len} {msg}  [{bar:30}]  {percent:>3} %  {left} left";

/// A progress bar. Dropping it before the end removes it from the screen.
#[derive(Debug)]
pub(super) struct ProgressLine {
    bar: ProgressBar,
    /// Number of items that were done before the start.
    before: u64,
}

impl ProgressLine {
    /// Shows the progress on standard error; `what` is the name of one item.
    pub(super) fn on_stderr(what: &str, done: u64, total: u64) -> Self {
        let progress = Self::new(ProgressDrawTarget::stderr(), what, done, total);
        if progress.bar.is_hidden() {
            write_error(progress.start_line());
        }
        progress
    }

    fn new(target: ProgressDrawTarget, what: &str, done: u64, total: u64) -> Self {
        let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // Errors do not matter: only the progress would be missing.
            let _ = write!(out, "{:.1} s", state.eta().as_secs_f64());
        };
        let plural = if total.saturating_sub(done) == 1 {
            ""
        } else {
            "s"
        };
        // The template is a constant; the test below fails if it is invalid.
        let style = ProgressStyle::with_template(TEMPLATE)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ")
            .with_key("left", left);
        let bar = ProgressBar::with_draw_target(Some(total), target)
            .with_style(style)
            .with_message(format!("{what}{plural}"))
            .with_position(done);
        // Items from before must not affect the estimate of the remaining time.
        bar.reset_eta();
        bar.tick();
        Self { bar, before: done }
    }

    /// Returns how many items there are to do.
    fn count(&self) -> HumanCount {
        HumanCount(self.bar.length().unwrap_or(0).saturating_sub(self.before))
    }

    fn start_line(&self) -> String {
        format!("creating {} {}", self.count(), self.bar.message())
    }

    /// Sets the number of items done.
    pub(super) fn at(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Replaces the bar by a final line.
    pub(super) fn end(self) {
        let end = self.end_line(self.bar.elapsed());
        self.bar.finish_and_clear();
        write_error(end);
    }

    fn end_line(&self, took: Duration) -> String {
        let seconds = took.as_secs_f64();
        format!(
            "created {} {} in {seconds:.1} s",
            self.count(),
            self.bar.message()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 80 columns that stores what was drawn last.
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
    fn the_progress_bar_is_drawn_and_cleared() {
        let screen = FakeTerminal::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen.clone()), 255);
        let progress = ProgressLine::new(target, "image", 0, 1536);
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
    fn one_item_is_no_plural() {
        let progress = ProgressLine::new(ProgressDrawTarget::hidden(), "image", 9, 10);
        assert_eq!(progress.start_line(), "creating 1 image");
        let end = progress.end_line(Duration::from_secs(1));
        assert_eq!(end, "created 1 image in 1.0 s");
    }

    #[test]
    fn without_a_terminal_there_is_a_line_before_and_one_after() {
        // Of 2,000 images, 464 exist already.
        let progress = ProgressLine::new(ProgressDrawTarget::hidden(), "image", 464, 2000);
        assert!(progress.bar.is_hidden());
        assert_eq!(progress.start_line(), "creating 1,536 images");
        progress.at(2000);
        let end = progress.end_line(Duration::from_millis(250));
        assert_eq!(end, "created 1,536 images in 0.2 s");
    }
}
