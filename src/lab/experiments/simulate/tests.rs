use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::engine::Engine;
use crate::verdict::Kind;

fn picture(load_ms: u64) -> SimulationSettings {
    SimulationSettings {
        load: Duration::from_millis(load_ms),
        load_jitter: 0.05,
        in_order: false,
        clock: Some(Duration::from_millis(100)),
        ..SimulationSettings::default()
    }
}

#[test]
fn the_load_time_on_the_screen_is_named_as_a_setting() {
    let first = samples(&picture(2000), 0).next().unwrap();
    let command = first.job.unwrap().command;
    assert_eq!(
        command,
        "simulation set to a mean load of 2000 ms, step 100 ms"
    );
}

#[test]
fn the_three_pictures_give_their_batches() {
    for (load_ms, batches) in [(2000, 98.0), (700, 275.0), (350, 295.0)] {
        let study = Study::of(&picture(load_ms), 0, 200);
        let mean = study.batches().mean;
        assert!((mean - batches).abs() <= 1.0, "{load_ms} ms: {mean}");
    }
}

/// Returns the ends of the first steps in milliseconds.
fn ends(settings: &SimulationSettings, upto_ms: u64) -> Vec<u64> {
    let mut simulation = Simulation::new(settings, 0);
    let mut ends = Vec::new();
    for ms in 0..=upto_ms {
        simulation.advance(Duration::from_millis(ms));
        let done = usize::try_from(simulation.outcome().batches).unwrap();
        ends.resize(done, ms);
    }
    ends
}

#[test]
fn an_exact_run_can_be_followed_by_hand() {
    // Loads end at 300, 600 and 900 ms on both loaders; a step takes 100 ms.
    let settings = SimulationSettings {
        workers: 2,
        load: Duration::from_millis(300),
        span: Duration::from_secs(1),
        ..SimulationSettings::default()
    };
    assert_eq!(ends(&settings, 999), [400, 500, 700, 800]);
    let outcome = run(&settings, 0);
    assert_eq!(outcome.first_batch, Some(Duration::from_millis(300)));
    // Between 300 and 1000 ms, waits from 500 to 600 ms and from 800 to 900 ms.
    let stall = outcome.stall.unwrap().0;
    assert!((stall - 2.0 / 7.0).abs() < 1e-9, "{stall}");
    // During the first step of each pair, one batch is ready.
    assert!((outcome.mean_ready.unwrap() - 3.0 / 7.0).abs() < 1e-9);
    assert!((outcome.empty.unwrap().0 - 4.0 / 7.0).abs() < 1e-9);
    // A step that ends exactly at the end of the span does not count.
    let longer = SimulationSettings {
        span: Duration::from_nanos(1_000_000_001),
        ..settings
    };
    assert_eq!((outcome.batches, run(&longer, 0).batches), (4, 5));
}

#[test]
fn with_a_clock_everything_waits_for_the_tick() {
    let settings = SimulationSettings {
        workers: 1,
        load: Duration::from_millis(130),
        step: Duration::from_millis(20),
        clock: Some(Duration::from_millis(50)),
        span: Duration::from_secs(1),
        ..SimulationSettings::default()
    };
    // Ends of loads are noticed at 150, 300, ... ms, and steps end a tick later.
    assert_eq!(ends(&settings, 500), [200, 350, 500]);
}

#[test]
fn loaders_never_exceed_their_capacity() {
    // With a step that never ends, each loader makes the batches that were requested at the start, and one more.
    let settings = SimulationSettings {
        workers: 3,
        prefetch_factor: 2,
        load: Duration::from_millis(10),
        step: Duration::from_hours(1),
        ..SimulationSettings::default()
    };
    for in_order in [true, false] {
        let settings = SimulationSettings {
            in_order,
            ..settings.clone()
        };
        let mut simulation = Simulation::new(&settings, 0);
        simulation.advance(Duration::from_secs(29));
        assert_eq!(
            (simulation.order.available(), simulation.order.taken()),
            (6, 1)
        );
        assert!(simulation.workers().all(|(loads, _)| !loads));
        assert!(simulation.training);
        assert_eq!(simulation.outcome().ready_over_time.len(), 58);
    }
}

#[test]
fn in_order_a_slow_batch_holds_up_those_behind_it() {
    let jitter = |in_order| SimulationSettings {
        load: Duration::from_millis(700),
        load_jitter: 1.0,
        in_order,
        ..SimulationSettings::default()
    };
    let of = |in_order| Study::of(&jitter(in_order), 0, 20);
    let (in_order, any_order) = (of(true), of(false));
    assert!(in_order.batches().mean < any_order.batches().mean - 5.0);
    let held = in_order.mean(|run| run.mean_ready).unwrap();
    assert!(
        held > any_order.mean(|run| run.mean_ready).unwrap(),
        "{held}"
    );
}

#[test]
fn the_rhythm_is_that_of_the_loaders_until_chance_hides_it() {
    let starved = SimulationSettings {
        span: Duration::from_mins(5),
        ..SimulationSettings::default()
    };
    assert_eq!(run(&starved, 0).period_batches, Some(7));
    let varied = SimulationSettings {
        load_jitter: 0.8,
        ..starved.clone()
    };
    assert_eq!(Study::of(&varied, 0, 10).period_batches(), None);
    let desync = SimulationSettings {
        desync: true,
        ..starved.clone()
    };
    let (together, apart) = (run(&starved, 0), run(&desync, 0));
    assert!(apart.first_batch < together.first_batch);
    let stall = |outcome: &SimulatedRun| outcome.stall.unwrap().0;
    assert!(
        (stall(&together) - stall(&apart)).abs() < 0.02,
        "as starved as before"
    );
}

#[test]
fn nothing_is_known_where_no_batch_was_ready() {
    let slow = SimulationSettings {
        load: Duration::from_mins(1),
        ..SimulationSettings::default()
    };
    let outcome = run(&slow, 0);
    assert_eq!(
        (outcome.batches, outcome.first_batch, outcome.stall),
        (0, None, None)
    );
    let study = Study::of(&slow, 0, 1);
    assert_eq!(json(&study)["stall_share"], serde_json::Value::Null);
    let page = text(&study, true);
    assert!(page.contains("stalled          n/a"), "{page}");
    let said = "over time        n/a  no batch was ready\n";
    assert!(page.contains(said), "{page}");
}

#[test]
fn meaningless_settings_are_rejected_and_terminate() {
    let good = SimulationSettings::default();
    assert_eq!(good.check(), Ok(()));
    let ms = Duration::from_millis;
    // The command line takes none of these.
    let impossible = [
        SimulationSettings {
            workers: 0,
            ..good.clone()
        },
        SimulationSettings {
            prefetch_factor: 0,
            ..good.clone()
        },
        SimulationSettings {
            load_jitter: -0.1,
            ..good.clone()
        },
        SimulationSettings {
            load_jitter: f64::NAN,
            ..good.clone()
        },
        SimulationSettings {
            span: ms(0),
            ..good.clone()
        },
    ];
    for settings in impossible {
        run(&settings, 0);
    }
    let bad = [
        SimulationSettings {
            clock: Some(ms(30_000)),
            ..good.clone()
        },
        SimulationSettings {
            clock: Some(ms(0)),
            ..good.clone()
        },
        SimulationSettings {
            step: Duration::MAX,
            clock: Some(Duration::MAX),
            ..good.clone()
        },
    ];
    for settings in bad {
        assert!(settings.check().is_err(), "{settings:?}");
        run(&settings, 0);
    }
    let timeless = SimulationSettings {
        load: ms(0),
        step: ms(0),
        ..good
    };
    assert!(timeless.check().is_err());
}

#[test]
fn the_page_says_why_a_full_queue_does_not_help() {
    let settings = SimulationSettings {
        workers: 64,
        load: Duration::from_millis(500),
        step: Duration::from_millis(5),
        desync: true,
        ..SimulationSettings::default()
    };
    let page = |settings| text(&Study::of(&settings, 0, 3), false);
    let words = "in order: ready batches wait";
    assert!(page(settings.clone()).contains(words));
    let in_order = false;
    assert!(
        !page(SimulationSettings {
            in_order,
            ..settings
        })
        .contains(words)
    );
}

#[test]
fn a_single_worker_is_waited_for_at_each_batch() {
    let settings = SimulationSettings {
        workers: 1,
        ..SimulationSettings::default()
    };
    let page = text(&Study::of(&settings, 0, 1), false);
    assert!(page.contains("the trainer waits for each batch"), "{page}");
}

#[test]
fn a_page_without_chance_is_about_one_run() {
    let settings = SimulationSettings::default();
    let page = text(&Study::of(&settings, 0, 1), false);
    assert_eq!(page.lines().nth(1), Some("30s, one run"), "{page}");
}

#[test]
fn the_page_reads_well_at_80_columns() {
    let study = Study::of(&picture(2000), 0, 10);
    insta::assert_snapshot!(text(&study, false));
    let ascii = text(&study, true);
    assert!(ascii.is_ascii(), "{ascii}");
    let widest = SimulationSettings {
        workers: 1024,
        prefetch_factor: 100,
        load: Duration::from_millis(3_599_999),
        desync: true,
        span: Duration::from_hours(36),
        ..picture(0)
    };
    let page = text(&Study::of(&widest, u64::MAX, 2), false);
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
}

fn settings() -> impl Strategy<Value = SimulationSettings> {
    let clock = prop::option::of(1_u64..300).prop_map(|ms| ms.map(Duration::from_millis));
    let times = (0_u64..2000, 1_u64..300, 1_u64..20_000);
    (
        1_u32..20,
        1_u32..5,
        times,
        0.0..1.5_f64,
        any::<bool>(),
        clock,
        any::<bool>(),
    )
        .prop_map(
            |(
                workers,
                prefetch_factor,
                (load, step, span),
                load_jitter,
                in_order,
                clock,
                desync,
            )| {
                SimulationSettings {
                    workers,
                    prefetch_factor,
                    load: Duration::from_millis(load),
                    load_jitter,
                    step: Duration::from_millis(step),
                    in_order,
                    clock,
                    desync,
                    span: Duration::from_millis(span),
                    ..SimulationSettings::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_run_beats_its_bounds(settings in settings(), seed in any::<u64>()) {
        let outcome = run(&settings, seed);
        prop_assert_eq!(&outcome, &run(&settings, seed));
        let seconds = settings.span.as_secs_f64();
        let batches = outcome.batches as f64;
        prop_assert!(batches <= seconds / settings.step.as_secs_f64());
        if !settings.has_chance() && !settings.load.is_zero() {
            let loaded = f64::from(settings.workers) * (seconds / settings.load.as_secs_f64()).floor();
            prop_assert!(batches <= loaded, "{} of {} loaded", batches, loaded);
        }
        let capacity = settings.capacity() as f64;
        for ready in outcome.ready_over_time.iter().chain(&outcome.mean_ready) {
            prop_assert!((0.0..=capacity * 1.000_001).contains(ready), "{} of {}", ready, capacity);
        }
        prop_assert_eq!(outcome.ready_over_time.len(), 60);
        for share in outcome.stall.iter().chain(&outcome.empty) {
            prop_assert!((0.0..=1.0).contains(&share.0));
        }
    }

    #[test]
    fn one_more_worker_never_costs_a_batch(settings in settings()) {
        let settings = SimulationSettings { load_jitter: 0.0, desync: false, ..settings };
        let more = SimulationSettings { workers: settings.workers + 1, ..settings.clone() };
        prop_assert!(run(&more, 0).batches >= run(&settings, 0).batches);
    }

    #[test]
    fn polling_a_simulation_does_not_change_it(settings in settings(), polls in 1_u32..50) {
        let mut simulation = Simulation::new(&settings, 1);
        for look in 1..=polls {
            simulation.advance(settings.span * look / polls);
            simulation.outcome();
            prop_assert!(simulation.order.available() as u64 <= settings.capacity());
            let made: u64 = simulation.workers().map(|(_, made)| made).sum();
            prop_assert!(made >= simulation.order.taken() + simulation.order.available() as u64);
        }
        prop_assert_eq!(simulation.outcome(), run(&settings, 1));
    }
}

#[test]
fn the_samples_of_a_run_lead_to_its_figures() {
    let slow = SimulationSettings {
        load: Duration::from_secs(2),
        load_jitter: 0.2,
        span: Duration::from_mins(2),
        ..SimulationSettings::default()
    };
    let fast = SimulationSettings {
        load: Duration::from_millis(300),
        ..slow.clone()
    };
    for (settings, kind) in [(slow, Kind::DataBound), (fast, Kind::ComputeBound)] {
        let mut engine = Engine::new(settings.span);
        for sample in samples(&settings, 3) {
            engine.push(sample);
        }
        let report = engine.state().report().unwrap();
        let simulated = run(&settings, 3);
        let rank = &report.job.as_ref().unwrap().ranks[0];
        assert_eq!(report.verdict.kind, kind);
        let seen = rank.wait_share.unwrap().0;
        let stall = simulated.stall.unwrap().0;
        assert!((seen - stall).abs() < 0.02, "{seen} is not {stall}");
        let seen = rank.step.batches_per_s.unwrap();
        let rate = simulated.batches_per_s.unwrap();
        assert!((seen / rate - 1.0).abs() < 0.03, "{seen} is not {rate}");
    }
}

#[test]
fn the_load_times_of_the_workers_agree_with_the_mean_from_the_start() {
    let settings = SimulationSettings {
        load: Duration::from_secs(2),
        ..SimulationSettings::default()
    };
    let mut engine = Engine::new(Duration::from_secs(10));
    let mut compared = 0;
    for sample in samples(&settings, 0).take(80) {
        let at = sample.at.since_start;
        engine.push(sample);
        let Some(job) = engine.state().report().and_then(|report| report.job) else {
            continue;
        };
        let rank = &job.ranks[0];
        let loads = rank.workers.iter().map(|worker| worker.load_ms);
        let loads: Option<Vec<f64>> = loads.collect();
        if let Some((loads, mean)) = loads.zip(rank.step.load_ms) {
            let own = loads.iter().sum::<f64>() / loads.len() as f64;
            assert!((own / mean - 1.0).abs() < 0.01, "{at:?}: {own} and {mean}");
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}
