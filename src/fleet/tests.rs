use std::path::Path;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::report::{FleetRank, FleetReport, RunReport};
use super::state::FleetScreen;
use super::view::draw;
use crate::app::Effect;
use crate::config::{Config, Environment, Overrides};
use crate::error::Hinted;

fn plain() -> Config {
    let environment = Environment {
        no_color: true,
        ..Environment::default()
    };
    Config::from_text(Path::new(""), "", &Overrides::default(), &environment).unwrap()
}

fn rank(rank: u32, share: f64, straggler: bool) -> FleetRank {
    FleetRank {
        rank: rank.to_string(),
        instance: format!("gpu-{:02}:9977", rank / 8),
        wait_share: Some(share),
        queue_occupancy: Some(if straggler { 0.0 } else { 0.75 }),
        gpu_busy_share: Some(1.0 - share),
        straggler,
    }
}

fn run(name: &str, verdict: &str, lost: f64) -> RunReport {
    RunReport {
        run: name.to_owned(),
        user: Some("anna".to_owned()),
        nodes: 4,
        ranks: 32,
        verdict: Some(verdict.to_owned()),
        agree: 4,
        cause: (lost > 0.1).then(|| "cpu-preprocess".to_owned()),
        lost_share: Some(lost),
        history: (0..16).map(|at| (at > 3).then_some(lost)).collect(),
        ranks_lost: Some(32.0 * lost),
        batches_per_s: Some(448.0),
        slowest: (lost > 0.1).then(|| rank(17, lost + 0.3, true)),
        age_seconds: Some(2.0),
        all_ranks: vec![],
    }
}

fn runs() -> FleetReport {
    let unknown = RunReport {
        verdict: None,
        lost_share: None,
        history: vec![None; 16],
        ranks_lost: None,
        ..run("gpu-09-4711-88123", "", 0.0)
    };
    FleetReport {
        runs: vec![
            run("slurm-4711", "data-bound", 0.41),
            run("slurm-4698", "compute-bound", 0.01),
            unknown,
        ],
        warnings: vec![],
    }
}

fn ranks() -> FleetReport {
    let mut whole = run("slurm-4711", "data-bound", 0.41);
    whole.all_ranks = vec![
        rank(17, 0.71, true),
        rank(2, 0.4, false),
        rank(9, 0.39, false),
    ];
    FleetReport {
        runs: vec![whole],
        warnings: vec![],
    }
}

fn screen() -> FleetScreen {
    let url = "http://prometheus:9090".to_owned();
    FleetScreen::new(plain(), url, None, std::sync::mpsc::channel().0)
}

fn picture(screen: &FleetScreen, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(screen, frame)).unwrap();
    terminal.backend().clone()
}

fn key(screen: &mut FleetScreen, code: KeyCode) -> Option<Effect> {
    screen.update(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

#[test]
fn runs_are_drawn_in_every_size() {
    let mut screen = screen();
    insta::assert_snapshot!("reading", picture(&screen, 80, 6));
    screen.take((None, Ok(runs())));
    insta::assert_snapshot!("runs_150", picture(&screen, 150, 8));
    insta::assert_snapshot!("runs_80", picture(&screen, 80, 8));
    for (width, height) in [(1, 1), (2, 2), (10, 3), (40, 2), (300, 100)] {
        picture(&screen, width, height);
    }
    screen.take((None, Ok(FleetReport::default())));
    insta::assert_snapshot!("none", picture(&screen, 80, 6));
}

#[test]
fn a_run_can_be_opened_and_closed() {
    let mut screen = screen();
    screen.take((None, Ok(runs())));
    assert_eq!(key(&mut screen, KeyCode::Enter), Some(Effect::Draw));
    assert_eq!(screen.page, Some("slurm-4711".to_owned()));
    // A reading for the previous page comes too late, and is ignored.
    screen.take((None, Ok(runs())));
    assert_eq!(screen.report, None);
    screen.take((screen.page.clone(), Ok(ranks())));
    insta::assert_snapshot!("ranks", picture(&screen, 100, 8));
    assert_eq!(key(&mut screen, KeyCode::PageDown), Some(Effect::Draw));
    assert_eq!(screen.picked, 2);
    key(&mut screen, KeyCode::PageUp);
    assert_eq!(screen.picked, 0);
    for _ in 0..5 {
        key(&mut screen, KeyCode::Down);
    }
    let there = "srun --overlap --jobid 4711 -w gpu-01 --pty pipetop";
    assert_eq!(screen.command().as_deref(), Some(there));
    assert_eq!(key(&mut screen, KeyCode::Char('l')), Some(Effect::Quit));
    assert_eq!(screen.printed.as_deref(), Some(there));
    key(&mut screen, KeyCode::Esc);
    assert_eq!((&screen.page, screen.picked), (&None, 0));
    assert_eq!(key(&mut screen, KeyCode::Char('l')), None);
    assert_eq!(key(&mut screen, KeyCode::Char('q')), Some(Effect::Quit));
}

#[test]
fn back_from_its_ranks_a_run_is_marked_wherever_it_is_now() {
    let mut screen = screen();
    screen.take((None, Ok(runs())));
    key(&mut screen, KeyCode::Down);
    let marked = |screen: &FleetScreen| screen.runs()[screen.picked].run.clone();
    let left = marked(&screen);
    key(&mut screen, KeyCode::Enter);
    screen.take((screen.page.clone(), Ok(ranks())));
    key(&mut screen, KeyCode::Down);
    key(&mut screen, KeyCode::Esc);
    let mut other = runs();
    other.runs.rotate_right(1);
    screen.take((None, Ok(other)));
    assert_eq!((screen.picked, marked(&screen)), (2, left));
}

#[test]
fn esc_and_a_key_that_arrive_together_both_act() {
    let mut screen = screen();
    screen.take((None, Ok(runs())));
    key(&mut screen, KeyCode::Enter);
    let alt = |letter| Event::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::ALT));
    assert_eq!(screen.update(&alt('#')), Some(Effect::Draw));
    assert_eq!(screen.page, None);
    assert_eq!(screen.update(&alt('q')), Some(Effect::Quit));
}

#[test]
fn the_last_values_stay_with_their_age_without_a_server() {
    let mut screen = screen();
    screen.take((None, Ok(runs())));
    screen.read_at = Some(Duration::ZERO);
    screen.drawn_at = Duration::from_secs(75);
    let gone = Hinted::new("cannot read http://prometheus:9090: timeout", "");
    screen.take((None, Err(gone)));
    insta::assert_snapshot!("gone", picture(&screen, 120, 8));
    insta::assert_snapshot!("gone_80", picture(&screen, 80, 8));
    screen.take((None, Ok(runs())));
    assert_eq!(screen.trouble, None);
}

#[test]
fn a_selected_line_stays_with_its_run_and_the_first_with_the_worst() {
    let mut screen = screen();
    screen.take((None, Ok(runs())));
    let mut turned = runs();
    turned.runs.reverse();
    screen.take((None, Ok(turned.clone())));
    assert_eq!(screen.picked, 0);
    key(&mut screen, KeyCode::End);
    screen.take((None, Ok(runs())));
    key(&mut screen, KeyCode::Enter);
    assert_eq!(screen.page, Some("slurm-4711".to_owned()));

    screen.take((screen.page.clone(), Ok(ranks())));
    key(&mut screen, KeyCode::Down);
    let before = screen.command();
    let mut turned = ranks();
    turned.runs[0].all_ranks.rotate_left(1);
    turned.runs[0].all_ranks.swap(0, 1);
    screen.take((screen.page.clone(), Ok(turned)));
    assert_eq!(screen.command(), before);
    // The selected rank of the run is gone.
    let mut fewer = ranks();
    fewer.runs[0].all_ranks.truncate(1);
    screen.take((screen.page.clone(), Ok(fewer)));
    assert_eq!(screen.picked, 0);
}

#[test]
fn a_command_is_printed_for_names_of_jobs_and_machines_only() {
    let command = |run: &str, instance: &str| {
        let mut screen = screen();
        screen.page = Some(run.to_owned());
        let mut whole = ranks();
        whole.runs[0].all_ranks[0].instance = instance.to_owned();
        screen.take((screen.page.clone(), Ok(whole)));
        let shown = picture(&screen, 120, 10).to_string();
        let printed = screen.command();
        assert_eq!(shown.contains("look there"), printed.is_some());
        assert_eq!(shown.contains("print the command"), printed.is_some());
        printed
    };
    let there = |run: &str, instance: &str| command(run, instance).unwrap();
    assert_eq!(there("pod-1", "gpu-03:9977"), "ssh -t gpu-03 pipetop");
    assert_eq!(there("pod-1", "[fe80::1]:9977"), "ssh -t fe80::1 pipetop");
    let job = "srun --overlap --jobid 47_1 -w gpu-03 --pty pipetop";
    assert_eq!(there("slurm-47_1", "gpu-03:9977"), job);
    for instance in [
        "",
        ":9977",
        "$(reboot):1",
        "a b",
        "-oProxyCommand=reboot:22",
        "a\u{1b}[2J:1",
        "gpu-1,gpu-2:1",
    ] {
        assert_eq!(command("pod-1", instance), None, "{instance}");
    }
    for run in ["slurm-1;reboot", "slurm-", "slurm-`id`", "slurm--1"] {
        assert_eq!(command(run, "gpu-03:9977"), None, "{run}");
    }
}

#[test]
fn what_the_server_could_not_read_is_on_the_screen() {
    let mut screen = screen();
    let mut report = runs();
    report.warnings = vec!["a store is away".to_owned(), "another".to_owned()];
    screen.take((None, Ok(report)));
    insta::assert_snapshot!("note", picture(&screen, 80, 8));
    let low = picture(&screen, 80, 4).to_string();
    assert!(!low.contains("note") && low.contains("slurm-4711"), "{low}");
}

#[test]
fn a_run_without_ranks_is_no_empty_table() {
    let mut screen = screen();
    screen.page = Some("slurm-1".to_owned());
    screen.take((screen.page.clone(), Ok(FleetReport::default())));
    insta::assert_snapshot!("no_ranks", picture(&screen, 80, 6));
}
