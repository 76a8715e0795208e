//! What other programs use of the CPUs while an experiment runs: its figures are of a machine without them.
//!
//! Reads the machine's busy time and that of this process and its children before and after.

use std::io::Write;
use std::time::Duration;

use crate::lab::experiments::sweep::text::BUSY;
use crate::options::Places;
use crate::source::clock::Clock;
use crate::source::host::{Host, cpu_with_children};

/// The time before the experiment.
pub(super) struct Meanwhile {
    host: Host,
    clock: Clock,
    before: Option<Times>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    cpus: f64,
    /// Of all CPUs, and what of that is ours, in seconds.
    busy: f64,
    ours: f64,
}

impl Meanwhile {
    pub(super) fn begin(places: &Places) -> Self {
        let host = Host::new(&places.proc_root, &places.sys_root);
        Self {
            before: times(&host),
            clock: Clock::start(),
            host,
        }
    }

    /// Says on standard error if others used much, once the experiment's processes have ended.
    pub(super) fn warn(&self) {
        let (Some(before), Some(now)) = (self.before, times(&self.host)) else {
            return;
        };
        if let Some(text) = warning(before, now, self.clock.since_start()) {
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }
}

fn times(host: &Host) -> Option<Times> {
    let (sample, _) = host.read();
    Some(Times {
        cpus: f64::from(sample.cpus),
        busy: sample.cpu_busy?.as_secs_f64(),
        ours: cpu_with_children()?,
    })
}

fn warning(before: Times, now: Times, took: Duration) -> Option<String> {
    let others = (now.busy - before.busy) - (now.ours - before.ours);
    let others = others / took.as_secs_f64();
    let cpus = now.cpus;
    (others >= BUSY * cpus).then(|| {
        format!(
            "warning: other programs used {others:.1} of {cpus} CPUs meanwhile: repeat it on a quieter machine\n"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_is_what_is_left() {
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
            said.starts_with("warning: other programs used 1.5 of 2 CPUs meanwhile"),
            "{said}"
        );
    }
}
