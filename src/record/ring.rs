//! The newest samples of a running job in memory: a recording without a file, which drops its oldest groups.

use std::io;

use super::group::OpenGroup;
use super::samples::Samples;
use crate::sample::Sample;

/// Samples in a limited number of bytes, in the format of a file.
#[derive(Debug)]
pub struct Ring {
    samples: Samples,
    /// The group that is being written.
    open: Option<OpenGroup>,
    /// Total size of all groups in bytes.
    bytes: u64,
    budget: u64,
}

impl Ring {
    /// Returns an empty ring. The newest group is kept, whatever its size.
    pub fn new(budget: usize) -> Self {
        Self {
            samples: Samples::default(),
            open: None,
            bytes: 0,
            budget: budget as u64,
        }
    }

    /// Returns the samples, which can be read like those of a recording.
    pub fn samples(&mut self) -> &mut Samples {
        &mut self.samples
    }

    /// Adds a sample, and drops the oldest groups if the ring is too large.
    ///
    /// # Errors
    /// Returns an error if the sample cannot be compressed.
    pub fn push(&mut self, sample: &Sample) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => OpenGroup::new(0, self.samples.len())?,
        };
        let mut bytes = open.add(sample.clone())?;
        let mut group = open.group;
        if open.is_full() {
            let (end, closed) = open.close()?;
            bytes.extend_from_slice(&end);
            group = closed;
        } else {
            self.open = Some(open);
        }
        self.samples.write(group, &bytes);
        self.bytes += bytes.len() as u64;
        while self.bytes > self.budget && self.samples.groups() > 1 {
            self.bytes -= self.samples.drop_oldest();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sample::literals::training;

    fn ring(budget: usize, seconds: u32) -> Ring {
        let mut ring = Ring::new(budget);
        for at in 0..seconds {
            ring.push(&training(f64::from(at))).unwrap();
        }
        ring
    }

    #[test]
    fn kept_samples_are_readable_while_more_are_added() {
        let mut ring = ring(usize::MAX, 100);
        assert_eq!(ring.samples().len(), 100);
        for number in [99, 0, 63, 64, 70] {
            let (sample, _) = ring.samples().read(number).unwrap();
            assert_eq!(sample.at.since_start, Duration::from_secs(number));
        }
        ring.push(&training(100.0)).unwrap();
        let (newest, _) = ring.samples().read(100).unwrap();
        assert_eq!(
            newest.job,
            training(100.0).job.map(|mut job| {
                // Events of the sample before are not repeated.
                let mut sample = training(100.0);
                sample.drop_events(&training(99.0));
                job.ranks = sample.job.unwrap().ranks;
                job
            })
        );
        assert_eq!(
            ring.samples().at(Duration::from_millis(64_900)).unwrap(),
            64
        );
    }

    #[test]
    fn the_oldest_groups_are_dropped_to_stay_within_the_budget() {
        const BUDGET: usize = 64 << 10;
        let mut ring = ring(BUDGET, 10_000);
        assert!(ring.bytes <= BUDGET as u64, "{}", ring.bytes);
        let samples = ring.samples();
        let first = samples.first();
        assert!(first > 0 && first.is_multiple_of(64), "{first}");
        assert_eq!(samples.len(), 10_000);
        assert!(samples.read(first - 1).is_err());
        let at = |number| Duration::from_secs(number);
        assert_eq!(samples.span(), (at(first), at(9999)));
        assert_eq!(samples.at(Duration::ZERO).unwrap(), first);
        assert_eq!(samples.read(first).unwrap().0.at.since_start, at(first));
    }
}
