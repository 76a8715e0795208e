//! Experiments with the built-in job: the figures of a report agree with each other, and each output format is valid.

use serde_json::Value;
use support::traces::Place;

use crate::plain::{count, document, lossy, number};
use support::waiting::ToEnd;

#[test]
fn the_figures_of_a_headspace_follow_from_each_other() {
    let place = Place::new();
    let line = "headspace --load-ms 40 --step-ms 10 --workers 2 --in-order --device sim \
                --after 5 --steps 10 --rounds 2 --run-steps 204000 --json";
    let output = place.command(line).to_end();
    let found = document(&output);
    let [now, free, gain, share, hours] = [
        "step_ms_now",
        "step_ms_free",
        "gain_ms",
        "gain_share",
        "hours_saved",
    ]
    .map(|key| number(&found[key]));
    assert!(now > 0.0 && free > 0.0, "{found:#}");
    assert!((gain - (now - free)).abs() < 0.001, "{found:#}");
    assert!((share - gain / now).abs() < 0.001, "{found:#}");
    assert!(
        (hours - gain / 1000.0 * 204_000.0 / 3600.0).abs() < 0.01,
        "{found:#}"
    );
    let (low, high) = (number(&found["interval"][0]), number(&found["interval"][1]));
    assert!(low <= share && share <= high, "{found:#}");
}

/// Returns the output in this format of a short sweep whose loads only sleep.
fn sweep(workers: &str, form: &str) -> Vec<u8> {
    let line =
        format!("sweep --load-ms 12 --step-ms 4 --device sim --workers {workers} --for 1s {form}");
    let output = Place::new().command(&line).to_end();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_sweep_reads_well_can_go_into_a_spreadsheet_and_its_figures_follow_from_each_other() {
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    // The second row has more workers than there are CPUs.
    let workers = format!("1,{}", cpus + 1);
    // In parallel, as the sweeps only sleep.
    let [text, csv, json] = std::thread::scope(|scope| {
        let runs = ["", "--csv", "--json"].map(|form| scope.spawn(|| sweep(&workers, form)));
        runs.map(|run| run.join().expect("it runs"))
    });
    reads_well(&lossy(&text), cpus);
    fits_a_spreadsheet(&lossy(&csv), &workers);
    let found = serde_json::from_slice(&json).expect("one JSON document");
    figures_follow(&found);
}

fn reads_well(text: &str, cpus: usize) {
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let lines: Vec<&str> = text.lines().collect();
    let column = |line: &str, end: &str| line.find(end).map(|at| at + end.len());
    assert_eq!(
        column(lines[0], "WORKERS"),
        column(lines[1], " 1"),
        "{text}"
    );
    assert_eq!(column(lines[0], "FIRST"), column(lines[1], " ms"), "{text}");
    assert!(
        lines[1].contains('▇') && lines[1].ends_with("1.00x"),
        "{text}"
    );
    assert!(lines[2].ends_with('!'), "{text}");
    assert!(
        text.contains("knee") && text.contains(&format!("the {cpus} CPU")),
        "{text}"
    );
    assert!(
        text.contains("pageable") && text.contains("pinned"),
        "{text}"
    );
}

fn fits_a_spreadsheet(csv: &str, workers: &str) {
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..2], ["workers", "first_batch_ms"]);
    assert_eq!(
        rows[0][8..11],
        ["comparison", "prefetch_factor", "pin_memory"]
    );
    for row in &rows[1..] {
        assert_eq!(row.len(), rows[0].len(), "{csv}");
        let mut figures = row[..8].iter();
        let parsed = figures.all(|cell| cell.is_empty() || cell.parse::<f64>().is_ok());
        assert!(parsed && !row[2].is_empty(), "{csv}");
    }
    let of = |comparison: &str, column: usize| {
        let rows = rows.iter().filter(|row| row[8] == comparison);
        rows.map(|row| row[column]).collect::<Vec<_>>().join(",")
    };
    assert_eq!(of("workers", 0), workers, "{csv}");
    assert_eq!(of("memory", 10), "false,true", "{csv}");
    assert_eq!(rows.len(), 5, "{csv}");
}

fn figures_follow(found: &Value) {
    let cpus = count(&found["cpus_allowed"]);
    let rows = found["rows"].as_array().expect("rows");
    let first = number(&rows[0]["batches_per_s"]);
    for row in rows {
        let rate = number(&row["batches_per_s"]);
        assert!(
            (number(&row["speedup"]) - rate / first).abs() < 0.01,
            "{row}"
        );
        assert_eq!(row["above_cpus_allowed"], count(&row["workers"]) > cpus);
        assert!(number(&row["first_batch_ms"]) > 0.0, "{row}");
        // A step follows each wait, and nothing else takes time.
        let period = number(&row["step_ms"]) / (1.0 - number(&row["wait_share"]));
        assert!((period * rate / 1000.0 - 1.0).abs() < 0.05, "{row}");
    }
    let memory = found["memory"].as_array().expect("rows");
    let pinned: Vec<&Value> = memory.iter().map(|row| &row["pin_memory"]).collect();
    assert_eq!(pinned, [false, true]);
    let best = &memory[0]["workers"];
    assert_eq!(&memory[1]["workers"], best, "{found:#}");
    assert!(count(&found["advised"]) <= count(best), "{found:#}");
    // If the most workers are the best, still more may be better.
    let knee = (count(best) < count(&rows[1]["workers"])).then_some(best);
    assert_eq!(&found["knee"], knee.unwrap_or(&Value::Null), "{found:#}");
}
