//! A job that looks like a training job from outside and needs no Python: a shell with Python's name and children with
//! the name that PyTorch gives its loader workers. All of them end with the test.

use std::io::PipeWriter;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use tempfile::TempDir;

use crate::copy_program;
use crate::waiting::{ended, wait};

/// Starts the workers. The trainer's input and output are the two ends of one pipe, like a loader's result queue.
const START: &str = "\
count=0
while [ $count -lt $2 ]; do
    \"$1/pt_data_worker\" \"$1/worker.sh\" &
    count=$((count + 1))
done
";
/// After `START`: waits for a line from the workers.
const TRAINER: &str = "read line\n";
/// A worker: waits until the test closes the other end of its standard error.
const WORKER: &str = "\
read line <&2
echo end
";
/// Like `TRAINER`, but restarts its workers ten times a second until it is ended.
const RESTARTING: &str = "\
while :; do
    count=0
    while [ $count -lt $2 ]; do
        \"$1/pt_data_worker\" \"$1/short.sh\" &
        count=$((count + 1))
    done
    wait
done
";

/// A trainer whose workers write endlessly into its input. On request it closes its input and writes their exit codes.
const CLOSING: &str = "\
count=0
while [ $count -lt $2 ]; do
    \"$1/pt_data_worker\" \"$1/endless.sh\" <&- &
    pids=\"$pids $!\"
    count=$((count + 1))
done
while [ ! -e \"$1/close\" ]; do read line; done
exec <&-
for pid in $pids; do
    wait $pid
    echo $? >>\"$1/codes\"
done
mv \"$1/codes\" \"$1/ended\"
";
/// After `START`: reads the workers' output to its end.
const READING: &str = "\
exec >&-
while read line; do count=$((count - 1)); done
echo $count >\"$1/ended\"
";

/// After `START`: becomes another program on request.
const REPLACED: &str = "\
while [ ! -e \"$1/exec\" ]; do sleep 0.1; done
exec sleep 600
";

/// A value in the environment of each process, which pipetop must not print.
pub const SECRET: &str = "told-to-nobody";

pub struct StandIn {
    child: Child,
    /// The workers wait until this end is closed.
    control: Option<PipeWriter>,
    directory: TempDir,
}

impl StandIn {
    pub fn start(workers: u32) -> Self {
        Self::start_in(&std::env::temp_dir(), workers)
    }

    /// Starts a job with its files below this folder, which is then in its command line.
    pub fn start_in(folder: &Path, workers: u32) -> Self {
        Self::of(&format!("{START}{TRAINER}"), folder, workers)
    }

    pub fn restarting(workers: u32) -> Self {
        Self::restarting_in(&std::env::temp_dir(), workers)
    }

    /// Starts a restarting job with its files below this folder, which is then in its command line.
    pub fn restarting_in(folder: &Path, workers: u32) -> Self {
        Self::of(RESTARTING, folder, workers)
    }

    /// Starts a job that closes its input as soon as its directory has a file `close`, and then writes its workers'
    /// exit codes to `ended`.
    pub fn closing(workers: u32) -> Self {
        Self::of(CLOSING, &std::env::temp_dir(), workers)
    }

    /// Starts a job that reads from its workers until they have ended, and then writes to `ended` how many it has not
    /// read from.
    pub fn reading(workers: u32) -> Self {
        Self::of(&format!("{START}{READING}"), &std::env::temp_dir(), workers)
    }

    /// Starts a job that becomes a program other than Python as soon as its directory has a file `exec`.
    pub fn replaced(workers: u32) -> Self {
        Self::of(
            &format!("{START}{REPLACED}"),
            &std::env::temp_dir(),
            workers,
        )
    }

    /// Lets the workers end.
    pub fn release(&mut self) {
        self.control.take();
    }

    /// Starts a job whose script has this name.
    pub fn with_script(name: &str, workers: u32) -> Self {
        let script = format!("{START}{TRAINER}");
        Self::named(name, &script, &std::env::temp_dir(), workers)
    }

    fn of(script: &str, folder: &Path, workers: u32) -> Self {
        Self::named("train.py", script, folder, workers)
    }

    fn named(name: &str, script: &str, folder: &Path, workers: u32) -> Self {
        let directory = tempfile::tempdir_in(folder).expect("a temporary directory");
        let path = directory.path();
        let shell = std::fs::canonicalize("/bin/sh").expect("every machine has a shell");
        for name in ["python3", "pt_data_worker"] {
            copy_program(&shell, &path.join(name)).expect("the shell can be copied");
        }
        for (name, text) in [
            (name, script),
            ("worker.sh", WORKER),
            ("short.sh", "sleep 0.1\n"),
            ("endless.sh", "while :; do echo batch; sleep 0.01; done\n"),
        ] {
            std::fs::write(path.join(name), text).expect("a script can be written");
        }
        let (results, sink) = std::io::pipe().expect("a pipe");
        let (orders, control) = std::io::pipe().expect("a pipe");
        let child = Command::new(path.join("python3"))
            .arg0("python3")
            .args([path.join(name), path.to_owned()])
            .arg(workers.to_string())
            .env("PIPETOP_TEST_SECRET", SECRET)
            .process_group(0)
            .stdin(results)
            .stdout(sink)
            .stderr(orders)
            .spawn()
            .expect("a copy of the shell starts");
        let job = Self {
            child,
            control: Some(control),
            directory,
        };
        wait("the workers", || (job.workers() >= workers).then_some(()));
        job
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the number of children with the name of a worker.
    pub fn workers(&self) -> u32 {
        let entries = std::fs::read_dir("/proc").expect("procfs").flatten();
        let stats =
            entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        let parent = format!(" {} ", self.pid());
        let is_worker = |stat: &String| {
            stat.split_once("(pt_data_worker) ")
                .is_some_and(|(_, rest)| rest[1..].starts_with(&parent) && !rest.starts_with('Z'))
        };
        u32::try_from(stats.filter(is_worker).count()).expect("few")
    }

    /// Ends the trainer and its workers.
    pub fn end(&mut self) {
        self.control.take();
        ended(&mut self.child);
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process_group(pid, signal).expect("it runs");
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        // It may have ended already.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}
