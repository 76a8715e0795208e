//! Comparing two runs: how certain the rates are, the conclusion, and its wording.

use crate::diff::{BatchSlices, Comparison, Outcome, Pace, Side, text};
use crate::report::tests::literals::full_report;
use crate::report::{Cause, DeviceReport, Kind, Report};
use crate::tests::chance::Chance;
use crate::units::Share;

/// Returns the batches in each of `seconds` slices of a second, for a job whose next batch comes after `period`.
fn counts(seconds: u32, mut period: impl FnMut(f64) -> f64) -> BatchSlices {
    let mut counts = BatchSlices::default();
    let mut next = period(0.0);
    for slice in 0..seconds {
        let end = f64::from(slice + 1);
        let mut batches = 0;
        while next < end {
            batches += 1;
            next += period(next);
        }
        counts.push(1.0, batches);
    }
    counts
}

/// Returns how often the interval contains the true rate, and its mean half width as a share of the rate.
fn held(seconds: u32, rate: f64, period: impl Fn(&mut Chance, f64) -> f64) -> (f64, f64) {
    const RUNS: u32 = 500;
    let (mut hits, mut widths) = (0, 0.0);
    for seed in 1..=RUNS {
        let mut chance = Chance(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed.into()));
        let pace = counts(seconds, |at| period(&mut chance, at))
            .pace()
            .unwrap();
        let [low, high] = pace.interval.unwrap();
        hits += u32::from((low..=high).contains(&rate));
        widths += (high - low) / 2.0 / rate;
    }
    (f64::from(hits) / f64::from(RUNS), widths / f64::from(RUNS))
}

#[test]
fn the_interval_of_a_rate_holds_as_often_as_it_says() {
    // Purely random; regular; one slow batch in ten.
    let alone = |chance: &mut Chance, _: f64| -0.25 * (1.0 - chance.next()).ln();
    let regular = |chance: &mut Chance, _: f64| chance.between(0.24, 0.26);
    let slow_ones = |chance: &mut Chance, _: f64| if chance.below(10) == 0 { 1.6 } else { 0.1 };
    let (often, width) = held(60, 4.0, alone);
    assert!(often >= 0.92, "{often}, {width}");
    let (often, width) = held(60, 4.0, regular);
    assert!(often >= 0.95 && width < 0.02, "{often}, {width}");
    let (often, width) = held(60, 4.0, slow_ones);
    assert!(often >= 0.9, "{often}, {width}");
    let (often, width) = held(300, 4.0, slow_ones);
    assert!(often >= 0.93 && width < 0.12, "{often}, {width}");
}

#[test]
fn a_rate_counts_from_the_first_batch_on_and_needs_some_for_an_interval() {
    let mut counts = BatchSlices::default();
    for batches in [0, 0, 0, 1] {
        counts.push(1.0, batches);
    }
    assert_eq!(counts.pace(), None, "the first slice is a part of one");
    for _ in 0..9 {
        counts.push(1.0, 2);
    }
    let pace = counts.pace().unwrap();
    assert_eq!((pace.batches_per_s, pace.interval), (2.0, None));
    for _ in 0..11 {
        counts.push(1.0, 2);
    }
    let [low, high] = counts.pace().unwrap().interval.unwrap();
    assert!(low < 2.0 && low > 1.9 && high > 2.0 && high < 2.1);
}

fn side(file: &str, rate: f64, off: Option<f64>) -> Side {
    Side {
        file: file.to_owned(),
        seconds: 60.0,
        kind: Kind::DataBound,
        cause: Some(Cause::CpuPreprocess),
        pace: Some(Pace {
            batches_per_s: rate,
            interval: off.map(|off| [rate - off, rate + off]),
        }),
        wait_share: Some(Share(0.63)),
        wait_interval: Some([Share(0.61), Share(0.66)]),
        step_ms: Some(38.2),
        load_ms: Some(412.0),
        queue_ready: Some(0.4),
        queue_capacity: Some(8),
        gpu_busy_share: None,
        other_device: false,
    }
}

#[test]
fn two_runs_differ_if_their_intervals_do() {
    let outcome = |rate, off| {
        let comparison = Comparison::new(side("a", 10.0, Some(0.3)), side("b", rate, off));
        (comparison.outcome, comparison.is_slower_by(Share(0.05)))
    };
    assert_eq!(outcome(12.0, Some(0.3)), (Outcome::Faster, Some(false)));
    assert_eq!(outcome(9.0, Some(0.3)), (Outcome::Slower, Some(true)));
    // Slower, but by less than the limit.
    assert_eq!(outcome(9.6, Some(0.05)), (Outcome::Slower, Some(false)));
    // Slower by more than the limit, but that may be chance.
    let by_chance = (Outcome::NotToldApart, Some(false));
    assert_eq!(outcome(9.4, Some(1.0)), by_chance);
    assert_eq!(outcome(10.1, Some(0.3)), by_chance);
    assert_eq!(outcome(5.0, None), (Outcome::Unknown, None));
}

#[test]
fn the_table_shows_both_runs_and_the_outcome() {
    let after = Side {
        kind: Kind::ComputeBound,
        cause: None,
        wait_share: Some(Share(0.03)),
        wait_interval: Some([Share(0.02), Share(0.05)]),
        step_ms: Some(39.5),
        queue_ready: Some(6.1),
        ..side("new.rec", 21.8, Some(0.4))
    };
    let before = || side("old.rec", 9.7, Some(0.2));
    let uncounted = Side {
        pace: None,
        ..before()
    };
    let pages = [
        Comparison::new(before(), after),
        Comparison::new(before(), side("new.rec", 9.8, Some(0.2))),
        Comparison::new(before(), side("new.json", 21.8, None)),
        Comparison::new(uncounted, before()),
    ];
    insta::assert_snapshot!(pages.map(|page| text(&page)).join("\n"));
}

#[test]
fn the_waits_have_the_interval_of_the_report() {
    let mut report = full_report();
    let told = Some([Share(0.5), Share(0.7)]);
    report.verdict.wait_interval = told;
    let job = report.job.as_mut().expect("full");
    job.ranks[0].wait_interval = Some([Share(0.6), Share(0.61)]);
    let side = |report: &Report| Side::new("a.rec".to_owned(), report, None).wait_interval;
    assert_eq!(side(&report), told);
    // Without the verdict's interval, the measured one is used.
    report.verdict.wait_interval = None;
    assert_eq!(side(&report), Some([Share(0.6), Share(0.61)]));
}

#[test]
fn figures_that_no_run_can_have_are_found() {
    let found = |change: &dyn Fn(&mut Report)| {
        let mut report = full_report();
        change(&mut report);
        Side::new("a.json".to_owned(), &report, None).impossible()
    };
    assert_eq!(found(&|_| ()), None);
    for figure in [-3.0, 1e300, f64::NAN] {
        let seconds = |report: &mut Report| report.window.seconds = figure;
        assert_eq!(found(&seconds), Some("window.seconds"));
        let step = |report: &mut Report| {
            report.job.as_mut().expect("full").ranks[0].step.step_ms = Some(figure);
        };
        assert_eq!(found(&step), Some("step_ms"));
        let idle = |report: &mut Report| report.verdict.gpu_idle_share = Some(Share(figure));
        assert_eq!(found(&idle), Some("gpu_idle_share"));
    }
    for bounds in [[0.4, 0.2], [-1.0, 0.2], [0.4, 7.0]] {
        let waits = |report: &mut Report| report.verdict.wait_interval = Some(bounds.map(Share));
        assert_eq!(found(&waits), Some("wait_interval"));
    }
}

#[test]
fn a_simulated_device_is_not_called_a_gpu() {
    let mut report = full_report();
    report.verdict.gpu_idle_share = Some(Share(0.63));
    let mut line = |device: Option<&str>| {
        let rank = &mut report.job.as_mut().expect("full").ranks[0];
        rank.device = device.map(|name| DeviceReport {
            name: Some(name.to_owned()),
            busy_share: Some(Share(0.37)),
            copy_share: None,
            notice: None,
        });
        let side = |file: &str| Side::new(file.to_owned(), &report, None);
        let page = text(&Comparison::new(side("a.rec"), side("b.rec")));
        let line = page.lines().find(|line| line.contains(" busy "));
        line.expect("a row").to_owned()
    };
    assert!(line(None).starts_with("GPU busy   37 %"));
    assert!(line(Some("NVIDIA H200")).starts_with("GPU busy   37 %"));
    assert!(line(Some("simulated")).starts_with("device busy  37 %"));
}

/// Returns the words of the row with this name.
fn cells<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let line = page.lines().find(|line| line.starts_with(name));
    line.expect("a row").split_whitespace().collect()
}

#[test]
fn a_speed_up_is_that_of_the_rates_beside_it() {
    for (before, after) in [
        (0.1449, 0.2051),
        (0.0449, 0.0551),
        (1.0549, 2.4451),
        (9.749, 10.651),
        (104.96, 312.04),
    ] {
        let page = Comparison::new(
            side("a", before, Some(before / 100.0)),
            side("b", after, Some(after / 100.0)),
        );
        let page = text(&page);
        let row = cells(&page, "batches/s");
        let [before, after]: [f64; 2] = [row[1], row[3]].map(|rate| rate.parse().expect("a rate"));
        assert_eq!(row[5], format!("{:.2}x", after / before), "{page}");
        assert!(
            page.contains(&format!("is faster: {} the", row[5])),
            "{page}"
        );
    }
}

#[test]
fn a_change_is_that_of_the_figures_beside_it() {
    let with = |file: &str, wait: f64, step: f64| Side {
        wait_share: Some(Share(wait)),
        step_ms: Some(step),
        ..side(file, 9.7, Some(0.2))
    };
    let page = Comparison::new(with("a", 0.7342, 38.24), with("b", 0.7361, 38.26));
    let page = text(&page);
    let line = |name: &str| cells(&page, name);
    assert_eq!(line("wait")[1..3], ["73", "%"]);
    assert_eq!(line("wait")[4..6], ["74", "%"]);
    assert_eq!(line("wait")[7..], ["+1", "point"]);
    assert_eq!(
        line("step")[1..],
        ["38.2", "ms", "38.3", "ms", "+0.1", "ms"]
    );
}
