//! Growth of a rank's own reports between two samples, and how much of that time they cover.
//!
//! Does not depend on what was seen from outside. The result is `None` if a sum went backwards or no step ended.

use crate::model::interval::{SampleInterval, count_grown, seconds_grown};
use crate::model::rates::DeviceRates;
use crate::sample::{DeviceTime, Reported};
use crate::units::Share;

/// Minimum share of the time that reports must cover to be used for all of it.
const MIN_COVERAGE: f64 = 0.8;
/// Maximum overrun of computing beyond the steps' ends, as a share of the step time: clocks differ a little.
const AT_REST: f64 = 0.01;

/// The steps that ended between two samples. Times are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grown {
    /// Number of steps with a report, and of those known to have none.
    pub(super) steps: f64,
    pub(super) lost: f64,
    pub(super) waited: f64,
    pub(super) stepped: f64,
    /// From the end of the last step before to the end of the newest.
    spanned: f64,
    /// The same, plus the time by which the step in progress exceeds the mean step.
    whole: f64,
    pub(super) device: DeviceRates,
}

impl Grown {
    /// Returns `None` if no step ended in the time, or if the sums restarted.
    pub(super) fn between(
        older: Option<&Reported>,
        newer: Option<&Reported>,
        interval: &SampleInterval,
    ) -> Option<Self> {
        let newer = newer?;
        let nothing = Reported::default();
        let before = older.unwrap_or(&nothing);
        let steps = count_grown(Some(before.steps), Some(newer.steps))?;
        let waited = seconds_grown(Some(before.waited), Some(newer.waited))?;
        let stepped = seconds_grown(Some(before.stepped), Some(newer.stepped))?;
        let accounted = waited + stepped;
        if steps == 0.0 || accounted <= 0.0 {
            return None;
        }
        let last = newer.last_to.as_secs_f64();
        let (begun, from) = match older {
            Some(older) => (older.last_to.as_secs_f64(), older.last_to.as_secs_f64()),
            // Steps before the first report may have gone unreported.
            None => (
                interval.from.max(newer.first_from.as_secs_f64()),
                interval.from,
            ),
        };
        // The step in progress counts like the others; only the time beyond their mean is unreported.
        let under_way = (interval.to - last - accounted / steps).max(0.0);
        Some(Self {
            steps,
            lost: count_grown(Some(before.lost), Some(newer.lost)).unwrap_or(0.0),
            waited,
            stepped,
            spanned: last - begun,
            whole: (last - from + under_way).max(accounted),
            device: device(before, newer),
        })
    }

    /// Returns whether the reports cover enough of the time to be used for all of it.
    pub(super) fn covers(&self) -> bool {
        self.unreported().0 <= 1.0 - MIN_COVERAGE
    }

    /// Returns the share of the time that is not covered by a report.
    pub(super) fn unreported(&self) -> Share {
        Share(1.0 - (self.waited + self.stepped) / self.whole).clamped()
    }

    pub(super) fn wait(&self) -> Share {
        Share(self.waited / (self.waited + self.stepped)).clamped()
    }

    pub(super) fn per_second(&self) -> Option<f64> {
        (self.spanned > 0.0).then(|| (self.steps + self.lost) / self.spanned)
    }
}

fn device(older: &Reported, newer: &Reported) -> DeviceRates {
    let share = |of: fn(&Reported) -> Option<DeviceTime>| {
        let (older, newer) = (of(older).unwrap_or_default(), of(newer)?);
        let took = seconds_grown(Some(older.took), Some(newer.took))?;
        let whole = seconds_grown(Some(older.of), Some(newer.of))?;
        Share::of(took, whole)
    };
    let busy = share(|reported| reported.busy);
    let overrun = seconds_grown(Some(older.overrun), Some(newer.overrun));
    let stepped = seconds_grown(Some(older.stepped), Some(newer.stepped));
    let at_rest = overrun
        .zip(stepped)
        .is_some_and(|(overrun, stepped)| overrun <= AT_REST * stepped);
    DeviceRates {
        name: newer.device.clone(),
        notice: newer.notice.clone(),
        rests_with_each_step: busy.is_some() && at_rest,
        busy,
        idle_in_waits: share(|reported| reported.idle),
        copying: share(|reported| reported.copy),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::between;
    use crate::model::literals::{first_rank, secs, training, wait};
    use crate::model::rates::RankRates;
    use crate::sample::{BatchClock, BatchCount, Sample, Wait};

    /// Returns a sample of ten steps per second since time 0, each with a wait of 25 ms and 75 ms of work; polls see 60
    /// % of the time in waits.
    fn reporting(at: f64) -> Sample {
        let mut sample = training(at);
        let steps = Duration::as_millis(&secs(at)) / 100;
        let steps = u64::try_from(steps).unwrap();
        let count = u32::try_from(steps).unwrap();
        let rank = first_rank(&mut sample);
        rank.reported = Some(Reported {
            steps,
            waited: secs(0.025) * count,
            stepped: secs(0.075) * count,
            last_to: secs(0.1) * count,
            ..Reported::default()
        });
        rank.loaders[0].batches = Some(BatchCount {
            count: steps,
            source: BatchClock::Probe,
        });
        rank.waits = waits(at, |_| 0.025).into();
        sample
    }

    /// Returns the waits of the steps in the second before `at`.
    fn waits(at: f64, length: impl Fn(u32) -> f64) -> Vec<Wait> {
        let first = at - 1.0;
        (0..10_u32)
            .map(|n| {
                let from = first + 0.1 * f64::from(n);
                let batch = (from * 10.0).round();
                wait(
                    from,
                    from + length(n),
                    (0_u64..10_000).find(|number| (*number as f64 - batch).abs() < 0.5),
                )
            })
            .collect()
    }

    fn reported_of(sample: &mut Sample) -> &mut Reported {
        first_rank(sample).reported.as_mut().unwrap()
    }

    fn rank(older: &Sample, newer: &Sample) -> RankRates {
        let mut job = between(older, newer).unwrap().job.unwrap();
        job.ranks.remove(0)
    }

    fn close(value: impl Into<Option<f64>>, expected: f64) {
        let value = value.into().expect("known");
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn reports_that_cover_the_time_are_exact() {
        let rank = rank(&reporting(4.0), &reporting(6.0));
        let wait = rank.wait.unwrap();
        close(wait.share.0, 0.25);
        assert_eq!(wait.polls, 20);
        close(wait.low.0, 0.24);
        close(wait.high.0, 0.26);
        // Polls show the parts of the wait: five sixths waiting, one sixth receiving.
        close(rank.waiting.map(|share| share.0), 0.25 * 5.0 / 6.0);
        close(rank.receiving.map(|share| share.0), 0.25 / 6.0);
        assert_eq!(rank.step.batches, Some(20));
        close(rank.step.batches_per_s, 10.0);
        close(rank.step.wait_ms, 25.0);
        close(rank.step.step_ms, 75.0);
        // Two workers that are busy 90 % of the time, for a batch every 100 ms.
        close(rank.step.load_ms, 180.0);
    }

    #[test]
    fn waits_that_differ_widen_the_interval() {
        let mut newer = reporting(6.0);
        first_rank(&mut newer).waits =
            waits(6.0, |n| if n % 5 == 0 { 0.095 } else { 0.0075 }).into();
        let wait = rank(&reporting(4.0), &newer).wait.unwrap();
        close(wait.share.0, 0.25);
        assert!(wait.low.0 < 0.2 && wait.high.0 > 0.3, "{wait:?}");
    }

    #[test]
    fn sparse_reports_fall_back_to_polls() {
        // The trainer has hung since second 7.
        let mut newer = reporting(10.0);
        *reported_of(&mut newer) = first_rank(&mut reporting(7.0)).reported.clone().unwrap();
        let hung = rank(&reporting(4.0), &newer);
        close(hung.wait.map(|wait| wait.share.0), 0.6);
        close(hung.waiting.map(|share| share.0), 0.5);
        // Nothing was reported in this time.
        let silent = rank(&newer, &{
            let mut later = reporting(12.0);
            *reported_of(&mut later) = reported_of(&mut newer.clone()).clone();
            later
        });
        close(silent.wait.map(|wait| wait.share.0), 0.6);
        // Reports start half way.
        let mut older = reporting(4.0);
        first_rank(&mut older).reported = None;
        let mut begun = reporting(8.0);
        let half = reported_of(&mut begun);
        (half.steps, half.waited, half.stepped) = (20, secs(0.5), secs(1.5));
        half.first_from = secs(6.0);
        close(rank(&older, &begun).wait.map(|wait| wait.share.0), 0.6);
        // The counts restarted.
        let anew = rank(&reporting(8.0), &{
            let mut newer = reporting(10.0);
            *reported_of(&mut newer) = reported_of(&mut reporting(2.0)).clone();
            newer
        });
        close(anew.wait.map(|wait| wait.share.0), 0.6);
    }

    #[test]
    fn a_long_step_in_progress_is_not_idle_time() {
        // One step of 1.6 s ends 0.2 s before the older sample, the next in the middle of the newer interval.
        let step = |at: f64, steps: u64| {
            let mut sample = reporting(at);
            let count = u32::try_from(steps).unwrap();
            *reported_of(&mut sample) = Reported {
                steps,
                waited: secs(0.4) * count,
                stepped: secs(1.2) * count,
                last_to: secs(1.6) * count,
                ..Reported::default()
            };
            sample
        };
        let rank = rank(&step(5.0, 3), &step(7.0, 4));
        close(rank.wait.map(|wait| wait.share.0), 0.25);
        close(rank.step.batches_per_s, 1.0 / 1.6);
    }

    #[test]
    fn steps_whose_report_was_lost_widen_the_interval() {
        let mut newer = reporting(14.0);
        // Fifteen of the hundred steps since second 4.
        let reported = reported_of(&mut newer);
        reported.lost = 15;
        reported.steps -= 15;
        reported.waited -= secs(0.025) * 15;
        reported.stepped -= secs(0.075) * 15;
        let rank = rank(&reporting(4.0), &newer);
        let wait = rank.wait.unwrap();
        close(wait.share.0, 0.25);
        assert!(wait.low.0 < 0.215 && wait.high.0 > 0.355, "{wait:?}");
        assert_eq!(rank.step.batches, Some(100));
        close(rank.step.batches_per_s, 10.0);
        close(rank.step.wait_ms, 25.0);
    }

    #[test]
    fn reports_alone_are_enough() {
        let alone = |at: f64| {
            let mut sample = reporting(at);
            first_rank(&mut sample).main = None;
            sample
        };
        let rank = rank(&alone(4.0), &alone(6.0));
        close(rank.wait.map(|wait| wait.share.0), 0.25);
        close(rank.waiting.map(|share| share.0), 0.25);
        assert_eq!((rank.receiving, rank.loading), (None, None));
    }

    #[test]
    fn device_busy_share_covers_the_steps_that_report_it() {
        let with = |at: f64, busy: u32, overrun: f64| {
            let mut sample = reporting(at);
            let reported = reported_of(&mut sample);
            let of = reported.waited + reported.stepped;
            let time = |percent: u32| DeviceTime {
                took: of * percent / 100,
                of,
            };
            reported.busy = Some(time(busy));
            reported.copy = Some(time(5));
            reported.overrun = secs(overrun * at);
            reported.device = Some("simulated".into());
            sample
        };
        let device = rank(&with(4.0, 70, 0.0), &with(6.0, 70, 0.0))
            .device
            .unwrap();
        close(device.busy.map(|busy| busy.0), 0.7);
        close(device.copying.map(|copy| copy.0), 0.05);
        assert_eq!(device.name.as_deref(), Some("simulated"));
        assert!(device.rests_with_each_step);
        let device = rank(&with(4.0, 95, 0.2), &with(6.0, 95, 0.2))
            .device
            .unwrap();
        assert!(!device.rests_with_each_step);
        // A device that reports nothing is not known to rest.
        let device = rank(&reporting(4.0), &reporting(6.0)).device.unwrap();
        assert_eq!((device.busy, device.copying), (None, None));
        assert!(!device.rests_with_each_step);
        // A device keeps its name if nothing new is reported on it.
        let device = rank(&with(4.0, 70, 0.0), &with(4.0, 70, 0.0).clone_at(5.0))
            .device
            .unwrap();
        assert_eq!(
            (device.busy, device.name.as_deref()),
            (None, Some("simulated"))
        );
    }

    impl Sample {
        fn clone_at(&self, at: f64) -> Self {
            Self {
                at: crate::model::literals::moment(at),
                ..self.clone()
            }
        }
    }
}
