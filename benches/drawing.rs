//! The cost in instructions of a 200x60 frame with 16 workers and 8 GPUs: `cargo bench --bench drawing`.
//!
//! Needs valgrind, and `cargo install gungraun-runner` in the version of Cargo.lock.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "gungraun exits this way"
)]

use std::io::{Sink, sink};

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use pipetop::sample::Sample;
use pipetop::testing::app::{App, Event};
use pipetop::testing::config::Config;
use pipetop::testing::ui;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use support::noise::Noise;

/// 2 ms: a frame of 14.0 million instructions took 1.9 ms of CPU time, measured on a virtual machine in a cloud without
/// link-time optimisation. Includes all output to the terminal except the marks around a frame.
const FRAME: u64 = 14_700_000;
/// Seconds of history.
const SECONDS: u64 = 400;

struct Screen {
    app: App,
    terminal: Terminal<CrosstermBackend<Sink>>,
    next: Sample,
}

impl Screen {
    fn draw(&mut self) {
        let view = self.app.view();
        let draw = |frame: &mut ratatui::Frame<'_>| ui::draw(&view, frame);
        self.terminal.draw(draw).unwrap();
    }
}

/// Returns a screen that has run for a while, and the next sample.
fn watched() -> Screen {
    let mut noise = Noise::of(16, 8);
    let job = "a job".to_owned();
    let mut app = App::new(Config::default(), job);
    for second in 1..=SECONDS {
        app.update(Event::Sample(Box::new(noise.sample(second))));
    }
    let viewport = Viewport::Fixed(Rect::new(0, 0, 200, 60));
    let backend = CrosstermBackend::new(sink());
    let terminal = Terminal::with_options(backend, TerminalOptions { viewport }).unwrap();
    let next = noise.sample(SECONDS + 1);
    let mut screen = Screen {
        app,
        terminal,
        next,
    };
    screen.draw();
    screen
}

/// Returns the same screen with a new sample that is not drawn yet.
fn with_reading() -> Screen {
    let mut screen = watched();
    screen
        .app
        .update(Event::Sample(Box::new(screen.next.clone())));
    screen
}

// Drawing the frame after a sample: layout, text, the difference to the previous frame, and its bytes.
#[library_benchmark]
#[bench::of_16_workers_and_8_gpus(setup = with_reading)]
fn frame(mut screen: Screen) -> Screen {
    screen.draw();
    screen
}

// The work before a frame is drawn: rates, verdict and history.
#[library_benchmark]
#[bench::of_16_workers_and_8_gpus(setup = watched)]
fn reading(mut screen: Screen) -> Screen {
    let next = Box::new(screen.next.clone());
    screen.app.update(Event::Sample(next));
    screen
}

library_benchmark_group!(name = screen; benchmarks = frame, reading);

main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::default().hard_limits([(EventKind::Ir, FRAME)]));
    library_benchmark_groups = screen
);
