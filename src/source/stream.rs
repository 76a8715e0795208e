//! A stream of samples, from a running job or a recording: the API of this folder for other programs.
//!
//! Must not depend on what the samples mean.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::error::Hinted;
use crate::job::{Candidate, Target};
use crate::record::Recording;
use crate::sample::Sample;
use crate::source::sampler::{Options, Sampler, find};
use crate::units::Pid;

/// Iterates over [`Sample`]s, from a training job on this machine or from a recording.
///
/// ```no_run
/// # fn main() -> Result<(), pipetop::Hinted> {
/// let source = pipetop::Source::recording("run.rec".as_ref())?;
/// println!("{} samples", source.count());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Source(SourceKind);

#[derive(Debug)]
enum SourceKind {
    Job {
        samples: mpsc::Receiver<Sample>,
        _sampler: Sampler,
    },
    Recording {
        recording: Recording,
        numbers: RangeInclusive<u64>,
    },
}

impl Source {
    /// Watches the training job of this process and returns a sample per interval. Continues after the end of the job,
    /// which its samples show.
    ///
    /// # Errors
    /// Returns an error if the process does not run training, or no thread can be started.
    pub fn process(pid: i32, interval: Duration) -> Result<Self, Hinted> {
        let options = Options {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            nvml_lib: None,
            gpus: None,
            interval,
            target: Target::Pid(Pid(pid)),
            probe: None,
            recorder: None,
            tee: None,
            lacking: Vec::new(),
        };
        let job = find(&options.proc_root, &options.target);
        let job = job.map_err(|error| Hinted::new(error.to_string(), error.hint()))?;
        Self::job(options, job)
    }

    /// Reads a recording that `pipetop --record` wrote, from its first sample to its last.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read as a recording.
    pub fn recording(path: &Path) -> Result<Self, Hinted> {
        let recording = Recording::open(path);
        let recording = recording.map_err(|error| Hinted::new(error.to_string(), error.hint()))?;
        let last = recording.len().saturating_sub(1);
        Ok(Self::part(recording, 0..=last))
    }

    /// Returns samples according to `options`; `job` is what the target was resolved to, if that was already done.
    pub(crate) fn job(options: Options, job: Option<Candidate>) -> Result<Self, Hinted> {
        let (send, samples) = mpsc::channel();
        let sampler = Sampler::start(options, job, move |sample| send.send(sample).is_ok());
        let sampler = sampler.map_err(|error| Hinted::no_thread(&error))?;
        Ok(Self(SourceKind::Job {
            samples,
            _sampler: sampler,
        }))
    }

    /// Returns the samples of a recording with these numbers.
    pub(crate) fn part(recording: Recording, numbers: RangeInclusive<u64>) -> Self {
        Self(SourceKind::Recording { recording, numbers })
    }
}

/// Waits for the next sample of a job. A damaged part of a recording yields one error; the samples after it follow.
impl Iterator for Source {
    type Item = Result<Sample, Hinted>;

    fn next(&mut self) -> Option<Self::Item> {
        let (recording, numbers) = match &mut self.0 {
            SourceKind::Job { samples, .. } => return samples.recv().ok().map(Ok),
            SourceKind::Recording { recording, numbers } => (recording, numbers),
        };
        let number = numbers.next()?;
        Some(match recording.read(number) {
            Ok((sample, _)) => Ok(sample),
            Err(error) => {
                let last = *numbers.end();
                *numbers = recording.next_group_after(number).unwrap_or(last + 1)..=last;
                Err(Hinted::new(error.to_string(), error.hint()))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::record;
    use crate::sample::literals::training;
    use crate::source::replay::readable;

    /// More samples than a group of a recording has.
    const SAMPLES: u32 = 200;

    fn record(path: &Path) {
        let options = record::RecordOptions {
            path: path.to_owned(),
            size: record::SIZE,
            command_lines: true,
            interval: Duration::from_secs(1),
        };
        let mut writer = record::Writer::create(&options).unwrap();
        for at in 0..SAMPLES {
            writer.write(&training(f64::from(at))).unwrap();
        }
        writer.finish().unwrap();
    }

    fn times(source: Source) -> Vec<Result<u64, Hinted>> {
        let time = |sample: Sample| sample.at.since_start.as_secs();
        source.map(|sample| sample.map(time)).collect()
    }

    /// Overwrites a group of samples.
    fn damage(path: &Path, group: usize) {
        let damaged = Recording::open(path).unwrap().group(group);
        let mut bytes = fs::read(path).unwrap();
        bytes[damaged][20..].fill(0);
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn a_recording_gives_its_samples_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.rec");
        record(&path);
        let times = times(Source::recording(&path).unwrap());
        assert!(times.into_iter().eq((0..SAMPLES.into()).map(Ok)));
    }

    #[test]
    fn of_a_damaged_part_there_is_one_error_and_then_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.rec");
        record(&path);
        damage(&path, 1);
        let times = times(Source::recording(&path).unwrap());
        let errors = times.iter().filter(|time| time.is_err()).count();
        assert_eq!(
            (errors, times.last()),
            (1, Some(&Ok(u64::from(SAMPLES) - 1)))
        );
        assert!(times.len() < SAMPLES as usize);
    }

    #[test]
    fn what_is_damaged_at_the_start_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.rec");
        record(&path);
        damage(&path, 0);
        let mut recording = Recording::open(&path).unwrap();
        let next = recording.next_group_after(0).unwrap();
        assert_eq!(readable(&mut recording, 3..=150), Some(next..=150));
        assert_eq!(readable(&mut recording, 100..=150), Some(100..=150));
        assert_eq!(readable(&mut recording, 0..=10), None);
    }

    #[test]
    fn unwatchable_or_unreadable_sources_are_errors() {
        let error = Source::process(i32::MAX, Duration::from_secs(1)).unwrap_err();
        assert!(error.message.contains(&i32::MAX.to_string()), "{error}");
        assert!(Source::recording(Path::new("/proc/self/no-such-file")).is_err());
    }
}
