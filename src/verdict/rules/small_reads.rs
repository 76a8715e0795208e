//! Workers wait for a disk that answers many small reads: each costs as much time as a large one.

use crate::verdict::busy_time::{mapped_reads, mostly_disk};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "small reads from a disk",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Input,
    picture: Picture::BusyWorkers,
    more_workers_help: true,
    what_if: false,
    advice: |situation| {
        let larger = texts(&[
            "read larger parts at once: pack the samples into shards (WebDataset, Parquet, array_record) and shuffle within them",
            "or copy the data to an SSD, or into memory",
        ]);
        larger.into_iter().chain(situation.more_workers()).collect()
    },
};

/// KiB of a read on average, up to which its time hardly depends on its size.
const SMALL: f64 = 32.0;
/// Reads a second: with fewer, the disk is slow whatever is asked of it.
const MANY: f64 = 50.0;

/// Page faults of mapped files are another matter: the kernel chooses how much it reads.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let share = mostly_disk(context).filter(|_| mapped_reads(context).is_none())?;
    let disks = context
        .rates
        .disks
        .iter()
        .filter(|disk| disk.holds_job_files);
    let (reads, bytes) = disks.fold((0.0, 0.0), |(reads, bytes), disk| {
        (reads + disk.reads_per_s, bytes + disk.read.0)
    });
    let kib = bytes / reads.max(1.0) / 1024.0;
    (reads >= MANY && kib <= SMALL).then(|| {
        let text = format!(
            "workers wait for the disk {share} of their busy time, which reads {kib:.0} KiB at a time, {reads:.0} times a second"
        );
        Evidence::supporting("read-size", kib, SMALL, text)
    })
}
