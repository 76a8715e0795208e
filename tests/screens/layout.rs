//! The layout is valid for every size and any content.

use pipetop::testing::ui::layout::{SizeHints, regions};
use pipetop::testing::ui::{Page, Panel, draw};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;
use support::scene::{Pace, scene};

fn panel() -> impl Strategy<Value = Panel> {
    prop::sample::select(&Panel::ALL[..])
}

/// Panels that are shown even if they are empty.
const ALWAYS: [Panel; 6] = [
    Panel::Verdict,
    Panel::Pipeline,
    Panel::Gpu,
    Panel::Workers,
    Panel::Disk,
    Panel::History,
];

/// The number of lines that each panel could fill: always few, or up to many.
fn any_lines() -> impl Strategy<Value = [u16; Panel::ALL.len()]> {
    let lines = prop_oneof![0..=12_u16, 0..=300_u16].boxed();
    Panel::ALL.map(|_| lines.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn regions_lie_inside_and_apart(
        width in 0..=250_u16, height in 0..=80_u16, x in 0..3_u16, y in 0..3_u16,
        lines in any_lines(), more in 0..=3_u16, focus in panel(), relevant in prop::option::of(panel()),
    ) {
        let area = Rect { x, y, width, height };
        let of = |panel| lines[panel as usize];
        let gpus = of(Panel::Gpu);
        let wants = SizeHints {
            lines, verdict_tall: of(Panel::Verdict) + 2, loaders: more, gpus, gpus_open: gpus + 9, gpus_in_full: gpus * 8, focus, relevant,
        };
        let regions = regions(area, &wants);
        let panels = Panel::ALL.map(|panel| regions.panel(panel));
        let all = [regions.header, regions.footer].into_iter().chain(panels);
        let drawn: Vec<Rect> = all.filter(|region| !region.is_empty()).collect();
        for (place, region) in drawn.iter().enumerate() {
            prop_assert_eq!(area.intersection(*region), *region, "outside of {:?}", area);
            for other in &drawn[place + 1..] {
                prop_assert!(!region.intersects(*other), "{:?} over {:?}", region, other);
            }
        }
        prop_assert_eq!(regions.panel(Panel::Verdict).is_empty(), area.is_empty());
        if width >= 40 && height >= 10 {
            prop_assert!(!regions.header.is_empty() && !regions.footer.is_empty());
            for panel in Panel::ALL {
                let shown = !regions.panel(panel).is_empty();
                let fits = panel != Panel::Timeline || focus == panel || (width >= 100 && height >= 34);
                let wanted = ALWAYS.contains(&panel) || of(panel) > 0 && fits;
                // Any other panel may be left out of a low screen.
                let further = !ALWAYS.contains(&panel) && panel != Panel::Timeline && panel != Panel::Log;
                let may_go = further && height < 20 && focus != panel;
                prop_assert!(shown == wanted || may_go && !shown, "{:?} at {}x{}", panel, width, height);
            }
        } else if !area.is_empty() {
            prop_assert_eq!(drawn, [Rect { x, y, width, height: 1 }]);
        }
    }
}

#[test]
fn no_size_has_an_empty_band_above_the_footer() {
    let wants = SizeHints {
        lines: [1; Panel::ALL.len()],
        ..SizeHints::default()
    };
    for (width, height) in [40, 99, 100, 250]
        .into_iter()
        .flat_map(|width| (10..80).map(move |height| (width, height)))
    {
        let regions = regions(Rect::new(0, 0, width, height), &wants);
        let bottoms = Panel::ALL.map(|panel| regions.panel(panel).bottom());
        let lowest = bottoms.into_iter().max();
        assert_eq!(lowest, Some(regions.footer.y), "{width}x{height}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(120) })]

    #[test]
    fn every_size_is_drawn(
        width in 0..=250_u16, height in 0..=80_u16, gpus in 0..=16_u32, workers in 0..=256_u32,
        ranks in 1..=8_u32, focus in panel(), scroll in 0..300_usize, help in prop::bool::weighted(0.1), details in prop::bool::ANY,
        polled in prop::bool::ANY,
    ) {
        let pace = Pace { load_ms: 400.0, step_ms: 30.0, workers };
        let mut scene = scene(pace, gpus, ranks);
        scene.verdict = support::scene::starved().verdict;
        if polled {
            support::scene::polled(&mut scene, workers, &[7]);
        }
        scene.state.focus = focus;
        scene.state.scroll = scroll;
        scene.state.help = help;
        scene.state.page = if details { Page::Detail } else { Page::Panels };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
        terminal.draw(|frame| draw(&scene.view(), frame)).expect("a test backend");
        if width >= 10 && height >= 1 && !help {
            let text = terminal.backend().to_string();
            prop_assert!(text.contains("DATA-BOUND"), "no verdict at {}x{}", width, height);
            if width < 40 || height < 10 {
                let rest = text.lines().skip(1);
                let empty = |line: &str| line.trim_matches('"').trim().is_empty();
                prop_assert!(rest.into_iter().all(empty), "more than a line at {}x{}", width, height);
            }
        }
    }
}

#[test]
fn the_smallest_terminals_are_drawn() {
    let scene = support::scene::starved();
    for (width, height) in [(0, 0), (1, 1), (1, 80), (250, 1), (10, 3), (500, 150)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
        terminal
            .draw(|frame| draw(&scene.view(), frame))
            .expect("a test backend");
    }
}

#[test]
fn names_of_1024_characters_leave_the_verdict_in_its_place() {
    let mut scene = support::scene::starved();
    let job = scene.latest.as_mut().and_then(|rates| rates.job.as_mut());
    job.expect("the scene has a job").command = "n".repeat(1024);
    for (width, height) in [(1, 1), (40, 10), (80, 24), (250, 60)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
        terminal
            .draw(|frame| draw(&scene.view(), frame))
            .expect("a test backend");
        let text = terminal.backend().to_string();
        assert!(width == 1 || text.contains("DATA-BOUND"), "{text}");
    }
}
