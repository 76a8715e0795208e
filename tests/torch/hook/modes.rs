//! Experiments on a script: changed settings of its loaders, and batches from a cache.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use pipetop::testing::launch::LoaderOverrides;
use pipetop::testing::probe::Cached;
use pipetop::units::Pid;
use serde_json::{Value, json};

use super::stand::{HookSession, Run, each_python, each_torch, job, last_torch, short};
use support::waiting as patience;
use support::waiting::ended;

fn settled(python: &str, settings: &Value, overrides: &LoaderOverrides) -> Run {
    let mut job = job(python, "settled");
    HookSession::new().run_with(overrides, job.arg(settings.to_string()))
}

/// Compares the script under these overrides with a script that has the settings itself.
fn same(settings: &Value, overrides: &LoaderOverrides, written: &Value) {
    each_torch(|python| {
        let run = settled(python, settings, overrides);
        let truth = run.truth();
        let expected = settled(python, written, &LoaderOverrides::default()).truth();
        assert_eq!(truth.batches, 24);
        assert_eq!(truth.seen, expected.seen, "{python} {overrides}");
        // Including the random numbers of each worker.
        assert_eq!(truth.digest, expected.digest, "{python} {overrides}");
        assert_eq!(truth.random.to_bits(), expected.random.to_bits());
        let report = run.report();
        assert_eq!((report.totals.steps, &report.notice), (24, &None));
        let seen = truth.seen.expect("its settings");
        assert_eq!(report.workers.map(u64::from), seen["num_workers"].as_u64());
        assert_eq!(
            report.pin,
            Some(false),
            "where there is no device, nothing is pinned"
        );
    });
}

fn overrides(words: &[(&str, u32)]) -> LoaderOverrides {
    let mut overrides = LoaderOverrides::default();
    for (word, value) in words {
        match *word {
            "workers" => overrides.workers = Some(*value),
            "prefetch" => overrides.prefetch = Some(*value),
            "pin" => overrides.pin = Some(*value > 0),
            _ => panic!("{word}"),
        }
    }
    overrides
}

#[test]
fn workers_where_there_were_none() {
    let written = json!({"num_workers": 2});
    same(&json!({}), &overrides(&[("workers", 2)]), &written);
}

#[test]
fn no_workers_and_nothing_that_only_they_can_have() {
    let settings = json!({
        "num_workers": 2, "persistent_workers": true, "prefetch_factor": 3, "timeout": 60,
        "multiprocessing_context": "fork", "pin_memory": true,
    });
    // Without workers nothing is prefetched.
    let none = overrides(&[("workers", 0), ("prefetch", 4), ("pin", 0)]);
    same(&settings, &none, &json!({}));
}

#[test]
fn overridden_settings_keep_the_others_of_the_script() {
    let settings = json!({"num_workers": 1, "persistent_workers": true, "timeout": 60});
    let written = json!({
        "num_workers": 2, "persistent_workers": true, "timeout": 60, "prefetch_factor": 4, "pin_memory": true,
    });
    let all = overrides(&[("workers", 2), ("prefetch", 4), ("pin", 1)]);
    same(&settings, &all, &written);
}

#[test]
fn invalid_settings_of_the_script_are_still_reported() {
    last_torch(|python| {
        let settings = json!({"persistent_workers": true});
        let run = settled(python, &settings, &overrides(&[("pin", 0)]));
        let (code, _, errors) = run.words();
        let expected = "ValueError: persistent_workers option needs num_workers > 0";
        assert_eq!((code, errors.lines().last()), (Some(1), Some(expected)));
        assert!(run.reports.is_empty(), "{:?}", run.notice());
    });
}

fn cached(batches: u32, from: u64) -> LoaderOverrides {
    LoaderOverrides {
        cache: Some(Cached { batches, from }),
        ..LoaderOverrides::default()
    }
}

#[test]
fn cached_batches_repeat_without_end() {
    each_torch(|python| {
        let run = HookSession::new().run_with(&cached(3, 20), &mut job(python, "counted"));
        let seen = run.truth().seen.expect("its batches");
        let seen = seen.as_array().expect("a list");
        // Batches have numbers: 15 per epoch, of two samples each.
        let numbers: Vec<u64> = seen.iter().filter_map(|batch| batch[1].as_u64()).collect();
        let loaded = (0..20).map(|batch| 2 * (batch % 15));
        let again = (0..80).map(|batch| [4, 6, 8][batch % 3]);
        assert!(
            numbers.iter().copied().eq(loaded.chain(again)),
            "{numbers:?}"
        );
        // The very same tensors; items that the script removed from a batch are restored.
        let places = seen[17..20].iter().cycle().take(80);
        assert!(seen[20..].iter().eq(places));
        let report = run.report();
        let from = 20;
        assert_eq!(report.cached, Some(Cached { batches: 3, from }));
        let mut waits: Vec<Duration> = report
            .steps
            .iter()
            .filter(|step| step.number >= from)
            .map(|step| Duration::from_nanos(step.wait_to - step.wait_from))
            .collect();
        waits.sort();
        // A busy machine may read the reports more slowly than they arrive.
        let median = waits.get(waits.len() / 2).expect("some are told");
        assert!(*median < Duration::from_micros(100), "{median:?}");
        assert_eq!(report.notice, None);
    });
}

#[test]
fn a_run_on_cached_batches_goes_on_until_it_is_ended_from_outside() {
    last_torch(|python| {
        let stand = HookSession::new();
        let mut child = stand.start(&cached(2, 5), &mut job(python, "endless"));
        let pid = Pid(child.id().cast_signed());
        let mut line = String::new();
        let mut told = BufReader::new(child.stdout.take().expect("a pipe"));
        told.read_line(&mut line).expect("our child's words");
        assert_eq!(line, "a thousand steps\n", "of 15 batches an epoch");
        let cached = patience::wait("a report", || stand.listener.take(pid)?.cached);
        assert_eq!(
            (child.try_wait().expect("our child"), cached.from),
            (None, 5)
        );
        child.kill().expect("our child");
        assert_eq!(ended(&mut child).signal(), Some(9));
    });
}

#[test]
fn a_loader_to_check_with_still_ends() {
    each_torch(|python| {
        let run = HookSession::new().run_with(&cached(2, 7), &mut job(python, "checked"));
        let truth = run.truth();
        assert_eq!(
            truth.batches, 60,
            "of 20: those to train with come from the cache"
        );
        assert_eq!(truth.seen, Some(json!(vec![4; 12])));
        assert!(run.report().cached.is_some());
    });
}

#[test]
fn loaders_that_are_read_in_step_are_cached_together() {
    last_torch(|python| {
        let run = HookSession::new().run_with(&cached(2, 10), &mut job(python, "in_step"));
        assert_eq!(run.truth().seen, Some(json!(100)));
        assert_eq!(run.report().cached.map(|cached| cached.from), Some(10));
    });
}

#[test]
fn any_iterable_that_is_watched_can_be_cached() {
    let script = "from pipetop_hook import watch
print([batch for _, batch in zip(range(12), watch([10, 11, 12, 13, 14, 15]))])";
    each_python(|python| {
        let run = HookSession::new().run_with(&cached(2, 5), &mut short(python, script));
        let batches = "[10, 11, 12, 13, 14, 13, 14, 13, 14, 13, 14, 13]\n";
        assert_eq!(run.words(), (Some(0), batches.to_owned(), String::new()));
        assert_eq!(run.report().cached.map(|cached| cached.from), Some(5));
    });
}

#[test]
fn unknown_words_are_ignored_and_reported() {
    last_torch(|python| {
        let stand = HookSession::new();
        // Comes after the stand's own setting of the variable.
        let mut command = std::process::Command::new("env");
        command.arg("PIPETOP_HOOK=workers=many prefetch=0 turbo pin=2 cache= workers=1");
        let job = job(python, "main");
        command.arg(job.get_program()).args(job.get_args());
        let run = stand.run(&mut command);
        assert_eq!(run.truth().batches, 30);
        assert_eq!(run.report().workers, Some(1));
        let notice = run.notice().expect("it says so");
        let ends = "workers=many prefetch=0 turbo pin=2 cache=";
        assert!(notice.ends_with(ends), "{notice}");
    });
}
