//! A simulated run as samples of a job, as if it had been polled.
//!
//! Depends on the format of samples, not on how they are shown.

use std::time::{Duration, SystemTime};

use super::pipeline::Simulation;
use super::settings::SimulationSettings;
use crate::sample::{
    BatchClock, BatchCount, JobSample, LoaderKind, LoaderSample, LoaderSettings, MainTally,
    ProcessSample, RankSample, Sample, Tier, TrainerNow, Wait, WorkerNow, WorkerSample,
    WorkerTally,
};
use crate::units::{Moment, Pid, ProcessKey};

/// Minimum time between two samples, and between two polls.
const INTERVAL: Duration = Duration::from_millis(250);
const POLL: Duration = Duration::from_millis(10);
/// Maximum number of samples times workers.
const SAMPLES: u32 = 200_000;
/// Number of waits, and of poll slots, kept in a sample: enough for the time since the previous one at the minimum
/// interval.
const SLOTS: usize = 12;

/// Returns the samples of one run, from the start of its loaders to its end.
pub fn samples(settings: &SimulationSettings, seed: u64) -> impl Iterator<Item = Sample> {
    let count = (SAMPLES / settings.workers.max(1)).min(4000);
    let interval = INTERVAL.max(settings.span / count);
    let poll = POLL.max(interval / 100);
    let mut simulation = Simulation::new(settings, seed);
    let mut sample = sample(settings);
    let (mut now, mut due) = (Duration::ZERO, Duration::ZERO);
    let mut waits_since = Some(now);
    std::iter::from_fn(move || {
        if due > settings.span {
            return None;
        }
        while now <= due {
            simulation.advance(now);
            see(&simulation, &mut sample, now, &mut waits_since);
            now += poll;
        }
        sample.at.since_start = due;
        sample.at.wall = SystemTime::UNIX_EPOCH + due;
        due += interval;
        Some(sample.clone())
    })
}

/// Returns the sample before the first poll.
fn sample(settings: &SimulationSettings) -> Sample {
    let trainer = key(0);
    let asleep = ProcessSample {
        state: Some('S'),
        ..ProcessSample::default()
    };
    let worker = |id| WorkerSample {
        key: key(id + 1),
        id,
        thread: false,
        process: asleep.clone(),
        tally: Some(WorkerTally::default()),
        batches: Some(0),
        activity: std::collections::BTreeMap::new(),
        loads: None,
        polls: crate::sample::PollTrace::default(),
    };
    let loader = LoaderSample {
        settings: LoaderSettings {
            num_workers: Some(settings.workers),
            prefetch_factor: Some(settings.prefetch_factor),
            in_order: Some(settings.in_order),
            ..LoaderSettings::default()
        },
        workers: (0..settings.workers).map(worker).collect(),
        ..LoaderSample::new(0, LoaderKind::Builtin)
    };
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let command = format!(
        "simulation set to a mean load of {} ms, step {} ms",
        millis(settings.load),
        millis(settings.step)
    );
    let start = Moment {
        since_start: Duration::ZERO,
        wall: SystemTime::UNIX_EPOCH,
    };
    Sample {
        job: Some(JobSample {
            ranks: vec![RankSample {
                process: asleep.clone(),
                main: Some(MainTally::default()),
                loaders: vec![loader],
                ..RankSample::new(trainer)
            }],
            ..JobSample::new(trainer, command, Tier::T2)
        }),
        ..Sample::new(start)
    }
}

/// Returns the key of the trainer for 0, and of the workers for the numbers after it.
fn key(number: u32) -> ProcessKey {
    ProcessKey {
        pid: Pid(i32::try_from(number).unwrap_or(i32::MAX).saturating_add(1)),
        start_ticks: 0,
    }
}

/// Records a poll. `waits_since` is the start of the trainer's current wait.
fn see(
    simulation: &Simulation,
    sample: &mut Sample,
    now: Duration,
    waits_since: &mut Option<Duration>,
) {
    let ranks = sample.job.iter_mut().flat_map(|job| &mut job.ranks);
    for rank in ranks {
        let trains = simulation.training;
        let main = rank.main.get_or_insert_default();
        main.polls += 1;
        main.waiting += u64::from(!trains);
        main.running += u64::from(trains);
        match (trains, *waits_since) {
            (false, None) => *waits_since = Some(now),
            (true, Some(from)) => {
                let batch = Some(simulation.order.taken().saturating_sub(1));
                rank.waits.push(
                    Wait {
                        from,
                        to: now,
                        batch,
                        first: None,
                        begins: false,
                    },
                    SLOTS,
                );
                *waits_since = None;
            }
            _ => {}
        }
        let seen = if trains {
            TrainerNow::Stepping
        } else {
            TrainerNow::Waiting
        };
        rank.polls.record(now, seen, SLOTS);
        for loader in &mut rank.loaders {
            let ready = u32::try_from(simulation.order.available()).unwrap_or(u32::MAX);
            let queue = loader.queue.get_or_insert_default();
            queue.polls += 1;
            queue.empty += u64::from(ready == 0);
            queue.ready_sum += u64::from(ready);
            queue.ready = ready;
            queue.capacity = u32::try_from(simulation.settings.capacity()).ok();
            loader.queue_polls.record(now, ready, SLOTS);
            loader.batches = Some(BatchCount {
                count: simulation.order.taken(),
                source: BatchClock::Iterator,
            });
            for (worker, (loads, made)) in loader.workers.iter_mut().zip(simulation.workers()) {
                let tally = worker.tally.get_or_insert_default();
                tally.polls += 1;
                tally.idle += u64::from(!loads);
                tally.cpu += u64::from(loads);
                tally.now = if loads {
                    WorkerNow::Cpu
                } else {
                    WorkerNow::Idle
                };
                worker.batches = Some(made);
                worker.polls.record(now, tally.now, SLOTS);
            }
        }
    }
}
