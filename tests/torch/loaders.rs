//! Loaders other than torch's own, and loops written by hand: each script of `tests/torch/loaders` once where the trainer
//! waits about half of its time, and once where the loader is far ahead of it.
//!
//! A script's own wait share decides what is right, as one that others keep from the CPUs is not what it was made for.
//! The interpreter is `PIPETOP_LOADERS_PYTHON`, which has torch and the packages. What is said is right, within the
//! tolerance, or nothing is said.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::job::Job;
use crate::report::Report;
use crate::trial::{
    OBSERVED, Outcome, PIPETOP, TOLERANCE, about, ensure, kinds_near, no_more_workers,
};
use support::machine::{Share, each, has, note, skip};
use support::measured::two_of_three;

pub(crate) const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torch/loaders");
/// Batches after which a job is in steady state.
const STEADY: usize = 15;
const TORCHRUN: &[&str] = &[
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc_per_node=2",
];

/// A script, the figures of its two runs, and what can be said of it.
#[derive(Clone, Copy)]
struct Loader {
    script: &'static str,
    /// It must be installed, under the name by which it is imported.
    package: &'static str,
    launcher: &'static [&'static str],
    /// The first of its ranks, where it has any.
    rank: Option<u64>,
    /// Milliseconds of a batch that one worker loads.
    starved: u32,
    free: u32,
    /// Milliseconds.
    step: u32,
    workers: usize,
    /// A load computes in Python.
    computes: bool,
    share: Share,
    said: Said,
}

#[derive(Clone, Copy)]
enum Said {
    /// The kind that the script's own wait share decides on, and this many workers.
    Right { workers: usize, queue: bool },
    /// The kind that the script's own wait share decides on; or, where it hardly ever waits, that this cannot be known,
    /// with these words in the reason.
    Learned(&'static str),
    /// The same, or that this cannot be known, however long it waits.
    RightOrUnknown(&'static str),
    /// The kind that the script's own wait share decides on, by what the main thread takes from a queue in its memory;
    /// and how full that is, where it tells. So many threads are seen to load where the trainer waits for them. Where it
    /// hardly ever waits, some reports may say that this cannot be known.
    Judged { queue: bool, threads: usize },
    /// That it cannot be known, with these words in the reason.
    Unknown(&'static str),
    /// Where the load is large this, with hardly a wait for data; else what the wait share decides on.
    Other {
        kind: &'static str,
        cause: &'static str,
    },
}

/// A script whose four workers need 400 ms for a batch of a step of 50 ms, so that it waits half of the time; or 40 ms.
const fn loader(script: &'static str, package: &'static str) -> Loader {
    Loader {
        script,
        package,
        launcher: &[],
        rank: None,
        starved: 400,
        free: 40,
        step: 50,
        workers: 4,
        computes: false,
        share: Share::Eighth,
        said: Said::Right {
            workers: 4,
            queue: true,
        },
    }
}

impl Loader {
    const fn loads(self, starved: u32, free: u32, workers: usize) -> Self {
        Self {
            starved,
            free,
            workers,
            said: Said::Right {
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

    const fn launcher(self, launcher: &'static [&'static str]) -> Self {
        Self { launcher, ..self }
    }

    /// Known by its stacks alone.
    const fn learned(self) -> Self {
        Self {
            said: Said::Learned(UNSEEN),
            ..self
        }
    }

    /// Known by what is taken from a queue in the trainer's memory, or from a row of futures.
    const fn judged(self, queue: bool) -> Self {
        Self {
            said: Said::Judged { queue, threads: 0 },
            ..self
        }
    }

    /// The same, from threads of the trainer.
    const fn threads(self, queue: bool) -> Self {
        Self {
            said: Said::Judged {
                queue,
                threads: self.workers,
            },
            ..self
        }
    }

    /// Nothing shows where its batches come from.
    const fn unknown(self) -> Self {
        Self {
            said: Said::Unknown(UNSEEN),
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

    /// Whatever the script waits for is no data.
    const fn other(self, kind: &'static str, cause: &'static str) -> Self {
        Self {
            said: Said::Other { kind, cause },
            ..self
        }
    }

    fn check(self) {
        self.check_also(|_| Ok(()));
    }

    /// Both runs; `also` must hold of the starved one.
    fn check_also(self, also: impl Fn(&Report) -> Outcome + Sync) {
        let Ok(python) = std::env::var("PIPETOP_LOADERS_PYTHON") else {
            return skip("PIPETOP_LOADERS_PYTHON names no Python with the loaders");
        };
        for package in ["torch", self.package] {
            if !has(&python, package) {
                return skip(&format!("{python} has no {package}"));
            }
        }
        each(&[true, false], self.share, |starved| {
            let outcome = self.run(&python, *starved, &also);
            if let Err(why) = outcome {
                let which = if *starved { "starved" } else { "free" };
                panic!("{} {which}: {why}", self.script);
            }
        });
    }

    fn run(self, python: &str, starved: bool, also: impl Fn(&Report) -> Outcome) -> Outcome {
        let load = if starved { self.starved } else { self.free };
        let figures = format!(
            "--load {load} --step {} --workers {}",
            self.step, self.workers
        );
        let arguments = figures.split(' ').chain(self.computes.then_some("--cpu"));
        let arguments: Vec<String> = arguments.map(String::from).collect();
        let script = Path::new(SCRIPTS).join(self.script).with_extension("py");
        let mut job = Job::script(python, self.launcher, self.share, &script, &arguments)?;
        job.reach(STEADY, self.rank)?;
        let told = Cell::new(false);
        let look = || {
            let report = Report::of(Command::new(PIPETOP), job.pid(), OBSERVED)?;
            let seconds = report.number("/window/seconds").unwrap_or_default();
            // One that is spawned has no number in the environment that it began with.
            let rank = report.pid().and_then(|pid| job.rank_of(pid));
            let truth = job.truth(rank.or(self.rank));
            let waited = truth.wait_share(report.ended - seconds, report.ended);
            let share = report.number("/verdict/wait_share");
            note(&format!(
                "{} {load} ms: {} {share:?}, of itself {waited:.3}",
                self.script,
                report.kind(),
            ));
            told.set(told.get() || report.kind() != "unknown");
            let outcome = self.said.holds(&report, waited, starved);
            let also = || if starved { also(&report) } else { Ok(()) };
            about(&report, outcome.and_then(|()| also()))
        };
        two_of_three(look)?;
        // One that is far ahead is hardly ever asked: a report may miss that, five do not.
        let tells = matches!(self.said, Said::Judged { .. });
        for _ in 2..5 {
            if tells && !told.get() {
                look()?;
            }
        }
        ensure(told.get() || !tells, || "no report of five tells".into())
    }
}

impl Said {
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

/// What is said where no mechanism sees the waits.
const UNSEEN: &str = "waits for data cannot be distinguished from other work";

#[test]
fn threads_that_fill_a_queue() {
    loader("queue_threads", "torch").threads(true).check();
}

#[test]
fn threads_of_a_pool_of_futures() {
    loader("futures_threads", "torch").threads(false).check();
}

#[test]
fn processes_of_a_pool_of_futures() {
    loader("futures_processes", "torch").judged(false).check();
}

#[test]
fn processes_that_fill_a_queue() {
    loader("mp_queue", "torch").learned().check();
}

#[test]
fn spdl_in_threads() {
    loader("spdl_threads", "spdl").threads(true).check();
}

#[test]
fn spdl_in_a_process_of_its_own() {
    loader("spdl_subprocess", "spdl").learned().check();
}

#[test]
fn grain_in_threads() {
    loader("grain_threads", "grain").threads(false).check();
}

#[test]
fn grain_in_processes() {
    loader("grain_processes", "grain").judged(true).check();
}

#[test]
fn nodes_of_torchdata() {
    loader("torchdata_nodes", "torchdata").threads(true).check();
}

#[test]
fn torchdatas_loader_with_states() {
    loader("torchdata_stateful", "torchdata").check();
}

#[test]
fn augmenter_of_batchgenerators() {
    loader("batchgenerators_nondet", "batchgenerators")
        .judged(true)
        .check();
}

#[test]
fn generator_of_joblib() {
    loader("joblib_generator", "joblib").judged(false).check();
}

#[test]
fn thread_of_monai_before_torchs_workers() {
    loader("monai_thread", "monai").learned().check();
}

#[test]
fn shards_of_webdataset_from_a_slow_command() {
    loader("webdataset_pipe", "webdataset").check();
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
    // It computes in the main thread, by turns with the step.
    let collate = loader("collate_in_main", "torch").loads(50, 1, 2);
    let share = Share::Whole;
    Loader { share, ..collate }.check();
}

#[test]
fn queue_that_the_main_thread_fills() {
    loader("log_queue", "torch").unknown().check();
}

#[test]
fn queue_of_figures_beside_the_batches() {
    let beside = loader("queue_beside", "torch");
    let said = Said::RightOrUnknown(UNSEEN);
    Loader { said, ..beside }.check();
}

#[test]
fn training_in_a_thread() {
    let in_thread = loader("train_in_thread", "torch");
    let said = Said::RightOrUnknown("waits");
    Loader { said, ..in_thread }.check();
}

#[test]
fn results_of_steps_by_a_second_queue() {
    let results = loader("results_queue", "torch");
    let said = Said::RightOrUnknown("waits");
    Loader { said, ..results }.check();
}

#[test]
fn sampler_that_computes() {
    let sampler = loader("slow_sampler", "torch").loads(50, 1, 2);
    let share = Share::Whole;
    let is_named = |report: &Report| {
        ensure(report.text("/verdict/cause") == "sampler", || {
            format!("the cause is {:?}", report.text("/verdict/cause"))
        })
    };
    Loader { share, ..sampler }.check_also(is_named);
}

#[test]
fn log_into_a_slow_pipe() {
    loader("slow_log", "torch")
        .loads(100, 1, 2)
        .other("host-bound", "logging")
        .check();
}

#[test]
fn cpus_that_others_take() {
    loader("cpu_hogs", "torch")
        .loads(20, 1, 2)
        .computes(Share::Whole)
        .check_also(no_more_workers);
}

#[test]
fn threads_that_compute_in_python() {
    for (script, package) in [("queue_threads", "torch"), ("spdl_threads", "spdl")] {
        loader(script, package)
            .loads(400, 5, 2)
            .computes(Share::Quarter)
            .learned()
            .check();
    }
}
