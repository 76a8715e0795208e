//! The figures that are drawn over time, in the order of their importance.

use crate::config::Role::{self, Compute, Cpu, Full, Read, Trouble};
use crate::model::Rates;
use crate::model::history::{Known, Point, RankPoint};
use crate::model::rates::RankRates;
use crate::ui::{View, axis, format};

/// One figure over time, 0 to 1 as drawn.
pub(super) struct HistorySeries {
    pub(super) name: String,
    pub(super) paint: Role,
    pub(super) values: Vec<Option<f64>>,
    /// The figure of the window, in words.
    pub(super) now: String,
    /// What the full height stands for, in words.
    pub(super) top: String,
    /// Shares at which a light line is drawn, lowest first.
    pub(super) thresholds: &'static [f64],
}

/// The thresholds of a slight, a moderate and a high level in verdicts.
const WAITS: &[f64] = &[0.05, 0.1, 0.2];

impl HistorySeries {
    fn new(name: &str, paint: Role, values: Vec<Option<f64>>, now: String) -> Self {
        Self {
            name: name.to_owned(),
            paint,
            values,
            now,
            top: "100 %".to_owned(),
            thresholds: &[],
        }
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }
}

pub(super) fn all(view: &View<'_>, cells: usize) -> Vec<HistorySeries> {
    let rank = view.rank();
    let number = view.rank_number();
    let of_rank = |pick: fn(&RankPoint) -> Known| {
        past(view, cells, |point: &Point| pick(point.rank(number)?).get())
    };
    let wait = format::percent(rank.and_then(RankRates::wait_share));
    let queue = rank.and_then(|rank| rank.main_loader()?.queue);
    let queue = format::known(queue.map(format::ready));
    let mut series = vec![
        HistorySeries {
            thresholds: WAITS,
            ..HistorySeries::new("wait", Trouble, of_rank(|rank| rank.wait), wait)
        },
        HistorySeries {
            top: "full".to_owned(),
            ..HistorySeries::new("queue", Full, of_rank(|rank| rank.queue), queue)
        },
    ];
    if view.history.gpus() > 0 {
        let place = view.gpu_place();
        let gpu = view.gpus().get(place);
        let name = match gpu {
            Some(gpu) if view.gpus().len() > 1 => format!("GPU {}", gpu.now.index),
            _ => "GPU".to_owned(),
        };
        let util = gpu.and_then(|gpu| gpu.util_percent);
        let now = format::whole_percent(util);
        let values = past(view, cells, |point| gpu_util(point, place));
        series.push(HistorySeries::new(&name, Compute, values, now));
    }
    if let Some(device) = view.device_alone() {
        let now = format::percent(device.busy);
        let values = of_rank(|rank| rank.device_busy);
        series.push(HistorySeries::new("device", Compute, values, now));
    }
    let job = view.job();
    let (values, most) = disk_read(view, cells);
    let now = format::rate(job.and_then(|job| Some(job.read?.0)));
    series.push(HistorySeries {
        top: format::rate(Some(most)),
        ..HistorySeries::new("read", Read, values, now)
    });
    let cores = job.and_then(|job| job.cpu_cores);
    let cpus = view.figures().and_then(cpus_of_job);
    let now = match (cores, cpus) {
        (Some(cores), Some(cpus)) if cpus >= 100 => format!("{cores:.0} of {cpus}"),
        (Some(cores), Some(cpus)) => format!("{cores:.1} of {cpus}"),
        _ => format::UNKNOWN.to_owned(),
    };
    // A job may use only a few of many CPUs, so the full height is the most that it used, rounded up.
    let (values, most) = relative_to_max(past(view, cells, |point| point.cpu_cores.get()));
    let full = most.ceil();
    let values = values.into_iter().map(|part| Some(part? * most / full));
    series.push(HistorySeries {
        top: if full > 1.0 {
            format!("{full} CPUs")
        } else {
            "1 CPU".to_owned()
        },
        ..HistorySeries::new("CPU", Cpu, values.collect(), now)
    });
    series
}

/// Returns the number of CPUs that the job may use; if that is unknown, the number of CPUs of the machine.
fn cpus_of_job(rates: &Rates) -> Option<u32> {
    let allowed = rates.job.as_ref().and_then(|job| job.cpus_allowed);
    allowed.or(Some(rates.host.cpus)).filter(|cpus| *cpus > 0)
}

/// Returns the mean of a figure in each cell of the shown time.
pub(in crate::ui) fn past(
    view: &View<'_>,
    cells: usize,
    pick: impl Fn(&Point) -> Option<f64>,
) -> Vec<Option<f64>> {
    axis::of(view, cells).map_or_else(Vec::new, |axis| view.history.means(&axis, pick))
}

/// Returns the utilisation of the GPU at this place, 0 to 1.
pub(in crate::ui) fn gpu_util(point: &Point, place: usize) -> Option<f64> {
    Some(point.gpus.get(place)?.util_percent.get()? / 100.0)
}

/// Returns what the job read from disks in each cell, as parts of the maximum of all cells, and that maximum in bytes
/// per second.
pub(in crate::ui) fn disk_read(view: &View<'_>, cells: usize) -> (Vec<Option<f64>>, f64) {
    let values = past(view, cells, |point| point.disk_read.get());
    relative_to_max(values)
}

/// Returns the values as parts of the highest value, and that value, which is at least 1.
pub(in crate::ui) fn relative_to_max(values: Vec<Option<f64>>) -> (Vec<Option<f64>>, f64) {
    let most = values.iter().flatten().copied().fold(1.0, f64::max);
    let parts = values.into_iter().map(|value| Some(value? / most));
    (parts.collect(), most)
}
