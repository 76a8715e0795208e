//! Tests of when an observation without a screen is over.

use std::time::Duration;

use crate::headless::{Observation, Observer};
use crate::model::literals::training;
use crate::sample::Sample;

fn observer(steady: bool) -> Observer {
    let how = Observation {
        once: true,
        json: false,
        span: Some(Duration::from_secs(3)),
        steady,
    };
    Observer::new(how, Duration::from_secs(1))
}

/// Returns the second at which the observation is over, given a sample each second.
fn over(mut observer: Observer, sample: impl Fn(u32) -> Sample) -> Option<u32> {
    let mut over = |at: &u32| observer.take(sample(*at), &mut Vec::new()).unwrap();
    (0..400).find(|at| over(at))
}

fn without_a_job(at: u32) -> Sample {
    Sample {
        job: None,
        ..training(f64::from(at))
    }
}

#[test]
fn a_span_counts_from_the_first_batch_and_where_nothing_trains_from_the_start() {
    assert_eq!(over(observer(false), without_a_job), Some(3));
    assert_eq!(over(observer(true), without_a_job), Some(60));
    let late = |at| match at {
        0..30 => without_a_job(at),
        _ => training(f64::from(at)),
    };
    assert_eq!(over(observer(true), late), Some(33));
}

/// A sample may come a little early, but less than was asked for is never watched.
#[test]
fn a_span_ends_with_the_first_sample_after_it() {
    let last = |span: u64, interval: u32, early: f64| {
        let how = Observation {
            once: true,
            json: false,
            span: Some(Duration::from_secs(span)),
            steady: false,
        };
        let mut observer = Observer::new(how, Duration::from_secs(interval.into()));
        let mut over = |at: &u32| {
            let early = if *at == 0 { 0.0 } else { early };
            let sample = training(f64::from(at * interval) - early);
            observer.take(sample, &mut Vec::new()).unwrap()
        };
        (0..20).find(|at| over(at)).map(|at| at * interval)
    };
    assert_eq!(last(3, 2, 0.0), Some(4));
    assert_eq!(last(9, 5, 0.0), Some(10));
    assert_eq!(last(11, 5, 0.0), Some(15));
    assert_eq!(last(10, 1, 0.05), Some(10));
    assert_eq!(last(10, 1, 0.3), Some(11));
}

#[test]
fn a_span_counts_from_the_first_known_wait_where_nothing_counts_batches() {
    let uncounted = |is_seen: bool| {
        move |at: u32| {
            let mut sample = training(f64::from(at));
            for rank in sample.job.iter_mut().flat_map(|job| &mut job.ranks) {
                rank.main.take_if(|_| !is_seen);
                rank.loaders.clear();
            }
            sample
        }
    };
    assert_eq!(over(observer(true), uncounted(true)), Some(4));
    assert_eq!(over(observer(true), uncounted(false)), Some(300));
}

#[test]
fn the_end_of_a_job_is_said_once() {
    let how = Observation {
        once: false,
        json: false,
        span: None,
        steady: false,
    };
    let mut observer = Observer::new(how, Duration::from_secs(1));
    let mut out = Vec::new();
    for at in 0..30_u32 {
        let mut sample = training(f64::from(at));
        if let Some(job) = &mut sample.job {
            job.ended = !(12..18).contains(&(at % 20));
            // Another job follows, and ends.
            job.key.start_ticks += u64::from(at / 20);
        }
        observer.take(sample, &mut out).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    let ends = text
        .lines()
        .filter(|line| line.contains("the job has ended"));
    let ends: Vec<_> = ends.map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(ends, ["1", "18", "20"], "{text}");
}
