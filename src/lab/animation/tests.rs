use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::backend::TestBackend;
use ratatui::style::Modifier;

use super::*;
use crate::config::{Environment, Overrides};
use crate::lab::experiments::simulate::DeliveryOrder;

/// Loaders that are too slow, after so many seconds of a run.
fn starved(seconds: u32, config: Config) -> Animation {
    let settings = SimulationSettings {
        load_jitter: 0.05,
        order: DeliveryOrder::AnyOrder,
        clock: Some(Duration::from_millis(100)),
        ..SimulationSettings::default()
    };
    after(seconds, &settings, config)
}

/// In the second round of batches: one is in its step, others are ready.
fn bursting(config: Config) -> Animation {
    let mut animation = starved(4, config);
    animation.pass(Duration::from_millis(200));
    animation
}

fn after(seconds: u32, settings: &SimulationSettings, config: Config) -> Animation {
    let mut animation = Animation::new(settings, 0, config);
    for _ in 0..seconds * 4 {
        animation.pass(LATEST);
    }
    animation
}

fn plain() -> Config {
    let environment = Environment {
        no_color: true,
        ..Environment::default()
    };
    Config::from_text(Path::new(""), "", &Overrides::default(), &environment).unwrap()
}

fn screen(animation: &Animation, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(&animation.view(), frame))
        .unwrap();
    terminal
}

#[test]
fn it_is_drawn_in_every_size() {
    let animation = bursting(Config::default());
    for (width, height) in [(80, 24), (120, 40), (40, 10)] {
        let terminal = screen(&animation, width, height);
        insta::assert_snapshot!(format!("starved_{width}x{height}"), terminal.backend());
    }
}

#[test]
fn ascii_without_colours_keeps_its_meaning() {
    let animation = bursting(plain());
    let terminal = screen(&animation, 80, 24);
    let text = terminal.backend().to_string();
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!("starved_ascii_80x24", terminal.backend());
    let coloured = |cell: &ratatui::buffer::Cell| cell.fg != ratatui::style::Color::Reset;
    assert!(!terminal.backend().buffer().content().iter().any(coloured));
}

#[test]
fn a_batch_wears_the_hue_of_its_loader() {
    let animation = bursting(Config::default());
    let ready: Vec<u32> = animation.simulation.ready().collect();
    assert!(!ready.is_empty());
    let terminal = screen(&animation, 80, 24);
    let buffer = terminal.backend().buffer();
    let line = |y: u16| -> String { (0..80).map(|x| buffer[(x, y)].symbol()).collect() };
    let queue = (0..24).find(|y| line(*y).contains("data queue")).unwrap() + 1;
    for (place, worker) in (0_u16..).zip(&ready) {
        let cell = &buffer[(2 + 4 * place, queue)];
        assert_eq!(cell.symbol(), worker.to_string());
        assert!(cell.modifier.contains(Modifier::REVERSED));
        let loader = &buffer[(2, 2 + u16::try_from(*worker).unwrap())];
        assert_eq!((cell.symbol(), cell.fg), (loader.symbol(), loader.fg));
    }
}

#[test]
fn the_end_of_the_time_is_the_last_picture() {
    let mut animation = starved(31, Config::default());
    assert!(animation.simulation.is_over() && !animation.moves());
    let last = screen(&animation, 80, 24).backend().to_string();
    assert!(
        last.contains("ENDED") && last.contains("98 batches"),
        "{last}"
    );
    animation.pass(LATEST);
    assert_eq!(screen(&animation, 80, 24).backend().to_string(), last);
}

fn key(code: char) -> Input {
    Input::Key(KeyEvent::new(KeyCode::Char(code), KeyModifiers::NONE))
}

#[test]
fn keys_pause_it_and_set_its_speed() {
    let mut animation = starved(1, Config::default());
    assert_eq!(animation.update(&key(' ')), Some(Effect::Draw));
    assert!(!animation.moves());
    assert!(
        screen(&animation, 80, 24)
            .backend()
            .to_string()
            .contains("PAUSED")
    );
    animation.update(&key(' '));
    assert!(animation.moves());
    animation.update(&key('+'));
    animation.pass(Duration::from_millis(100));
    assert_eq!(animation.simulation.now(), Duration::from_millis(1200));
    for _ in 0..20 {
        animation.update(&key('-'));
    }
    animation.pass(Duration::from_millis(100));
    assert_eq!(animation.simulation.now(), Duration::from_millis(1205));
    assert_eq!(animation.update(&key('x')), None);
    assert_eq!(animation.update(&key('q')), Some(Effect::Quit));
    // A process that was stopped for hours goes on where it was.
    animation.pass(Duration::from_hours(5));
    assert!(animation.simulation.now() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn the_loop_draws_as_time_passes_until_it_is_told_to_end() {
    let mut animation = starved(0, Config::default());
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let (send, signals) = mpsc::channel(1);
    let keys = futures_util::stream::pending();
    let script = async {
        tokio::time::sleep(Duration::from_millis(2980)).await;
        send.send(Signal::Stop).await.unwrap();
    };
    let run = animation.run(
        &mut terminal,
        keys,
        signals,
        watch::channel(false).1,
        |_| Ok(()),
    );
    let (ended, ()) = tokio::join!(run, script);
    ended.unwrap();
    let now = animation.simulation.now();
    assert_eq!(now, Duration::from_millis(2950));
    assert!(terminal.backend().to_string().contains("of 30 s"));
    assert_eq!(terminal.get_frame().count(), 60);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn every_size_is_drawn(
        width in 0..=250_u16, height in 0..=80_u16, workers in 1..=1024_u32, prefetch_factor in 1..=40_u32,
        ascii in any::<bool>(), seconds in 0..4_u32, step in 1_u64..400,
    ) {
        let settings = SimulationSettings {
            workers,
            prefetch_factor,
            load: Duration::from_millis(900),
            load_jitter: 0.5,
            step: Duration::from_millis(step),
            ..SimulationSettings::default()
        };
        let config = if ascii { plain() } else { Config::default() };
        let animation = after(seconds, &settings, config);
        let terminal = screen(&animation, width, height);
        if width == 0 {
            // What the test backend makes a text of has columns.
            return Ok(());
        }
        let text = terminal.backend().to_string();
        prop_assert!(!ascii || text.is_ascii());
        if width >= 40 && height >= 10 {
            prop_assert!(text.contains("batches") && text.contains("stalled"), "{}", text);
            prop_assert!(text.contains("quit"), "{}", text);
        }
    }
}
