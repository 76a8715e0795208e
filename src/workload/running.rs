//! The built-in job as its starter holds it: started, watched for its end, ended with all of its processes.
//!
//! Knows nothing of what it does.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use super::clock::{now, sleep_until};
use super::error::WorkloadError;
use super::settings::Settings;
use crate::probe::VARIABLE;
use crate::units::{Pid, printable};

/// Killed processes are waited for so long, in nanoseconds, and asked for so often.
const LONGEST_END: u64 = 2_000_000_000;
const PAUSE: u64 = 2_000_000;
/// Last words that are kept.
const WORDS: usize = 8;

/// A built-in job that runs; dropping it ends it.
#[derive(Debug)]
pub struct Running {
    trainer: Child,
    words: Arc<Mutex<Vec<String>>>,
}

impl Running {
    /// Starts the job. `probe` is the address of the socket that it shall report to; without one it reports to
    /// nobody. Must be called on a thread that lives as long as the job shall: the kernel ends the job with it.
    ///
    /// # Errors
    /// Where no process can be started.
    pub fn start(settings: &Settings, probe: Option<&OsStr>) -> Result<Self, WorkloadError> {
        let failed = |error: io::Error| WorkloadError::Process(error.to_string());
        // Workers of a trainer that was killed become our children, so that none is left as a zombie.
        set_child_subreaper(Some(getpid())).map_err(|error| failed(error.into()))?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("pipetop")
            .arg("builtin-trainer")
            .arg(format!("--parent={}", std::process::id()))
            .args(settings.flags())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        match probe {
            Some(address) => command.env(VARIABLE, address),
            None => command.env_remove(VARIABLE),
        };
        let mut trainer = command.spawn().map_err(failed)?;
        let words = Arc::new(Mutex::new(vec![]));
        if let Some(errors) = trainer.stderr.take() {
            let words = Arc::clone(&words);
            std::thread::Builder::new()
                .name("words".into())
                .spawn(move || listen(BufReader::new(errors), &words))
                .map_err(failed)?;
        }
        Ok(Self { trainer, words })
    }

    /// The trainer's process.
    pub fn pid(&self) -> Pid {
        Pid(i32::try_from(self.trainer.id()).unwrap_or_default())
    }

    /// What the job said last on its standard error, oldest first: why it ended where it did by itself.
    pub fn last_words(&self) -> Vec<String> {
        self.words
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether the job has ended by itself, and if so, whether well.
    pub fn ended(&mut self) -> Option<bool> {
        let status = self.trainer.try_wait().ok()??;
        Some(status.success())
    }

    /// Waits for the job's own end.
    pub fn wait(&mut self) -> bool {
        self.trainer.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has nothing to lose: its memory and its socket have no names.
        let _ = self.trainer.kill();
        let _ = self.trainer.wait();
        // The kernel ends the workers with the trainer; they are our children now.
        let deadline = now() + LONGEST_END;
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
