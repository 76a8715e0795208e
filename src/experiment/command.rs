//! The user's own command as the job of an experiment: started anew for each run, listened to, and ended.
//!
//! Its own output goes to a file, and is shown only where the command fails. What is measured is the process that
//! trains; what reports nothing cannot be measured.

mod output;
mod writers;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::Hinted;
use crate::job::Target;
use crate::launch::{self, Ending, Interrupt, LaunchError, News, Overrides, Request, Running};
use crate::probe::now;
use crate::sample::{Gap, Sample};
use crate::source::probe::Listener;
use crate::source::sampler::{Options, Sampler};
use crate::units::Pid;
use crate::workload::clock::{nanoseconds, sleep_until};
use output::Output;
pub(super) use writers::Heard;
use writers::Writers;

/// Between two looks at what came.
const PAUSE: Duration = Duration::from_millis(50);
/// The word that stands for the number of workers.
const WORKERS: &str = "{workers}";

/// What to run, and how long to wait for it.
#[derive(Debug, Clone)]
pub struct Command {
    pub words: Vec<OsString>,
    /// Variables that it gets beside those that we have.
    pub environment: Vec<(OsString, OsString)>,
    /// What it prints goes to the end of this file. `None` = nowhere.
    pub log: Option<PathBuf>,
    /// A run in which no step comes for so long is given up.
    pub patience: Duration,
    pub interrupt: Interrupt,
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("{error}")]
    Refused {
        error: Hinted,
        /// The last lines that the command has printed, where they may say why.
        said: Vec<String>,
    },
    #[error("ended by signal {0}")]
    Interrupted(i32),
}

impl From<Hinted> for Failure {
    fn from(error: Hinted) -> Self {
        Self::Refused {
            error,
            said: vec![],
        }
    }
}

impl Command {
    /// The same with this number of workers in the place of `{workers}`. `None` where that is nowhere in it.
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
    let (bytes, what) = (word.as_bytes(), what.as_bytes());
    let mut replaced = vec![];
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(what) {
            replaced.extend_from_slice(with.as_bytes());
            at += what.len();
        } else {
            replaced.push(bytes[at]);
            at += 1;
        }
    }
    OsString::from_vec(replaced)
}

/// One run of the command. Dropping it ends the command and everything below it: SIGTERM, five seconds, SIGKILL.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    command: &'a Command,
    /// Ended first of all that is here.
    _running: Running,
    listener: Listener,
    news: mpsc::Receiver<News>,
    output: Output,
    pub(super) writers: Writers,
    /// Looks below the command as long as nothing reports, to be able to say why.
    looking: Option<(Sampler, mpsc::Receiver<Sample>)>,
    seen: Seen,
    ended: Option<Ending>,
}

/// What was seen below the command.
#[derive(Debug)]
enum Seen {
    Nothing,
    /// And why.
    NoJob(Gap),
    Job,
}

impl<'a> Trial<'a> {
    pub(super) fn start(
        command: &'a Command,
        overrides: Overrides,
        options: &Options,
    ) -> Result<Self, Failure> {
        let listener = Listener::bind().map_err(|error| {
            Hinted::new(
                format!("cannot listen to what the job reports: {error}"),
                "raise the limit of open files (ulimit -n)",
            )
        })?;
        let output = Output::new(command.log.as_deref())?;
        let request = Request {
            command: command.words.clone(),
            environment: command.environment.clone(),
            probe: Some(listener.address().to_owned()),
            overrides,
        };
        let (send, news) = mpsc::channel();
        let running = Running::start(
            request,
            false,
            launch::Output::File(output.writer()?),
            move |told| send.send(told).is_ok(),
        )?;
        if let Some(why) = running.no_hook() {
            return Err(Hinted::new(
                format!("the hook could not be put in place: {why}"),
                "TMPDIR names a directory that can be written to",
            )
            .into());
        }
        let options = Options {
            target: Target::Below(running.guard()),
            ..options.clone()
        };
        let (send, samples) = mpsc::channel();
        let looking = Sampler::start(options, None, move |sample| send.send(sample).is_ok());
        Ok(Self {
            command,
            _running: running,
            listener,
            news,
            output,
            writers: Writers::default(),
            looking: looking.ok().map(|sampler| (sampler, samples)),
            seen: Seen::Nothing,
            ended: None,
        })
    }

    /// Listens until `enough` says so of what the trainer has told so far. That no more can come is a failure;
    /// where the command has ended well it is `too_few` of so many steps.
    pub(super) fn listen(
        &mut self,
        mut enough: impl FnMut(Pid, &Heard) -> Result<bool, Hinted>,
        too_few: impl Fn(u64) -> Hinted,
    ) -> Result<(), Failure> {
        let (mut steps, mut moved_at) = (0, now());
        loop {
            let gone = self.hear();
            if let Some(signal) = self.command.interrupt.came() {
                return Err(Failure::Interrupted(signal));
            }
            let Some((pid, heard)) = self.writers.trainer() else {
                if gone || now().saturating_sub(moved_at) > nanoseconds(self.command.patience) {
                    return Err(self.failed(self.nothing(gone)));
                }
                continue;
            };
            self.looking = None;
            if enough(pid, heard)? {
                return Ok(());
            }
            let made = heard.made();
            if gone {
                let error = self.failure().map(|ended| failed(ended, made));
                return Err(self.failed(error.unwrap_or_else(|| too_few(made))));
            }
            if made != steps {
                (steps, moved_at) = (made, now());
            } else if now().saturating_sub(moved_at) > nanoseconds(self.command.patience) {
                let waited = humantime::format_duration(self.command.patience);
                let error = Hinted::new(
                    format!("no step came for {waited} after {made} of them"),
                    "--patience waits for longer",
                );
                return Err(self.failed(error));
            }
        }
    }

    /// What the trainer has told. Nothing, where none has.
    pub(super) fn heard(&self) -> Heard {
        let trainer = self.writers.trainer();
        trainer.map(|(_, heard)| heard.clone()).unwrap_or_default()
    }

    /// Takes in what came; `true` where no more can come.
    fn hear(&mut self) -> bool {
        let gone = match self.news.recv_timeout(PAUSE) {
            Ok(News::Ended(ending)) => {
                self.ended = Some(ending);
                false
            }
            Ok(News::Gone) | Err(RecvTimeoutError::Disconnected) => true,
            Ok(_) | Err(RecvTimeoutError::Timeout) => false,
        };
        if gone {
            // What it told last may be under way.
            sleep_until(now() + nanoseconds(PAUSE));
        }
        self.writers.hear(&self.listener);
        self.output.read();
        if let Some((_, samples)) = &self.looking {
            for sample in samples.try_iter() {
                let mut gaps = sample.gaps.into_iter();
                let gap = gaps.find(|gap| gap.source == "job");
                self.seen = gap.map_or(Seen::Job, Seen::NoJob);
            }
        }
        gone
    }

    fn failed(&mut self, error: Hinted) -> Failure {
        Failure::Refused {
            error,
            said: self.output.last_lines(),
        }
    }

    /// It has not failed by itself, as far as its exit code tells.
    fn failure(&self) -> Option<Ending> {
        self.ended.filter(|ended| ended.code() != 0)
    }

    /// Why no step came.
    fn nothing(&self, gone: bool) -> Hinted {
        if let Some(ended) = self.failure() {
            return failed(ended, 0);
        }
        if let Some(notice) = self.writers.notice() {
            return Hinted::new(notice, "`pipetop run --no-hook` watches it from outside");
        }
        let waited = if gone {
            String::new()
        } else {
            let waited = humantime::format_duration(self.command.patience);
            format!(" (waited for {waited}; --patience waits for longer)")
        };
        match &self.seen {
            Seen::NoJob(gap) => Hinted::new(format!("{}{waited}", gap.reason), &gap.hint),
            Seen::Job => Hinted::new(
                format!("no DataLoader was iterated below the command{waited}"),
                "a loop over anything else can tell of its steps (docs/probe.md); python -E, -I and -S leave the hook out",
            ),
            Seen::Nothing => Hinted::new(
                "the command ended before anything was seen of it",
                "give the command that trains; `pipetop run` with it shows its output",
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
        "its own output says why; `pipetop run` with the same command shows all of it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_workers_stands_wherever_it_is_named() {
        let command = |words: &[&str]| Command {
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
