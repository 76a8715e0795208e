//! The GPUs: one thread for each reads it at its own pace and stores the newest reading on a board.
//!
//! A driver that hangs makes one row old and delays nothing else: not the other GPUs, not the reader of the board, not
//! the start or the end of the program. Depends on NVML only to open it.

mod device;
mod naming;
mod users;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use self::device::Gpu;
use self::naming::{any, named};
pub(in crate::source) use self::users::Users;
use super::nvml;
use crate::background::{lock, spawn};
use crate::sample::{Gap, GpuSample};
use crate::source::events::Events;
use crate::units::Moment;

/// The GPUs of this machine, read in the background until this is dropped.
pub struct Gpus {
    shared: Arc<Shared>,
    clock: Box<dyn Fn() -> Moment + Send + Sync>,
    started: Moment,
    /// Age at which a reading is reported as a driver that does not respond.
    patience: Duration,
    /// Longest duration of a reading before the driver is reported as not responding.
    deadline: Duration,
}

struct Shared {
    board: Mutex<GpuTable>,
    /// Notified when `GpuTable::stopped` is set.
    stop: Condvar,
    /// `None` = every GPU.
    selection: Option<Vec<String>>,
}

#[derive(Default)]
struct GpuTable {
    /// By index.
    rows: Vec<GpuRow>,
    /// `None` while the driver is being opened.
    gaps: Option<Vec<Gap>>,
    stopped: bool,
}

impl GpuTable {
    fn row(&mut self, index: u32) -> Option<&mut GpuRow> {
        self.rows.get_mut(usize::try_from(index).ok()?)
    }
}

struct GpuRow {
    sample: GpuSample,
    util_samples: Events<(u64, f64)>,
    opened: Moment,
    /// When the current reading began.
    asked: Option<Moment>,
    /// Whether the selection names it; `None` if that needs its UUID, which is not known yet.
    chosen: Option<bool>,
}

/// Utilisation samples kept if nobody takes them: two minutes' worth.
const MAX_SAMPLES: usize = 1024;
/// The driver keeps 10 s of its history: later reads miss some of it.
const MAX_INTERVAL: Duration = Duration::from_secs(4);
const SOURCE: &str = "nvml";
/// Source of the gaps for GPUs that were asked for and are not there.
pub const SELECTION: &str = "gpu";

impl Gpus {
    /// Opens NVML (`None` = the driver's own library) and reads every GPU that `selection` names once per `interval`. A
    /// word of the selection is an index in PCI bus order, or a UUID or the start of one.
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
        let interval = interval.min(MAX_INTERVAL);
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
        // Opening the driver's library may take seconds, or hang.
        let opening = start("gpu-open", {
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

    /// Returns the newest reading of each selected GPU, and why readings are missing. Returns at once.
    ///
    /// All figures but the utilisation samples stay until they are read again; `consumers` callers take those in turn.
    pub fn newest(&self, consumers: usize) -> (Vec<GpuSample>, Vec<Gap>) {
        let now = (self.clock)();
        let late = |since: &Moment| now.seconds_since(since) > self.patience.as_secs_f64();
        let mut board = self.shared.board();
        let gaps = match &board.gaps {
            None => vec![not_open(late(&self.started))],
            Some(gaps) => gaps.iter().cloned().chain(self.unmatched(&board)).collect(),
        };
        let chosen = |row: &&mut GpuRow| row.chosen != Some(false);
        let rows = board.rows.iter_mut().filter(chosen).map(|row| {
            let mut sample = row.sample.clone();
            sample.util_samples = row.util_samples.take(consumers);
            let overdue = |asked| now.seconds_since(&asked) > self.deadline.as_secs_f64();
            if row.asked.is_some_and(overdue) || late(&sample.read_at.unwrap_or(row.opened)) {
                sample.gap = Some("driver not responding".to_owned());
            }
            sample
        });
        (rows.collect(), gaps)
    }

    /// Returns gaps for the words of the selection that name no GPU, once every GPU's UUID is known.
    fn unmatched(&self, board: &GpuTable) -> Vec<Gap> {
        let names = |word: &str| {
            let mut rows = board.rows.iter().map(|row| &row.sample);
            rows.any(|gpu| named(word, gpu.index, gpu.uuid.as_deref()) != Some(false))
        };
        let words = self.shared.selection.iter().flatten();
        words
            .filter(|word| !names(word))
            .map(|word| {
                Gap::new(
                    SELECTION,
                    format!("no GPU {word:?}"),
                    "`nvidia-smi -L` lists GPU indices and UUIDs",
                )
            })
            .collect()
    }
}

impl Drop for Gpus {
    /// Tells the threads to end but does not wait for them: one may be inside a driver that hangs.
    fn drop(&mut self) {
        self.shared.board().stopped = true;
        self.shared.stop.notify_all();
    }
}

impl Shared {
    /// Locked only to copy a reading in or out, never during a call of the driver.
    fn board(&self) -> MutexGuard<'_, GpuTable> {
        lock(&self.board)
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
            self.board().rows.push(GpuRow {
                sample: GpuSample {
                    index,
                    ..GpuSample::default()
                },
                util_samples: Events::new(MAX_SAMPLES),
                opened: clock(),
                asked: None,
                chosen,
            });
            if chosen == Some(false) {
                continue;
            }
            let (shared, clock) = (Arc::clone(self), clock.clone());
            let watching = start(&format!("gpu-{index}"), move || {
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
            if let Some(row) = self.board().row(index) {
                row.asked = Some(at);
            }
            let sample = gpu.read(at);
            if !self.put(index, sample) {
                return;
            }
            let took = clock().since_start.saturating_sub(at.since_start);
            // After a slow reading, rests as long as it took, at most one interval.
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

    /// Stores a reading. Returns `false` if this GPU need not be read again.
    fn put(&self, index: u32, mut sample: GpuSample) -> bool {
        let chosen = self.chosen(index, sample.uuid.as_deref());
        let mut board = self.board();
        let Some(row) = board.row(index) else {
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
        any(words.iter().map(|word| named(word, index, uuid)))
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Gap> {
    spawn(name, work).map(drop).map_err(|error| {
        Gap::new(
            SOURCE,
            format!("cannot start a thread for a GPU: {error}"),
            "raise the process limit (ulimit -u)",
        )
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
    Gap::new(SOURCE, reason, hint)
}

#[cfg(test)]
mod tests;
