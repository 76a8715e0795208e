use std::io;
use std::pin::Pin;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use futures_util::{Stream, stream};
use ratatui::backend::{CrosstermBackend, TestBackend};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use tokio::sync::{mpsc, watch};

use super::runtime::{Io, Shown as _};
use super::*;
use crate::action::Action;
use crate::launch::{Ending, LogStorage};
use crate::model::literals::{machine, training};
use crate::sample::literals::worker;
use crate::sample::{JobCandidate, TrainerNow};
use crate::source::sampler::Request;
use crate::ui::{self, JobFigures, Panel};
use crate::units::{Pid, Share};

type Keys = Pin<Box<dyn Stream<Item = io::Result<Input>>>>;

/// The other ends of the loop's channels.
struct Script {
    keys: mpsc::UnboundedSender<Input>,
    samples: mpsc::Sender<Event>,
    signals: mpsc::Sender<Signal>,
    tell: mpsc::Sender<Event>,
}

impl Script {
    fn key(&self, code: KeyCode) {
        let key = Input::Key(KeyEvent::new(code, KeyModifiers::NONE));
        self.keys.send(key).expect("the loop listens");
    }

    fn ctrl(&self, letter: char) {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        self.keys.send(Input::Key(key)).expect("the loop listens");
    }

    fn typed(&self, keys: &str) {
        keys.chars().for_each(|key| self.key(KeyCode::Char(key)));
    }

    async fn tell(&self, event: Event) {
        self.tell.send(event).await.expect("the loop listens");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    async fn sample(&self, sample: Sample) {
        self.samples
            .send(Event::Sample(Box::new(sample)))
            .await
            .expect("the loop listens");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

struct Session {
    app: App,
    terminal: Terminal<TestBackend>,
    /// The effects that the loop performed.
    asked: Vec<Effect>,
}

impl Session {
    fn text(&self) -> String {
        self.terminal.backend().to_string()
    }

    /// Number of frames drawn, including the first.
    fn frames(&mut self) -> usize {
        self.terminal.get_frame().count()
    }
}

fn app() -> App {
    App::new(Config::default(), "a job".to_owned())
}

/// Runs the loop against a script, until either ends.
async fn session(span: Option<Duration>, script: impl AsyncFnOnce(&Script)) -> Session {
    session_of(app(), span, script).await
}

async fn session_of(
    app: App,
    span: Option<Duration>,
    script: impl AsyncFnOnce(&Script),
) -> Session {
    Box::pin(session_on(watch::channel(false).1, app, span, script)).await
}

/// Like [`session_of`], on a terminal that is blocked at times.
async fn session_on(
    blocked: watch::Receiver<bool>,
    app: App,
    span: Option<Duration>,
    script: impl AsyncFnOnce(&Script),
) -> Session {
    let mut session = Session {
        app,
        terminal: Terminal::new(TestBackend::new(120, 40)).expect("a test backend"),
        asked: Vec::new(),
    };
    let (keys, typed) = mpsc::unbounded_channel();
    let (samples, taken) = mpsc::channel(1);
    let (signals, sent) = mpsc::channel(1);
    let (tell, messages) = mpsc::channel(1);
    let ends = Script {
        keys,
        samples,
        signals,
        tell,
    };
    let typed = stream::unfold(typed, async |mut typed| {
        let key = typed.recv().await?;
        Some((Ok(key), typed))
    });
    let asked = std::cell::RefCell::new(Vec::new());
    let io = Io {
        keys: Box::pin(typed) as Keys,
        readings: taken,
        signals: sent,
        messages,
        blocked,
        span,
        perform: |effect| {
            asked.borrow_mut().push(effect);
            Ok(())
        },
    };
    let play = async {
        script(&ends).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Closing the channels ends the loop.
        drop(ends);
    };
    let (ended, ()) = tokio::join!(session.app.run(&mut session.terminal, io), play);
    ended.expect("a test backend takes everything");
    session.asked = asked.into_inner();
    session
}

#[tokio::test(start_paused = true)]
async fn a_job_is_found_watched_and_judged() {
    let mut session = session(None, async |script| {
        script.sample(machine(0.0)).await;
        for at in 1..=21 {
            script.sample(training(f64::from(at))).await;
        }
    })
    .await;
    assert_eq!(session.app.kind(), Some(Kind::DataBound));
    let text = session.text();
    assert!(text.contains("DATA-BOUND"), "{text}");
    assert!(text.contains("train.py"), "{text}");
    // pipetop started 1000 s after boot, and the job at boot: 999 s plus the 21 s since then.
    assert!(text.contains("up 17:00"), "{text}");
    assert_eq!(session.frames(), 1 + 22);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_began_later_than_pipetop_has_an_age_too() {
    let session = session(None, async |script| {
        for at in 8..=10 {
            let mut sample = training(f64::from(at));
            let ours = sample.host.boot_ticks_at_start.unwrap();
            sample.job.as_mut().unwrap().key.start_ticks = ours + 350;
            script.sample(sample).await;
        }
    })
    .await;
    assert!(session.text().contains("up 00:06"), "{}", session.text());
}

#[test]
fn home_and_end_scroll_the_help() {
    let mut app = watched(20);
    app.drawn = Rect::new(0, 0, 80, 24);
    let scroll = |app: &mut App, action| {
        assert_eq!(app.act(action), [Effect::Draw]);
        app.state.scroll
    };
    assert_eq!(scroll(&mut app, Action::Help), 0);
    let end = scroll(&mut app, Action::ToEnd);
    assert!(end > 0);
    assert_eq!(scroll(&mut app, Action::Down), end);
    assert_eq!(scroll(&mut app, Action::Up), end - 1);
    assert_eq!(scroll(&mut app, Action::ToBegin), 0);
    assert!(!app.state.paused, "the job's past is not shown");
}

#[test]
fn pages_of_details_stop_at_their_end() {
    let mut app = watched(20);
    app.drawn = Rect::new(0, 0, 60, 10);
    let scroll = |app: &mut App, action| {
        assert_eq!(app.act(action), [Effect::Draw]);
        app.state.scroll
    };
    for panel in [
        Panel::Verdict,
        Panel::Pipeline,
        Panel::Gpu,
        Panel::Workers,
        Panel::Disk,
    ] {
        app.state.focus_on(panel);
        assert_eq!(scroll(&mut app, Action::Select), 0);
        let end = scroll(&mut app, Action::ToEnd);
        assert!(end > 0 || panel == Panel::Gpu, "{panel:?}");
        assert_eq!(scroll(&mut app, Action::PageDown), end, "{panel:?}");
        assert_eq!(scroll(&mut app, Action::ToBegin), 0);
        app.act(Action::Cancel);
    }
    assert!(!app.state.paused, "the job's past is not shown");
}

/// Returns the sample of [`turning`] with more workers, and the polls of the last second.
fn polled(at: u32) -> Sample {
    let mut sample = turning(at);
    let rank = &mut sample.job.as_mut().expect("it trains").ranks[0];
    let more = (2..40).map(|id| worker(f64::from(at), id));
    rank.loaders[0].workers.extend(more);
    for slot in 0..50 {
        let time = Duration::from_millis(u64::from(1000 * at + 20 * slot));
        rank.polls.record(time, TrainerNow::Waiting, 50);
    }
    sample
}

#[test]
fn panels_stop_at_their_end() {
    let launched = LaunchedCommand::new("python train.py".to_owned(), LogStorage::Memory);
    let mut app = app().launched(launched);
    app.update(Event::Printed(b"a line\n".repeat(100)));
    for at in 0..=20 {
        app.update(Event::Sample(Box::new(polled(at))));
    }
    app.drawn = Rect::new(0, 0, 60, 20);
    for page in [Page::Panels, Page::Detail] {
        for panel in [Panel::Timeline, Panel::History, Panel::Log] {
            (app.state.page, app.state.focus, app.state.scroll) = (page, panel, 0);
            // The output begins with its newest lines: up goes on.
            let (on, back) = match panel {
                Panel::Log => (Action::PageUp, Action::Down),
                _ => (Action::PageDown, Action::Up),
            };
            for _ in 0..50 {
                app.act(on);
            }
            let end = app.state.scroll;
            assert!(end < 100, "{panel:?} on {page:?}: {end}");
            assert_eq!(end > 0, panel != Panel::History, "{panel:?} on {page:?}");
            app.act(back);
            assert_eq!(app.state.scroll, end.saturating_sub(1));
        }
    }
}

#[test]
fn the_output_scrolls_to_its_end_while_there_is_no_job() {
    let launched = LaunchedCommand::new("python train.py".to_owned(), LogStorage::Memory);
    let mut app = app().launched(launched);
    app.update(Event::Printed(b"a line\n".repeat(100)));
    app.drawn = Rect::new(0, 0, 80, 24);
    for _ in 0..50 {
        app.act(Action::PageUp);
    }
    // The output has 22 lines less seven and its box; the last says how many lines are newer.
    assert_eq!(app.state.scroll, 100 - 12);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a test backend");
    let mut newest = |app: &mut App| {
        app.update(Event::Printed(b"the newest\n".to_vec()));
        let drawn = terminal.draw(|frame| ui::draw(&app.view(), frame));
        drawn.expect("a test backend");
        terminal.backend().to_string().contains("the newest")
    };
    assert!(!newest(&mut app), "the oldest lines are shown");
    app.act(Action::ToEnd);
    assert!(newest(&mut app));
    app.act(Action::ToBegin);
    assert_eq!(app.state.scroll, 102 - 12);
    assert!(!newest(&mut app));
}

#[test]
fn lines_that_were_scrolled_to_stay_while_new_ones_arrive() {
    let launched = LaunchedCommand::new("python train.py".to_owned(), LogStorage::Memory);
    let mut app = app().launched(launched);
    let numbered = |numbers: std::ops::Range<u32>| {
        let lines = numbers.map(|number| format!("line {number}.\n"));
        Event::Printed(lines.collect::<String>().into_bytes())
    };
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a test backend");
    app.drawn = Rect::new(0, 0, 80, 24);
    let mut shows = |app: &App, number: u32| {
        let drawn = terminal.draw(|frame| ui::draw(&app.view(), frame));
        drawn.expect("a test backend");
        let line = format!("line {number}.");
        terminal.backend().to_string().contains(&line)
    };
    app.update(numbered(0..100));
    app.act(Action::PageUp);
    assert!(shows(&app, 89) && !shows(&app, 90));
    // More lines than are kept, so that the oldest go.
    for _ in 0..3 {
        app.update(numbered(100..400));
        assert!(shows(&app, 89) && !shows(&app, 90));
    }
    // The newest lines stay in view if they were.
    app.state.scroll = 0;
    app.update(numbered(400..500));
    assert!(shows(&app, 499));
}

#[test]
fn the_cursor_stops_at_the_start_of_the_timeline() {
    let mut app = app();
    for at in 0..=20 {
        app.update(Event::Sample(Box::new(polled(at))));
    }
    app.drawn = Rect::new(0, 0, 120, 40);
    app.state.focus_on(Panel::Timeline);
    for _ in 0..500 {
        app.act(Action::SeekBack);
    }
    let end = app.state.cursor.expect("it is shown");
    assert!(end > 0 && end < 120, "{end}");
    app.act(Action::SeekForward);
    assert_eq!(app.state.cursor, Some(end - 1));
}

#[tokio::test(start_paused = true)]
async fn keys_that_wait_go_into_one_frame() {
    let mut session = session_of(watched(0), None, async |script| {
        script.typed(&format!("/{}", "j".repeat(60)));
        tokio::time::sleep(Duration::from_secs(1)).await;
    })
    .await;
    assert_eq!(session.frames(), 2);
    assert_eq!(session.app.state.filter.text.len(), 60);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_drawn_without_a_change() {
    let mut session = session(None, async |script| {
        tokio::time::sleep(Duration::from_hours(1)).await;
        script.typed("~~~");
    })
    .await;
    assert_eq!(session.frames(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_paused_screen_stays_and_then_catches_up() {
    let mut session = session(None, async |script| {
        for at in 0..3 {
            script.sample(training(f64::from(at))).await;
        }
        script.typed(" ");
        for at in 3..6 {
            script.sample(training(f64::from(at))).await;
        }
        // Moving around on a paused screen shows the figures of that moment.
        script.typed("o");
    })
    .await;
    let text = session.text();
    assert!(text.contains("PAUSED"), "{text}");
    assert!(
        text.contains("last 2.0 s") || text.contains("last 2 s"),
        "{text}"
    );
    // Later samples only change how long ago that was.
    assert_eq!(session.frames(), 1 + 3 + 1 + 3 + 1);
    assert!(text.contains("0:03 ago  00:00:02 UTC"), "{text}");
    session.app.act(Action::Pause);
    assert!(session.app.view().past.is_none());
    let window = session.app.view().window.map(|rates| rates.seconds.round());
    assert_eq!(window, Some(5.0));
}

/// Returns an app that has watched the job of [`turning`] for this many seconds.
fn watched(seconds: u32) -> App {
    let mut app = app();
    for at in 0..=seconds {
        app.update(Event::Sample(Box::new(turning(at))));
    }
    app
}

/// Returns a sample of a job that waits for data at first, but never from the 30th second on.
fn turning(at: u32) -> Sample {
    let mut sample = training(f64::from(at));
    let rank = &mut sample.job.as_mut().expect("it trains").ranks[0];
    if at > 30 {
        let late = u64::from(at - 30) * 100;
        let before = training(30.0).job.expect("it trains").ranks.remove(0);
        let tally = before.main.expect("it is seen");
        let now = crate::sample::MainTally {
            polls: tally.polls + late,
            running: tally.running + late,
            ..tally
        };
        rank.main = Some(now);
        rank.waits = before.waits;
    }
    sample
}

#[test]
fn seeking_back_shows_that_moment_and_loses_no_data() {
    let mut app = watched(60);
    let now = app.kind();
    let share = |app: &App| {
        let view = app.view();
        let job = view.latest.and_then(|rates| rates.job.as_ref());
        job.and_then(|job| job.ranks[0].wait).map(|wait| wait.share)
    };
    assert_eq!(share(&app), Some(crate::units::Share(0.0)));
    for _ in 0..4 {
        assert_eq!(app.act(Action::SeekBack), [Effect::Draw]);
    }
    app.settle(Duration::ZERO);
    let past = app.view().past.expect("the past is shown");
    assert_eq!(
        (past.at.since_start.as_secs(), past.ago.as_secs()),
        (20, 40)
    );
    assert_eq!(past.until.as_secs(), 60);
    assert!(app.view().state.paused);
    let verdict = app.view().verdict.map(|verdict| verdict.kind);
    assert_eq!(verdict, Some(Kind::DataBound));
    assert_ne!(verdict, now);
    assert!(share(&app).is_some_and(|share| share.0 > 0.5));
    // Samples that arrive meanwhile are kept, and only the time back to the shown moment changes.
    for at in 61..=70 {
        assert_eq!(
            app.update(Event::Sample(Box::new(turning(at)))),
            [Effect::Draw]
        );
    }
    let past = app.view().past.expect("the past is shown");
    assert_eq!(
        (past.at.since_start.as_secs(), past.ago.as_secs()),
        (20, 50)
    );
    for (action, at) in [
        (Action::StepBack, 19),
        (Action::StepForward, 20),
        (Action::StepForward, 21),
        (Action::SeekForward, 31),
        (Action::LeapForward, 70),
        (Action::LeapBack, 1),
        (Action::ToBegin, 1),
        (Action::SeekForward, 11),
    ] {
        app.act(action);
        app.settle(Duration::ZERO);
        let past = app.view().past.expect("the past is shown");
        assert_eq!(past.at.since_start.as_secs(), at, "{action:?}");
    }
    assert_eq!(app.view().past.map(|past| past.until.as_secs()), Some(70));
    assert_eq!(app.act(Action::ToEnd), [Effect::Draw]);
    assert!(app.view().past.is_none() && !app.view().state.paused);
    assert_eq!(app.view().history.span(), Some((0.0, 70.0)));
    assert_eq!(app.kind(), now);
    // There is nothing newer than now.
    assert_eq!(app.act(Action::SeekForward), []);
    assert_eq!(app.act(Action::ToEnd), []);
    assert!(!app.view().state.paused);
}

#[test]
fn looking_back_in_the_first_seconds_shows_figures() {
    let mut app = watched(8);
    app.act(Action::SeekBack);
    app.settle(Duration::ZERO);
    let view = app.view();
    assert_eq!(view.past.map(|past| past.at.since_start.as_secs()), Some(1));
    let job = view.latest.and_then(|rates| rates.job.as_ref());
    assert!(job.is_some_and(|job| job.ranks[0].wait.is_some()));
    // There is no earlier moment.
    assert_eq!(app.act(Action::StepBack), []);
}

#[test]
fn an_ended_job_can_be_replayed_from_memory() {
    let mut app = watched(20);
    for at in 21..=40 {
        let mut sample = training(20.0);
        sample.at = training(f64::from(at)).at;
        sample.job.as_mut().expect("it trained").ended = true;
        app.update(Event::Sample(Box::new(sample)));
    }
    assert_eq!(*app.view().attach, Attach::Ended);
    for _ in 0..3 {
        app.act(Action::SeekBack);
    }
    app.settle(Duration::ZERO);
    assert_eq!(*app.view().attach, Attach::Attached);
    let running = |app: &App| {
        app.view()
            .latest
            .and_then(|rates| Some(!rates.job.as_ref()?.ended))
    };
    assert_eq!(running(&app), Some(true));
    // The past can also be shown beside a list of other jobs.
    let mut other = machine(41.0);
    other.candidates = vec![JobCandidate {
        pid: Pid(7),
        command: "python other.py".to_owned(),
        ranks: 1,
        workers: 2,
    }];
    app.update(Event::Sample(Box::new(other)));
    assert_eq!(*app.view().attach, Attach::Attached);
    app.act(Action::Pause);
    assert!(matches!(app.view().attach, Attach::Picker(_)));
}

#[test]
fn zoom_keys_change_what_is_shown_and_stop_at_the_ends() {
    let screen = Rect::new(0, 0, 120, 40);
    let text = |app: &App| {
        app.saved(120, 40).map(|_| ()).and_then(|()| {
            let mut terminal =
                Terminal::new(TestBackend::new(120, 40)).map_err(io::Error::other)?;
            let drawn = terminal.draw(|frame| ui::draw(&app.view(), frame));
            drawn.map_err(io::Error::other)?;
            Ok(terminal.backend().to_string())
        })
    };
    let shows = |app: &App, words: &str| {
        let text = text(app).expect("a test backend");
        assert_eq!(text.matches(words).count(), 2, "{words}: {text}");
    };
    let mut app = watched(200);
    app.drawn = screen;
    shows(&app, "last 98 s ");
    app.act(Action::ZoomOut);
    shows(&app, "last 2 min ");
    app.act(Action::ZoomIn);
    app.act(Action::ZoomIn);
    shows(&app, "last 60 s ");
    while app.act(Action::ZoomIn) == [Effect::Draw] {}
    // The shortest span is as long as the window.
    assert_eq!(app.state.zoom, ui::Zoom::Span(10.0));
    while app.act(Action::ZoomOut) == [Effect::Draw] {}
    shows(&app, "all 3 min ");

    // While the history is shorter than the span, it fills the width, and the title names its length.
    let mut app = watched(20);
    app.drawn = screen;
    shows(&app, "last 20 s ");
    let young = text(&app).expect("a test backend");
    let wait = young.lines().find(|line| line.starts_with("\"│ wait "));
    let filled = wait.map_or(0, |line| line.matches('█').count());
    assert!(filled > 98 / 2, "{young}");
    app.act(Action::ZoomOut);
    shows(&app, "20 s of 2 min ");
    app.act(Action::ZoomIn);
    assert_eq!(app.state.zoom, ui::Zoom::Span(10.0));
}

#[tokio::test(start_paused = true)]
async fn the_marked_job_is_asked_for() {
    let mut several = machine(0.0);
    several.candidates = [7, 8]
        .map(|pid| JobCandidate {
            pid: Pid(pid),
            command: format!("python {pid}.py"),
            ranks: 1,
            workers: 2,
        })
        .to_vec();
    let session = session(None, async move |script| {
        script.sample(several).await;
        script.key(KeyCode::Down);
        script.key(KeyCode::Enter);
    })
    .await;
    assert!(session.text().contains("choose one of 2 jobs"));
    let asked = Effect::Sampler(Request::Attach(Pid(8)));
    assert_eq!(session.asked, [Effect::WatchAll(true), asked]);
}

#[tokio::test(start_paused = true)]
async fn a_chosen_job_can_be_left_for_the_list() {
    let known = JobFigures {
        user: None,
        run: None,
        workers: 2,
        kind: Kind::DataBound,
        cause: None,
        lost: Some(Share(0.41)),
        batches_per_s: None,
        gpus: vec![],
        up: None,
        verdict: None,
    };
    let session = session(None, async move |script| {
        let warming_up = JobFigures {
            kind: Kind::WarmingUp,
            lost: None,
            ..known.clone()
        };
        let send = async |figures| {
            let event = Event::Jobs([(Pid(8), figures)].into());
            script.samples.send(event).await.expect("the loop listens");
        };
        send(known).await;
        script.sample(jobs([7, 8])).await;
        script.key(KeyCode::Down);
        script.key(KeyCode::Enter);
        script.sample(training(1.0)).await;
        // The first Esc closes the help.
        script.typed("?");
        script.key(KeyCode::Esc);
        script.key(KeyCode::Esc);
        // The job is being judged anew. Until there is a verdict, the list keeps the job's old figures.
        send(warming_up).await;
        script.sample(jobs([6, 7, 8])).await;
        // The job that was left is marked.
        script.key(KeyCode::Enter);
    })
    .await;
    let text = session.text();
    assert!(
        text.contains("DATA-BOUND") && text.contains("41 %"),
        "{text}"
    );
    let asked = [
        Effect::WatchAll(true),
        Effect::Sampler(Request::Attach(Pid(8))),
        Effect::WatchAll(false),
        Effect::Sampler(Request::List),
        Effect::WatchAll(true),
        Effect::Sampler(Request::Attach(Pid(8))),
    ];
    assert_eq!(session.asked, asked);
}

#[test]
fn a_job_opens_with_the_verdict_that_the_list_has_on_it() {
    let mut app = app();
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut screen = |app: &App| {
        let draw = |frame: &mut ratatui::Frame<'_>| ui::draw(&app.view(), frame);
        terminal.draw(draw).unwrap();
        terminal.backend().to_string()
    };
    let pid = training(0.0).job.unwrap().key.pid;
    let choose = |app: &mut App| {
        app.update(Event::Sample(Box::new(jobs([pid.0]))));
        app.act(Action::Select);
    };
    // The list has no verdict on the job yet.
    choose(&mut app);
    for at in 0..=20 {
        app.update(Event::Sample(Box::new(training(f64::from(at)))));
        let text = screen(&app);
        assert_eq!(text.contains("WARMING UP"), at < 2, "{at}: {text}");
    }
    app.act(Action::Cancel);
    choose(&mut app);
    assert!(screen(&app).contains("DATA-BOUND"));
    for at in 21..=40 {
        app.update(Event::Sample(Box::new(training(f64::from(at)))));
        let text = screen(&app);
        assert!(text.contains("DATA-BOUND"), "{at}: {text}");
        let listed = text.contains("from the list of jobs");
        assert_eq!(listed, at < 23, "{at}: {text}");
        assert_eq!(app.kind(), Some(Kind::DataBound));
        let saved = app.saved(120, 40).unwrap();
        assert!(saved.report.contains("DATA-BOUND"), "{at}: {saved:?}");
    }
    // A job that follows it does not inherit its verdict.
    app.engine.restart();
    let mut next = training(41.0);
    next.job.as_mut().unwrap().key.pid = Pid(7);
    app.update(Event::Sample(Box::new(next)));
    let text = screen(&app);
    assert!(text.contains("WARMING UP"), "{text}");
}

#[test]
fn keys_do_nothing_unseen_while_there_is_no_job() {
    use Action as A;
    let unseen = |app: &mut App, actions: &[Action]| {
        let before = app.state.clone();
        for action in actions {
            assert_eq!(app.act(*action), [], "{action:?}");
            assert_eq!(app.state, before, "{action:?}");
            assert!(app.past.state().is_none(), "{action:?}");
        }
    };
    let panels = [
        A::Pause,
        A::Tree,
        A::NextPanel,
        A::PreviousPanel,
        A::NextRank,
        A::SortNext,
        A::SortReverse,
        A::ZoomIn,
        A::ZoomOut,
    ];
    let mut app = app();
    app.update(Event::Sample(Box::new(machine(0.0))));
    unseen(&mut app, &panels);
    unseen(&mut app, &[A::Select, A::Filter]);
    app.update(Event::Sample(Box::new(jobs([7, 8]))));
    unseen(&mut app, &panels);
    // The help hides the list.
    app.act(A::Help);
    unseen(&mut app, &[A::Select]);
    app.act(A::Cancel);
    let replay = Some(crate::sample::ReplayPosition::default());
    app.state.replay = replay;
    unseen(&mut app, &[A::Select]);
    app.state.replay = None;
    let chosen = [Effect::Draw, Effect::Sampler(Request::Attach(Pid(7)))];
    assert_eq!(app.act(A::Select), chosen);
}

#[test]
fn the_list_can_be_reached_if_the_chosen_job_is_gone() {
    let mut app = app();
    app.update(Event::Sample(Box::new(jobs([7, 8]))));
    app.act(Action::Select);
    app.update(Event::Sample(Box::new(machine(1.0))));
    let wanted = "process 7".to_owned();
    assert_eq!(app.attach, Attach::LookingForJob { wanted });
    let list = Effect::Sampler(Request::List);
    assert!(app.act(Action::Cancel).contains(&list));
}

fn jobs(pids: impl IntoIterator<Item = i32>) -> Sample {
    let mut several = machine(0.0);
    several.candidates = pids
        .into_iter()
        .map(|pid| JobCandidate {
            pid: Pid(pid),
            command: format!("python {pid}.py"),
            ranks: 1,
            workers: 2,
        })
        .collect();
    several
}

#[tokio::test(start_paused = true)]
async fn jobs_to_choose_from_are_filtered_and_the_mark_stays_with_its_job() {
    let session = session(None, async |script| {
        script.sample(jobs([7, 70, 8, 80])).await;
        script.key(KeyCode::Down);
        script.key(KeyCode::Down);
        script.typed("/8");
        // The mark stays with its job when another job takes its place in the list, and when others start and end.
        script.sample(jobs([5, 8, 80, 81])).await;
        script.key(KeyCode::Enter);
        script.key(KeyCode::Enter);
        script.sample(jobs([5, 8])).await;
        // Without the filter the list is longer again.
        script.key(KeyCode::Esc);
        script.key(KeyCode::Enter);
        // If the marked job ends, the next one in its place is marked.
        script.sample(jobs([5])).await;
        script.key(KeyCode::Enter);
    })
    .await;
    let asked = [8, 8, 5].map(|pid| Effect::Sampler(Request::Attach(Pid(pid))));
    assert_eq!(session.asked[1..], asked);
    assert_eq!(session.app.state.filter, crate::ui::Filter::default());
}

#[tokio::test(start_paused = true)]
async fn the_job_filter_does_not_apply_to_workers() {
    let session = session(None, async |script| {
        script.sample(jobs([7, 8])).await;
        script.typed("/8.py");
        script.key(KeyCode::Enter);
        script.sample(training(1.0)).await;
        script.sample(training(2.0)).await;
    })
    .await;
    assert!(!session.app.state.filter.is_set());
    assert!(
        !session.text().contains("no worker has"),
        "{}",
        session.text()
    );
}

#[tokio::test(start_paused = true)]
async fn processes_are_read_only_while_shown() {
    let session = session(None, async |script| {
        // Without a job there is no tree.
        script.typed("t");
        for at in 0..=2 {
            script.sample(training(f64::from(at))).await;
        }
        script.typed("t");
        // Moves from the job past its rank and its loader to a worker, and opens the worker's threads.
        (0..3).for_each(|_| script.key(KeyCode::Down));
        script.key(KeyCode::Enter);
        script.sample(training(3.0)).await;
        script.key(KeyCode::Enter);
        script.key(KeyCode::Esc);
    })
    .await;
    let wanted = |keys: &[ProcessKey]| Request::Processes(Some(keys.iter().copied().collect()));
    let worker = crate::sample::literals::key(200);
    let asked = [
        wanted(&[]),
        wanted(&[worker]),
        wanted(&[]),
        Request::Processes(None),
    ];
    assert_eq!(session.asked, asked.map(Effect::Sampler));
}

#[tokio::test(start_paused = true)]
async fn opening_the_job_list_stops_reading_processes() {
    let session = session(None, async |script| {
        script.sample(training(1.0)).await;
        script.typed("t");
        script.sample(jobs([7, 8])).await;
        script.typed("/8");
    })
    .await;
    let last = session.asked.last();
    assert_eq!(last, Some(&Effect::Sampler(Request::Processes(None))));
    assert_eq!(session.app.state.filter.text, "8");
    assert!(
        session.text().contains("1 matching `8`"),
        "{}",
        session.text()
    );
}

#[tokio::test(start_paused = true)]
async fn the_interval_steps_and_stops_at_its_ends() {
    let session = session(None, async |script| {
        script.typed("-----");
    })
    .await;
    let asked =
        [500, 200, 100].map(|ms| Effect::Sampler(Request::Interval(Duration::from_millis(ms))));
    assert_eq!(session.asked, asked);
    assert!(session.text().contains("every 0.1 s"), "{}", session.text());
}

#[tokio::test(start_paused = true)]
async fn signals_suspend_and_end() {
    let mut session = session(None, async |script| {
        for signal in [Signal::Suspend, Signal::Resume, Signal::Stop] {
            script.signals.send(signal).await.expect("the loop listens");
        }
    })
    .await;
    let asked = [Effect::SuspendTerminal, Effect::ResumeTerminal];
    assert_eq!(session.asked, asked);
    assert_eq!(session.frames(), 3);
}

#[tokio::test(start_paused = true)]
async fn it_ends_after_the_span() {
    let began = tokio::time::Instant::now();
    session(Some(Duration::from_secs(14)), async |script| {
        script.keys.closed().await;
    })
    .await;
    assert_eq!(began.elapsed().as_secs(), 15);
}

#[test]
fn an_ended_job_keeps_its_verdict() {
    let mut app = app();
    for at in 0..=20 {
        app.update(Event::Sample(Box::new(training(f64::from(at)))));
    }
    let mut last = training(21.0);
    last.job.iter_mut().for_each(|job| job.ended = true);
    app.update(Event::Sample(Box::new(last)));
    assert_eq!(app.attach, Attach::Ended);
    assert_eq!(app.kind(), Some(Kind::DataBound));
}

#[test]
fn a_key_with_alt_that_has_no_action_is_esc_and_the_key() {
    let mut app = app();
    let alt = |app: &mut App, letter| {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::ALT);
        app.update(Event::Input(Input::Key(key)))
    };
    app.state.help = true;
    alt(&mut app, 'p');
    assert!(!app.state.help);
    app.state.help = true;
    assert!(alt(&mut app, 'q').contains(&Effect::Quit));
    // Esc closes the help, and `?` opens it again.
    alt(&mut app, '?');
    assert!(app.state.help);
}

/// A terminal whose other end is gone.
struct HungUp;

impl io::Write for HungUp {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(rustix::io::Errno::IO.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(rustix::io::Errno::IO.into())
    }
}

#[tokio::test]
async fn a_closed_terminal_ends_the_app_without_an_error() {
    let viewport = Viewport::Fixed(Rect::new(0, 0, 80, 24));
    let backend = CrosstermBackend::new(HungUp);
    let mut terminal =
        Terminal::with_options(backend, TerminalOptions { viewport }).expect("a fixed size");
    let (_samples, taken) = mpsc::channel(1);
    let (_signals, sent) = mpsc::channel(1);
    let (_tell, messages) = mpsc::channel(1);
    let io = Io {
        keys: stream::pending(),
        readings: taken,
        signals: sent,
        messages,
        blocked: watch::channel(false).1,
        span: None,
        perform: |_| Ok(()),
    };
    app().run(&mut terminal, io).await.expect("quietly");
}

/// Runs the loop on a launched command.
async fn launched(script: impl AsyncFnOnce(&Script)) -> Session {
    let log = LogStorage::Named("/home/nohup.out".into());
    let launched = LaunchedCommand::new("python train.py".to_owned(), log);
    session_of(app().launched(launched), None, script).await
}

fn printed(text: &str) -> Event {
    Event::Printed(text.as_bytes().to_vec())
}

#[tokio::test(start_paused = true)]
async fn what_a_command_prints_is_shown_before_and_while_it_trains() {
    let session = launched(async |script| {
        script.tell(printed("loading data\n")).await;
    })
    .await;
    let text = session.text();
    assert!(
        text.contains("loading data") && text.contains("a job"),
        "{text}"
    );
    let session = launched(async |script| {
        script.sample(machine(0.0)).await;
        for at in 1..=12 {
            script.sample(training(f64::from(at))).await;
        }
        script.tell(printed("epoch 1\nepoch 2\n")).await;
    })
    .await;
    let text = session.text();
    assert!(
        text.contains(" output ") && text.contains("epoch 2"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_with_its_command_unless_it_trains_on() {
    let ended = || Event::Command(SupervisorEvent::Ended(Ending::Code(3)));
    let session = launched(async |script| {
        script.sample(training(1.0)).await;
        script.tell(ended()).await;
        script.sample(training(2.0)).await;
        assert!(!script.tell.is_closed(), "it trains in the background");
        script.tell(Event::Command(SupervisorEvent::Gone)).await;
        assert!(script.tell.is_closed());
    })
    .await;
    let launched = session.app.launched.as_ref().unwrap();
    assert_eq!(
        (launched.ended(), launched.choice()),
        (Some(Ending::Code(3)), None)
    );
    assert!(
        session.text().contains("exited with code 3"),
        "{}",
        session.text()
    );
}

#[test]
fn the_question_about_the_command_ends_typing() {
    let launched = LaunchedCommand::new("python train.py".to_owned(), LogStorage::Memory);
    let mut app = app().launched(launched);
    app.update(Event::Sample(Box::new(training(1.0))));
    let press = |app: &mut App, letter, modifiers| {
        let key = KeyEvent::new(KeyCode::Char(letter), modifiers);
        app.update(Event::Input(Input::Key(key)))
    };
    press(&mut app, '/', KeyModifiers::NONE);
    press(&mut app, 'w', KeyModifiers::NONE);
    press(&mut app, 'c', KeyModifiers::CONTROL);
    assert_eq!(app.state.filter.text, "w");
    let effects = press(&mut app, 'd', KeyModifiers::NONE);
    assert_eq!(effects, [Effect::Quit]);
}

#[tokio::test(start_paused = true)]
async fn quitting_asks_about_the_command() {
    let session = launched(async |script| {
        script.typed("q");
        script.sample(training(1.0)).await;
        // Pressing `q` again is no answer, and neither is another action.
        script.typed("q+");
        script.sample(training(2.0)).await;
    })
    .await;
    assert!(
        session.text().contains("python train.py is still running"),
        "{}",
        session.text()
    );
    assert!(session.text().contains("/home/nohup.out"));
    assert_eq!(session.asked, []);

    let session = launched(async |script| {
        script.typed("q");
        script.key(KeyCode::Esc);
        script.sample(training(1.0)).await;
    })
    .await;
    assert!(
        !session.text().contains("still running"),
        "{}",
        session.text()
    );

    let session = launched(async |script| {
        script.typed("ed");
        script.sample(training(1.0)).await;
        assert!(!script.tell.is_closed(), "nobody has asked");
        script.typed("qe");
        script.sample(training(2.0)).await;
        assert!(!script.tell.is_closed(), "it has not ended yet");
        script.tell(Event::Command(SupervisorEvent::Gone)).await;
    })
    .await;
    assert_eq!(session.asked, [Effect::EndCommand]);
    assert_eq!(
        session.app.launched.unwrap().choice(),
        Some(QuitChoice::Ending)
    );

    let session = launched(async |script| {
        script.typed("qd");
        script.sample(training(1.0)).await;
        assert!(script.tell.is_closed());
    })
    .await;
    assert_eq!(session.asked, []);
    assert_eq!(
        session.app.launched.unwrap().choice(),
        Some(QuitChoice::Running)
    );
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_ends_the_command_and_then_kills_it() {
    let session = launched(async |script| {
        for _ in 0..4 {
            script.ctrl('c');
        }
        script.sample(training(1.0)).await;
    })
    .await;
    assert_eq!(session.asked, [Effect::EndCommand, Effect::KillCommand]);
    assert_eq!(
        session.app.launched.unwrap().choice(),
        Some(QuitChoice::Ending)
    );
}

#[tokio::test(start_paused = true)]
async fn signals_are_forwarded_to_the_command() {
    let session = launched(async |script| {
        script
            .signals
            .send(Signal::Stop)
            .await
            .expect("the loop listens");
        script.sample(training(1.0)).await;
        assert!(!script.tell.is_closed());
    })
    .await;
    assert!(session.text().contains("stopping"), "{}", session.text());
}

#[tokio::test(start_paused = true)]
async fn pasted_text_is_typed_where_text_is_and_presses_no_key() {
    let pasted = session_of(watched(0), None, async |script| {
        let paste = |text: &str| {
            let input = Input::Paste(text.to_owned());
            script.keys.send(input).expect("the loop listens");
        };
        paste("quite");
        tokio::time::sleep(Duration::from_secs(1)).await;
        script.typed("/");
        paste("q\n1");
    })
    .await;
    assert_eq!(pasted.app.state.filter.text, "q1");
}

#[tokio::test(start_paused = true)]
async fn typed_text_filters_workers_and_triggers_no_action() {
    let typing = session(None, async |script| {
        for at in 0..=12 {
            script.sample(training(f64::from(at))).await;
        }
        // Here `q` is typed as a letter.
        script.typed("/qq");
        script.key(KeyCode::Backspace);
    })
    .await;
    assert!(
        typing.text().contains("filter workers: q_"),
        "{}",
        typing.text()
    );
    assert!(typing.text().contains("no match"));

    let kept = session(None, async |script| {
        for at in 0..=12 {
            script.sample(training(f64::from(at))).await;
        }
        script.typed("/1");
        script.key(KeyCode::Enter);
        // After typing, a letter is an action again.
        script.typed("O");
    })
    .await;
    assert!(kept.text().contains("with `1`"), "{}", kept.text());
    assert!(!kept.text().contains("filter workers: "));

    let cleared = session(None, async |script| {
        for at in 0..=12 {
            script.sample(training(f64::from(at))).await;
        }
        script.typed("/1");
        script.key(KeyCode::Enter);
        script.key(KeyCode::Esc);
        script.typed("/x");
        script.key(KeyCode::Esc);
    })
    .await;
    assert_eq!(cleared.app.state.filter, crate::ui::Filter::default());
    assert!(!cleared.text().contains("with `"), "{}", cleared.text());

    let ended = session_of(watched(0), None, async |script| {
        script.typed("/q");
        let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        script.keys.send(Input::Key(end)).expect("the loop listens");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(script.keys.is_closed(), "what is no letter is an action");
    })
    .await;
    assert_eq!(ended.app.state.filter.text, "q");
}

#[test]
fn sorting_goes_through_the_columns_that_are_shown() {
    let mut app = watched(0);
    let (load, cpu) = (crate::config::Column::Load, crate::config::Column::Cpu);
    app.config.columns = vec![load, cpu];
    let sorts: Vec<_> = (0..4)
        .map(|_| {
            app.act(Action::SortNext);
            app.state.sort
        })
        .collect();
    assert_eq!(sorts, [Some(cpu), Some(load), None, Some(cpu)]);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_terminal_gets_only_the_newest_frame() {
    let (tell, blocked) = watch::channel(false);
    let mut app = app();
    app.state.open_filter();
    let mut session = session_on(blocked, app, None, async |script| {
        script.sample(training(0.0)).await;
        tell.send_replace(true);
        for at in 1..=60 {
            script.sample(training(f64::from(at))).await;
            script.typed("j");
        }
        tell.send_replace(false);
        tokio::time::sleep(Duration::from_secs(1)).await;
    })
    .await;
    // The first frame, that of the first sample, and that of the newest sample.
    assert_eq!(session.frames(), 3);
    assert!(session.text().contains("DATA-BOUND"), "{}", session.text());
    assert_eq!(session.app.state.filter.text.len(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_terminal_does_not_prevent_quitting() {
    let (tell, blocked) = watch::channel(true);
    let mut session = session_on(blocked, app(), None, async |script| {
        script.sample(training(0.0)).await;
        script.typed("q");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(script.keys.is_closed());
    })
    .await;
    assert_eq!(session.frames(), 0);
    drop(tell);
}

#[test]
fn any_key_closes_a_captioned_tour_and_only_some_quit() {
    for (code, leaves) in [
        (KeyCode::Char('x'), false),
        (KeyCode::Char(' '), false),
        (KeyCode::Char('q'), true),
        (KeyCode::Esc, true),
    ] {
        let mut app = app();
        app.caption(Some("1/2  a job; see its queue".to_owned()));
        let said = app
            .view()
            .state
            .notice
            .as_ref()
            .map(|notice| notice.text.clone());
        assert_eq!(said.as_deref(), Some("any key: next   q: end"));
        let key = Event::Input(Input::Key(KeyEvent::from(code)));
        assert_eq!(app.update(key), [Effect::Quit]);
        assert_eq!(app.left, leaves, "{code:?}");
    }
}

#[test]
fn a_key_dismisses_a_notice() {
    let mut app = app();
    let notice = Notice {
        text: "saved".to_owned(),
        trouble: false,
    };
    assert_eq!(app.update(Event::Notice(notice)), [Effect::Draw]);
    assert!(app.view().state.notice.is_some());
    let key = KeyEvent::new(KeyCode::Char('~'), KeyModifiers::NONE);
    assert_eq!(app.update(Event::Input(Input::Key(key))), [Effect::Draw]);
    assert_eq!(app.view().state.notice, None);
    assert_eq!(app.update(Event::Input(Input::Key(key))), []);
}

#[test]
fn the_first_advice_is_copied() {
    let mut app = app();
    let copy = || {
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE);
        Event::Input(Input::Key(key))
    };
    assert_eq!(app.update(copy()), [Effect::Draw]);
    for at in 0..=20 {
        app.update(Event::Sample(Box::new(training(f64::from(at)))));
    }
    let advice = app.view().verdict.expect("data-bound").advice[0].clone();
    assert_eq!(
        app.update(copy()),
        [Effect::Draw, Effect::Copy(advice.clone())]
    );
    let notice = app.view().state.notice.clone().expect("a notice");
    assert!(notice.text.ends_with(&advice), "{}", notice.text);
}

#[tokio::test(start_paused = true)]
async fn the_screen_and_the_report_are_saved() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut app = app();
    app.folder = folder.path().to_owned();
    for at in 0..=20 {
        app.update(Event::Sample(Box::new(training(f64::from(at)))));
    }
    let saved = app.saved(80, 24).expect("a test backend");
    let (tell, mut messages) = mpsc::channel(1);
    save::write(Ok(saved), app.folder.clone(), tell);
    let Some(Event::Notice(notice)) = messages.recv().await else {
        panic!("no notice");
    };
    assert!(!notice.trouble, "{}", notice.text);
    let mut files: Vec<_> = std::fs::read_dir(folder.path())
        .expect("ours")
        .map(|entry| entry.expect("ours").path())
        .collect();
    files.sort();
    let texts: Vec<String> = files
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("UTF-8"))
        .collect();
    assert!(texts[0].starts_with("# DATA-BOUND\n"), "{}", texts[0]);
    assert!(texts[1].contains(">DATA-BOUND</text>"), "{}", texts[1]);
}

#[tokio::test(start_paused = true)]
async fn a_click_gives_a_panel_the_keys_and_the_wheel_scrolls_it() {
    use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let mut session = session(None, async |script| {
        for at in 0..=12 {
            script.sample(training(f64::from(at))).await;
        }
    })
    .await;
    let mouse = |app: &mut App, kind, (column, row)| {
        app.update(Event::Input(Input::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        })))
    };
    let text = session.text();
    let below = |name: &str| {
        let row = text.lines().position(|line| line.contains(name));
        u16::try_from(row.expect("it is shown")).expect("few") + 1
    };
    let (on_disk, on_workers) = ((100, below(" disk ")), (5, below("workers ─")));
    let click = MouseEventKind::Down(MouseButton::Left);
    let app = &mut session.app;
    assert_eq!(mouse(app, click, on_disk), [Effect::Draw]);
    assert_eq!(app.state.focus, Panel::Disk);
    assert_eq!(mouse(app, click, on_disk), []);
    assert_eq!(mouse(app, MouseEventKind::Moved, (0, 0)), []);
    // The wheel moves the mark of the workers.
    assert_eq!(
        mouse(app, MouseEventKind::ScrollDown, on_workers),
        [Effect::Draw]
    );
    assert_eq!(app.state.focus, Panel::Workers);
    assert_eq!(app.state.worker, Some((7, 1)));
    // The verdict's panel begins below the header, which is not a panel.
    assert_eq!(
        mouse(app, MouseEventKind::ScrollDown, (5, 2)),
        [Effect::Draw]
    );
    assert_eq!(app.state.focus, Panel::Verdict);
    assert_eq!(mouse(app, click, (5, 0)), []);
    assert_eq!(mouse(app, click, (5000, 5000)), []);
}

#[test]
fn worker_files_are_requested_while_its_page_is_open() {
    let mut app = app();
    for at in 0..=2 {
        app.update(Event::Sample(Box::new(training(f64::from(at)))));
    }
    let key = |app: &mut App, code| {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        app.update(Event::Input(Input::Key(key)))
    };
    let workers = training(2.0).job.expect("a job").ranks[0].loaders[0].clone();
    let asked = |place: usize| {
        let key = workers.workers[place].key;
        [Effect::Draw, Effect::Sampler(Request::Files(Some(key)))]
    };
    assert_eq!(key(&mut app, KeyCode::Enter), asked(0));
    // The request is sent once, not with each frame.
    let next = Event::Sample(Box::new(training(3.0)));
    assert_eq!(app.update(next), [Effect::Draw]);
    assert_eq!(key(&mut app, KeyCode::Down), asked(1));
    assert_eq!(
        key(&mut app, KeyCode::Tab),
        [Effect::Draw, Effect::Sampler(Request::Files(None))]
    );
    assert_eq!(key(&mut app, KeyCode::Esc), [Effect::Draw]);
}
