//! Each worker runs several threads, and together they use up the CPUs: libraries that compute in parallel (`OpenCV`,
//! BLAS, `OpenMP`) do so in each worker.

use crate::model::rates::WorkerRates;
use crate::units::Share;
use crate::verdict::busy_time::mostly_cpu;
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, texts};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "several threads in each worker",
    checks: &[(Kind::DataBound, check)],
    resource: Resource::CpuTime,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: false,
    advice: |_| {
        texts(&[
            "use one thread per worker: cv2.setNumThreads(0) in worker_init_fn, OMP_NUM_THREADS=1 before Python starts",
        ])
    },
};

/// Minimum share of the workers' CPU time used by threads other than the main thread, for these to do part of the
/// computing. The thread that hands over batches uses less.
const OTHER_THREADS: f64 = 0.3;
/// Share of the CPUs that all threads of the workers use or wait for, below which they do not compete for CPUs.
const FULL: f64 = 0.8;

fn check(context: &Context<'_>) -> Option<Evidence> {
    let of = |figure: fn(&WorkerRates) -> Option<f64>| -> Option<f64> {
        // Workers that are threads of the trainer have no further threads.
        let processes = context.workers().iter().filter(|worker| !worker.thread);
        processes.map(figure).sum()
    };
    let (all, main) = (
        of(|worker| worker.cpu)?,
        of(|worker| Some(worker.main_cpu?.0))?,
    );
    let delayed = of(|worker| Some(worker.run_delay?.0))?;
    let others = Share::of((all - main).max(0.0), all)?;
    let cpus = context.cpus()?;
    let full = all + delayed >= FULL * cpus;
    (full && mostly_cpu(context).is_some() && others.0 >= OTHER_THREADS).then(|| {
        let text = format!(
            "extra threads use {others} of the workers' CPU time; the workers use {all:.1} of {cpus:.0} CPUs"
        );
        Evidence::supporting("further-threads", others.0, OTHER_THREADS, text)
    })
}
