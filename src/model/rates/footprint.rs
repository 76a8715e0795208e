//! How much memory rates take: what is kept for later is kept within a limit.
//!
//! Knows which parts own memory of their own; nothing of what they mean.

use crate::model::rates::{Activity, GpuRates, JobRates, LoaderRates, RankRates, Rates};
use crate::sample::GpuInstance;

/// What an allocator adds to each piece.
const OVERHEAD: usize = 16;

impl Rates {
    /// Bytes that these rates take, with all that belongs to them alone.
    pub fn footprint(&self) -> usize {
        let disks = list(&self.disks, |disk| text(&disk.device));
        let gpus = list(&self.gpus, gpu);
        size_of::<Self>() + OVERHEAD + disks + gpus + self.job.as_ref().map_or(0, job)
    }
}

/// A list, and what its entries own beside themselves.
pub fn list<T>(list: &Vec<T>, own: impl Fn(&T) -> usize) -> usize {
    let itself = match list.capacity() {
        0 => 0,
        capacity => capacity * size_of::<T>() + OVERHEAD,
    };
    itself + list.iter().map(own).sum::<usize>()
}

pub fn text(text: &String) -> usize {
    match text.capacity() {
        0 => 0,
        capacity => capacity + OVERHEAD,
    }
}

fn maybe(maybe: Option<&String>) -> usize {
    maybe.map_or(0, text)
}

fn gpu(gpu: &GpuRates) -> usize {
    let now = &gpu.now;
    let none = |_: &_| 0;
    let processes = |processes: Option<&Vec<_>>| processes.map_or(0, |all| list(all, |_| 0));
    let instance = |one: &GpuInstance| {
        maybe(one.uuid.as_ref()) + maybe(one.gap.as_ref()) + processes(one.processes.as_ref())
    };
    let texts = [&now.uuid, &now.name, &now.gap];
    texts.map(|text| maybe(text.as_ref())).iter().sum::<usize>()
        + list(&now.util_samples, none)
        + now.throttle.as_ref().map_or(0, |all| list(all, text))
        + now.xids.as_ref().map_or(0, |all| list(all, |_| 0))
        + list(&now.instances, instance)
        + processes(now.processes.as_ref())
        + now.users.as_ref().map_or(0, |all| list(all, |_| 0))
        + list(&now.absent, |one| text(&one.figure) + text(&one.reason))
        + list(&gpu.parts, |_| 0)
}

fn job(job: &JobRates) -> usize {
    text(&job.command) + list(&job.ranks, rank)
}

fn rank(rank: &RankRates) -> usize {
    let device = rank.device.as_ref().map_or(0, |device| {
        maybe(device.name.as_ref()) + maybe(device.notice.as_ref())
    });
    device
        + list(&rank.overlaps, |_| 0)
        + list(&rank.beside_swings, |_| 0)
        + list(&rank.activity, activity)
        + list(&rank.gil_holders, activity)
        + list(&rank.loaders, loader)
}

fn loader(loader: &LoaderRates) -> usize {
    maybe(loader.settings.start_method.as_ref())
        + list(&loader.workers, |worker| {
            let loads = worker.loads.as_ref();
            list(&worker.activity, activity) + loads.map_or(0, |loads| list(&loads.last, |_| 0))
        })
}

fn activity(activity: &Activity) -> usize {
    text(&activity.name)
}
