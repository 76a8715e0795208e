//! The built-in job on a scripted CUDA driver, and without any driver.

use std::fs;

use serde_json::Value;
use support::traces::Place;

use crate::plain::Plain;

/// A small job that prints a report per line.
const SMALL: &str = "demo --device cuda --json --interval 200ms \
                     --workers 2 --load-ms 20 --step-ms 10 --batch-size 4 --image-size 32";

/// Returns the first report that satisfies `wanted`, of a job whose driver follows the script; `None` = no driver.
fn on_driver(script: Option<&str>, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let place = Place::new();
    let driver = place.path().join("driver");
    fs::create_dir(&driver).expect("ours");
    fake_cuda::install(&driver);
    if script.is_none() {
        // Precedes the machine's driver, if there is one.
        fs::write(driver.join("libcuda.so.1"), "no library").expect("ours");
    }
    let mut command = place.command(SMALL);
    command
        .env("LD_LIBRARY_PATH", &driver)
        .env("FAKE_CUDA_FAIL", script.unwrap_or_default());
    Plain::of(&place, command).document(what, wanted)
}

fn device(report: &Value) -> &Value {
    &report["job"]["ranks"][0]["device"]
}

#[test]
fn on_a_gpu_that_works_the_report_names_it_and_has_its_busy_time() {
    let busy = |report: &Value| device(report)["busy_share"].is_number();
    let report = on_driver(Some(""), "the busy time", busy);
    assert_eq!(device(&report)["name"], "Fake GPU");
    assert_eq!(device(&report)["notice"], Value::Null);
    assert_eq!(report["window"]["access"], "T3");
}

#[test]
fn on_a_gpu_that_fails_the_job_goes_on_simulated_and_says_why() {
    for (script, why) in [
        (Some("kernel=719@30"), "unspecified launch failure"),
        (Some("cuMemcpyHtoDAsync_v2=2@30"), "out of memory"),
        (Some("cuInit=34"), "stub"),
        (Some("cuInit=100"), "finds no GPU"),
        (None, "no CUDA driver"),
    ] {
        let says_why = |report: &Value| {
            let notice = device(report)["notice"].as_str().unwrap_or_default();
            notice.contains(why) && notice.contains("simulat")
        };
        let report = on_driver(script, why, |report| {
            says_why(report) && device(report)["name"] == "simulated"
        });
        assert_eq!(report["window"]["access"], "T3", "{why}");
    }
}
