//! How far the observation of a job has come, and whether the job makes progress at all.

use std::time::Duration;

use crate::model::interval::SampleInterval;
use crate::model::rates::Rates;
use crate::model::window::are_missed;
use crate::sample::{JobSample, LoaderKind, LoaderSample, RankSample, Sample};

/// The progress of the observation, which the judge checks before it judges.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Seconds since attaching or, for a job that was watched from its start, since its first batch.
    pub seconds: f64,
    /// Batches taken by the rank that is furthest on, if anything counts them.
    pub batches: Option<u64>,
    /// Seconds since a batch was last taken, if batches are counted.
    pub seconds_without_batch: Option<f64>,
    /// Usual pause between two batches before that, in seconds; `None` until a few were seen.
    pub usual_pause: Option<f64>,
    /// Seconds since the newest workers were started, if these may not be the first: an epoch may not be much longer
    /// than that. `None` if they are the first, or persist from one epoch to the next.
    pub seconds_of_workers: Option<f64>,
}

/// Maximum number of batches in the interval with the first batch, and of waits before it, for it to be the first.
const FIRST_FEW: u64 = 3;

/// Minimum CPU time of ended children for some of them to have been workers: other commands that a script runs at its
/// start need less (`git describe` 8 ms).
const EARLIER_WORKERS: Duration = Duration::from_millis(500);

/// Time after which stacks have shown any loader of the main thread that existed at the first sample.
const SEEN_BY_STACKS: Duration = Duration::from_millis(1500);

/// Seconds after the start of a rank within which it starts its first workers: before that, it imports modules.
const FIRST_WORKERS: f64 = 60.0;

/// Maximum age, in seconds, of a command launched by pipetop when it is first polled.
const MAX_AGE_AT_LAUNCH: f64 = 1.0;

/// Follows one job from its first sample.
#[derive(Debug, Clone, Default)]
pub(super) struct WarmUp {
    first: Option<Duration>,
    /// Time of the first sample with a loader or a batch of the job, if the job was already watched before.
    began: Option<Duration>,
    /// The job has had a loader.
    has_loaded: bool,
    /// The job has reported its first step.
    has_reported: bool,
    now: Duration,
    /// Total number of batches, if anything counts them.
    batches: Option<u64>,
    /// Waits of the rank with the most of them: those that ended since attaching, and those before.
    waits: u64,
    waits_before: Option<u64>,
    /// Batches that were taken since attaching, and the time of the last of them.
    taken: u64,
    taken_at: Option<Duration>,
    /// When the newest workers that may not be the first were started, in seconds since pipetop started.
    newest_worker_start: Option<f64>,
}

impl WarmUp {
    /// Returns whether the newest sample is the first with a loader or with a batch: the time before it was the start.
    pub(super) fn has_just_begun(&self) -> bool {
        self.began == Some(self.now) && self.first != self.began
    }

    /// Adds a sample; `rates` are those between the one before and this one.
    pub(super) fn apply(&mut self, sample: &Sample, rates: Option<&Rates>) {
        let Some(job) = &sample.job else { return };
        self.now = sample.at.since_start;
        let first = *self.first.get_or_insert(self.now);
        let counted = batches(job);
        let mut reports = job.ranks.iter().filter_map(|rank| rank.reported.as_ref());
        let first_report = reports.any(|reported| reported.first_from >= first);
        // After more waits than that, earlier batches were missed.
        let few = self.waits <= FIRST_FEW;
        // A job that was there before pipetop may only be between two epochs.
        let started_while_watched = SampleInterval::new(sample, sample)
            .start_of(job.key)
            .is_some_and(|start| start > -MAX_AGE_AT_LAUNCH);
        let first_batch = few
            && (started_while_watched || !had_workers(job))
            && counted.is_some_and(|now| match self.batches {
                Some(before) => before == 0 && now > 0,
                // A count that starts above the first few was only unknown before: the job is already running.
                None => (1..=FIRST_FEW).contains(&now),
            });
        self.newest_worker_start = newest_worker_start(job, &SampleInterval::new(sample, sample))
            .or(self.newest_worker_start);
        // If batches are not counted from the first on, at least exclude what comes before the training: imports, the
        // search for files, the making of a model. A loader of the main thread is only seen by its stacks.
        let loaders = || job.ranks.iter().flat_map(|rank| &rank.loaders);
        // Workers of a loader of another library, above all threads, are recognised long after they started.
        let by_workers =
            loaders().any(|loader| loader.kind != LoaderKind::Other && !loader.workers.is_empty());
        let in_main = loaders().any(|loader| loader.kind == LoaderKind::PytorchMain);
        let unseen_until = if by_workers {
            first
        } else {
            first + SEEN_BY_STACKS
        };
        let started = started_while_watched || (self.now > unseen_until && !had_workers(job));
        let first_loader = (by_workers || in_main) && !self.has_loaded && started;
        self.has_loaded |= by_workers || in_main;
        // The first report contains the wait for the first batch, and comes a step after it.
        if first_batch || first_loader || (first_report && !self.has_reported) {
            self.began = Some(self.now);
            self.has_reported |= first_report;
        }
        // The count may drop when another source supplies it; progress must not.
        self.batches = counted.max(self.batches);
        let waits = job.ranks.iter().filter_map(|rank| rank.waits.count);
        let waits = waits.max().unwrap_or(0);
        self.waits = waits.saturating_sub(*self.waits_before.get_or_insert(waits));
        let ranks = rates.map_or(&[][..], Rates::ranks).iter();
        if let Some(taken) = ranks.filter_map(|rank| rank.step.batches).max() {
            self.taken = self.taken.saturating_add(taken);
            if taken > 0 || self.taken_at.is_none() {
                self.taken_at = Some(self.now);
            }
        } else if job.ranks.iter().any(|rank| !rank.loaders.is_empty()) {
            // Nothing counts the batches any more: although none was seen, some may have been taken.
            self.taken_at = None;
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let Some(first) = self.first else {
            return Progress::default();
        };
        let since = |at: Duration| self.now.saturating_sub(at).as_secs_f64();
        let usual_pause = self
            .taken_at
            .filter(|_| self.taken >= 3)
            .map(|at| at.saturating_sub(first).as_secs_f64() / self.taken as f64);
        Progress {
            seconds: since(self.began.unwrap_or(first)),
            batches: self
                .batches
                .filter(|batches| !are_missed(*batches, self.waits)),
            seconds_without_batch: self.taken_at.map(since),
            usual_pause,
            seconds_of_workers: self
                .newest_worker_start
                .filter(|_| self.began.is_none())
                .map(|newest_worker_start| self.now.as_secs_f64() - newest_worker_start),
        }
    }
}

/// Whether workers of the job have already ended.
fn had_workers(job: &JobSample) -> bool {
    let ended = |rank: &RankSample| rank.process.children_cpu;
    job.ranks
        .iter()
        .filter_map(ended)
        .any(|cpu| cpu >= EARLIER_WORKERS)
}

/// Returns when the newest workers that may not be the first of their rank were started.
fn newest_worker_start(job: &JobSample, clock: &SampleInterval) -> Option<f64> {
    let of_rank = |rank: &RankSample| {
        let started = clock.start_of(rank.key)?;
        let loaders = rank.loaders.iter();
        let changing = loaders.filter(|loader| loader.settings.persistent_workers != Some(true));
        let workers = changing.flat_map(|loader| &loader.workers);
        let starts = workers.filter_map(|worker| clock.start_of(worker.key));
        let later = starts.filter(|start| start - started > FIRST_WORKERS);
        later.max_by(f64::total_cmp)
    };
    job.ranks.iter().filter_map(of_rank).max_by(f64::total_cmp)
}

fn batches(job: &JobSample) -> Option<u64> {
    let rank = |rank: &RankSample| {
        let loaders = rank.loaders.iter().filter(|loader| !loader.nested);
        loaders.map(taken).fold(None, sum)
    };
    job.ranks.iter().filter_map(rank).max()
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// Returns the batches counted by the loader's clock or made by its present workers, whichever is more.
fn taken(loader: &LoaderSample) -> Option<u64> {
    let made = loader
        .workers
        .iter()
        .map(|worker| worker.batches)
        .fold(None, sum);
    loader.batches.map(|batches| batches.count).max(made)
}

#[cfg(test)]
mod tests {
    use crate::model::Model;
    use crate::model::literals::{first_rank, training, wait};
    use crate::sample::{BatchClock, BatchCount, LoaderKind, Reported, Sample, Tail};
    use std::time::Duration;

    /// Returns a sample at this second of a job whose loader has yielded `batches`.
    fn at(seconds: f64, batches: Option<u64>) -> Sample {
        let mut sample = training(seconds);
        let loader = &mut sample.job.as_mut().unwrap().ranks[0].loaders[0];
        loader.batches = batches.map(|count| BatchCount {
            count,
            source: BatchClock::Iterator,
        });
        for worker in &mut loader.workers {
            worker.batches = None;
        }
        first_rank(&mut sample).waits = Tail::default();
        sample
    }

    fn model(samples: &[(f64, Option<u64>)]) -> Model {
        let mut model = Model::new(Duration::MAX);
        for (seconds, batches) in samples {
            model.apply(at(*seconds, *batches));
        }
        model
    }

    /// The job makes an iterator for each step, which is gone before it is read.
    #[test]
    fn a_count_that_misses_most_batches_is_none() {
        let mut model = Model::new(Duration::MAX);
        for (second, waits) in [(1, 0_i32), (5, 30), (9, 60)] {
            let mut sample = at(f64::from(second), Some(0));
            let ended = (0..waits).map(|at| wait(f64::from(at), f64::from(at) + 0.5, None));
            first_rank(&mut sample).waits = Tail::new(u64::from(waits.unsigned_abs()), ended);
            model.apply(sample);
        }
        assert_eq!(model.progress().batches, None);
        // One of them is read after all.
        let mut sample = at(11.0, Some(4));
        first_rank(&mut sample).waits = Tail::new(70, []);
        model.apply(sample);
        assert!((model.progress().seconds - 10.0).abs() < 1e-9);
        let rates = model.window().unwrap();
        let step = rates.job.as_ref().unwrap().ranks[0].step;
        assert_eq!((step.batches, step.batches_per_s), (None, None));
    }

    #[test]
    fn a_job_that_was_seen_to_start_is_judged_from_its_first_batch() {
        let model = model(&[(1.0, None), (3.0, None), (4.0, Some(1)), (9.0, Some(21))]);
        assert!((model.progress().seconds - 5.0).abs() < 1e-9);
        assert!((model.window().unwrap().seconds - 5.0).abs() < 1e-9);
    }

    /// Returns the times that progress and window cover for a job without a loader at first, whose first count is above
    /// the first few. It started `began` ticks after pipetop, and its ended children used `ended` seconds of CPU time.
    fn judged(began: i64, ended: u64, samples: &[(f64, Option<u64>)]) -> [Duration; 2] {
        let mut model = Model::new(Duration::MAX);
        for (seconds, count) in samples {
            let mut sample = at(*seconds, *count);
            let ours = sample.host.boot_ticks_at_start.unwrap();
            let job = sample.job.as_mut().unwrap();
            job.key.start_ticks = ours.saturating_add_signed(began);
            job.ranks[0].process.children_cpu = Some(Duration::from_secs(ended));
            if count.is_none() {
                job.ranks[0].loaders.clear();
            }
            model.apply(sample);
        }
        let both = [model.progress().seconds, model.window().unwrap().seconds];
        both.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap())
    }

    #[test]
    fn importing_is_not_mixed_in_where_the_first_batches_went_unseen() {
        let both = |seconds| [Duration::from_secs(seconds); 2];
        let samples = [(1.0, None), (5.0, Some(19)), (9.0, Some(99))];
        assert_eq!(judged(-1, 0, &samples), both(4));
        assert_eq!(judged(90, 0, &samples), both(4));
        assert_eq!(judged(-3000, 0, &samples), both(4));
        // The job may only have been between two epochs when pipetop came.
        assert_eq!(judged(-3000, 12, &samples), both(8));
        // In these samples, it is between two epochs.
        let epochs = [(10.0, None), (11.0, Some(101)), (12.0, Some(121))];
        let samples = [&samples[..], &epochs].concat();
        assert_eq!(judged(-1, 0, &samples), both(7));
    }

    /// A loader of the main thread is seen only by stacks, which takes a moment.
    #[test]
    fn a_loader_of_the_main_thread_that_appears_late_is_judged_from_then() {
        let judged = |appears: f64| {
            let mut model = Model::new(Duration::MAX);
            for second in [1.0, 2.0, 3.0, 4.0, 9.0] {
                let mut sample = at(second, (second >= appears).then_some(500));
                let rank = first_rank(&mut sample);
                rank.process.children_cpu = Some(Duration::ZERO);
                rank.loaders[0].workers.clear();
                rank.loaders[0].kind = LoaderKind::PytorchMain;
                rank.loaders.retain(|_| second >= appears);
                model.apply(sample);
            }
            model.progress().seconds.round()
        };
        assert!((judged(2.0) - 8.0).abs() < 1e-9);
        assert!((judged(4.0) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_loader_that_was_learned_was_there_before() {
        let judged = |kind: LoaderKind| {
            let mut model = Model::new(Duration::MAX);
            for second in [1.0, 2.0, 4.0, 9.0] {
                let mut sample = at(second, None);
                let rank = first_rank(&mut sample);
                rank.process.children_cpu = Some(Duration::ZERO);
                rank.loaders[0].kind = kind;
                rank.loaders.retain(|_| second >= 4.0);
                model.apply(sample);
            }
            model.progress().seconds.round()
        };
        assert!((judged(LoaderKind::Other) - 8.0).abs() < 1e-9);
        assert!((judged(LoaderKind::Processes) - 5.0).abs() < 1e-9);
    }

    /// New workers are being started for the next epoch.
    #[test]
    fn a_job_that_was_between_two_epochs_is_judged_from_attaching() {
        let judged = |cpu_of_children: u64| {
            let mut model = Model::new(Duration::MAX);
            for (seconds, count) in [(1.0, Some(0)), (3.0, Some(1)), (9.0, Some(100))] {
                let mut sample = at(seconds, count);
                first_rank(&mut sample).process.children_cpu =
                    Some(Duration::from_millis(cpu_of_children));
                model.apply(sample);
            }
            model.progress().seconds.round()
        };
        assert!((judged(40) - 6.0).abs() < 1e-9);
        assert!((judged(12_000) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_job_that_says_when_it_began_is_judged_from_then_however_quick_it_is() {
        let mut model = Model::new(Duration::MAX);
        for (seconds, batches) in [
            (1.0, None),
            (3.0, None),
            (4.0, Some(900)),
            (9.0, Some(5900)),
        ] {
            let mut sample = at(seconds, batches);
            sample.job.as_mut().unwrap().ranks[0].reported = batches.map(|_| Reported {
                first_from: Duration::from_millis(3200),
                ..Reported::default()
            });
            model.apply(sample);
        }
        assert!((model.progress().seconds - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_job_that_runs_already_is_judged_from_attaching() {
        let model = model(&[(1.0, None), (3.0, Some(5000)), (9.0, Some(5100))]);
        assert!((model.progress().seconds - 8.0).abs() < 1e-9);
        assert!((model.window().unwrap().seconds - 8.0).abs() < 1e-9);
        assert_eq!(model.progress().batches, Some(5100));
    }

    #[test]
    fn workers_that_are_far_younger_than_their_rank_may_be_new_with_each_epoch() {
        let of_workers = |after_the_rank: u64, persistent: bool, began: bool| {
            let mut model = Model::new(Duration::MAX);
            for seconds in [1.0, 2.0] {
                let first = if began { 0 } else { 500 };
                let count = first + u64::from(seconds > 1.0);
                let mut sample = at(seconds, Some(count));
                let rank = &mut sample.job.as_mut().unwrap().ranks[0];
                // pipetop started 1000 s after boot.
                rank.key.start_ticks = 99_700 - 100 * after_the_rank;
                rank.loaders[0].settings.persistent_workers = Some(persistent);
                for worker in &mut rank.loaders[0].workers {
                    worker.key.start_ticks = 99_700;
                }
                model.apply(sample);
            }
            let seconds = model.progress().seconds_of_workers;
            seconds.map(|seconds| (1000.0 * seconds).round())
        };
        assert_eq!(of_workers(600, false, false), Some(5000.0));
        // First workers, started after the imports or while watched.
        assert_eq!(of_workers(30, false, false), None);
        assert_eq!(of_workers(600, false, true), None);
        assert_eq!(of_workers(600, true, false), None);
    }
}
