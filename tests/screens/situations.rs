//! Whole screens: the text that a user sees in a situation, and the roles of colours.

use crossterm::event::Event as Input;
use pipetop::sample::{
    Absent, EVENTS, GpuCounters, GpuHealth, GpuInstance, GpuProcess, JobCandidate, Link,
    LoaderKind, LoaderSettings, OpenFile, OpenFiles, ProcessPlace, ProcessRole, ProcessSample,
    ProcessSeen, QueueSource, ReplayPosition, Tier, Wait, WorkerNow, Xid,
};
use pipetop::testing::action::Action;
use pipetop::testing::app::{App, Event};
use pipetop::testing::config::{Config, Environment, Overrides};
use pipetop::testing::model::history::{GpuPoint, RankPoint, Reading};
use pipetop::testing::model::processes::{Figures, ProcessFigures, Threads};
use pipetop::testing::model::rates::{
    Activity, CounterRates, DeviceRates, GpuRates, LoadRates, StepRates, ValidationRates,
};
use pipetop::testing::model::{History, Mark, MarkKind, Oscillation, Steps};
use pipetop::testing::ui::{
    Attach, Choices, Filter, JobFigures, ListedJob, Node, Notice, Page, Panel, Past, UiState, Zoom,
    draw, picture,
};
use pipetop::testing::verdict::{Cause, Kind, Missing, WarmingUp};
use pipetop::units::{Bytes, BytesPerSecond, Moment, Pid, Share};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use std::path::Path;
use std::time::{Duration, SystemTime};
use support::noise::Noise;
use support::scene::{Pace, Scene, compute_bound, gap, missing, nothing, scene, starved, verdict};

fn screen(scene: &Scene, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
    terminal
        .draw(|frame| draw(&scene.view(), frame))
        .expect("a test backend");
    terminal
}

fn text(scene: &Scene, width: u16, height: u16) -> String {
    screen(scene, width, height).backend().to_string()
}

/// Compares snapshots of a situation in these sizes, and draws it in every supported size. For three situations, all
/// four sizes are compared, which covers what all situations have in common; for the others, one size shows what is
/// special.
fn in_sizes(name: &str, scene: &Scene, sizes: &[(u16, u16)]) {
    for (width, height) in SIZES {
        screen(scene, width, height);
    }
    for (width, height) in sizes {
        let terminal = screen(scene, *width, *height);
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), terminal.backend());
    }
}

const SIZES: [(u16, u16); 4] = [(80, 24), (120, 40), (200, 60), (40, 10)];

/// Checks that no panel above the history has empty lines, at any height. A tall history has blank lines between its
/// graphs.
fn has_no_empty_lines(scene: &Scene) {
    for height in 20..=60 {
        let text = text(scene, 80, height);
        let panels = text.lines().take_while(|line| !line.contains("─ history"));
        let empty = panels.filter(|line| line.trim_matches(['"', ' ']).is_empty());
        assert_eq!(empty.count(), 0, "{text}");
    }
}

/// The panel of the verdict has room for a graph, but a figure that was never read has no graph.
#[test]
fn no_lines_are_empty_where_the_network_is_the_cause_and_nothing_is_read() {
    let mut scene = starved();
    scene.verdict.as_mut().expect("starved").cause = Some(Cause::Network);
    scene.history = History::new();
    has_no_empty_lines(&scene);
}

#[test]
fn no_line_stays_blank_below_a_verdict_on_a_low_screen() {
    let mut long = starved();
    let verdict = long.verdict.as_mut().expect("starved");
    verdict.evidence.clear();
    let advice = verdict.advice[0].repeat(3);
    verdict.advice.push(advice);
    for scene in [starved(), long] {
        for (width, height) in
            (40..100).flat_map(|width| (10..18).map(move |height| (width, height)))
        {
            let text = text(&scene, width, height);
            let blank = |line: &&str| line.trim_matches(['"', ' ']).is_empty();
            assert_eq!(text.lines().filter(blank).count(), 0, "{text}");
        }
    }
}

#[test]
fn eight_gpus_have_no_more_lines_than_they_fill() {
    has_no_empty_lines(&compute_bound());
}

#[test]
fn two_loaders_that_take_turns() {
    let mut scene = starved();
    support::scene::polled(&mut scene, 4, &[]);
    scene.each_job(|job| {
        let loaders = &mut job.ranks[0].loaders;
        let mut other = loaders[0].clone();
        other.id += 1;
        other.workers.truncate(2);
        for worker in &mut other.workers {
            worker.key.pid.0 += 10;
        }
        other.batches_per_s = other.batches_per_s.map(|rate| rate * 0.99);
        (loaders[0].wait, other.wait) = (Some(Share(0.61)), Some(Share(0.02)));
        loaders.push(other);
    });
    for advice in scene
        .verdict
        .iter_mut()
        .flat_map(|verdict| &mut verdict.advice)
    {
        *advice = format!("loader 2: {advice}");
    }
    in_sizes("two_loaders", &scene, &[(80, 24), (120, 40)]);
}

#[test]
fn a_starved_job() {
    in_sizes("starved", &starved(), &SIZES);
}

#[test]
fn a_compute_bound_job_on_eight_gpus() {
    in_sizes("compute_bound", &compute_bound(), &[(120, 40)]);
}

#[test]
fn no_gpu() {
    let mut scene = starved();
    scene.each_rates(|rates| rates.gpus.clear());
    scene.history = support::scene::starved_without_gpu();
    scene.gaps = vec![gap(
        "nvml",
        "libnvidia-ml.so.1 not found",
        "install the NVIDIA driver, or give --nvml-lib PATH",
    )];
    if let Some(verdict) = &mut scene.verdict {
        verdict.gpu_idle = None;
        verdict.confidence = Share(0.7);
        verdict
            .evidence
            .retain(|fact| fact.id != "gpu-idle" && fact.id != "overlap");
        verdict.missing = vec![missing("GPU", "libnvidia-ml.so.1 not found", "")];
    }
    in_sizes("no_gpu", &scene, &[(80, 24)]);
}

/// Returns a job that reports its steps and runs on a simulated device.
fn simulated() -> Scene {
    let mut scene = starved();
    scene.each_rates(|rates| rates.gpus.clear());
    scene.history = support::scene::starved_without_gpu();
    scene.gaps = vec![gap(
        "nvml",
        "libnvidia-ml.so.1 not found",
        "install the NVIDIA driver, or give --nvml-lib PATH",
    )];
    scene.each_job(|job| {
        job.access = Tier::T3;
        for rank in &mut job.ranks {
            rank.device = Some(DeviceRates {
                name: Some("simulated".to_owned()),
                notice: Some(
                    "no GPU can be used here (libcuda.so.1 not found): simulating the device"
                        .to_owned(),
                ),
                busy: Some(Share(0.37)),
                copying: Some(Share(0.02)),
                idle_in_waits: None,
                rests_with_each_step: true,
            });
            for loader in &mut rank.loaders {
                let queue = loader.queue.as_mut().expect("starved has one");
                queue.source = QueueSource::Probe;
            }
        }
    });
    scene
}

/// Returns the built-in job on a machine without a GPU.
fn builtin() -> Scene {
    let mut scene = simulated();
    scene.each_job(|job| {
        job.command.clear();
        job.command.push_str(
            "pipetop builtin-trainer --workers=4 --load-ms=412 --load-jitter=0 --slow-worker=1 \
             --step-ms=38 --device=auto --seed=0",
        );
        for loader in job.ranks.iter_mut().flat_map(|rank| &mut rank.loaders) {
            loader.kind = LoaderKind::Builtin;
            for worker in &mut loader.workers {
                worker.activity.clear();
            }
        }
    });
    if let Some(verdict) = &mut scene.verdict {
        verdict.evidence.retain(|fact| fact.id != "gpu-idle");
        verdict.missing = vec![missing(
            "nvml",
            "libnvidia-ml.so.1 not found",
            "install the NVIDIA driver, or start the container with access to it (`docker run --gpus all`)",
        )];
    }
    scene
}

#[test]
fn a_job_that_reports_a_simulated_device() {
    let scene = builtin();
    in_sizes("simulated_device", &scene, &[(120, 40)]);
    for (width, height) in [(100, 30), (120, 40), (200, 60)] {
        let text = text(&scene, width, height);
        assert!(
            !text.contains("nvml"),
            "the job's own word on its device is enough: {text}"
        );
        assert_eq!(text.matches("libcuda.so.1").count(), 1, "{text}");
    }
}

#[test]
fn hidden_driver_figures_are_shown_in_full_or_without_the_remedy() {
    let mut scene = builtin();
    scene.each_job(|job| job.ranks[0].device = None);
    assert!(text(&scene, 120, 40).contains("n/a   nvml: libnvidia-ml.so.1 not found  "));
    assert!(text(&scene, 200, 60).contains("--gpus all`)  "));
}

#[test]
fn a_step_in_which_the_device_idles_is_not_called_computing() {
    let mut scene = builtin();
    scene.each_job(|job| {
        if let Some(wait) = &mut job.ranks[0].wait {
            wait.share = Share(0.02);
        }
    });
    find(&screen(&scene, 120, 40), "computing 98 %");
    let verdict = scene.verdict.as_mut().expect("starved");
    (verdict.kind, verdict.gpu_idle) = (Kind::HostBound, Some(Share(0.67)));
    let terminal = screen(&scene, 120, 40);
    find(&terminal, "in the step 98 %");
    find(&terminal, "device idle 67 %");
}

#[test]
fn a_simulated_device_is_not_called_a_gpu() {
    let mut scene = builtin();
    let wide = text(&scene, 200, 60);
    assert!(
        wide.contains(" device 38 ms ") && !wide.contains(" GPU 38 ms "),
        "{wide}"
    );
    let judged = scene.verdict.as_mut().expect("starved");
    judged.gpu_idle = Some(Share(0.63));
    let page = opened(scene, Panel::Verdict);
    let terminal = screen(&page, 120, 40);
    find(&terminal, "device     simulated, idle 63 % of the time");
    // Beside a GPU that it does not use.
    let mut beside = starved();
    beside.each_job(|job| {
        job.ranks[0].device = Some(DeviceRates {
            name: Some("simulated".to_owned()),
            busy: Some(Share(0.37)),
            ..DeviceRates::default()
        });
    });
    let judged = beside.verdict.as_mut().expect("starved");
    (judged.kind, judged.rank_key) = (Kind::HostBound, Some(support::scene::key(48213)));
    find(&screen(&beside, 120, 40), "HOST-BOUND  device idle 63 %");
}

#[test]
fn one_worker_is_not_spoken_of_as_several() {
    let mut scene = starved();
    find(&screen(&scene, 120, 40), "MB/s each");
    scene.each_job(|job| job.ranks[0].loaders[0].workers.truncate(1));
    let text = text(&scene, 120, 40);
    assert!(
        text.contains(" worker   read") && !text.contains(" each"),
        "{text}"
    );
}

#[test]
fn unknown_figures_of_a_gpu_are_named() {
    let mut scene = starved();
    scene.each_rates(|rates| {
        let gpu = &mut rates.gpus[0].now;
        (gpu.power_watts, gpu.power_limit_watts) = (None, None);
        (gpu.temperature_c, gpu.mem_util_percent) = (None, None);
    });
    let text = text(&opened(scene, Panel::Gpu), 120, 40);
    assert!(text.contains(" power n/a   temperature n/a "), "{text}");
    assert!(
        text.contains("active n/a  ") && !text.contains("n/a of"),
        "{text}"
    );
}

#[test]
fn a_validation_has_its_own_step() {
    let mut scene = starved();
    scene.each_job(|job| {
        let rank = &mut job.ranks[0];
        let mut other = rank.loaders[0].clone();
        other.id += 1;
        (other.validates, other.step_ms) = (true, Some(12.0));
        rank.loaders[0].step_ms = Some(38.0);
        rank.loaders.push(other);
        rank.validation = Some(ValidationRates {
            time: Share(0.2),
            waiting: Share(0.05),
        });
    });
    let terminal = screen(&scene, 120, 40);
    find(&terminal, "4 workers  9.7 batches/s  step 38 ms");
    find(
        &terminal,
        "4 workers  validation  9.7 batches/s  step 12.0 ms",
    );
    let page = opened(scene, Panel::Pipeline);
    find(
        &screen(&page, 200, 60),
        "20 % of the time, 5 % waiting for its loader; included above",
    );
}

#[test]
fn a_trainer_that_waits_for_events_is_not_called_computing() {
    let idle = |share| {
        vec![Activity {
            name: EVENTS.to_owned(),
            share: Share(share),
        }]
    };
    let mut scene = builtin();
    scene.each_job(|job| {
        let rank = &mut job.ranks[0];
        if let Some(wait) = &mut rank.wait {
            wait.share = Share(0.2);
        }
        rank.not_data = idle(0.3);
    });
    find(&screen(&scene, 120, 40), "computing 50 %");
    scene.each_job(|job| job.ranks[0].not_data = idle(0.6));
    find(&screen(&scene, 120, 40), "idle 60 %");
}

#[test]
fn a_device_shown_by_the_driver_is_not_repeated() {
    let mut scene = starved();
    let told = |scene: &mut Scene, name: &str| {
        scene.each_job(|job| {
            job.ranks[0].device = Some(DeviceRates {
                name: Some(name.to_owned()),
                ..DeviceRates::default()
            });
        });
    };
    told(&mut scene, "NVIDIA H200");
    assert!(!text(&scene, 120, 40).contains("device  "));
    // A simulated device is listed above the real GPU.
    told(&mut scene, "simulated");
    let terminal = screen(&scene, 120, 40);
    assert!(find(&terminal, "device  simulated").1 < find(&terminal, "power ").1);
}

#[test]
fn a_job_that_is_known_by_its_reports_alone() {
    let mut scene = simulated();
    scene.each_job(|job| {
        for loader in job.ranks.iter_mut().flat_map(|rank| &mut rank.loaders) {
            loader.kind = LoaderKind::Reported;
            loader.settings = LoaderSettings::default();
            loader.workers.clear();
        }
    });
    in_sizes("reports_alone", &scene, &[(120, 40)]);
}

#[test]
fn no_permission() {
    let mut scene = starved();
    scene.each_job(|job| {
        job.access = Tier::T0;
        job.read = None;
        job.rchar = None;
        for rank in &mut job.ranks {
            rank.wait = None;
            rank.step = StepRates::default();
            for loader in &mut rank.loaders {
                loader.queue = None;
                loader.settings = LoaderSettings::default();
                for worker in &mut loader.workers {
                    worker.now = WorkerNow::Unknown;
                    worker.read = None;
                    worker.load_ms = None;
                    worker.batches_per_s = None;
                    worker.activity.clear();
                }
            }
        }
    });
    scene.history = nothing().history;
    let hint = "sudo pipetop 48213";
    scene.gaps = vec![
        gap("main thread", "the process belongs to alice", hint),
        gap("queue", "the process belongs to alice", hint),
    ];
    scene.verdict = Some(verdict(Kind::Unknown));
    in_sizes("no_permission", &scene, &[(120, 40)]);
}

#[test]
fn warming_up() {
    let mut scene = starved();
    let mut early = verdict(Kind::WarmingUp);
    early.warming_up = Some(WarmingUp {
        batches: Some(7),
        batches_needed: 20,
        seconds: 4.0,
        seconds_needed: 10.0,
        unclear: true,
    });
    early.seconds = 4.0;
    scene.verdict = Some(early);
    scene.window = None;
    in_sizes("warming_up", &scene, &[(80, 24)]);
}

#[test]
fn looking_for_a_job() {
    let mut scene = nothing();
    scene.attach = Attach::LookingForJob {
        wanted: "Python processes that have loaded PyTorch, of every user that may be read"
            .to_owned(),
    };
    in_sizes("looking", &scene, &[(80, 24)]);
}

#[test]
fn a_launched_command_with_its_output() {
    let scene = support::scene::launched(support::scene::starved(), 400);
    in_sizes("launched", &scene, &[(120, 40)]);
    let mut scrolled = support::scene::launched(support::scene::starved(), 400);
    scrolled.state.focus = Panel::Log;
    scrolled.state.scroll = 100;
    let text = text(&scrolled, 120, 40);
    assert!(
        text.contains("step 5980") && !text.contains("step 6000"),
        "{text}"
    );
}

#[test]
fn output_that_is_scrolled_up_says_how_much_is_newer() {
    let mut scene = support::scene::launched(support::scene::starved(), 400);
    scene.state.focus = Panel::Log;
    for size in [(120, 40), (80, 24), (80, 12)] {
        scene.state.scroll = 0;
        assert!(!text(&scene, size.0, size.1).contains(" newer "));
        scene.state.scroll = 1;
        let one = text(&scene, size.0, size.1);
        assert!(one.contains(" 1 newer line; end shows the last"), "{one}");
        scene.state.scroll = 100;
        let more = text(&scene, size.0, size.1);
        assert!(
            more.contains(" 100 newer lines; end shows the last"),
            "{more}"
        );
    }
}

#[test]
fn a_launched_command_that_does_not_train_yet() {
    let mut scene = support::scene::launched(support::scene::starved(), 3);
    scene.window = None;
    scene.latest = None;
    scene.verdict = None;
    scene.attach = Attach::LookingForJob {
        wanted: "below `python train.py --epochs 90`: a Python process that has loaded PyTorch"
            .to_owned(),
    };
    in_sizes("launched_looking", &scene, &[(80, 24)]);
}

#[test]
fn a_question_about_a_launched_command() {
    let mut scene = support::scene::launched(support::scene::starved(), 3);
    if let Some(launched) = &mut scene.launched {
        launched.asked = true;
        "stopping".clone_into(&mut launched.state);
    }
    in_sizes("launched_asked", &scene, &[(80, 24), (40, 10)]);
}

#[test]
fn the_question_shows_keys_that_have_another_action_elsewhere() {
    let mut scene = support::scene::launched(support::scene::starved(), 3);
    scene.launched.as_mut().expect("launched").asked = true;
    let text = "[keys]\nsave = [\"e\"]\ntree = [\"d\"]\nquit = [\"q\", \"esc\"]\n";
    let path = std::path::Path::new("my.toml");
    let (overrides, environment) = (Overrides::default(), Environment::default());
    let config = Config::from_text(path, text, &overrides, &environment);
    scene.config = config.expect("right");
    let screen = screen(&scene, 80, 24);
    for line in ["e     stop it", "d     leave it", "esc   keep watching"] {
        find(&screen, line);
    }
    find(&screen, "e stop it  d detach  esc cancel");
    assert_eq!(
        only_line(&scene, 39, 9),
        "quit: e stop it d detach esc cancel"
    );
}

#[test]
fn a_replayed_list_of_jobs_offers_no_choice() {
    let mut scene = nothing();
    scene.attach = Attach::Picker(vec![
        candidate(7, "python train.py", 4),
        candidate(8, "python other.py", 4),
    ]);
    scene.state.replay = Some(ReplayPosition::default());
    let screen = screen(&scene, 80, 24);
    find(&screen, "2 jobs, none chosen yet");
    assert!(!screen.backend().to_string().contains("choose"));
}

#[test]
fn the_question_is_shown_while_the_help_is_open() {
    let mut scene = support::scene::launched(support::scene::starved(), 3);
    scene.launched.as_mut().expect("launched").asked = true;
    scene.state.help = true;
    for (width, height) in SIZES {
        find(&screen(&scene, width, height), "keep watching");
    }
}

/// Returns the screen's first line, which must be the only one.
fn only_line(scene: &Scene, width: u16, height: u16) -> String {
    let text = text(scene, width, height);
    let mut lines = text.lines().map(|line| line.trim_matches('"').trim_end());
    let first = lines.next().unwrap_or_default().to_owned();
    assert!(lines.all(str::is_empty), "{text}");
    first
}

#[test]
fn a_tiny_screen_shows_only_the_verdict() {
    let mut scene = starved();
    let lines = [
        (10, "DATA-BOUND"),
        (20, "DATA-BOUND"),
        (21, "DATA-BOUND  63 % lost"),
        (30, "DATA-BOUND  63 % lost  CPU pr…"),
        (39, "DATA-BOUND  63 % lost  CPU preprocessi…"),
        (41, "DATA-BOUND  63 % lost  CPU preprocessing"),
        (
            70,
            "DATA-BOUND  63 % lost (61-66)  CPU preprocessing  94 % sure",
        ),
    ];
    for (width, wanted) in lines {
        assert_eq!(only_line(&scene, width, 9), wanted);
    }
    assert_eq!(only_line(&scene, 39, 80), lines[4].1);
    assert_eq!(only_line(&scene, 1, 1), "…");
    let wide = only_line(&scene, 200, 9);
    assert!(wide.contains("do num_workers 4 -> 11"), "{wide}");

    scene.attach = Attach::Ended;
    assert_eq!(
        only_line(&scene, 39, 9),
        "DATA-BOUND  ended  63 % lost  CPU prep…"
    );
    scene.attach = Attach::Attached;
    scene.state.paused = true;
    assert_eq!(
        only_line(&scene, 39, 9),
        "DATA-BOUND  paused  63 % lost  CPU pre…"
    );
    scene.state.paused = false;
    // A notice is shown once; the next key removes it.
    scene.state.notice = Some(Notice {
        text: "saved to pipetop.svg".to_owned(),
        trouble: false,
    });
    assert_eq!(only_line(&scene, 39, 9), " saved to pipetop.svg");
    scene.state.notice = None;
    scene.verdict = None;
    assert_eq!(
        only_line(&scene, 39, 9),
        "WARMING UP  collecting the first…"
    );
    let mut early = verdict(Kind::WarmingUp);
    early.warming_up = Some(WarmingUp {
        batches: Some(7),
        batches_needed: 20,
        seconds: 4.0,
        seconds_needed: 10.0,
        unclear: true,
    });
    scene.verdict = Some(early);
    assert_eq!(
        only_line(&scene, 39, 9),
        "WARMING UP  4 of 10 s, 7 of 20 batches"
    );
    let mut begun = verdict(Kind::WarmingUp);
    begun.warming_up = Some(WarmingUp {
        batches: Some(3),
        batches_needed: 5,
        seconds: 1.0,
        seconds_needed: 2.0,
        unclear: false,
    });
    scene.verdict = Some(begun);
    assert_eq!(
        only_line(&scene, 39, 9),
        "WARMING UP  1 of 2 s, 3 of 5 batches"
    );
    let mut asked = support::scene::launched(starved(), 3);
    asked.launched.as_mut().expect("launched").asked = true;
    assert_eq!(
        only_line(&asked, 39, 9),
        "quit: e stop it d detach esc cancel"
    );
    // Words that do not fit are left out before keys are.
    assert_eq!(only_line(&asked, 30, 4), "quit: e stop it d detach esc");
    assert_eq!(only_line(&asked, 10, 3), "quit: e d");
}

#[test]
fn where_there_is_no_room_and_no_job_one_line_says_what_there_is() {
    let mut scene = nothing();
    scene.attach = Attach::LookingForJob {
        wanted: "a Python process that has loaded PyTorch".to_owned(),
    };
    assert_eq!(
        only_line(&scene, 39, 9),
        "LOOKING  for a Python process that has…"
    );
    assert_eq!(only_line(&scene, 5, 1), "LOOK…");
    scene.attach = Attach::Picker(vec![
        candidate(48213, "python train.py --epochs 90", 4),
        candidate(50112, "python -m torch.distributed.run 训练.py", 0),
    ]);
    scene.state.picked = 1;
    assert_eq!(
        only_line(&scene, 39, 9),
        "2 of 2  50112  python -m torch.distrib…"
    );
    typed(&mut scene, "train.py");
    scene.state.picked = 0;
    assert_eq!(
        only_line(&scene, 39, 9),
        " filter jobs: train.py_  enter keep"
    );
    scene.state.filter.typing = false;
    assert_eq!(only_line(&scene, 39, 9), "1 of 1  48213  python train.py…");
    typed(&mut scene, "x");
    scene.state.filter.typing = false;
    assert_eq!(only_line(&scene, 39, 9), "no match");
    // The recording has no job at this moment.
    scene.attach = Attach::LookingForJob {
        wanted: "a job in the recording".to_owned(),
    };
    scene.state.replay = Some(ReplayPosition::default());
    assert_eq!(
        only_line(&scene, 39, 9),
        "NO JOB  at this point of the recording"
    );
}

fn candidate(pid: i32, command: &str, workers: usize) -> ListedJob {
    let found = JobCandidate {
        pid: Pid(pid),
        command: command.to_owned(),
        ranks: 1,
        workers,
    };
    found.into()
}

#[test]
fn the_list_of_jobs_can_be_filtered() {
    let mut scene = nothing();
    let jobs = (0..40).map(|job| candidate(48000 + job, &format!("python train{job}.py"), 4));
    let mut jobs: Vec<_> = jobs.collect();
    jobs.push(candidate(7, "python Evaluate.py --all", 0));
    scene.attach = Attach::Picker(jobs);
    let mut found = |text: &str| {
        scene.state.filter = Filter::default();
        typed(&mut scene, text);
        scene.state.filter.typing = false;
        let text = self::text(&scene, 80, 24);
        text.lines().filter(|line| line.contains("  -  ")).count()
    };
    assert_eq!(found("train3.py"), 1);
    assert_eq!(found("480"), 19, "as many as there is room for");
    assert_eq!(found("48039"), 1);
    assert_eq!(found("evaluate all"), 1);
    assert_eq!(found("nobody"), 0);
    in_sizes("picker_nobody", &scene, &[(80, 24)]);
    scene.state.filter = Filter::default();
    typed(&mut scene, "eva");
    in_sizes("picker_filter", &scene, &[(80, 24), (40, 10)]);
}

/// Fills the process tree of the starved job: a launcher, a helper, and threads that are shown.
fn processes(scene: &mut Scene) {
    let mut tree = ProcessFigures::default();
    let figures = |cpu: f64, mib: u64, threads| Figures {
        seconds: Some(5.0),
        state: Some('S'),
        cpu: Some(cpu),
        delay: Some(Share(0.01)),
        read: Some(BytesPerSecond(0.0)),
        rss: Some(Bytes(mib << 20)),
        threads: Some(threads),
    };
    let job = scene.latest.as_ref().and_then(|rates| rates.job.clone());
    let job = job.expect("starved has one");
    for rank in &job.ranks {
        tree.figures.insert(rank.key, figures(0.38, 4096, 37));
        for worker in rank.loaders.iter().flat_map(|loader| &loader.workers) {
            let of_worker = Figures {
                read: Some(BytesPerSecond(53e6)),
                state: Some('R'),
                ..figures(0.99 - 0.1 * f64::from(worker.id), 700, 1)
            };
            tree.figures.insert(worker.key, of_worker);
        }
    }
    let rank = job.ranks[0].key;
    let seen = |pid, parent, name: &str, role| ProcessSeen {
        key: support::scene::key(pid),
        parent: Pid(parent),
        name: name.to_owned(),
        role,
        process: ProcessSample::default(),
    };
    tree.others = vec![
        seen(48200, 1, "torchrun", ProcessRole::Launcher),
        seen(rank.pid.0, 48200, "python", ProcessRole::Other),
        seen(48220, rank.pid.0, "python", ProcessRole::ResourceTracker),
        seen(48290, rank.pid.0, "wandb\u{1b}[2J 训练", ProcessRole::Other),
        seen(48291, 48290, "sh", ProcessRole::Other),
    ];
    tree.figures
        .insert(support::scene::key(48200), figures(0.0, 210, 5));
    tree.figures
        .insert(support::scene::key(48220), figures(0.0, 14, 1));
    tree.figures
        .insert(support::scene::key(48290), figures(0.02, 120, 9));
    tree.left_out = 0;
    let thread = |pid: i32, name: &str, cpu| {
        let own = Figures {
            read: None,
            rss: None,
            threads: None,
            ..figures(cpu, 0, 0)
        };
        (support::scene::key(pid), name.to_owned(), own)
    };
    let threads = vec![
        thread(rank.pid.0, "python", 0.31),
        thread(48215, "pt_data_pin", 0.06),
        thread(48216, "cuda-EvtHandlr", 0.0),
    ];
    tree.threads.insert(
        rank,
        Threads {
            threads,
            left_out: 2,
        },
    );
    scene.state.page = Page::Tree;
    scene.processes = tree;
}

/// Actions that move to another moment of a replay or of the kept past.
const IN_TIME: [Action; 8] = [
    Action::SeekBack,
    Action::SeekForward,
    Action::LeapBack,
    Action::LeapForward,
    Action::StepBack,
    Action::StepForward,
    Action::ToBegin,
    Action::ToEnd,
];

/// Applies these steps in order, each with the choices that the screen offers at that point.
fn act(scene: &mut Scene, steps: &[fn(&mut UiState, &Choices)]) {
    for step in steps {
        let choices = pipetop::testing::ui::choices(&scene.view());
        step(&mut scene.state, &choices);
    }
}

#[test]
fn the_tree_of_processes() {
    let mut scene = starved();
    processes(&mut scene);
    in_sizes("tree", &scene, &SIZES);
    pictured("views/tree", &scene);
    // Opens the threads of the rank, and folds the workers of the loader.
    let rank = scene.latest.as_ref().and_then(|rates| rates.job.as_ref());
    let rank = rank.expect("starved has one").ranks[0].key;
    scene.state.tree.marked = Some(Node::Threads(rank));
    act(&mut scene, &[UiState::select]);
    assert!(scene.state.tree.opened.contains(&rank));
    let mut lines = pipetop::testing::ui::choices(&scene.view())
        .tree
        .into_iter();
    let loader = lines.find_map(|(node, _)| matches!(node, Node::Loader(..)).then_some(node));
    scene.state.tree.marked = loader;
    act(&mut scene, &[UiState::select]);
    in_sizes("tree_threads", &scene, &[(120, 40)]);
    let unread = text(&scene, 120, 40);
    assert!(unread.contains("and 2 more threads"), "{unread}");
    scene.config = with("ascii = \"always\"\ntheme = \"mono\"\n");
    in_sizes("tree_ascii", &scene, &[(80, 24)]);
    let ascii = text(&scene, 80, 24);
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn the_mark_of_the_tree_stays_with_its_line() {
    let mut scene = starved();
    processes(&mut scene);
    for _ in 0..5 {
        act(&mut scene, &[UiState::down]);
    }
    let marked = scene.state.tree.marked.expect("a line");
    let on = |scene: &Scene| {
        let text = text(scene, 120, 40);
        let line = text
            .lines()
            .find(|line| line.contains("▸ ") || line.contains("▸│") || line.contains("▸├"));
        line.unwrap_or_default().to_owned()
    };
    assert!(on(&scene).contains("worker 1"), "{}", on(&scene));
    act(
        &mut scene,
        &[
            |state, _| state.sort_by_next(&Config::default().columns),
            |state, _| state.reverse(),
        ],
    );
    assert_eq!(scene.state.tree.marked, Some(marked));
    assert!(on(&scene).contains("worker 1"), "{}", on(&scene));
    // The worker ends, and the line below takes its place.
    let gone = match marked {
        Node::Process(key) => key,
        other => panic!("{other:?}"),
    };
    scene.each_job(|job| {
        let loaders = job.ranks.iter_mut().flat_map(|rank| &mut rank.loaders);
        loaders.for_each(|loader| loader.workers.retain(|worker| worker.key != gone));
    });
    act(&mut scene, &[UiState::down]);
    assert!(on(&scene).contains("worker"), "{}", on(&scene));
    for _ in 0..9 {
        act(&mut scene, &[UiState::page_down]);
    }
    let last = text(&scene, 80, 24);
    act(&mut scene, &[UiState::down]);
    assert_eq!(text(&scene, 80, 24), last);
}

#[test]
fn the_tree_is_sorted_and_its_noise_is_not() {
    let mut scene = starved();
    processes(&mut scene);
    let order = |scene: &Scene| {
        let text = text(scene, 120, 40);
        let workers = text.split("worker ").skip(1);
        workers
            .filter_map(|rest| rest.chars().next()?.to_digit(10))
            .collect::<Vec<_>>()
    };
    assert_eq!(order(&scene), [0, 1, 2, 3]);
    act(&mut scene, &[|state, _| state.reverse()]);
    assert_eq!(order(&scene), [0, 1, 2, 3], "numbers are no figures");
    act(
        &mut scene,
        &[|state, _| state.sort_by_next(&Config::default().columns)],
    );
    assert_eq!(order(&scene), [3, 2, 1, 0]);
    act(&mut scene, &[|state, _| state.reverse()]);
    assert_eq!(order(&scene), [0, 1, 2, 3]);
    // Figures vary as they do in a steady job from one sample to the next.
    let tree = &mut scene.processes;
    for (place, figures) in tree.figures.values_mut().enumerate() {
        figures.cpu = Some(0.9 + 0.004 * place as f64);
    }
    assert_eq!(order(&scene), [0, 1, 2, 3]);
}

#[test]
fn the_tree_is_filtered() {
    let mut scene = starved();
    processes(&mut scene);
    act(&mut scene, &[|state, _| state.open_filter()]);
    "wandb"
        .chars()
        .for_each(|letter| scene.state.filter_in_use().add(letter));
    in_sizes("tree_filter", &scene, &[(80, 24)]);
    scene.state.filter_in_use().typing = false;
    assert!(!scene.state.filter.is_set());
    let found = text(&scene, 80, 24);
    assert!(
        found.contains("rank 0") && !found.contains("worker 1"),
        "{found}"
    );
    act(&mut scene, &[|state, _| state.cancel()]);
    assert_eq!(scene.state.page, Page::Tree);
    assert!(text(&scene, 80, 24).contains("worker 1"));
    act(&mut scene, &[|state, _| state.open_filter()]);
    "nobody"
        .chars()
        .for_each(|letter| scene.state.filter_in_use().add(letter));
    scene.state.filter_in_use().typing = false;
    let found = text(&scene, 80, 24);
    assert!(found.contains("no match; esc shows all"), "{found}");
    let wide = text(&scene, 120, 40);
    assert!(wide.contains("with `nobody` ─┐"), "{wide}");
    act(
        &mut scene,
        &[|state, _| state.cancel(), |state, _| state.cancel()],
    );
    assert_eq!(scene.state.page, Page::Panels);
}

#[test]
fn the_tree_says_what_it_does_not_know() {
    let mut scene = starved();
    scene.state.page = Page::Tree;
    processes(&mut scene);
    let tree = &mut scene.processes;
    tree.others.clear();
    assert!(text(&scene, 80, 24).contains("other processes: read with the next sample"));
    scene.past = Some(Past {
        at: moment(5_420),
        until: Duration::from_hours(3),
        ago: Duration::from_mins(90),
    });
    assert!(text(&scene, 80, 24).contains("other processes: known only for now"));
    scene.past = None;
    scene.state.replay = Some(ReplayPosition::default());
    let rank = support::scene::key(48213);
    scene.state.tree.opened.insert(rank);
    scene.processes.threads.clear();
    in_sizes("tree_replay", &scene, &[(80, 24)]);
    let replayed = text(&scene, 80, 24);
    assert!(
        replayed.contains("other processes: not recorded"),
        "{replayed}"
    );
    assert!(replayed.contains("threads: not recorded"), "{replayed}");
    scene.state.replay = None;
    scene.attach = Attach::Ended;
    assert!(text(&scene, 80, 24).contains("other processes: the job has ended"));
    // Unknown is not shown as zero.
    scene.each_rates(|_| {});
    scene.processes = ProcessFigures::default();
    let nothing_known = text(&scene, 120, 40);
    let worker = nothing_known
        .lines()
        .find(|line| line.contains("worker 0"))
        .expect("a line");
    assert_eq!(worker.matches("n/a").count(), 5, "{worker}");
    scene.latest = None;
    assert!(text(&scene, 80, 24).contains("no information about the job's processes"));
}

#[test]
fn a_large_tree_is_drawn_in_every_size() {
    let pace = Pace {
        load_ms: 400.0,
        step_ms: 30.0,
        workers: 64,
    };
    let mut scene = scene(pace, 1, 1);
    scene.verdict = starved().verdict;
    processes(&mut scene);
    let tree = &mut scene.processes;
    let keys: Vec<_> = tree.figures.keys().copied().collect();
    for key in keys {
        let thread = |number: i32| {
            let key = support::scene::key(100_000 + number);
            (key, format!("thread-{number}"), Figures::default())
        };
        let threads = Threads {
            threads: (0..30).map(thread).collect(),
            left_out: 0,
        };
        tree.threads.insert(key, threads);
        scene.state.tree.opened.insert(key);
    }
    let lines = pipetop::testing::ui::choices(&scene.view()).tree;
    assert!(lines.len() > 64 * 30, "{}", lines.len());
    let places = [0, 1, lines.len() / 2, lines.len() - 1];
    for (width, height) in [
        (40, 10),
        (41, 11),
        (80, 24),
        (99, 25),
        (100, 26),
        (500, 150),
    ] {
        for place in places {
            scene.state.tree.marked = Some(lines[place].0);
            let text = text(&scene, width, height);
            assert_eq!(text.matches('▸').count(), 1, "at {width}x{height}: {text}");
        }
    }
}

#[test]
fn several_jobs_to_choose_from() {
    let mut scene = nothing();
    scene.attach = Attach::Picker(vec![
        candidate(48213, "python train.py --epochs 90", 4),
        candidate(50112, "python -m torch.distributed.run 训练.py", 0),
    ]);
    scene.state.picked = 1;
    in_sizes("picker", &scene, &[(80, 24)]);
    let Attach::Picker(jobs) = &mut scene.attach else {
        return;
    };
    jobs.push(candidate(50200, "python3 finetune.py", 4));
    let figures = JobFigures {
        user: Some("anna".to_owned()),
        run: Some("slurm-4711".to_owned()),
        workers: 64,
        kind: Kind::DataBound,
        cause: Some(Cause::NoisyNeighbour),
        lost: Some(Share(0.41)),
        batches_per_s: Some(112.0),
        gpus: vec![0, 1, 2, 3, 4, 5, 6, 7],
        up: Some(Duration::from_secs(50_847)),
        verdict: None,
    };
    jobs[1].figures = Some(JobFigures {
        user: Some("ben".to_owned()),
        run: None,
        workers: 0,
        kind: Kind::Unknown,
        cause: None,
        lost: None,
        batches_per_s: None,
        gpus: vec![],
        up: Some(Duration::from_secs(130)),
        verdict: None,
    });
    jobs[0].figures = Some(figures);
    in_sizes("picker_live", &scene, &[(80, 24), (120, 40), (200, 60)]);
}

#[test]
fn an_ended_job_keeps_its_last_verdict() {
    let mut scene = starved();
    scene.attach = Attach::Ended;
    scene.each_job(|job| {
        job.ended = true;
        for rank in &mut job.ranks {
            rank.state = None;
            for worker in rank
                .loaders
                .iter_mut()
                .flat_map(|loader| &mut loader.workers)
            {
                worker.now = WorkerNow::Gone;
            }
        }
    });
    in_sizes("ended", &scene, &[(80, 24)]);
}

#[test]
fn two_ranks() {
    let pace = Pace {
        load_ms: 412.0,
        step_ms: 38.0,
        workers: 4,
    };
    let mut two = scene(pace, 2, 2);
    two.verdict = starved().verdict;
    two.state.rank = Some(1);
    in_sizes("two_ranks", &two, &[(120, 40)]);
}

#[test]
fn a_recording_that_is_played() {
    let mut scene = starved();
    scene.state.replay = Some(ReplayPosition {
        at: Duration::from_secs(4_271),
        of: Duration::from_hours(24),
        speed: 10.0,
        paused: true,
        ..ReplayPosition::default()
    });
    in_sizes("replay", &scene, &[(80, 24)]);
    scene.state.help = true;
    let help = text(&scene, 120, 60);
    assert!(help.contains("go back one sample"), "{help}");
    assert!(help.contains("pause or resume"), "{help}");
    assert!(help.contains("▄▄  asleep with a batch to load"), "{help}");
    scene.state.replay = None;
    let help = text(&scene, 120, 60);
    assert!(help.contains("update more often"), "{help}");
}

#[test]
fn a_notice_takes_the_place_of_the_keys() {
    let mut scene = starved();
    for trouble in [false, true] {
        let said = if trouble {
            "cannot save: no space"
        } else {
            "saved a.svg and a.md"
        };
        scene.state.notice = Some(Notice {
            text: said.to_owned(),
            trouble,
        });
        for (width, height) in SIZES {
            let text = text(&scene, width, height);
            assert!(text.contains(said), "{text}");
            assert!(!text.contains("? help"), "{text}");
        }
    }
}

#[test]
fn time_without_a_cpu_is_a_part_of_its_own() {
    let mut scene = starved();
    scene.each_job(|job| {
        let loaders = job.ranks.iter_mut().flat_map(|rank| &mut rank.loaders);
        for worker in loaders.flat_map(|loader| &mut loader.workers) {
            worker.busy = Some(Share(0.99));
            worker.run_delay = Some(Share(0.24));
        }
    });
    let terminal = screen(&scene, 200, 60);
    find(&terminal, "cpu 73 %  runnable 24 %  read  2 %");
    find(&terminal, "░░░");
}

#[test]
fn a_sleeping_worker_has_the_sign_of_the_help() {
    let mut scene = opened(starved(), Panel::Workers);
    scene.each_job(|job| {
        let loaders = job.ranks.iter_mut().flat_map(|rank| &mut rank.loaders);
        for worker in loaders.flat_map(|loader| &mut loader.workers) {
            worker.busy = Some(Share::ONE);
            worker.disk = Some(Share::ZERO);
            worker.asleep = Some(Share::ONE);
        }
    });
    find(
        &screen(&scene, 120, 40),
        "asleep              100 %  ▄▄▄▄▄▄",
    );
}

#[test]
fn a_share_that_is_shown_as_0_has_no_bar() {
    let mut scene = opened(starved(), Panel::Pipeline);
    let mut line = |share| {
        scene.each_job(|job| job.ranks[0].main_cpu = Some(Share(share)));
        let text = text(&scene, 120, 40);
        let line = text.lines().find(|line| line.contains("on a CPU, total"));
        let line: String = line.expect("a bar").chars().skip(26).take(20).collect();
        line.trim().to_owned()
    };
    assert_eq!(line(0.004), "0 %");
    assert_ne!(line(0.006), "1 %");
}

#[test]
fn boxes_of_the_queue_show_its_mean() {
    let mut scene = starved();
    scene.each_job(|job| {
        for queue in job.ranks.iter_mut().flat_map(|rank| &mut rank.loaders) {
            if let Some(queue) = &mut queue.queue {
                (queue.ready, queue.mean_ready) = (0, 2.8);
            }
        }
    });
    find(&screen(&scene, 80, 24), "▮▮▮▯▯▯▯▯ 2.8/8");
}

#[test]
fn help() {
    let mut scene = starved();
    scene.state.help = true;
    scene.gaps = vec![gap(
        "nvml",
        "libnvidia-ml.so.1 not found",
        "install the NVIDIA driver, or give --nvml-lib PATH",
    )];
    in_sizes("help", &scene, &[(80, 24)]);
}

#[test]
fn ascii_and_mono() {
    let bare = Environment {
        locale: None,
        term: Some("linux".to_owned()),
        no_color: true,
    };
    let config = Config::from_text(Path::new(""), "", &Overrides::default(), &bare);
    let mut scene = starved();
    scene.config = config.expect("the default is right");
    for (width, height) in SIZES {
        let terminal = screen(&scene, width, height);
        let buffer = terminal.backend().buffer();
        assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
        assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset));
    }
    in_sizes("ascii_mono", &scene, &[(80, 24)]);
}

/// Returns where a text starts on the screen.
fn find(terminal: &Terminal<TestBackend>, wanted: &str) -> (u16, u16) {
    let buffer = terminal.backend().buffer();
    let starts = |&(x, y): &(u16, u16)| {
        let behind = (x..buffer.area.width).map(|x| buffer[(x, y)].symbol());
        behind.collect::<String>().starts_with(wanted)
    };
    let mut cells =
        (0..buffer.area.height).flat_map(|y| (0..buffer.area.width).map(move |x| (x, y)));
    let found = cells.find(starts);
    assert!(found.is_some(), "no `{wanted}` on:\n{}", terminal.backend());
    found.unwrap_or_default()
}

fn colour_of(terminal: &Terminal<TestBackend>, wanted: &str) -> Color {
    terminal.backend().buffer()[find(terminal, wanted)].fg
}

#[test]
fn the_verdict_has_the_colour_of_its_cause_on_every_panel() {
    let mut scene = starved();
    let terminal = screen(&scene, 120, 40);
    let cpu = colour_of(&terminal, "DATA-BOUND");
    assert_eq!(cpu, colour_of(&terminal, "cause: CPU preprocessing"));
    assert_eq!(cpu, colour_of(&terminal, "cpu       99 %"));
    assert_ne!(cpu, colour_of(&terminal, "num_workers 4 -> 11"));

    scene.verdict.as_mut().expect("starved").cause = Some(Cause::Disk);
    let terminal = screen(&scene, 120, 40);
    let read = colour_of(&terminal, "DATA-BOUND");
    assert_ne!(read, cpu);
    assert_eq!(read, colour_of(&terminal, "212 MB/s"));

    let terminal = screen(&compute_bound(), 120, 40);
    let compute = colour_of(&terminal, "COMPUTE-BOUND");
    assert_eq!(compute, colour_of(&terminal, "100 %"));
}

#[test]
fn an_answer_is_drawn_on_a_bar_or_in_large_letters() {
    let reversed = |scene: &Scene, width, height| {
        let terminal = screen(scene, width, height);
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(usize::from(width));
        let cells = |row: &[Cell]| {
            row.iter()
                .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
                .count()
        };
        rows.map(cells)
            .filter(|cells| *cells > 0)
            .collect::<Vec<_>>()
    };
    let mut scene = starved();
    assert_eq!(reversed(&scene, 80, 24), [78]);
    assert_eq!(reversed(&scene, 120, 40), [0_usize; 0]);
    let letters = colour_of(&screen(&scene, 120, 40), "█  █");
    assert_eq!(letters, colour_of(&screen(&scene, 120, 40), "DATA-BOUND"));
    scene.config.ascii = true;
    assert_eq!(reversed(&scene, 120, 40), [116, 116, 116]);
    let verdict = scene.verdict.as_mut().expect("starved");
    verdict.kind = Kind::Unknown;
    assert_eq!(reversed(&scene, 120, 40), [0_usize; 0]);
    assert_eq!(reversed(&scene, 80, 24), [0_usize; 0]);
}

#[test]
fn the_reason_of_an_unknown_verdict_is_read_in_full() {
    let mut scene = starved();
    let mut unknown = verdict(Kind::Unknown);
    unknown.missing = vec![Missing {
        id: "data-waits".to_owned(),
        why: format!(
            "no known loader was seen{}",
            ": it does other work".repeat(8)
        ),
        // A single word, which is not wrapped.
        hint: "docs/probe.md".to_owned(),
    }];
    scene.verdict = Some(unknown);
    for (width, height) in [(80, 24), (120, 40), (160, 50)] {
        let text = text(&scene, width, height);
        assert!(text.contains("docs/probe.md"), "{text}");
    }
}

/// Returns the first number after a `label`.
fn number(text: &str, label: &str) -> f64 {
    let mut behind = text.split(label).skip(1);
    let number = behind.find_map(|rest| rest.split_whitespace().next()?.parse().ok());
    number.expect(label)
}

#[test]
fn figures_that_can_be_checked_against_each_other_agree() {
    for (load_ms, step_ms, workers) in [
        (412.0, 38.0, 4),
        (412.4, 38.4, 3),
        (97.3, 6.6, 7),
        (31.0, 2.26, 3),
    ] {
        let pace = Pace {
            load_ms,
            step_ms,
            workers,
        };
        let scene = scene(pace, 1, 1);
        let text = text(&scene, 120, 40);
        let (load, step) = (number(&text, "load "), number(&text, "step "));
        let (wait, every) = (number(&text, "wait "), number(&text, "every "));
        let each = number(&text, "workers = ");
        let share = number(&text, "trainer  waiting ");
        assert!(
            (step + wait - every).abs() <= 0.5,
            "{step} + {wait} = {every}"
        );
        assert!(
            (load / f64::from(workers) - each).abs() <= 0.5,
            "{load} / {workers} = {each}"
        );
        assert!(
            (100.0 * wait / every - share).abs() <= 1.0,
            "{wait} / {every} = {share} %"
        );
    }
    let text = text(&starved(), 120, 40);
    assert!(text.contains("lost waiting for data (61-66 %)"), "{text}");
    let lost = text.split(" % of the time is lost").next();
    let lost = lost.and_then(|before| before.split_whitespace().last()?.parse::<f64>().ok());
    let lost = lost.expect("it is the headline");
    assert!((lost - number(&text, "trainer  waiting ")).abs() < 0.5);
}

#[test]
fn control_characters_are_never_printed() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r\n";
    let mut scene = starved();
    scene.each_job(|job| {
        job.command = format!("python {evil}.py");
        for worker in &mut job.ranks[0].loaders[0].workers {
            worker.activity[0].name = evil.to_owned();
        }
    });
    scene.each_rates(|rates| {
        rates.disks[0].device = evil.to_owned();
        rates.gpus[0].now.name = Some(evil.to_owned());
        rates.job.as_mut().expect("starved").ranks[0].device = Some(DeviceRates {
            name: Some(evil.to_owned() + "x"),
            notice: Some(evil.to_owned()),
            ..DeviceRates::default()
        });
    });
    scene.gaps = vec![gap(evil, evil, evil)];
    let checks = |scene: &Scene| {
        for (width, height) in SIZES {
            let terminal = screen(scene, width, height);
            for cell in &terminal.backend().buffer().content {
                let harmless = |c: char| !c.is_control() && c != '\u{202e}';
                assert!(cell.symbol().chars().all(harmless), "{:?}", cell.symbol());
            }
        }
    };
    checks(&scene);
    scene.state.help = true;
    checks(&scene);
    scene.state.help = false;
    scene.attach = Attach::Picker(vec![candidate(1, evil, 0)]);
    checks(&scene);
}

#[test]
fn an_old_reading_says_how_old_it_is_and_loses_its_colour() {
    let mut scene = starved();
    let fresh = colour_of(&screen(&scene, 120, 40), "37 %");
    scene.each_rates(|rates| rates.gpus[0].stale_seconds = Some(12.0));
    let terminal = screen(&scene, 120, 40);
    find(&terminal, "12 s old");
    assert_ne!(colour_of(&terminal, "37 %"), fresh);
}

#[test]
fn the_panel_with_the_keys_scrolls_and_says_what_is_left_out() {
    let pace = Pace {
        load_ms: 6000.0,
        step_ms: 38.0,
        workers: 64,
    };
    let mut many = scene(pace, 1, 1);
    many.state.focus = Panel::Workers;
    find(&screen(&many, 120, 40), "and 5");
    many.state.worker = Some((1, 20));
    let terminal = screen(&many, 120, 40);
    find(&terminal, "more above");
    find(&terminal, "▸20 ");
    many.state.worker = Some((1, 63));
    find(&screen(&many, 120, 40), "▸63 ");
    // A worker that no longer exists.
    many.state.worker = Some((1, 64));
    find(&screen(&many, 120, 40), "▸ 0 ");
}

fn at(seconds: f64) -> Moment {
    let since_start = Duration::try_from_secs_f64(seconds).expect("a time");
    Moment {
        since_start,
        wall: SystemTime::UNIX_EPOCH + since_start,
    }
}

/// Fills in all figures of a GPU, with an error in the past and throttled clocks, in a container.
fn telling_gpu(gpu: &mut GpuRates) {
    let outside = |pid| GpuProcess {
        pid: Pid(pid),
        mem: Some(Bytes(9 << 30)),
        sm_percent: None,
        sm_at: None,
        place: ProcessPlace::Outside,
    };
    let now = &mut gpu.now;
    now.read_at = Some(at(100.0));
    now.power_instant_watts = Some(331.0);
    now.mem_temperature_c = Some(71.0);
    now.mem_reserved = Some(Bytes(600 << 20));
    now.throttle = Some(vec!["power cap".to_owned(), "too hot".to_owned()]);
    now.xids = Some(vec![Xid {
        number: 94,
        at: at(58.0),
    }]);
    now.health = Some(GpuHealth {
        read_at: at(98.0),
        link: Some(Link {
            generation: 4,
            width: 16,
            max_generation: Some(5),
            max_width: Some(16),
        }),
        encoder_percent: Some(0.0),
        decoder_percent: Some(12.0),
        ecc_corrected: Some(5),
        ecc_uncorrected: Some(1),
        retired_pages: None,
        retirement_pending: None,
        remapped_rows: Some(2),
        remapping_pending: Some(false),
        remapping_failed: Some(false),
        persistence: Some(false),
    });
    now.absent = ["retired_pages", "nvlink"]
        .map(|figure| Absent {
            figure: figure.to_owned(),
            reason: "not supported by this GPU".to_owned(),
        })
        .to_vec();
    let list = now.processes.iter_mut().flatten();
    list.for_each(|process| process.sm_at = Some(Duration::from_secs(93)));
    now.processes
        .get_or_insert_default()
        .extend([outside(1_204_711), outside(88)]);
    gpu.counters = CounterRates {
        sm_active: Some(Share(0.31)),
        sm_occupancy: Some(Share(0.18)),
        tensor: Some(Share(0.22)),
        dram: Some(Share(0.12)),
    };
    gpu.energy_joules = Some(2840.0);
    gpu.pcie_rx = Some(BytesPerSecond(1.94e9));
    gpu.pcie_tx = Some(BytesPerSecond(3.1e8));
    gpu.swing = Some(Oscillation {
        seconds: 20.0,
        period: 2.04,
        regular: true,
        resting: Share(0.5),
    });
    gpu.driver_time = Some(Share(0.0012));
}

#[test]
fn a_gpu_with_all_figures() {
    let mut scene = starved();
    scene.each_rates(|rates| rates.gpus.iter_mut().for_each(telling_gpu));
    in_sizes("telling_gpu", &scene, &[(120, 40)]);
    scene.state.focus = Panel::Gpu;
    in_sizes("telling_gpu_with_the_keys", &scene, &[(80, 24)]);
}

#[test]
fn a_gpu_without_counters_has_a_guess_that_says_so() {
    let mut scene = starved();
    scene.each_rates(|rates| rates.gpus[0].load_estimate = Some(Share(0.21)));
    let text = text(&scene, 120, 40);
    assert!(text.contains("~21 %  an estimate"), "{text}");
}

/// The utilisation counts copies: without the remark, the line would say both busy and idle.
#[test]
fn a_gpu_that_only_copies_says_so_beside_its_utilisation() {
    let mut scene = starved();
    let said = |scene: &Scene| text(scene, 120, 40).contains("only copies 41 %");
    scene.each_rates(|rates| rates.gpus[0].copies_only = Some(Share(0.05)));
    assert!(!text(&scene, 120, 40).contains("only copies"));
    scene.each_rates(|rates| rates.gpus[0].copies_only = Some(Share(0.41)));
    let text = text(&scene, 120, 40);
    assert!(said(&scene) && text.contains("no kernel"), "{text}");
}

/// Returns sixteen GPUs: one with an error, one throttled, one lost, one that no longer responds.
fn sixteen() -> Scene {
    let pace = Pace {
        load_ms: 210.0,
        step_ms: 180.0,
        workers: 6,
    };
    let mut scene = scene(pace, 16, 1);
    scene.verdict = compute_bound().verdict;
    scene.each_rates(|rates| {
        telling_gpu(&mut rates.gpus[2]);
        rates.gpus[2].now.throttle = Some(vec![]);
        rates.gpus[5].now.throttle = Some(vec!["power cap".to_owned()]);
        rates.gpus[9].now.gap = Some("lost".to_owned());
        rates.gpus[9].now.xids = Some(vec![Xid {
            number: 79,
            at: at(58.0),
        }]);
        rates.gpus[11].stale_seconds = Some(12.0);
    });
    scene
}

#[test]
fn sixteen_gpus() {
    let mut scene = sixteen();
    in_sizes("sixteen_gpus", &scene, &SIZES);
    let small = text(&scene, 80, 24);
    for what in ["16 GPUs", "1 n/a", "Xid 94", "Xid 79", "1 throttled"] {
        assert!(small.contains(what), "{what} is seen at a glance: {small}");
    }
    scene.state.focus = Panel::Gpu;
    in_sizes("sixteen_gpus_with_the_keys", &scene, &SIZES[..1]);
    scene.state.gpu = 5;
    in_sizes("sixteen_gpus_scrolled", &scene, &[(120, 40)]);
    for gpu in 0..30 {
        scene.state.gpu = gpu;
        let text = text(&scene, 80, 24);
        let picked = gpu.min(15);
        let row = format!(" {picked:>2} H200");
        assert!(text.contains(&row), "GPU {picked} is not shown: {text}");
    }
}

#[test]
fn one_figure_that_a_gpu_denies_hides_that_figure_alone() {
    let denied = |figure: &str| {
        vec![Absent {
            figure: figure.to_owned(),
            reason: "no permission".to_owned(),
        }]
    };
    let mut scene = starved();
    let before = text(&scene, 80, 24);
    scene.each_rates(|rates| rates.gpus[0].now.absent = denied("process_sm"));
    assert_eq!(text(&scene, 80, 24), before);
    scene.state.focus = Panel::Gpu;
    find(&screen(&scene, 200, 60), "process sm: no permission");
    scene.state.focus = Panel::Workers;
    scene.each_rates(|rates| {
        rates.gpus[0].now.absent = denied("util");
        rates.gpus[0].util_percent = None;
    });
    let text = text(&scene, 120, 40);
    for what in ["util    n/a  no permission", "284 / 700 W"] {
        assert!(text.contains(what), "{what}: {text}");
    }
}

#[test]
fn a_divided_gpu() {
    let part = |number, active: Option<f64>, gap: Option<&str>| GpuInstance {
        gpu_instance: Some(number),
        mem_used: Some(Bytes(6 << 30)),
        mem_total: Some(Bytes(40 << 30)),
        counters: active.map(|active| GpuCounters {
            from: at(99.0),
            to: at(100.0),
            graphics: Some(Share(active)),
            sm_active: Some(Share(active / 2.0)),
            sm_occupancy: None,
            tensor: None,
            dram: None,
            pcie_rx: None,
            pcie_tx: None,
            nvlink_rx: None,
            nvlink_tx: None,
        }),
        processes: Some(vec![]),
        gap: gap.map(str::to_owned),
        ..GpuInstance::default()
    };
    let mut scene = starved();
    scene.each_rates(|rates| {
        let gpu = &mut rates.gpus[0];
        gpu.util_percent = None;
        gpu.busy = None;
        gpu.now.gap = Some("MIG is on: no whole-GPU utilisation".to_owned());
        gpu.now.processes = Some(vec![]);
        let why = "no utilisation: not supported by this GPU";
        gpu.now.instances = vec![part(1, Some(0.8), None), part(5, None, Some(why))];
        gpu.parts = vec![Some(Share(0.8)), None];
    });
    scene.history = support::scene::starved_without_gpu();
    in_sizes("divided_gpu", &scene, &[(120, 40)]);
}

fn with(text: &str) -> Config {
    let terminal = Environment {
        locale: Some("C.UTF-8".to_owned()),
        term: Some("xterm-256color".to_owned()),
        no_color: false,
    };
    Config::from_text(Path::new(""), text, &Overrides::default(), &terminal).expect("right")
}

fn many_workers() -> Scene {
    let pace = Pace {
        load_ms: 1500.0,
        step_ms: 38.0,
        workers: 16,
    };
    let mut many = scene(pace, 1, 1);
    many.verdict = starved().verdict;
    many
}

fn typed(scene: &mut Scene, text: &str) {
    scene.state.focus = Panel::Workers;
    scene.state.filter.typing = true;
    text.chars()
        .for_each(|letter| scene.state.filter.add(letter));
}

#[test]
fn a_filter_while_it_is_typed_and_after() {
    let mut scene = many_workers();
    typed(&mut scene, "Resize 7");
    in_sizes("filter_typed", &scene, &[(80, 24)]);
    scene.state.filter.typing = false;
    in_sizes("filter_kept", &scene, &[(120, 40)]);
}

#[test]
fn a_filter_finds_numbers_states_and_functions() {
    let shown = |filter: &str| {
        let mut scene = many_workers();
        typed(&mut scene, filter);
        scene.state.filter.typing = false;
        let text = text(&scene, 120, 40);
        let wanted = format!(" of 16 with `{filter}`");
        let before = text
            .split(&wanted)
            .next()
            .filter(|before| before.len() < text.len());
        let before = before.unwrap_or_else(|| panic!("{text}"));
        before.rsplit(' ').next().expect("a number").to_owned()
    };
    let pid = many_workers()
        .window
        .expect("it has one")
        .job
        .expect("it has one")
        .ranks[0]
        .loaders[0]
        .workers[5]
        .pid();
    assert_eq!(shown("7"), "1");
    assert_eq!(shown(&pid.to_string()), "1");
    assert_eq!(shown("RESIZE"), "16");
    assert_eq!(shown("nobody"), "0");
    assert_eq!(shown("resize 3"), "1");
}

#[test]
fn the_order_of_workers_that_are_alike_is_that_of_their_numbers() {
    use pipetop::testing::config::Column;
    for sort in [Column::Cpu, Column::Load, Column::Read] {
        let mut scene = many_workers();
        scene.state.sort = Some(sort);
        scene.each_job(|job| {
            for worker in &mut job.ranks[0].loaders[0].workers {
                (worker.cpu, worker.load_ms, worker.read) = (Some(0.5), None, None);
            }
        });
        let terminal = screen(&scene, 200, 60);
        let row = |pid: Pid| find(&terminal, &format!(" {pid} ")).1;
        let workers = &scene
            .window
            .as_ref()
            .expect("one")
            .job
            .as_ref()
            .expect("one")
            .ranks[0]
            .loaders[0]
            .workers;
        let rows: Vec<u16> = workers.iter().map(|worker| row(worker.pid())).collect();
        assert!(rows.is_sorted(), "{rows:?}");
    }
}

#[test]
fn the_columns_that_were_chosen_in_their_order() {
    let mut scene = starved();
    scene.config = with("columns = [\"in\", \"load\", \"pid\"]");
    in_sizes("columns", &scene, &[(120, 40)]);
    scene.config = with("columns = [\"pid\"]");
    let terminal = screen(&scene, 120, 40);
    assert!(!terminal.backend().to_string().contains("delay"));
    find(&terminal, "▸ 0  ");
}

/// Returns a configuration with a different key for each action, none of them the default one.
fn remapped() -> Config {
    let line = |(place, action): (usize, &Action)| {
        let name = serde_json::to_value(action).expect("a name");
        let name = name.as_str().expect("a name").to_owned();
        let mut names = ('A'..='Z').chain('0'..='9');
        let key = names.nth(place).expect("few");
        let other = ('\u{100}'..).nth(place).expect("many");
        format!("{name} = [\"alt-{key}\", \"{other}\"]\n")
    };
    let lines: String = Action::ALL.iter().enumerate().map(line).collect();
    let text = format!("[keys]\n{lines}");
    with(&text)
}

#[test]
fn the_footer_names_a_key_that_scrolls_only_where_it_does() {
    let footer = |scene: &Scene| {
        let text = text(scene, 120, 40);
        text.lines().last().expect("a footer").to_owned()
    };
    assert!(footer(&opened(starved(), Panel::Disk)).contains("down move"));
    assert!(!footer(&opened(starved(), Panel::History)).contains("move"));
    let mut launched = opened(support::scene::launched(starved(), 3), Panel::Log);
    assert!(footer(&launched).contains("up older"));
    launched.attach = Attach::LookingForJob {
        wanted: "a training job".to_owned(),
    };
    assert!(footer(&launched).contains("up older"));
}

#[test]
fn footer_and_help_show_the_keys_of_the_key_map() {
    let mut asked = support::scene::launched(starved(), 3);
    asked.launched.as_mut().expect("launched").asked = true;
    let mut picker = nothing();
    picker.attach = Attach::Picker(vec![]);
    let mut help = support::scene::launched(starved(), 3);
    help.state.help = true;
    let mut details = starved();
    details.state.page = Page::Detail;
    // On some screens these keys have another effect.
    let other = [(Action::Select, "choose"), (Action::Cancel, "cancel")];
    for config in [Config::default(), remapped()] {
        let scenes = [
            &mut starved(),
            &mut nothing(),
            &mut picker,
            &mut asked,
            &mut details,
        ];
        for scene in scenes {
            scene.config = config.clone();
            let text = text(scene, 250, 60);
            let footer = text
                .lines()
                .rev()
                .find(|line| line.contains("quit") || line.contains("detach"));
            let footer = footer.unwrap_or_else(|| panic!("{text}"));
            let items: Vec<&str> = footer
                .trim_matches(['"', ' '])
                .split("  ")
                .map(str::trim)
                .collect();
            let shown = |action: Action| {
                let key = config.keys.keys(action)[0];
                let words = other.iter().filter(|(other, _)| *other == action);
                let mut words = words.map(|(_, words)| *words).chain([action.short()]);
                words.any(|words| items.contains(&&*format!("{key} {words}")))
            };
            let count = Action::ALL.iter().filter(|action| shown(**action)).count();
            // Besides, only the cost of polling is shown.
            let others = ["access", "own cost", "every"];
            let keys = items
                .iter()
                .filter(|item| !others.iter().any(|other| item.starts_with(other)))
                .filter(|item| !item.is_empty());
            assert_eq!(keys.count(), count, "{footer}");
            assert!(count >= 2, "{footer}");
        }
        help.config = config.clone();
        for replay in [None, Some(ReplayPosition::default())] {
            help.state.replay = replay;
            let text = text(&help, 250, 80);
            // In a replay, the actions not listed there may have another effect.
            let wishes = Action::ALL
                .iter()
                .filter(|action| IN_TIME.contains(action) || replay.is_none());
            for action in wishes {
                let names = config.keys.keys(*action).iter().map(ToString::to_string);
                let line = format!("  {}", names.collect::<Vec<_>>().join("  "));
                let said = text
                    .lines()
                    .any(|row| row.contains(&line) && row.contains(action.words()));
                assert!(said, "{action:?} {line}\n{text}");
            }
        }
    }
}

/// Returns a situation with the details of one panel open.
fn opened(mut scene: Scene, panel: Panel) -> Scene {
    scene.state.page = Page::Detail;
    scene.state.focus = panel;
    scene
}

/// Adds a mark at this time, in milliseconds.
fn mark(scene: &mut Scene, at: u64, kind: MarkKind, words: &str) {
    let at = Duration::from_millis(at);
    scene.history.mark(Mark::new(at, kind, words));
}

/// Returns three hours of a job: epochs of 40 minutes, each followed by a validation and a checkpoint, and a new verdict.
fn long_watched() -> Scene {
    let mut scene = starved();
    scene.history = History::new();
    for at in 0..10_800_u32 {
        let waits = at > 5_400;
        scene.history.add(Reading {
            from: f64::from(at),
            to: f64::from(at + 1),
            ranks: vec![RankPoint {
                number: 0,
                wait: Some(if waits { 0.6 } else { 0.02 } + f64::from(at * 7 % 5) / 100.0).into(),
                queue: Some(if waits { 0.05 } else { 0.9 }).into(),
                device_busy: None.into(),
            }],
            disk_read: Some(200e6 + f64::from(at % 600) * 1e5).into(),
            cpu_cores: Some(4.9).into(),
            gpus: vec![GpuPoint {
                util_percent: Some(if waits { 37.0 } else { 96.0 }).into(),
                ..GpuPoint::default()
            }],
            workers: vec![],
        });
    }
    let mut mark = |at: u64, kind, words| mark(&mut scene, at * 1000, kind, words);
    mark(12, MarkKind::JobBegin, "process 48213 began");
    for epoch in 0..5 {
        mark(40 + epoch * 2_400, MarkKind::Epoch, "epoch");
        mark(2_100 + epoch * 2_400, MarkKind::Validation, "validation");
        mark(
            2_350 + epoch * 2_400,
            MarkKind::Checkpoint,
            "checkpoint: the main thread is in a function that saves",
        );
    }
    mark(
        5_420,
        MarkKind::Verdict,
        "verdict: DATA-BOUND, CPU preprocessing, 63 % lost, before COMPUTE-BOUND",
    );
    scene
}

/// Returns the starved job as seen by polls. Its last worker takes the usual time, the others a third of it.
fn polled() -> Scene {
    let mut scene = starved();
    support::scene::polled(&mut scene, 4, &[3]);
    scene.each_job(|job| {
        let rank = &mut job.ranks[0];
        rank.step.load_ms = Some((412.0 + 3.0 * 137.0) / 4.0);
        for worker in rank.loaders[0].workers.iter_mut().take(3) {
            worker.load_ms = Some(137.0);
            (worker.cpu, worker.main_cpu) = (Some(0.31), Some(Share(0.31)));
            worker.busy = Some(Share(0.33));
        }
    });
    if let Some(verdict) = &mut scene.verdict {
        verdict.cause = Some(Cause::HeadOfLine);
        verdict.evidence.truncate(1);
        let mut fact = verdict.evidence[0].clone();
        "worker 3 is busy 99 % of the time, the others idle 67 %: batches are delivered in order"
            .clone_into(&mut fact.text);
        verdict.evidence.insert(0, fact);
        verdict.advice = vec![
            "in_order=False (PyTorch 2.6 and newer) lets the other workers' batches pass"
                .to_owned(),
            "balance the work: spread the slow samples or the slow shard".to_owned(),
        ];
    }
    scene
}

/// Compares the screen with a picture in the documentation, as `s` saves it. Pictures are written together with the
/// snapshots.
fn pictured(name: &str, scene: &Scene) {
    let terminal = screen(scene, 120, 40);
    let svg = picture::svg(terminal.backend().buffer(), &scene.config.theme);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.svg"));
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        std::fs::write(&path, &svg).expect("the documents are ours");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == svg, "{} shows another screen", path.display());
}

#[test]
fn the_timeline_shows_who_works_and_who_waits() {
    let scene = polled();
    in_sizes("timeline", &scene, &[(120, 40)]);
    pictured("screen", &scene);
    // The row of the slow worker is full, those of the others are mostly empty.
    let text = text(&scene, 120, 40);
    let row = |worker: &str| {
        let mut rows = text.lines().skip_while(|line| !line.contains("timeline"));
        rows.find(|line| line.contains(worker))
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let idle = |worker| row(worker).matches('▁').count();
    assert_eq!(idle("worker 3"), 0);
    assert!(idle("worker 0") > 40, "{text}");
    assert!(!self::text(&scene, 80, 24).contains("timeline"));
    in_sizes(
        "timeline_open",
        &opened(scene, Panel::Timeline),
        &[(80, 24)],
    );
}

/// A job's graphs span the same columns in its first seconds as when it is old.
#[test]
fn a_young_job_fills_its_room() {
    for seconds in [2, 5, 13, 40] {
        let mut noise = Noise::of(4, 1);
        let mut app = App::new(Config::default(), String::new());
        app.update(Event::Input(Input::Resize(160, 50)));
        for second in 1..=seconds {
            app.update(Event::Sample(Box::new(noise.sample(second))));
        }
        let mut terminal = Terminal::new(TestBackend::new(160, 50)).expect("a test backend");
        let drawn = terminal.draw(|frame| draw(&app.view(), frame));
        drawn.expect("a test backend");
        let text = terminal.backend().to_string();
        let mut lines = text.lines().skip_while(|line| !line.contains(" timeline "));
        for (name, label, figure) in [
            ("worker 0 ", 11, 13),
            ("worker 3 ", 11, 13),
            ("queue ", 11, 13),
            ("trainer ", 11, 13),
            ("wait ", 7, 11),
        ] {
            let line = lines.find(|line| line.contains(name)).expect(name);
            let cells: Vec<char> = line.chars().skip(3).take(156).collect();
            let cells = &cells[label..156 - figure];
            let blank = |end: &[char]| end.iter().all(|cell| *cell == ' ');
            assert!(
                !blank(&cells[..3]) && !blank(&cells[cells.len() - 2..]),
                "{name} after {seconds} s: {text}"
            );
        }
    }
}

#[test]
fn without_colours_the_timeline_tells_work_wait_and_idle_apart() {
    let bare = Environment {
        locale: None,
        term: Some("linux".to_owned()),
        no_color: true,
    };
    let config = Config::from_text(Path::new(""), "", &Overrides::default(), &bare);
    let mut scene = opened(polled(), Panel::Timeline);
    scene.config = config.expect("the default is right");
    let text = text(&scene, 120, 40);
    assert!(text.is_ascii());
    let row = |name: &str| {
        let mut rows = text.lines();
        rows.find(|line| line.contains(name))
            .unwrap_or_default()
            .to_owned()
    };
    for sign in ["#", "r", "=", "_", " "] {
        assert!(row("worker 1 ").contains(sign), "no {sign} in {text}");
    }
    for sign in ["*", "_"] {
        assert!(row("trainer  ").contains(sign), "no {sign} in {text}");
    }
}

#[test]
fn a_figure_of_a_worker_is_shown_whole_or_not_at_all() {
    let scene = starved();
    for width in 40..60 {
        let shown = text(&scene, width, 30);
        let table = shown
            .lines()
            .skip_while(|line| !line.contains(" pid ") || !line.contains(" now "));
        for line in table.take(2) {
            assert!(!line.contains('…'), "{width}: {shown}");
        }
    }
}

#[test]
fn of_many_workers_the_slow_one_is_shown() {
    let mut scene = many_workers();
    support::scene::polled(&mut scene, 16, &[12]);
    scene.each_job(|job| {
        for worker in &mut job.ranks[0].loaders[0].workers {
            worker.load_ms = Some(if worker.id == 12 { 900.0 } else { 300.0 });
        }
    });
    let shown = text(&scene, 120, 40);
    assert!(shown.contains("worker 12"), "{shown}");
    assert!(shown.contains("more workers"), "{shown}");
    let low: Vec<String> = (34..50).map(|height| text(&scene, 100, height)).collect();
    assert!(!low.iter().any(|shown| shown.contains("and 16 more")));
    assert!(
        low.iter()
            .any(|shown| shown.contains("16 workers, for which there is no room"))
    );
    let mut scene = opened(scene, Panel::Timeline);
    assert!(!text(&scene, 80, 18).contains("worker 15"));
    scene.state.scroll = 100;
    assert!(text(&scene, 80, 18).contains("worker 15"));
}

#[test]
fn a_caption_is_shown_whole() {
    let mut scene = polled();
    let caption = "1/12: workers decode JPEG files too slowly for the device; see the workers' full rows \
                   and the red gaps of the trainer";
    scene.state.caption = Some(caption.to_owned());
    for (width, height) in [(80, 24), (120, 40)] {
        let text = text(&scene, width, height).replace('"', "");
        let words: Vec<_> = text.split_whitespace().collect();
        let count = caption.split(' ').count();
        assert_eq!(words[..count].join(" "), caption, "{text}");
        assert!(words.contains(&"DATA-BOUND"), "{text}");
    }
}

#[test]
fn a_worker_that_is_mostly_idle_is_not_called_slow() {
    let said = |busy: f64| {
        let mut scene = polled();
        scene.each_job(|job| {
            for worker in &mut job.ranks[0].loaders[0].workers {
                worker.busy = Some(Share(busy));
                worker.load_ms = Some(if worker.id == 1 { 26.0 } else { 3.0 });
            }
        });
        text(&scene, 120, 40).contains("slow   26 ms")
    };
    assert!(said(1.0) && !said(0.02));
}

#[test]
fn every_gpu_is_shown() {
    for gpus in 2..=16 {
        let pace = Pace {
            load_ms: 1200.0,
            step_ms: 38.0,
            workers: 16,
        };
        let text = text(&scene(pace, gpus, gpus.min(8)), 120, 40);
        let panel = text.lines().skip_while(|line| !line.contains(" GPUs ─"));
        let panel: String = panel
            .take_while(|line| !line.contains("workers ─"))
            .map(|line| line.chars().take(60).collect::<String>() + "\n")
            .collect();
        for gpu in 0..gpus {
            let there = [format!(" {gpu:>2} H200 "), format!(" {gpu:>2}  5")];
            let there = there.iter().any(|gpu| panel.contains(gpu));
            assert!(there, "no GPU {gpu} of {gpus}: {text}");
        }
    }
}

#[test]
fn of_eight_ranks_the_odd_one_stands_first() {
    let pace = Pace {
        load_ms: 1200.0,
        step_ms: 38.0,
        workers: 16,
    };
    let mut scene = scene(pace, 8, 8);
    scene.verdict = starved().verdict;
    scene.each_job(|job| {
        let odd = &mut job.ranks[5];
        if let Some(wait) = &mut odd.wait {
            wait.share = Share(0.81);
        }
        for worker in &mut odd.loaders[0].workers {
            worker.busy = Some(Share(if worker.id == 9 { 0.99 } else { 0.2 }));
            worker.load_ms = Some(if worker.id == 9 { 2400.0 } else { 400.0 });
        }
    });
    in_sizes("eight_ranks", &scene, &[(120, 40)]);
    let terminal = screen(&scene, 120, 40);
    let (x, y) = find(&terminal, "rank  5");
    let (_, first) = find(&terminal, "rank  0");
    assert_eq!(y + 1, first, "{}", terminal.backend());
    let (tx, ty) = find(&terminal, "wait  37 ms");
    let buffer = terminal.backend().buffer();
    let cell = |worker: u16| buffer[(x + 9 + worker, y)].clone();
    assert_eq!(cell(9).fg, buffer[(tx, ty)].fg, "in the colour of trouble");
    assert_ne!(cell(9).symbol(), cell(8).symbol());
}

#[test]
fn the_cursor_of_the_timeline_says_which_batch_was_due() {
    let mut scene = opened(polled(), Panel::Timeline);
    scene.state.page = Page::Panels;
    scene.state.paused = true;
    scene.state.cursor = Some(20);
    let shown = text(&scene, 120, 40);
    let title = shown.lines().find(|line| line.contains("timeline: "));
    assert!(title.is_some_and(|line| line.contains("batch ")), "{shown}");
    // The cursor disappears when the pause ends.
    scene.state.paused = false;
    assert!(!text(&scene, 120, 40).contains("timeline: "));
}

#[test]
fn an_unpolled_timeline_gives_the_reason() {
    let scene = opened(starved(), Panel::Timeline);
    let text = text(&scene, 120, 40);
    assert!(
        text.contains("is not visible, or was not recorded"),
        "{text}"
    );
    // Nothing is shown of it if it was not requested.
    assert!(!self::text(&starved(), 120, 40).contains("timeline"));
}

#[test]
fn all_of_a_verdict() {
    let mut scene = opened(starved(), Panel::Verdict);
    if let Some(verdict) = &mut scene.verdict {
        for fact in &mut verdict.evidence {
            (fact.value, fact.threshold) = match fact.id {
                "queue-empty" => (0.91, Some(0.5)),
                "workers-busy" => (0.99, Some(0.9)),
                "gpu-idle" => (0.63, Some(0.2)),
                _ => (0.02, Some(0.5)),
            };
        }
        verdict.period_batches = Some(4);
        verdict.missing = vec![missing(
            "python",
            "no permission to attach: cannot read Python stacks and loader settings",
            "run as root or with CAP_SYS_PTRACE, or `sysctl kernel.yama.ptrace_scope=0`",
        )];
    }
    in_sizes("detail_verdict", &scene, &[(120, 40)]);
    pictured("views/verdict", &scene);
    scene.state.scroll = usize::MAX;
    in_sizes("detail_verdict_end", &scene, &[(80, 24)]);
    // What does not limit them is not named.
    scene.state.scroll = 0;
    let verdict = scene.verdict.as_mut().expect("starved");
    verdict.workers.as_mut().expect("it is known").cpu_allows = None;
    find(&screen(&scene, 120, 40), "4 now; the step needs 11  ");
    // If there is no table, the reason takes its place.
    let verdict = scene.verdict.as_mut().expect("starved");
    verdict.what_if = Err("the load time is not known".to_owned());
    find(&screen(&scene, 120, 40), "n/a  the load time is not known");
    scene.verdict = None;
    find(&screen(&scene, 120, 40), "no verdict yet");
}

#[test]
fn all_of_a_worker() {
    let mut scene = opened(starved(), Panel::Workers);
    scene.state.worker = Some((1, 2));
    in_sizes("detail_worker", &scene, &[(120, 40)]);
    pictured("views/worker", &scene);
    scene.state.scroll = usize::MAX;
    in_sizes("detail_worker_end", &scene, &[(80, 24)]);
    scene.state.scroll = 0;
    let file = |path: &str, position, size: Option<u64>, deleted| OpenFile {
        path: path.to_owned(),
        position,
        size: size.map(Bytes),
        deleted,
    };
    let found = |files, more| {
        Some(OpenFiles {
            process: support::scene::key(48232),
            files,
            more,
        })
    };
    let files = vec![
        file(
            "/data/train-0001.tar",
            12_000_000,
            Some(1_200_000_000),
            false,
        ),
        file(
            "/mnt/nfs/a/very/long/path/to/the/shards/of/the/data/set/train-0002.tar",
            0,
            None,
            false,
        ),
        file("/tmp/cache", 4096, Some(4096), true),
    ];
    scene.files = found(Ok(files), 7);
    in_sizes("detail_worker_files", &scene, &[(120, 40)]);
    scene.files = found(
        Err("cannot read /proc/48232/fd: permission denied".to_owned()),
        0,
    );
    find(&screen(&scene, 120, 40), "fd: permission denied");
    // The files of one worker are not shown for another.
    scene.state.worker = Some((1, 1));
    find(&screen(&scene, 120, 40), "n/a  not read yet");
    scene.state.replay = Some(ReplayPosition::default());
    find(&screen(&scene, 120, 40), "recordings contain no file names");
    scene.state.replay = None;
    scene.each_job(|job| {
        for worker in &mut job.ranks[0].loaders[0].workers {
            (worker.busy, worker.stopped) = (None, Some(Share(0.6)));
        }
    });
    let stopped = screen(&scene, 120, 40);
    find(&stopped, "stopped              60 %  ▄");
    find(&stopped, "n/a  stopped most of the time");
    // Without permission, neither stacks nor states are known.
    scene.each_job(|job| {
        for worker in &mut job.ranks[0].loaders[0].workers {
            worker.activity.clear();
            (worker.busy, worker.stopped) = (None, None);
            (worker.disk, worker.rchar) = (None, None);
        }
    });
    find(&screen(&scene, 200, 60), "n/a  no stacks seen yet");
    scene.each_job(|job| job.access = Tier::T1);
    let unseen = screen(&scene, 200, 60);
    find(&unseen, "n/a  no permission");
    find(&unseen, "n/a  no stacks: they need permission to attach");
    scene.each_job(|job| job.ranks[0].loaders[0].kind = LoaderKind::Builtin);
    find(
        &screen(&scene, 200, 60),
        "n/a  no stacks: this job runs no Python",
    );
    scene.each_job(|job| job.ranks[0].loaders[0].workers.clear());
    find(
        &screen(&scene, 120, 40),
        "none: the trainer's main thread loads",
    );
    scene.each_job(|job| job.ranks[0].loaders.clear());
    find(&screen(&scene, 40, 10), "no loader found yet");
}

#[test]
fn where_no_workers_are_known_none_are_counted() {
    let mut scene = starved();
    let is_counted = |scene: &Scene| text(scene, 120, 40).contains(" idle  last ");
    assert!(is_counted(&scene));
    scene.each_job(|job| job.ranks[0].loaders[0].workers.clear());
    assert!(!is_counted(&scene));
}

/// Changes what is known of each worker's single batches.
fn each_loads(scene: &mut Scene, change: impl Fn(&mut Option<LoadRates>)) {
    scene.each_job(|job| {
        let loaders = job.ranks.iter_mut().flat_map(|rank| &mut rank.loaders);
        for worker in loaders.flat_map(|loader| &mut loader.workers) {
            change(&mut worker.loads);
        }
    });
}

#[test]
fn one_slow_batch_stands_out_among_the_last() {
    let mut scene = opened(starved(), Panel::Workers);
    scene.state.worker = Some((1, 2));
    let screen = |scene: &Scene| text(scene, 120, 40);
    let shown = screen(&scene);
    let bar = |batch: &str| {
        let line = shown
            .lines()
            .find_map(|line| Some(line.split_once(batch)?.1));
        let half = line
            .unwrap_or_else(|| panic!("no {batch}: {shown}"))
            .split("batch")
            .next();
        half.unwrap_or_default().matches('▄').count()
    };
    assert!(bar("batch 2058") > 4 * bar("batch 2062"), "{shown}");
    assert!(
        shown.contains("newest first; median 414 ms, longest 2142 ms"),
        "{shown}"
    );
    each_loads(&mut scene, |loads| {
        let loads = loads.as_mut().expect("the scene has them");
        loads.short = 3;
    });
    let shown = screen(&scene);
    assert!(
        shown.contains("and in the last 10 s at least 3 more, too short to time"),
        "{shown}"
    );
    // A batch of half a minute holds up the others before it ends.
    each_loads(&mut scene, |loads| {
        let loads = loads.as_mut().expect("the scene has them");
        loads.last.clear();
        let under_way = loads.under_way.as_mut().expect("the scene has one");
        under_way.for_ms = 31_400;
    });
    let shown = screen(&scene);
    assert!(shown.contains("batch 2082     31.4 s  so far"), "{shown}");
}

#[test]
fn why_single_batches_have_no_times() {
    let mut scene = opened(starved(), Panel::Workers);
    let nothing_but = |short| {
        move |loads: &mut Option<LoadRates>| {
            *loads = Some(LoadRates {
                short,
                ..LoadRates::default()
            });
        }
    };
    let words = |scene: &Scene| {
        let text = text(scene, 200, 60);
        let (_, words) = text
            .split_once("single times are n/a: ")
            .expect("it says so");
        words.split("  ").next().unwrap_or_default().to_owned()
    };
    each_loads(&mut scene, nothing_but(190));
    assert_eq!(
        words(&scene),
        "in the last 10 s at least 190 were too short to time"
    );
    each_loads(&mut scene, nothing_but(0));
    assert_eq!(words(&scene), "no batch was seen from start to end yet");
    each_loads(&mut scene, |loads| *loads = None);
    assert_eq!(
        words(&scene),
        "its stack has not shown the current batch yet"
    );
    scene.each_job(|job| job.access = Tier::T1);
    assert!(words(&scene).contains("needs permission to attach (access T2)"));
    scene.each_job(|job| job.ranks[0].loaders[0].kind = LoaderKind::Builtin);
    assert!(words(&scene).contains("this job runs no Python"));
}

#[test]
fn all_of_a_rank() {
    let mut scene = opened(starved(), Panel::Pipeline);
    scene.each_job(|job| {
        job.ranks[0].activity = vec![Activity {
            name: "train_step (train.py)".to_owned(),
            share: Share(0.37),
        }];
    });
    in_sizes("detail_rank", &scene, &[(120, 40)]);
    pictured("views/rank", &scene);
    // 38 ms of step and 65 ms of wait, both in the figures and in the distributions.
    let text = text(&scene, 200, 60);
    assert!(text.contains("step 38 ms, wait 65 ms"), "{text}");
    assert!(text.contains("p50 65 ms"), "{text}");
    // If only one step in ten is known, nothing is shown of them: they are not representative.
    let mut steps = Steps::default();
    for batch in 0..400 {
        let from = Duration::from_millis(batch * 100);
        let wait = Wait {
            from,
            to: from + Duration::from_millis(60),
            batch: Some(if batch % 10 == 0 { batch } else { 3 * batch }),
            first: None,
            begins: false,
        };
        steps.add_wait(support::scene::key(48213), wait);
    }
    scene.steps = steps;
    find(&screen(&scene, 120, 40), "steps could be told apart");
    scene.steps = Steps::default();
    find(
        &screen(&scene, 120, 40),
        "no complete wait for a batch was seen",
    );
    scene.each_job(|job| job.ranks.clear());
    find(&screen(&scene, 120, 40), "no rank found yet");
}

#[test]
fn all_of_the_disks() {
    let mut scene = opened(starved(), Panel::Disk);
    in_sizes("detail_disk", &scene, &[(80, 24)]);
    pictured("views/disk", &scene);
    scene.each_job(|job| {
        job.ranks[0].io = None;
        for worker in &mut job.ranks[0].loaders[0].workers {
            (worker.read, worker.rchar, worker.write) = (None, None, None);
        }
    });
    find(
        &screen(&scene, 120, 40),
        "no permission to read the workers' counters",
    );
}

#[test]
fn all_of_a_gpu() {
    let mut scene = opened(sixteen(), Panel::Gpu);
    scene.state.gpu = 3;
    in_sizes("detail_gpu", &scene, &[(120, 40)]);
    scene.state.gpu = 99;
    find(&screen(&scene, 120, 40), "(16 of 16)");
    scene.each_rates(|rates| rates.gpus.clear());
    scene.gaps = vec![gap("nvml", "libnvidia-ml.so.1 not found", "")];
    find(&screen(&scene, 120, 40), "libnvidia-ml.so.1 not found");
}

#[test]
fn details_before_anything_was_read() {
    for panel in Panel::ALL {
        for (width, height) in SIZES {
            let text = text(&opened(nothing(), panel), width, height);
            assert!(text.contains("WARMING UP"), "{panel:?}: {text}");
        }
    }
}

#[test]
fn a_long_past_zoomed_out() {
    let mut scene = long_watched();
    scene.state.zoom = Zoom::Whole;
    in_sizes("zoomed_out", &scene, &[(120, 40)]);
    scene.state.zoom = Zoom::Span(600.0);
    let text = text(&scene, 120, 40);
    assert!(text.contains("last 10 min"), "{text}");
}

#[test]
fn the_past_with_its_marks() {
    let mut scene = long_watched();
    scene.state.zoom = Zoom::Span(10_800.0);
    scene.state.paused = true;
    scene.past = Some(Past {
        at: moment(5_420),
        until: Duration::from_hours(3),
        ago: Duration::from_mins(90),
    });
    in_sizes("looking_back", &scene, &[(120, 40)]);
    pictured("views/past", &scene);
    scene.config.ascii = true;
    let ascii = text(&scene, 120, 40);
    let said = "history: verdict: DATA-BOUND, CPU preprocessing, 63 % lost, before COMPUTE-BOUND";
    assert!(ascii.contains(said) && ascii.is_ascii(), "{ascii}");
    // Looking far back, the axis moves with the moment, and the axis's end is labelled.
    scene.state.zoom = Zoom::Span(60.0);
    scene.past = scene.past.map(|past| Past {
        at: moment(5_000),
        ago: Duration::from_secs(5_800),
        ..past
    });
    let text = text(&scene, 120, 40);
    assert!(text.contains("60 s until 1:3"), "{text}");
}

#[test]
fn marks_of_one_moment_stand_side_by_side() {
    let mut scene = long_watched();
    scene.state.zoom = Zoom::Span(60.0);
    let mut mark = |at, kind, words| mark(&mut scene, at, kind, words);
    mark(10_760_200, MarkKind::Epoch, "an epoch");
    mark(10_760_100, MarkKind::Checkpoint, "a checkpoint");
    // Here the next cell has a mark of its own, which hides one of these.
    mark(10_780_200, MarkKind::Epoch, "hidden");
    mark(10_780_100, MarkKind::Checkpoint, "a checkpoint");
    mark(10_780_900, MarkKind::Validation, "a validation");
    let shown = text(&scene, 120, 40);
    let line = shown.lines().find(|line| line.contains("marks")).unwrap();
    assert!(line.contains(" ce ") && line.contains(" cv "), "{line}");
}

fn moment(at: u64) -> Moment {
    Moment {
        since_start: Duration::from_secs(at),
        wall: SystemTime::UNIX_EPOCH + Duration::from_secs(50_000 + at),
    }
}
