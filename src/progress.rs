//! How far something has come that takes seconds: a bar on a terminal, else a line at the start and the end.
//!
//! Knows nothing of what is done; only how many there are of it. Never writes to standard output.

use std::io::{self, Write as _};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// As in `making 1,536 images  [=====>    ]  61 %  3.2 s left`.
const TEMPLATE: &str = "making {human_len} {msg}  [{bar:30}]  {percent:>3} %  {left} left";

/// Gone from the screen when it is dropped before its end.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    what: String,
    /// So many were done before.
    before: u64,
}

impl Progress {
    /// `done` of `total` of `what`, in the plural, on standard error.
    pub fn on_stderr(what: &str, done: u64, total: u64) -> Self {
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
        format!("making {} {}", self.count(), self.what)
    }

    /// So many are done now.
    pub fn at(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// All are done: the bar goes, a line stays.
    pub fn end(self) {
        let end = self.end_line();
        self.bar.finish_and_clear();
        line(&end);
    }

    fn end_line(&self) -> String {
        let seconds = self.bar.elapsed().as_secs_f64();
        format!("made {} {} in {seconds:.1} s", self.count(), self.what)
    }
}

/// A closed standard error is no reason to stop.
fn line(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 80 columns that keeps what was drawn last.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
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
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen.clone()), 255);
        let progress = Progress::new(target, "images", 0, 1536);
        progress.at(937);
        progress.bar.force_draw();
        let shown = screen.0.lock().unwrap().trim_end().to_owned();
        let (bar, left) = shown.rsplit_once("  ").unwrap();
        assert_eq!(
            bar,
            "making 1,536 images  [==================>           ]   61 %"
        );
        assert!(left.ends_with(" s left"), "{left}");
        progress.bar.set_elapsed(Duration::from_secs(3));
        assert_eq!(progress.end_line(), "made 1,536 images in 3.0 s");
        drop(progress);
        assert_eq!(screen.0.lock().unwrap().trim(), "");
    }

    #[test]
    fn without_a_terminal_there_is_a_line_before_and_one_after() {
        // Of 2,000 there are some from before.
        let progress = Progress::new(ProgressDrawTarget::hidden(), "images", 464, 2000);
        assert!(progress.bar.is_hidden());
        assert_eq!(progress.start_line(), "making 1,536 images");
        progress.at(2000);
        assert!(progress.end_line().starts_with("made 1,536 images in 0."));
    }
}
