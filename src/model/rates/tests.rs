use std::time::Duration;

use super::sequential::Blocks;
use super::tally::MainGrown;
use super::*;
use crate::model::interval::SampleInterval;
use crate::model::literals::{
    first_loader, first_rank, key, machine, moment, secs, training, worker,
};
use crate::model::{between, rates_of};
use crate::sample::{
    BatchClock, BatchCount, COPIES, EVENTS, GpuProcess, GpuSample, GpuUser, IoSample, LoaderKind,
    LoaderSample, MainTally, ProcessPlace, RankSample, ReadyTally, SYNCHRONIZE, Sample, UsedBy,
    Wait, WorkerNow, WorkerTally,
};
use crate::units::Pid;

fn job(rates: Option<Rates>) -> JobRates {
    rates.unwrap().job.unwrap()
}

#[test]
fn ranks_are_told_apart_also_if_two_have_the_same_or_none() {
    let numbers = |ranks: &[Option<u32>]| rank_numbers(ranks);
    assert_eq!(numbers(&[Some(8), Some(9)]), [8, 9]);
    assert_eq!(numbers(&[None, None]), [0, 1]);
    // One process without a rank, one that inherited that of its parent.
    assert_eq!(numbers(&[None, Some(0), Some(7), Some(7)]), [1, 0, 7, 2]);
}

#[test]
fn a_queue_that_cannot_be_polled_between_epochs_may_be_empty_then() {
    let (older, mut newer) = (training(10.0), training(12.0));
    first_loader(&mut newer).queue.as_mut().unwrap().gone = 200;
    let job = job(between(&older, &newer));
    let queue = job.ranks[0].loaders[0].queue.unwrap();
    // 150 of 200 polls found the queue empty; nothing is known of the other 200.
    close(queue.empty.0, 0.75);
    close(queue.empty_at_most.0, 0.875);
}

fn close(value: impl Into<Option<f64>>, expected: f64) {
    let value = value.into().expect("known");
    assert!(
        (value - expected).abs() <= 1e-6 * expected.abs().max(1.0),
        "{value} is not {expected}"
    );
}

#[test]
fn the_measured_interval_is_what_counts() {
    let rates = between(&training(4.0), &training(6.5)).unwrap();
    close(rates.seconds, 2.5);
    close(rates.host.cpu.map(|cpu| cpu.0), 0.5);
    close(rates.host.pressure_cpu.map(|cpu| cpu.0), 0.5);
    assert_eq!(rates.host.pressure_io, Some(Share::ZERO));
    assert_eq!(rates.host.pressure_memory, None);
    close(rates.own_cpu.map(|cpu| cpu.0), 0.01);
    let disk = &rates.disks[0];
    close(disk.read.0, 50e6);
    close(disk.util.0, 0.1);
    close(disk.await_ms, 2.0);
    close(disk.queue_depth, 0.2);
    let gpu = &rates.gpus[0];
    close(gpu.util_percent, 38.0);
    close(gpu.busy.map(|busy| busy.0), 0.38);
    assert_eq!(gpu.stale_seconds, None);
}

#[test]
fn what_threads_of_the_trainer_use_counts_once() {
    let threads = |mut sample: Sample| {
        for worker in &mut first_rank(&mut sample).loaders[0].workers {
            worker.thread = true;
        }
        sample
    };
    let job = job(between(&threads(training(4.0)), &threads(training(6.0))));
    close(job.cpu_cores, 0.3);
    close(job.ranks[0].loaders[0].workers[0].cpu, 0.8);
}

#[test]
fn a_job_shows_what_all_its_processes_use() {
    let job = job(between(&training(4.0), &training(6.0)));
    close(job.cpu_cores, 0.3 + 2.0 * 0.8);
    close(job.read.map(|read| read.0), 3.0 * 20e6);
    close(job.rchar.map(|rchar| rchar.0), 2.0 * 100e6);
    let throttled = job.cgroup.unwrap().throttled_periods;
    close(throttled.map(|share| share.0), 0.1);
}

#[test]
fn what_the_ranks_and_workers_started_belongs_to_the_job() {
    let with = |at: f64, others: &[(i32, f64)]| {
        let mut sample = training(at);
        let others = others.iter().map(|(pid, cpu)| (key(*pid), secs(*cpu)));
        sample.job.as_mut().unwrap().others = others.collect();
        sample
    };
    let cores = |newer: &[(i32, f64)]| {
        let older = with(4.0, &[(7, 30.0), (8, 5.0)]);
        job(between(&older, &with(6.0, newer))).cpu_cores
    };
    close(
        cores(&[(7, 31.0), (8, 5.0), (9, 0.2)]),
        0.3 + 2.0 * 0.8 + 0.6,
    );
    close(cores(&[]), 0.3 + 2.0 * 0.8);
    // More than the job can use in this time, so it was used before.
    close(cores(&[(9, 600.0)]), 0.3 + 2.0 * 0.8);
}

#[test]
fn a_step_that_was_not_seen_has_no_length() {
    let waiting = |at: f64, waiting: u64| {
        let mut sample = training(at);
        let main = sample.job.as_mut().unwrap().ranks[0].main.as_mut();
        *main.unwrap() = MainTally {
            polls: waiting,
            waiting,
            ..MainTally::default()
        };
        sample
    };
    let job = job(between(&waiting(4.0, 400), &waiting(6.0, 600)));
    let step = job.ranks[0].step;
    assert!(step.wait_ms.is_some());
    assert_eq!(step.step_ms, None);
}

#[test]
fn a_child_that_gave_no_batch_does_not_show_that_there_were_no_waits() {
    let busy = |at: f64, polls: u64, count: Option<u64>| {
        let mut sample = training(at);
        let rank = &mut sample.job.as_mut().unwrap().ranks[0];
        *rank.main.as_mut().unwrap() = MainTally {
            polls,
            running: polls,
            ..MainTally::default()
        };
        let loader = &mut rank.loaders[0];
        assert_eq!(loader.kind, LoaderKind::PytorchProcesses);
        loader.batches = loader
            .batches
            .and_then(|batches| count.map(|count| BatchCount { count, ..batches }));
        sample
    };
    for (count, share) in [(None, None), (Some(0), None), (Some(3), Some(Share::ZERO))] {
        let job = job(between(&busy(4.0, 400, count), &busy(6.0, 600, count)));
        assert_eq!(job.ranks[0].wait.map(|wait| wait.share), share, "{count:?}");
    }
}

#[test]
fn time_in_waits_for_the_device_may_be_less_than_polls_saw() {
    let rank = |observed: u64, delayed: u64| {
        let sample = |at: f64, polls: u64, observed: u64| {
            let mut sample = training(at);
            let rank = first_rank(&mut sample);
            rank.main = Some(MainTally {
                polls,
                observed,
                running: polls,
                delayed: delayed * polls / 100,
                delay: Duration::from_secs(delayed * polls),
                ..MainTally::default()
            });
            let device = [(SYNCHRONIZE, 60), (COPIES, 10), ("logging", 5)];
            rank.not_data = device
                .map(|(what, share)| (what.to_owned(), polls * share / 100))
                .into();
            sample
        };
        let newer = sample(6.0, 600, 2 * observed);
        let job = job(between(&sample(4.0, 400, observed), &newer));
        job.ranks.into_iter().next().unwrap()
    };
    let of_many = rank(2400, 0);
    close(of_many.time_not_for_data(SYNCHRONIZE).0, 0.6);
    close(of_many.synchronized_at_least.0, 0.58);
    let others: Vec<_> = of_many.other_waits().map(|wait| &wait.name).collect();
    assert_eq!(others, ["logging"]);
    close(rank(24, 0).synchronized_at_least.0, 0.4);
    // Delayed polls may misjudge the share, so the bound is lower.
    assert!(rank(2400, 50).synchronized_at_least.0 < 0.5);
}

#[test]
fn time_in_a_generator_around_pytorchs_loader_may_be_waits() {
    let in_generator = |at: f64, polls: u64| {
        let mut sample = training(at);
        let main = sample.job.as_mut().unwrap().ranks[0].main.as_mut();
        *main.unwrap() = MainTally {
            polls,
            running: polls,
            unseen: polls / 2,
            in_generator: polls / 2,
            ..MainTally::default()
        };
        sample
    };
    let job = job(between(&in_generator(4.0, 400), &in_generator(6.0, 600)));
    let wait = job.ranks[0].wait.unwrap();
    close(wait.unknown.0, 0.5);
    assert!(wait.low.0 < 0.01 && wait.high.0 > 0.5, "{wait:?}");
}

#[test]
fn nothing_runs_while_the_main_thread_is_blocked_and_no_other_is_on_a_cpu() {
    let blocked = |cpu: f64| {
        let sample = |at: u32| {
            let mut sample = training(at.into());
            let rank = &mut sample.job.as_mut().unwrap().ranks[0];
            let polls = 100 * u64::from(at);
            rank.main = Some(MainTally {
                polls,
                other: polls,
                blocked: polls / 2,
                ..MainTally::default()
            });
            rank.process.cpu = Some(secs((0.3 + cpu) * f64::from(at)));
            sample
        };
        job(between(&sample(4), &sample(6))).ranks[0].blocked
    };
    close(blocked(0.0).map(|share| share.0), 0.5);
    close(blocked(0.4).map(|share| share.0), 0.1);
    close(blocked(2.0).map(|share| share.0), 0.0);
}

#[test]
fn a_rank_shows_wait_step_and_load() {
    let job = job(between(&training(4.0), &training(6.0)));
    let rank = &job.ranks[0];
    let wait = rank.wait.unwrap();
    close(wait.share.0, 0.6);
    assert_eq!(wait.polls, 400);
    assert!(wait.low.0 > 0.4 && wait.low.0 < 0.56 && wait.high.0 > 0.64 && wait.high.0 < 0.8);
    close(rank.waiting.map(|share| share.0), 0.5);
    close(rank.receiving.map(|share| share.0), 0.1);
    assert_eq!(rank.loading, Some(Share::ZERO));
    close(rank.main_cpu.map(|share| share.0), 0.3);
    close(rank.main_run_delay.map(|share| share.0), 0.1);
    assert_eq!(rank.step.batches, Some(20));
    close(rank.step.batches_per_s, 10.0);
    close(rank.step.wait_ms, 60.0);
    close(rank.step.step_ms, 40.0);
    close(rank.step.load_ms, 180.0);
    assert_eq!(rank.activity[0].name, "Tensor.item");
    close(rank.activity[0].share.0, 0.75);
    let loader = &rank.loaders[0];
    close(loader.batches_per_s, 10.0);
    let queue = loader.queue.unwrap();
    close(queue.mean_ready, 0.5);
    close(queue.occupancy.map(|share| share.0), 0.125);
    close(queue.empty.0, 0.75);
    let worker = &loader.workers[1];
    close(worker.cpu, 0.8);
    close(worker.run_delay.map(|share| share.0), 0.1);
    close(worker.busy.map(|share| share.0), 0.9);
    close(worker.disk.map(|share| share.0), 0.1);
    close(worker.read.map(|read| read.0), 20e6);
    close(worker.major_faults_per_s, 5.0);
    close(worker.batches_per_s, 5.0);
    close(worker.load_ms, 180.0);
}

#[test]
fn an_interval_below_a_millisecond_says_nothing() {
    assert_eq!(between(&training(4.0), &training(4.0009)), None);
    assert_eq!(between(&training(4.0), &training(3.0)), None);
    assert!(between(&training(4.0), &training(4.002)).is_some());
}

#[test]
fn polls_after_reports_count_alone_and_reports_after_polls_do_not() {
    let empty = |older: QueueSource, newer: QueueSource| {
        let (mut first, mut last) = (training(4.0), training(6.0));
        let source = |sample: &mut Sample, source| {
            first_loader(sample).queue.as_mut().unwrap().source = source;
        };
        source(&mut first, older);
        source(&mut last, newer);
        let rates = between(&first, &last).unwrap();
        let queue = rates.job.unwrap().ranks[0].loaders[0].queue;
        queue.map(|queue| queue.empty.0)
    };
    let same = empty(QueueSource::Pipe, QueueSource::Pipe);
    assert_eq!(empty(QueueSource::Pipe, QueueSource::Semaphore), same);
    assert_eq!(empty(QueueSource::Probe, QueueSource::Probe), same);
    assert_eq!(empty(QueueSource::Pipe, QueueSource::Probe), None);
    assert!(empty(QueueSource::Probe, QueueSource::Pipe).is_some());
}

#[test]
fn a_counter_that_went_backwards_is_unknown_and_alone() {
    let mut newer = training(6.0);
    newer.host.cpu_busy = Some(Duration::ZERO);
    newer.disks[0].reads = 0;
    first_rank(&mut newer).process.main_cpu = Some(Duration::ZERO);
    let loader = first_loader(&mut newer);
    loader.batches.as_mut().unwrap().count = 3;
    loader.queue.as_mut().unwrap().polls = 1;
    loader.workers[0].tally.as_mut().unwrap().cpu = 1;
    loader.workers[0].process.io.as_mut().unwrap().rchar = Bytes(1);
    loader.workers[0].batches = Some(0);
    let rates = between(&training(4.0), &newer).unwrap();
    assert_eq!(rates.host.cpu, None);
    assert!(rates.host.pressure_cpu.is_some());
    assert_eq!(rates.disks, []);
    let job = rates.job.unwrap();
    close(job.rchar.map(|rchar| rchar.0), 100e6);
    let rank = &job.ranks[0];
    assert_eq!(rank.main_cpu, None);
    assert!(rank.main_run_delay.is_some() && rank.wait.is_some());
    assert_eq!(rank.step.batches, None);
    assert_eq!(rank.step.step_ms, None);
    let loader = &rank.loaders[0];
    assert_eq!((loader.batches_per_s, loader.queue), (None, None));
    let worker = &loader.workers[0];
    assert_eq!((worker.busy, worker.rchar), (None, None));
    assert_eq!((worker.batches_per_s, worker.load_ms), (None, None));
    assert!(worker.read.is_some());
    assert!(loader.workers[1].busy.is_some());
}

#[test]
fn a_reused_pid_is_another_process() {
    let mut newer = training(6.0);
    // The worker started half a second before pipetop.
    first_loader(&mut newer).workers[0].key.start_ticks = 99_950;
    let job = job(between(&training(4.0), &newer));
    let worker = &job.ranks[0].loaders[0].workers[0];
    assert_eq!((worker.cpu, worker.read), (None, None));
    assert_eq!((worker.batches_per_s, worker.load_ms), (None, None));
    // pipetop has kept the tallies since it attached, so they are valid.
    close(worker.busy.map(|busy| busy.0), 0.9);
    close(job.cpu_cores, 0.3 + 0.8);
}

#[test]
fn a_worker_that_began_in_the_interval_counts_from_its_start() {
    let mut newer = training(6.0);
    let mut young = worker(1.0, 2);
    young.key.start_ticks = 100_500;
    first_loader(&mut newer).workers.push(young);
    let rates = job(between(&training(4.0), &newer));
    let young = &rates.ranks[0].loaders[0].workers[2];
    close(young.cpu, 0.8);
    close(young.rchar.map(|rchar| rchar.0), 100e6);
    close(young.batches_per_s, 5.0);
    close(young.load_ms, 180.0);

    // First a worker too young for a clock with ticks of 10 ms, then a sample without any clock.
    first_loader(&mut newer).workers[2].key.start_ticks = 100_595;
    let rates = job(between(&training(4.0), &newer));
    assert_eq!(rates.ranks[0].loaders[0].workers[2].cpu, None);
    first_loader(&mut newer).workers[2].key.start_ticks = 100_500;
    newer.host.boot_ticks_at_start = None;
    let rates = job(between(&training(4.0), &newer));
    let young = &rates.ranks[0].loaders[0].workers[2];
    assert_eq!((young.cpu, young.batches_per_s), (None, None));
    assert_eq!(rates.ranks[0].startup, None);
}

/// With short epochs, workers live for less than the time between two samples.
#[test]
fn what_workers_used_that_have_ended_is_the_jobs() {
    let children = |at: f64, seconds: f64| {
        let mut sample = training(at);
        first_rank(&mut sample).process.children_cpu = Some(secs(seconds));
        sample
    };
    let (older, mut newer) = (children(4.0, 30.0), children(6.0, 36.2));
    // One of the two workers in the older sample has ended. In that sample it had used 3.2 s.
    first_loader(&mut newer).workers.remove(0);
    let cores = |newer: &Sample| job(between(&older, newer)).cpu_cores;
    close(cores(&newer), 0.3 + 0.8 + 3.0 / 2.0);
    // More than the job can use in this time, so a part of it was used before.
    first_rank(&mut newer).process.children_cpu = Some(secs(300.0));
    close(cores(&newer), 0.3 + 0.8);
}

#[test]
fn ended_processes_are_not_in_the_rates() {
    let mut newer = training(6.0);
    first_loader(&mut newer).workers.remove(0);
    newer.gpus.clear();
    newer.disks.clear();
    let rates = between(&training(4.0), &newer).unwrap();
    assert!(rates.gpus.is_empty() && rates.disks.is_empty());
    let job = rates.job.unwrap();
    assert_eq!(job.ranks[0].loaders[0].workers.len(), 1);
    close(job.cpu_cores, 0.3 + 0.8);
    newer.job = None;
    assert_eq!(between(&training(4.0), &newer).unwrap().job, None);
}

#[test]
fn unread_values_stay_unknown() {
    let mut newer = training(6.0);
    newer.host = crate::sample::HostSample::default();
    newer.own = crate::sample::OwnSample::default();
    newer.gpus[0].util_samples.newest.clear();
    newer.gpus[0].util_percent = None;
    let job = newer.job.as_mut().unwrap();
    job.cgroup.as_mut().unwrap().periods = None;
    let rank = first_rank(&mut newer);
    rank.process = crate::sample::ProcessSample::default();
    rank.main = None;
    rank.activity.clear();
    let loader = first_loader(&mut newer);
    loader.queue = None;
    loader.batches = None;
    loader.workers[0].process = crate::sample::ProcessSample::default();
    loader.workers[0].tally = None;
    loader.workers[0].batches = None;
    let rates = between(&training(4.0), &newer).unwrap();
    assert_eq!(rates.host, HostRates::default());
    assert_eq!(rates.own_cpu, None);
    assert_eq!(
        (rates.gpus[0].util_percent, rates.gpus[0].busy),
        (None, None)
    );
    let job = rates.job.unwrap();
    assert_eq!(job.cgroup.unwrap().throttled_periods, None);
    let rank = &job.ranks[0];
    assert_eq!((rank.wait, rank.waiting, rank.stopped), (None, None, None));
    assert_eq!((rank.startup, rank.main_cpu), (None, None));
    assert!(rank.activity.is_empty());
    assert_eq!((rank.step.batches, rank.step.batches_per_s), (None, None));
    assert_eq!((rank.step.wait_ms, rank.step.step_ms), (None, None));
    // The other worker still counts its batches.
    close(rank.step.load_ms, 180.0);
    let worker = &rank.loaders[0].workers[0];
    assert_eq!(worker.now, WorkerNow::Unknown);
    assert_eq!((worker.cpu, worker.load_ms), (None, None));
    assert_eq!((worker.busy, worker.run_delay), (None, None));
}

#[test]
fn a_job_seen_for_the_first_time_has_only_its_tallies() {
    let job = job(between(&machine(4.0), &training(6.0)));
    assert_eq!((job.cpu_cores, job.read), (None, None));
    let rank = &job.ranks[0];
    assert_eq!(rank.step.batches, None);
    close(rank.wait.map(|wait| wait.share.0), 0.6);
}

#[test]
fn of_a_stopped_rank_no_wait_is_known_and_no_worker_is_busy() {
    let (older, mut newer) = (training(4.0), training(6.0));
    let rank = first_rank(&mut newer);
    let before = older.job.as_ref().unwrap().ranks[0].clone();
    let main = before.main.unwrap();
    rank.main = Some(MainTally {
        polls: main.polls + 200,
        stopped: main.stopped + 200,
        ..main
    });
    for (worker, before) in first_loader(&mut newer)
        .workers
        .iter_mut()
        .zip(&before.loaders[0].workers)
    {
        let tally = before.tally.unwrap();
        worker.tally = Some(WorkerTally {
            polls: tally.polls + 40,
            stopped: tally.stopped + 40,
            ..tally
        });
    }
    let part = first_loader(&mut newer).workers[1].tally.as_mut().unwrap();
    (part.stopped, part.idle, part.cpu) = (part.stopped - 30, part.idle + 10, part.cpu + 20);
    let job = job(between(&older, &newer));
    let rank = &job.ranks[0];
    assert_eq!((rank.wait, rank.step.wait_ms), (None, None));
    close(rank.stopped.map(|share| share.0), 1.0);
    let worker = &rank.loaders[0].workers[0];
    assert_eq!((worker.busy, worker.idle()), (None, None));
    close(worker.stopped.map(|share| share.0), 1.0);
    let part = &rank.loaders[0].workers[1];
    close(part.busy.map(|share| share.0), 0.5);
    close(part.idle().map(|share| share.0), 0.25);
}

/// If half of the time may have been waits and none was seen, the wait share and the step time are unknown, not 0.
#[test]
fn a_share_of_waits_that_may_be_anything_is_no_figure() {
    let sampled = |kind, at: u64, waiting: u64, unseen: u64| {
        let mut sample = training(at as f64);
        let rank = first_rank(&mut sample);
        rank.loaders[0].kind = kind;
        rank.main = Some(MainTally {
            polls: 100 * at,
            running: (100 - waiting - unseen) * at,
            waiting: waiting * at,
            other: unseen * at,
            unseen: unseen * at,
            ..MainTally::default()
        });
        sample
    };
    let of = |kind, waiting, unseen| {
        let [older, newer] = [4, 8].map(|at| sampled(kind, at, waiting, unseen));
        let rank = job(between(&older, &newer)).ranks[0].clone();
        let wait = rank.wait.expect("polls");
        let known = rank.wait_share().is_some();
        assert_eq!(rank.step.wait_ms.is_some(), known);
        assert_eq!(rank.step.step_ms.is_some(), known);
        assert!(rank.step.batches_per_s.is_some());
        (known, wait.share)
    };
    // A main thread that sleeps for an unknown reason may wait for worker processes as well.
    for kind in [LoaderKind::Other, LoaderKind::PytorchProcesses] {
        assert_eq!(of(kind, 0, 46), (false, Share::ZERO));
        assert!(of(kind, 0, 10).0);
        // More than a tenth certainly was waits, so the share is at least the one shown.
        assert!(of(kind, 40, 46).0);
    }
}

#[test]
fn the_load_of_a_worker_that_no_poll_found_busy_is_unknown() {
    let idle = |at: f64| {
        let mut sample = training(at);
        let tally = first_loader(&mut sample).workers[0].tally.as_mut().unwrap();
        *tally = WorkerTally {
            polls: tally.polls,
            idle: tally.polls,
            ..WorkerTally::default()
        };
        sample
    };
    let job = job(between(&idle(4.0), &idle(6.0)));
    let worker = &job.ranks[0].loaders[0].workers[0];
    assert!(worker.batches_per_s.is_some());
    assert_eq!((worker.busy, worker.load_ms), (Some(Share::ZERO), None));
}

#[test]
fn the_time_in_which_the_trainer_was_stopped_is_no_step() {
    let mut newer = training(6.0);
    let main = first_rank(&mut newer).main.as_mut().unwrap();
    let stopped = 2 * 40;
    (main.running, main.stopped) = (main.running - stopped, main.stopped + stopped);
    let rank = &job(between(&training(4.0), &newer)).ranks[0];
    close(rank.stopped.map(|share| share.0), 0.2);
    close(rank.step.wait_ms, 60.0);
    close(rank.step.step_ms, 20.0);
}

#[test]
fn work_on_a_log_that_gets_no_cpu_is_no_wait_for_the_log() {
    let mut newer = training(6.0);
    let rank = first_rank(&mut newer);
    for (what, all, ready) in [("logging", 80, 40), (SYNCHRONIZE, 40, 40)] {
        rank.not_data.insert(what.to_owned(), all);
        rank.not_data_ready.insert(what.to_owned(), ready);
    }
    let rank = &job(between(&training(4.0), &newer)).ranks[0];
    // For a quarter of its ready time the thread has no CPU. That is not a wait for the log.
    close(rank.time_not_for_data("logging").0, 0.2 - 0.1 / 4.0);
    close(rank.time_not_for_data(SYNCHRONIZE).0, 0.1);
}

#[test]
fn a_process_that_is_no_part_of_the_job_hides_what_a_rank_does_on_its_gpu() {
    let hidden = |pid: Pid, percent: f64, place, listed: bool| {
        let at = |seconds: f64| {
            let mut sample = training(seconds);
            let rank = first_rank(&mut sample).key.pid;
            let user = GpuUser {
                pid: rank,
                by: if listed {
                    UsedBy::Listed
                } else {
                    UsedBy::DeviceFile
                },
                instance: None,
            };
            let process = |pid, percent| GpuProcess {
                pid,
                mem: None,
                sm_percent: Some(percent),
                sm_at: None,
                place,
            };
            sample.gpus = vec![GpuSample {
                users: Some(vec![user]),
                processes: Some(vec![process(rank, 50.0), process(pid, percent)]),
                ..GpuSample::default()
            }];
            sample
        };
        let rates = between(&at(4.0), &at(6.0)).unwrap();
        let rank = &rates.job.as_ref().unwrap().ranks[0];
        let [used] = rates.known_gpus(rank)[..] else {
            panic!("{:?}", rates.gpus);
        };
        used.other.map(|other| other.pid)
    };
    let (other, here) = (Pid(9000), ProcessPlace::Here);
    assert_eq!(hidden(other, 10.0, here, true), Some(other));
    assert_eq!(hidden(other, 9.0, here, true), None);
    // A loader may use the GPU, too.
    let mut sample = training(4.0);
    let worker = first_loader(&mut sample).workers[0].key.pid;
    assert_eq!(hidden(worker, 90.0, here, true), None);
    // The PIDs may be those of another namespace, so one of them may be the rank's.
    assert_eq!(hidden(other, 90.0, ProcessPlace::Unknown, true), None);
    assert_eq!(hidden(other, 90.0, here, false), None);
}

#[test]
fn a_batch_that_goes_through_two_loaders_is_taken_once() {
    let at = |seconds: f64| {
        let mut sample = training(seconds);
        let inner = LoaderSample {
            id: 8,
            nested: true,
            ..first_loader(&mut sample).clone()
        };
        first_rank(&mut sample).loaders.push(inner);
        sample
    };
    let rank = &job(between(&at(4.0), &at(6.0))).ranks[0];
    close(rank.step.batches_per_s, 10.0);
    for loader in &rank.loaders {
        close(loader.batches_per_s, 10.0);
    }
}

#[test]
fn the_time_in_which_a_kernel_waited_for_a_cell_is_no_step() {
    let mut newer = training(6.0);
    first_rank(&mut newer).not_data = [(EVENTS.to_owned(), 2 * 40)].into();
    let rank = &job(between(&training(4.0), &newer)).ranks[0];
    close(rank.step.wait_ms, 60.0);
    close(rank.step.step_ms, 20.0);
}

#[test]
fn a_batch_clock_that_changes_loses_one_step() {
    let mut newer = training(6.0);
    first_loader(&mut newer).batches.as_mut().unwrap().source = BatchClock::SharedMemory;
    let rates = job(between(&training(4.0), &newer));
    assert_eq!(rates.ranks[0].step.batches, None);

    let mut oldest = training(3.0);
    first_loader(&mut oldest).batches.as_mut().unwrap().source = BatchClock::Waits;
    let rates = job(rates_of([&oldest, &training(4.0), &training(6.0)]));
    assert_eq!(rates.ranks[0].step.batches, Some(20));
    close(rates.ranks[0].step.batches_per_s, 10.0);
}

#[test]
fn a_new_loader_counts_from_zero_only_by_our_own_clock() {
    let mut older = training(4.0);
    first_rank(&mut older).loaders.clear();
    let mut newer = training(6.0);
    let rates = job(between(&older, &newer));
    assert_eq!(rates.ranks[0].step.batches, None);
    let batches = first_loader(&mut newer).batches.as_mut().unwrap();
    (batches.count, batches.source) = (20, BatchClock::Waits);
    let rates = job(between(&older, &newer));
    assert_eq!(rates.ranks[0].step.batches, Some(20));
}

#[test]
fn load_falls_back_to_the_workers_time_over_the_trainers_batches() {
    let (mut older, mut newer) = (training(4.0), training(6.0));
    for sample in [&mut older, &mut newer] {
        for worker in &mut first_loader(sample).workers {
            worker.batches = None;
        }
    }
    let rates = job(between(&older, &newer));
    close(rates.ranks[0].step.load_ms, 180.0);
    // Leaving out a worker whose time is unknown would make the load time too short.
    first_loader(&mut newer).workers[1].tally = None;
    let rates = job(between(&older, &newer));
    assert_eq!(rates.ranks[0].step.load_ms, None);
}

#[test]
fn a_loader_in_the_main_thread_loads_there() {
    let (mut older, mut newer) = (training(4.0), training(6.0));
    for sample in [&mut older, &mut newer] {
        let rank = first_rank(sample);
        let main = rank.main.as_mut().unwrap();
        (main.loading, main.waiting, main.receiving) = (main.waiting + main.receiving, 0, 0);
        rank.loaders[0].workers.clear();
        rank.loaders[0].kind = LoaderKind::PytorchMain;
    }
    let rates = job(between(&older, &newer));
    close(rates.ranks[0].step.load_ms, 60.0);
    close(rates.ranks[0].wait.map(|wait| wait.share.0), 0.6);
}

#[test]
fn a_gpu_that_hangs_is_stale_and_has_no_news() {
    let mut newer = training(12.0);
    newer.gpus[0].read_at = Some(moment(4.0));
    let gpu = &between(&training(4.0), &newer).unwrap().gpus[0];
    assert_eq!((gpu.util_percent, gpu.busy), (None, None));
    assert_eq!(gpu.stale_seconds, None);
    let gpu = &between(&training(9.0), &newer).unwrap().gpus[0];
    close(gpu.stale_seconds, 8.0);
    // Another GPU at the same index, with a driver without a history.
    let mut newer = training(5.0);
    newer.gpus[0].uuid = Some("GPU-1".to_owned());
    newer.gpus[0].util_samples.newest.clear();
    let gpu = &between(&training(4.0), &newer).unwrap().gpus[0];
    close(gpu.util_percent, 40.0);
    assert_eq!(gpu.busy, None);
}

#[test]
fn workers_share_the_loaders_batches_by_what_they_wrote() {
    // A batch is 579 bytes. Of the loader's 20 batches in two seconds, one worker wrote fifteen.
    let with = |at: f64, written: [Option<u64>; 2]| {
        let mut sample = training(at);
        let workers = &mut sample.job.as_mut().unwrap().ranks[0].loaders[0].workers;
        for (worker, written) in workers.iter_mut().zip(written) {
            worker.process.io = written.map(|wchar| IoSample {
                wchar: Bytes(wchar),
                ..IoSample::default()
            });
        }
        sample
    };
    let rates = |older, newer| {
        let job = job(between(&with(4.0, older), &with(6.0, newer)));
        job.ranks[0].loaders[0].workers.clone()
    };
    let workers = rates(
        [Some(1000), Some(50)],
        [Some(1000 + 15 * 579), Some(50 + 5 * 579)],
    );
    close(workers[0].batches_per_s, 7.5);
    close(workers[1].batches_per_s, 2.5);
    close(
        workers[1].load_ms,
        1000.0 * workers[1].busy.unwrap().0 / 2.5,
    );
    let idle = rates([Some(0), Some(7)], [Some(20 * 579), Some(7)]);
    assert_eq!((idle[1].batches_per_s, idle[1].load_ms), (Some(0.0), None));
    // If one worker's bytes are not known, the batches are not divided by bytes.
    let denied = rates([Some(0), None], [Some(20 * 579), None]);
    close(denied[0].batches_per_s, 5.0);
}

fn no_waits() -> std::collections::VecDeque<Wait> {
    std::collections::VecDeque::new()
}

#[test]
fn steady_waits_make_a_narrow_interval_and_unsteady_ones_a_wide_one() {
    // Steps of 0.7 s, and waits of 1.3 s that vary by the given number of milliseconds.
    let waits = |apart: [u64; 10]| {
        let mut now = 0;
        let wait = |more: u64| {
            let from = now + 700;
            now = from + 1300 + more;
            Wait {
                from: Duration::from_millis(from),
                to: Duration::from_millis(now),
                batch: None,
                first: None,
                begins: false,
            }
        };
        apart.map(wait).into_iter().collect()
    };
    let tally = MainTally {
        polls: 2000,
        waiting: 1300,
        other: 700,
        ..MainTally::default()
    };
    let width = |waits| {
        let estimate = estimate::wait(
            &polled(tally, 0),
            &waits,
            10,
            estimate::Unclassified::Workers,
            &Blocks::default(),
        );
        assert!(estimate.low.0 < 0.65 && estimate.high.0 > 0.65);
        estimate.high.0 - estimate.low.0
    };
    let steady = width(waits([0; 10]));
    let jittered = width(waits([0, 300, 100, 900, 0, 700, 200, 0, 1200, 0]));
    assert!(steady < 0.07, "{steady}");
    assert!(jittered > steady * 1.5, "{jittered}");
}

#[test]
fn a_worker_whose_load_time_is_not_known_does_not_make_the_load_shorter() {
    let job = job(between(&training(4.0), &training(6.0)));
    let mut loader = job.ranks[0].loaders[0].clone();
    for (worker, busy) in loader.workers.iter_mut().zip([0.2, 0.0]) {
        worker.busy = Some(Share(busy));
        worker.batches_per_s = Some(10.0);
        worker.load_ms = (busy > 0.0).then_some(20.0);
    }
    let load = |loader: &LoaderRates| {
        super::loader::load_ms(std::slice::from_ref(loader), None, Some(50.0))
    };
    close(load(&loader), 20.0);
    // A worker that made no batch had nothing to do and does not count.
    loader.workers[0].batches_per_s = Some(20.0);
    loader.workers[1].batches_per_s = Some(0.0);
    close(load(&loader), 10.0);
}

#[test]
fn of_loaders_that_take_turns_the_busiest_stands_for_the_rank() {
    let loader = |id, batches_per_s, busy: f64| {
        let job = job(between(&training(4.0), &training(6.0)));
        let loader = job.ranks[0].loaders[0].clone();
        let workers = loader.workers.into_iter().map(|worker| WorkerRates {
            busy: Some(Share(busy)),
            ..worker
        });
        LoaderRates {
            id,
            batches_per_s: Some(batches_per_s),
            workers: workers.collect(),
            ..loader
        }
    };
    let main = |loaders: &[LoaderRates]| loader::main_loader(loaders).map(|loader| loader.id);
    // One batch more in the window makes no difference.
    let in_turn = [loader(1, 2.6, 0.25), loader(2, 2.5, 1.0)];
    assert_eq!(main(&in_turn), Some(2));
    // The load time is that of this loader's own two workers.
    close(super::loader::load_ms(&in_turn, None, Some(400.0)), 800.0);
    // A loader that hardly yields anything is busy with something else.
    assert_eq!(main(&[loader(1, 2.5, 0.25), loader(2, 0.2, 1.0)]), Some(1));
    // Among equal loaders, the first.
    assert_eq!(main(&[loader(1, 2.5, 0.95), loader(2, 2.5, 1.0)]), Some(1));
    assert_eq!(main(&[]), None);
    // The loader that is waited for, even if it yields few batches.
    let waited = |mut loader: LoaderRates, wait| {
        loader.wait = Some(Share(wait));
        loader
    };
    let apart = [
        waited(loader(1, 9.9, 1.0), 0.02),
        waited(loader(2, 0.2, 0.9), 0.6),
    ];
    assert_eq!(main(&apart), Some(2));
    let hardly = [
        waited(loader(1, 9.9, 1.0), 0.01),
        waited(loader(2, 0.2, 0.9), 0.02),
    ];
    assert_eq!(main(&hardly), Some(1));
}

#[test]
fn each_loader_has_the_step_of_its_own_time() {
    let job = job(between(&training(4.0), &training(6.0)));
    let loader = |id, validates, batches_per_s, wait| LoaderRates {
        id,
        validates,
        batches_per_s: Some(batches_per_s),
        wait: Some(Share(wait)),
        ..job.ranks[0].loaders[0].clone()
    };
    let steps = |mut loaders: [LoaderRates; 2], counted: [f64; 2]| {
        let counted = |id: u64| Some(Share(counted[usize::try_from(id).unwrap()]));
        let own = |loader: &LoaderRates| Some(Share(if loader.validates { 0.25 } else { 0.75 }));
        loader::steps_in_turn(&mut loaders, own, counted);
        loaders.map(|loader| loader.step_ms)
    };
    // One of 4 s is a validation: ten batches of 20 ms, each after a wait of 80 ms.
    let training = loader(0, false, 20.0, 0.35);
    let kept = steps([training.clone(), loader(1, true, 2.5, 0.2)], [1.0, 1.0]);
    close(kept[0], 20.0);
    close(kept[1], 20.0);
    // The workers of the validation end with each pass, and its last batches are not seen.
    for counted in [0.25, 0.125] {
        let ended = [training.clone(), loader(1, true, 10.0, 0.2)];
        close(steps(ended, [1.0, counted])[1], 20.0);
    }
    let all_waits = steps([training, loader(1, true, 2.5, 0.25)], [1.0, 1.0]);
    assert_eq!(all_waits[1], None);
}

#[test]
fn waits_are_shared_out_by_the_polls_in_each_loader() {
    let loaders = |polls: [Option<u64>; 2]| {
        let job = job(between(&training(4.0), &training(6.0)));
        let mut loaders = vec![job.ranks[0].loaders[0].clone(); 2];
        (loaders[0].id, loaders[1].id) = (0, 1);
        let of = |id: u64| polls[usize::try_from(id).unwrap()];
        loader::divide_wait(&mut loaders, Some(Share(0.8)), of);
        [loaders[0].wait, loaders[1].wait]
    };
    let [first, second] = loaders([Some(30), Some(10)]);
    close(first.map(|wait| wait.0), 0.6);
    close(second.map(|wait| wait.0), 0.2);
    assert_eq!(loaders([Some(30), None]), [None, None]);
    assert_eq!(loaders([Some(0), Some(0)]), [None, None]);
}

fn polled(tally: MainTally, before: u64) -> MainGrown {
    MainGrown {
        tally,
        before,
        waited_before: 0,
        skew: Share::ZERO,
        delayed: Share::ZERO,
    }
}

/// Returns the estimate from polls alone.
fn estimate_of(tally: MainTally, episodes: u64) -> Estimate {
    estimate::wait(
        &polled(tally, 0),
        &no_waits(),
        episodes,
        estimate::Unclassified::Workers,
        &Blocks::default(),
    )
}

#[test]
fn seldom_polls_are_fewer_observations() {
    let width = |observed| {
        let tally = MainTally {
            polls: 1000,
            observed,
            waiting: 400,
            running: 600,
            ..MainTally::default()
        };
        let wait = estimate_of(tally, 5000);
        wait.high.0 - wait.low.0
    };
    assert!(width(250) > 1.9 * width(1000));
    // An older recording has no count of observed polls.
    close(width(0), width(1000));
}

/// 400 of 1000 polls saw the thread ready, but it was ready for 7 of 10 s.
#[test]
fn polls_that_misjudge_how_long_the_thread_was_ready_may_misjudge_more() {
    let newer = |observed| MainTally {
        polls: 1000,
        observed,
        waiting: 600,
        running: 400,
        ready: Some(ReadyTally {
            time: Duration::from_secs(7),
            ..ReadyTally::default()
        }),
        ..MainTally::default()
    };
    let grown = |observed| tally::main(None, Some(newer(observed)), None, Share::ZERO).unwrap();
    close(grown(1000).skew.0, 0.3 - 2.0 * (0.24_f64 / 1000.0).sqrt());
    // With so few polls, the difference may be chance.
    assert_eq!(grown(6).skew, Share::ZERO);
    let interval = |grown: &MainGrown| {
        let may_be = estimate::Unclassified::Workers;
        estimate::wait(grown, &no_waits(), 5000, may_be, &Blocks::default())
    };
    let skewed = grown(1000);
    let even = MainGrown {
        skew: Share::ZERO,
        ..skewed
    };
    close(
        interval(&even).low.0 - interval(&skewed).low.0,
        skewed.skew.0,
    );
    close(
        interval(&skewed).high.0 - interval(&even).high.0,
        skewed.skew.0,
    );
}

#[test]
fn functions_are_named_in_a_part_of_all_polls() {
    let at = |observed, activity: &[(&str, u64)]| RankSample {
        main: Some(MainTally {
            observed,
            ..MainTally::default()
        }),
        activity: activity
            .iter()
            .map(|(name, polls)| ((*name).to_owned(), *polls))
            .collect(),
        ..RankSample::new(key(1))
    };
    let older = at(200, &[("a (train.py)", 100)]);
    let newer = at(1200, &[("a (train.py)", 150), ("b (train.py)", 250)]);
    assert_eq!(job::named(Some(&older), &newer), Some(Share(0.3)));
    assert_eq!(job::named(None, &at(0, &[("a (train.py)", 7)])), None);
}

/// Of 1000 polls, 480 see a wait: 120 of the 400 delayed ones, and 360 of the 600 others, which is six in ten.
#[test]
fn delayed_polls_may_misjudge_by_as_much_as_they_change() {
    let newer = |delay: u64| MainTally {
        polls: 1000,
        observed: 1000,
        waiting: 480,
        other: 520,
        delayed: 400,
        delayed_in_loader: 120,
        delay: Duration::from_millis(1000 * delay),
        ..MainTally::default()
    };
    let skew = |delay, batches| {
        let grown = tally::main(None, Some(newer(delay)), None, Share::ZERO).unwrap();
        grown.with_delays(batches).skew.0
    };
    close(skew(2, Some(150.0)), 0.6 - 0.48);
    close(skew(2, None), 0.6 - 0.48);
    // Within 2 ms, one thread in 25 leaves a wait or a step of 50 ms.
    close(skew(2, Some(10.0)), 0.04);
    close(skew(0, Some(150.0)), 0.0);
    let even = MainTally {
        delayed_in_loader: 192,
        ..newer(2)
    };
    let even = tally::main(None, Some(even), None, Share::ZERO).unwrap();
    close(even.with_delays(Some(150.0)).skew.0, 0.25 * 0.4);
    // All polls were in time.
    let in_time = MainTally {
        delayed: 0,
        delayed_in_loader: 0,
        ..newer(0)
    };
    let in_time = tally::main(None, Some(in_time), None, Share::ZERO).unwrap();
    assert_eq!(in_time.with_delays(None).skew, Share::ZERO);
}

#[test]
fn the_interval_of_a_share_has_a_width_everywhere() {
    let tally = |waiting, polls| MainTally {
        polls,
        waiting,
        running: polls - waiting,
        ..MainTally::default()
    };
    let none = estimate_of(tally(0, 200), 0);
    assert_eq!((none.share, none.low), (Share::ZERO, Share::ZERO));
    close(none.high.0, 3.8416 / (200.0 + 3.8416));
    let all = estimate_of(tally(200, 200), 1);
    assert_eq!((all.share, all.high), (Share::ONE, Share::ONE));
    close(all.low.0, 200.0 / (200.0 + 3.8416));
    // However many polls there are, the interval is one point to each side.
    let many = estimate_of(tally(500_000, 1_000_000), 1_000_000);
    close(many.low.0, 0.49);
    close(many.high.0, 0.51);
    // Polls within one long wait are one observation, not a hundred.
    let few = estimate_of(tally(100, 200), 2);
    let more = estimate_of(tally(100, 200), 50);
    assert!(few.high.0 - few.low.0 > 0.5 && more.high.0 - more.low.0 < 0.14);
}

#[test]
fn time_before_a_loader_was_recognised_is_neither_waits_nor_steps() {
    let older = MainTally {
        polls: 200,
        other: 200,
        ..MainTally::default()
    };
    let from = MainTally {
        polls: 300,
        waiting: 30,
        other: 270,
        ..MainTally::default()
    };
    let newer = MainTally {
        polls: 1200,
        waiting: 480,
        other: 720,
        ..MainTally::default()
    };
    let polled = tally::main(Some(older), Some(newer), Some(from), Share::ZERO).expect("it grew");
    assert_eq!((polled.before, polled.waited_before), (100, 30));
    assert_eq!(polled.tally.polls, 900);
    let by = |polled, may_be| estimate::wait(&polled, &no_waits(), 100, may_be, &Blocks::default());
    let wait = |polled| by(polled, estimate::Unclassified::Unknown);
    let seen = wait(polled);
    close(seen.share.0, 0.5);
    close(seen.unknown.0, 0.1);
    close(seen.unclear.0, 0.0);
    // All of the unknown tenth of the time may have been waits, or none.
    let after = wait(self::polled(polled.tally, 0));
    close(seen.low.0, after.low.0 * 0.9);
    close(seen.high.0, after.high.0.mul_add(0.9, 0.1));
    // The interval for an early verdict covers only the time since then, once that is long enough and most of the time.
    let early = |polls, before| {
        let tally = MainTally {
            polls,
            other: polls,
            ..MainTally::default()
        };
        wait(self::polled(tally, before)).early.expect("bounds")
    };
    assert_eq!(early(500, 400), early(500, 0));
    assert!(early(399, 100).high.0 > 0.2);
    assert!(early(500, 501).high.0 > 0.5);
    // Waits for a PyTorch loader were recognised before, too, and count.
    let pytorch = by(polled, estimate::Unclassified::Workers);
    close(pytorch.low.0, after.low.0.mul_add(0.9, 0.03));
    assert_eq!(pytorch.high, seen.high);
    // Later polls that cannot be classified are treated differently.
    let tally = MainTally {
        unseen: 90,
        ..polled.tally
    };
    let seen = wait(tally::MainGrown { tally, ..polled });
    close(seen.unclear.0, 0.1);
    close(seen.unknown.0, 0.19);
    // A window that starts later contains none of them.
    let later = tally::main(Some(from), Some(newer), Some(from), Share::ZERO).expect("it grew");
    assert_eq!((later.before, later.tally.polls), (0, 900));
}

/// The kernel counts no time for a thread while a hypervisor has its CPU.
#[test]
fn polls_are_not_weighted_by_kernel_time_where_a_hypervisor_takes_the_cpus() {
    let times = |busy, stolen| {
        let mut sample = machine(4.0 + busy);
        sample.host.cpu_busy = Some(secs(busy));
        sample.host.cpu_stolen = Some(secs(stolen));
        sample
    };
    let stolen = |older: &Sample, newer: &Sample| SampleInterval::new(older, newer).stolen;
    assert_eq!(stolen(&times(1.0, 0.5), &times(3.0, 1.0)), Share(0.25));
    assert_eq!(stolen(&machine(4.0), &times(3.0, 1.0)), Share::ZERO);
    let ready = ReadyTally {
        time: Duration::from_millis(600),
        span: Duration::from_secs(1),
        ..ReadyTally::default()
    };
    let newer = MainTally {
        polls: 200,
        running: 100,
        other: 100,
        ready: Some(ready),
        ..MainTally::default()
    };
    let running = |stolen| {
        let grown = tally::main(None, Some(newer), None, Share(stolen));
        grown.expect("it grew").tally.running
    };
    assert_eq!([0.0, 0.02, 0.03].map(running), [120, 120, 100]);
}

#[test]
fn polls_are_weighted_by_kernel_time() {
    // The thread collated batches for 600 ms of a second and slept for 400. Polls came late while it was on a CPU.
    let ready = ReadyTally {
        time: Duration::from_millis(600),
        span: Duration::from_secs(1),
        loading: 90,
        ..ReadyTally::default()
    };
    let newer = MainTally {
        polls: 200,
        loading: 90,
        running: 10,
        other: 80,
        waiting: 20,
        unseen: 18,
        ready: Some(ready),
        ..MainTally::default()
    };
    let main = |newer| {
        tally::main(None, Some(newer), None, Share::ZERO)
            .expect("it grew")
            .tally
    };
    let weighed = main(newer);
    assert_eq!(
        (
            weighed.loading,
            weighed.running,
            weighed.other,
            weighed.waiting
        ),
        (108, 12, 64, 16)
    );
    assert_eq!((weighed.polls, weighed.unseen), (200, 15));
    // In a recording of an older version a poll counts for 10 ms.
    let older = MainTally {
        ready: Some(ReadyTally {
            time: 2 * ready.time,
            span: Duration::ZERO,
            ..ready
        }),
        ..newer
    };
    assert_eq!(main(older).loading, 108);
    // Unchanged if there are too few polls of a kind, or if the kernel's count is missing.
    let few = MainTally {
        other: 0,
        polls: 120,
        ..newer
    };
    assert_eq!(main(few), few);
    let uncounted = MainTally {
        ready: None,
        ..newer
    };
    assert_eq!(main(uncounted), uncounted);
    let nothing = MainTally {
        ready: Some(ReadyTally::default()),
        ..newer
    };
    assert_eq!(main(nothing), nothing);
}

#[test]
fn unseen_polls_raise_only_the_upper_bound() {
    let mut tally = MainTally {
        polls: 1000,
        waiting: 100,
        running: 800,
        other: 100,
        ..MainTally::default()
    };
    let seen = estimate_of(tally, 500);
    tally.unseen = 850;
    let fed = estimate_of(tally, 500);
    let alone = estimate::wait(
        &polled(tally, 0),
        &no_waits(),
        500,
        estimate::Unclassified::Loads,
        &Blocks::default(),
    );
    assert_eq!((fed.share, fed.low), (seen.share, seen.low));
    // At most 0.3 of 1000 polls: waits, all sleep for an unknown reason, and a tenth of the polls for those on a CPU.
    // With `Loads`, at most 0.95: waits and every unclassified poll.
    close(fed.high.0, 0.329_124_4);
    close(alone.high.0, 0.961_869_9);
    // Without stacks: every unclassified poll, a tenth of the polls on a CPU, and the time without a CPU.
    tally.unseen = 100;
    let blindly = estimate::wait(
        &polled(tally, 0),
        &no_waits(),
        500,
        estimate::Unclassified::WorkersNoStacks(Share(0.05)),
        &Blocks::default(),
    );
    assert_eq!((blindly.share, blindly.low), (seen.share, seen.low));
    // 0.1 + 0.1 + 0.1 + 0.05 of the polls, with the waits first.
    close(blindly.high.0, 0.380_085_9);
    close(blindly.unclear.0, 0.1);
}

/// Such work also counts on a CPU, and whatever feeds the trainer.
#[test]
fn work_that_may_be_on_a_batch_raises_only_the_upper_bound() {
    let mut tally = MainTally {
        polls: 1000,
        waiting: 200,
        running: 800,
        ..MainTally::default()
    };
    let seen = estimate_of(tally, 500);
    (tally.unseen, tally.preparing) = (400, 400);
    for unclassified in [
        estimate::Unclassified::Workers,
        estimate::Unclassified::Loads,
        estimate::Unclassified::Unknown,
    ] {
        let unclear = estimate::wait(
            &polled(tally, 0),
            &no_waits(),
            500,
            unclassified,
            &Blocks::default(),
        );
        assert_eq!((unclear.share, unclear.low), (seen.share, seen.low));
        close(unclear.unclear.0, 0.4);
        assert!((0.6..0.65).contains(&unclear.high.0), "{}", unclear.high);
    }
}

#[test]
fn own_cpu_is_a_difference() {
    let mut newer = machine(6.0);
    newer.own.cpu = Some(secs(0.04));
    let rates = between(&machine(4.0), &newer).unwrap();
    assert_eq!(rates.own_cpu, Some(Share::ZERO));
    assert_eq!(rates.job, None);
    let mut other = training(6.0);
    other.job.as_mut().unwrap().key = key(101);
    let rates = job(between(&training(4.0), &other));
    assert_eq!(rates.cpu_cores, None);
}
