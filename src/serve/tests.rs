use std::time::Duration;

use super::board::Board;
use super::exposition::Format;
use crate::sample::literals::{first_rank, key, machine, training};
use crate::units::{Pid, ProcessKey};

/// Returns the metrics with a fixed text in place of the version.
fn text(board: &Board, format: Format) -> String {
    let version = env!("CARGO_PKG_VERSION");
    board.metrics(format).replace(version, "VERSION")
}

/// Returns a job of two ranks; the waits of the second are not visible.
fn watched() -> Board {
    let board = Board::default();
    board.begin(key(100));
    for tick in 1..=21_u32 {
        let at = f64::from(tick);
        let mut sample = training(at);
        let first = first_rank(&mut sample).clone();
        let mut second = first.clone();
        second.key = key(101);
        second.rank = Some(1);
        second.main = None;
        second.loaders.clear();
        if let Some(job) = &mut sample.job {
            job.ranks = vec![first, second];
            if let Some(cgroup) = &mut job.cgroup {
                cgroup.throttled = Some(Duration::from_millis(500) * tick);
            }
        }
        assert!(board.job(key(100), sample));
        let mut sample = machine(at);
        sample.gpus[0].energy_joules = Some(300.0 * at);
        sample.gpus[0].throttle = Some(vec!["power cap".to_owned()]);
        board.machine(sample);
    }
    board.searched();
    board
}

#[test]
fn every_metric_of_a_job_and_its_machine() {
    let board = watched();
    insta::assert_snapshot!("text", text(&board, Format::Text));
    let open = text(&board, Format::OpenMetrics);
    assert!(open.ends_with("# EOF\n"), "{open}");
    // The formats differ in the titles of counters and in the last line.
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(values(&open), values(&text(&board, Format::Text)));
}

#[test]
fn a_job_that_has_ended_leaves_nothing() {
    let board = watched();
    let mut last = training(22.0);
    if let Some(job) = &mut last.job {
        job.ended = true;
    }
    assert!(board.metrics(Format::Text).contains("run=\"host-100-1\""));
    assert!(!board.job(key(100), last));
    let text = board.metrics(Format::Text);
    assert!(!text.contains("run="), "{text}");
    assert!(text.contains("pipetop_runs 0\n"), "{text}");
    assert!(board.reports(None).is_empty());
}

#[test]
fn two_jobs_of_one_run_are_told_apart() {
    let board = watched();
    board.begin(key(200));
    assert!(board.job(key(200), training(1.0)));
    let text = board.metrics(Format::Text);
    let infos = text
        .lines()
        .filter(|line| line.starts_with("pipetop_run_info{"));
    let runs: Vec<_> = infos.filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(runs, ["host-100-1", "host-100-1-200-1"]);
}

#[test]
fn another_engine_for_the_same_job_counts_on() {
    let board = watched();
    let batches = |board: &Board| {
        let text = board.metrics(Format::Text);
        let name = "pipetop_rank_batches_total{run=\"host-100-1\",rank=\"0\"} ";
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.map(str::parse::<f64>)
    };
    assert_eq!(batches(&board), Some(Ok(200.0)));
    board.begin(key(100));
    for at in [30.0, 31.0] {
        assert!(board.job(key(100), training(at)));
    }
    assert_eq!(batches(&board), Some(Ok(210.0)));
}

#[test]
fn a_report_is_found_by_any_trainer_of_its_job() {
    let board = watched();
    for (pid, found) in [(None, 1), (Some(100), 1), (Some(101), 1), (Some(7), 0)] {
        assert_eq!(board.reports(pid).len(), found, "{pid:?}");
    }
}

#[test]
fn ready_after_the_first_reading_and_job_search() {
    let board = Board::default();
    assert!(!board.is_ready());
    board.searched();
    assert!(!board.is_ready());
    board.machine(machine(1.0));
    assert!(board.is_ready());
    let other = ProcessKey {
        pid: Pid(7),
        start_ticks: 1,
    };
    assert!(!board.is_watched(other));
}
