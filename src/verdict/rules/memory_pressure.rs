//! The machine is short of memory: tasks wait for it.

use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "memory pressure",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Memory,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&["use less memory: fewer workers, a smaller prefetch_factor, or smaller batches"])
    },
};

/// Minimum share of the time in which at least one task waits for memory (PSI).
const PRESSURE: f64 = 0.2;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let pressure = context.rates.host.pressure_memory?;
    (pressure.0 >= PRESSURE).then(|| {
        let text = format!("something waits for memory {pressure} of the time");
        Evidence::supporting("memory-pressure", pressure.0, PRESSURE, text)
    })
}
