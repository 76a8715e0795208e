//! Loaders other than torch's own, and loops written by hand. A script of `tests/torch/loaders` runs first with a slow
//! loader, for which the trainer waits about half of its time, and then with one that is far ahead of the trainer.
//!
//! A script's own wait share decides which verdict is right, as other load can change what the script does. The
//! interpreter is `PIPETOP_LOADERS_PYTHON`, which has torch and the packages. The verdict must be right, within the
//! tolerance, or unknown.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;

use crate::clock::sleep;
use crate::job::Job;
use crate::report::Report;
use crate::trial::{
    OBSERVED, Outcome, PIPETOP, TOLERANCE, about, ensure, kinds_near, no_more_workers,
};
use support::machine::{Share, all_at_once, each, has, last_torch, note, skip};
use support::measured::two_of_three_at_once;

pub(crate) const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torch/loaders");
/// Seconds of observation before a verdict on a trainer that clearly waits is expected.
const WAITS_OBSERVED: u32 = 7;
const TORCHRUN: &[&str] = &[
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc_per_node=2",
];

/// A script, the figures of its two runs, and the expected verdict.
#[derive(Clone, Copy)]
struct Loader {
    script: &'static str,
    /// The package that must be installed, by its import name.
    package: &'static str,
    launcher: &'static [&'static str],
    /// What the report calls the loader while the trainer waits for it. `None` = not checked: waits are also seen for a
    /// loader without a name.
    name: Option<&'static str>,
    /// The first of its ranks; `None` = the script has none.
    rank: Option<u64>,
    /// Milliseconds that a worker needs for a batch: with the slow loader, and with the fast one.
    starved: u32,
    free: u32,
    /// Milliseconds.
    step: u32,
    workers: usize,
    /// Loads compute in Python instead of sleeping.
    computes: bool,
    share: Share,
    /// Batches after which the job is in steady state.
    steady: usize,
    /// The script cannot change its load while it runs: a second job has the other load.
    two_jobs: bool,
    /// Runs only with the slow loader.
    only_starved: bool,
    /// Seconds that each report takes. `None` = as many as its verdict needs.
    observed: Option<u32>,
    said: ExpectedVerdict,
}

#[derive(Clone, Copy)]
enum ExpectedVerdict {
    /// The kind that follows from the script's own wait share, and this many workers; with `queue`, also a queue.
    Right { workers: usize, queue: bool },
    /// The kind that follows from the script's own wait share. With the fast loader, also unknown, with these words in
    /// the reason.
    Learned(&'static str),
    /// Like `Learned`, but unknown is accepted with either loader.
    RightOrUnknown(&'static str),
    /// The kind that follows from the script's own wait share, which is detected by what the main thread takes from a
    /// queue in its memory. With `queue`, also the level of that queue. While the trainer waits, this many threads are
    /// seen to load. With the fast loader, some reports may be unknown.
    Judged { queue: bool, threads: usize },
    /// Unknown, with these words in the reason.
    Unknown(&'static str),
    /// This kind and cause with the slow loader; with the fast one, the kind that follows from the script's own wait
    /// share.
    Other {
        kind: &'static str,
        cause: &'static str,
    },
}

/// Returns a script with four workers and a step of 50 ms. A worker needs 400 ms for a batch, so that the trainer waits
/// half of the time, or 40 ms.
const fn loader(script: &'static str, package: &'static str) -> Loader {
    Loader {
        script,
        package,
        launcher: &[],
        name: None,
        rank: None,
        starved: 400,
        free: 40,
        step: 50,
        workers: 4,
        computes: false,
        share: Share::Seventh,
        steady: 15,
        two_jobs: false,
        only_starved: false,
        observed: None,
        said: ExpectedVerdict::Right {
            workers: 4,
            queue: true,
        },
    }
}

/// Returns the Python with the loaders. `None` = the variable names none, and the test is reported as skipped.
pub(crate) fn python_with_loaders() -> Option<String> {
    let python = std::env::var("PIPETOP_LOADERS_PYTHON").ok();
    if python.is_none() {
        skip("PIPETOP_LOADERS_PYTHON names no Python with the loaders");
    }
    python
}

impl Loader {
    const fn loads(self, starved: u32, free: u32, workers: usize) -> Self {
        Self {
            starved,
            free,
            workers,
            said: ExpectedVerdict::Right {
                workers,
                queue: workers > 0,
            },
            ..self
        }
    }

    const fn ranks(self) -> Self {
        Self {
            rank: Some(0),
            ..self
        }
    }

    const fn named(self, name: &'static str) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }

    const fn launcher(self, launcher: &'static [&'static str]) -> Self {
        Self { launcher, ..self }
    }

    /// Expects waits to be detected from stacks alone.
    const fn learned(self) -> Self {
        Self {
            said: ExpectedVerdict::Learned(UNSEEN),
            ..self
        }
    }

    /// Expects waits to be detected by what is taken from a queue in the trainer's memory, or from a series of futures.
    const fn judged(self, queue: bool) -> Self {
        Self {
            said: ExpectedVerdict::Judged { queue, threads: 0 },
            ..self
        }
    }

    /// Like [`judged`](Self::judged), with threads of the trainer that load.
    const fn threads(self, queue: bool) -> Self {
        Self {
            said: ExpectedVerdict::Judged {
                queue,
                threads: self.workers,
            },
            ..self
        }
    }

    /// Expects the kind that follows from the script's own wait share, or unknown: the script waits for more than data.
    const fn right_or_unknown(self) -> Self {
        Self {
            said: ExpectedVerdict::RightOrUnknown("waits"),
            ..self
        }
    }

    const fn step(self, step: u32) -> Self {
        Self { step, ..self }
    }

    const fn two_jobs(self) -> Self {
        Self {
            two_jobs: true,
            ..self
        }
    }

    /// Runs it with the slow loader alone: with the fast one, it would do the same, or what another test shows.
    const fn only_starved(self) -> Self {
        Self {
            only_starved: true,
            ..self
        }
    }

    const fn computes(self, share: Share) -> Self {
        Self {
            computes: true,
            share,
            ..self
        }
    }

    /// Expects this kind and cause with the slow loader.
    const fn other(self, kind: &'static str, cause: &'static str) -> Self {
        Self {
            said: ExpectedVerdict::Other { kind, cause },
            ..self
        }
    }

    fn check(self) {
        self.check_also(|_| Ok(()));
    }

    /// Checks the script with both loaders; `also` must hold for the slow one.
    fn check_also(self, also: impl Fn(&Report) -> Outcome + Sync) {
        self.check_against(|report, _, starved| if starved { also(report) } else { Ok(()) });
    }

    /// Checks the script with both loaders; `also` must hold for each. It gets the job, to read the job's own figures.
    fn check_against(self, also: impl Fn(&Report, &Job, bool) -> Outcome + Sync) {
        let Some(python) = python_with_loaders() else {
            return;
        };
        for package in ["torch", self.package] {
            if !has(&python, package) {
                return skip(&format!("{python} has no {package}"));
            }
        }
        let run = |loads: &&[bool]| {
            if let Err(why) = self.run(&python, loads, &also) {
                panic!("{}: {why}", self.script);
            }
        };
        let jobs: &[&[bool]] = match (self.two_jobs, self.only_starved) {
            (_, true) => &[&[true]],
            (true, false) => &[&[true], &[false]],
            (false, false) => &[&[true, false]],
        };
        if self.share == Share::Whole && !self.computes {
            // Two jobs that sleep do not disturb each other.
            all_at_once(jobs, run);
        } else {
            each(jobs, self.share, run);
        }
    }

    /// Runs one job with each of `loads` in turn, and checks it: `true` is the slow loader.
    fn run(
        self,
        python: &str,
        loads: &[bool],
        also: impl Fn(&Report, &Job, bool) -> Outcome + Sync,
    ) -> Outcome {
        let milliseconds = |starved: bool| if starved { self.starved } else { self.free };
        let figures = format!(
            "--load {} --step {} --workers {}",
            milliseconds(loads[0]),
            self.step,
            self.workers
        );
        let arguments = figures.split(' ').chain(self.computes.then_some("--cpu"));
        let arguments: Vec<String> = arguments.map(String::from).collect();
        let script = Path::new(SCRIPTS).join(self.script).with_extension("py");
        let mut job = Job::script(python, self.launcher, self.share, &script, &arguments)?;
        for starved in loads {
            let load = milliseconds(*starved);
            let before = job.truth(self.rank).batches();
            if before > 0 {
                let seconds = f64::from(load) / 1e3;
                let changed = job.overwrite("load", &seconds.to_ne_bytes());
                changed.map_err(|error| format!("the load does not change: {error}"))?;
            }
            job.reach(before + self.steady, self.rank)?;
            let outcome = self.check_load(&job, load, *starved, &also);
            outcome.map_err(|why| format!("{load} ms: {why}"))?;
        }
        Ok(())
    }

    /// Returns the seconds that a report takes. Waits of half the time are known after four seconds, and polls are the
    /// most frequent in the first five: figures get no better after that. All other verdicts take ten.
    fn seconds(self, starved: bool) -> u32 {
        let soon = match self.said {
            ExpectedVerdict::Right { .. }
            | ExpectedVerdict::Learned(_)
            | ExpectedVerdict::Judged { .. } => starved,
            _ => false,
        };
        let needed = if soon { WAITS_OBSERVED } else { OBSERVED };
        self.observed.unwrap_or(needed)
    }

    /// Checks the verdict about a job in its steady state.
    fn check_load(
        self,
        job: &Job,
        load: u32,
        starved: bool,
        also: impl Fn(&Report, &Job, bool) -> Outcome + Sync,
    ) -> Outcome {
        let told = AtomicBool::new(false);
        let look = || {
            let report = Report::of(Command::new(PIPETOP), job.pid(), self.seconds(starved))?;
            let seconds = report.number("/window/seconds").unwrap_or_default();
            // A spawned process has no rank in its initial environment, but its marks have.
            let rank = report.pid().and_then(|pid| job.rank_of(pid));
            let truth = job.truth(rank.or(self.rank));
            let waited = truth.wait_share(report.ended - seconds, report.ended);
            let share = report.number("/verdict/wait_share");
            note(&format!(
                "{} {load} ms: {} {share:?}, of itself {waited:.3}",
                self.script,
                report.kind(),
            ));
            told.fetch_or(report.kind() != "unknown", Relaxed);
            let outcome = self.said.holds(&report, waited, starved);
            let outcome = outcome.and_then(|()| self.is_named(&report, starved));
            about(&report, outcome.and_then(|()| also(&report, job, starved)))
        };
        two_of_three_at_once(look)?;
        // The trainer seldom asks a loader that is far ahead: one report may see none of that, five do not.
        let tells = matches!(self.said, ExpectedVerdict::Judged { .. });
        for _ in 2..5 {
            if tells && !told.load(Relaxed) {
                look()?;
            }
        }
        ensure(told.load(Relaxed) || !tells, || {
            "no report of five tells".into()
        })
    }

    fn is_named(self, report: &Report, starved: bool) -> Outcome {
        let name = report.text("/job/ranks/0/loader/name");
        let right = self.name.is_none_or(|expected| expected == name);
        ensure(right || !starved, || format!("the loader is {name:?}"))
    }
}

impl ExpectedVerdict {
    fn holds(self, report: &Report, waited: f64, starved: bool) -> Outcome {
        let kind = report.kind();
        let kinds = kinds_near(waited);
        let share_is_near = || {
            let share = report.number("/verdict/wait_share");
            let near = share.is_some_and(|share| (share - waited).abs() <= TOLERANCE);
            ensure(near, || {
                format!("wait share {share:?}, of itself {waited:.3}")
            })
        };
        match self {
            Self::Right { workers, queue } => {
                ensure(kinds.contains(&kind), || format!("{kind}, not {kinds:?}"))?;
                share_is_near()?;
                let shown = report.list("/job/ranks/0/workers").len();
                ensure(shown == workers, || {
                    format!("{shown} workers are shown, not {workers}")
                })?;
                let ready = report.number("/job/ranks/0/queue/ready");
                ensure(!queue || ready.is_some(), || "no queue is shown".into())
            }
            Self::Other { kind: other, cause } if starved => {
                let said = (kind, report.text("/verdict/cause"));
                ensure(said == (other, cause), || {
                    format!("{said:?}, not {:?}", (other, cause))
                })?;
                share_is_near()
            }
            Self::Other { .. } => {
                ensure(kinds.contains(&kind), || format!("{kind}, not {kinds:?}"))?;
                share_is_near()
            }
            Self::Learned(word) if !starved && kind == "unknown" => {
                Self::Unknown(word).holds(report, waited, starved)
            }
            Self::Judged { .. } if !starved && kind == "unknown" => {
                Self::Unknown(UNSEEN).holds(report, waited, starved)
            }
            Self::Judged { queue, threads } => {
                let workers = report.list("/job/ranks/0/workers").iter();
                let shown = workers.filter(|worker| worker["thread"] == true).count();
                ensure(!starved || shown == threads, || {
                    format!("{shown} threads are shown, not {threads}")
                })?;
                ensure(kinds.contains(&kind), || format!("{kind}, not {kinds:?}"))?;
                let source = report.text("/job/ranks/0/queue/source");
                ensure(!queue || source == "object", || {
                    format!("the queue is known by {source:?}")
                })?;
                share_is_near()
            }
            Self::RightOrUnknown(word) if kind == "unknown" => {
                Self::Unknown(word).holds(report, waited, starved)
            }
            Self::Learned(_) | Self::RightOrUnknown(_) => {
                ensure(kinds.contains(&kind), || format!("{kind}, not {kinds:?}"))?;
                share_is_near()
            }
            Self::Unknown(word) => {
                ensure(kind == "unknown", || format!("{kind}, not unknown"))?;
                let whys = report.list("/verdict/missing").iter();
                let mut whys = whys.filter_map(|part| part.get("why").and_then(Value::as_str));
                ensure(whys.any(|why| why.contains(word)), || {
                    format!("no reason with the word {word:?}")
                })
            }
        }
    }
}

/// Part of the reason for an unknown verdict if no mechanism sees the waits.
const UNSEEN: &str = "waits for data cannot be told from other work";

#[test]
fn threads_that_fill_a_queue() {
    loader("queue_threads", "torch").threads(true).check();
}

#[test]
fn threads_that_fill_a_queue_of_the_scripts_module() {
    loader("queue_of_a_script", "torch").threads(true).check();
}

#[test]
fn threads_that_fill_a_buffer_of_the_script() {
    let by_hand = loader("buffer_by_hand", "torch").learned();
    by_hand.check();
    // A buffer for a single batch.
    by_hand.loads(100, 10, 1).learned().only_starved().check();
}

/// The main thread holds the loader's iterator, but another thread runs it.
#[test]
fn thread_that_takes_batches_from_a_loader() {
    let ahead = loader("thread_over_a_loader", "torch");
    let said = ExpectedVerdict::Right {
        workers: 4,
        queue: false,
    };
    Loader { said, ..ahead }.check();
}

/// A function written in C has no Python frame: it is recognised by the name in the call.
#[test]
fn threads_that_fill_a_queue_written_in_c() {
    loader("simple_queue", "torch").learned().check();
}

/// Even if the trainer hardly ever waits for the queue and keeps nothing that was in it, the threads that fill it show
/// that it is the loader's.
#[test]
fn threads_that_fill_a_queue_for_a_device() {
    loader("queue_to_a_device", "torch").threads(true).check();
}

/// Another program with torch, started by the trainer, is not the trainer.
#[test]
fn threads_that_fill_a_queue_beside_a_server() {
    let loader = loader("server_beside", "torch").learned();
    Loader {
        share: Share::Third,
        ..loader
    }
    .check();
}

/// Most of the iterators are gone before a poll can see them.
#[test]
fn an_iterator_for_each_step() {
    let iterators = loader("new_iterator", "torch").loads(50, 5, 0).learned();
    Loader {
        // The advice comes later than the verdict.
        observed: Some(OBSERVED),
        ..iterators
    }
    .check_also(|report| has_advice(report, "one iterator"));
}

#[test]
fn threads_of_a_pool_of_futures() {
    loader("futures_threads", "torch").threads(false).check();
}

/// The main thread does not load, although the loader has no workers: threads fill the dataset's queue.
#[test]
fn threads_that_fill_the_queue_of_a_dataset() {
    loader("queue_dataset", "torch")
        .threads(false)
        .check_also(does_not_load);
}

#[test]
fn threads_of_keras_behind_a_loader() {
    loader("keras_fit", "keras")
        .threads(false)
        .check_also(|report| {
            does_not_load(report)?;
            is_advised_for_keras(report)
        });
}

#[test]
fn a_generator_of_keras_behind_a_loader() {
    loader("keras_fit", "keras")
        .loads(50, 2, 0)
        .other("data-bound", "in-main")
        .check_also(is_advised_for_keras);
}

fn is_advised_for_keras(report: &Report) -> Outcome {
    let advice = report.list("/verdict/advice");
    let has = |words: &str| {
        let mut texts = advice.iter().filter_map(Value::as_str);
        texts.any(|text| text.contains(words))
    };
    ensure(has("workers of PyDataset") && !has("num_workers"), || {
        format!("not in its own words: {advice:?}")
    })
}

fn does_not_load(report: &Report) -> Outcome {
    let cause = report.text("/verdict/cause");
    ensure(cause != "in-main", || format!("the cause is {cause:?}"))?;
    has_advice(report, "threads")
}

fn has_advice(report: &Report, words: &str) -> Outcome {
    let advice = report.list("/verdict/advice").iter();
    let advice: Vec<&str> = advice.filter_map(Value::as_str).collect();
    ensure(advice.iter().any(|text| text.contains(words)), || {
        format!("the advice is {advice:?}")
    })
}

#[test]
fn processes_of_a_pool_of_futures() {
    loader("futures_processes", "torch").judged(false).check();
}

#[test]
fn processes_that_fill_a_queue() {
    let filled = loader("mp_queue", "torch").judged(false);
    filled.check_against(|report, _, starved| {
        let source = report.text("/job/ranks/0/queue/source");
        let known = starved || report.kind() == "unknown" || source == "object";
        ensure(known, || format!("the queue is known by {source:?}"))
    });
}

#[test]
fn spdl_in_threads() {
    loader("spdl_threads", "spdl")
        .threads(true)
        .named("SPDL")
        .check();
}

#[test]
fn spdl_in_a_process_of_its_own() {
    // Its event loop waits for its threads, which sleep: that is not the network.
    loader("spdl_subprocess", "spdl")
        .named("SPDL")
        .learned()
        .check_also(|report| {
            let cause = report.text("/verdict/cause");
            ensure(cause != "network", || format!("the cause is {cause:?}"))
        });
}

#[test]
fn grain_in_threads() {
    loader("grain_threads", "grain")
        .threads(false)
        .named("Grain")
        .check();
}

#[test]
fn grain_in_processes() {
    loader("grain_processes", "grain")
        .judged(true)
        .named("Grain")
        .check();
}

#[test]
fn nodes_of_torchdata() {
    loader("torchdata_nodes", "torchdata")
        .threads(true)
        .named("torchdata.nodes")
        .check();
}

#[test]
fn torchdatas_loader_with_states() {
    loader("torchdata_stateful", "torchdata").check_also(|report| {
        let loader = &report.document["job"]["ranks"][0]["loader"];
        if loader["kind"] == "pytorch-processes" && loader["batches_per_s"].is_number() {
            return Ok(());
        }
        Err(format!("not read as PyTorch's loader: {loader}"))
    });
}

#[test]
fn augmenter_of_batchgenerators() {
    loader("batchgenerators_nondet", "batchgenerators")
        .named("batchgenerators")
        .judged(true)
        .check();
}

#[test]
fn generator_of_joblib() {
    loader("joblib_generator", "joblib")
        .judged(false)
        .named("joblib")
        .check();
}

#[test]
fn thread_of_monai_before_torchs_workers() {
    loader("monai_thread", "monai").learned().check();
}

#[test]
fn shards_of_webdataset_from_a_slow_command() {
    loader("webdataset_pipe", "webdataset").two_jobs().check();
}

#[test]
fn streaming_of_mosaicml() {
    loader("mosaicml_streaming", "streaming").check();
}

#[test]
fn streaming_of_litdata() {
    loader("litdata_streaming", "litdata").check();
}

#[test]
fn trainer_of_hugging_face_with_workers() {
    loader("hf_trainer", "transformers")
        .loads(200, 20, 2)
        .check();
}

#[test]
fn trainer_of_hugging_face_without_workers() {
    loader("hf_trainer", "transformers").loads(50, 1, 0).check();
}

#[test]
fn trainer_of_lightning() {
    loader("lightning_fit", "lightning")
        .loads(200, 20, 2)
        .check();
}

#[test]
fn ranks_of_a_spawn() {
    loader("mp_spawn", "torch").ranks().check();
}

/// It takes a few seconds to find the process that trains.
#[test]
fn a_loader_in_a_process_of_its_own() {
    let loader = loader("loader_in_a_process", "torch").learned();
    let observed = Some(OBSERVED + 4);
    Loader { observed, ..loader }.check();
}

#[test]
fn dispatcher_of_accelerate_on_two_ranks() {
    loader("accelerate_dispatcher", "accelerate")
        .loads(400, 40, 8)
        .launcher(TORCHRUN)
        .ranks()
        .check();
}

#[test]
fn batches_that_are_broadcast_by_hand() {
    loader("broadcast_by_hand", "torch")
        .launcher(TORCHRUN)
        .ranks()
        .learned()
        .check();
}

#[test]
fn process_with_another_title() {
    loader("renamed", "setproctitle").check();
}

#[test]
fn eager_loop_of_tf_data() {
    loader("tf_data_eager", "tensorflow").learned().check();
}

#[test]
fn tasks_of_ray_data() {
    loader("ray_data", "ray").learned().check();
}

#[test]
fn kernel_of_a_notebook() {
    loader("notebook", "jupyter_client").check();
}

#[test]
fn work_in_the_main_thread_after_the_loader() {
    // The main thread assembles batches, in turn with the step.
    let collate = loader("collate_in_main", "torch").loads(50, 1, 2);
    let share = Share::Third;
    Loader { share, ..collate }.check();
}

/// Work on a batch in the loop itself, which may be a part of the step.
#[test]
fn work_in_the_main_thread_before_the_model() {
    // The step is so long that receiving a batch takes little time beside it, even on a slow machine.
    let work = loader("work_before_the_model", "torch")
        .loads(100, 1, 2)
        .step(100);
    Loader {
        // It computes.
        share: Share::Third,
        said: ExpectedVerdict::RightOrUnknown("in augment"),
        ..work
    }
    .check();
}

/// The loop waits for processes of its own, to which it hands each batch.
#[test]
fn pool_that_works_on_each_batch_before_the_model() {
    loader("pool_before_the_model", "torch")
        .loads(40, 1, 2)
        .step(100)
        .right_or_unknown()
        .check();
}

/// These results are not batches.
#[test]
fn results_that_are_gone_through_after_the_step() {
    let results = loader("results_after_the_step", "torch").loads(100, 10, 2);
    Loader {
        // It computes.
        share: Share::Half,
        ..results.right_or_unknown().only_starved()
    }
    .check();
}

#[test]
fn generator_in_a_function_that_trains_for_an_epoch() {
    let epochs = loader("epochs_of_a_function", "torch")
        .loads(50, 1, 0)
        .learned();
    Loader {
        // It takes some seconds to learn which of the two loops trains.
        observed: Some(OBSERVED),
        ..epochs
    }
    .check();
}

#[test]
fn transforms_in_the_main_thread_between_two_models() {
    let replayed = loader("replayed_samples", "torchvision").loads(150, 1, 2);
    Loader {
        // It computes.
        share: Share::Third,
        said: ExpectedVerdict::RightOrUnknown(UNSEEN),
        ..replayed.step(150)
    }
    .check();
}

#[test]
fn modules_of_the_script_between_the_loader_and_the_model() {
    let modules = loader("modules_before_the_model", "torch").loads(50, 1, 2);
    Loader {
        // It computes.
        share: Share::Half,
        said: ExpectedVerdict::RightOrUnknown(UNSEEN),
        ..modules
    }
    .check();
}

/// The model does not use what it prints.
#[test]
fn command_in_the_step() {
    let command = loader("command_in_step", "torch").loads(50, 5, 0);
    Loader {
        said: ExpectedVerdict::Unknown(UNSEEN),
        ..command.only_starved()
    }
    .check();
}

/// Each looks like a rank: it has loaded PyTorch and shares no queue with what started it.
#[test]
fn environments_in_fresh_processes() {
    loader("spawned_environments", "torch")
        .loads(60, 1, 0)
        .right_or_unknown()
        .check();
}

/// The sleep between two looks for a file is no step.
#[test]
fn files_that_the_main_thread_looks_for_again_and_again() {
    let polled = loader("polled_files", "torch").loads(80, 1, 0);
    Loader {
        said: ExpectedVerdict::RightOrUnknown(UNSEEN),
        ..polled
    }
    .check();
}

#[test]
fn files_that_the_main_thread_reads_between_two_models() {
    let replayed = loader("replayed_files", "torch").loads(150, 1, 2);
    Loader {
        // It computes.
        share: Share::Third,
        said: ExpectedVerdict::RightOrUnknown(UNSEEN),
        ..replayed.step(150)
    }
    .check();
}

#[test]
fn queue_that_the_main_thread_fills() {
    loader("log_queue", "torch").learned().check();
}

#[test]
fn queue_of_figures_next_to_the_batches() {
    let beside = loader("queue_beside", "torch");
    let said = ExpectedVerdict::RightOrUnknown(UNSEEN);
    Loader { said, ..beside }.check();
}

/// The answer is not a batch, whatever the function is called.
#[test]
fn answer_of_a_server_in_the_step() {
    loader("answer_in_step", "torch").right_or_unknown().check();
}

/// What a model gave goes to the thread, so what comes back is not a batch.
#[test]
fn answer_of_a_thread_between_two_models() {
    let answer = loader("answer_from_a_thread", "torch").loads(60, 1, 1);
    Loader {
        // It computes.
        share: Share::Third,
        ..answer.right_or_unknown().only_starved()
    }
    .check();
}

/// The work may be loading or not, but it is no step.
#[test]
fn work_between_epochs_that_is_in_no_loader() {
    let work = loader("work_between_epochs", "torch").loads(1500, 1, 2);
    Loader {
        // It computes.
        share: Share::Half,
        // A window cuts two of its epochs, which last more than three seconds.
        observed: Some(2 * OBSERVED),
        ..work.right_or_unknown()
    }
    .check();
}

#[test]
fn query_before_each_epoch() {
    let query = loader("query_before_epochs", "torch").loads(10, 1, 1);
    Loader {
        // It computes.
        share: Share::Half,
        // A window cuts two of its epochs, which last more than a second.
        observed: Some(2 * OBSERVED),
        ..query.right_or_unknown()
    }
    .check();
}

/// A result that the loop drops is not a batch.
#[test]
fn wait_for_a_checkpoint_that_another_thread_writes() {
    loader("checkpoint_in_a_thread", "torch")
        .loads(1000, 10, 1)
        .right_or_unknown()
        .only_starved()
        .check();
}

/// The next file that is opened gets the descriptor number of the closed result pipe. It is not a loader.
#[test]
fn command_between_epochs_that_gets_the_number_of_the_loaders_pipe() {
    loader("command_between_epochs", "torch")
        .loads(1000, 20, 1)
        .step(20)
        .right_or_unknown()
        .check();
}

/// A wait on a lock with a timeout is not always a wait for the pin thread.
#[test]
fn result_of_another_thread_beside_one_that_pins() {
    loader("result_beside_a_pin_thread", "torch")
        .loads(60, 5, 1)
        .step(20)
        .right_or_unknown()
        .only_starved()
        .check();
}

/// A call that runs a model does not fetch a batch, whichever layers the model has.
#[test]
fn model_of_own_layers_in_a_generator() {
    let model = loader("model_in_a_generator", "torch").loads(100, 10, 1);
    Loader {
        // It computes.
        share: Share::Half,
        ..model.step(20).right_or_unknown().only_starved()
    }
    .check();
}

#[test]
fn training_in_a_thread() {
    loader("train_in_thread", "torch")
        .right_or_unknown()
        .check();
}

#[test]
fn steps_in_a_pool_of_threads() {
    let steps = loader("steps_in_a_pool", "torch").loads(40, 1, 0);
    Loader {
        // It computes.
        share: Share::Half,
        ..steps.right_or_unknown()
    }
    .check();
}

/// The main thread waits for results, but these are no batches.
#[test]
fn processes_that_evaluate_a_model() {
    let evaluates = loader("evolution_strategy", "torch").loads(100, 50, 1);
    Loader {
        // They compute.
        share: Share::Half,
        said: ExpectedVerdict::Unknown("waits for data"),
        ..evaluates.only_starved()
    }
    .check();
}

/// The main thread waits for the loader whenever the queue has room, even if the thread that trains never waits.
#[test]
fn training_in_a_thread_that_the_main_thread_feeds() {
    let fed = loader("train_behind_a_queue", "torch")
        .loads(800, 80, 4)
        .step(100)
        .judged(false);
    Loader {
        share: Share::Whole,
        // Long enough to see the thread train: an unoptimised pipetop may look for that only once a second.
        observed: Some(20),
        ..fed
    }
    .check();
}

#[test]
fn results_of_steps_by_a_second_queue() {
    loader("results_queue", "torch").right_or_unknown().check();
}

#[test]
fn steps_in_another_process() {
    let steps = loader("step_in_a_process", "torch").loads(10, 1, 1);
    let said = ExpectedVerdict::RightOrUnknown(UNSEEN);
    Loader { said, ..steps }.only_starved().check();
}

#[test]
fn batches_by_a_pipe_in_the_main_thread() {
    loader("pipe_in_main", "torch")
        .two_jobs()
        .loads(100, 10, 1)
        .learned()
        .check();
}

#[test]
fn batches_that_a_function_of_the_script_fetches() {
    let by_network = |report: &Report| {
        let cause = report.text("/verdict/cause");
        ensure(cause == "network", || format!("cause {cause:?}"))
    };
    let fetched = |other_name| {
        let fetched = loader("server_in_main", "torch").loads(50, 1, other_name);
        fetched.learned()
    };
    fetched(0).check_also(by_network);
    fetched(1).only_starved().check_also(by_network);
}

#[test]
fn parts_of_a_batch_by_a_queue_of_its_own() {
    loader("queue_of_a_batch", "torch")
        .loads(50, 1, 4)
        .learned()
        .check();
}

#[test]
fn batches_by_map_or_by_index_in_the_main_thread() {
    let mapped = |workers| {
        let mapped = loader("mapped_in_main", "torch").loads(50, 1, workers);
        mapped.learned()
    };
    mapped(0).check();
    mapped(1).only_starved().check();
}

/// The library's own function unpacks the samples.
#[test]
fn samples_of_a_file_in_the_main_thread() {
    let read = loader("hdf5_in_main", "h5py").loads(50, 5, 0).learned();
    let share = Share::Third;
    Loader { share, ..read }.check();
}

#[test]
fn images_that_the_main_thread_decodes() {
    let decoded = loader("images_in_main", "PIL").loads(50, 5, 0).learned();
    let share = Share::Third;
    Loader { share, ..decoded }.check();
}

#[test]
fn samples_that_the_loop_reads_by_a_function() {
    let reads = loader("built_in_the_loop", "torch").loads(50, 1, 0);
    reads.computes(Share::Third).learned().check();
}

#[test]
fn samples_that_the_loop_makes_in_c() {
    let makes = loader("made_in_c", "torch").loads(50, 1, 0);
    makes.computes(Share::Third).learned().check();
}

/// The step is so long that receiving the names takes little time beside it.
#[test]
fn samples_that_the_loop_reads_by_the_names_of_a_loader() {
    let reads = loader("built_in_the_loop", "torch").loads(50, 2, 2);
    reads.step(100).computes(Share::Third).check();
}

#[test]
fn sampler_that_computes() {
    let sampler = loader("slow_sampler", "torch").loads(50, 1, 2);
    sampler.computes(Share::Third).check_also(names_the_sampler);
}

/// The sampler waits as if for something remote.
#[test]
fn sampler_that_waits() {
    let sampler = loader("slow_sampler", "torch").loads(50, 1, 2);
    // The main thread sleeps twice in each step of 0.1 s. If it wakes late, polls are late, too. Each poll reads its
    // stack, so a debug build polls seldom.
    let sampler = Loader {
        share: Share::Quarter,
        observed: Some(2 * OBSERVED),
        ..sampler
    };
    sampler.check_also(names_the_sampler);
}

fn names_the_sampler(report: &Report) -> Outcome {
    ensure(report.text("/verdict/cause") == "sampler", || {
        format!("the cause is {:?}", report.text("/verdict/cause"))
    })
}

/// Tolerance of the validation's shares: a batch or two at its ends may count as training.
const VALIDATION_WITHIN: f64 = 0.08;

#[test]
fn validation_is_distinguished_from_training() {
    let is_told = |report: &Report, job: &Job, starved: bool| {
        let seconds = report.number("/window/seconds").unwrap_or_default();
        for (file, key) in [(1, "wait_share"), (2, "share")] {
            let own = job.truth(Some(file));
            let own = own.wait_share(report.ended - seconds, report.ended);
            let said = report.number(&format!("/job/ranks/0/validation/{key}"));
            note(&format!("validation {key} {said:?}, of itself {own:.3}"));
            let near = said.is_some_and(|said| (said - own).abs() <= VALIDATION_WITHIN);
            ensure(near, || format!("{key} {said:?}, of itself {own:.3}"))?;
        }
        // All workers are of the training's loader, whichever of the two is the rank's main loader.
        let others = report.list("/job/ranks/0/other_loaders");
        let of_others = others.iter().filter_map(|one| one["workers"].as_array());
        let own = report.list("/job/ranks/0/workers").len();
        let workers = own + of_others.map(Vec::len).sum::<usize>();
        ensure(workers == 2, || format!("{workers} workers are shown"))?;
        let cause = report.text("/verdict/cause");
        ensure((cause == "validation") == starved, || {
            format!("the cause is {cause:?}")
        })
    };
    // A load in the main thread is detected by polls alone. They are late if other jobs run, and few in a debug build.
    let validation = loader("validation", "torch").loads(150, 1, 2);
    Loader {
        share: Share::Whole,
        two_jobs: true,
        observed: Some(2 * OBSERVED),
        ..validation.other("data-bound", "validation")
    }
    .check_against(is_told);
}

/// pipetop is started right after the job, as users do it: what comes before the loader is no step.
#[test]
fn job_that_prepares_before_it_loads() {
    last_torch(Share::Quarter, |python| {
        for workers in [2, 0] {
            // It waits for most of the time, and few polls fall into the rest.
            let arguments = format!("--load 1000 --step 20 --workers {workers}");
            let arguments: Vec<String> = arguments.split(' ').map(String::from).collect();
            let script = Path::new(SCRIPTS).join("late_start.py");
            let outcome = Job::script(&python.path, &[], Share::Quarter, &script, &arguments);
            let outcome = outcome.and_then(|job| {
                while job.file("truth").is_empty() {
                    sleep(Duration::from_millis(20));
                }
                let report = Report::of(Command::new(PIPETOP), job.pid(), OBSERVED)?;
                let truth = job.truth(None);
                let seconds = report.number("/window/seconds").unwrap_or_default();
                let judged_from = report.ended - seconds;
                let early = truth.began().is_none_or(|began| judged_from < began - 0.1);
                ensure(!early, || format!("{seconds} s are judged"))?;
                let waited = truth.wait_share(judged_from, report.ended);
                let share = report.number("/verdict/wait_share");
                note(&format!(
                    "{workers} workers: {share:?}, of itself {waited:.3}"
                ));
                let near = share.is_some_and(|share| (share - waited).abs() <= TOLERANCE);
                about(&report, ensure(near, || format!("not {waited:.3}")))
            });
            if let Err(why) = outcome {
                panic!("{workers} workers: {why}");
            }
        }
    });
}

#[test]
fn thread_that_pins() {
    let is_named = |report: &Report| {
        ensure(report.text("/verdict/cause") == "pin-thread", || {
            format!("the cause is {:?}", report.text("/verdict/cause"))
        })
    };
    let pins = loader("pin_thread", "torch").loads(100, 1, 2);
    let said = ExpectedVerdict::Right {
        workers: 2,
        queue: false,
    };
    Loader { said, ..pins }.check_also(is_named);
}

/// The wait for a batch has a timeout, which tells it from a wait for the other thread.
#[test]
fn step_that_waits_for_another_thread_on_a_lock() {
    let waits = loader("backward_in_a_thread", "torch").loads(150, 20, 2);
    let said = ExpectedVerdict::Right {
        workers: 2,
        queue: false,
    };
    let share = Share::Half;
    Loader {
        share,
        said,
        // It waits for a third of its time.
        observed: Some(OBSERVED),
        ..waits
    }
    .check();
}

#[test]
fn log_into_a_slow_pipe() {
    loader("slow_log", "torch")
        .loads(100, 1, 2)
        .other("host-bound", "logging")
        .check();
}

/// A sleep must not be taken for what the stack showed before it.
#[test]
fn log_that_takes_little_time() {
    let brief = loader("brief_log", "torch").loads(200, 1, 2);
    // It computes: without a free CPU, the log takes longer.
    let share = Share::Quarter;
    Loader { share, ..brief }.check();
}

#[test]
fn cpus_that_others_take() {
    let hogs = loader("cpu_hogs", "torch")
        .loads(20, 1, 2)
        .computes(Share::Whole);
    Loader {
        // It waits for a small part of its time.
        observed: Some(OBSERVED),
        ..hogs
    }
    .check_also(no_more_workers);
}

#[test]
fn threads_that_compute_in_python() {
    let threads = loader("queue_threads", "torch")
        // So long beside a step that the trainer waits although its steps, too, wait for the interpreter's lock.
        .loads(800, 3, 2)
        .step(20)
        .computes(Share::Whole)
        .learned();
    Loader {
        // A batch takes most of a second.
        steady: 6,
        // How long it waits depends on the machine, and 20 batches are enough for any verdict.
        observed: Some(20),
        ..threads
    }
    .check();
}
