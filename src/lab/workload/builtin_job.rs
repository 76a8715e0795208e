//! The built-in job as its starter holds it: started, watched for its end, ended with all of its processes.
//!
//! Knows nothing of what it does.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use super::clock::{nanoseconds, now, sleep_until};
use super::error::WorkloadError;
use super::settings::JobSettings;
use crate::probe::VARIABLE;
use crate::units::{Pid, printable};

/// Killed processes are waited for so long, and asked for so often, in nanoseconds.
const LONGEST_END: Duration = Duration::from_secs(2);
const PAUSE: u64 = 2_000_000;
/// Last words that are kept.
const WORDS: usize = 8;

/// A built-in job that runs; dropping it ends it.
#[derive(Debug)]
pub struct BuiltinJob {
    trainer: Child,
    words: Arc<Mutex<Vec<String>>>,
    /// Ends when no process of the job is left that could say more.
    silent: mpsc::Receiver<()>,
}

impl BuiltinJob {
    /// Starts the job. `probe` is the address of the socket that it shall report to; without one it reports to
    /// nobody. Must be called on a thread that lives as long as the job shall: the kernel ends the job with it.
    ///
    /// # Errors
    /// Where no process can be started.
    pub fn start(settings: &JobSettings, probe: Option<&OsStr>) -> Result<Self, WorkloadError> {
        let failed = |error: io::Error| WorkloadError::Process(error.to_string());
        // Workers of a trainer that was killed become our children, so that none is left as a zombie.
        set_child_subreaper(Some(getpid())).map_err(|error| failed(error.into()))?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("pipetop")
            .arg("builtin-trainer")
            .arg(format!("--parent={}", std::process::id()))
            .arg(settings.word())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        match probe {
            Some(address) => command.env(VARIABLE, address),
            None => command.env_remove(VARIABLE),
        };
        let mut trainer = command.spawn().map_err(failed)?;
        let words = Arc::new(Mutex::new(vec![]));
        let (speaking, silent) = mpsc::channel();
        if let Some(errors) = trainer.stderr.take() {
            let words = Arc::clone(&words);
            let listen = move || {
                listen(BufReader::new(errors), &words);
                drop(speaking);
            };
            let listening = std::thread::Builder::new().name("words".into());
            listening.spawn(listen).map_err(failed)?;
        }
        Ok(Self {
            trainer,
            words,
            silent,
        })
    }

    /// The trainer's process.
    pub fn pid(&self) -> Pid {
        Pid(i32::try_from(self.trainer.id()).unwrap_or_default())
    }

    /// Whether the job has ended by itself, and if so, whether well.
    pub fn ended(&mut self) -> Option<bool> {
        let status = self.trainer.try_wait().ok()??;
        Some(status.success())
    }

    /// Why the job failed. `None` where it runs, or has ended well.
    pub fn failure(&mut self) -> Option<WorkloadError> {
        let status = self.trainer.try_wait().ok()??;
        if status.success() {
            return None;
        }
        // The workers end with the trainer; what they said is still on its way.
        let _ = self.silent.recv_timeout(LONGEST_END);
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        Some(told(&words).unwrap_or_else(|| WorkloadError::TrainerEnded {
            how: status.to_string(),
            words: words.last().cloned(),
        }))
    }
}

impl Drop for BuiltinJob {
    fn drop(&mut self) {
        // It has nothing to lose: its memory and its socket have no names.
        let _ = self.trainer.kill();
        let _ = self.trainer.wait();
        // The kernel ends the workers with the trainer; they are our children now.
        let deadline = now() + nanoseconds(LONGEST_END);
        while now() < deadline {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => sleep_until(now() + PAUSE),
                Err(_) => break,
            }
        }
    }
}

/// Keeps the last lines of what is said.
fn listen(said: impl BufRead, words: &Mutex<Vec<String>>) {
    for line in said.lines().map_while(Result::ok) {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() == WORDS {
            words.remove(0);
        }
        words.push(printable(&line));
    }
}

/// The first error that a process of the job ended with: later ones follow from it.
fn told(words: &[String]) -> Option<WorkloadError> {
    words.windows(2).find_map(|pair| {
        let message = pair.first()?.strip_prefix("error: ")?.to_owned();
        let hint = pair.get(1)?.strip_prefix("hint: ")?.to_owned();
        Some(WorkloadError::Told { message, hint })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told_and_only_a_whole_one() {
        let said = |lines: &str| {
            let lines: Vec<String> = lines.split('|').map(str::to_owned).collect();
            told(&lines).map(|error| (error.to_string(), error.hint()))
        };
        let of = |message: &str, hint: &str| Some((message.to_owned(), hint.to_owned()));
        assert_eq!(
            said("hint: cut|a b|error: no file|hint: make it|error: worker 1|hint: x"),
            of("no file", "make it")
        );
        assert_eq!(said("error: no hint|error: a|hint: b"), of("a", "b"));
        assert_eq!(said("thread 'main' panicked|error: a"), None);
    }
}
