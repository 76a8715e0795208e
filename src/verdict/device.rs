//! Evidence from the GPU itself: what a busy GPU is limited by, and whether the idle times of an oscillating GPU
//! coincide with the trainer's waits.
//!
//! The thresholds of the counters follow published ones (more than half of the multiprocessors active for work that
//! fills the card; memory or compute above 60-70 % for the limit that it is near).

use super::context::{Context, likely, time_in};
use super::level::{MODERATE, SLIGHT};
use super::{Evidence, Kind, Limit};
use crate::model::Oscillation;
use crate::model::rates::{JobRates, RankRates};
use crate::units::Share;

/// Minimum use of a part of the GPU for it to count as the limit.
const NEAR: f64 = 0.6;
/// Use of the multiprocessors and of the memory bandwidth below which a GPU that always runs a kernel is far from
/// filled.
const FEW_MULTIPROCESSORS: f64 = 0.5;
const LITTLE_MEMORY: f64 = 0.3;
/// Maximum use of multiprocessors and memory by kernels of collectives: they take a fraction of the multiprocessors and
/// little memory bandwidth.
const COLLECTIVE: f64 = 0.3;
/// Minimum share of the time that the main thread is in collectives.
const MIN_COLLECTIVES: f64 = 0.2;
/// Minimum share of time with a kernel.
const BUSY: f64 = 0.8;
/// Correlation of waits and idle time above which they coincide, and below which they do not.
const CORRELATED: f64 = 0.5;
const UNCORRELATED: f64 = 0.3;

/// Functions of `torch.distributed` that wait for the other ranks.
const COLLECTIVES: [&str; 8] = [
    "all_reduce",
    "all_gather",
    "all_to_all",
    "reduce_scatter",
    "broadcast",
    "barrier",
    "_all_gather_base",
    "_reduce_scatter_base",
];

/// Returns what limits a GPU that runs a kernel almost all the time. `None` if its counters do not show it, or show no
/// limit.
pub(super) fn limit(context: &Context<'_>) -> Option<Limit> {
    let counters = context.gpu()?.counters;
    let (active, memory) = (counters.sm_active?.0, counters.dram?.0);
    let tensor = counters.tensor.map_or(0.0, |tensor| tensor.0);
    if memory >= NEAR && memory >= tensor {
        Some(Limit::Memory)
    } else if active >= NEAR {
        Some(Limit::Compute)
    } else if active < FEW_MULTIPROCESSORS && memory < LITTLE_MEMORY {
        Some(Limit::SmallKernels)
    } else {
        None
    }
}

/// Returns the fact that the rank waits for other ranks.
pub(super) fn communication(context: &Context<'_>) -> Option<Evidence> {
    in_collectives(context).or_else(|| kernels_of_collectives(context))
}

/// Returns the share of time that a rank's main thread is seen in a function that waits for the other ranks.
pub(super) fn time_in_collectives(job: &JobRates, rank: &RankRates) -> Share {
    let named = time_in(rank, |name| {
        let function = name.split(' ').next().unwrap_or_default();
        let function = function.rsplit('.').next().unwrap_or_default();
        name.ends_with("(torch)") && COLLECTIVES.iter().any(|known| function.starts_with(known))
    });
    Share(named.0.max(blocked_in_backward(job, rank).0))
}

/// Returns the share of time in which a rank's main thread is in `backward` and nothing of the rank runs, although CPUs
/// are free: there, the hooks of `DistributedDataParallel` wait for the other ranks.
fn blocked_in_backward(job: &JobRates, rank: &RankRates) -> Share {
    // Without a launcher, ranks do not have the number of ranks in their environment.
    let several = rank.world_size.map_or(job.ranks.len() > 1, |size| size > 1);
    let blocked = in_backward(rank).filter(|_| several).unwrap_or_default();
    Share(blocked.0 * scarcity_of_cpus(rank).complement().0)
}

/// Returns the share of time in which a rank's main thread is in `backward` and nothing of the rank runs because the
/// thread or rank that it waits for has no CPU. That time counts as a slow step.
pub(super) fn starved_in_backward(rank: &RankRates) -> Share {
    let blocked = in_backward(rank).unwrap_or_default();
    Share(blocked.0 * scarcity_of_cpus(rank).0)
}

/// Returns the share of time in which the main thread is in `backward` and nothing of the rank runs.
fn in_backward(rank: &RankRates) -> Option<Share> {
    let time = time_in(rank, |name| {
        let function = name.trim_end_matches(" (torch)");
        name.ends_with("(torch)") && function.ends_with("backward")
    });
    Some(Share(time.0.min(rank.blocked?.0)))
}

/// Returns the part of a wait for other threads and ranks that is attributed to a shortage of CPUs: none if the main
/// thread gets a CPU at once, all if it waits for one at least as long as it runs. The others are assumed to wait as
/// long as it does, one after the other.
fn scarcity_of_cpus(rank: &RankRates) -> Share {
    let lacked = rank.main_run_delay.unwrap_or_default().0;
    let used = rank.main_cpu.unwrap_or_default().0;
    Share::of(lacked, used).unwrap_or_default()
}

/// Returns the fact that the main thread is in collectives. Needs no GPU: ranks on CPUs wait for each other, too.
pub(super) fn in_collectives(context: &Context<'_>) -> Option<Evidence> {
    let share = time_in_collectives(context.job, context.rank);
    (share.0 >= MIN_COLLECTIVES).then(|| {
        let last = last_rank_suffix(context, share);
        let text = format!("main thread in collectives {share} of the time{last}");
        Evidence::supporting("collectives", share.0, MIN_COLLECTIVES, text)
    })
}

/// Returns the words for the last rank to arrive: the one that waits least itself. Empty if none stands out.
fn last_rank_suffix(context: &Context<'_>, own: Share) -> String {
    const MIN_DIFFERENCE: f64 = 0.2;
    let ranks = context.job.ranks.iter();
    let seen = ranks.map(|rank| (rank, time_in_collectives(context.job, rank)));
    let last = seen.min_by(|one, other| one.1.0.total_cmp(&other.1.0));
    let last = last.filter(|(_, share)| own.0 - share.0 >= MIN_DIFFERENCE);
    last.map_or_else(String::new, |(last, share)| {
        format!(", rank {} {share}: the last to arrive", last.number)
    })
}

/// Returns the fact that the rank's process has NCCL threads.
fn nccl(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let text = "this rank runs NCCL threads";
    (kind == Kind::CommunicationBound && context.rank.nccl)
        .then(|| Evidence::new("nccl-threads", true, 1.0, None, text))
}

/// Detects a job of several ranks whose GPU is always busy but hardly active. Without a launcher, NCCL's threads show
/// that there are several ranks.
fn kernels_of_collectives(context: &Context<'_>) -> Option<Evidence> {
    let several = context
        .rank
        .world_size
        .map_or(context.rank.nccl, |size| size > 1);
    let gpu = context.gpu()?;
    let counters = gpu.counters;
    let (active, memory) = (counters.sm_active?, counters.dram?);
    let busy = gpu.busy?.0 >= BUSY;
    (several && busy && active.0 < COLLECTIVE && memory.0 < COLLECTIVE).then(|| {
        let text = format!(
            "GPU mostly busy, yet uses {active} of its SMs and {memory} of its memory bandwidth"
        );
        Evidence::supporting("collectives", active.0, COLLECTIVE, text)
    })
}

/// Returns facts about the GPU other than its idle time.
pub(super) fn facts(context: &Context<'_>, kind: Kind, limit: Option<Limit>) -> Vec<Evidence> {
    let facts = [
        swing(context, kind),
        overlap(context, kind),
        counters(context, kind, limit),
        throttled(context, kind),
        nccl(context, kind),
    ];
    facts.into_iter().flatten().collect()
}

/// Returns the part of the trainer's waits during which the GPU is idle.
fn overlap(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    const MAJORITY: f64 = 0.5;
    let (lost, waited) = match (context.reported_stall(), context.overlap()) {
        (Some(reported), _) => (reported.0, context.wait()?.share),
        (None, Some(overlap)) => (likely(overlap.low, overlap.high).0, overlap.wait),
        (None, None) => return None,
    };
    let part = Share::of(lost, waited.0)?;
    let supports = match kind {
        Kind::DataBound => part.0 >= MAJORITY,
        Kind::Balanced | Kind::HostBound if waited.0 >= MODERATE => part.0 < MAJORITY,
        _ => return None,
    };
    let device = context.device_word();
    let text = format!("{device} idle during {part} of the trainer's waits");
    Some(Evidence::new("overlap", supports, part.0, MAJORITY, text))
}

/// Returns the fact that the GPU oscillates. Users know this as "100 %, then 0 %, again and again".
fn swing(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let found: Oscillation = context.gpu()?.swing?;
    let about = if found.regular {
        "every"
    } else {
        "about every"
    };
    let digits = usize::from(found.period < 10.0);
    let text = format!(
        "GPU swings between 100 % and 0 % {about} {:.digits$} s",
        found.period
    );
    // Pieces of the driver's history may extend beyond the ends of the window.
    let slow = found.seconds > 1.2 * context.rates.seconds;
    let beside = context.oscillation_overlap(slow);
    let with = beside.and_then(|overlap| overlap.correlation);
    let waits = match beside.filter(|_| slow) {
        Some(overlap) => overlap.wait.0,
        None => context.wait()?.share.0,
    };
    let related = match with {
        Some(with) if with >= CORRELATED => format!("{text}: it idles while the trainer waits"),
        _ if waits < SLIGHT => format!("{text}, but not for lack of data"),
        Some(with) if with < UNCORRELATED => {
            format!("{text}, but not in step with the trainer's waits")
        }
        _ => format!("{text}; unclear whether in step with the waits"),
    };
    let together = with.is_some_and(|with| with >= CORRELATED);
    let apart = waits < SLIGHT || with.is_some_and(|with| with < UNCORRELATED);
    let (supports, text) = match kind {
        Kind::DataBound => (!apart, related),
        Kind::HostBound | Kind::CommunicationBound if apart => {
            (true, format!("{text}, but not for lack of data"))
        }
        Kind::HostBound | Kind::CommunicationBound | Kind::Balanced => {
            (false, if slow || together { related } else { text })
        }
        // The idle times of a slow oscillation are outside of the window.
        Kind::ComputeBound if slow => (false, related),
        _ => return None,
    };
    Some(Evidence::new(
        "gpu-swing",
        supports,
        found.period,
        None,
        text,
    ))
}

fn counters(context: &Context<'_>, kind: Kind, limit: Option<Limit>) -> Option<Evidence> {
    if kind != Kind::ComputeBound {
        return None;
    }
    let counters = context.gpu()?.counters;
    let (active, memory) = (counters.sm_active?, counters.dram?);
    let text = match limit {
        Some(Limit::Memory) => format!("memory bandwidth {memory} in use, SMs {active}"),
        Some(Limit::Compute) => format!("SMs {active} in use, memory bandwidth {memory}"),
        Some(Limit::SmallKernels) | None => {
            format!("only {active} of the SMs and {memory} of the memory bandwidth in use")
        }
    };
    let supports = limit != Some(Limit::SmallKernels);
    Some(Evidence::new("sm-active", supports, active.0, NEAR, text))
}

fn throttled(context: &Context<'_>, kind: Kind) -> Option<Evidence> {
    let reasons = context.gpu()?.now.throttle.as_ref()?;
    (kind == Kind::ComputeBound && !reasons.is_empty()).then(|| {
        let text = format!("the GPU clock is throttled: {}", reasons.join(", "));
        Evidence::new("clock-held-back", true, 1.0, None, text)
    })
}
