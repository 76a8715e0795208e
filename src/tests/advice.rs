//! The advice on the smallest screen in common use.

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;

use crate::config::{Config, Environment, Overrides};
use crate::loaders::Names;
use crate::model::{History, ProcessFigures, Rates, Steps};
use crate::ui::{Attach, UiState, View, draw};
use crate::verdict::Verdict;
use crate::verdict::tests::scenarios;

fn screen((width, height): (u16, u16), rates: &Rates, verdict: &Verdict) -> String {
    let environment = Environment::default();
    let config = Config::from_text(Path::new(""), "", &Overrides::default(), &environment);
    let view = View {
        window: Some(rates),
        latest: Some(rates),
        history: &History::new(),
        steps: &Steps::default(),
        files: None,
        verdict: Some(verdict),
        listed: false,
        processes: &ProcessFigures::default(),
        gaps: &[],
        state: &UiState::default(),
        config: &config.unwrap(),
        attach: &Attach::Attached,
        uptime: None,
        command: None,
        past: None,
        room: 0,
        screen: Rect::ZERO,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(&view, frame)).unwrap();
    let screen = terminal.backend().to_string();
    // The backend puts each line in quotation marks.
    let words = screen
        .lines()
        .flat_map(|line| line.trim_matches('"').split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// Checks that the first two pieces of advice are shown to their end, and that a third is shown to its end or not at
/// all.
fn is_whole(rates: &Rates, verdict: &Verdict, about: &str) {
    let shown = screen((80, 24), rates, verdict);
    for (place, advice) in verdict.advice.iter().enumerate().take(3) {
        let label = if place == 0 { "do" } else { "also" };
        let start: String = advice.chars().take(20).collect();
        let whole = shown.contains(&format!("{label} {advice}"));
        let left_out = place == 2 && !shown.contains(&format!("{label} {start}"));
        assert!(whole || left_out, "{about}: {advice}\n{shown}");
    }
}

#[test]
fn the_advice_of_every_scenario_is_whole_on_80_columns() {
    for (path, rates, verdict) in scenarios::all() {
        is_whole(&rates, &verdict, &path.display().to_string());
    }
}

#[test]
fn the_advice_for_every_known_loader_is_whole_on_80_columns() {
    let found = scenarios::all().into_iter();
    let mut found =
        found.filter(|(path, ..)| path.ends_with("named_threads_that_wait_for_data.toml"));
    let (_, rates, verdict) = found.next().unwrap();
    let spdl = Names::known().loader("SPDL").unwrap();
    for known in &Names::known().loaders {
        let mut verdict = verdict.clone();
        for (of_spdl, own) in [(&spdl.more, &known.more), (&spdl.buffer, &known.buffer)] {
            let (of_spdl, own) = (
                of_spdl.as_ref().unwrap(),
                own.as_deref().unwrap_or_default(),
            );
            let mut lines = verdict.advice.iter_mut();
            let line = lines.find(|line| line.contains(of_spdl)).unwrap();
            *line = line.replace(of_spdl, own).trim_end().to_owned();
        }
        is_whole(&rates, &verdict, &known.name);
    }
}
