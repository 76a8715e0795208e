use std::time::Duration;

use tempfile::TempDir;

use super::player::Player;
use super::*;
use crate::record::{Options, Writer};
use crate::sample::literals::training;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A recording of a sample a second.
fn recording(count: u32) -> (TempDir, Recording) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        path: folder.path().join("run.rec"),
        size: crate::record::SIZE,
        command_lines: true,
        interval: secs(1),
    };
    let mut writer = Writer::create(&options).unwrap();
    for at in 0..count {
        writer.write(&training(f64::from(at))).unwrap();
    }
    writer.finish().unwrap();
    let recording = Recording::open(&options.path).unwrap();
    assert_eq!(recording.len(), u64::from(count));
    (folder, recording)
}

fn player(count: u32) -> (TempDir, Player) {
    let (folder, recording) = recording(count);
    let mut player = Player::new(recording, 0..=u64::from(count) - 1, None);
    let begin = player.jump(0, Duration::ZERO);
    assert_eq!(seconds(&begin), [0]);
    (folder, player)
}

fn seconds(played: &Played) -> Vec<u64> {
    let times = played.samples.iter();
    times
        .map(|sample| sample.at.since_start.as_secs())
        .collect()
}

#[test]
fn samples_come_when_they_came() {
    let (_folder, mut player) = player(20);
    assert_eq!(player.due(), Some(secs(1)));
    assert_eq!(seconds(&player.play(secs(1))), [1]);
    assert_eq!(seconds(&player.play(secs(3))), [2, 3]);
    let faster = player.grant(&[Wish::Faster], secs(3));
    assert!(faster.samples.is_empty() && !faster.anew);
    assert!((faster.place.speed - 2.0).abs() < 1e-9);
    assert_eq!(seconds(&player.play(secs(4))), [4, 5]);
    let paused = player.grant(&[Wish::Pause], secs(4));
    assert!(paused.place.paused);
    assert_eq!(player.due(), None);
    player.grant(&[Wish::Pause], secs(100));
    assert_eq!(seconds(&player.play(secs(101))), [6, 7]);
    let end = player.grant(&[Wish::End], secs(101));
    assert!(end.anew && end.place.ended);
    assert_eq!(seconds(&end).last(), Some(&19));
    assert_eq!(player.due(), None);
    let back = player.grant(&[Wish::Seek(-10)], secs(102));
    assert_eq!(seconds(&back).last(), Some(&9));
    assert!(!back.place.paused && !back.place.ended);
    assert_eq!((back.place.at, back.place.of), (secs(9), secs(19)));
    assert_eq!(player.due(), Some(secs(102) + Duration::from_millis(500)));
}

#[test]
fn steps_go_one_by_one_and_held_keys_make_one_jump() {
    let (_folder, mut player) = player(200);
    let step = player.grant(&[Wish::Step(1)], secs(0));
    assert!(!step.anew && step.place.paused);
    assert_eq!(seconds(&step), [1]);
    let far = player.grant(&[Wish::Seek(10), Wish::Seek(10), Wish::Step(-1)], secs(0));
    assert_eq!(seconds(&far).last(), Some(&20));
    assert_eq!(seconds(&far), (0..=20).collect::<Vec<_>>());
    let begin = player.grant(&[Wish::Seek(-600)], secs(0));
    assert_eq!(seconds(&begin), [0]);
    let before = player.grant(&[Wish::Step(-1)], secs(0));
    assert!(before.samples.is_empty());
}

#[test]
fn a_seek_that_is_shorter_than_the_interval_goes_to_the_next_sample() {
    let (_folder, mut player) = player(30);
    let on = player.grant(&[Wish::Seek(0)], secs(0));
    assert!(on.samples.is_empty());
    player.recording = recording(30).1;
    let (number, _) = player.at(Duration::from_millis(7400));
    assert_eq!(number, 7);
}

#[test]
fn the_past_of_a_moment_is_whole_near_it_and_thin_before() {
    let (_folder, mut recording) = recording(64 * 12);
    let (samples, sparse) = past(&mut recording, 0, 700).unwrap();
    let times: Vec<u64> = samples
        .iter()
        .map(|sample| sample.at.since_start.as_secs())
        .collect();
    assert!(times.is_sorted());
    assert_eq!(times[sparse..], (580..=700).collect::<Vec<_>>());
    // One, two, four and eight groups before, and the first of all.
    assert_eq!(times[..sparse], [0, 128, 384, 512, 576]);
    let (samples, sparse) = past(&mut recording, 600, 700).unwrap();
    assert_eq!((samples.len(), sparse), (101, 0));
}

#[test]
fn a_window_begins_and_ends_within_its_times() {
    let (_folder, mut recording) = recording(30);
    let tenths = |tenths: u64| Some(Duration::from_millis(tenths * 100));
    for (from, to, numbers) in [
        (None, None, 0..=29),
        (tenths(100), tenths(200), 10..=20),
        (tenths(105), tenths(204), 11..=20),
        (tenths(290), tenths(900), 29..=29),
    ] {
        assert_eq!(super::window(&mut recording, from, to).unwrap(), numbers);
    }
}
