use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::model::Model;
use crate::model::literals::{first_loader, first_rank, machine, moment, training};
use crate::sample::{
    BatchLoad, DeviceTime, Gap, JobCandidate, LoaderKind, QueueSource, Reported, Tier, WorkerLoads,
};
use crate::units::{Bytes, Pid, Share};
use crate::verdict::{
    Cause, Evidence, Expected, Headspace, Interval, Kind, Level, Missing, WarmingUp, WorkerAdvice,
};

fn interval(share: f64, low: f64, high: f64) -> Interval {
    Interval {
        share: Share(share),
        low: Share(low),
        high: Share(high),
    }
}

fn empty_verdict() -> Verdict {
    Verdict {
        kind: Kind::WarmingUp,
        cause: None,
        level: Level::None,
        rank: None,
        rank_key: None,
        wait: None,
        gpu_idle: None,
        stall: None,
        confidence: Share::ZERO,
        headspace: None,
        workers: None,
        what_if: Err("there is no verdict to go by".to_owned()),
        limit: None,
        period_batches: None,
        evidence: Vec::new(),
        missing: Vec::new(),
        advice: Vec::new(),
        seconds: 0.0,
        batches: None,
        warming_up: Some(WarmingUp {
            batches: Some(5),
            batches_needed: 20,
            seconds: 3.0,
            seconds_needed: 10.0,
        }),
    }
}

fn full_verdict() -> Verdict {
    let fact = |id, supports, text: &str| Evidence {
        id,
        supports,
        value: 0.910_000_000_1,
        threshold: Some(0.5),
        text: text.to_owned(),
    };
    Verdict {
        kind: Kind::DataBound,
        cause: Some(Cause::CpuPreprocess),
        level: Level::High,
        rank: Some(0),
        wait: Some(interval(0.6, 0.55, 0.65)),
        gpu_idle: Some(Share(0.6)),
        stall: Some(interval(0.633_333_333, 0.61, 0.66)),
        confidence: Share(0.94),
        headspace: Some(Headspace {
            speedup_max: f64::INFINITY,
            step_ms_now: Some(100.0),
            step_ms_free: Some(40.0),
        }),
        workers: Some(WorkerAdvice {
            now: 2,
            match_step: Some(5),
            cpu_allows: Some(4),
            advised: Some(4),
        }),
        what_if: Ok(vec![Expected {
            workers: 5,
            wait: interval(0.0, 0.0, 0.083_333_333),
            batches_per_s: 24.999_999,
        }]),
        period_batches: Some(2),
        evidence: vec![
            fact("queue-empty", true, "queue empty 91 % of the time"),
            fact("overlap", false, "2 % of the waits overlap GPU work"),
        ],
        missing: vec![Missing {
            id: "sm".to_owned(),
            why: "no GPM".to_owned(),
            hint: String::new(),
        }],
        advice: vec!["num_workers 2 -> 4".to_owned()],
        seconds: 6.0,
        batches: Some(60),
        warming_up: None,
        ..empty_verdict()
    }
}

fn watched() -> Model {
    let mut model = Model::new(Duration::from_secs(10));
    for at in 1..8_u32 {
        let mut sample = training(f64::from(at));
        sample.gaps.push(Gap {
            source: "psi".to_owned(),
            reason: "the kernel has none".to_owned(),
            hint: "boot with psi=1".to_owned(),
        });
        first_loader(&mut sample).workers[0].loads = Some(WorkerLoads {
            ended: vec![BatchLoad {
                batch: at.into(),
                low_ms: 363,
                high_ms: 464,
            }],
            ..WorkerLoads::default()
        });
        model.apply(sample);
    }
    model
}

fn empty() -> Model {
    Model::new(Duration::from_secs(10))
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../config/report.schema.json")).unwrap()
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
    check(&json(&watched(), &full_verdict()));
}

#[test]
fn what_a_job_reports_of_itself_is_in_the_report() {
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
    let report = json(&model, &full_verdict());
    check(&report);
    assert_eq!(report["window"]["access"], "T3");
    let rank = &report["job"]["ranks"][0];
    assert_eq!(rank["device"]["name"], "simulated");
    assert_eq!(rank["device"]["busy_share"], 0.93);
    assert_eq!(rank["device"]["copy_share"], Value::Null);
    assert_eq!(rank["queue"]["source"], "probe");
    assert_eq!(rank["step"]["wait_ms"], 25.0);
    let text = text(&model, &full_verdict());
    assert!(
        text.contains("device    simulated   busy 93 %   copy n/a   no GPU here"),
        "{text}"
    );
}

#[test]
fn every_word_of_the_sample_is_in_the_schema() {
    let schema = schema();
    let known = |part: &str, field: &str, word: Value| {
        let words = &schema["$defs"][part]["properties"][field]["enum"];
        assert!(words.as_array().unwrap().contains(&word), "{word}");
    };
    known("loader", "kind", json!(LoaderKind::Reported));
    known("queue", "source", json!(QueueSource::Probe));
    known("verdict", "cause", json!(Cause::Transfer));
}

#[test]
fn an_empty_report_keeps_the_schema_and_says_null() {
    let report = json(&empty(), &empty_verdict());
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
    check(&json(&model, &empty_verdict()));
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
    let report = json(&model, &empty_verdict());
    check(&report);
    let rank = &report["job"]["ranks"][0];
    assert_eq!(rank["queue"], Value::Null);
    assert_eq!(rank["workers"][0]["cpu_percent"], Value::Null);
    assert_eq!(rank["workers"][0]["state"], "unknown");
    assert_eq!(report["gpus"][0]["mem_used_bytes"], Value::Null);
}

#[test]
fn the_schema_refuses_what_the_contract_does_not_know() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let report = json(&watched(), &full_verdict());
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
    let mut other = report;
    other["verdict"]["kind"] = Value::from("DataBound");
    assert!(!validator.is_valid(&other));
}

#[test]
fn figures_are_rounded_to_what_they_mean() {
    let report = json(&watched(), &full_verdict());
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

#[test]
fn the_text_opens_with_the_verdict_and_its_reasons() {
    let text = text(&watched(), &full_verdict());
    let expected = "\
python train.py  pid 100  60 batches seen in 6 s  access T2
DATA-BOUND   63 % of the time is lost waiting for data (61-66 %)   cause: CPU preprocessing   94 % sure
do        num_workers 2 -> 4
for       queue empty 91 % of the time
but       2 % of the waits overlap GPU work

rank 0    wait 60 %   step 40 ms   wait 60 ms   load 180 ms   10.0 batches/s
loader    PyTorch DataLoader   2 workers   prefetch 2
queue     0.5 of 4, empty 75 %
worker 0  pid 200   CPU 80 %   busy 90 %   read 20.0 MB/s   5.0 batches/s   load 180 ms   in Image.resize 100 %
worker 1  pid 201   CPU 80 %   busy 90 %   read 20.0 MB/s   5.0 batches/s   load 180 ms   in Image.resize 100 %
GPU 0     NVIDIA H200   util 40 %   memory 20.0 GiB of 140 GiB   n/a   n/a
disk      nvme0n1   read 50.0 MB/s   write 0 B/s   util 10 %   wait 2.0 ms
host      CPU 50 %   pressure cpu 50 %   io 0 %   memory n/a   own cost 1.0 %
not seen  sm: no GPM
not seen  psi: the kernel has none (boot with psi=1)
";
    assert_eq!(text, expected);
}

#[test]
fn the_text_without_a_job_says_so() {
    let text = text(&empty(), &empty_verdict());
    assert_eq!(
        text,
        "no job is watched\nWARMING UP   5 of 20 batches, 3 of 10 s\n"
    );
}

#[test]
fn the_text_names_the_jobs_to_choose_from_and_no_gap_twice() {
    let mut sample = machine(1.0);
    sample.candidates = vec![crate::sample::JobCandidate {
        pid: crate::units::Pid(48213),
        command: "python train.py".to_owned(),
        ranks: 2,
        workers: 8,
    }];
    let mut verdict = empty_verdict();
    for source in ["psi", "nvml"] {
        sample.gaps.push(Gap {
            source: source.to_owned(),
            reason: "absent".to_owned(),
            hint: String::new(),
        });
    }
    verdict.missing.push(Missing {
        id: "nvml".to_owned(),
        why: "absent".to_owned(),
        hint: String::new(),
    });
    let mut model = empty();
    model.apply(sample);
    assert_eq!(
        text(&model, &verdict),
        "no job is watched\nWARMING UP   5 of 20 batches, 3 of 10 s\n\
         not seen  nvml: absent\nnot seen  psi: absent\n\
         pipetop 48213   2 ranks, 8 workers: python train.py\n"
    );
}

#[test]
fn a_line_has_the_figures_of_its_interval() {
    assert_eq!(
        line(&watched(), &full_verdict()),
        "7 s  wait 60 %  queue 0.5 of 4  step 40 ms  10.0 batches/s  gpu 40 %  disk 60.0 MB/s  \
         DATA-BOUND (CPU preprocessing)  94 % sure"
    );
    assert_eq!(line(&empty(), &empty_verdict()), "0 s  no training job yet");
    let mut none = Model::new(Duration::from_secs(10));
    let mut sample = machine(3.0);
    sample.candidates = [7, 9].map(candidate).to_vec();
    none.apply(sample);
    assert_eq!(
        line(&none, &empty_verdict()),
        "3 s  several training jobs, name one: pipetop 7 or 9"
    );
}

fn candidate(pid: i32) -> JobCandidate {
    JobCandidate {
        pid: Pid(pid),
        command: "python train.py".to_owned(),
        ranks: 1,
        workers: 4,
    }
}

#[test]
fn that_a_job_has_ended_is_said() {
    let mut model = watched();
    let mut last = training(7.0);
    last.at = moment(8.0);
    last.job.iter_mut().for_each(|job| job.ended = true);
    model.apply(last);
    let verdict = full_verdict();
    assert_eq!(
        line(&model, &verdict),
        "8 s  the job has ended; it was DATA-BOUND (CPU preprocessing)  94 % sure"
    );
    assert!(
        text(&model, &verdict)
            .lines()
            .next()
            .unwrap()
            .ends_with("  ended")
    );
    let gaps = &json(&model, &verdict)["gaps"];
    let ended = gaps.as_array().unwrap().last().unwrap();
    assert_eq!(ended["source"], "job");
    assert!(ended["reason"].as_str().unwrap().contains("has ended"));
}
