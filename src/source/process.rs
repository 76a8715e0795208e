//! One process as `/proc/PID` shows it: identity, times, I/O, descriptors, environment.
//!
//! Every figure is read on its own and is `None` where it is denied, gone or malformed. Knows nothing of
//! roles: which process trains and which loads is for `job` to say.

mod parse;

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::Uptime;
use procfs::process::{FDInfo, FDPermissions, FDTarget};

use crate::job::PipeEnd;
use crate::sample::{ProcessSample, ThreadSample, Tier};
use crate::source::file::{self, read_with};
use crate::units::{Bytes, Pid, ProcessKey, printable};
pub use parse::Stat;
use parse::{cpus_in_mask, io_counters, pids, schedstat};

/// Reads processes below one proc root, with one buffer for all of them.
#[derive(Debug)]
pub struct ProcessReader {
    root: PathBuf,
    buffer: Vec<u8>,
    ticks_per_second: u64,
    page_size: u64,
}

impl ProcessReader {
    /// Opens nothing yet.
    pub fn new(proc_root: &Path) -> Self {
        Self {
            root: proc_root.to_owned(),
            buffer: Vec::new(),
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            page_size: rustix::param::page_size() as u64,
        }
    }

    /// Clock ticks in a second: what `start_ticks` counts in.
    pub fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    fn path(&self, pid: Pid, file: &str) -> PathBuf {
        self.root.join(format!("{pid}/{file}"))
    }

    fn read(&mut self, pid: Pid, file: &str) -> io::Result<Cow<'_, str>> {
        let path = self.path(pid, file);
        read_with(&path, &mut self.buffer)
    }

    fn text(&mut self, pid: Pid, file: &str) -> Option<Cow<'_, str>> {
        self.read(pid, file).ok()
    }

    /// Numbers of all processes.
    ///
    /// # Errors
    /// Where the root cannot be listed.
    pub fn all(&self) -> io::Result<Vec<Pid>> {
        // procfs lists them too, and opens each; one that it has no descriptor for it leaves out.
        Ok(numbers(&self.root)?.into_iter().map(Pid).collect())
    }

    /// What `/proc/PID/stat` says now.
    ///
    /// # Errors
    /// Where the process is gone, or the text is not understood.
    pub fn stat(&mut self, pid: Pid) -> io::Result<Stat> {
        let text = self.read(pid, "stat")?;
        Stat::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Arguments joined by spaces. Waits for the target's memory map lock, as every reader of `cmdline`
    /// does: not for the path that runs each second.
    pub fn command(&mut self, pid: Pid) -> Option<String> {
        let text = self.text(pid, "cmdline")?;
        Some(printable(
            text.trim_end_matches('\0').replace('\0', " ").trim(),
        ))
    }

    /// Values of the variables `names`, in their order. `None` where the environment is denied.
    pub fn environment<const N: usize>(
        &mut self,
        pid: Pid,
        names: [&str; N],
    ) -> Option<[Option<String>; N]> {
        let text = self.text(pid, "environ")?;
        let mut values = [const { None }; N];
        for entry in text.split('\0') {
            if let Some((name, value)) = entry.split_once('=')
                && let Some(at) = names.iter().position(|wanted| *wanted == name)
            {
                values[at] = Some(printable(value));
            }
        }
        Some(values)
    }

    /// Whether a library of a deep-learning framework is mapped. `None` where the maps are denied.
    /// Takes the target's memory map lock: once per process.
    pub fn has_framework(&self, pid: Pid) -> Option<bool> {
        const LIBRARIES: [&str; 4] = ["/libtorch", "/libtensorflow", "/libjax", "/xla_extension"];
        let maps = file::read(&self.path(pid, "maps")).ok()?;
        // A process that we may not read has maps that open but hold nothing.
        (!maps.is_empty()).then(|| LIBRARIES.iter().any(|library| maps.contains(library)))
    }

    /// Children of all threads of the process.
    ///
    /// # Errors
    /// Where it is gone, or the kernel does not list them.
    pub fn children(&mut self, pid: Pid) -> io::Result<Vec<Pid>> {
        let mut children = self.children_of_main_thread(pid)?;
        for thread in numbers(&self.path(pid, "task"))? {
            // Another thread may have ended.
            if thread != pid.0
                && let Ok(text) = self.read(pid, &format!("task/{thread}/children"))
            {
                children.extend(pids(&text));
            }
        }
        Ok(children)
    }

    /// Children that the main thread started.
    ///
    /// # Errors
    /// Where it is gone, or the kernel does not list them.
    pub fn children_of_main_thread(&mut self, pid: Pid) -> io::Result<Vec<Pid>> {
        let text = self.read(pid, &format!("task/{pid}/children"))?;
        Ok(pids(&text).collect())
    }

    /// How deep the process can be looked into: system calls need the right to attach (T2), descriptors
    /// the same user (T1).
    pub fn tier(&mut self, pid: Pid) -> Tier {
        if self.text(pid, "syscall").is_some() {
            Tier::T2
        } else if fs::read_dir(self.path(pid, "fd")).is_ok() {
            Tier::T1
        } else {
            Tier::T0
        }
    }

    /// Time since boot in clock ticks: what `start_ticks` counts in.
    pub fn uptime_ticks(&self) -> Option<u64> {
        let text = file::read(&self.root.join("uptime")).ok()?;
        let up: Uptime = file::parse(&text)?;
        Duration::try_from_secs_f64(up.uptime * self.ticks_per_second as f64)
            .ok()
            .map(|ticks| ticks.as_secs())
    }

    /// Threads by number and name.
    pub fn threads(&mut self, pid: Pid) -> Vec<(Pid, String)> {
        let threads = self.thread_numbers(pid).into_iter();
        let named = threads.filter_map(|thread| {
            let name = self.text(pid, &format!("task/{thread}/comm"))?;
            Some((thread, printable(name.trim_end())))
        });
        named.collect()
    }

    /// Numbers of all threads, in their order; empty where the process is gone.
    pub fn thread_numbers(&self, pid: Pid) -> Vec<Pid> {
        let threads = numbers(&self.path(pid, "task")).unwrap_or_default();
        let mut threads: Vec<Pid> = threads.into_iter().map(Pid).collect();
        threads.sort_unstable();
        threads
    }

    /// The counters of one thread. `None` where it is gone.
    pub fn thread(&mut self, pid: Pid, thread: Pid) -> Option<ThreadSample> {
        let text = self.text(pid, &format!("task/{thread}/stat"))?;
        let stat = Stat::parse(&text)?;
        let times = self.text(pid, &format!("task/{thread}/schedstat"));
        let times = times.as_deref().and_then(schedstat);
        Some(ThreadSample {
            key: stat.key,
            name: stat.comm,
            state: stat.state,
            // Counted to the nanosecond where the kernel does; in ticks it always is.
            cpu: times
                .map(|(cpu, _)| cpu)
                .or_else(|| self.ticks(stat.cpu_ticks)),
            run_delay: times.map(|(_, delay)| delay),
        })
    }

    /// The counters of one thread as if it were a process of its own. `None` where it is gone.
    pub fn thread_as_worker(
        &mut self,
        pid: Pid,
        thread: Pid,
    ) -> Option<(ProcessKey, ProcessSample)> {
        let counted = self.thread(pid, thread)?;
        let io = self.text(pid, &format!("task/{thread}/io"));
        let sample = ProcessSample {
            state: Some(counted.state),
            cpu: counted.cpu,
            main_cpu: counted.cpu,
            main_run_delay: counted.run_delay,
            threads: Some(1),
            io: io.as_deref().and_then(io_counters),
            ..ProcessSample::default()
        };
        Some((counted.key, sample))
    }

    fn ticks(&self, ticks: u64) -> Option<Duration> {
        Duration::try_from_secs_f64(ticks as f64 / self.ticks_per_second as f64).ok()
    }

    /// Open pipe ends, and whether a GPU of NVIDIA's is open. `None` where descriptors are denied (another user's
    /// process).
    pub fn descriptors(&self, pid: Pid) -> Option<(Vec<PipeEnd>, bool)> {
        let mut ends = Vec::new();
        let mut gpu = false;
        for fd in numbers(&self.path(pid, "fd")).ok()? {
            // One that was closed meanwhile is none.
            let Ok(descriptor) = FDInfo::from_raw_fd_with_root(&self.root, pid.0, fd) else {
                continue;
            };
            match &descriptor.target {
                FDTarget::Pipe(inode) => ends.push(PipeEnd {
                    fd: descriptor.fd,
                    inode: *inode,
                    // The link's own mode bits say which way the descriptor was opened.
                    write: !descriptor.mode().contains(FDPermissions::READ),
                }),
                FDTarget::Path(path) => gpu |= is_gpu(path),
                _ => {}
            }
        }
        ends.sort_unstable();
        Some((ends, gpu))
    }

    /// Whether its program is a Python interpreter. `None` where that is denied, as it is of another user's process.
    pub fn runs_python(&self, pid: Pid) -> Option<bool> {
        let program = fs::read_link(self.path(pid, "exe")).ok()?;
        let name = program.file_name()?.to_string_lossy();
        Some(name.starts_with("python"))
    }

    /// The counters of a process, for the path that runs each second: all `None` where it is gone or
    /// another has its number.
    pub fn sample(&mut self, key: ProcessKey) -> ProcessSample {
        match self.stat(key.pid) {
            Ok(stat) if stat.key == key => self.sample_with(&stat),
            _ => ProcessSample::default(),
        }
    }

    /// Like [`ProcessReader::sample`], of a process whose `stat` was just read.
    pub fn sample_with(&mut self, stat: &Stat) -> ProcessSample {
        let pid = stat.key.pid;
        let times = self.text(pid, "schedstat");
        let times = times.as_deref().and_then(schedstat);
        let io = self.text(pid, "io").as_deref().and_then(io_counters);
        ProcessSample {
            state: Some(stat.state),
            cpu: self.ticks(stat.cpu_ticks),
            main_cpu: times.map(|(on_cpu, _)| on_cpu),
            main_run_delay: times.map(|(_, delay)| delay),
            major_faults: Some(stat.major_faults),
            threads: Some(stat.threads),
            rss: Some(Bytes(stat.rss_pages.saturating_mul(self.page_size))),
            io,
            ..ProcessSample::default()
        }
    }

    /// How many CPUs the main thread may run on (`Cpus_allowed` of `status`).
    pub fn cpus_allowed(&mut self, pid: Pid) -> Option<u32> {
        cpus_in_mask(&self.text(pid, "status")?)
    }
}

/// One GPU; `nvidiactl` and `nvidia-uvm` are opened by whoever only asks what there is.
fn is_gpu(path: &Path) -> bool {
    let number = path
        .to_str()
        .and_then(|path| path.strip_prefix("/dev/nvidia"));
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// The entries of a folder that are numbers: processes, threads or descriptors.
fn numbers(folder: &Path) -> io::Result<Vec<i32>> {
    let names = fs::read_dir(folder)?.flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
}

#[cfg(test)]
mod tests;
