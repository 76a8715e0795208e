//! One process in `/proc/PID`: identity, times, I/O, descriptors, environment.
//!
//! Every figure is read separately and is `None` if it is denied, gone or malformed. Must not depend on roles: `job`
//! decides which process trains and which loads.

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
use crate::source::file::{self, Failure, read_with};
use crate::source::poll::only_waits;
use crate::units::{Bytes, Pid, ProcessKey, printable};
pub use parse::Stat;
use parse::{cpus_in_mask, io_counters, pids, schedstat};

/// Whether the processes below this proc root have the PIDs by which this program knows them. They do not if it is the
/// procfs of another PID namespace, or a copy.
pub(crate) fn numbers_as_here(proc_root: &Path) -> bool {
    let own = std::process::id().to_string();
    fs::read_link(proc_root.join("self")).is_ok_and(|number| number == Path::new(&own))
}

/// Reads processes below one proc root, with one buffer for all of them.
#[derive(Debug)]
pub struct ProcessReader {
    root: PathBuf,
    buffer: Vec<u8>,
    ticks_per_second: u64,
    page_size: u64,
}

/// What a process's main thread is seen to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MainThreadNow {
    /// Whether it only waits, as a launcher does; `None` if that cannot be seen.
    pub(super) only_waits: Option<bool>,
    /// Time on a CPU so far. `None` if it cannot be read.
    pub(super) cpu: Option<Duration>,
}

/// Parts of the paths of the libraries of deep-learning frameworks.
const FRAMEWORKS: [&str; 4] = ["/libtorch", "/libtensorflow", "/libjax", "/xla_extension"];

impl ProcessReader {
    /// Creates the reader; opens nothing yet.
    pub fn new(proc_root: &Path) -> Self {
        Self {
            root: proc_root.to_owned(),
            buffer: Vec::new(),
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            page_size: rustix::param::page_size() as u64,
        }
    }

    /// Returns the clock ticks per second: the unit of `start_ticks`.
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

    /// Returns the numbers of all processes.
    ///
    /// # Errors
    /// Returns an error if the root cannot be listed.
    pub fn all(&self) -> io::Result<Vec<Pid>> {
        // The procfs crate lists them, too, but opens each one, and omits those for which it has no descriptor left.
        Ok(numbers(&self.root)?.into_iter().map(Pid).collect())
    }

    /// Reads `/proc/PID/stat`.
    ///
    /// # Errors
    /// Returns an error if the process is gone or the text cannot be parsed.
    pub fn stat(&mut self, pid: Pid) -> io::Result<Stat> {
        let text = self.read(pid, "stat")?;
        Stat::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns what its main thread does now, as far as that can be seen.
    pub(super) fn main_thread_now(&mut self, pid: Pid) -> MainThreadNow {
        let runs = self.stat(pid).is_ok_and(|stat| stat.state == 'R');
        let only_waits = if runs {
            Some(false)
        } else {
            self.text(pid, "wchan").and_then(|wchan| only_waits(&wchan))
        };
        let times = self.text(pid, "schedstat");
        MainThreadNow {
            only_waits,
            cpu: times.and_then(|times| Some(schedstat(&times)?.0)),
        }
    }

    /// Returns the arguments joined by spaces. Waits for the target's memory map lock, as every reader of `cmdline`
    /// does, so do not call it each second.
    pub fn command(&mut self, pid: Pid) -> Option<String> {
        let text = self.text(pid, "cmdline")?;
        Some(printable(
            text.trim_end_matches('\0').replace('\0', " ").trim(),
        ))
    }

    /// Returns the values of the variables `names`, in their order. `None` if the environment cannot be read.
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

    /// Whether a library of a deep-learning framework is mapped. `None` if the maps cannot be read. Takes the target's
    /// memory map lock: call it once per process.
    pub fn has_framework(&self, pid: Pid) -> Option<bool> {
        let maps = file::read(&self.path(pid, "maps")).ok()?;
        // Without permission, the maps of a process can be opened but are empty.
        (!maps.is_empty()).then(|| FRAMEWORKS.iter().any(|library| maps.contains(library)))
    }

    /// Whether a Python interpreter or an extension module of one is mapped, and a framework: its program may have any name,
    /// as if copied, frozen, or with Python inside. Debuggers and editors have Python inside, too, but no framework. Takes
    /// the target's memory map lock, too.
    pub fn has_interpreter_and_framework(&self, pid: Pid) -> bool {
        const INTERPRETER: [&str; 2] = ["/libpython3", ".cpython-3"];
        let maps = file::read(&self.path(pid, "maps")).unwrap_or_default();
        let any = |parts: &[&str]| parts.iter().any(|part| maps.contains(part));
        any(&INTERPRETER) && any(&FRAMEWORKS)
    }

    /// Returns the children of all threads of the process.
    ///
    /// # Errors
    /// Returns an error if the process is gone or the kernel does not list children.
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

    /// Returns the children that the main thread started.
    ///
    /// # Errors
    /// Returns an error if the process is gone or the kernel does not list children.
    pub fn children_of_main_thread(&mut self, pid: Pid) -> io::Result<Vec<Pid>> {
        let text = self.read(pid, &format!("task/{pid}/children"))?;
        Ok(pids(&text).collect())
    }

    /// Returns how much of the process can be read: reading system calls needs the right to attach (T2), reading
    /// descriptors the same user (T1).
    ///
    /// # Errors
    /// Returns an error if that cannot be determined now, for lack of descriptors or memory.
    pub fn tier(&mut self, pid: Pid) -> io::Result<Tier> {
        let is_short = |error: &io::Error| Failure::of(error) == Failure::NoResources;
        match self.read(pid, "syscall") {
            Ok(_) => return Ok(Tier::T2),
            Err(error) if is_short(&error) => return Err(error),
            Err(_) => {}
        }
        match fs::read_dir(self.path(pid, "fd")) {
            Ok(_) => Ok(Tier::T1),
            Err(error) if is_short(&error) => Err(error),
            Err(_) => Ok(Tier::T0),
        }
    }

    /// Returns the time since boot in clock ticks, the unit of `start_ticks`.
    pub fn uptime_ticks(&self) -> Option<u64> {
        let text = file::read(&self.root.join("uptime")).ok()?;
        let up: Uptime = file::parse(&text)?;
        let up = Duration::try_from_secs_f64(up.uptime).ok()?;
        Some(self.in_ticks(up))
    }

    /// Converts a time to clock ticks.
    pub fn in_ticks(&self, time: Duration) -> u64 {
        let ticks = time.as_nanos() * u128::from(self.ticks_per_second) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Returns the threads by number and name.
    pub fn threads(&mut self, pid: Pid) -> Vec<(Pid, String)> {
        let threads = self.thread_numbers(pid).into_iter();
        let named = threads.filter_map(|thread| {
            let name = self.text(pid, &format!("task/{thread}/comm"))?;
            Some((thread, printable(name.trim_end())))
        });
        named.collect()
    }

    /// Returns the numbers of all threads in ascending order; empty if the process is gone.
    pub fn thread_numbers(&self, pid: Pid) -> Vec<Pid> {
        let threads = numbers(&self.path(pid, "task")).unwrap_or_default();
        let mut threads: Vec<Pid> = threads.into_iter().map(Pid).collect();
        threads.sort_unstable();
        threads
    }

    /// Returns the counters of one thread. `None` if it is gone.
    pub fn thread(&mut self, pid: Pid, thread: Pid) -> Option<ThreadSample> {
        let text = self.text(pid, &format!("task/{thread}/stat"))?;
        let stat = Stat::parse(&text)?;
        let times = self.text(pid, &format!("task/{thread}/schedstat"));
        let times = times.as_deref().and_then(schedstat);
        // In nanoseconds if the kernel counts them; ticks are always counted.
        let cpu = times.map(|(cpu, _)| cpu);
        let process = ProcessSample {
            state: Some(stat.state),
            cpu: cpu.or_else(|| self.ticks(stat.cpu_ticks)),
            main_run_delay: times.map(|(_, delay)| delay),
            ..ProcessSample::default()
        };
        Some(ThreadSample {
            key: stat.key,
            name: stat.comm,
            process,
        })
    }

    /// Returns the counters of one thread as if it were a process. `None` if it is gone.
    pub fn thread_as_worker(
        &mut self,
        pid: Pid,
        thread: Pid,
    ) -> Option<(ProcessKey, ProcessSample)> {
        let ThreadSample { key, process, .. } = self.thread(pid, thread)?;
        let io = self.text(pid, &format!("task/{thread}/io"));
        let sample = ProcessSample {
            main_cpu: process.cpu,
            threads: Some(1),
            io: io.as_deref().and_then(io_counters),
            ..process
        };
        Some((key, sample))
    }

    /// Converts clock ticks. `None` if they are more than a [`Duration`] can hold.
    pub fn ticks(&self, ticks: u64) -> Option<Duration> {
        Duration::try_from_secs_f64(ticks as f64 / self.ticks_per_second as f64).ok()
    }

    /// Returns the open pipe ends, and whether an NVIDIA GPU is open. `None` if descriptors cannot be read (another
    /// user's process).
    pub fn descriptors(&self, pid: Pid) -> Option<(Vec<PipeEnd>, bool)> {
        let mut ends = Vec::new();
        let mut gpu = false;
        for fd in numbers(&self.path(pid, "fd")).ok()? {
            // Skips descriptors that were closed meanwhile.
            let Ok(descriptor) = FDInfo::from_raw_fd_with_root(&self.root, pid.0, fd) else {
                continue;
            };
            match &descriptor.target {
                FDTarget::Pipe(inode) => ends.push(PipeEnd {
                    fd: descriptor.fd,
                    inode: *inode,
                    // The link's own mode bits show how the descriptor was opened.
                    write: !descriptor.mode().contains(FDPermissions::READ),
                }),
                FDTarget::Path(path) => gpu |= is_accelerator(path),
                _ => {}
            }
        }
        ends.sort_unstable();
        Some((ends, gpu))
    }

    /// Whether its program is a Python interpreter. `None` if that cannot be read, as for another user's process.
    pub fn runs_python(&self, pid: Pid) -> Option<bool> {
        let program = fs::read_link(self.path(pid, "exe")).ok()?;
        let name = program.file_name()?.to_string_lossy();
        Some(name.starts_with("python"))
    }

    /// Returns the counters of a process; cheap enough for each second. All are `None` if the process is gone or its
    /// number was reused.
    pub fn sample(&mut self, key: ProcessKey) -> ProcessSample {
        match self.stat(key.pid) {
            Ok(stat) if stat.key == key => self.sample_with(&stat),
            _ => ProcessSample::default(),
        }
    }

    /// Like [`ProcessReader::sample`], for a process whose `stat` was just read.
    pub fn sample_with(&mut self, stat: &Stat) -> ProcessSample {
        let pid = stat.key.pid;
        let times = self.text(pid, "schedstat");
        let times = times.as_deref().and_then(schedstat);
        let io = self.text(pid, "io").as_deref().and_then(io_counters);
        ProcessSample {
            state: Some(stat.state),
            cpu: self.ticks(stat.cpu_ticks),
            children_cpu: self.ticks(stat.children_cpu_ticks),
            main_cpu: times.map(|(on_cpu, _)| on_cpu),
            main_run_delay: times.map(|(_, delay)| delay),
            major_faults: Some(stat.major_faults),
            threads: Some(stat.threads),
            rss: Some(Bytes(stat.rss_pages.saturating_mul(self.page_size))),
            io,
            ..ProcessSample::default()
        }
    }

    /// Returns the process that a thread belongs to.
    pub fn process_of(&mut self, thread: Pid) -> Option<Pid> {
        let status = self.text(thread, "status")?;
        file::field(&status, "Tgid:")?.parse().ok().map(Pid)
    }

    /// Returns the number of CPUs that the main thread may run on (`Cpus_allowed` of `status`).
    pub fn cpus_allowed(&mut self, pid: Pid) -> Option<u32> {
        cpus_in_mask(&self.text(pid, "status")?)
    }
}

/// Whether the path is that of one accelerator; `nvidiactl` and `nvidia-uvm` are also opened just to list GPUs.
fn is_accelerator(path: &Path) -> bool {
    const FOLDER: &str = "/dev/";
    /// In this order: NVIDIA; AMD and Intel; TPU and Gaudi; TPU; Ascend; Trainium. Each name is followed by a number,
    /// or by nothing.
    const NAMES: [&str; 7] = [
        "nvidia",
        "dri/renderD",
        "accel",
        "accel/accel",
        "vfio/",
        "davinci",
        "neuron",
    ];
    let Some(name) = path.to_str().and_then(|path| path.strip_prefix(FOLDER)) else {
        return false;
    };
    let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name == "kfd"
        || NAMES
            .iter()
            .any(|known| name.strip_prefix(known).is_some_and(is_number))
}

/// Returns the entries of a folder that are numbers: processes, threads or descriptors.
fn numbers(folder: &Path) -> io::Result<Vec<i32>> {
    let names = fs::read_dir(folder)?.flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
}

#[cfg(test)]
mod tests;
