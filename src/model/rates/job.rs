//! Rates of the job: its ranks, its control group, what all of its processes use together.
//!
//! Knows nothing of how a loader works inside.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::Interim;
use crate::model::interim::RankInterim;
use crate::model::rates::reported::Grown;
use crate::model::rates::{
    CgroupRates, DeviceRates, Estimate, GilRates, IoRates, JobRates, LoaderRates, RankRates,
    StepRates, estimate, loader, tally,
};
use crate::model::rhythm;
use crate::model::span::{Growth, Span, count_grown};
use crate::sample::{
    CgroupSample, IoSample, JobSample, LoaderKind, MainTally, ProcessSample, RankSample, Reported,
};
use crate::units::{Bytes, BytesPerSecond, ProcessKey, Share};

/// `older` is the same job, by its key.
pub(super) fn rates(
    older: Option<&JobSample>,
    newer: &JobSample,
    interim: &Interim,
    span: &Span,
) -> JobRates {
    let row = |rank: &RankSample| {
        let older = older.and_then(|older| older.ranks.iter().find(|old| old.key == rank.key));
        let overlaps = interim.overlaps(rank.key);
        RankRates {
            overlaps,
            ..self::rank(older, rank, interim.rank(rank.key), span)
        }
    };
    let ranks = || newer.ranks.iter().map(|rank| (rank.key, &rank.process));
    let workers = || {
        let loaders = newer.ranks.iter().flat_map(|rank| &rank.loaders);
        let workers = loaders.flat_map(|loader| &loader.workers);
        workers.map(|worker| (worker.key, &worker.process))
    };
    let grown = |(key, process): (ProcessKey, _)| {
        Growth::new(
            older.and_then(|older| process_of(older, key)),
            process,
            key,
            span,
        )
    };
    JobRates {
        key: newer.key,
        command: newer.command.clone(),
        access: newer.access,
        ended: newer.ended,
        ranks: newer.ranks.iter().map(row).collect(),
        cgroup: newer
            .cgroup
            .as_ref()
            .map(|group| cgroup(older.and_then(|older| older.cgroup.as_ref()), group)),
        cpus_allowed: newer.cpus_allowed,
        cpu_cores: sum(ranks().chain(workers()).map(grown), |process| {
            process.time(|process| process.cpu)
        })
        .map(|cpu| cpu / span.seconds),
        read: sum(ranks().chain(workers()).map(grown), |process| {
            process.count(|process| Some(process.io?.read_bytes.0))
        })
        .map(|bytes| BytesPerSecond(bytes / span.seconds)),
        rchar: sum(workers().map(grown), |process| {
            process.count(|process| Some(process.io?.rchar.0))
        })
        .map(|bytes| BytesPerSecond(bytes / span.seconds)),
    }
}

/// The sum of what is known; `None` where nothing is.
fn sum<'a>(
    processes: impl Iterator<Item = Growth<'a>>,
    of: impl Fn(&Growth<'a>) -> Option<f64>,
) -> Option<f64> {
    processes
        .filter_map(|process| of(&process))
        .reduce(|a, b| a + b)
}

fn process_of(job: &JobSample, key: ProcessKey) -> Option<&ProcessSample> {
    job.ranks.iter().find_map(|rank| {
        if rank.key == key {
            return Some(&rank.process);
        }
        let mut workers = rank.loaders.iter().flat_map(|loader| &loader.workers);
        Some(&workers.find(|worker| worker.key == key)?.process)
    })
}

fn cgroup(older: Option<&CgroupSample>, newer: &CgroupSample) -> CgroupRates {
    let older = older.filter(|older| older.path == newer.path);
    let grown = |of: fn(&CgroupSample) -> Option<u64>| count_grown(of(older?), of(newer));
    CgroupRates {
        cpu_quota: newer.cpu_quota,
        throttled_periods: grown(|group| group.throttled_periods)
            .zip(grown(|group| group.periods))
            .and_then(|(cut, all)| Share::of(cut, all)),
        cpuset: newer.cpuset,
        mem_limit: newer.mem_limit,
        mem_used: newer.mem_used,
    }
}

/// Seconds between two batches from which on looks at the main thread see each wait by itself.
const ONE_BY_ONE: f64 = 0.15;

fn rank(
    older: Option<&RankSample>,
    newer: &RankSample,
    interim: Option<&RankInterim>,
    span: &Span,
) -> RankRates {
    let empty = RankInterim::default();
    let interim = interim.unwrap_or(&empty);
    let main = tally::main(older.and_then(|older| older.main), newer.main);
    let told = Grown::between(
        older.and_then(|older| older.reported.as_ref()),
        newer.reported.as_ref(),
        span,
    );
    let exact = told.as_ref().filter(|told| told.covers());
    let wait = match exact {
        Some(told) => Some(estimate::reported(told, &interim.waits)),
        None => main.map(|main| seen(&main, newer, interim)),
    };
    let looks = |of: fn(&MainTally) -> u64| {
        main.and_then(|main| Share::of(of(&main) as f64, main.looks as f64))
    };
    // Looks tell what the reported wait was spent with.
    let inside = main.map_or(0.0, |main| {
        main.waiting as f64 + main.receiving as f64 + main.loading as f64
    });
    let of_wait = |of: fn(&MainTally) -> u64| match exact {
        Some(told) => {
            Share::of(of(&main?) as f64, inside).map(|part| Share(part.0 * told.wait().0))
        }
        None => looks(of),
    };
    let grown = Growth::new(
        older.map(|older| &older.process),
        &newer.process,
        newer.key,
        span,
    );
    let time = |of: fn(&ProcessSample) -> Option<Duration>| {
        grown
            .time(of)
            .and_then(|time| Share::of(time, grown.seconds))
    };
    let loaders: Vec<_> = newer
        .loaders
        .iter()
        .map(|loader| {
            let older = older.and_then(|rank| rank.loaders.iter().find(|old| old.id == loader.id));
            loader::rates(older, loader, interim, span)
        })
        .collect();
    let loading = of_wait(|main| main.loading);
    let nothing_seen = exact.filter(|_| inside <= 0.0).map(Grown::wait);
    RankRates {
        key: newer.key,
        rank: newer.rank,
        world_size: newer.world_size,
        nccl: newer.nccl,
        state: newer.process.state,
        wait,
        waiting: nothing_seen.or_else(|| of_wait(|main| main.waiting)),
        receiving: of_wait(|main| main.receiving),
        loading,
        disk: looks(|main| main.disk),
        stopped: looks(|main| main.stopped),
        main_cpu: time(|process| process.main_cpu),
        main_run_delay: time(|process| process.main_run_delay),
        io: io(&grown),
        startup: wait.and_then(|_| rhythm::startup(interim, span)),
        period_batches: rhythm::period_batches(&interim.waits),
        step: match exact {
            Some(told) => reported_step(told, loading, &loaders),
            None => step(interim, wait.map(|wait| wait.share), loading, &loaders),
        },
        overlaps: Vec::new(),
        beside_swings: Vec::new(),
        device: told
            .map(|told| told.device)
            .or_else(|| silent(newer.reported.as_ref()?)),
        activity: tally::activity(older.map(|older| &older.activity), &newer.activity),
        gil: main.and_then(|main| gil(&main)),
        gil_holders: tally::activity(older.map(|older| &older.gil_holders), &newer.gil_holders),
        loaders,
    }
}

fn io(grown: &Growth<'_>) -> Option<IoRates> {
    let rate = |of: fn(IoSample) -> Bytes| {
        let bytes = grown.count(|process| Some(of(process.io?).0))?;
        Some(BytesPerSecond(bytes / grown.seconds))
    };
    Some(IoRates {
        read: rate(|io| io.read_bytes)?,
        write: rate(|io| io.write_bytes)?,
        rchar: rate(|io| io.rchar)?,
    })
}

fn gil(main: &MainTally) -> Option<GilRates> {
    let tally = main.gil?;
    let share = |looks: u64| Share::of(looks as f64, main.looks as f64);
    Some(GilRates {
        in_loader: share(tally.in_loader)?,
        outside: share(tally.outside)?,
    })
}

/// The wait share by looks at the main thread.
fn seen(main: &MainTally, newer: &RankSample, interim: &RankInterim) -> Estimate {
    let fed = !newer.loaders.is_empty()
        && newer
            .loaders
            .iter()
            .all(|loader| loader.kind != LoaderKind::PytorchMain);
    // Where batches come faster than looks can tell one wait from the next, and where no wait was seen
    // to end, each batch stands for one.
    let period = interim.batches.per_second().map(|rate| 1.0 / rate);
    let merged = period.is_some_and(|period| period < ONE_BY_ONE);
    let nothing = VecDeque::new();
    let (waits, episodes) = if merged || interim.waits_ended == 0 {
        (&nothing, interim.batches.batches)
    } else {
        (&interim.waits, interim.waits_ended)
    };
    estimate::wait(main, waits, episodes, fed)
}

/// A device of which nothing was told in this time but what it is.
fn silent(reported: &Reported) -> Option<DeviceRates> {
    (reported.device.is_some() || reported.notice.is_some()).then(|| DeviceRates {
        name: reported.device.clone(),
        notice: reported.notice.clone(),
        ..DeviceRates::default()
    })
}

fn reported_step(told: &Grown, loading: Option<Share>, loaders: &[LoaderRates]) -> StepRates {
    let batches_per_s = told.per_second();
    let period_ms = batches_per_s.map(|rate| 1000.0 / rate);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a difference of two counts"
    )]
    let batches = (told.steps + told.lost) as u64;
    StepRates {
        batches: Some(batches),
        batches_per_s,
        step_ms: Some(1000.0 * told.stepped / told.steps),
        wait_ms: Some(1000.0 * told.waited / told.steps),
        load_ms: loader::load_ms(loaders, loading, period_ms),
    }
}

fn step(
    interim: &RankInterim,
    wait: Option<Share>,
    loading: Option<Share>,
    loaders: &[LoaderRates],
) -> StepRates {
    let batches_per_s = interim.batches.per_second();
    let period_ms = batches_per_s
        .filter(|rate| *rate > 0.0)
        .map(|rate| 1000.0 / rate);
    let part = |share: Option<Share>| Some(share?.0 * period_ms?);
    StepRates {
        batches: interim.batches.known(),
        batches_per_s,
        step_ms: part(wait.map(Share::rest)),
        wait_ms: part(wait),
        load_ms: loader::load_ms(loaders, loading, period_ms),
    }
}
