//! How soon pipetop shows its first frame, and how soon it shows that a job has ended.

use std::process::{Command, Stdio};

use support::machine::{self, Share, note};
use support::measured::median_of;
use support::session::Session;
use support::stand_in::StandIn;
use support::waiting::{ended, now};

#[test]
fn the_first_frame_comes_at_once() {
    let _machine = machine::Place::take(Share::Whole);
    let job = StandIn::start(4);
    let pid = job.pid().to_string();
    for arguments in [vec![], vec![pid.as_str()]] {
        let seconds = median_of(5, || {
            let session = Session::start(&arguments);
            session.until("a frame", |text| text.contains("pipetop"));
            let first = session.time_to("pipetop").expect("it was written");
            first.as_secs_f64()
        });
        note(&format!("{arguments:?}: first frame after {seconds:.3} s"));
        // 100 ms are promised for a release build on an otherwise idle machine.
        let most = if cfg!(debug_assertions) { 0.5 } else { 0.1 };
        assert!(seconds < most, "{seconds}");
    }
}

/// Seconds: two intervals of 200 ms, and as much again for other load of the machine.
const SOON: f64 = 0.8;

#[test]
fn lines_say_the_end_of_a_job_within_two_intervals() {
    let _machine = machine::Place::take(Share::Whole);
    let seconds = median_of(3, || {
        let mut job = StandIn::start(2);
        let mut lines = Command::new(support::pipetop())
            .args([&job.pid().to_string(), "--interval", "200ms"])
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = lines.stdout.take().expect("piped");
        let mut out = std::io::BufRead::lines(std::io::BufReader::new(out));
        for _ in 0..3 {
            out.next();
        }
        job.end();
        let end = now();
        let said = out.any(|line| line.is_ok_and(|line| line.contains("has ended")));
        let after = end.elapsed();
        lines.kill().expect("it runs");
        ended(&mut lines);
        assert!(said, "the end is said");
        note(&format!("a line said the end after {after:?}"));
        after.as_secs_f64()
    });
    assert!(seconds < SOON, "{seconds}");
}

#[test]
fn the_screen_says_the_end_of_a_job_within_two_intervals() {
    let _machine = machine::Place::take(Share::Whole);
    let seconds = median_of(3, || {
        let mut job = StandIn::start(2);
        let pid = job.pid().to_string();
        let session = Session::start(&[&pid, "--interval", "200ms"]);
        session.shows("the job", |screen| screen.contains("WARMING UP"));
        job.end();
        let end = now();
        session.shows("the end", |screen| screen.contains("ended"));
        let after = end.elapsed();
        note(&format!("the screen said the end after {after:?}"));
        after.as_secs_f64()
    });
    assert!(seconds < SOON, "{seconds}");
}
