//! Waits, steps and queues of real loops, against each script's own measurements.

use super::stand::{HookSession, Run, Truth, each_torch, job, last_torch, spawn};
use pipetop::testing::launch::LoaderOverrides;
use pipetop::units::Pid;
use std::process::Command;
use support::measured::shortest;
use support::waiting::ToEnd;

/// Runs the situation with each torch, compares the reports with the script's own figures, and passes both to `also`.
fn exact(situation: &str, also: impl Fn(&Run, &Truth) + Sync) {
    each_torch(|python| exact_with(python, situation, &also));
}

/// Like [`exact`] with the last torch only, for what does not depend on its version.
fn exact_with_last(situation: &str, also: impl Fn(&Run, &Truth)) {
    last_torch(|python| exact_with(python, situation, also));
}

fn exact_with(python: &str, situation: &str, also: impl Fn(&Run, &Truth)) {
    let stand = HookSession::new();
    let run = stand.run(&mut job(python, situation));
    let truth = run.truth();
    let report = run.report();
    let totals = &report.totals;
    assert!(truth.hooked);
    assert_eq!(report.notice, None);
    assert_eq!((totals.steps, totals.lost), (truth.batches, 0), "{python}");
    assert!(
        report
            .steps
            .iter()
            .map(|step| step.number)
            .eq(0..truth.batches)
    );
    // Each step begins where the previous one ended, or later: after an epoch.
    let each = report.steps.iter().zip(report.steps.iter().skip(1));
    assert!(
        each.clone()
            .all(|(older, newer)| older.step_to <= newer.wait_from)
    );
    let waited = totals.waited.as_nanos();
    let (truly, off) = (
        u128::from(truth.waited),
        waited.abs_diff(truth.waited.into()),
    );
    let allowed = truly / 100 + u128::from(truth.batches) * 1_000_000;
    let ms = |ns: u128| ns as f64 / 1e6;
    let line = format!(
        "{situation}, {python}: waited {:.3} ms, truly {:.3} ms, {} batches",
        ms(waited),
        ms(truly),
        truth.batches
    );
    println!("{line}");
    assert!(off <= allowed, "{line}");
    also(&run, &truth);
}

/// Returns the mean number of ready batches, and the capacity.
fn ready(run: &Run) -> (f64, Option<u32>) {
    let queue = run.report().queue.expect("ready batches are told");
    (queue.ready_sum as f64 / queue.polls as f64, queue.capacity)
}

#[test]
fn in_the_main_process() {
    exact("main", |run, truth| {
        assert_eq!(truth.batches, 30);
        assert_eq!(run.report().queue, None, "there is no queue");
    });
}

#[test]
fn forked_workers() {
    exact("fork", |run, _| {
        let most = run
            .report()
            .steps
            .iter()
            .filter_map(|step| step.ready)
            .max();
        assert!(most <= Some(4), "{most:?} of 4");
        assert_eq!(ready(run).1, Some(4));
    });
}

#[test]
fn spawned_workers() {
    exact_with_last("spawn", |_, _| ());
}

#[test]
fn workers_of_a_fork_server() {
    exact_with_last("forkserver", |_, _| ());
}

#[test]
fn persistent_workers_and_two_epochs() {
    exact("persistent", |_, truth| {
        assert_eq!(truth.batches, 60);
    });
}

#[test]
fn fresh_workers_in_each_epoch() {
    exact("fresh", |_, truth| {
        assert_eq!(truth.batches, 60);
    });
}

#[test]
fn two_loaders_that_take_turns_are_one_count() {
    exact("interleaved", |_, truth| {
        assert_eq!(truth.batches, 2 * (20 + 4 * 4));
    });
}

#[test]
fn the_start_of_workers_is_waited_for_wherever_it_is() {
    exact("begun_early", |run, truth| {
        assert_eq!(truth.batches, 30);
        // Not the time after each start: 0.2 s before the first batch, and another 0.2 s in the tenth step.
        let waited = run.report().totals.waited;
        let stepped = run.report().totals.stepped;
        assert!(stepped.as_millis() >= 200, "{stepped:?}");
        assert!(waited.as_millis() >= 300, "{waited:?}: twice 150 ms");
        assert!(waited.as_nanos() < u128::from(truth.waited) + 100_000_000);
    });
}

#[test]
fn the_share_of_waiting_is_what_the_script_finds_over_200_batches() {
    last_torch(|python| {
        let run = HookSession::new().run(&mut job(python, "half_waiting"));
        let truth = run.truth();
        let report = run.report();
        let totals = &report.totals;
        assert_eq!((truth.batches, totals.steps, totals.lost), (1000, 1000, 0));
        assert_eq!(report.steps.len(), 1000);
        let shares = truth.seen.expect("a share of each 200");
        let shares: [f64; 5] = serde_json::from_value(shares).expect("numbers");
        let mut steps = report.steps.iter();
        // The script reads its clock just before the hook does: if it loses the CPU between the two, that only
        // increases the difference.
        let off = shares.map(|truly| {
            let (mut waited, mut all) = (0, 0);
            for step in steps.by_ref().take(200) {
                waited += step.wait_to - step.wait_from;
                all += step.step_to - step.wait_from;
            }
            let told = waited as f64 / all as f64;
            println!("{python}: waiting for {told:.5} of the time, truly {truly:.5}");
            assert!((0.1..0.9).contains(&truly), "{truly}");
            (told - truly).abs()
        });
        let off = shortest(&off);
        assert!(off < 0.005, "{python}: {off} off");
    });
}

#[test]
fn ready_batches_are_many_before_a_slow_trainer_and_none_before_a_quick_one() {
    exact("full", |run, _| {
        let (mean, capacity) = ready(run);
        assert!(mean > 2.5 && capacity == Some(4), "{mean} of {capacity:?}");
    });
    exact("empty", |run, _| {
        let (mean, _) = ready(run);
        assert!(mean < 1.0, "{mean}");
    });
}

#[test]
fn a_loop_left_early_reports_its_last_step() {
    exact_with_last("left", |_, truth| {
        assert_eq!(truth.batches, 7);
    });
}

#[test]
fn a_loader_within_a_loader_has_no_steps_of_its_own() {
    exact_with_last("nested", |_, _| ());
    exact_with_last("nested_in_workers", |_, _| ());
}

#[test]
fn a_script_with_its_own_next_keeps_it() {
    exact_with_last("replaced", |_, truth| {
        assert_eq!(truth.batches, 10);
    });
    last_torch(|python| {
        let run = HookSession::new().run(&mut job(python, "replaced_whole"));
        let truth = run.truth();
        assert_eq!(truth.batches, 10);
        assert!(run.reports.is_empty(), "nothing was timed, nothing is told");
    });
}

#[test]
fn a_forked_trainer_reports_only_its_own_steps() {
    last_torch(|python| {
        let run = HookSession::new().run(&mut job(python, "processes"));
        let child = Pid(run.truth().child.expect("it had a child"));
        let steps = |pid: Pid| {
            let report = run.reports.get(&pid).expect("it has written");
            let numbers = report.steps.iter().map(|step| step.number);
            assert!(numbers.eq(0..report.totals.steps), "{:?}", report.steps);
            (report.totals.steps, report.totals.lost)
        };
        assert_eq!(run.reports.len(), 2);
        assert_eq!((steps(run.pid), steps(child)), ((10, 0), (14, 0)));
    });
}

#[test]
fn exceptions_of_the_dataset_reach_the_script() {
    exact_with_last("broken", |run, truth| {
        assert_eq!(truth.error.as_deref(), Some("number 6 is broken"));
        assert_eq!(run.report().totals.steps, 9);
    });
}

#[test]
fn a_thread_that_reads_ahead_is_not_taken_for_the_trainer() {
    last_torch(|python| {
        let run = HookSession::new().run(&mut job(python, "thread"));
        assert_eq!(run.truth().batches, 10);
        assert_eq!(run.report().totals.steps, 0);
        let notice = run.notice().expect("it says why");
        assert!(notice.contains("thread"), "{notice}");
    });
}

#[test]
fn batches_their_order_and_the_random_state_are_the_same_without_it() {
    last_torch(|python| {
        for situation in ["main", "fork"] {
            let with = HookSession::new().run(&mut job(python, situation)).truth();
            let mut without = spawn(&mut job(python, situation));
            let output = without.to_end();
            let without: Truth = serde_json::from_slice(&output.stdout).expect("its truth");
            assert!(with.hooked && !without.hooked);
            let same = |truth: &Truth| (truth.digest.clone(), truth.random.to_bits());
            assert_eq!(same(&with), same(&without));
        }
    });
}

#[test]
fn a_rank_says_which_one_it_is() {
    last_torch(|python| {
        let stand = HookSession::new();
        // `run` removes RANK from the environment.
        let mut command = Command::new("env");
        command.arg("RANK=3").arg(python);
        command.args(job(python, "left").get_args());
        let run = stand.run(&mut command);
        assert_eq!(run.report().rank, Some(3));
    });
}

#[test]
fn a_job_continues_without_listener_or_hook() {
    last_torch(|python| {
        let HookSession {
            listener,
            hook,
            folder: _folder,
        } = HookSession::new();
        let environment = hook.environment(listener.address(), &LoaderOverrides::default());
        drop(listener);
        let run = |hooked: bool| {
            let mut child = spawn(job(python, "fork").envs(environment.clone()));
            let output = child.to_end();
            let truth: Truth = serde_json::from_slice(&output.stdout).expect("its truth");
            assert_eq!((truth.batches, truth.hooked), (30, hooked));
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        };
        run(true);
        drop(hook);
        run(false);
    });
}
