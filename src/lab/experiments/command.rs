//! The job of an experiment, which is the user's own command or the built-in one: starts it for each run, receives its
//! reports, and ends it.
//!
//! Its output goes to a file, and is shown only if the command fails. The process that trains is measured; a command
//! that reports nothing cannot be measured.

mod launched;
mod output;
mod writers;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use crate::error::Hinted;
use crate::job::Target;
use crate::lab::experiments::interrupt::Interrupt;
use crate::lab::workload::JobSettings;
use crate::lab::workload::clock::{nanoseconds, sleep_until};
use crate::launch::{Ending, LaunchSpec, LoaderOverrides};
use crate::probe::now;
use crate::sample::{Gap, Sample};
use crate::setup::listen;
use crate::source::probe::Listener;
use crate::source::sampler::{Options, Sampler};
use crate::units::{Pid, typed};
pub use launched::{LaunchedJob, TrialError};
pub(super) use writers::TrainerReports;
use writers::Writers;

/// Time between two polls for reports.
const PAUSE: Duration = Duration::from_millis(50);
/// Placeholder for the number of workers.
const WORKERS: &str = "{workers}";

/// What to run, and how long to wait for its steps.
#[derive(Debug, Clone)]
pub struct TrainingCommand {
    /// The built-in job, instead of a command line.
    pub builtin: Option<JobSettings>,
    pub words: Vec<OsString>,
    /// Additional environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Its output is appended to this file. `None` = discarded.
    pub log: Option<PathBuf>,
    /// A run without a step for this long is given up.
    pub patience: Duration,
    pub interrupt: Interrupt,
}

impl TrainingCommand {
    fn spec(&self, overrides: LoaderOverrides, probe: String) -> LaunchSpec {
        match &self.builtin {
            Some(settings) => settings.spec(overrides, Some(probe)),
            None => LaunchSpec {
                command: self.words.clone(),
                environment: self.environment.clone(),
                probe: Some(probe),
                overrides,
            },
        }
    }

    /// Returns the command with `{workers}` replaced by this number. `None` if `{workers}` is not in it.
    pub(super) fn with_workers(&self, workers: u32) -> Option<Self> {
        let number = workers.to_string();
        let replaced = |word: &OsString| replace(word, WORKERS, &number);
        let values = self.environment.iter();
        let other = Self {
            words: self.words.iter().map(replaced).collect(),
            environment: values
                .map(|(name, value)| (name.clone(), replaced(value)))
                .collect(),
            ..self.clone()
        };
        let same = other.words == self.words && other.environment == self.environment;
        (!same).then_some(other)
    }
}

fn replace(word: &OsStr, what: &str, with: &str) -> OsString {
    let (mut rest, what) = (word.as_bytes(), what.as_bytes());
    let mut replaced = vec![];
    while let Some(at) = rest.windows(what.len()).position(|part| part == what) {
        replaced.extend([&rest[..at], with.as_bytes()].concat());
        rest = &rest[at + what.len()..];
    }
    replaced.extend(rest);
    OsString::from_vec(replaced)
}

/// One run of the job. Dropping it ends the job.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    pub(super) command: &'a TrainingCommand,
    /// Declared before the listener, so that it is dropped first.
    launched: LaunchedJob,
    listener: Listener,
    pub(super) writers: Writers,
    /// Samples the processes below the command until one of them reports, to explain why none does.
    search: Option<(Sampler, mpsc::Receiver<Sample>)>,
    seen: JobSearch,
}

/// The result of the search for a job below the command.
#[derive(Debug)]
enum JobSearch {
    Nothing,
    /// No job, and the reason.
    NoJob(Gap),
    Job,
}

impl<'a> Trial<'a> {
    pub(super) fn start(
        command: &'a TrainingCommand,
        overrides: LoaderOverrides,
        options: &Options,
    ) -> Result<Self, TrialError> {
        let listener = listen("raise the open file limit (ulimit -n)")?;
        let spec = command.spec(overrides, listener.address().to_owned());
        let launched = LaunchedJob::start(spec, command.log.as_deref())?;
        let builtin = command.builtin.is_some();
        if let Some(why) = launched.running.no_hook() {
            return Err(Hinted::new(
                format!("cannot install the hook: {why}"),
                "set TMPDIR to a writable directory",
            )
            .into());
        }
        let options = Options {
            target: Target::Below(launched.running.supervisor()),
            ..options.clone()
        };
        let (send, samples) = mpsc::channel();
        let search = || Sampler::start(options, None, move |sample| send.send(sample).is_ok()).ok();
        let search = if builtin { None } else { search() };
        Ok(Self {
            command,
            launched,
            listener,
            writers: Writers::default(),
            search: search.map(|sampler| (sampler, samples)),
            seen: JobSearch::Nothing,
        })
    }

    /// Receives reports until `enough` returns true for those of the trainer. Returns an error if no more can come: if
    /// the command has succeeded, that of `too_few` for the number of steps made.
    pub(super) fn listen(
        &mut self,
        mut enough: impl FnMut(Pid, &TrainerReports) -> Result<bool, Hinted>,
        too_few: impl Fn(u64) -> Hinted,
    ) -> Result<(), TrialError> {
        let (mut steps, mut moved_at) = (0, now());
        loop {
            let gone = self.read_reports();
            if let Some(signal) = self.command.interrupt.received() {
                return Err(TrialError::Interrupted(signal));
            }
            let Some((pid, reports)) = self.writers.trainer() else {
                if gone || now().saturating_sub(moved_at) > nanoseconds(self.command.patience) {
                    return Err(self.failed(self.no_step_error(gone)));
                }
                continue;
            };
            self.search = None;
            if enough(pid, reports)? {
                return Ok(());
            }
            let made = reports.made();
            if gone {
                let error = self.launched.failed().map(|ended| failed(ended, made));
                return Err(self.failed(error.unwrap_or_else(|| too_few(made))));
            }
            if made != steps {
                (steps, moved_at) = (made, now());
            } else if now().saturating_sub(moved_at) > nanoseconds(self.command.patience) {
                let waited = typed(self.command.patience);
                let error = Hinted::new(
                    format!("no step for {waited} after {made} steps"),
                    "use a longer --patience",
                );
                return Err(self.failed(error));
            }
        }
    }

    /// Returns the trainer's reports; empty if there are none.
    pub(super) fn reports(&self) -> TrainerReports {
        let trainer = self.writers.trainer();
        trainer
            .map(|(_, reports)| reports.clone())
            .unwrap_or_default()
    }

    /// Reads new reports; returns `true` if no more can come.
    fn read_reports(&mut self) -> bool {
        let gone = self.launched.wait(PAUSE);
        if gone {
            // The last reports may still be on their way.
            sleep_until(now() + nanoseconds(PAUSE));
        }
        self.writers.read_reports(&self.listener);
        if let Some((_, samples)) = &self.search {
            for sample in samples.try_iter() {
                let mut gaps = sample.gaps.into_iter();
                let gap = gaps.find(|gap| gap.source == "job");
                self.seen = gap.map_or(JobSearch::Job, JobSearch::NoJob);
            }
        }
        gone
    }

    fn failed(&mut self, error: Hinted) -> TrialError {
        if self.command.builtin.is_some() {
            return self.launched.ended_early().into();
        }
        TrialError::Refused {
            error,
            said: self.launched.last_lines(),
        }
    }

    /// Returns why there was no step.
    fn no_step_error(&self, gone: bool) -> Hinted {
        if let Some(ended) = self.launched.failed() {
            return failed(ended, 0);
        }
        if let Some(notice) = self.writers.notice() {
            return Hinted::new(
                notice,
                "use `pipetop run --no-hook` to watch it from outside",
            );
        }
        let waited = if gone {
            String::new()
        } else {
            let waited = typed(self.command.patience);
            format!(" (waited {waited}; use a longer --patience)")
        };
        match &self.seen {
            JobSearch::NoJob(gap) => Hinted::new(format!("{}{waited}", gap.reason), &gap.hint),
            JobSearch::Job => Hinted::new(
                format!("the command did not iterate over a DataLoader{waited}"),
                "any other loop can report its steps (see docs/probe.md); python -E, -I and -S disable the hook",
            ),
            JobSearch::Nothing => Hinted::new(
                "the command ended too soon to see anything",
                "name the training command; `pipetop run` shows its output",
            ),
        }
    }
}

fn failed(ended: Ending, made: u64) -> Hinted {
    let when = match made {
        0 => "before its first step".to_owned(),
        made => format!("after {made} steps"),
    };
    Hinted::new(
        format!("the command {ended} {when}"),
        "see its output for the reason; `pipetop run` with the same command shows all of it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_workers_stands_wherever_it_is_named() {
        let command = |words: &[&str]| TrainingCommand {
            builtin: None,
            words: words.iter().map(OsString::from).collect(),
            environment: vec![("N".into(), "{workers}".into())],
            log: None,
            patience: Duration::ZERO,
            interrupt: Interrupt::default(),
        };
        let replaced = command(&["sh", "-c", "t.py -w{workers} {workers}/{worker}"]);
        let replaced = replaced.with_workers(12).unwrap();
        assert_eq!(replaced.words[2], "t.py -w12 12/{worker}");
        assert_eq!(replaced.environment[0].1, "12");
        let mut without = command(&["t.py", "{worker}", "{}"]);
        without.environment.clear();
        assert!(without.with_workers(1).is_none());
    }
}
