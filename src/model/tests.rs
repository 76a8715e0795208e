mod end;

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::model::literals::{
    first_loader, first_rank, key, machine, moment, secs, training, wait,
};
use crate::model::rates::LoadRates;
use crate::sample::{
    BatchClock, BatchCount, BatchLoad, DeviceTime, GilTally, LoaderKind, LoaderSample, MainTally,
    QueueSource, QueueTally, ReadyTally, Reported, Tail, UnderWay, WorkerLoads, WorkerNow,
    WorkerTally,
};
use crate::units::Share;

const TEN: Duration = Duration::from_secs(10);

fn fed(window: Duration, seconds: impl IntoIterator<Item = u32>) -> Model {
    let mut model = Model::new(window);
    for at in seconds {
        model.apply(training(f64::from(at)));
    }
    model
}

#[test]
fn one_sample_says_nothing() {
    let model = fed(TEN, [3]);
    assert!(model.latest().is_none() && model.window().is_none());
    assert!(model.sample().is_some() && model.history().is_empty());
}

#[test]
fn the_window_is_the_newest_time() {
    let model = fed(TEN, 0..30);
    assert!((model.latest().unwrap().seconds - 1.0).abs() < 1e-9);
    let window = model.window().unwrap();
    assert!((window.seconds - 10.0).abs() < 1e-9);
    assert_eq!(
        window.job.as_ref().unwrap().ranks[0].step.batches,
        Some(100)
    );
    assert_eq!(model.waits(key(100)).count(), 100);
    assert_eq!(model.window.samples.len(), 11);
}

#[test]
fn a_window_without_end_keeps_two_samples() {
    let model = fed(Duration::MAX, 1..3000);
    let window = model.window().unwrap();
    assert!((window.seconds - 2998.0).abs() < 1e-6);
    let step = window.job.as_ref().unwrap().ranks[0].step;
    assert_eq!(step.batches, Some(29_980));
    assert!(model.waits(key(100)).count() <= 4096);
    assert_eq!(model.window.samples.len(), 2);
}

#[test]
fn another_job_starts_the_window_anew() {
    let mut model = Model::new(Duration::MAX);
    model.apply(machine(1.0));
    model.apply(machine(2.0));
    model.apply(training(3.0));
    assert!(model.window().is_none());
    model.apply(training(5.0));
    assert!((model.window().unwrap().seconds - 2.0).abs() < 1e-9);
    // The history is shown from the first sample with a job.
    assert_eq!(waits(&model), [Some(0.6); 3]);
    let mut other = training(6.0);
    other.job.as_mut().unwrap().key = key(101);
    model.apply(other);
    assert!(model.window().is_none());
    // The history before the other job can still be viewed.
    assert_eq!(waits(&model).len(), 4);
    assert_eq!(waits(&model)[1..4], [Some(0.6); 3]);
}

#[test]
fn time_that_runs_backwards_starts_the_window_anew() {
    let mut model = fed(TEN, [5, 6, 7, 2]);
    assert!(model.latest().is_none() && model.window().is_none());
    model.apply(training(3.0));
    assert!((model.window().unwrap().seconds - 1.0).abs() < 1e-9);
}

#[test]
fn progress_counts_from_the_first_sight_of_the_job() {
    let mut model = fed(TEN, 3..9);
    let progress = model.progress();
    assert!((progress.seconds - 5.0).abs() < 1e-9);
    assert_eq!(progress.batches, Some(580));
    assert_eq!(progress.seconds_without_batch, Some(0.0));
    assert!((progress.usual_pause.unwrap() - 0.1).abs() < 1e-9);
    // The trainer takes no more batches, so the counter stops.
    for at in 9..20 {
        let mut sample = training(f64::from(at));
        first_loader(&mut sample).batches = first_loader(&mut training(8.0)).batches;
        model.apply(sample);
    }
    let progress = model.progress();
    assert_eq!(progress.seconds_without_batch, Some(11.0));
    assert!((progress.usual_pause.unwrap() - 0.1).abs() < 1e-9);
    // Another job starts from zero.
    let mut other = training(21.0);
    other.job.as_mut().unwrap().key = key(101);
    model.apply(other);
    assert!(model.progress().seconds.abs() < 1e-9 && model.progress().usual_pause.is_none());
}

#[test]
fn samples_are_bounded_however_dense() {
    let mut model = Model::new(TEN);
    for step in 0..1500 {
        model.apply(machine(0.002 * f64::from(step)));
    }
    assert_eq!(model.window.samples.len(), window::SAMPLES);
}

/// Returns the wait share of each second, oldest first.
fn waits(model: &Model) -> Vec<Option<f64>> {
    let (from, to) = model.history().span().expect("there are readings");
    let seconds = (to - from).round();
    let cells = (0_u32..).take_while(|cell| f64::from(*cell) < seconds);
    let axis = model.history().axis(None, seconds, cells.count());
    let shares = model
        .history()
        .means(&axis.unwrap(), |point| point.rank(0)?.wait.get());
    let rounded = |share: f64| (share * 1e6).round() / 1e6;
    shares.into_iter().map(|share| share.map(rounded)).collect()
}

#[test]
fn history_has_the_figures_of_each_interval() {
    let model = fed(TEN, 0..4);
    assert_eq!(waits(&model), [Some(0.6); 3]);
    let history = model.history();
    let axis = history.axis(None, 3.0, 3).unwrap();
    assert_eq!(
        history.means(&axis, |point| point.rank(0)?.queue.get()),
        [Some(0.125); 3]
    );
    let util = |point: &history::Point| point.gpus[0].util_percent.get();
    assert_eq!(history.means(&axis, util), [Some(40.0); 3]);
    assert_eq!(
        history.means(&axis, |point| point.disk_read.get()),
        [Some(60e6); 3]
    );
    let place = WorkerPlace {
        rank: key(100),
        loader: 7,
        id: 1,
    };
    assert!(history.has_worker(place));
    assert_eq!(history.states(&axis, place), [Some(WorkerNow::Cpu); 3]);
    let stranger = WorkerPlace { id: 9, ..place };
    assert_eq!(history.states(&axis, stranger), [None; 3]);
}

#[test]
fn workers_found_late_and_re_made_cost_startup_time() {
    let mut model = Model::new(TEN);
    for at in 0..9 {
        let mut sample = training(f64::from(at));
        // The workers started at 3.9 s and are found at 6 s. The wait for them lasted from 4 to 5.5 s.
        let waits = [(1.0, 2.0), (4.0, 5.5), (5.6, 5.8)].map(|(from, to)| wait(from, to, None));
        first_rank(&mut sample).waits = match at {
            6.. => Tail::new(3, waits),
            _ => Tail::default(),
        };
        if at >= 6 {
            for worker in &mut first_loader(&mut sample).workers {
                worker.key.start_ticks = 100_390;
            }
        }
        model.apply(sample);
    }
    let window = model.window().unwrap();
    let startup = window.job.as_ref().unwrap().ranks[0].startup.unwrap();
    assert!((startup.0 - 1.5 / 8.0).abs() < 1e-9, "{startup:?}");
}

/// One wait covers a validation whose steps are too short to be seen, and the start of the next epoch.
#[test]
fn a_start_costs_the_time_until_its_first_batch() {
    let mut model = Model::new(TEN);
    for at in 0..9 {
        let mut sample = training(at as f64);
        let whole = Wait {
            first: Some(Duration::from_millis(4200)),
            ..wait(4.0, 7.0, None)
        };
        first_rank(&mut sample).waits = match at {
            7.. => Tail::new(1, [whole]),
            _ => Tail::default(),
        };
        for (worker, ticks) in first_loader(&mut sample)
            .workers
            .iter_mut()
            .zip([405_u64, 670])
        {
            if 100 * at >= ticks {
                worker.key.start_ticks = 100_000 + ticks;
            }
        }
        model.apply(sample);
    }
    let window = model.window().unwrap();
    let startup = window.job.as_ref().unwrap().ranks[0].startup.unwrap();
    assert!((startup.0 - 0.5 / 8.0).abs() < 1e-9, "{startup:?}");
}

#[test]
fn waits_for_the_first_batch_of_a_pass_are_a_part_of_the_time() {
    let begins = |wait| Wait {
        begins: true,
        ..wait
    };
    // In the second wait, the steps after its first batch were too short to be seen.
    let second = Wait {
        first: Some(Duration::from_millis(6200)),
        ..wait(6.0, 7.0, None)
    };
    let waits = [
        begins(wait(4.0, 5.0, Some(0))),
        wait(5.5, 5.8, Some(1)),
        begins(second),
    ];
    let mut model = Model::new(TEN);
    for at in 0..9 {
        let mut sample = training(f64::from(at));
        first_rank(&mut sample).waits = match at {
            7.. => Tail::new(3, waits),
            _ => Tail::default(),
        };
        model.apply(sample);
    }
    let window = model.window().unwrap();
    let first = window.job.as_ref().unwrap().ranks[0].first_batches.unwrap();
    assert!((first.0 - 1.2 / 8.0).abs() < 1e-9, "{first:?}");
}

#[test]
fn workers_that_were_there_before_cost_no_startup_time() {
    let model = fed(TEN, 0..9);
    let window = model.window().unwrap();
    let startup = window.job.as_ref().unwrap().ranks[0].startup;
    assert_eq!(startup, Some(Share::ZERO));
}

/// Each sample shows the workers of another epoch, or none: most starts are not seen.
#[test]
fn starts_that_no_sample_shows_cost_the_time_that_was_polled() {
    let mut model = Model::new(TEN);
    for at in 0..9_u64 {
        let mut sample = training(at as f64);
        let main = first_rank(&mut sample).main.as_mut().unwrap();
        (main.polls, main.waiting, main.starting) = (100 * at, 60 * at, 40 * at);
        model.apply(sample);
    }
    let window = model.window().unwrap();
    let startup = window.job.as_ref().unwrap().ranks[0].startup.unwrap();
    assert!((startup.0 - 0.4).abs() < 0.01, "{startup:?}");
}

/// Returns the job at `at`, whose first worker ended a batch of that number and a short one in the last second.
fn with_load(at: u32) -> Sample {
    let mut sample = training(f64::from(at));
    let batch = u64::from(at);
    let ended = |batch| BatchLoad {
        batch,
        low_ms: 400,
        high_ms: 500,
        ended: None,
    };
    first_loader(&mut sample).workers[0].loads = Some(WorkerLoads {
        ended: Tail::new(batch + 1, (batch.saturating_sub(2)..=batch).map(ended)),
        short: batch,
        under_way: Some(UnderWay {
            batch: batch + 1,
            for_ms: 20,
        }),
    });
    sample
}

/// Checks that two models fed from the same job agree, although one of them got fewer samples.
fn same_window(all: &Model, fewer: &Model) {
    let rank = |model: &Model| {
        let job = model.window().unwrap().job.clone();
        job.unwrap().ranks.remove(0)
    };
    let gpu = |model: &Model| model.window().unwrap().gpus[0].clone();
    assert_eq!(rank(all), rank(fewer));
    assert_eq!(gpu(all).busy, gpu(fewer).busy);
    assert_eq!(gpu(all).swing, gpu(fewer).swing);
    let waits = |model: &Model| model.waits(key(100)).copied().collect::<Vec<_>>();
    assert_eq!(waits(all), waits(fewer));
    assert!(waits(all).len() >= 100);
}

#[test]
fn a_sample_that_is_lost_loses_nothing() {
    for window in [TEN, Duration::MAX] {
        let (mut all, mut fewer) = (Model::new(window), Model::new(window));
        for at in 0..=40 {
            let mut sample = with_load(at);
            sample.gpus[0].driver_zero_us = Some(0);
            all.apply(sample.clone());
            if at % 2 == 0 {
                fewer.apply(sample);
            }
        }
        same_window(&all, &fewer);
        assert_eq!(all.steps(), fewer.steps());
    }
}

fn loads(rates: Option<&Rates>, worker: usize) -> Option<LoadRates> {
    let worker = &rates?.job.as_ref()?.ranks[0].loaders[0].workers[worker];
    worker.loads.clone()
}

#[test]
fn the_newest_loads_are_kept_longer_than_the_window_and_short_ones_are_counted_in_it() {
    for (window, short) in [(TEN, 10), (Duration::MAX, 39)] {
        let mut model = Model::new(window);
        for at in 0..40_u32 {
            model.apply(with_load(at));
        }
        let seen = loads(model.window(), 0).expect("it shows them");
        let batches: Vec<u64> = seen.last.iter().map(|load| load.batch).collect();
        assert_eq!(batches, (24..40).rev().collect::<Vec<_>>());
        assert_eq!((seen.short, seen.under_way.unwrap().batch), (short, 40));
        let second = loads(model.latest(), 0).expect("it shows them");
        assert_eq!((second.last.len(), second.short), (1, 1));
        assert_eq!(loads(model.window(), 1), None, "not known is not none");
    }
}

#[test]
fn a_recreated_worker_does_not_inherit_loads() {
    let mut model = Model::new(TEN);
    for at in 0..9_u32 {
        let mut sample = with_load(at);
        if at >= 6 {
            let worker = &mut first_loader(&mut sample).workers[0];
            worker.key.start_ticks = 7;
            let ended = &mut worker.loads.as_mut().unwrap().ended;
            let before = Tail::new(6, []);
            ended.forget(&before);
        }
        model.apply(sample);
    }
    let seen = loads(model.window(), 0).expect("it shows them");
    let batches: Vec<u64> = seen.last.iter().map(|load| load.batch).collect();
    assert_eq!(batches, [8, 7, 6]);
}

#[test]
fn the_median_of_loads_is_the_middle_one_or_lies_between_two() {
    let load = |middle_ms: u32| BatchLoad {
        batch: 0,
        low_ms: middle_ms - 50,
        high_ms: middle_ms + 50,
        ended: None,
    };
    let of = |times: &[u32]| {
        let last = times.iter().map(|time| load(*time)).collect();
        let rates = LoadRates {
            last,
            ..LoadRates::default()
        };
        rates.median_and_longest()
    };
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[400]), Some((400.0, 400.0)));
    assert_eq!(of(&[400, 2000, 410]), Some((410.0, 2000.0)));
    assert_eq!(of(&[400, 2000, 410, 300]), Some((405.0, 2000.0)));
}

/// Returns the waits for the newest batches, for an in-order loader with `workers` workers that need `load` seconds per
/// batch, and a trainer with steps of 0.1 s. `stretch` returns each batch's load time as a multiple of `load`.
fn simulated(
    workers: usize,
    load: f64,
    batches: u64,
    mut stretch: impl FnMut() -> f64,
) -> Vec<crate::sample::Wait> {
    let prefetch = 2 * workers as u64;
    let mut free = vec![0.0_f64; workers];
    let mut asked = vec![0.0_f64; usize::try_from(batches + prefetch).unwrap()];
    let mut now = 0.0_f64;
    let mut waits = Vec::new();
    for batch in 0..batches {
        let at = usize::try_from(batch).unwrap();
        let worker = &mut free[at % workers];
        *worker = worker.max(asked[at]) + load * stretch();
        if *worker > now + 0.02 {
            waits.push(wait(now, *worker, Some(batch)));
        }
        now = now.max(*worker);
        asked[at + usize::try_from(prefetch).unwrap()] = now;
        now += 0.1;
    }
    waits
}

/// Returns a fixed pseudo-random sequence, 0 to 1.
fn noise() -> impl FnMut() -> f64 {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / f64::from(1_u32 << 24)
    }
}

#[test]
fn a_moment_of_waiting_mostly_lies_in_a_long_wait() {
    let short = (0_u32..100).map(|at| wait(f64::from(at), f64::from(at) + 0.01, None));
    let long = wait(200.0, 209.0, None);
    let length = |waits: Vec<_>| periodicity::wait_seconds(&waits.into());
    assert!(
        length(short.clone().chain([long]).collect()).is_some_and(|it| (8.0..9.0).contains(&it))
    );
    assert!(length(short.collect()).is_some_and(|it| (it - 0.01).abs() < 1e-6));
    assert_eq!(length(vec![]), None);
}

#[test]
fn the_rhythm_of_equal_workers_is_their_number() {
    let period = |waits: Vec<_>| periodicity::period_batches(&waits.into());
    assert_eq!(period(simulated(7, 2.0, 98, || 1.0)), Some(7));
    assert_eq!(period(simulated(2, 0.5, 50, || 1.0)), Some(2));
    assert_eq!(period(simulated(16, 2.0, 200, || 1.0)), Some(16));
    // A long start does not hide the period.
    let mut waits = simulated(7, 2.0, 98, || 1.0);
    waits.insert(0, wait(0.0, 40.0, Some(0)));
    assert_eq!(period(waits), Some(7));
    // Nor do the zero waits that a job reports.
    let waits = simulated(16, 2.0, 400, || 1.0);
    let at = |batch: u64| waits.iter().find(|wait| wait.batch == Some(batch));
    let reported = (0..400).map(|batch| match at(batch) {
        Some(wait) => *wait,
        None => wait(0.0, 0.000_02, Some(batch)),
    });
    assert_eq!(period(reported.collect()), Some(16));
    // Nor does a batch number that is sometimes off by one, or a little unevenness.
    let mut random = noise();
    let mut waits = simulated(7, 2.0, 300, || 1.0);
    for wait in &mut waits {
        let off = u64::from(random() < 0.03);
        wait.batch = wait.batch.map(|batch| batch + off);
    }
    assert_eq!(period(waits), Some(7));
}

#[test]
fn no_rhythm_is_reported_without_one() {
    let period = |waits: Vec<_>| periodicity::period_batches(&waits.into());
    for seed in 0..20 {
        let mut random = noise();
        for _ in 0..seed {
            random();
        }
        let jittered = simulated(7, 2.0, 300, || 0.5 + random());
        assert_eq!(period(jittered), None, "jitter, seed {seed}");
        let mut random = noise();
        for _ in 0..seed {
            random();
        }
        let scattered = (0..200)
            .map(|batch| wait(0.0, 0.01 + random(), Some(batch)))
            .filter(|wait| wait.to > secs(0.5));
        assert_eq!(period(scattered.collect()), None, "scatter, seed {seed}");
    }
    let every = (0..200).map(|batch| wait(0.0, 0.2, Some(batch)));
    assert_eq!(period(every.collect()), None);
    let drifting =
        (0..200_u32).map(|batch| wait(0.0, f64::from(batch) / 100.0, Some(batch.into())));
    let drifting: Vec<_> = drifting.collect();
    assert_eq!(period(drifting), None);
    assert_eq!(
        period(simulated(7, 2.0, 20, || 1.0)),
        None,
        "seen twice only"
    );
    assert_eq!(period(vec![wait(0.0, 1.0, None); 50]), None);
    assert_eq!(period(Vec::new()), None);
    let short = (0..200).map(|batch| wait(0.0, 0.000_9, Some(batch)));
    assert_eq!(period(short.collect()), None);
    let far = vec![wait(0.0, 1.0, Some(0)), wait(0.0, 1.0, Some(u64::MAX))];
    assert_eq!(period(far), None);
}

fn any_tally(mut next: impl FnMut() -> u64) -> MainTally {
    MainTally {
        polls: next(),
        observed: next(),
        waiting: next(),
        receiving: next(),
        loading: next(),
        running: next(),
        other: next(),
        disk: next(),
        stopped: next(),
        unseen: next(),
        in_generator: next(),
        preparing: next(),
        dispatched: next(),
        pinning: next(),
        starting: next(),
        network: next(),
        in_loop: next(),
        blocked: next(),
        computing: next(),
        delayed: next(),
        delayed_in_loader: next(),
        delay: Duration::from_nanos(next()),
        gil: Some(GilTally {
            in_loader: next(),
            outside: next(),
        }),
        ready: Some(ReadyTally {
            time: Duration::from_nanos(next()),
            span: Duration::from_nanos(next()),
            waiting: next(),
            receiving: next(),
            loading: next(),
        }),
    }
}

/// Sets every counter of a sample from `numbers`, whether consistent or not.
fn scramble(sample: &mut Sample, numbers: &[u64]) {
    let mut numbers = numbers.iter().copied().cycle();
    let mut next = || numbers.next().unwrap_or(0);
    sample.at = moment((next() % 5000) as f64 / 1000.0);
    sample.host.cpus = u32::try_from(next() % 3).unwrap();
    sample.host.cpu_busy = Some(Duration::from_nanos(next()));
    sample.host.boot_ticks_at_start = Some(next());
    sample.host.ticks_per_second = Some(next() % 3);
    sample.own.cpu = Some(Duration::from_nanos(next()));
    sample.own.late = next();
    let disk = &mut sample.disks[0];
    disk.reads = next();
    disk.writes = next();
    disk.read_time = Duration::new(next(), 0);
    disk.write_time = Duration::new(next(), 0);
    disk.busy = Duration::new(next(), 0);
    sample.gpus[0].util_samples = Tail::new(next(), [(next(), f64::from_bits(next()))]);
    sample.gpus[0].util_percent = Some(f64::from_bits(next()));
    let rank = first_rank(sample);
    rank.process.main_cpu = Some(Duration::from_nanos(next()));
    rank.main = Some(any_tally(&mut next));
    rank.recognised = Some(any_tally(&mut next));
    let mut time = || Duration::from_nanos(next());
    let mut device_time = || DeviceTime {
        took: time(),
        of: time(),
    };
    let (copy, busy, idle) = (
        Some(device_time()),
        Some(device_time()),
        Some(device_time()),
    );
    rank.reported = Some(Reported {
        copy,
        busy,
        idle,
        waited: time(),
        stepped: time(),
        overrun: time(),
        first_from: time(),
        last_to: time(),
        steps: next(),
        lost: next(),
        device: None,
        notice: None,
    })
    .filter(|_| next() % 3 > 0);
    let waits = (0..next() % 20).map(|_| Wait {
        from: Duration::from_millis(next() % 10_000),
        to: Duration::from_millis(next() % 10_000),
        batch: Some(next()).filter(|batch| batch % 5 > 0),
        first: None,
        begins: false,
    });
    let waits: Vec<_> = waits.collect();
    rank.waits = Tail::new(next(), waits);
    *rank.activity.values_mut().next().unwrap() = next();
    let loader = first_loader(sample);
    loader.batches.as_mut().unwrap().count = next();
    loader.workers_started = next();
    let queue = loader.queue.as_mut().unwrap();
    (queue.polls, queue.empty) = (next(), next());
    (queue.ready_sum, queue.capacity) = (next(), u32::try_from(next() % 3).ok());
    for worker in &mut loader.workers {
        worker.key.start_ticks = next() % 3;
        worker.batches = Some(next());
        worker.process.cpu = Some(Duration::from_nanos(next()));
        worker.tally = Some(worker_tally(&mut next));
    }
}

fn worker_tally(mut next: impl FnMut() -> u64) -> WorkerTally {
    WorkerTally {
        polls: next(),
        idle: next(),
        cpu: next(),
        disk: next(),
        network: next(),
        handover: next(),
        other: next(),
        about_files: next(),
        commands: next(),
        stopped: next(),
        locked: next(),
        trains: next(),
        infers: next(),
        now: WorkerNow::Cpu,
    }
}

fn shares(rates: &Rates) -> Vec<Option<Share>> {
    let mut shares = vec![rates.own_cpu, rates.host.cpu, rates.host.pressure_cpu];
    shares.extend(rates.disks.iter().map(|disk| Some(disk.util)));
    shares.extend(rates.gpus.iter().map(|gpu| gpu.busy));
    for rank in rates.job.iter().flat_map(|job| &job.ranks) {
        shares.extend([rank.waiting, rank.receiving, rank.loading, rank.disk]);
        shares.extend([rank.stopped, rank.main_cpu, rank.startup, rank.dispatched]);
        let device = rank.device.iter();
        shares.extend(device.flat_map(|device| [device.busy, device.copying]));
        shares.extend(rank.activity.iter().map(|activity| Some(activity.share)));
        if let Some(wait) = rank.wait {
            shares.extend([wait.share, wait.low, wait.high].map(Some));
            assert!(wait.low <= wait.share && wait.share <= wait.high);
        }
        for loader in &rank.loaders {
            shares.extend(
                loader
                    .queue
                    .iter()
                    .flat_map(|queue| [Some(queue.empty), queue.occupancy]),
            );
            for worker in &loader.workers {
                shares.extend([worker.busy, worker.disk, worker.run_delay, worker.asleep]);
            }
        }
    }
    shares
}

proptest! {
    #[test]
    fn arbitrary_samples_never_panic_and_shares_stay_in_range(
        rows in prop::collection::vec(
            prop::collection::vec(prop_oneof![0..50_u64, 0..5000_u64, any::<u64>()], 5..90),
            2..8,
        ),
        endless: bool,
    ) {
        let mut model = Model::new(if endless { Duration::MAX } else { Duration::from_secs(2) });
        for numbers in rows {
            let mut sample = training(1.0);
            scramble(&mut sample, &numbers);
            model.apply(sample);
            for rates in model.latest().into_iter().chain(model.window()) {
                for share in shares(rates).into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&share.0), "{share:?}");
                }
                for gpu in &rates.gpus {
                    prop_assert!(gpu.util_percent.is_none_or(|util| (0.0..=100.0).contains(&util)));
                }
            }
        }
    }
}

/// Returns a sample at this second of a job whose loader restarts its workers every five seconds.
fn in_epochs(at: f64) -> Sample {
    let mut sample = training(at);
    let epoch = (at / 5.0).floor();
    let began = 5.0 * epoch;
    for (place, worker) in (0..).zip(&mut first_loader(&mut sample).workers) {
        let tally = crate::model::literals::worker(at - began, 2);
        let pid = 300 + 10 * whole(epoch) + place;
        worker.clone_from(&tally);
        worker.id = u32::try_from(place).unwrap();
        worker.key = ProcessKey {
            pid: crate::units::Pid(pid),
            start_ticks: 100_000 + 500 * u64::try_from(whole(epoch)).unwrap(),
        };
        if at <= began {
            worker.tally = None;
            worker.activity.clear();
        }
    }
    sample
}

#[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
fn whole(value: f64) -> i32 {
    value as i32
}

#[test]
fn workers_recreated_with_each_epoch_keep_their_figures() {
    let mut model = Model::new(TEN);
    for at in 0..28 {
        model.apply(in_epochs(f64::from(at)));
        if at < 6 {
            continue;
        }
        let rank = &model.window().unwrap().job.as_ref().unwrap().ranks[0];
        assert!(rank.step.load_ms.is_some(), "at {at} s");
        for worker in &rank.loaders[0].workers {
            let busy = worker.busy.expect("known").0;
            assert!((busy - 0.9).abs() < 0.05, "{busy} at {at} s");
            let cpu = worker.cpu.expect("known");
            assert!((cpu - 0.8).abs() < 0.05, "{cpu} at {at} s");
            assert_eq!(worker.activity[0].name, "Image.resize");
        }
    }
}

#[test]
fn batches_that_nothing_counts_any_more_may_have_been_taken() {
    let mut model = fed(TEN, 0..12);
    assert_eq!(model.progress().seconds_without_batch, Some(0.0));
    for at in 12..60 {
        let mut sample = training(f64::from(at));
        first_rank(&mut sample).loaders[0].batches = None;
        model.apply(sample);
        assert_eq!(model.progress().seconds_without_batch, None, "at {at} s");
    }
    for at in 60..70 {
        let mut sample = training(60.0);
        sample.at = moment(f64::from(at));
        model.apply(sample);
    }
    // From the second sample with a count on, it is known how long no batch was taken.
    assert_eq!(model.progress().seconds_without_batch, Some(8.0));
}

/// Two loaders may start anew in every epoch, each at its own time.
#[test]
fn a_loader_whose_workers_start_anew_is_kept_beside_the_other() {
    let mut model = Model::new(TEN);
    for at in 0..30 {
        let mut sample = training(f64::from(at));
        let loaders = &mut first_rank(&mut sample).loaders;
        let other = LoaderSample {
            id: 1,
            ..loaders[0].clone()
        };
        if !(12..17).contains(&at) {
            loaders.push(other);
        }
        model.apply(sample);
        if at < 2 {
            continue;
        }
        let job = model.window().unwrap().job.clone().unwrap();
        let ids: Vec<_> = job.ranks[0].loaders.iter().map(|it| it.id).collect();
        let gone = job.ranks[0].loaders.iter().find_map(|it| it.gone_seconds);
        let (expected, age) = match at {
            12 => (&[7, 1][..], Some(1.0)),
            13 => (&[7, 1][..], Some(2.0)),
            14..17 => (&[7][..], None),
            _ => (&[7, 1][..], None),
        };
        assert_eq!((&ids[..], gone), (expected, age), "{at} s");
    }
}

/// The last sample of a recording may show a Python that ends: its workers are gone, and its reports are not.
#[test]
fn a_loader_is_still_known_where_only_its_reports_are_left() {
    for kind in [LoaderKind::Other, LoaderKind::Reported] {
        let mut model = Model::new(Duration::MAX);
        (0..12).for_each(|at| model.apply(training(f64::from(at))));
        for at in 12_u32..30 {
            let mut sample = training(f64::from(at));
            let reported = LoaderSample {
                queue: Some(QueueTally {
                    polls: u64::from(at),
                    source: QueueSource::Probe,
                    ..QueueTally::default()
                }),
                batches: Some(BatchCount {
                    count: u64::from(at),
                    source: BatchClock::Probe,
                }),
                ..LoaderSample::new(9, kind)
            };
            first_rank(&mut sample).loaders = vec![reported];
            model.apply(sample);
            let job = model.window().unwrap().job.clone().unwrap();
            let loader = &job.ranks[0].loaders[0];
            let gone = f64::from(at - 11);
            let kept = (gone < 10.0).then_some(gone);
            assert_eq!(loader.gone_seconds, kept, "at {at} s");
            assert_eq!(loader.kind == kind, kept.is_none(), "at {at} s");
        }
    }
}

#[test]
fn loads_and_steps_take_as_long_where_a_reporting_job_pauses_between_epochs() {
    let times = |epoch: u32, pause: u32| {
        let mut model = Model::new(TEN);
        let mut worked = 0;
        for at in 0..40_u32 {
            let works = at % (epoch + pause) < epoch;
            worked += u32::from(works);
            let mut sample = Sample {
                at: training(f64::from(at)).at,
                ..training(f64::from(worked))
            };
            let rank = first_rank(&mut sample);
            let steps = u64::from(worked) * 10;
            rank.reported = Some(Reported {
                steps,
                waited: Duration::from_millis(60 * steps),
                stepped: Duration::from_millis(40 * steps),
                last_to: Duration::from_secs(at.into()),
                ..Reported::default()
            });
            if !works {
                rank.loaders = vec![LoaderSample::new(9, LoaderKind::Reported)];
            }
            let reports = BatchCount {
                count: steps,
                source: BatchClock::Probe,
            };
            rank.loaders[0].batches = Some(reports);
            model.apply(sample);
        }
        let step = model.window().unwrap().ranks()[0].step;
        [step.load_ms, step.step_ms].map(Option::unwrap)
    };
    let steady = times(1, 0);
    for (epoch, pause) in [(4, 2), (4, 3), (6, 1)] {
        let times = times(epoch, pause);
        let near = |(one, other): (f64, f64)| (one / other - 1.0).abs() < 0.05;
        let all = times.into_iter().zip(steady).all(near);
        assert!(all, "{times:?} ms, not {steady:?}");
    }
}

#[test]
fn between_two_epochs_the_loader_is_that_of_the_epoch_before_with_its_age() {
    let mut model = fed(TEN, 0..12);
    let loader = |model: &Model| {
        let job = model.window().unwrap().job.clone().unwrap();
        let rank = &job.ranks[0];
        (rank.loaders.first().cloned(), rank.step.load_ms)
    };
    let (before, load) = loader(&model);
    for at in 12..30 {
        let mut sample = training(f64::from(at));
        let loaders = &mut first_rank(&mut sample).loaders;
        loaders.clear();
        if at % 3 == 0 {
            // While the workers of the next epoch start, only the loader's place in the training loop is seen.
            loaders.push(LoaderSample::new(9, LoaderKind::Other));
        }
        model.apply(sample);
        let gone = f64::from(at - 11);
        if gone < 10.0 {
            let expected = before.clone().map(|loader| rates::LoaderRates {
                gone_seconds: Some(gone),
                ..loader
            });
            assert_eq!(loader(&model), (expected, load));
        } else {
            let only_a_place = loader(&model).0.map(|it| it.is_only_a_place());
            assert_eq!(only_a_place, (at % 3 == 0).then_some(true), "at {at} s");
        }
    }
    model.apply(training(30.0));
    assert_eq!(loader(&model).0.unwrap().gone_seconds, None);
}
