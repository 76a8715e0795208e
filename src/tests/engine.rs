//! A live engine, an engine with lost samples, and one fed from a recording have the same results.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use crate::engine::Engine;
use crate::model::MarkKind;
use crate::model::literals::{first_rank, training, whole};
use crate::record::{self, Recording, Writer};
use crate::sample::Sample;
use crate::verdict::Kind;

const WINDOW: Duration = Duration::from_secs(10);

/// A job that waits for data, but no longer from the 30th second on.
fn job(at: u32) -> Sample {
    let mut sample = training(f64::from(at));
    sample.gpus[0].driver_zero_us = Some(0);
    if at > 30 {
        let before = training(30.0).job.unwrap().ranks.remove(0);
        let late = u64::from(at - 30) * 100;
        let rank = first_rank(&mut sample);
        let mut tally = before.main.unwrap();
        tally.polls += late;
        tally.running += late;
        rank.main = Some(tally);
        rank.waits = before.waits;
    }
    let waits = &mut first_rank(&mut sample).waits;
    let count = waits.count.unwrap();
    for (number, wait) in (0..count).rev().zip(waits.newest.iter_mut().rev()) {
        wait.batch = Some(number);
    }
    sample
}

fn fed(samples: impl IntoIterator<Item = Sample>) -> Engine {
    let mut engine = Engine::new(WINDOW);
    for sample in samples {
        engine.push(sample);
    }
    engine
}

/// From the first second after the stop on, the figures are the same as without the stop.
#[test]
fn the_time_of_a_stop_is_no_part_of_a_share() {
    let stopped_for = |at: u32| f64::from(at.clamp(20, 26) - 20).min(5.3);
    let stopped = |at: u32| {
        let mut sample = training(f64::from(at));
        sample.job = training(f64::from(at) - stopped_for(at)).job;
        let main = first_rank(&mut sample).main.as_mut().unwrap();
        main.stopped = whole(200.0 * stopped_for(at));
        main.polls += main.stopped;
        sample
    };
    let mut engine = fed((0..27).map(stopped));
    for at in 27..40 {
        let state = engine.push(stopped(at));
        let rates = state.model.window().unwrap();
        let rank = &rates.job.as_ref().unwrap().ranks[0];
        let wait = rank.wait.unwrap();
        assert!((wait.share.0 - 0.6).abs() < 0.02, "{at}: {wait:?}");
        let rate = rank.step.batches_per_s.unwrap();
        assert!((rate - 10.0).abs() < 0.2, "{at}: {rate}");
        assert_eq!(state.kind(), Some(Kind::DataBound), "{at}");
    }
}

#[test]
fn a_clock_that_is_set_back_changes_no_figure() {
    let set_back = (0..60).map(|at| {
        let mut sample = job(at);
        if at > 20 {
            sample.at.wall -= Duration::from_hours(24);
        }
        sample
    });
    let (steady, set_back) = (fed((0..60).map(job)), fed(set_back));
    let verdict = set_back.state().verdict();
    assert!(verdict.is_some());
    assert_eq!(verdict, steady.state().verdict());
    assert_eq!(set_back.state().uptime(), steady.state().uptime());
}

#[test]
fn a_job_that_has_ended_grows_no_older() {
    let ended = |at: u32| {
        let mut sample = job(at);
        sample.job.iter_mut().for_each(|job| job.ended = at > 10);
        sample
    };
    let uptime = |engine: &Engine| engine.state().uptime();
    let lived = uptime(&fed((0..=10).map(job)));
    assert!(lived.is_some());
    assert_eq!(uptime(&fed((0..=20).map(ended))), lived);
    assert_eq!(uptime(&fed((11..=20).map(ended))), None);
}

/// Returns everything from which a screen or a report is made.
fn known(engine: &Engine) -> impl PartialEq + std::fmt::Debug + use<> {
    let state = engine.state();
    let model = &state.model;
    (
        model.window().cloned(),
        model.latest().cloned(),
        model.steps().clone(),
        model.progress(),
        state.verdict().cloned(),
        (state.uptime(), state.gaps().to_vec()),
        model.history().marks().between(-1.0, f64::MAX).to_vec(),
    )
}

fn recorded(samples: &[Sample]) -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    let options = record::RecordOptions {
        path: folder.path().join("run.rec"),
        size: record::SIZE,
        command_lines: true,
        interval: Duration::from_secs(1),
    };
    let mut writer = Writer::create(&options).unwrap();
    for sample in samples {
        writer.write(sample).unwrap();
    }
    writer.finish().unwrap();
    let mut recording = Recording::open(&options.path).unwrap();
    let samples = (0..recording.len()).map(|number| recording.read(number).unwrap().0);
    samples.collect()
}

#[test]
fn a_verdict_change_is_marked() {
    let engine = fed((0..60).map(job));
    assert_eq!(engine.state().kind(), Some(Kind::Balanced));
    let marks = engine.state().model.history().marks();
    let turns = marks.between(-1.0, f64::MAX).iter();
    let turns = turns.filter(|mark| mark.kind == MarkKind::Verdict);
    assert!(turns.count() >= 2, "{marks:?}");
}

#[test]
fn restart_clears_all_state() {
    let mut engine = fed((0..60).map(job));
    engine.restart();
    assert!(engine.state().verdict().is_none() && engine.state().model.history().is_empty());
    let anew = (0..20).map(job);
    for sample in anew.clone() {
        engine.push(sample);
    }
    assert_eq!(known(&engine), known(&fed(anew)));
}

/// Returns where a document holds whole numbers.
fn numbers(document: &Value, place: &str, found: &mut Vec<String>) {
    match document {
        Value::Object(fields) => {
            for (name, value) in fields {
                numbers(value, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                numbers(value, &format!("{place}/{at}"), found);
            }
        }
        Value::Number(number) if number.is_u64() => found.push(place.to_owned()),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// A recording may be damaged or edited: no figure in it may end pipetop.
#[test]
fn no_figure_is_too_large() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/recordings/h200/short-steps.rec"
    );
    let mut recording = Recording::open(Path::new(path)).unwrap();
    let last = recording.len() - 1;
    let samples = [0, 1, last - 2, last - 1, last]
        .map(|number| serde_json::to_value(recording.read(number).unwrap().0).unwrap());
    let mut places = vec![];
    numbers(&samples[3], "", &mut places);
    for place in places {
        for from in [1, 3] {
            for figure in [u64::MAX, u64::MAX / 2] {
                let mut edited = samples.clone();
                for sample in &mut edited[from..4] {
                    if let Some(value) = sample.pointer_mut(&place) {
                        *value = figure.into();
                    }
                }
                // What cannot be read is damage, which is reported as such.
                let read = edited.into_iter().map(serde_json::from_value);
                let Ok(samples) = read.collect::<Result<Vec<Sample>, _>>() else {
                    continue;
                };
                let fed = std::panic::catch_unwind(|| fed(samples).state().report().is_some());
                assert!(fed.is_ok(), "{place} = {figure} from {from}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// A slow screen may miss at most two samples in a row, as each sample repeats the events of the two before it.
    #[test]
    fn live_equals_replay(
        kept in prop::collection::vec(0..3_u32, 20..60),
    ) {
        let mut seconds = vec![];
        let mut at = 0;
        for lost in kept {
            seconds.push(at);
            at += 1 + lost;
        }
        let samples: Vec<Sample> = seconds.iter().map(|at| job(*at)).collect();
        let live = fed(samples.iter().cloned());
        let replayed = fed(recorded(&samples));
        prop_assert_eq!(known(&live), known(&replayed));
        // No event in between was lost.
        let all = fed((0..=seconds[seconds.len() - 1]).map(job));
        let steps = |engine: &Engine| engine.state().model.steps().clone();
        prop_assert_eq!(steps(&live), steps(&all));
    }
}
