//! The real program as a simulation: figures that are known beforehand, what it refuses, and its screen in a
//! pseudo-terminal.

use assert_cmd::Command;
use serde_json::Value;
use support::session::Session;

fn simulate(line: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("pipetop"));
    command
        .arg("simulate")
        .args(line.split_whitespace())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8");
    command
}

fn printed(line: &str) -> String {
    let output = simulate(line).assert().success().get_output().clone();
    assert_eq!(output.stderr, b"", "{line}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn document(line: &str) -> Value {
    serde_json::from_str(&printed(&format!("{line} --json"))).expect("JSON")
}

/// Simulates a known animation: seven loaders, a step of 100 ms, and a frame every 100 ms.
fn animation(load_ms: u32) -> Value {
    document(&format!(
        "--workers 7 --load-ms {load_ms} --step-ms 100 --clock-ms 100 --any-order --load-jitter 0.05 --for 30s"
    ))
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn it_gives_the_batches_of_the_known_animation() {
    for (load_ms, batches) in [(2000, 98.0), (700, 275.0), (350, 295.0)] {
        let document = animation(load_ms);
        let simulated = number(&document["batches"]);
        assert!(
            (simulated - batches).abs() <= 2.0,
            "{load_ms} ms: {simulated}"
        );
        let runs = document["runs"].as_array().expect("runs");
        let sum: f64 = runs.iter().map(|run| number(&run["batches"])).sum();
        assert_eq!(runs.len(), 10);
        assert!((sum / 10.0 - simulated).abs() < 1e-9);
    }
}

#[test]
fn its_figures_follow_from_each_other() {
    let starved = animation(2000);
    assert_eq!(starved["period_batches"], 7);
    assert_eq!(starved["seconds"], 30.0);
    // Time that is not spent waiting is spent in steps of 100 ms.
    let rate = number(&starved["batches_per_s"]);
    let stall = number(&starved["stall_share"]);
    assert!((rate * 0.1 + stall - 1.0).abs() < 0.01, "{rate} {stall}");
    let queue = &starved["queue"];
    let parts = queue["ready_over_time"].as_array().expect("parts");
    assert_eq!(queue["capacity"], 14);
    assert!((number(&queue["part_seconds"]) * parts.len() as f64 - 30.0).abs() < 1e-6);
    let rows = starved["what_if"].as_array().expect("rows");
    let stalls: Vec<f64> = rows.iter().map(|row| number(&row["stall_share"])).collect();
    assert!(
        stalls.is_sorted_by(|fewer, more| fewer >= more),
        "{stalls:?}"
    );
    let own = rows
        .iter()
        .find(|row| row["workers"] == 7)
        .expect("its own row");
    for key in ["stall_share", "batches_per_s"] {
        assert_eq!(own[key], starved[key]);
    }
    // 2000 ms per load / 100 ms per step.
    let matching = rows.iter().find(|row| row["workers"] == 20).expect("a row");
    assert!(number(&matching["stall_share"]) < 0.05);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let runs = |line: &str| document(line)["runs"].clone();
    let line = "--load-jitter 0.5 --for 5min --seed 3 --runs 4";
    assert_eq!(runs(line), runs(line));
    let later = runs("--load-jitter 0.5 --for 5min --seed 6 --runs 1");
    assert_eq!(runs(line)[3], later[0]);
    assert_eq!(document("")["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_unknown_figure_is_null() {
    let nothing = document("--load-ms 60000");
    assert_eq!(nothing["batches"], 0.0);
    for key in [
        "stall_share",
        "period_batches",
        "batches_per_s",
        "first_batch_ms",
    ] {
        assert!(nothing[key].is_null(), "{key}");
    }
    assert!(nothing["queue"]["mean_ready"].is_null());
}

#[test]
fn without_a_terminal_the_animation_is_numbers() {
    let assert = simulate("--animate").assert().success();
    let output = assert.get_output();
    let (out, err) = (&output.stdout, &output.stderr);
    assert_eq!(String::from_utf8_lossy(out), printed(""));
    assert_eq!(String::from_utf8_lossy(err).lines().count(), 1);
    assert!(String::from_utf8_lossy(err).contains("not a terminal"));
}

#[test]
fn meaningless_settings_are_rejected() {
    let lines = [
        "--workers 0",
        "--load-ms -1",
        "--load-jitter nan",
        "--clock-ms 60000",
        "--load-ms 0 --step-ms 0",
        "--for 0s",
        "--runs 0",
        "--animate --json",
        "--theme pink",
        "somewhere",
    ];
    for line in lines {
        let assert = simulate(line).assert().code(2).stdout("");
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let said: Vec<&str> = said.lines().collect();
        assert_eq!(said.len(), 2, "{line}: {said:?}");
        assert!(said[0].starts_with("error: ") && said[1].starts_with("hint: "));
    }
}

#[test]
fn it_moves_on_a_terminal_and_gives_it_back() {
    let mut session = Session::start(&["simulate", "--animate"]);
    session.until("the first picture", |text| text.contains("pipeline"));
    let before = session.text().len();
    session.until("it to move", |text| text.len() > before + 100);
    session.press(" ");
    session.until("the pause", |text| text.contains("paused"));
    session.press("q");
    assert!(session.ended().success());
    session.until("the screen to go", |text| text.contains("\u{1b}[?1049l"));
}
