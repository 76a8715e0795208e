//! The machine as a whole: CPUs, memory, pressure; and what pipetop itself costs.
//!
//! Reads `/proc/stat`, `/proc/meminfo`, `/proc/pressure/*`, `/proc/self/statm` and the list of online
//! CPUs. Knows no process of the job.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::sample::{Gap, HostSample, OwnSample, PressureSample};
use crate::source::file::KernelFile;
use crate::units::Bytes;

/// The readers of the whole machine.
#[derive(Debug)]
pub struct Host {
    online: KernelFile,
    stat: KernelFile,
    meminfo: KernelFile,
    pressure: Pressure,
}

impl Host {
    pub fn new(proc_root: &Path, sys_root: &Path) -> Self {
        Self {
            online: KernelFile::new(sys_root.join("devices/system/cpu/online")),
            stat: KernelFile::new(proc_root.join("stat")),
            meminfo: KernelFile::new(proc_root.join("meminfo")),
            pressure: Pressure::new(|resource| proc_root.join("pressure").join(resource)),
        }
    }

    pub fn read(&mut self) -> (HostSample, Vec<Gap>) {
        let mut gaps = Vec::new();
        let mut sample = HostSample::default();
        let mut listed = 0;
        match self.stat.read() {
            Ok(text) => {
                sample.cpu_busy = cpu_busy(text, rustix::param::clock_ticks_per_second());
                listed = cpus_listed(text);
                if sample.cpu_busy.is_none() || listed == 0 {
                    gaps.push(self.stat.gap("host", &io::ErrorKind::InvalidData.into()));
                }
            }
            Err(error) => gaps.push(self.stat.gap("host", &error)),
        }
        // A masked /sys, as some containers have it, still leaves the lines of /proc/stat. Without either
        // there is a gap, and no share can be taken of 0 CPUs.
        sample.cpus = match self.online.read().ok().and_then(cpus_in_list) {
            Some(cpus) => cpus,
            None => listed,
        };
        match self.meminfo.read() {
            Ok(text) => {
                sample.mem_total = meminfo(text, "MemTotal:");
                sample.mem_available = meminfo(text, "MemAvailable:");
                if sample.mem_total.is_none() || sample.mem_available.is_none() {
                    gaps.push(self.meminfo.gap("host", &io::ErrorKind::InvalidData.into()));
                }
            }
            Err(error) => gaps.push(self.meminfo.gap("host", &error)),
        }
        match self.pressure.read() {
            Ok(pressure) => sample.pressure = Some(pressure),
            Err(gap) => gaps.push(gap),
        }
        (sample, gaps)
    }
}

/// The three pressure files of the machine or of one control group.
#[derive(Debug)]
pub struct Pressure {
    cpu: KernelFile,
    io: KernelFile,
    memory: KernelFile,
}

impl Pressure {
    /// `path` names the file of a resource: `cpu`, `io`, `memory`.
    pub fn new(path: impl Fn(&str) -> std::path::PathBuf) -> Self {
        Self {
            cpu: KernelFile::new(path("cpu")),
            io: KernelFile::new(path("io")),
            memory: KernelFile::new(path("memory")),
        }
    }

    /// Totals since boot, or since the group was made. An error only where none of the three is known.
    pub fn read(&mut self) -> Result<PressureSample, Gap> {
        let cpu = stalled(&mut self.cpu);
        let sample = PressureSample {
            cpu: cpu.as_ref().ok().copied(),
            io: stalled(&mut self.io).ok(),
            memory: stalled(&mut self.memory).ok(),
        };
        match cpu {
            Err(error) if sample == PressureSample::default() => Err(self.gap(&error)),
            _ => Ok(sample),
        }
    }

    fn gap(&self, error: &io::Error) -> Gap {
        let (reason, hint) = match error.kind() {
            io::ErrorKind::NotFound => (
                "the kernel was built without pressure figures (PSI), or hides them here",
                "a kernel with CONFIG_PSI=y",
            ),
            // Built in, but off unless the boot line asks for it: the default of some distributions.
            io::ErrorKind::Unsupported => (
                "the kernel has pressure figures (PSI) switched off",
                "boot with psi=1 on the kernel command line",
            ),
            _ => return self.cpu.gap("psi", error),
        };
        Gap {
            source: "psi".to_owned(),
            reason: reason.to_owned(),
            hint: hint.to_owned(),
        }
    }
}

/// Time in which at least one task was stalled: the total of the `some` line, in microseconds.
fn stalled(file: &mut KernelFile) -> io::Result<Duration> {
    let text = file.read()?;
    text.lines()
        .find_map(|line| line.strip_prefix("some "))
        .and_then(|line| {
            line.split_ascii_whitespace()
                .find_map(|word| word.strip_prefix("total="))
        })
        .and_then(|total| total.parse().ok())
        .map(Duration::from_micros)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// What pipetop itself costs.
#[derive(Debug)]
pub struct Own {
    statm: KernelFile,
}

impl Own {
    pub fn new(proc_root: &Path) -> Self {
        Self {
            statm: KernelFile::new(proc_root.join("self/statm")),
        }
    }

    /// CPU time of all own threads from the kernel's clock of the process; `late` is the sampler's.
    pub fn read(&mut self, late: u64) -> OwnSample {
        OwnSample {
            cpu: Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok(),
            rss: self.statm.read().ok().and_then(resident),
            late,
        }
    }
}

/// The second number of `statm`, in pages.
fn resident(statm: &str) -> Option<Bytes> {
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages
        .checked_mul(rustix::param::page_size() as u64)
        .map(Bytes)
}

/// Busy time of all CPUs together, from the `cpu` line of `/proc/stat`: user, nice, system, interrupts
/// and steal. Steal counts, for the CPU was not to be had; waiting for I/O does not; guest time is in
/// user time already.
fn cpu_busy(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    let mut times = stat
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))?
        .split_ascii_whitespace()
        .map(|ticks| ticks.parse::<u64>().ok());
    let mut busy = 0_u64;
    for name in [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ] {
        let ticks = times.next()??;
        if !matches!(name, "idle" | "iowait") {
            busy = busy.checked_add(ticks)?;
        }
    }
    let nanoseconds = u128::from(busy) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

/// Lines `cpu0`, `cpu1`, ...: one for each CPU that is online.
fn cpus_listed(stat: &str) -> u32 {
    let cpus = stat.lines().filter(|line| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    });
    u32::try_from(cpus.count()).unwrap_or(u32::MAX)
}

/// How many CPUs a list such as `0-3,8,10-11` names. `None` where it is empty or not such a list.
pub fn cpus_in_list(list: &str) -> Option<u32> {
    let mut cpus = 0_u32;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        cpus = cpus.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(cpus)
}

/// A figure of `/proc/meminfo`, which are all in KiB.
fn meminfo(text: &str, name: &str) -> Option<Bytes> {
    let figure = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = figure.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_leaves_out_idle_and_waiting_and_counts_guests_once() {
        let stat = "cpu  10 20 30 1000 500 1 2 3 7 7\ncpu0 1 1\ncpu1 1 1\nintr 5\n";
        assert_eq!(cpu_busy(stat, 100), Some(Duration::from_millis(660)));
        assert_eq!(cpus_listed(stat), 2);
        assert_eq!(cpu_busy("cpu  10 20 30\n", 100), None);
        assert_eq!(cpu_busy("cpu  10 20 x 1 1 1 1 1\n", 100), None);
        assert_eq!(cpu_busy("", 100), None);
    }

    #[test]
    fn pressure_that_is_built_in_but_off_names_the_boot_option() {
        let pressure = Pressure::new(|what| what.into());
        let eopnotsupp = io::Error::from(rustix::io::Errno::OPNOTSUPP);
        let hint = "boot with psi=1 on the kernel command line";
        assert_eq!(pressure.gap(&eopnotsupp).hint, hint);
    }

    #[test]
    fn a_cpu_list_is_counted_or_refused() {
        assert_eq!(cpus_in_list("0-3,8,10-11\n"), Some(7));
        assert_eq!(cpus_in_list("5"), Some(1));
        for wrong in ["", "\n", "3-1", "0-4294967295", "a", "1,,2", "0-"] {
            assert_eq!(cpus_in_list(wrong), None, "{wrong}");
        }
    }
}
