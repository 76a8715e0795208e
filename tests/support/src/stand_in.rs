//! A job that looks like a training from outside and needs no Python: a shell under Python's name with
//! children under the name that PyTorch gives its loader workers. All of them end with the test.

use std::io::PipeWriter;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use tempfile::TempDir;

use crate::waiting::{ended, wait};

/// Starts so many workers and waits for a line from them: its input and its output are the two ends of one
/// pipe, as a loader's result queue is.
const TRAINER: &str = "\
count=0
while [ $count -lt $2 ]; do
    \"$1/pt_data_worker\" \"$1/worker.sh\" &
    count=$((count + 1))
done
read line
";
/// Waits for the test to let go of the other end.
const WORKER: &str = "\
read line <&2
echo end
";
/// As `TRAINER`, but makes its workers anew, ten times a second until it is ended.
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

/// Its workers write without end into its input. Once told to, it closes that, and says with which codes they have ended.
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
/// Reads what its workers write, to its end.
const READING: &str = "\
count=0
while [ $count -lt $2 ]; do
    \"$1/pt_data_worker\" \"$1/worker.sh\" &
    count=$((count + 1))
done
exec >&-
while read line; do count=$((count - 1)); done
echo $count >\"$1/ended\"
";

/// A value in the environment of each.
pub const SECRET: &str = "told-to-nobody";

pub struct StandIn {
    child: Child,
    /// What its workers wait for the end of.
    control: Option<PipeWriter>,
    directory: TempDir,
}

impl StandIn {
    pub fn start(workers: u32) -> Self {
        Self::of(TRAINER, &std::env::temp_dir(), workers)
    }

    pub fn restarting(workers: u32) -> Self {
        Self::restarting_in(&std::env::temp_dir(), workers)
    }

    /// The same with its files below this folder, which its command line then names.
    pub fn restarting_in(folder: &Path, workers: u32) -> Self {
        Self::of(RESTARTING, folder, workers)
    }

    /// Closes its input once there is a file `close` in its directory; its workers' exit codes are in `ended` then.
    pub fn closing(workers: u32) -> Self {
        Self::of(CLOSING, &std::env::temp_dir(), workers)
    }

    /// Reads from its workers until they have ended; in `ended` is then how many it has not read from.
    pub fn reading(workers: u32) -> Self {
        Self::of(READING, &std::env::temp_dir(), workers)
    }

    /// Closes what its workers wait for the end of.
    pub fn let_go(&mut self) {
        self.control.take();
    }

    fn of(script: &str, folder: &Path, workers: u32) -> Self {
        let directory = tempfile::tempdir_in(folder).expect("a temporary directory");
        let path = directory.path();
        let shell = std::fs::canonicalize("/bin/sh").expect("every machine has a shell");
        for name in ["python3", "pt_data_worker"] {
            std::fs::copy(&shell, path.join(name)).expect("a shell can be copied");
        }
        for (name, text) in [
            ("train.py", script),
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
            .args([path.join("train.py"), path.to_owned()])
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

    /// Children that go by the name of a worker now.
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

    /// Lets the trainer and its workers end.
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
        // Gone already is as good.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}
