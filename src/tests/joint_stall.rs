//! From samples to the verdict, on traces with a known truth: when the trainer waits, when the GPU rests, and for how
//! much of the time both happen.

use std::time::{Duration, SystemTime};

use crate::engine::Engine;
use crate::sample::literals::{secs, whole};
use crate::sample::{
    BatchClock, BatchCount, GpuSample, GpuUser, JobSample, LoaderKind, LoaderSample, MainTally,
    ProcessSample, QueueSource, QueueTally, RankSample, Sample, Tier, UsedBy, Wait,
};
use crate::units::{Moment, Pid, ProcessKey};
use crate::verdict::{Kind, Verdict};

const SECONDS: u32 = 40;
const WINDOW: Duration = Duration::from_secs(20);
/// Driver time at the start of pipetop, in us: the driver uses the machine's clock, which started earlier.
const ZERO: u64 = 1_700_000_000_000_000;

/// A periodic job. In each period, the trainer waits and the GPU rests between these seconds.
#[derive(Clone, Copy)]
struct Trace {
    period: f64,
    wait: (f64, f64),
    rest: (f64, f64),
    /// Seconds from one sample of the driver to the next.
    step: f64,
}

impl Trace {
    /// Returns the time that lies within `span` of a period, between the seconds `from` and `to`.
    fn within(&self, span: (f64, f64), from: f64, to: f64) -> f64 {
        let first = (from / self.period).floor();
        let periods = (0..1000).map(|n| (first + f64::from(n)) * self.period);
        periods
            .take_while(|start| *start < to)
            .map(|start| ((start + span.1).min(to) - (start + span.0).max(from)).max(0.0))
            .sum()
    }

    fn share(&self, span: (f64, f64)) -> f64 {
        (span.1 - span.0) / self.period
    }

    /// Returns the true share of the time that is lost.
    fn truth(&self) -> f64 {
        let both = (self.wait.0.max(self.rest.0), self.wait.1.min(self.rest.1));
        self.share((both.0, both.1.max(both.0)))
    }

    /// Returns the waits that ended after `from` and until `to`.
    fn waits(&self, from: f64, to: f64) -> Vec<Wait> {
        if self.wait.0 >= self.wait.1 {
            return vec![];
        }
        let periods = (0..1000).map(|n| f64::from(n) * self.period);
        let waits = periods.map(|start| (start + self.wait.0, start + self.wait.1));
        waits
            .skip_while(|(_, end)| *end <= from)
            .take_while(|(_, end)| *end <= to)
            .map(|(start, end)| Wait {
                from: secs(start),
                to: secs(end),
                batch: None,
                first: None,
                begins: false,
            })
            .collect()
    }

    /// Returns the driver's samples after `from` and until `to`.
    fn util(&self, from: f64, to: f64) -> Vec<(u64, f64)> {
        let ticks = (1..100_000).map(|n| f64::from(n) * self.step);
        ticks
            .skip_while(|at| *at <= from)
            .take_while(|at| *at <= to)
            .map(|at| {
                let rest = self.within(self.rest, at - self.step, at) / self.step;
                let us = u64::try_from(secs(at).as_micros()).expect("a time");
                (ZERO + us, 100.0 * (1.0 - rest).clamp(0.0, 1.0))
            })
            .collect()
    }

    fn verdict(&self) -> Verdict {
        self.verdict_after(SECONDS)
    }

    fn verdict_after(&self, seconds: u32) -> Verdict {
        let mut engine = Engine::new(WINDOW);
        let mut verdict = None;
        for second in 0..seconds {
            let state = engine.push(self.sample(f64::from(second)));
            verdict = state.verdict().cloned();
        }
        verdict.expect("samples were judged")
    }

    fn sample(&self, at: f64) -> Sample {
        let (polls, waiting) = (100.0 * at, 100.0 * self.within(self.wait, 0.0, at));
        let key = ProcessKey {
            pid: Pid(7),
            start_ticks: 1,
        };
        let rank = RankSample {
            process: ProcessSample {
                state: Some('S'),
                ..ProcessSample::default()
            },
            main: Some(MainTally {
                polls: whole(polls),
                waiting: whole(waiting),
                running: whole(polls) - whole(waiting),
                ..MainTally::default()
            }),
            waits: self.waits(at - 1.0, at).into(),
            loaders: vec![LoaderSample {
                queue: Some(QueueTally {
                    polls: whole(polls),
                    empty: whole(waiting),
                    ready_sum: whole(polls) - whole(waiting),
                    ready: 0,
                    capacity: Some(8),
                    source: QueueSource::Pipe,
                    gone: 0,
                }),
                batches: Some(BatchCount {
                    // Two in each period, and at least one a second.
                    count: whole((2.0 / self.period).max(1.0) * at),
                    source: BatchClock::Iterator,
                }),
                ..LoaderSample::new(1, LoaderKind::PytorchProcesses)
            }],
            ..RankSample::new(key)
        };
        let gpu = GpuSample {
            index: 3,
            read_at: Some(moment(at)),
            util_samples: self.util(at - 1.0, at).into(),
            driver_zero_us: Some(ZERO),
            users: Some(vec![GpuUser {
                pid: key.pid,
                by: UsedBy::Listed,
                instance: None,
            }]),
            ..GpuSample::default()
        };
        Sample {
            gpus: vec![gpu],
            job: Some(JobSample {
                ranks: vec![rank],
                ..JobSample::new(key, "python train.py", Tier::T2)
            }),
            ..Sample::new(moment(at))
        }
    }
}

fn moment(at: f64) -> Moment {
    Moment {
        since_start: secs(at),
        wall: SystemTime::UNIX_EPOCH + Duration::from_micros(ZERO) + secs(at),
    }
}

fn says<'a>(verdict: &'a Verdict, id: &str) -> Option<&'a str> {
    let mut facts = verdict.evidence.iter();
    Some(facts.find(|fact| fact.id == id)?.text.as_str())
}

/// Seconds between samples: fine sampling, the driver's usual one, and one coarser than every stall.
const STEPS: [f64; 3] = [0.05, 0.14, 1.0];

#[test]
fn the_interval_of_the_stall_holds_the_truth() {
    let traces = [
        // The GPU rests exactly during the waits; only in their second half; partly after them; not at all during them.
        (2.0, (0.0, 0.8), (0.0, 0.8)),
        (1.2, (0.0, 0.6), (0.3, 0.6)),
        (2.0, (0.0, 0.8), (0.5, 1.5)),
        (2.3, (0.0, 0.9), (1.1, 2.1)),
        (0.7, (0.0, 0.25), (0.05, 0.3)),
    ];
    for (period, wait, rest) in traces {
        for step in STEPS {
            let trace = Trace {
                period,
                wait,
                rest,
                step,
            };
            let verdict = trace.verdict();
            let stall = verdict.stall.expect("a stall share");
            let truth = trace.truth();
            let about = format!("{truth} in {stall:?}: {period} s, {wait:?}, {rest:?} by {step} s");
            assert!(stall.low.0 <= truth && truth <= stall.high.0, "{about}");
            assert!(
                (stall.low.0..=stall.high.0).contains(&stall.share.0),
                "{about}"
            );
            // With fine sampling the interval is narrow enough to be useful.
            let width = stall.high.0 - stall.low.0;
            assert!(step > 0.06 || width < 0.25, "{about}");
        }
    }
}

#[test]
fn an_oscillating_gpu_is_named_with_its_period_and_linked_to_waits() {
    let trace = Trace {
        period: 2.0,
        wait: (0.0, 1.0),
        rest: (0.05, 1.0),
        step: 0.14,
    };
    let verdict = trace.verdict();
    assert_eq!(verdict.kind, Kind::DataBound, "{verdict:#?}");
    let swing = says(&verdict, "gpu-swing").expect("it is named");
    assert!(
        swing.contains("every 2.0 s: it idles while the trainer waits"),
        "{swing}"
    );
    let mut facts = verdict.evidence.iter();
    let overlap = facts.find(|fact| fact.id == "overlap").expect("joined");
    assert!(overlap.value > 0.8, "most of the waits: {overlap:?}");
}

#[test]
fn the_same_without_waits_is_not_blamed_on_data() {
    let trace = Trace {
        period: 2.0,
        wait: (0.0, 0.0),
        rest: (0.0, 1.0),
        step: 0.14,
    };
    let verdict = trace.verdict();
    assert_eq!(verdict.kind, Kind::HostBound, "{verdict:#?}");
    let swing = says(&verdict, "gpu-swing").expect("it is named");
    assert!(
        swing.contains("every 2.0 s, but not for lack of data"),
        "{swing}"
    );
    assert!(verdict.stall.is_some_and(|stall| stall.high.0 < 0.05));
    assert!(
        verdict
            .advice
            .iter()
            .all(|advice| !advice.contains("num_workers"))
    );
}

#[test]
fn an_oscillation_slower_than_the_window_is_named() {
    const PERIOD: f64 = 60.0;
    let full = (0.0, 0.0);
    let slow = |wait| Trace {
        period: PERIOD,
        wait,
        rest: (0.0, 30.0),
        step: 0.14,
    };
    // In the middle of the fifth rest, and of the load after it.
    let (rests, works) = (265, 295);
    for (wait, at, kind, words) in [
        (
            (0.0, 29.9),
            rests,
            Kind::DataBound,
            ": it idles while the trainer waits",
        ),
        (
            (0.0, 29.9),
            works,
            Kind::ComputeBound,
            ": it idles while the trainer waits",
        ),
        (full, rests, Kind::HostBound, ", but not for lack of data"),
        (
            full,
            works,
            Kind::ComputeBound,
            ", but not for lack of data",
        ),
    ] {
        let verdict = slow(wait).verdict_after(at);
        let about = format!("{wait:?} after {at} s: {verdict:#?}");
        assert_eq!(verdict.kind, kind, "{about}");
        let swing = says(&verdict, "gpu-swing").expect(&about);
        assert!(swing.contains("every 60 s"), "{swing}");
        assert!(swing.ends_with(words), "{swing}");
    }
}

#[test]
fn a_busy_gpu_during_waits_is_not_data_bound() {
    let trace = Trace {
        period: 2.0,
        wait: (0.0, 0.8),
        rest: (1.0, 1.8),
        step: 0.05,
    };
    let verdict = trace.verdict();
    assert_eq!(verdict.kind, Kind::HostBound, "{verdict:#?}");
    let swing = says(&verdict, "gpu-swing").expect("it is named");
    assert!(swing.contains("but not for lack of data"), "{swing}");
}

#[test]
fn waits_and_rest_give_the_four_kinds() {
    let full = (0.0, 0.0);
    for (wait, rest, kind) in [
        ((0.0, 0.8), (0.0, 0.8), Kind::DataBound),
        ((0.0, 0.8), full, Kind::Balanced),
        (full, (0.0, 0.8), Kind::HostBound),
        (full, full, Kind::ComputeBound),
    ] {
        let trace = Trace {
            period: 1.6,
            wait,
            rest,
            step: 0.14,
        };
        let verdict = trace.verdict();
        assert_eq!(verdict.kind, kind, "{wait:?} {rest:?}: {verdict:#?}");
    }
}
