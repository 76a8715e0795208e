//! The compute time of a step: as set, or a share of the load time on this machine.

use std::time::Duration;

use super::batches::BatchMaker;
use super::clock::now;
use super::settings::{JobSettings, StepTime};
use crate::error::Hinted;

/// Number of batches that are timed.
const MEASURED: u64 = 3;

/// Returns the step time. If it is a share of the load time, that is the time per batch with as many workers as can run
/// at once.
///
/// # Errors
/// Returns an error if it must be measured and no batch can be made.
pub fn step_time(settings: &JobSettings) -> Result<Duration, Hinted> {
    let share = match settings.step {
        StepTime::Fixed(step) => return Ok(step),
        StepTime::OfLoading(share) => share,
    };
    let mut batches = BatchMaker::new(settings, 0);
    let mut memory = vec![0_u32; settings.batch_bytes() / size_of::<u32>()];
    let memory = bytemuck::cast_slice_mut(&mut memory);
    // The first batch includes one-time work.
    batches.make(0, memory)?;
    let (began, delayed) = (now(), run_delay());
    for batch in 1..=MEASURED {
        batches.make(batch, memory)?;
    }
    // Time spent waiting for a CPU is left out: if other programs lengthened the step, it would hide the waits that are
    // to be shown.
    let others = run_delay().saturating_sub(delayed);
    let one = Duration::from_nanos((now() - began).saturating_sub(others) / MEASURED);
    let at_once = settings.workers.min(cpus_allowed()).max(1);
    Ok(one.mul_f64(share / f64::from(at_once)))
}

/// Returns how many nanoseconds this thread was ready to run while others were on the CPU; 0 if the kernel does not
/// count them.
fn run_delay() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat").map_or(0, |text| delay(&text))
}

fn delay(schedstat: &str) -> u64 {
    let delay = schedstat.split_whitespace().nth(1);
    delay.and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

/// Returns how many CPUs this process and its children may use, by affinity and quota.
pub fn cpus_allowed() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_for_how_long_others_were_on_the_cpu() {
        assert_eq!(delay("4000 1500 7\n"), 1500);
        assert_eq!((delay(""), delay("4000")), (0, 0));
    }
}
