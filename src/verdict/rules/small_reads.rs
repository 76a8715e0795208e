//! Workers wait for a disk with many small reads: each takes as long as a large one.

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

/// Mean size of a read in KiB, up to which its time hardly depends on its size.
const MAX_READ_KIB: f64 = 32.0;
/// Minimum number of reads per second: with fewer, the disk is slow for any reads.
const MIN_READS: f64 = 50.0;
/// Bytes of the smallest read: a page.
const SMALLEST: f64 = 4096.0;

/// Does not apply to page faults of mapped files: there, the kernel chooses the size of a read. Nor if the reads may be
/// those of other programs, which are counted with the workers': these may have read the rest of the bytes page by page.
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
    let own = context.job.read?.0.min(bytes);
    let own_reads = reads - (bytes - own) / SMALLEST;
    let kib = |bytes: f64, reads: f64| bytes / reads / 1024.0;
    (own_reads >= MIN_READS && kib(own, own_reads) <= MAX_READ_KIB).then(|| {
        let kib = kib(bytes, reads);
        let text = format!(
            "workers wait for the disk {share} of their busy time; it does {reads:.0} reads/s of {kib:.0} KiB each"
        );
        Evidence::supporting("read-size", kib, MAX_READ_KIB, text)
    })
}
