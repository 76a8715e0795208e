use std::ffi::OsStr;
use std::io::IoSlice;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::sync::mpsc;

use nix::sys::socket::{ControlMessage, sendmsg};

use super::*;
use crate::probe::{ProbeWriter, Step};

fn own() -> Pid {
    Pid(std::process::id().cast_signed())
}

/// Waits until `condition` holds; fails after five minutes.
fn until(mut condition: impl FnMut() -> bool) {
    let (_keep, never) = mpsc::channel::<()>();
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
    panic!("it did not come to pass");
}

/// A step of 1 ms after a wait of 2 ms, `number` times 3 ms after `start`.
fn step(start: u64, number: u64) -> Step {
    let from = start + number * 3_000_000;
    Step {
        number,
        wait_from: from,
        wait_to: from + 2_000_000,
        step_to: from + 3_000_000,
        ready: Some(0),
        copy: Some(100_000),
        busy: Some(900_000),
        idle: Some(300_000),
    }
}

fn connect(listener: &Listener) -> ProbeWriter {
    ProbeWriter::connect(OsStr::new(listener.address()), Some(8)).unwrap()
}

fn raw(listener: &Listener) -> UnixDatagram {
    let socket = UnixDatagram::unbound().unwrap();
    let name = listener.address().strip_prefix('@').unwrap();
    let address = SocketAddr::from_abstract_name(name).unwrap();
    socket.connect_addr(&address).unwrap();
    socket
}

#[test]
fn reports_of_a_writer_arrive_complete() {
    let listener = Listener::bind().unwrap();
    let mut writer = connect(&listener);
    let start = probe::now() - 1_000_000_000;
    let steps: Vec<Step> = (0..100).map(|number| step(start, number)).collect();
    writer.device("simulated");
    for step in &steps {
        writer.step(step);
    }
    writer.notice("no GPU here");
    let mut heard = Vec::new();
    let mut last = None;
    until(|| {
        writer.flush();
        if let Some(report) = listener.take(own()) {
            heard.extend(report.steps.iter().copied());
            last = Some(report);
        }
        heard.len() == steps.len()
    });
    assert_eq!(heard, steps);
    assert_eq!(listener.writers(), [own()]);
    let report = last.unwrap();
    assert_eq!(report.device.as_deref(), Some("simulated"));
    assert_eq!(report.notice.as_deref(), Some("no GPU here"));
    let totals = report.totals;
    assert_eq!((totals.steps, totals.lost, report.dropped), (100, 0, 0));
    assert_eq!(totals.waited, Duration::from_millis(200));
    assert_eq!(totals.stepped, Duration::from_millis(100));
    assert_eq!(totals.busy.unwrap().took, Duration::from_millis(90));
    assert_eq!(totals.copy.unwrap().of, Duration::from_millis(300));
    let queue = report.queue.unwrap();
    assert_eq!(
        (queue.polls, queue.empty, queue.capacity),
        (100, 100, Some(8))
    );
}

#[test]
fn the_sender_is_identified_by_the_kernel() {
    let listener = Listener::bind().unwrap();
    let now = probe::now();
    let text = format!("pipetop-probe/1 pid=1 lost=0\n{}", step(now - 3_000_000, 0));
    raw(&listener).send(text.as_bytes()).unwrap();
    until(|| listener.writers() == [own()]);
    assert_eq!(listener.take(Pid(1)), None);
}

#[test]
fn malformed_messages_are_skipped_and_counted() {
    let listener = Listener::bind().unwrap();
    let socket = raw(&listener);
    let mut cut = b"pipetop-probe/1 pid=1 lost=0\n".to_vec();
    cut.resize(LARGEST + 1, b'x');
    for garbage in [
        &b"hello"[..],
        b"",
        b"\xff\xff",
        b"pipetop-probe/9 pid=1",
        &cut,
    ] {
        socket.send(garbage).unwrap();
    }
    until(|| listener.refused() == 5);
    assert_eq!(listener.writers(), []);
    connect(&listener).notice("still here");
    until(|| listener.take(own()).is_some());
}

#[test]
fn attached_descriptors_are_rejected_and_the_listener_continues() {
    let listener = Listener::bind().unwrap();
    let socket = raw(&listener);
    let descriptors = [socket.as_raw_fd(); 8];
    let text = format!("pipetop-probe/1 pid=1 lost=0\n{}", step(0, 0));
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(text.as_bytes())],
        &[ControlMessage::ScmRights(&descriptors)],
        MsgFlags::empty(),
        None,
    )
    .unwrap();
    until(|| listener.refused() == 1);
    assert_eq!((listener.writers(), listener.broken()), (vec![], None));
    connect(&listener).notice("still here");
    until(|| listener.take(own()).is_some());
}

#[test]
fn a_listener_that_cannot_receive_reports_it() {
    let no_socket = std::fs::File::open("/dev/null").unwrap();
    let accounts = Mutex::new(Accounts::default());
    let socket = UnixDatagram::from(OwnedFd::from(no_socket));
    listen(&socket, &accounts, &AtomicBool::new(false));
    assert_eq!(lock(&accounts).broken, Some(Errno::ENOTSOCK));
}

#[test]
fn a_writer_never_waits_and_what_is_lost_is_known_on_both_sides() {
    const STEPS: u64 = 20_000;
    let listener = Listener::bind().unwrap();
    let mut writer = connect(&listener);
    let start = probe::now() - 100_000_000_000;
    {
        // While this lock is held, the listening thread waits for it, and the socket is not drained.
        let _held = lock(&listener.accounts);
        for number in 0..STEPS {
            writer.step(&step(start, number));
        }
    }
    until(|| {
        writer.flush();
        writer.step(&step(start, STEPS));
        writer.flush();
        listener
            .take(own())
            .is_some_and(|report| report.last_number == Some(STEPS))
    });
    let totals = listener.take(own()).unwrap().totals;
    assert!(totals.lost > 0, "{totals:?}");
    assert_eq!(totals.lost, writer.lost());
}

#[test]
fn the_listener_ends_while_it_waits_and_its_address_with_it() {
    let listener = Listener::bind().unwrap();
    let address = listener.address().to_owned();
    let mut writer = connect(&listener);
    drop(listener);
    assert!(ProbeWriter::connect(OsStr::new(&address), None).is_none());
    // A process that still writes is not affected.
    writer.notice("anyone?");
    writer.step(&step(0, 0));
}

#[test]
fn two_listeners_have_two_names() {
    let (one, other) = (Listener::bind().unwrap(), Listener::bind().unwrap());
    assert_ne!(one.address(), other.address());
}

#[test]
fn times_are_placed_in_the_sources_time() {
    let clock = Clock::start();
    let from = probe::now();
    let timeline = ProbeClock::new(clock);
    // Both clocks are read while the timeline is made, however long that takes. This is the largest possible error.
    let off = Duration::from_nanos(probe::now() - from);
    let before = clock.since_start();
    let placed = timeline.at(Duration::from_nanos(probe::now()));
    assert!(placed + off >= before);
    assert!(placed <= clock.since_start() + off);
    assert_eq!(timeline.at(Duration::ZERO), Duration::ZERO);
}
