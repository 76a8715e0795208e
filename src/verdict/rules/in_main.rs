//! The trainer's main thread loads its batches itself: `num_workers=0`, or a loader of its own without workers.

use crate::sample::LoaderKind;
use crate::units::Share;
use crate::verdict::busy_time::{ALL_BUSY, MIN_SHARE_OF_WAIT, most_of_the_wait, network_in_main};
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "loading in the main thread",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::Cpu,
    picture: Picture::BusyWorkers,
    more_workers_help: true,
    what_if: false,
    advice,
};

/// Time to load a batch, in milliseconds, below which a worker process is assumed to take longer to hand it over. With
/// other programs running, a `TensorDataset` whose batches of 64 take 0.7 ms became a third slower with one worker.
const HANDED_OVER: f64 = 2.0;

fn advice(situation: &Situation<'_>) -> Vec<String> {
    let context = situation.context;
    if let Some(share) = joins_samples(context) {
        return vec![
            format!(
                "have the dataset return few large tensors, or a whole batch (__getitems__): joining samples (collate) takes \
                 {share} of the time"
            ),
            "only then load in worker processes: many small tensors take longer to hand over than to load".into(),
        ];
    }
    // Beside a step on a GPU, or while it waits for a disk, workers could use that CPU.
    let uses_it = context.rank.main_cpu.is_some_and(|cpu| cpu.0 >= ALL_BUSY);
    if uses_it && context.cpus().is_some_and(|cpus| cpus < 2.0) {
        return texts(&[
            "give the job a second CPU, or load less: worker processes would only compete for its one CPU",
        ]);
    }
    let takes = context.rank.step.wait_ms;
    if takes.is_some_and(|ms| ms < HANDED_OVER) {
        return texts(&[
            "load all samples of a batch at once, as by __getitems__ or by indexing a tensor with them",
            "or make batches larger: workers would take longer to hand over so small a batch than it takes to load",
        ]);
    }
    texts(&[
        load_ahead(context),
        "then watch again: it shows how many workers the step needs, and whether many small tensors take long to hand over",
    ])
}

/// Minimum part of the waits in which samples are joined, from which their tensors are many for what they hold. With 400
/// tensors a sample it was 0.28, and the job became nine times slower with one worker.
const JOINS: f64 = 0.2;

/// Returns the share of time in which PyTorch joins samples to batches, if that is much of the waits.
fn joins_samples(context: &Context<'_>) -> Option<Share> {
    let joining = context.time_in(|name| name.starts_with("collate") && name.ends_with(" (torch)"));
    let part = Share::of(joining.0, context.wait()?.share.0)?;
    (part.0 >= JOINS).then_some(joining)
}

/// Returns the advice to load in parallel with the step.
pub(super) fn load_ahead(context: &Context<'_>) -> &'static str {
    if may_have_processes(context) {
        if context.loads_after_loader() {
            return "move that work into the dataset or its collate_fn, and set num_workers to 1 or more";
        }
        "load in worker processes: set num_workers to 1 or more"
    } else {
        "load ahead of the step: in other processes or threads, through a queue"
    }
}

/// Whether PyTorch's loader runs in the trainer's own threads and could load in processes instead. If a known library feeds it,
/// `loader_advice` names the library's own parameters.
pub(super) fn may_have_processes(context: &Context<'_>) -> bool {
    let pytorch = context.loader.is_some_and(|loader| match loader.kind {
        LoaderKind::PytorchMain => true,
        // Of other loaders, no batch size is known.
        LoaderKind::Other => loader.settings.batch_size.is_some(),
        _ => false,
    });
    pytorch && context.known_loader().is_none()
}

fn check(context: &Context<'_>) -> Option<Evidence> {
    // What a loader other than PyTorch's receives over a network may have been made by another program.
    let own = context
        .loader
        .is_some_and(|loader| loader.kind == LoaderKind::Other);
    let received = context.rank.network.filter(|_| own).unwrap_or_default();
    let loading = Share(context.rank.loading?.0 - received.0).clamped();
    let loading = most_of_the_wait(context, Some(loading))?;
    let in_loader = context.loads_in_main() && !context.loads_after_loader();
    let computes = in_loader && network_in_main(context).is_none();
    computes.then(|| {
        let text = format!("the main thread loads batches itself {loading} of the time");
        Evidence::supporting("loads-in-main", loading.0, MIN_SHARE_OF_WAIT, text)
    })
}
