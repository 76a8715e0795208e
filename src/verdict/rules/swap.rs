//! Workers wait for memory that was swapped out.

use crate::units::mean;
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "swapping",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Memory,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "use less memory: fewer workers, a smaller prefetch_factor, and no large Python lists in the dataset, which each worker copies",
            "or use a machine with more memory; `top -o %MEM` lists what else uses it",
        ])
    },
};

/// Minimum number of pages read from swap per second: 4 MB.
const MIN_PAGES: f64 = 1000.0;
/// Minimum number of page faults per second and worker that had to wait for a read.
const FAULTS: f64 = 10.0;

/// Requires that the machine reads from swap and that the workers wait for pages: otherwise it swaps for other
/// programs.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let pages = context.rates.host.swapped_in_per_s?;
    let faults = mean(
        context
            .workers()
            .iter()
            .filter_map(|worker| worker.major_faults_per_s),
    )?;
    (pages >= MIN_PAGES && faults >= FAULTS).then(|| {
        let text = format!(
            "{pages:.0} pages a second are read back from swap, and each worker waits for {faults:.0} pages a second"
        );
        Evidence::supporting("swapped-in", pages, MIN_PAGES, text)
    })
}
