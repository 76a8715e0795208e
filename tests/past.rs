//! What looking back costs: memory for a day, and time for each reading.

#![expect(unsafe_code, reason = "counts what the allocator hands out")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use pipetop::model::Rates;
use pipetop::model::WorkerPlace;
use pipetop::model::history::{GpuReading, History, RankReading, Reading};
use pipetop::sample::WorkerNow;
use pipetop::units::{Pid, ProcessKey};
use pipetop::verdict::Verdict;

#[expect(dead_code, reason = "the screens use all of it")]
mod support;

/// Bytes that are in use, by what was asked for.
static USED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn place(id: u32) -> WorkerPlace {
    WorkerPlace {
        rank: ProcessKey {
            pid: Pid(1),
            start_ticks: 1,
        },
        loader: 0,
        id,
    }
}

fn reading(at: u32, workers: u32, gpus: usize) -> Reading {
    let rank = |number| RankReading {
        number,
        wait: Some(0.5),
        queue: Some(0.5),
    };
    Reading {
        from: f64::from(at),
        to: f64::from(at + 1),
        ranks: (0..8).map(rank).collect(),
        gpus: vec![GpuReading::default(); gpus],
        workers: (0..workers).map(|id| (place(id), WorkerNow::Cpu)).collect(),
        ..Reading::default()
    }
}

#[test]
fn the_past_takes_what_it_says() {
    // One test, as others would count in.
    let before = USED.load(Ordering::Relaxed);
    let mut history = History::new();
    let mut half = 0;
    for at in 0..172_800 {
        history.add(reading(at, 16, 8));
        if at == 86_400 {
            half = USED.load(Ordering::Relaxed) - before;
        }
    }
    let grown = USED.load(Ordering::Relaxed) - before - half;
    assert!(half < 4 << 20, "{half} bytes for a day");
    assert!(grown < 1 << 19, "{grown} bytes more for another day");

    note(&format!(
        "16 workers, 8 GPUs: {half} bytes for a day, {grown} more for another"
    ));

    // What is said of rates and of a verdict is what they take, less what an allocator adds to each piece.
    let mut scene = support::starved();
    scene.each_job(|job| {
        let rank = &mut job.ranks[0];
        rank.gil_holders
            .clone_from(&rank.loaders[0].workers[0].activity);
        rank.gil_holders.extend_from_within(..);
    });
    let rates = scene.window.as_ref().expect("it has a window");
    held("rates", rates, Rates::footprint);
    let verdict = scene.verdict.as_ref().expect("it has a verdict");
    held("a verdict", verdict, Verdict::footprint);
    let unknown = Verdict {
        what_if: Err("the load time is not known, nor is anything else ".repeat(40)),
        ..verdict.clone()
    };
    held("a verdict without a table", &unknown, Verdict::footprint);
}

fn held<T: Clone>(what: &str, one: &T, footprint: impl Fn(&T) -> usize) {
    let before = USED.load(Ordering::Relaxed);
    let kept: Vec<Box<T>> = (0..100).map(|_| Box::new(one.clone())).collect();
    let taken = (USED.load(Ordering::Relaxed) - before) / kept.len();
    let said = footprint(&kept[0]);
    note(&format!("{what}: {said} said, {taken} taken"));
    assert!(
        (taken..=taken * 3 / 2).contains(&said),
        "{what}: {said} said, {taken} taken"
    );
}

#[expect(clippy::print_stdout, reason = "the test runner captures it")]
fn note(line: &str) {
    println!("{line}");
}
