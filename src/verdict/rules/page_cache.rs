//! The page cache does not hold the data: what was read in an earlier epoch is read from the disk again.

use crate::model::rates::WorkerRates;
use crate::units::Share;
use crate::verdict::busy_time::{mapped_reads, mostly_disk};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "data exceeds the page cache",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Input,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice,
};

/// Minimum share of the workers' reads that comes from the disk, at which the cache is of little use.
const FROM_DISK: f64 = 0.5;

fn check(context: &Context<'_>) -> Option<Evidence> {
    mostly_disk(context)?;
    let epoch = context.rank.epoch.filter(|epoch| *epoch > 1)?;
    let share = from_disk(context)?;
    (share.0 >= FROM_DISK).then(|| {
        let text = format!(
            "in epoch {epoch} since attaching, {share} of the workers' reads still come from disk"
        );
        Evidence::supporting("read-again", share.0, FROM_DISK, text)
    })
}

/// Returns the share of the bytes that workers read which came from the disk. Mapped files are read without read calls,
/// so only what was missing in the cache is seen: the share is 1.
fn from_disk(context: &Context<'_>) -> Option<Share> {
    if mapped_reads(context).is_some() {
        return Some(Share(1.0));
    }
    let both = |worker: &WorkerRates| Some((worker.read?.0, worker.rchar?.0));
    let workers = context.workers().iter().filter_map(both);
    let (read, asked) = workers.fold((0.0, 0.0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
    Share::of(read, asked).map(Share::clamped)
}

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let group = situation.context.cgroup();
    let limit = group.and_then(|group| group.mem_limit);
    let memory = match limit {
        Some(limit) => {
            format!("raise the job's memory limit ({limit}): its page cache counts towards it")
        }
        None => "leave more memory to the page cache: fewer workers, a smaller prefetch_factor"
            .to_owned(),
    };
    let smaller = "shrink the data to fit in memory before training: resize or compress it, or give each rank its own part";
    vec![memory, smaller.to_owned()]
}
