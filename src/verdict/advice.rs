//! What to change. Every remedy follows from its cause: more workers are never advised where CPUs,
//! quota, disk, shards or in-order delivery are the limit.

use super::case::Case;
use super::{Cause, Headspace, Interval, Kind, Limit, WorkerAdvice};

/// What free loading would bring: all of the lost share.
pub(super) fn headspace(case: &Case<'_>, stall: Interval) -> Headspace {
    let step = case.rank.step;
    let now = step
        .batches_per_s
        .filter(|rate| *rate > 0.0)
        .map(|rate| 1000.0 / rate);
    let free = stall.share.rest().0;
    Headspace {
        // A job that only waits has no finite bound; a hundredfold is already beside the point.
        speedup_max: 1.0 / free.max(0.01),
        step_ms_now: now,
        step_ms_free: now.map(|now| now * free),
    }
}

/// How many workers would match the step, and how many the CPUs allow.
pub(super) fn workers(case: &Case<'_>, kind: Kind, cause: Option<Cause>) -> Option<WorkerAdvice> {
    let now = case.loader?.settings.num_workers?;
    let step = case.rank.step;
    // What a worker spends waiting for a CPU is no work: other workers would not take it over.
    let delayed = case.of_busy(|worker| worker.run_delay).unwrap_or_default();
    let match_step = step.load_ms.zip(step.step_ms).and_then(|(load, step)| {
        let workers = load * delayed.rest().0 / step.max(0.001);
        // A rounding error above a whole number asks for no further worker.
        whole((workers - 0.02).ceil().max(1.0))
    });
    let cpu_allows = cpu_allows(case);
    let more_would_help = kind == Kind::DataBound
        && matches!(
            cause,
            None | Some(Cause::CpuPreprocess | Cause::Network | Cause::InMain)
        );
    let wanted = match_step.map(|wanted| cpu_allows.map_or(wanted, |cpus| wanted.min(cpus)));
    Some(WorkerAdvice {
        now,
        match_step,
        cpu_allows,
        advised: wanted.filter(|wanted| more_would_help && *wanted > now),
    })
}

/// Workers that the CPUs can feed, beside the trainer and the other ranks: whole ones, and at least one.
fn cpu_allows(case: &Case<'_>) -> Option<u32> {
    whole(cpu_feeds(case)?.floor().max(1.0))
}

/// The same to a fraction: CPU time that is left, in workers' worth. `None` where CPUs are not what limits them.
pub(super) fn cpu_feeds(case: &Case<'_>) -> Option<f64> {
    let per_worker = cpu_per_worker(case)?;
    let ranks = case.job.ranks.len().max(1) as f64;
    let trainer = case.rank.main_cpu.map_or(0.0, |cpu| cpu.0);
    let left = (case.cpus()? / ranks - trainer).max(0.0);
    Some(left / per_worker)
}

/// CPUs that a worker uses while it has work, one at most. `None` where that is not known, or next to nothing.
pub(super) fn cpu_per_worker(case: &Case<'_>) -> Option<f64> {
    let busy: f64 = case
        .workers()
        .iter()
        .filter_map(|worker| Some(worker.busy?.0))
        .sum();
    // What they would use if they got it.
    let delayed = case
        .workers()
        .iter()
        .filter_map(|worker| Some(worker.run_delay?.0));
    let per_worker = (case.workers_cpu()? + delayed.sum::<f64>()) / busy.max(0.01);
    // With less, it is not the CPU what limits them.
    (per_worker >= 0.1).then_some(per_worker.min(1.0))
}

/// A count that was computed as a float. `None` beyond what a machine can have.
fn whole(count: f64) -> Option<u32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    (0.0..1e6).contains(&count).then_some(count as u32)
}

/// What to do, most useful first.
pub(super) fn advice(
    case: &Case<'_>,
    (kind, limit): (Kind, Option<Limit>),
    cause: Option<Cause>,
    workers: Option<WorkerAdvice>,
    headspace: Option<Headspace>,
) -> Vec<String> {
    match kind {
        Kind::DataBound => match cause {
            Some(cause) => for_cause(case, cause, workers, headspace),
            None => match more_workers(workers, headspace) {
                Some(more) => vec![more],
                None => outlast_slow_batches(case, workers),
            },
        },
        Kind::ComputeBound => {
            let model = "work on the model or its step: free loading would bring next to nothing";
            let about = limit.map(|limit| match limit {
                Limit::Compute => "its multiprocessors are in use: a smaller data type, or less to compute",
                Limit::Memory => {
                    "its memory is the limit: fuse operations (torch.compile), or a smaller data type"
                }
                Limit::SmallKernels => {
                    "its kernels do not fill it: larger batches, torch.compile, or CUDA graphs"
                }
            });
            [model].into_iter().chain(about).map(Into::into).collect()
        }
        Kind::CommunicationBound => vec![
            "look for the rank that comes last: the others wait for it in each collective".into(),
            "communicate less often or beside the step: larger buckets, gradient accumulation with no_sync()"
                .into(),
        ],
        Kind::HostBound => match cause {
            Some(cause) => for_cause(case, cause, workers, headspace),
            None => vec![
                "look at the host side of the step: launches, synchronisation, logging, locks"
                    .into(),
            ],
        },
        _ => vec![],
    }
}

fn more_workers(workers: Option<WorkerAdvice>, headspace: Option<Headspace>) -> Option<String> {
    let workers = workers?;
    let advised = workers.advised?;
    let gain = headspace.map_or(1.0, |space| space.speedup_max);
    // More workers bring as much as they are more, and no more than free loading would.
    let gain = gain.min(f64::from(advised) / f64::from(workers.now.max(1)));
    let limit = match (workers.match_step, workers.cpu_allows) {
        (Some(wanted), Some(cpus)) if cpus < wanted => {
            format!("all that the CPUs allow; {wanted} would match the step")
        }
        (_, Some(cpus)) => format!("matches the step; the CPUs allow {cpus}"),
        _ => "matches the step".into(),
    };
    Some(format!(
        "num_workers {} -> {advised} ({limit}): up to {gain:.1}x faster",
        workers.now
    ))
}

/// Loading is fast enough on average, and yet the trainer waits: for the batches that take longer than others.
fn outlast_slow_batches(case: &Case<'_>, workers: Option<WorkerAdvice>) -> Vec<String> {
    let settings = case.loader.map(|loader| &loader.settings);
    let (Some(workers), Some(settings)) = (workers, settings) else {
        return vec![];
    };
    if workers.match_step.is_none_or(|wanted| wanted > workers.now) {
        return vec![];
    }
    let reserve = settings.prefetch_factor.map(|factor| {
        let more = factor.saturating_mul(4);
        format!(
            "prefetch_factor {factor} -> {more}: loading is fast enough on average, and a larger reserve outlasts \
             the batches that take long"
        )
    });
    let any_order = (settings.in_order == Some(true)).then(|| {
        "in_order=False (PyTorch 2.6 and newer) lets batches that are ready pass one that takes long".into()
    });
    reserve.into_iter().chain(any_order).collect()
}

fn for_cause(
    case: &Case<'_>,
    cause: Cause,
    workers: Option<WorkerAdvice>,
    headspace: Option<Headspace>,
) -> Vec<String> {
    let hottest = case.hottest().map(|(name, _)| name);
    let cheaper = match hottest {
        Some(name) => format!("make {name} cheaper, or do it once ahead of training"),
        None => "make the transforms cheaper, or do them once ahead of training".into(),
    };
    let fixed: &[&str] = match cause {
        Cause::Transfer => return transfer(case),
        Cause::CpuPreprocess => {
            return more_workers(workers, headspace)
                .into_iter()
                .chain([cheaper])
                .collect();
        }
        Cause::CpuOversubscribed => {
            let cpus = workers.and_then(|workers| workers.cpu_allows);
            let fewer = cpus.map(|cpus| {
                let workers = if cpus == 1 { "worker" } else { "workers" };
                format!("the CPUs feed {cpus} {workers} at full speed: any more compete for them")
            });
            return [cheaper].into_iter().chain(fewer).collect();
        }
        Cause::Network => {
            let cache = "cache the data on a local disk, or fetch larger parts at once".into();
            return [cache]
                .into_iter()
                .chain(more_workers(workers, headspace))
                .collect();
        }
        Cause::InMain => &[
            "load in worker processes: set num_workers to 1 or more",
            "then look again: how many workers match the step can be measured",
        ],
        Cause::WorkerRestart => &[
            "persistent_workers=True keeps the workers from one epoch to the next",
            "make epochs longer, or the dataset quicker to import and to pickle",
        ],
        Cause::FewShards => &["split the data into at least as many shards as there are workers"],
        Cause::HeadOfLine => &[
            "in_order=False (PyTorch 2.6 and newer) lets the other workers' batches pass",
            "or balance the work: the slow samples or the slow shard should be spread",
        ],
        Cause::Ipc => &[
            "hand over fewer, larger tensors: stack or pack them in collate_fn",
            "or torch.multiprocessing.set_sharing_strategy('file_system')",
        ],
        Cause::Disk => &[
            "read less or from a faster disk: larger sequential files, a local copy, a page cache that holds the data",
        ],
        Cause::CpuQuota => &[
            "raise the container's CPU quota",
            "or make the transforms cheaper: the CPUs that are there are used up",
        ],
        Cause::CpuAffinity => &[
            "let the workers run on all CPUs: reset the affinity in worker_init_fn (os.sched_setaffinity)",
            "a library that was imported may have narrowed it (OMP_PROC_BIND, KMP_AFFINITY, GOMP_CPU_AFFINITY)",
        ],
        Cause::MemoryPressure => {
            &["use less memory: fewer workers, a smaller prefetch_factor, or smaller batches"]
        }
        Cause::Gil => &[
            "move that thread's work into a process of its own (multiprocessing): threads share one interpreter lock",
            "or let it work in calls that release the lock (NumPy, Pillow, torch), and less often",
        ],
        Cause::Launch => &[
            "give the GPU more work at a time: larger batches, torch.compile, or CUDA graphs",
            "keep Python out of the step: logging, metrics and checks every so many steps",
        ],
        Cause::Sync => &[
            "synchronise only where a result is needed: no torch.cuda.synchronize() in the step",
            "read losses and metrics every so many steps: .item() and .cpu() wait for the GPU too",
        ],
        Cause::Straggler => {
            &["look at this rank's data and its share of the CPUs: the others wait for it"]
        }
    };
    fixed.iter().map(|text| (*text).to_owned()).collect()
}

/// Copies run beside the step from pinned memory alone; fewer bytes are quicker from any.
fn transfer(case: &Case<'_>) -> Vec<String> {
    let overlap = match case.loader.and_then(|loader| loader.settings.pin_memory) {
        Some(false) => {
            "pin_memory=True (it is off), then .to(device, non_blocking=True) on a stream of its own"
        }
        Some(true) => {
            "copy the next batch during the step: .to(device, non_blocking=True) on a stream of its own"
        }
        None => "pin_memory=True and .to(device, non_blocking=True) on a stream of its own",
    };
    let smaller = "or send fewer bytes: uint8 or float16 over the wire, converted on the device";
    vec![overlap.into(), smaller.into()]
}
