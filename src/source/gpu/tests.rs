use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::SystemTime;

use super::*;
use crate::sample::Tail;

/// A GPU whose readings each wait until the test sends the result.
struct Cued {
    index: u32,
    cue: Receiver<GpuSample>,
}

impl Gpu for Cued {
    fn read(&mut self, at: Moment) -> GpuSample {
        let sample = self.cue.recv().unwrap_or_default();
        GpuSample {
            index: self.index,
            uuid: Some(format!("GPU-{}", self.index)),
            read_at: Some(at),
            ..sample
        }
    }
}

/// Returns GPUs that answer on cue, and a clock that is set by hand.
fn gpus(count: u32, selection: Option<&[&str]>) -> (Gpus, Vec<Sender<GpuSample>>, Arc<Mutex<u64>>) {
    let time = Arc::new(Mutex::new(0));
    let (cues, found): (Vec<_>, Vec<Box<dyn Gpu>>) = (0..count)
        .map(|index| {
            let (cue, heard) = channel();
            (cue, Box::new(Cued { index, cue: heard }) as Box<dyn Gpu>)
        })
        .unzip();
    let words = selection.map(|words| words.iter().map(|&word| word.to_owned()).collect());
    let clock = Arc::clone(&time);
    let gpus = Gpus::start_with(
        move || Ok(found),
        words,
        Duration::ZERO,
        move || Moment {
            since_start: Duration::from_secs(*clock.lock().unwrap()),
            wall: SystemTime::UNIX_EPOCH,
        },
    );
    (gpus, cues, time)
}

/// Waits until the board shows what is expected.
fn until(gpus: &Gpus, shown: impl Fn(&[GpuSample]) -> bool) -> Vec<GpuSample> {
    loop {
        let (rows, gaps) = gpus.newest(1);
        if gaps.is_empty() && shown(&rows) {
            return rows;
        }
        std::thread::yield_now();
    }
}

fn with_util(util_percent: f64) -> GpuSample {
    GpuSample {
        util_percent: Some(util_percent),
        util_samples: vec![(7, util_percent)].into(),
        ..GpuSample::default()
    }
}

#[test]
fn a_hanging_gpu_becomes_stale_and_the_others_stay_live() {
    let (gpus, cues, time) = gpus(2, None);
    cues[0].send(with_util(10.0)).unwrap();
    cues[1].send(with_util(20.0)).unwrap();
    until(&gpus, |rows| {
        rows.len() == 2 && rows.iter().all(|row| row.util_percent.is_some())
    });
    *time.lock().unwrap() = 10;
    // Two cues: one ends the reading that began at second 0, the other the reading that begins at second 10.
    cues[1].send(with_util(30.0)).unwrap();
    cues[1].send(with_util(40.0)).unwrap();
    let rows = until(&gpus, |rows| rows[1].util_percent == Some(40.0));
    assert_eq!(rows[0].util_percent, Some(10.0), "the old figures stay");
    assert_eq!(rows[0].read_at.unwrap().since_start, Duration::ZERO);
    assert_eq!(rows[0].gap.as_deref(), Some("driver not responding"));
    assert_eq!(rows[1].gap, None);
}

#[test]
fn a_call_that_takes_longer_than_an_interval_makes_the_row_stale_at_once() {
    let (gpus, cues, time) = gpus(1, None);
    cues[0].send(with_util(10.0)).unwrap();
    until(&gpus, |rows| {
        rows.iter().any(|row| row.util_percent == Some(10.0))
    });
    // The next reading has been running since second 0.
    while gpus.shared.board().rows[0].asked.is_none() {
        std::thread::yield_now();
    }
    assert_eq!(gpus.newest(1).0[0].gap, None);
    *time.lock().unwrap() = 1;
    let row = gpus.newest(1).0.remove(0);
    assert_eq!(row.gap.as_deref(), Some("driver not responding"));
    assert_eq!(row.util_percent, Some(10.0));
}

#[test]
fn samples_of_the_history_are_gathered_and_numbered() {
    let (gpus, cues, _) = gpus(1, None);
    for util in [1.0, 2.0, 3.0] {
        cues[0].send(with_util(util)).unwrap();
    }
    let (mut taken, mut known) = (Vec::new(), Tail::default());
    while taken.len() < 3 {
        for row in gpus.newest(1).0 {
            taken.extend(row.util_samples.since(Some(&known)).copied());
            known = row.util_samples;
        }
    }
    assert_eq!(taken, [(7, 1.0), (7, 2.0), (7, 3.0)]);
}

#[test]
fn only_selected_gpus_are_shown_and_an_invalid_selection_is_reported() {
    let (some, cues, _) = gpus(3, Some(&["2", "GPU-0"]));
    for cue in &cues {
        // A GPU that the selection excludes by its number is not read, so nobody receives the cue.
        let _ = cue.send(with_util(1.0));
    }
    let rows = until(&some, |rows| {
        rows.len() == 2 && rows.iter().all(|row| row.util_percent.is_some())
    });
    assert_eq!((rows[0].index, rows[1].index), (0, 2));

    let (none, _cues, _) = gpus(1, Some(&["7"]));
    let rows = loop {
        let (rows, gaps) = none.newest(1);
        if gaps.iter().any(|gap| gap.reason.contains("\"7\"")) {
            break rows;
        }
        std::thread::yield_now();
    };
    assert_eq!(rows, []);

    let (none, _cues, _) = gpus(0, Some(&["3", "GPU-8f"]));
    let gaps = loop {
        let (_, gaps) = none.newest(1);
        if gaps.iter().all(|gap| gap.source == SELECTION) {
            break gaps;
        }
        std::thread::yield_now();
    };
    let reasons: Vec<&str> = gaps.iter().map(|gap| gap.reason.as_str()).collect();
    let missing = ["no GPU \"3\"", "no GPU \"GPU-8f\""];
    assert_eq!(reasons, missing);
}

#[test]
fn a_library_that_hangs_is_reported_and_blocks_nothing() {
    let (keep, never) = channel::<()>();
    let time = Arc::new(Mutex::new(0));
    let clock = Arc::clone(&time);
    let open = move || {
        let _ = never.recv();
        Ok(Vec::new())
    };
    let gpus = Gpus::start_with(open, None, Duration::from_secs(1), move || Moment {
        since_start: Duration::from_secs(*clock.lock().unwrap()),
        wall: SystemTime::UNIX_EPOCH,
    });
    assert_eq!(gpus.newest(1).1[0].reason, "opening the NVIDIA driver");
    *time.lock().unwrap() = 60;
    let (rows, gaps) = gpus.newest(1);
    assert_eq!(rows, []);
    assert_eq!(gaps[0].reason, "the NVIDIA driver is not responding");
    drop(gpus);
    drop(keep);
}
