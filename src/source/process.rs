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

use crate::job::PipeEnd;
use crate::sample::{ProcessSample, ThreadSample, Tier};
use crate::source::file::read_once;
use crate::units::{Bytes, Pid, ProcessKey, printable};
pub use parse::Stat;
use parse::{cpus_in_mask, parse_io, pids, schedstat};

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

    fn text(&mut self, pid: Pid, file: &str) -> Option<Cow<'_, str>> {
        read_once(&self.path(pid, file), &mut self.buffer).ok()
    }

    /// Numbers of all processes; empty where the root cannot be listed.
    pub fn all(&self) -> Vec<Pid> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Some(Pid(entry.file_name().to_str()?.parse().ok()?)))
            .collect()
    }

    /// What `/proc/PID/stat` says now.
    ///
    /// # Errors
    /// Where the process is gone, or the text is not understood.
    pub fn stat(&mut self, pid: Pid) -> io::Result<Stat> {
        let text = read_once(&self.path(pid, "stat"), &mut self.buffer)?;
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
        let text = fs::read(self.path(pid, "environ")).ok()?;
        let mut values = [const { None }; N];
        for entry in text.split(|byte| *byte == 0) {
            let entry = String::from_utf8_lossy(entry);
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
        let maps = fs::read(self.path(pid, "maps")).ok()?;
        let maps = String::from_utf8_lossy(&maps);
        // A process that we may not read has maps that open but hold nothing.
        (!maps.is_empty()).then(|| LIBRARIES.iter().any(|library| maps.contains(library)))
    }

    /// Children of all threads of the process. `None` where the kernel does not list them.
    pub fn children(&mut self, pid: Pid) -> Option<Vec<Pid>> {
        let mut children = Vec::new();
        for thread in fs::read_dir(self.path(pid, "task")).ok()?.flatten() {
            match read_once(&thread.path().join("children"), &mut self.buffer) {
                Ok(text) => children.extend(pids(&text)),
                // The thread may have ended; a kernel without the file has it for no thread.
                Err(_) if thread.file_name().to_str() == Some(&pid.to_string()) => return None,
                Err(_) => {}
            }
        }
        Some(children)
    }

    /// Children that the main thread started. `None` where the kernel does not list them.
    pub fn children_of_main_thread(&mut self, pid: Pid) -> Option<Vec<Pid>> {
        let text = self.text(pid, &format!("task/{pid}/children"))?;
        Some(pids(&text).collect())
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
    pub fn uptime_ticks(&mut self) -> Option<u64> {
        let path = self.root.join("uptime");
        let text = read_once(&path, &mut self.buffer).ok()?;
        let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
        Duration::try_from_secs_f64(seconds * self.ticks_per_second as f64)
            .ok()
            .map(|ticks| ticks.as_secs())
    }

    /// Threads by number and name.
    pub fn threads(&mut self, pid: Pid) -> Vec<(Pid, String)> {
        let entries = fs::read_dir(self.path(pid, "task"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter_map(|entry| {
                let thread = Pid(entry.file_name().to_str()?.parse().ok()?);
                let name = read_once(&entry.path().join("comm"), &mut self.buffer).ok()?;
                Some((thread, printable(name.trim_end())))
            })
            .collect()
    }

    /// Numbers of all threads, in their order; empty where the process is gone.
    pub fn thread_numbers(&self, pid: Pid) -> Vec<Pid> {
        let entries = fs::read_dir(self.path(pid, "task"));
        let entries = entries.into_iter().flatten().flatten();
        let mut numbers: Vec<Pid> = entries
            .filter_map(|entry| Some(Pid(entry.file_name().to_str()?.parse().ok()?)))
            .collect();
        numbers.sort_unstable();
        numbers
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

    fn ticks(&self, ticks: u64) -> Option<Duration> {
        Duration::try_from_secs_f64(ticks as f64 / self.ticks_per_second as f64).ok()
    }

    /// Open pipe ends. `None` where descriptors are denied (another user's process).
    pub fn pipes(&self, pid: Pid) -> Option<Vec<PipeEnd>> {
        let entries = fs::read_dir(self.path(pid, "fd")).ok()?.flatten();
        let mut ends: Vec<_> = entries
            .filter_map(|entry| pipe_end(&entry.path()))
            .collect();
        ends.sort_unstable();
        Some(ends)
    }

    /// The counters of a process, for the path that runs each second: all `None` where it is gone or
    /// another has its number.
    pub fn sample(&mut self, key: ProcessKey) -> ProcessSample {
        let mut sample = ProcessSample::default();
        let Ok(stat) = self.stat(key.pid) else {
            return sample;
        };
        if stat.key != key {
            return sample;
        }
        sample.state = Some(stat.state);
        sample.cpu = self.ticks(stat.cpu_ticks);
        sample.major_faults = Some(stat.major_faults);
        sample.threads = Some(stat.threads);
        sample.rss = Some(Bytes(stat.rss_pages.saturating_mul(self.page_size)));
        if let Some((on_cpu, delay)) = self
            .text(key.pid, "schedstat")
            .as_deref()
            .and_then(schedstat)
        {
            sample.main_cpu = Some(on_cpu);
            sample.main_run_delay = Some(delay);
        }
        sample.io = self.text(key.pid, "io").as_deref().and_then(parse_io);
        sample
    }

    /// How many CPUs the main thread may run on (`Cpus_allowed` of `status`).
    pub fn cpus_allowed(&mut self, pid: Pid) -> Option<u32> {
        cpus_in_mask(&self.text(pid, "status")?)
    }
}

/// The pipe end behind a `/proc/PID/fd/N` link: `None` where it is no pipe or is gone.
fn pipe_end(link: &Path) -> Option<PipeEnd> {
    let target = fs::read_link(link).ok()?;
    let inode = target
        .to_str()?
        .strip_prefix("pipe:[")?
        .strip_suffix(']')?
        .parse()
        .ok()?;
    // The link's own mode bits say which way the descriptor was opened.
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::symlink_metadata(link).ok()?);
    let fd = link.file_name()?.to_str()?.parse().ok()?;
    Some(PipeEnd {
        fd,
        inode,
        write: mode & 0o400 == 0,
    })
}

#[cfg(test)]
mod tests;
