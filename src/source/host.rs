//! The machine as a whole: CPUs, memory, pressure; and the cost of pipetop itself.
//!
//! Reads `/proc/stat`, `/proc/meminfo`, `/proc/vmstat`, `/proc/pressure/*`, `/proc/self/statm` and the list of online
//! CPUs, each at most once a second. Must not depend on the job's processes.
//!
//! `sysinfo` has such figures, too, but only from the real `/proc`, while this reader takes a root. The types of
//! `procfs` for `stat` and `meminfo` are not used: they reject the whole file if one line is odd or one of some twenty
//! is missing, as in sandboxes and containers that write these files themselves (gVisor omits `Slab` and
//! `Committed_AS`). Here each figure that can be read is read.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::process::StatM;
use rustix::time::{ClockId, clock_gettime};

use crate::sample::{Gap, HostSample, OwnSample, PressureSample};
use crate::source::file::{self, unparsable, unreadable};
use crate::units::Bytes;

/// Reads the whole machine.
pub fn read(proc_root: &Path, sys_root: &Path) -> (HostSample, Vec<Gap>) {
    let mut gaps = Vec::new();
    let mut sample = HostSample::default();
    let mut listed = 0;
    let stat = proc_root.join("stat");
    match file::read(&stat) {
        Ok(text) => {
            (sample.cpu_busy, sample.cpu_stolen) =
                cpu_times(&text, rustix::param::clock_ticks_per_second()).unzip();
            listed = cpus_listed(&text);
            if sample.cpu_busy.is_none() || listed == 0 {
                gaps.push(unparsable("host", &stat));
            }
        }
        Err(error) => gaps.push(unreadable("host", &stat, &error)),
    }
    // If /sys is masked, as in some containers, the lines of /proc/stat are still there. Without either there is a
    // gap, and shares of 0 CPUs are not computed.
    let online = file::read(&sys_root.join("devices/system/cpu/online"));
    let online = online.ok().as_deref().and_then(cpus_in_list);
    sample.cpus = online.unwrap_or(listed);
    let memory = proc_root.join("meminfo");
    match file::read(&memory) {
        Ok(text) => {
            sample.mem_total = meminfo(&text, "MemTotal:");
            sample.mem_available = meminfo(&text, "MemAvailable:");
            if sample.mem_total.is_none() || sample.mem_available.is_none() {
                gaps.push(unparsable("host", &memory));
            }
        }
        Err(error) => gaps.push(unreadable("host", &memory, &error)),
    }
    let vmstat = file::read(&proc_root.join("vmstat")).unwrap_or_default();
    sample.swapped_in = file::keyed(&vmstat, "pswpin");
    match pressure(|resource| proc_root.join("pressure").join(resource)) {
        Ok(pressure) => sample.pressure = Some(pressure),
        Err(gap) => gaps.push(gap),
    }
    (sample, gaps)
}

/// Reads the totals of the three pressure files of the machine or of one control group, since boot or since the group
/// was created. `path` returns the file of a resource: `cpu`, `io`, `memory`. Returns an error only if none of the
/// three is known.
pub fn pressure(path: impl Fn(&str) -> PathBuf) -> Result<PressureSample, Gap> {
    let cpu = stalled(&path("cpu"));
    let sample = PressureSample {
        cpu: cpu.as_ref().ok().copied(),
        io: stalled(&path("io")).ok(),
        memory: stalled(&path("memory")).ok(),
    };
    match cpu {
        Err(error) if sample == PressureSample::default() => {
            Err(pressure_gap(&path("cpu"), &error))
        }
        _ => Ok(sample),
    }
}

fn pressure_gap(path: &Path, error: &io::Error) -> Gap {
    let (reason, hint) = match error.kind() {
        io::ErrorKind::NotFound => (
            "no pressure figures: the kernel lacks PSI or hides it here",
            "use a kernel with CONFIG_PSI=y",
        ),
        // Built in, but off unless the kernel command line enables it: the default of some distributions.
        io::ErrorKind::Unsupported => (
            "pressure figures (PSI) are disabled in the kernel",
            "boot with psi=1 on the kernel command line",
        ),
        _ => return unreadable("psi", path, error),
    };
    Gap::new("psi", reason, hint)
}

/// Returns the time in which at least one task was stalled: the total of the `some` line. Only that line is parsed,
/// because older kernels have no second line for the CPU and procfs rejects a file without it.
fn stalled(path: &Path) -> io::Result<Duration> {
    some_total(&file::read(path)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn some_total(text: &str) -> Option<Duration> {
    text.lines()
        .find(|line| line.starts_with("some ") && line.is_ascii())
        .and_then(|line| procfs::parse_pressure_record(line).ok())
        .map(|record| Duration::from_micros(record.total))
}

/// Reads the cost of pipetop itself: the CPU time of all own threads from the kernel's process clock. `late` is copied
/// from the sampler.
pub fn own(proc_root: &Path, late: u64) -> OwnSample {
    let statm = file::read(&proc_root.join("self/statm")).ok();
    OwnSample {
        cpu: Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok(),
        rss: statm.as_deref().and_then(file::parse).and_then(resident),
        late,
    }
}

fn resident(statm: StatM) -> Option<Bytes> {
    let size = rustix::param::page_size() as u64;
    statm.resident.checked_mul(size).map(Bytes)
}

/// Returns the busy time of all CPUs together, from the `cpu` line of `/proc/stat` (user, nice, system, interrupts and
/// steal), and steal alone. Steal counts as busy, because the CPU was not available; waiting for I/O does not. Guest
/// time is already included in user time.
fn cpu_times(stat: &str, ticks_per_second: u64) -> Option<(Duration, Duration)> {
    let mut times = stat
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))?
        .split_ascii_whitespace()
        .map(|ticks| ticks.parse::<u64>().ok());
    let (mut busy, mut last) = (0_u64, 0);
    for name in [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ] {
        let ticks = times.next()??;
        if !matches!(name, "idle" | "iowait") {
            busy = busy.checked_add(ticks)?;
        }
        last = ticks;
    }
    let time = |ticks: u64| {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
        u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
    };
    time(busy).zip(time(last))
}

/// Counts the lines `cpu0`, `cpu1`, ...: one for each online CPU.
fn cpus_listed(stat: &str) -> u32 {
    let cpus = stat.lines().filter(|line| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    });
    u32::try_from(cpus.count()).unwrap_or(u32::MAX)
}

/// Returns the number of CPUs in a list such as `0-3,8,10-11`. `None` if it is empty or malformed.
pub fn cpus_in_list(list: &str) -> Option<u32> {
    let mut cpus = 0_u32;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        cpus = cpus.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(cpus)
}

/// Returns a figure of `/proc/meminfo`, where all figures are in KiB.
fn meminfo(text: &str, name: &str) -> Option<Bytes> {
    let figure = file::field(text, name)?;
    let kib: u64 = figure.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024).map(Bytes)
}

#[cfg(test)]
mod tests {
    use support::fuzz;

    use super::*;

    #[test]
    fn busy_leaves_out_idle_and_waiting_and_counts_guests_once() {
        let stat = "cpu  10 20 30 1000 500 1 2 3 7 7\ncpu0 1 1\ncpu1 1 1\nintr 5\n";
        let [busy, stolen] = [660, 30].map(Duration::from_millis);
        assert_eq!(cpu_times(stat, 100), Some((busy, stolen)));
        assert_eq!(cpus_listed(stat), 2);
        assert_eq!(cpu_times("cpu  10 20 30\n", 100), None);
        assert_eq!(cpu_times("cpu  10 20 x 1 1 1 1 1\n", 100), None);
        assert_eq!(cpu_times("", 100), None);
    }

    #[test]
    fn a_counter_has_the_whole_name() {
        let vmstat = "pswpin_other 1\npswpin 42\npswpout 7\n";
        assert_eq!(file::keyed(vmstat, "pswpin"), Some(42));
        assert_eq!(file::keyed("pswpin x\n", "pswpin"), None);
        assert_eq!(file::keyed("", "pswpin"), None);
    }

    #[test]
    fn pressure_that_is_built_in_but_off_names_the_boot_option() {
        let eopnotsupp = io::Error::from(rustix::io::Errno::OPNOTSUPP);
        let hint = "boot with psi=1 on the kernel command line";
        assert_eq!(pressure_gap(Path::new("cpu"), &eopnotsupp).hint, hint);
    }

    #[test]
    fn a_cpu_list_is_counted_or_refused() {
        assert_eq!(cpus_in_list("0-3,8,10-11\n"), Some(7));
        assert_eq!(cpus_in_list("5"), Some(1));
        for wrong in ["", "\n", "3-1", "0-4294967295", "a", "1,,2", "0-"] {
            assert_eq!(cpus_in_list(wrong), None, "{wrong}");
        }
    }

    proptest::proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_files_of_the_host(text in fuzz::text([
            "cpu  10 20 30 1000 500 1 2 3 7 7\ncpu0 1 1\ncpu1 1 1\nintr 5\n",
            "MemTotal:       16166320 kB\nMemFree: 1 kB\nMemAvailable:   12137184 kB\n",
            "0-3,8,10-11\n",
            "some avg10=1.42 avg60=0.56 avg300=0.35 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
            "4096 2048 512 1 0 999 0\n",
        ])) {
            let _ = cpu_times(&text, 100);
            let _ = cpus_listed(&text);
            let _ = cpus_in_list(&text);
            let _ = (meminfo(&text, "MemTotal:"), meminfo(&text, "MemAvailable:"));
            let _ = some_total(&text);
            let _ = file::parse(&text).and_then(resident);
        }
    }
}
