//! Rates of the job: its ranks, its control group, and the total of all its processes.
//!
//! Does not depend on how a loader works inside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::model::interval::{SampleInterval, count_grown};
use crate::model::overlap::overlap;
use crate::model::periodicity;
use crate::model::rates::gpu::SlowOscillations;
use crate::model::rates::reported::Grown;
use crate::model::rates::tally::time;
use crate::model::rates::time_on_data::TimeOnData;
use crate::model::rates::{
    Activity, CgroupRates, DeviceRates, GilRates, GpuRates, IoRates, JobRates, LoaderRates,
    RankRates, Rates, WorkerRates, estimate, loader, polled_wait, rank_numbers, step, tally,
};
use crate::model::usage::{CPU, Counts, Delta, RCHAR, READ, Usage};
use crate::model::window::{RankSums, WindowSums};
use crate::model::{Overlap, datasets};
use crate::sample::{
    CELLS, CgroupSample, EVENTS, JobSample, LoaderSample, MainTally, ProcessSample, RankSample,
    Reported, SYNCHRONIZE, Tier, Wait,
};
use crate::units::{BytesPerSecond, ProcessKey, Share, total};

/// Sums of the window and of the whole session.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobSums<'a> {
    pub(super) window: &'a WindowSums,
    pub(super) session: &'a WindowSums,
    pub(super) slow: &'a SlowOscillations,
}

/// Returns the rates of the job; `older` is a sample of the same job, by its key.
pub(super) fn rates(
    older: Option<&JobSample>,
    newer: &JobSample,
    sums: JobSums<'_>,
    interval: &SampleInterval,
) -> JobRates {
    let row = |rank: &RankSample| {
        let older = older.and_then(|older| older.rank(rank.key));
        self::rank(older, rank, newer.access, sums, interval)
    };
    let grown = |(key, process): (ProcessKey, _)| {
        let before = older.and_then(|older| process_of(older, key));
        Delta::new(before, process, key, interval).grown()
    };
    let all: Vec<Counts> = newer.processes().map(grown).collect();
    let (_, of_workers) = all.split_at(newer.ranks.len());
    // Sums what is known; `None` if nothing is.
    let per_second = |processes: &[Counts], which: usize| {
        let known = processes.iter().filter_map(|counts| counts[which]);
        known.reduce(|a, b| a + b).map(|sum| sum / interval.seconds)
    };
    let living = per_second(&all, CPU).map(|nanos| nanos / 1e9);
    let rest = older.map_or(0.0, |older| {
        used_by_others(older, newer) + used_by_ended(older, newer)
    }) / interval.seconds;
    // A child that ended, or one that was not found before, may have run for hours before this interval.
    let most = newer.cpus_allowed.map_or(f64::INFINITY, f64::from);
    let cpu_cores = living.map(|cores| {
        let all = cores + rest;
        if all <= most { all } else { cores }
    });
    let numbers: Vec<_> = newer.ranks.iter().map(|rank| rank.rank).collect();
    let numbers = rank_numbers(&numbers).into_iter();
    let numbered = newer
        .ranks
        .iter()
        .zip(numbers)
        .map(|(rank, number)| RankRates {
            number,
            ..row(rank)
        });
    let ranks = numbered.collect();
    JobRates {
        key: newer.key,
        command: newer.command.clone(),
        run: newer.run.clone(),
        access: newer.access,
        ended: newer.ended,
        ranks,
        cgroup: newer
            .cgroup
            .as_ref()
            .map(|group| cgroup(older.and_then(|older| older.cgroup.as_ref()), group)),
        cpus_allowed: newer.cpus_allowed,
        cpu_cores,
        read: per_second(&all, READ).map(BytesPerSecond),
        rchar: per_second(of_workers, RCHAR).map(BytesPerSecond),
    }
}

/// Returns the CPU seconds of the job's processes that are neither ranks nor workers.
fn used_by_others(older: &JobSample, newer: &JobSample) -> f64 {
    let before: BTreeMap<ProcessKey, Duration> = older.others.iter().copied().collect();
    let used = |(key, cpu): &(ProcessKey, Duration)| {
        cpu.saturating_sub(before.get(key).copied().unwrap_or_default())
    };
    newer
        .others
        .iter()
        .map(used)
        .sum::<Duration>()
        .as_secs_f64()
}

/// Returns the CPU seconds of the ranks' children that ended between the samples. For processes in the older sample, only
/// the time since then counts.
fn used_by_ended(older: &JobSample, newer: &JobSample) -> f64 {
    let of_rank = |rank: &RankSample| {
        let before = older.rank(rank.key)?;
        let ended = rank.process.children_cpu?;
        Some(ended.saturating_sub(before.process.children_cpu?))
    };
    let ended: Duration = newer.ranks.iter().filter_map(of_rank).sum();
    let workers = older.ranks.iter().flat_map(|rank| &rank.loaders);
    let workers = workers.flat_map(LoaderSample::processes);
    let workers = workers.filter_map(|worker| Some((worker.key, worker.process.cpu?)));
    let known = workers.chain(older.others.iter().copied());
    let others = newer.others.iter().map(|(key, _)| *key);
    let living: BTreeSet<ProcessKey> = newer.processes().map(|it| it.0).chain(others).collect();
    let gone = known.filter(|(key, _)| !living.contains(key));
    let counted = gone.map(|(_, cpu)| cpu).sum();
    ended.saturating_sub(counted).as_secs_f64()
}

fn process_of(job: &JobSample, key: ProcessKey) -> Option<&ProcessSample> {
    let mut processes = job.processes();
    Some(processes.find(|process| process.0 == key)?.1)
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
        frozen: newer.frozen,
    }
}

fn rank(
    older: Option<&RankSample>,
    newer: &RankSample,
    access: Tier,
    all: JobSums<'_>,
    interval: &SampleInterval,
) -> RankRates {
    let empty = RankSums::default();
    let sums = all.window.rank(newer.key).unwrap_or(&empty);
    let session = all.session.rank(newer.key).unwrap_or(&empty);
    let main_before = older.and_then(|older| older.main);
    let polled = tally::main(main_before, newer.main, newer.recognised, interval.stolen);
    let main = polled.map(|polled| polled.tally);
    let before = older.and_then(|older| older.reported.as_ref());
    let reported = Grown::between(before, newer.reported.as_ref(), interval);
    let exact = reported.as_ref().filter(|reported| reported.covers());
    let process = older.map(|older| &older.process);
    let usage = Delta::new(process, &newer.process, newer.key, interval).usage();
    let delay = (access < Tier::T2).then(|| usage.run_delay.unwrap_or(Share::ZERO));
    let wait = match exact {
        Some(reported) => Some(estimate::reported(reported, &sums.waits)),
        None => polled.map(|polled| polled_wait::estimate(&polled, newer, sums, delay)),
    };
    let polls = |of: fn(&MainTally) -> u64| {
        main.and_then(|main| Share::of(of(&main) as f64, main.polls as f64))
    };
    let stopped = polls(|main| main.stopped);
    let wait = wait.filter(|wait| polled_wait::is_known(wait, exact.is_some(), stopped, newer));
    // Polls show how the reported wait is divided.
    let inside = main.map_or(0.0, |main| main.in_loader() as f64);
    let of_wait = |of: fn(&MainTally) -> u64| match exact {
        Some(reported) => {
            Share::of(of(&main?) as f64, inside).map(|part| Share(part.0 * reported.wait().0))
        }
        None => polls(of),
    };
    let on_data = TimeOnData::of(older, newer, polled.as_ref());
    let in_all = (wait.and_then(|wait| wait.point()), on_data.as_ref());
    let loaders = loaders(older, newer, (sums, session), in_all, interval);
    let loading = of_wait(|main| main.loading);
    let not_data = tally::not_data(older, newer, polled.as_ref(), usage);
    let no_step = Share(stopped.unwrap_or_default().0 + idle(&not_data).0);
    let nothing_seen = exact.filter(|_| inside <= 0.0).map(Grown::wait);
    RankRates {
        key: newer.key,
        rank: newer.rank,
        number: 0,
        world_size: newer.world_size,
        local_rank: newer.local_rank,
        nccl: newer.nccl,
        state: newer.process.state,
        wait,
        waiting: nothing_seen.or_else(|| of_wait(|main| main.waiting)),
        receiving: of_wait(|main| main.receiving),
        loading,
        dispatched: of_wait(|main| main.dispatched),
        pinning: of_wait(|main| main.pinning),
        network: of_wait(|main| main.network),
        in_loop: of_wait(|main| main.in_loop),
        polled: polled.map(|polled| polled.polled(interval.seconds)),
        disk: polls(|main| main.disk),
        stopped,
        blocked: blocked(polls(|main| main.blocked), usage),
        computing: polls(|main| main.computing),
        main_cpu: usage.main_cpu,
        main_run_delay: usage.run_delay,
        io: io(usage),
        synchronized_at_least: polled.map_or(Share::ZERO, |polled| {
            polled.at_least(time(&not_data, SYNCHRONIZE), sums.batches().per_second())
        }),
        not_data,
        epoch: datasets::training(&newer.passes).map(|passes| passes.begun),
        validation: on_data.as_ref().and_then(|data| data.validation(wait)),
        startup: wait.and_then(|_| startup(of_wait(|main| main.starting), sums, interval)),
        first_batches: periodicity::first_batches(sums, interval),
        period_batches: periodicity::period_batches(&sums.waits),
        wait_seconds: periodicity::wait_seconds(&sums.waits),
        step: step::rates(newer, exact, (sums, wait, no_step), loading, &loaders),
        overlaps: all.window.overlaps(newer.key),
        slow_overlaps: slow_overlaps(&session.waits, all.slow),
        device: device(reported, newer.reported.as_ref()),
        activity: tally::activity(older.map(|older| &older.activity), &newer.activity),
        named: named(older, newer),
        gil: main.and_then(|main| gil(&main)),
        gil_holders: tally::activity(older.map(|older| &older.gil_holders), &newer.gil_holders),
        loaders,
    }
}

/// Returns the share of the time that starts of workers cost; `polled` is the share in which polls saw the main thread
/// start or end workers. In short epochs, workers may start and end between two samples, so few of their starts are
/// seen.
fn startup(polled: Option<Share>, sums: &RankSums, interval: &SampleInterval) -> Option<Share> {
    let after_starts = periodicity::startup(sums, interval)?;
    Some(Share(after_starts.0.max(polled.unwrap_or_default().0)))
}

fn loaders(
    older: Option<&RankSample>,
    newer: &RankSample,
    sums: (&RankSums, &RankSums),
    (wait, on_data): (Option<Share>, Option<&TimeOnData<'_>>),
    interval: &SampleInterval,
) -> Vec<LoaderRates> {
    let before = |id| older.and_then(|older| older.loader(id));
    let loaders = newer.loaders.iter();
    let mut loaders: Vec<_> = loaders
        .map(|loader| loader::rates(before(loader.id), loader, sums))
        .collect();
    loader::divide_wait(&mut loaders, wait, |id| {
        let before = before(id).and_then(|loader| loader.waits);
        newer.loader(id)?.waits?.checked_sub(before.unwrap_or(0))
    });
    let dataset = |id| newer.loader(id)?.dataset;
    for loader in &mut loaders {
        loader.longest_pass =
            datasets::longest_pass(&newer.passes, dataset(loader.id), newer.waits.count);
    }
    if let Some(on_data) = on_data {
        for loader in &mut loaders {
            let mut validated = datasets::validations(&newer.passes);
            loader.validates = validated.any(|passes| Some(passes.dataset) == dataset(loader.id));
        }
        loader::steps_in_turn(
            &mut loaders,
            |loader| on_data.share(dataset(loader.id)?),
            |id| Share::of(sums.0.loader(id).seconds(), interval.seconds),
        );
    }
    loaders
}

/// Returns the overlap of the waits with the idle time of the GPUs that oscillate slowly.
fn slow_overlaps(waits: &VecDeque<Wait>, slow: &SlowOscillations) -> Vec<Overlap> {
    let slow = slow.iter();
    slow.filter_map(|(gpu, pieces)| overlap(*gpu, waits, pieces))
        .collect()
}

/// Returns the share of the polls whose stack names a function.
pub(super) fn named(older: Option<&RankSample>, newer: &RankSample) -> Option<Share> {
    let named = |rank: &RankSample| total(rank.activity.values().copied());
    let polled = |rank: &RankSample| rank.main.map_or(0, |main| main.observed);
    let before = older.map_or((0, 0), |older| (named(older), polled(older)));
    let named = named(newer).checked_sub(before.0)?;
    Share::of(named as f64, polled(newer).checked_sub(before.1)? as f64)
}

/// Returns the share of time in which the main thread is `asleep` and no other thread is on a CPU.
fn blocked(asleep: Option<Share>, usage: Usage) -> Option<Share> {
    let others = usage.cpu? - usage.main_cpu?.0;
    Some(Share(asleep?.0 - others.max(0.0)).clamped())
}

fn io(usage: Usage) -> Option<IoRates> {
    Some(IoRates {
        read: usage.read?,
        write: usage.write?,
        rchar: usage.rchar?,
    })
}

fn gil(main: &MainTally) -> Option<GilRates> {
    let tally = main.gil?;
    let share = |polls: u64| Share::of(polls as f64, main.polls as f64);
    Some(GilRates {
        in_loader: share(tally.in_loader)?,
        outside: share(tally.outside)?,
    })
}

/// Returns the device that the rank reports, or only its name and notice if it was not reported on in this time.
fn device(grown: Option<Grown>, reported: Option<&Reported>) -> Option<DeviceRates> {
    if let Some(grown) = grown {
        return Some(grown.device);
    }
    let reported = reported?;
    (reported.device.is_some() || reported.notice.is_some()).then(|| DeviceRates {
        name: reported.device.clone(),
        notice: reported.notice.clone(),
        ..DeviceRates::default()
    })
}

impl Rates {
    /// Returns the ranks of the job; none while there is no job.
    pub fn ranks(&self) -> &[RankRates] {
        self.job.as_ref().map_or(&[], |job| &job.ranks)
    }
}

impl JobRates {
    pub fn rank(&self, key: ProcessKey) -> Option<&RankRates> {
        self.ranks.iter().find(|rank| rank.key == key)
    }
}

impl RankRates {
    pub fn workers(&self) -> impl Iterator<Item = &WorkerRates> {
        self.loaders.iter().flat_map(|loader| &loader.workers)
    }

    /// Returns the device that it reports by name; `None` if the driver lists it among its `gpus`.
    pub fn device_beside(&self, gpus: &[GpuRates]) -> Option<&DeviceRates> {
        let device = self.device.as_ref()?;
        let name = device.name.as_deref()?;
        let listed = |gpu: &GpuRates| gpu.now.name.as_deref() == Some(name);
        (!gpus.iter().any(listed)).then_some(device)
    }

    /// Returns the share of the time in an event loop, in no function of the program: the main thread does not train there.
    pub fn idle(&self) -> Share {
        idle(&self.not_data)
    }

    /// Returns the share of the time that the main thread waited for `what`, which is not a batch.
    pub fn time_not_for_data(&self, what: &str) -> Share {
        time(&self.not_data, what)
    }

    /// Returns the waits for something other than a batch, the device or other ranks, longest first. Event loops are
    /// left out: they may wait for any of these.
    pub fn other_waits(&self) -> impl Iterator<Item = &Activity> {
        self.not_data
            .iter()
            .filter(|wait| tally::is_other(&wait.name))
    }
}

fn idle(not_data: &[Activity]) -> Share {
    Share(time(not_data, EVENTS).0 + time(not_data, CELLS).0)
}
