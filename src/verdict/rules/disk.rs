//! Workers wait for a disk: in read calls, or in page faults of files that they have mapped.

use crate::verdict::busy_time::{MIN_SHARE_OF_BUSY, mapped_reads, mostly_disk};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "disk",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Input,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice,
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let share = mostly_disk(context)?;
    let how = mapped_reads(context).map_or_else(String::new, |faults| {
        format!(", in page faults of mapped files ({faults:.0}/s a worker)")
    });
    let text = format!("workers wait for the disk {share} of their busy time{how}");
    Some(Evidence::supporting(
        "disk-wait",
        share.0,
        MIN_SHARE_OF_BUSY,
        text,
    ))
}

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let faster = "read less or from a faster disk: larger sequential files, a local copy, a page cache that holds the data";
    let in_order = mapped_reads(situation.context).map(|_| {
        "read mapped files (Arrow, safetensors, memmap) in order: at random positions each page fault waits for the disk"
    });
    [faster]
        .into_iter()
        .chain(in_order)
        .map(Into::into)
        .collect()
}
