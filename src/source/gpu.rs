//! The GPUs: one thread each reads it at its own pace and leaves the newest reading on a board.
//!
//! A driver that hangs makes one row old and holds up nobody: not the other GPUs, not who looks at the
//! board, not the start and not the end of the program. Knows of NVML only how to open it.

mod device;
mod naming;
mod users;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub use self::device::Gpu;
use self::naming::named;
pub(in crate::source) use self::users::Users;
use super::nvml;
use crate::sample::{Gap, GpuSample};
use crate::source::events::Events;
use crate::units::Moment;

/// The GPUs of this machine, read in the background until this is dropped.
pub struct Gpus {
    shared: Arc<Shared>,
    clock: Box<dyn Fn() -> Moment + Send + Sync>,
    started: Moment,
    /// Age at which a reading counts as not answered.
    patience: Duration,
    /// How long a reading may take before the driver counts as not answering.
    deadline: Duration,
}

struct Shared {
    board: Mutex<Board>,
    /// Rung when `Board::stopped` is set.
    stop: Condvar,
    /// `None` = every GPU.
    selection: Option<Vec<String>>,
}

#[derive(Default)]
struct Board {
    /// By index.
    rows: Vec<Row>,
    /// `None` while the driver is being opened.
    gaps: Option<Vec<Gap>>,
    stopped: bool,
}

struct Row {
    sample: GpuSample,
    util_samples: Events<(u64, f64)>,
    opened: Moment,
    /// When the reading under way began.
    asked: Option<Moment>,
    /// The selection names it; `None` while its UUID would be needed to tell.
    chosen: Option<bool>,
}

/// Utilisation samples kept for a taker that does not come: two minutes' worth.
const SAMPLES_KEPT: usize = 1024;
/// The driver keeps 10 s of its history: who comes later misses some.
const LONGEST_INTERVAL: Duration = Duration::from_secs(4);
const SOURCE: &str = "nvml";

impl Gpus {
    /// Opens NVML (`None` = the driver's own library) and reads every GPU that `selection` names each
    /// `interval`. A word of the selection is an index in PCI bus order, a UUID or the start of one.
    pub fn start(
        nvml_lib: Option<PathBuf>,
        selection: Option<Vec<String>>,
        interval: Duration,
        clock: impl Fn() -> Moment + Send + Sync + Clone + 'static,
    ) -> Self {
        let open = move || nvml::open(nvml_lib.as_deref());
        Self::start_with(open, selection, interval, clock)
    }

    fn start_with(
        open: impl FnOnce() -> Result<Vec<Box<dyn Gpu>>, Gap> + Send + 'static,
        selection: Option<Vec<String>>,
        interval: Duration,
        clock: impl Fn() -> Moment + Send + Sync + Clone + 'static,
    ) -> Self {
        let interval = interval.min(LONGEST_INTERVAL);
        let shared = Arc::new(Shared {
            board: Mutex::default(),
            stop: Condvar::new(),
            selection,
        });
        let gpus = Self {
            shared: Arc::clone(&shared),
            started: clock(),
            clock: Box::new(clock.clone()),
            patience: (interval * 3).max(Duration::from_secs(2)),
            deadline: (interval * 3 / 4).max(Duration::from_millis(300)),
        };
        // Opening the driver's library may take seconds, or for ever.
        let opening = spawn("gpu-open".to_owned(), {
            let shared = Arc::clone(&shared);
            move || match open() {
                Ok(found) => shared.watch_all(found, interval, &clock),
                Err(gap) => shared.board().gaps = Some(vec![gap]),
            }
        });
        if let Err(gap) = opening {
            shared.board().gaps = Some(vec![gap]);
        }
        gpus
    }

    /// The newest reading of each selected GPU, and why there are none or not all. Returns at once.
    ///
    /// All but the utilisation samples stays until it is read anew; those are there for so many takers.
    pub fn newest(&self, takers: usize) -> (Vec<GpuSample>, Vec<Gap>) {
        let now = (self.clock)();
        let late = |since: &Moment| now.seconds_since(since) > self.patience.as_secs_f64();
        let mut board = self.shared.board();
        let gaps = match &board.gaps {
            None => vec![not_open(late(&self.started))],
            Some(gaps) => gaps.iter().cloned().chain(self.unmatched(&board)).collect(),
        };
        let chosen = |row: &&mut Row| row.chosen != Some(false);
        let rows = board.rows.iter_mut().filter(chosen).map(|row| {
            let mut sample = row.sample.clone();
            sample.util_samples = row.util_samples.hand_out(takers);
            let overdue = |asked| now.seconds_since(&asked) > self.deadline.as_secs_f64();
            if row.asked.is_some_and(overdue) || late(&sample.read_at.unwrap_or(row.opened)) {
                sample.gap = Some("driver not responding".to_owned());
            }
            sample
        });
        (rows.collect(), gaps)
    }

    /// Words of the selection that name no GPU, once every GPU has said what it is.
    fn unmatched(&self, board: &Board) -> Vec<Gap> {
        let names = |word: &str| {
            let mut rows = board.rows.iter().map(|row| &row.sample);
            rows.any(|gpu| named(word, gpu.index, gpu.uuid.as_deref()) != Some(false))
        };
        let words = self.shared.selection.iter().flatten();
        words
            .filter(|word| !board.rows.is_empty() && !names(word))
            .map(|word| Gap {
                source: SOURCE.to_owned(),
                reason: format!("no GPU {word:?}"),
                hint: "`nvidia-smi -L` lists GPU indices and UUIDs".to_owned(),
            })
            .collect()
    }
}

impl Drop for Gpus {
    /// Tells the threads to end and waits for none: one may be inside a driver that hangs.
    fn drop(&mut self) {
        self.shared.board().stopped = true;
        self.shared.stop.notify_all();
    }
}

impl Shared {
    /// Held only to copy a reading in or out, never while a driver is asked.
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch_all(
        self: &Arc<Self>,
        found: Vec<Box<dyn Gpu>>,
        interval: Duration,
        clock: &(impl Fn() -> Moment + Send + Clone + 'static),
    ) {
        let mut gaps = Vec::new();
        for (gpu, index) in found.into_iter().zip(0..) {
            let chosen = self.chosen(index, None);
            self.board().rows.push(Row {
                sample: GpuSample {
                    index,
                    ..GpuSample::default()
                },
                util_samples: Events::new(SAMPLES_KEPT),
                opened: clock(),
                asked: None,
                chosen,
            });
            if chosen == Some(false) {
                continue;
            }
            let (shared, clock) = (Arc::clone(self), clock.clone());
            let watching = spawn(format!("gpu-{index}"), move || {
                shared.watch(gpu, index, interval, &clock);
            });
            gaps.extend(watching.err());
        }
        self.board().gaps = Some(gaps);
    }

    fn watch(
        &self,
        mut gpu: Box<dyn Gpu>,
        index: u32,
        interval: Duration,
        clock: &impl Fn() -> Moment,
    ) {
        loop {
            let at = clock();
            self.ask(index, at);
            let sample = gpu.read(at);
            if !self.put(index, sample) {
                return;
            }
            let took = clock().since_start.saturating_sub(at.since_start);
            // A slow driver is let rest as long as it took, up to an interval.
            let rest = interval.saturating_sub(took).max(took.min(interval));
            let (board, _) = self
                .stop
                .wait_timeout_while(self.board(), rest, |board| !board.stopped)
                .unwrap_or_else(PoisonError::into_inner);
            if board.stopped {
                return;
            }
        }
    }

    /// Notes that a reading begins.
    fn ask(&self, index: u32, at: Moment) {
        let mut board = self.board();
        let row = board.rows.iter_mut().find(|row| row.sample.index == index);
        if let Some(row) = row {
            row.asked = Some(at);
        }
    }

    /// Puts a reading on the board. `false` where nobody wants another of this GPU.
    fn put(&self, index: u32, mut sample: GpuSample) -> bool {
        let chosen = self.chosen(index, sample.uuid.as_deref());
        let mut board = self.board();
        let Some(row) = board.rows.iter_mut().find(|row| row.sample.index == index) else {
            return false;
        };
        row.util_samples
            .extend(std::mem::take(&mut sample.util_samples).newest);
        row.sample = sample;
        row.asked = None;
        row.chosen = chosen;
        chosen != Some(false) && !board.stopped
    }

    fn chosen(&self, index: u32, uuid: Option<&str>) -> Option<bool> {
        let Some(words) = &self.selection else {
            return Some(true);
        };
        let answers: Vec<_> = words.iter().map(|word| named(word, index, uuid)).collect();
        if answers.contains(&Some(true)) {
            Some(true)
        } else if answers.contains(&None) {
            None
        } else {
            Some(false)
        }
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<(), Gap> {
    let thread = thread::Builder::new().name(name);
    let started = thread.spawn(work).map(drop);
    started.map_err(|error| Gap {
        source: SOURCE.to_owned(),
        reason: format!("cannot start a thread for a GPU: {error}"),
        hint: "raise the process limit (ulimit -u)".to_owned(),
    })
}

fn not_open(late: bool) -> Gap {
    let (reason, hint) = if late {
        (
            "the NVIDIA driver is not responding",
            "look for `NVRM` and `Xid` in `dmesg`; GPUs appear once it responds",
        )
    } else {
        ("opening the NVIDIA driver", "")
    };
    Gap {
        source: SOURCE.to_owned(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests;
