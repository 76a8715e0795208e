//! Workers wait to open, list or find files, not for what is in them.

use crate::verdict::busy_time::MIN_SHARE_OF_BUSY;
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "opening files",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Input,
    picture: Picture::BusyWorkers,
    more_workers_help: true,
    what_if: false,
    advice: |situation| {
        let fewer = texts(&[
            "pack the samples into shards (WebDataset, Parquet, LMDB): opening a small file here takes longer than reading it",
            "list the files once and keep the list; do not check in each load whether a file exists",
        ]);
        fewer.into_iter().chain(situation.more_workers()).collect()
    },
};

fn check(context: &Context<'_>) -> Option<Evidence> {
    let share = context.of_busy(|worker| worker.about_files)?;
    (share.0 >= MIN_SHARE_OF_BUSY).then(|| {
        let text = format!("workers wait {share} of their busy time to open, list or find files");
        Evidence::supporting("file-lookups", share.0, MIN_SHARE_OF_BUSY, text)
    })
}
