use std::time::Duration;

use super::*;
use crate::report::tests::literals::{candidate, empty_report, full_report, rich_report};
use crate::report::{Gap, Missing, OtherLoaderReport, Report};
use crate::units::{Pid, Share};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_text_opens_with_the_verdict_and_its_reasons() {
    let text = text(&full_report());
    let expected = "\
train.py  pid 100  60 batches seen in 6 s  access T2
DATA-BOUND   63 % of the time is lost waiting for data (61-66 %)   cause: CPU preprocessing   94 % sure
do        num_workers 2 -> 4
for       queue empty 91 % of the time
but       2 % of the waits overlap GPU work

rank 0    wait 60 %   step 40 ms   wait 60 ms   load 180 ms   10.0 batches/s
loader    PyTorch DataLoader   2 workers   prefetch 2
queue     0.5 of 4, empty 75 %
worker 0  pid 200   CPU 80 %   busy 90 %   read 20.0 MB/s   5.0 batches/s   load 180 ms   in Image.resize 100 %
worker 1  pid 201   CPU 80 %   busy 90 %   read 20.0 MB/s   5.0 batches/s   load 180 ms   in Image.resize 100 %
GPU 0     NVIDIA H200   util 40 %   memory 20.0 GiB of 140 GiB   power n/a   temperature n/a
disk      nvme0n1   read 50.0 MB/s   write 0 B/s   util 10 %   wait 2.0 ms
host      CPU 50 %   pressure cpu 50 %   io 0 %   memory n/a   own cost 1.0 %
not seen  sm: no GPM
not seen  psi: the kernel has none (boot with psi=1)
";
    assert_eq!(text, expected);
}

#[test]
fn batches_that_nothing_counts_are_not_available() {
    let mut report = full_report();
    report.window.batches = None;
    let text = text(&report);
    assert!(
        text.starts_with("train.py  pid 100  watched for 6 s, batches n/a  access"),
        "{text}"
    );
}

/// From outside it takes a moment until something counts them, and when a job ends nothing does any more.
#[test]
fn batches_are_of_the_same_time_as_their_rate() {
    let mut report = full_report();
    for (batches, seen) in [(40, "in 4 of 6 s"), (60, "in 6 s"), (80, "in 6 s")] {
        report.window.batches = Some(batches);
        let text = text(&report);
        let seen = format!("  {batches} batches seen {seen}  ");
        assert!(text.contains(&seen), "{text}");
        assert!(text.contains("  10.0 batches/s\n"), "{text}");
    }
}

#[test]
fn a_command_of_any_length_fits_a_line() {
    let options = " --size=1".repeat(100_000);
    let cut = format::command(&format!("python train.py{options}"));
    assert!(cut.starts_with("train.py --size=1 "), "{cut}");
    assert!(cut.ends_with(" ..."), "{cut}");
    assert!(cut.len() < 120, "{cut}");
}

#[test]
fn a_machine_without_a_gpu_lacks_nothing() {
    let mut report = full_report();
    report.gaps = vec![Gap::new("nvml", "no NVIDIA GPU on this machine", "")];
    assert!(!text(&report).contains("nvml"));
}

#[test]
fn the_text_without_a_job_says_so() {
    let text = text(&empty_report());
    assert_eq!(text, "no job is watched\n");
}

#[test]
fn the_text_names_the_jobs_to_choose_from_and_no_gap_twice() {
    let mut report = empty_report();
    report.candidates = vec![candidate(48213)];
    for source in ["psi", "nvml"] {
        report.gaps.push(Gap {
            source: source.to_owned(),
            reason: "absent".to_owned(),
            hint: String::new(),
        });
    }
    report.verdict.missing.push(Missing {
        id: "nvml".to_owned(),
        why: "absent".to_owned(),
        hint: String::new(),
    });
    assert_eq!(
        text(&report),
        "no job is watched\n\
         not seen  nvml: absent\nnot seen  psi: absent\n\
         pid 48213   1 rank, 4 workers: train.py\n"
    );
}

#[test]
fn a_line_has_waits_and_steps_of_the_window_and_else_the_figures_of_its_interval() {
    assert_eq!(
        line(&full_report(), SECOND),
        "7 s  wait 60 %  queue 0.5 of 4  step 40 ms  10.0 batches/s  gpu 40 %  disk 60.0 MB/s  \
         DATA-BOUND (CPU preprocessing)  94 % sure"
    );
    // No batch ends in an interval shorter than a step.
    let mut short = full_report();
    short.latest.wait_share = Some(Share::ONE);
    short.latest.step.step_ms = None;
    short.latest.step.batches_per_s = Some(0.0);
    assert_eq!(line(&short, SECOND), line(&full_report(), SECOND));
    assert_eq!(line(&empty_report(), SECOND), "0 s  no training job yet");
    // A sample that comes late is written as the others are.
    for (at, interval_ms, said) in [
        (0.1, 100, "0.1 s"),
        (0.96, 1000, "1 s"),
        (2.004, 1000, "2 s"),
        (25.07, 1000, "25 s"),
        (7.5, 500, "7.5 s"),
        (8.0, 500, "8.0 s"),
    ] {
        short.latest.at_seconds = Some(at);
        let line = line(&short, Duration::from_millis(interval_ms));
        assert!(line.starts_with(&format!("{said}  wait")), "{line}");
    }
    let mut unknown = full_report();
    let headline = &mut unknown.verdict.headline;
    headline.kind = "UNKNOWN".to_owned();
    headline.loss =
        ["the evidence is inconclusive", "not enough can be seen", ""].map(str::to_owned);
    (headline.cause, headline.certainty) = (None, None);
    let said = line(&unknown, SECOND);
    assert!(
        said.ends_with("  UNKNOWN  not enough can be seen"),
        "{said}"
    );
    let mut none = empty_report();
    none.gaps.push(Gap {
        source: "job".to_owned(),
        reason: "no Python was seen below the command".to_owned(),
        hint: String::new(),
    });
    assert_eq!(
        line(&none, SECOND),
        "0 s  no training job yet: no Python was seen below the command"
    );
    none.candidates = [7, 9].map(candidate).to_vec();
    assert_eq!(
        line(&none, SECOND),
        "0 s  several training jobs, none chosen: 7, 9 (watch one with `pipetop PID`)"
    );
}

#[test]
fn a_line_is_about_the_rank_of_the_verdict() {
    let mut report = full_report();
    let ranks = &mut report.job.as_mut().unwrap().ranks;
    let mut fed = ranks[0].clone();
    (fed.rank, fed.pid, fed.wait_share) = (Some(0), Pid(1), Some(Share::ZERO));
    ranks[0].rank = Some(1);
    report.verdict.pid = Some(ranks[0].pid);
    ranks.insert(0, fed);
    let line = line(&report, SECOND);
    assert!(line.starts_with("7 s  rank 1  wait 60 %  "), "{line}");
}

#[test]
fn the_end_of_the_job_is_in_line_and_text() {
    let mut report = full_report();
    report.job.as_mut().unwrap().ended = true;
    assert_eq!(
        line(&report, SECOND),
        "7 s  the job has ended; last verdict: DATA-BOUND (CPU preprocessing)  94 % sure"
    );
    let text = text(&report);
    assert!(text.lines().next().unwrap().ends_with("  ended"), "{text}");
}

#[test]
fn the_text_tells_the_step_of_a_validation_from_that_of_the_training() {
    let mut report = full_report();
    let rank = &mut report.job.as_mut().unwrap().ranks[0];
    let own = rank.loader.as_mut().unwrap();
    own.step_ms = Some(40.0);
    let mut other = own.clone();
    (other.validates, other.step_ms) = (true, Some(12.0));
    (other.number, other.batches_per_s) = (Some(2), Some(5.0));
    rank.other_loaders.push(OtherLoaderReport {
        loader: other,
        workers: vec![],
        queue: None,
    });
    let text = text(&report);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("loader"))
        .collect();
    let [training, validation] = lines[..] else {
        panic!("{text}");
    };
    assert!(
        training.ends_with("   10.0 batches/s   step 40 ms"),
        "{text}"
    );
    let end = "   validation   5.0 batches/s   step 12 ms";
    assert!(
        validation.starts_with("loader 2") && validation.ends_with(end),
        "{text}"
    );
}

#[test]
fn the_text_has_the_device_that_the_job_reports() {
    let text = text(&rich_report());
    let device = "device    simulated   busy 93 %   copy 12 %   no GPU here";
    assert!(text.contains(device), "{text}");
}

#[test]
fn the_markdown_has_the_figures_in_tables() {
    let report = rich_report();
    insta::assert_snapshot!(markdown(&report));
}

#[test]
fn markup_in_names_is_escaped() {
    let mut report = full_report();
    report.disks[0].device = "a|b*".to_owned();
    report.job.as_mut().unwrap().command = "python `x`|y".to_owned();
    let page = markdown(&report);
    assert!(page.contains("| a\\|b\\* |"), "{page}");
    assert!(page.contains("`python 'x'\\|y`, pid 100"), "{page}");
}

#[test]
fn json_is_one_document_with_a_line_end() {
    let report = rich_report();
    let (mut page, mut line) = (vec![], vec![]);
    json::page(&mut page, &report).unwrap();
    json::line(&mut line, &report).unwrap();
    assert_eq!(
        line.iter().position(|byte| *byte == b'\n'),
        Some(line.len() - 1)
    );
    assert!(page.ends_with(b"\n}\n"));
    for written in [page, line] {
        assert_eq!(serde_json::from_slice::<Report>(&written).unwrap(), report);
    }
}
