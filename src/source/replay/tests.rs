use std::time::Duration;

use super::*;
use crate::record::Ring;
use crate::sample::literals::training;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns samples one second apart.
fn samples(count: u32) -> Samples {
    let mut ring = Ring::new(usize::MAX);
    for at in 0..count {
        ring.push(&training(f64::from(at))).unwrap();
    }
    std::mem::take(ring.samples())
}

fn player(count: u32) -> Player {
    let mut player = Player::new(samples(count), 0..=u64::from(count) - 1, None);
    let begin = play(&mut player, Duration::ZERO);
    assert_eq!(seconds(&begin), [0]);
    player
}

fn play(player: &mut Player, real: Duration) -> ReplayUpdate {
    player.advance_to(real).expect("something is due")
}

fn run_commands(player: &mut Player, commands: &[ReplayCommand], real: Duration) -> ReplayUpdate {
    for command in commands {
        player.command(*command);
    }
    play(player, real)
}

fn seconds(played: &ReplayUpdate) -> Vec<u64> {
    let times = played.samples.iter();
    times
        .map(|sample| sample.at.since_start.as_secs())
        .collect()
}

#[test]
fn samples_are_replayed_at_their_times() {
    let mut player = player(20);
    assert_eq!(player.due(), Some(secs(1)));
    assert_eq!(seconds(&play(&mut player, secs(1))), [1]);
    assert_eq!(seconds(&play(&mut player, secs(3))), [2, 3]);
    let faster = run_commands(&mut player, &[ReplayCommand::Faster], secs(3));
    assert!(faster.samples.is_empty() && !faster.restart);
    assert!((faster.place.speed - 2.0).abs() < 1e-9);
    assert_eq!(seconds(&play(&mut player, secs(4))), [4, 5]);
    let paused = run_commands(&mut player, &[ReplayCommand::Pause], secs(4));
    assert!(paused.place.paused);
    assert_eq!(
        (player.due(), player.advance_to(secs(99)).is_none()),
        (None, true)
    );
    run_commands(&mut player, &[ReplayCommand::Pause], secs(100));
    assert_eq!(seconds(&play(&mut player, secs(101))), [6, 7]);
    let end = run_commands(&mut player, &[ReplayCommand::Seek(Seek::End)], secs(101));
    assert!(end.restart && end.place.ended);
    assert_eq!(seconds(&end).last(), Some(&19));
    assert_eq!(player.due(), None);
    let back = run_commands(
        &mut player,
        &[ReplayCommand::Seek(Seek::Seconds(-10))],
        secs(102),
    );
    assert_eq!(seconds(&back).last(), Some(&9));
    assert!(!back.place.paused && !back.place.ended);
    assert_eq!((back.place.at, back.place.of), (secs(9), secs(19)));
    assert_eq!(player.due(), Some(secs(102) + Duration::from_millis(500)));
}

#[test]
fn steps_go_one_by_one_and_held_keys_make_one_jump() {
    let mut player = player(200);
    let step = run_commands(&mut player, &[ReplayCommand::Seek(Seek::Next)], secs(0));
    assert!(!step.restart && step.place.paused);
    assert_eq!(seconds(&step), [1]);
    let far = run_commands(
        &mut player,
        &[
            ReplayCommand::Seek(Seek::Seconds(10)),
            ReplayCommand::Seek(Seek::Seconds(10)),
            ReplayCommand::Seek(Seek::Previous),
        ],
        secs(0),
    );
    assert_eq!(seconds(&far).last(), Some(&20));
    assert_eq!(seconds(&far), (0..=20).collect::<Vec<_>>());
    let begin = run_commands(
        &mut player,
        &[ReplayCommand::Seek(Seek::Seconds(-600))],
        secs(0),
    );
    assert_eq!(seconds(&begin), [0]);
    let before = run_commands(&mut player, &[ReplayCommand::Seek(Seek::Previous)], secs(0));
    assert!(before.samples.is_empty());
}

#[test]
fn a_seek_that_is_shorter_than_the_interval_goes_to_the_next_sample() {
    let mut player = player(30);
    let on = run_commands(
        &mut player,
        &[ReplayCommand::Seek(Seek::Seconds(0))],
        secs(0),
    );
    assert!(on.samples.is_empty());
    let on = run_commands(
        &mut player,
        &[ReplayCommand::Seek(Seek::Seconds(1))],
        secs(0),
    );
    assert_eq!(seconds(&on), [1]);
    let mut recording = samples(30);
    let spot = |tenths: u64| (tenths / 10, Duration::from_millis(tenths * 100));
    let seek = |here, seconds| {
        let ends = (spot(0), spot(290));
        let target = Seek::Seconds(seconds).target(here, &mut recording, ends);
        target.unwrap()
    };
    let found = [
        (spot(24), 5),
        (spot(5), -1),
        (spot(280), 60),
        (spot(290), 1),
    ]
    .map({
        let mut seek = seek;
        move |(here, seconds)| seek(here, seconds)
    });
    assert_eq!(found, [spot(74), spot(0), spot(290), spot(290)]);
}

#[test]
fn the_past_of_a_moment_is_whole_near_it_and_thin_before() {
    let mut recording = samples(64 * 12);
    let (samples, sparse) = past(&mut recording, 0, 700).unwrap();
    let times: Vec<u64> = samples
        .iter()
        .map(|sample| sample.at.since_start.as_secs())
        .collect();
    assert!(times.is_sorted());
    assert_eq!(times[sparse..], (580..=700).collect::<Vec<_>>());
    // One, two, four and eight groups before, and the very first sample.
    assert_eq!(times[..sparse], [0, 128, 384, 512, 576]);
    let (samples, sparse) = past(&mut recording, 600, 700).unwrap();
    assert_eq!((samples.len(), sparse), (101, 0));
}

#[test]
fn a_window_begins_and_ends_within_its_times() {
    let mut recording = samples(30);
    let tenths = |tenths: u64| Some(Duration::from_millis(tenths * 100));
    for (from, to, numbers) in [
        (None, None, 0..=29),
        (tenths(100), tenths(200), 10..=20),
        (tenths(105), tenths(204), 11..=20),
        (tenths(290), tenths(900), 29..=29),
    ] {
        let late = Duration::ZERO;
        let window = super::window(&mut recording, from, to, late);
        assert_eq!(window.unwrap(), numbers);
    }
    let late = Duration::from_millis(100);
    for (to, end) in [(tenths(198), 19), (tenths(199), 20), (tenths(200), 20)] {
        let window = super::window(&mut recording, None, to, late);
        assert_eq!(window.unwrap(), 0..=end);
    }
}
