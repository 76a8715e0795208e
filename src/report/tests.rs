pub(crate) mod literals;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::model::literals::{first_loader, first_rank, machine, moment, training};
use crate::sample::{DeviceTime, Reported};
use crate::units::Bytes;
use literals::{empty, empty_verdict, full_verdict, rich, rich_verdict, watched};

fn document(model: &Model, verdict: &Verdict) -> Value {
    serde_json::to_value(Report::new(model, verdict)).unwrap()
}

/// Path of the published schema.
const SCHEMA: &str = "config/report.schema.json";

fn schema() -> Value {
    super::schema().into()
}

fn check(report: &Value) {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(report)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn a_full_report_keeps_the_schema() {
    check(&document(&watched(), &full_verdict()));
}

#[test]
fn reported_values_are_in_the_report() {
    let mut model = empty();
    for at in 1..8_u32 {
        let mut sample = training(f64::from(at));
        let time = |ms: u64| Duration::from_millis(ms) * at;
        let rank = first_rank(&mut sample);
        let of = time(1000);
        rank.reported = Some(Reported {
            steps: u64::from(at) * 10,
            waited: time(250),
            stepped: time(750),
            last_to: time(1000),
            busy: Some(DeviceTime {
                took: time(930),
                of,
            }),
            device: Some("simulated".to_owned()),
            notice: Some("no GPU here".to_owned()),
            ..Reported::default()
        });
        rank.loaders[0].queue.as_mut().unwrap().source = QueueSource::Probe;
        sample.job.as_mut().unwrap().access = Tier::T3;
        model.apply(sample);
    }
    let report = document(&model, &full_verdict());
    check(&report);
    assert_eq!(report["window"]["access"], "T3");
    let rank = &report["job"]["ranks"][0];
    assert_eq!(rank["device"]["name"], "simulated");
    assert_eq!(rank["device"]["busy_share"], 0.93);
    assert_eq!(rank["device"]["copy_share"], Value::Null);
    assert_eq!(rank["queue"]["source"], "probe");
    assert_eq!(rank["step"]["wait_ms"], 25.0);
}

#[test]
fn time_without_polls_is_a_gap() {
    let mut model = empty();
    let gaps = |model: &Model| -> Vec<String> {
        let report = Report::new(model, &full_verdict());
        let polls = report.gaps.into_iter().filter(|gap| gap.source == "polls");
        polls.map(|gap| gap.reason).collect()
    };
    for at in 1..8 {
        model.apply(training(f64::from(at)));
    }
    assert_eq!(gaps(&model), [""; 0]);
    // Two hours later, one more second was polled.
    let mut late = training(8.0);
    late.at = moment(7208.0);
    model.apply(late);
    assert_eq!(
        gaps(&model),
        ["the job was watched for only 1 s of these 7201 s"]
    );
}

#[test]
fn an_empty_report_keeps_the_schema_and_says_null() {
    let report = document(&empty(), &empty_verdict());
    check(&report);
    assert_eq!(report["job"], Value::Null);
    assert_eq!(report["host"]["cpu_percent"], Value::Null);
    assert_eq!(report["verdict"]["wait_share"], Value::Null);
    assert_eq!(report["verdict"]["wait_interval"], Value::Null);
}

#[test]
fn a_machine_and_a_job_of_which_nothing_is_known_keep_the_schema() {
    let mut model = empty();
    model.apply(machine(1.0));
    model.apply(machine(2.0));
    check(&document(&model, &empty_verdict()));
    for at in [3.0, 4.0] {
        let mut sample = training(at);
        sample.host = crate::sample::HostSample::default();
        sample.gpus[0] = crate::sample::GpuSample::default();
        let loader = first_loader(&mut sample);
        loader.queue = None;
        loader.settings = crate::sample::LoaderSettings::default();
        for worker in &mut loader.workers {
            worker.process = crate::sample::ProcessSample::default();
            (worker.tally, worker.batches) = (None, None);
        }
        model.apply(sample);
    }
    let report = document(&model, &empty_verdict());
    check(&report);
    let rank = &report["job"]["ranks"][0];
    assert_eq!(rank["queue"], Value::Null);
    assert_eq!(rank["workers"][0]["cpu_percent"], Value::Null);
    assert_eq!(rank["workers"][0]["state"], "unknown");
    assert_eq!(report["gpus"][0]["mem_used_bytes"], Value::Null);
}

#[test]
fn the_schema_rejects_unknown_keys() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let report = document(&watched(), &full_verdict());
    assert!(validator.is_valid(&report));
    let mut more = report.clone();
    more["verdict"]["mood"] = Value::from("good");
    assert!(!validator.is_valid(&more));
    let mut less = report.clone();
    less["job"]["ranks"][0]
        .as_object_mut()
        .unwrap()
        .remove("step");
    assert!(!validator.is_valid(&less));
    for (at, wrong) in [
        ("/schema", json!("pipetop.report/2")),
        ("/verdict/kind", json!("DataBound")),
        ("/verdict/stall_share", json!(1.1)),
        ("/verdict/stall_interval", json!([0.1])),
        ("/window/seconds", json!(-1.0)),
        ("/window/access", json!("T4")),
        ("/job/ranks/0/workers/0/state", Value::Null),
        ("/job/ranks/0/workers/0/read_bytes_per_s", json!(0.5)),
        ("/job/ranks/0/step", Value::Null),
    ] {
        let mut other = report.clone();
        *other.pointer_mut(at).unwrap() = wrong;
        assert!(!validator.is_valid(&other), "{at}");
    }
}

#[test]
fn figures_are_rounded_to_what_they_mean() {
    let report = document(&watched(), &full_verdict());
    assert_eq!(report["verdict"]["stall_share"].to_string(), "0.6333");
    assert_eq!(
        report["verdict"]["evidence"][0]["value"].to_string(),
        "0.91"
    );
    assert_eq!(report["verdict"]["headspace"]["speedup_max"], Value::Null);
    assert_eq!(report["verdict"]["workers"]["match"], 5);
    let what_if = &report["verdict"]["what_if"];
    assert_eq!(what_if["rows"][0]["wait_interval"][1].to_string(), "0.0833");
    assert_eq!(what_if["rows"][0]["batches_per_s"].to_string(), "25.0");
    assert_eq!(what_if["gap"], Value::Null);
    assert_eq!(report["verdict"]["cause"], "cpu-preprocess");
    assert_eq!(
        report["disks"][0]["read_bytes_per_s"].to_string(),
        "50000000"
    );
    assert_eq!(report["gpus"][0]["mem_used_bytes"], Bytes(20 << 30).0);
    assert_eq!(report["window"]["access"], "T2");
    let rank = &report["job"]["ranks"][0];
    assert_eq!(rank["step"]["step_ms"].to_string(), "40.0");
    assert_eq!(rank["loader"]["kind"], "pytorch-processes");
    assert_eq!(rank["workers"][1]["cpu_percent"].to_string(), "80.0");
    let loads = &rank["workers"][0]["last_loads_ms"];
    assert_eq!(loads[0], json!({ "batch": 7, "low": 363, "high": 464 }));
    assert_eq!(loads[5]["batch"], 2, "newest first");
    assert_eq!(rank["workers"][1]["last_loads_ms"], Value::Null);
    assert_eq!(rank["queue"]["ready"].to_string(), "0.5");
    let text = report.to_string();
    assert!(text.starts_with("{\"schema\":\"pipetop.report/1\",\"version\":"));
    let decimals = text
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .filter_map(|number| Some(number.split_once('.')?.1.len()));
    assert!(decimals.max() <= Some(4), "{text}");
}

/// `INSTA_UPDATE=always` updates the schema's file, as it does for snapshots.
#[test]
fn the_published_schema_is_the_derived_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCHEMA);
    let schema = format!("{:#}\n", schema());
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&path, &schema).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap();
    assert!(
        published == schema,
        "{SCHEMA} is out of date: run this test with INSTA_UPDATE=always"
    );
}

#[test]
fn every_key_is_kept() {
    let report = document(&rich(), &rich_verdict());
    check(&report);
    insta::assert_snapshot!(format!("{report:#}"));
}

#[test]
fn loaders_that_take_turns_are_both_reported() {
    let mut model = watched();
    for at in 8..12_u32 {
        let mut sample = training(f64::from(at));
        let loaders = &mut first_rank(&mut sample).loaders;
        let mut other = loaders[0].clone();
        other.id += 1;
        other.workers.truncate(1);
        loaders.push(other);
        model.apply(sample);
    }
    let report = Report::new(&model, &full_verdict());
    check(&serde_json::to_value(&report).unwrap());
    let job = report.job.unwrap();
    let [other] = job.ranks[0].other_loaders.as_slice() else {
        panic!("{:#?}", job.ranks[0].other_loaders);
    };
    assert_eq!((job.ranks[0].workers.len(), other.workers.len()), (2, 1));
    assert!(other.queue.is_some() && other.loader.batches_per_s.is_some());
}

#[test]
fn a_report_is_read_back_as_it_was() {
    let report = Report::new(&rich(), &rich_verdict());
    let written = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&written).unwrap(), report);
    // A later version may have more keys, and an older one has fewer.
    let mut other = serde_json::to_value(&report).unwrap();
    other["later"] = json!(1);
    other.as_object_mut().unwrap().remove("latest").unwrap();
    other["job"]
        .as_object_mut()
        .unwrap()
        .remove("ended")
        .unwrap();
    let other: Report = serde_json::from_value(other).unwrap();
    assert_eq!(other.latest, LatestReport::default());
    assert_eq!(other.verdict, report.verdict);
}

#[test]
fn the_end_of_the_job_is_a_gap() {
    let mut model = watched();
    let mut last = training(7.0);
    last.at = moment(8.0);
    last.job.iter_mut().for_each(|job| job.ended = true);
    model.apply(last);
    let report = Report::new(&model, &full_verdict());
    assert!(report.job.unwrap().ended);
    let gap = report.gaps.last().unwrap();
    assert_eq!(gap.source, "job");
    assert!(gap.reason.contains("has ended"), "{}", gap.reason);
}
