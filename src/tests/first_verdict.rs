//! When the first verdict comes, and how often it is also the last one, on hundreds of simulated jobs that are polled
//! like real ones.

use std::time::Duration;

use crate::engine::Engine;
use crate::sample::literals::{key, training, wait, worker};
use crate::sample::{
    BatchClock, BatchCount, MainTally, QueueSource, QueueTally, Sample, Tail, Wait, WorkerTally,
};
use crate::tests::chance::Chance;
use crate::units::{Pid, ProcessKey};
use crate::verdict::Kind;

/// Polls per second, and seconds between two samples.
const POLLS_PER_SECOND: usize = 100;
const INTERVAL: f64 = 0.5;
/// Seconds for which a job is watched, and the window of the verdict.
const WATCHED: f64 = 30.0;
const WINDOW: Duration = Duration::from_secs(20);

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small positive number"
)]
fn whole(value: f64) -> usize {
    value.floor() as usize
}

/// How the load time changes from batch to batch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rhythm {
    /// Each batch has its own random load time.
    Steady,
    /// One of this many batches takes this many times as long.
    SlowOnes(usize, f64),
    /// This many batches at one load time, then as many that take this many times as long.
    Phases(usize, f64),
    /// Workers are restarted after this many batches, which takes this many seconds.
    Epochs(usize, f64),
}

#[derive(Debug, Clone)]
struct Job {
    workers: usize,
    step: f64,
    load: f64,
    /// Half the range of step and load times, as a fraction of them.
    jitter: f64,
    rhythm: Rhythm,
    /// Seconds that the job has run before pipetop starts.
    before: f64,
    seed: u64,
}

/// The state of a job at each poll, from the start of pipetop.
struct Trace {
    waiting: Vec<bool>,
    ready: Vec<u32>,
    /// By worker, then by poll.
    busy: Vec<Vec<bool>>,
    /// Batches taken, and the start of each epoch.
    taken: Vec<u64>,
    epochs: Vec<f64>,
    /// Waits in the loader, as seen by polls.
    waits: Vec<Wait>,
}

impl Job {
    fn random(seed: u64) -> Self {
        let mut chance = Chance(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed + 1));
        chance.next();
        let workers = 1 + chance.below(8);
        let step = chance.between(0.02, 0.2);
        // A quarter of the jobs never waits.
        let share = chance.between(-0.33, 0.95);
        let cycle = if share < 0.0 {
            step * chance.between(0.2, 0.95)
        } else {
            step / (1.0 - share)
        };
        let jitter = [0.0, 0.1, 0.3, 0.9][chance.below(4)];
        let rhythm = match chance.below(8) {
            0 => Rhythm::SlowOnes(2 + chance.below(40), chance.between(2.0, 20.0)),
            1 | 2 => Rhythm::Phases(3 + chance.below(40), chance.between(1.5, 6.0)),
            3 => Rhythm::Epochs(10 + chance.below(80), chance.between(0.1, 1.0)),
            _ => Rhythm::Steady,
        };
        Self {
            workers,
            step,
            load: cycle * workers as f64,
            jitter,
            rhythm,
            before: chance.between(20.0, 30.0),
            seed,
        }
    }

    fn run(&self) -> Trace {
        let mut chance = Chance(0xD1B5_4A32_D192_ED03_u64.wrapping_mul(self.seed + 1));
        let end = self.before + WATCHED;
        let polls = whole(WATCHED * POLLS_PER_SECOND as f64) + 1;
        let mut trace = Trace {
            waiting: vec![false; polls],
            ready: vec![0; polls],
            busy: vec![vec![false; polls]; self.workers],
            taken: vec![0; polls],
            epochs: vec![],
            waits: vec![],
        };
        let range = |from: f64, to: f64| {
            let poll = |at: f64| {
                whole(
                    ((at - self.before) * POLLS_PER_SECOND as f64)
                        .max(0.0)
                        .ceil(),
                )
            };
            poll(from).min(polls)..poll(to).min(polls)
        };
        let (mut finished, mut taken) = (vec![0.0; self.workers], Vec::<f64>::new());
        let (mut first, mut stepped) = (0, 0.0_f64);
        trace.epochs.push(0.0);
        for batch in 0.. {
            let varied = |chance: &mut Chance| 1.0 + self.jitter * chance.between(-1.0, 1.0);
            let mut load = self.load * varied(&mut chance);
            match self.rhythm {
                Rhythm::SlowOnes(every, times) if batch % every == 0 => load *= times,
                Rhythm::Phases(length, times) if batch / length % 2 == 0 => load *= times,
                Rhythm::Epochs(length, restart) if batch > 0 && batch % length == 0 => {
                    first = batch;
                    finished = vec![stepped + restart; self.workers];
                    trace.epochs.push(stepped);
                }
                _ => {}
            }
            let worker = batch % self.workers;
            let in_epoch = batch - first;
            let asked = in_epoch
                .checked_sub(2 * self.workers)
                .map_or(0.0, |before| taken[first + before]);
            let begun = finished[worker].max(asked);
            let ready = begun + load;
            finished[worker] = ready;
            let take = ready.max(stepped);
            trace.waiting[range(stepped, take)].fill(true);
            trace.busy[worker][range(begun, ready)].fill(true);
            for poll in &mut trace.ready[range(ready, take)] {
                *poll += 1;
            }
            for poll in &mut trace.taken[range(take, end + 1.0)] {
                *poll += 1;
            }
            taken.push(take);
            stepped = take + self.step * (1.0 + 0.2 * self.jitter * chance.between(-1.0, 1.0));
            if stepped > end {
                break;
            }
        }
        // A waiting trainer takes batches that arrive out of order from the queue, and keeps them.
        for (ready, waiting) in trace.ready.iter_mut().zip(&trace.waiting) {
            *ready *= u32::from(!waiting);
        }
        trace.waits = trace.seen_waits();
        trace
    }
}

impl Trace {
    fn seen_waits(&self) -> Vec<Wait> {
        let mut begun = None;
        let waits = self
            .waiting
            .iter()
            .enumerate()
            .filter_map(|(poll, waiting)| {
                if *waiting {
                    begun.get_or_insert(poll);
                    return None;
                }
                let at = |poll: usize| poll as f64 / POLLS_PER_SECOND as f64;
                Some(wait(at(begun.take()?), at(poll), Some(self.taken[poll])))
            });
        waits.collect()
    }

    fn sample(&self, job: &Job, at: f64) -> Sample {
        let polls = whole(at * POLLS_PER_SECOND as f64 + 0.5);
        let count = |seen: &[bool]| seen[..polls].iter().filter(|seen| **seen).count() as u64;
        let mut sample = training(at);
        sample.gpus.clear();
        let rank = &mut sample.job.as_mut().unwrap().ranks[0];
        let all = polls as u64;
        let waiting = count(&self.waiting);
        rank.main = Some(MainTally {
            polls: all,
            waiting,
            running: all - waiting,
            ..MainTally::default()
        });
        let ended = self
            .waits
            .partition_point(|wait| wait.to.as_secs_f64() <= at);
        let newest = ended.saturating_sub(200);
        rank.waits = Tail::new(ended as u64, self.waits[newest..ended].iter().copied());
        rank.activity.clear();
        let loader = &mut rank.loaders[0];
        loader.settings.num_workers = u32::try_from(job.workers).ok();
        let ready = &self.ready[..polls];
        loader.queue = Some(QueueTally {
            polls: all,
            empty: ready.iter().filter(|ready| **ready == 0).count() as u64,
            ready_sum: ready.iter().map(|ready| u64::from(*ready)).sum(),
            ready: ready.last().copied().unwrap_or(0),
            capacity: u32::try_from(2 * job.workers).ok(),
            source: QueueSource::Pipe,
            gone: 0,
        });
        loader.batches = Some(BatchCount {
            count: self.taken[polls] + 500,
            source: BatchClock::Iterator,
        });
        let now = job.before + at;
        let (epoch, started) = self
            .epochs
            .iter()
            .enumerate()
            .rfind(|(_, started)| **started <= now)
            .unwrap();
        // In ticks since boot; pipetop started at 100 000.
        let start = 100_000.0 + 100.0 * (started - job.before);
        loader.workers = (0..)
            .zip(&self.busy)
            .map(|(id, busy)| {
                let mut worker = worker(at, id);
                let busy = count(busy);
                let number = i32::try_from(epoch).unwrap() * 100 + id.cast_signed();
                worker.key = match job.rhythm {
                    Rhythm::Epochs(..) => ProcessKey {
                        pid: Pid(200 + number),
                        start_ticks: whole(start) as u64,
                    },
                    _ => key(200 + number),
                };
                worker.tally = Some(WorkerTally {
                    polls: all,
                    idle: all - busy,
                    cpu: busy,
                    ..WorkerTally::default()
                });
                worker.batches = None;
                worker
            })
            .collect();
        sample
    }
}

/// The verdicts on a job.
#[derive(Debug)]
struct Verdicts {
    /// Time, kind and confidence of the first verdict.
    at: f64,
    first: Kind,
    confidence: f64,
    taken_back: bool,
    last: Kind,
}

fn watch(job: &Job) -> Verdicts {
    let trace = job.run();
    let mut engine = Engine::new(WINDOW);
    let mut verdicts: Option<Verdicts> = None;
    let mut at = 0.0;
    while at < WATCHED {
        let verdict = engine.push(trace.sample(job, at)).verdict().unwrap();
        let kind = verdict.kind;
        if let Some(verdicts) = &mut verdicts {
            verdicts.last = kind;
            verdicts.taken_back |= kind != verdicts.first;
        } else if kind != Kind::WarmingUp {
            verdicts = Some(Verdicts {
                at,
                first: kind,
                confidence: verdict.confidence.0,
                taken_back: false,
                last: kind,
            });
        }
        at += INTERVAL;
    }
    verdicts.unwrap()
}

/// Checks that the first verdict on these jobs is also the last one, at least as often as its mean confidence says.
fn is_as_right_as_it_says<'a>(verdicts: impl Iterator<Item = &'a Verdicts>, who: &str) -> usize {
    let (mut right, mut stated, mut count) = (0.0, 0.0, 0);
    for verdicts in verdicts {
        right += f64::from(u8::from(verdicts.first == verdicts.last));
        stated += verdicts.confidence;
        count += 1;
    }
    let message = format!("{who}: {right} right of {count}, {stated:.1} stated");
    assert!(right >= stated, "{message}");
    println!("{message}");
    count
}

#[test]
fn the_first_verdict_is_right_as_often_as_it_says() {
    let jobs: Vec<Job> = (0..400).map(Job::random).collect();
    let all: Vec<(&Job, Verdicts)> = jobs.iter().map(|job| (job, watch(job))).collect();
    let early = || all.iter().filter(|(_, verdicts)| verdicts.at < 10.0);
    let is_steady = |job: &Job| job.rhythm == Rhythm::Steady;

    is_as_right_as_it_says(all.iter().map(|(_, verdicts)| verdicts), "all");
    for kind in [Kind::DataBound, Kind::ComputeBound] {
        let of_kind = early().map(|(_, verdicts)| verdicts);
        let of_kind = of_kind.filter(|verdicts| verdicts.first == kind);
        let count = is_as_right_as_it_says(of_kind, &format!("early {kind}"));
        assert!(count >= 50, "{count} early {kind}");
    }
    let uneven = early().filter(|(job, _)| !is_steady(job));
    let count = is_as_right_as_it_says(uneven.map(|(_, verdicts)| verdicts), "early, uneven");
    assert!(count >= 100, "{count} early of uneven ones");

    // No first verdict is revoked for jobs without a rhythm, and hardly any for jobs with one.
    let back: Vec<_> = early()
        .filter(|(_, verdicts)| verdicts.taken_back)
        .collect();
    assert!(!back.iter().any(|(job, _)| is_steady(job)), "{back:#?}");
    assert!(back.len() * 50 <= early().count(), "{back:#?}");
}

#[test]
fn clear_cases_are_judged_within_three_seconds() {
    let mut clear = [0, 0];
    for job in (0..400).map(Job::random) {
        // Only jobs for which six rounds of the workers fit into three seconds, with rounds of similar length.
        if job.rhythm != Rhythm::Steady || job.load > 0.5 {
            continue;
        }
        let supply = job.load / job.workers as f64;
        let waits = supply > job.step / 0.7;
        let fed = supply < 0.7 * job.step;
        if waits || fed {
            let verdicts = watch(&job);
            let kind = if waits {
                Kind::DataBound
            } else {
                Kind::ComputeBound
            };
            assert!(
                verdicts.first == kind && verdicts.at <= 3.0,
                "{job:?} {verdicts:?}"
            );
            clear[usize::from(fed)] += 1;
        }
    }
    assert!(clear.iter().all(|count| *count >= 15), "{clear:?}");
}

/// Epochs of six seconds without a wait, and a long wait before each.
#[test]
fn workers_that_may_be_new_with_each_epoch_are_no_sign_of_a_fed_job() {
    let job = Job {
        workers: 4,
        step: 0.1,
        load: 0.1,
        jitter: 0.1,
        rhythm: Rhythm::Epochs(60, 3.0),
        before: 28.2,
        seed: 1,
    };
    // Six of 9.1 seconds are without a wait. When pipetop starts, five of them are left.
    let verdicts = watch(&job);
    assert!(
        verdicts.first == Kind::DataBound && verdicts.at >= 5.0,
        "{verdicts:?}"
    );
    let kept = Job {
        rhythm: Rhythm::Steady,
        ..job
    };
    let verdicts = watch(&kept);
    assert!(
        verdicts.first == Kind::ComputeBound && verdicts.at <= 3.0,
        "{verdicts:?}"
    );
}
