//! The CPU use of other programs while an experiment runs: its figures assume a machine without them.
//!
//! Reads the busy time of the machine, and that of this process and its children, before and after.

use std::path::Path;
use std::time::Duration;

use procfs::process::Process;

use crate::error::write_error;
use crate::lab::experiments::sweep::text::BUSY;
use crate::options::PathArgs;
use crate::source::clock::Clock;
use crate::source::host;

#[derive(Debug, Clone, Copy)]
struct Times {
    cpus: f64,
    /// Busy time of all CPUs, and the part of it that is ours, in seconds.
    busy: f64,
    ours: f64,
}

/// Starts to watch the other programs. The returned function warns on standard error if they used much CPU time; call
/// it after the experiment's processes have ended.
pub(super) fn watch_others(places: &PathArgs) -> impl FnOnce() {
    let (proc_root, sys_root) = (places.proc_root.clone(), places.sys_root.clone());
    let times = move || times(&proc_root, &sys_root);
    let (before, clock) = (times(), Clock::start());
    move || {
        let warning = before
            .zip(times())
            .and_then(|(before, now)| warning(before, now, clock.since_start()));
        if let Some(text) = warning {
            write_error(text);
        }
    }
}

fn times(proc_root: &Path, sys_root: &Path) -> Option<Times> {
    let (sample, _) = host::read(proc_root, sys_root);
    Some(Times {
        cpus: f64::from(sample.cpus),
        busy: sample.cpu_busy?.as_secs_f64(),
        ours: cpu_with_children()?,
    })
}

/// Returns the CPU time of this process and of its children that have ended, in seconds.
fn cpu_with_children() -> Option<f64> {
    let own = Process::myself().and_then(|own| own.stat()).ok()?;
    let of_children = u64::try_from(own.cutime + own.cstime).ok()?;
    let ticks = own.utime + own.stime + of_children;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn warning(before: Times, now: Times, took: Duration) -> Option<String> {
    let others = (now.busy - before.busy) - (now.ours - before.ours);
    let others = others / took.as_secs_f64();
    let cpus = now.cpus;
    (others >= BUSY * cpus).then(|| {
        format!(
            "warning: other programs used {others:.1} of {cpus} CPUs: repeat on a quieter machine"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_of_others_is_the_remainder() {
        let at = |busy, ours| Times {
            cpus: 2.0,
            busy,
            ours,
        };
        let after = |busy: f64, ours: f64| {
            let now = at(100.0 + busy, 3.0 + ours);
            warning(at(100.0, 3.0), now, Duration::from_secs(10))
        };
        assert_eq!(after(18.0, 18.0), None);
        assert_eq!(after(18.0, 15.0), None);
        let said = after(19.0, 4.0).unwrap();
        assert!(
            said.starts_with("warning: other programs used 1.5 of 2 CPUs: "),
            "{said}"
        );
    }
}
