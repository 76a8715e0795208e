//! A million frames of a replay, in which memory must not grow: `cargo bench --bench uptime [-- FRAMES [WORKERS
//! GPUS]]`.
//!
//! The recording is as long as the replay: eleven and a half days with a sample per second.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::alloc::System;
use std::io::sink;
use std::time::Duration;

use pipetop::testing::app::App;
use pipetop::testing::config::Config;
use pipetop::testing::record::{RecordOptions, Recording, Writer};
use pipetop::testing::source::clock::thread_cpu;
use pipetop::testing::source::replay::Player;
use pipetop::testing::ui;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use support::noise::Noise;

#[global_allocator]
static ALLOCATED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const FRAMES: u64 = 1_000_000;
/// Number of reports, evenly spaced over the frames.
const PARTS: u64 = 10;
/// Bytes that the second half may use more than the first, as names and numbers differ in length.
const GROWTH: usize = 256 << 10;

/// Returns the bytes that are allocated now.
fn held() -> usize {
    let stats = ALLOCATED.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Returns the resident memory of the process in bytes (`VmRSS`).
fn resident() -> u64 {
    let status = procfs::process::Process::myself().and_then(|process| process.status());
    status.unwrap().vmrss.unwrap() * 1024
}

fn main() {
    // Cargo adds a flag to the arguments, which is skipped.
    let mut asked = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse::<u32>().ok());
    let frames = asked.next().map_or(FRAMES, u64::from);
    let (workers, gpus) = (asked.next().unwrap_or(2), asked.next().unwrap_or(1));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = RecordOptions {
        path: folder.path().join("long.rec"),
        size: u64::MAX,
        command_lines: true,
        interval: Duration::from_secs(1),
    };
    let mut noise = Noise::of(workers, gpus);
    let mut writer = Writer::create(&options).unwrap();
    for second in 1..=frames {
        writer.write(&noise.sample(second)).unwrap();
    }
    writer.finish().unwrap();
    let recording = Recording::open(&options.path).unwrap();
    let app = App::new(Config::default(), "a job".into());
    let mut app = app.replaying(Player::new(recording.samples, 0..=frames - 1, None));
    let viewport = Viewport::Fixed(Rect::new(0, 0, 120, 40));
    let backend = CrosstermBackend::new(sink());
    let mut terminal = Terminal::with_options(backend, TerminalOptions { viewport }).unwrap();
    let (mut most, mut half) = (0, 0);
    let began = thread_cpu();
    for number in 0..frames {
        app.settle(Duration::from_secs(number));
        let view = app.view();
        let draw = |frame: &mut ratatui::Frame<'_>| ui::draw(&view, frame);
        terminal.draw(draw).unwrap();
        most = most.max(held());
        if (number + 1) % (frames / PARTS) == 0 {
            let resident = resident();
            println!(
                "{:>9} frames: at most {most} B held, {resident} B resident",
                number + 1
            );
            if (number + 1) / (frames / PARTS) == PARTS / 2 {
                half = most;
            }
        }
    }
    let spent = thread_cpu().saturating_sub(began);
    let each = spent / u32::try_from(frames).unwrap();
    println!(
        "{each:.0?} of CPU time a frame; {} B more in the second half",
        most - half
    );
    assert!(most - half < GROWTH, "memory grows with the time");
}
