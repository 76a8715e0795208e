//! The output over a slow link: bytes per frame and frames per second, for a scripted job in fake time.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use crossterm::event::Event as Input;
use pipetop::testing::app::{App, Effect, Event};
use pipetop::testing::config::Config;
use pipetop::testing::ui;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use support::noise::Noise;

/// Most bytes per second that any job may write to a terminal of 120 by 40.
const BUDGET: usize = 4096;
/// Bytes of both marks of a synchronized update.
const MARKS: usize = "\u{1b}[?2026h\u{1b}[?2026l".len();
/// Seconds before the measurement: the history fills its panel and scrolls, or has just begun and grows.
const OLD: u64 = 120;
const YOUNG: u64 = 5;
const MEASURED: u64 = 40;

/// A writer that counts the bytes.
#[derive(Clone, Default)]
struct Counter(Rc<Cell<usize>>);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the mean bytes per second at the default interval. All figures change every second; in a restless job, the
/// workers also change their state every second.
fn bytes_a_second(workers: u32, gpus: u32, restless: bool, before: u64) -> usize {
    let config = Config::default();
    assert_eq!(
        config.interval,
        Duration::from_secs(1),
        "a reading a second"
    );
    let mut noise = Noise::of(workers, gpus);
    noise.restless = restless;
    let mut app = App::new(config, String::new());
    app.update(Event::Input(Input::Resize(120, 40)));
    let written = Counter::default();
    let backend = CrosstermBackend::new(written.clone());
    let viewport = Viewport::Fixed(Rect::new(0, 0, 120, 40));
    let options = TerminalOptions { viewport };
    let mut terminal = Terminal::with_options(backend, options).expect("no size is asked for");
    let (mut first, mut frames) = (0, 0);
    for second in 1..=before + MEASURED {
        let effects = app.update(Event::Sample(Box::new(noise.sample(second))));
        if second < before || effects != [Effect::Draw] {
            continue;
        }
        let view = app.view();
        let drawn = terminal.draw(|frame| ui::draw(&view, frame));
        drawn.expect("a counter takes all");
        if second == before {
            first = written.0.get();
        } else {
            frames += 1;
        }
    }
    assert_eq!(frames, MEASURED, "a frame a reading");
    let seconds = usize::try_from(MEASURED).expect("few");
    (written.0.get() - first) / seconds + MARKS
}

#[test]
fn a_job_costs_a_slow_link_little() {
    for (workers, gpus, restless) in [(4, 1, false), (4, 1, true), (12, 8, true)] {
        for before in [OLD, YOUNG] {
            let rate = bytes_a_second(workers, gpus, restless, before);
            let job = format!("{workers} workers, {gpus} GPUs, after {before} s");
            eprintln!("{job}, restless {restless}: {rate} bytes a second");
            assert!(rate <= BUDGET, "{job}: {rate}");
        }
    }
}
