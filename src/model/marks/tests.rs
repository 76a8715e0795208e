use std::time::Duration;

use super::*;
use crate::model::Model;
use crate::model::literals::{first_loader, first_rank, key, training};
use crate::sample::{BatchClock, BatchCount, LoaderSample, Passes, RankSample, Sample};
use crate::units::{Bytes, ProcessKey};

/// Returns a sample without signs of an epoch or a checkpoint.
fn quiet(at: u32) -> Sample {
    let mut sample = training(f64::from(at));
    let rank = first_rank(&mut sample);
    rank.passes.clear();
    rank.saving = None;
    rank.process.io = None;
    sample
}

/// Returns the marks of samples one second apart, each changed by `change`.
fn marks(seconds: u32, change: impl Fn(u32, &mut RankSample)) -> Vec<(u64, MarkKind, String)> {
    let mut model = Model::new(Duration::from_secs(10));
    for at in 0..seconds {
        let mut sample = quiet(at);
        change(at, first_rank(&mut sample));
        model.apply(sample);
    }
    all_marks(&model)
}

fn all_marks(model: &Model) -> Vec<(u64, MarkKind, String)> {
    let all = model.history().marks().between(-1.0, f64::MAX);
    all.iter()
        .map(|mark| (mark.at.as_secs(), mark.kind, mark.words.clone()))
        .collect()
}

fn kinds(marks: &[(u64, MarkKind, String)]) -> Vec<(u64, MarkKind)> {
    marks.iter().map(|(at, kind, _)| (*at, *kind)).collect()
}

#[test]
fn steady_job_has_no_marks() {
    assert_eq!(marks(60, |_, _| {}), []);
}

#[test]
fn restarted_iterators_are_epochs_and_validations() {
    // Ten batches a second: 100 of training, then 30 of validation, and again.
    let marks = marks(40, |at, rank| {
        let (round, second) = (u64::from(at / 13), u64::from(at % 13));
        let pass = |dataset, begun, longest, batches| Passes {
            dataset,
            begun,
            batches,
            longest,
            returns: begun - 1,
            ..Passes::default()
        };
        let trained = 50 + round * 100 + second.min(10) * 10;
        rank.passes.push(pass(0, round + 1, 100, trained));
        if at >= 11 {
            let begun = round + u64::from(second > 10);
            let now = second.saturating_sub(10) * 10;
            rank.passes.push(pass(1, begun, 20, round * 20 + now));
        }
        // The newest pass comes last.
        if second <= 10 {
            rank.passes.reverse();
        }
    });
    let kinds = kinds(&marks);
    let of = |kind| {
        kinds
            .iter()
            .filter(|(_, other)| *other == kind)
            .map(|(at, _)| *at)
            .collect::<Vec<_>>()
    };
    // The first epoch was already in progress.
    assert_eq!(of(MarkKind::Epoch), [13, 26]);
    assert_eq!(of(MarkKind::Validation), [11, 24, 37]);
}

#[test]
fn recreated_workers_are_an_epoch_and_a_single_exit_is_not() {
    let marks = marks(40, |at, rank| {
        let workers = &mut rank.loaders[0].workers;
        if at >= 10 {
            for worker in workers.iter_mut() {
                worker.key.pid.0 += 1000;
            }
        }
        if at >= 20 {
            workers.remove(0);
        }
    });
    assert_eq!(
        kinds(&marks),
        [(10, MarkKind::Epoch), (20, MarkKind::Worker)]
    );
    assert!(marks[0].2.contains("were restarted"), "{marks:?}");
    assert!(
        marks[1].2.contains(") ended, ") && marks[1].2.contains("others are still running"),
        "{marks:?}"
    );
}

#[test]
fn a_replacement_worker_is_named() {
    let marks = marks(20, |at, rank| {
        if at >= 10 {
            rank.loaders[0].workers[1].key.pid.0 += 1000;
        }
    });
    assert_eq!(kinds(&marks), [(10, MarkKind::Worker)]);
    assert!(
        marks[0].2.starts_with("worker 1 was restarted: pid "),
        "{marks:?}"
    );
}

#[test]
fn workers_that_end_one_after_the_other_are_the_end_of_an_epoch() {
    let marks = marks(30, |at, rank| {
        let left = rank.loaders[0]
            .workers
            .len()
            .saturating_sub(at.saturating_sub(10) as usize);
        rank.loaders[0].workers.truncate(left);
        if left == 0 {
            rank.loaders.clear();
        }
    });
    assert_eq!(kinds(&marks), []);
}

#[test]
fn another_loader_that_delivers_while_training_rests_is_a_validation() {
    let counted = |loader: &mut LoaderSample, count: u64| {
        loader.batches = Some(BatchCount {
            count,
            source: BatchClock::SharedMemory,
        });
    };
    let marks = marks(40, |at, rank| {
        let at = u64::from(at);
        let mut other = rank.loaders[0].clone();
        other.id = 99;
        for worker in &mut other.workers {
            worker.key.pid.0 += 5000;
        }
        counted(
            &mut rank.loaders[0],
            1000 + at.min(15) * 10 + at.saturating_sub(25) * 10,
        );
        counted(&mut other, at.saturating_sub(15).min(10) * 10);
        rank.loaders.push(other);
    });
    assert_eq!(kinds(&marks), [(16, MarkKind::Validation)]);
}

#[test]
fn two_loaders_that_take_turns_in_each_step_are_no_validation() {
    let marks = marks(60, |at, rank| {
        let at = u64::from(at);
        let mut other = rank.loaders[0].clone();
        other.id = 99;
        for (loader, count) in [
            (&mut rank.loaders[0], 100 + at / 2),
            (&mut other, at.div_ceil(2)),
        ] {
            loader.batches = Some(BatchCount {
                count,
                source: BatchClock::Iterator,
            });
        }
        rank.loaders.push(other);
    });
    assert_eq!(kinds(&marks), []);
}

#[test]
fn a_stack_that_saves_is_a_checkpoint_once() {
    let marks = marks(40, |at, rank| {
        let saving = at.saturating_sub(10).min(4) + at.saturating_sub(30).min(1);
        rank.saving = Some(u64::from(saving) * 80);
    });
    assert_eq!(
        kinds(&marks),
        [(11, MarkKind::Checkpoint), (31, MarkKind::Checkpoint)]
    );
}

#[test]
fn a_burst_of_writing_is_a_checkpoint_and_steady_writing_is_none() {
    let io = |bytes: u64| {
        Some(crate::sample::IoSample {
            write_bytes: Bytes(bytes),
            ..crate::sample::IoSample::default()
        })
    };
    let burst = marks(40, |at, rank| {
        let bursts = u64::from(at >= 10) * (60 << 20) + u64::from(at >= 11) * (60 << 20);
        rank.process.io = io(bursts + u64::from(at) * 1000);
    });
    assert_eq!(kinds(&burst), [(10, MarkKind::Checkpoint)]);
    assert!(burst[0].2.contains("60.0 MiB"), "{burst:?}");
    let steady = marks(40, |at, rank| {
        rank.process.io = io(u64::from(at) * (20 << 20));
    });
    assert_eq!(kinds(&steady), []);
}

#[test]
fn the_ends_of_a_job_are_marks() {
    let mut model = Model::new(Duration::from_secs(10));
    for at in 0..30 {
        let mut sample = quiet(at);
        if at < 5 {
            sample.job = None;
        } else {
            let job = sample.job.as_mut().unwrap();
            // It started 4.5 s after pipetop, which started 1000 s after boot.
            job.key = ProcessKey {
                start_ticks: 100_450,
                ..key(100)
            };
            job.ended = at >= 20;
            if at >= 19 {
                first_loader(&mut sample).workers.remove(0);
            }
        }
        model.apply(sample);
    }
    let marks = all_marks(&model);
    assert_eq!(
        kinds(&marks),
        [(4, MarkKind::JobBegin), (20, MarkKind::JobEnd)]
    );
    assert!(marks[1].2.contains("ended before it"), "{marks:?}");
}

#[test]
fn memory_is_fixed_and_important_marks_are_kept() {
    let kinds = [
        MarkKind::JobBegin,
        MarkKind::Epoch,
        MarkKind::Validation,
        MarkKind::Checkpoint,
        MarkKind::Worker,
        MarkKind::Verdict,
        MarkKind::JobEnd,
    ];
    let mut marks = Marks::default();
    for at in 0..10_000 {
        let kind = kinds[at % 7];
        marks.add(Mark::new(Duration::from_secs(at as u64), kind, ""));
    }
    let all = marks.between(-1.0, f64::MAX);
    assert_eq!(all.len(), MAX_MARKS);
    assert!(all.windows(2).all(|two| two[0].at <= two[1].at));
    let most = all
        .iter()
        .filter(|mark| mark.kind == MarkKind::JobEnd)
        .count();
    // The newest is kept, whatever its kind.
    assert!(most >= MAX_MARKS - 1, "{most}");
    assert_eq!(marks.between(9_000.0, 9_000.0), []);
}

#[test]
fn a_new_dataset_for_each_epoch_is_no_validation() {
    // Ten batches a second, 80 batches of each dataset.
    let marks = marks(40, |at, rank| {
        for dataset in 0..=u64::from(at / 8) {
            let batches = 80.min((u64::from(at) - dataset * 8) * 10);
            rank.passes.push(Passes {
                dataset,
                begun: 1,
                batches,
                ..Passes::default()
            });
        }
    });
    // The second dataset may be that of a validation.
    assert_eq!(kinds(&marks)[1..], [16, 24].map(|at| (at, MarkKind::Epoch)));
}
