//! The main thread spends most of the time that it takes for a batch on choosing the next samples.

use crate::loaders::IN_SAMPLER;
use crate::units::Share;
use crate::verdict::busy_time::{MIN_SHARE_OF_WAIT, most_of_the_wait};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "the sampler",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Cpu,
    picture: Picture::IdleWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "make the sampler cheaper: compute the order once per epoch, with NumPy or torch in place of Python loops",
            "sort or bucket by lengths that were stored before training, not read in the sampler",
        ])
    },
};

/// The sampler runs in the main thread, before a batch is requested from the workers: more of them do not help.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let loading = context.rank.loading?;
    let sampling = context.time_in(|name| name.ends_with(IN_SAMPLER));
    let sampling = most_of_the_wait(context, Some(Share(sampling.0.min(loading.0))))?;
    let mut functions = context.rank.activity.iter();
    let hottest = functions.find_map(|one| one.name.strip_suffix(IN_SAMPLER))?;
    let text =
        format!("the main thread works out the next samples {sampling} of the time, in {hottest}");
    Some(Evidence::supporting(
        "sampling",
        sampling.0,
        MIN_SHARE_OF_WAIT,
        text,
    ))
}
