use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use support::fuzz;
use tempfile::TempDir;

use super::format::{Header, rotated};
use super::*;
use crate::sample::JobCandidate;
use crate::sample::literals::training;
use crate::units::{Moment, Pid};

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        Self { folder }
    }

    fn options(&self) -> RecordOptions {
        RecordOptions {
            path: self.folder.path().join("run.rec"),
            size: SIZE,
            command_lines: true,
            interval: Duration::from_secs(1),
        }
    }

    /// Writes a closed recording of `seconds` seconds.
    fn recorded(&self, seconds: u32) -> PathBuf {
        let options = self.options();
        let mut writer = Writer::create(&options).unwrap();
        for at in 0..seconds {
            writer.write(&training(f64::from(at))).unwrap();
        }
        writer.finish().unwrap();
        options.path
    }
}

fn all(recording: &mut Recording) -> Vec<Sample> {
    (0..recording.len())
        .map(|number| recording.read(number).unwrap().0)
        .collect()
}

/// Returns the first `count` samples of what `Place::recorded` writes.
fn expected(count: usize) -> Vec<Sample> {
    (0..count as u64).map(in_file).collect()
}

/// Returns a sample as stored: without the events of the sample before, except for the first of a group.
fn in_file(at: u64) -> Sample {
    let mut sample = training(at as f64);
    if !at.is_multiple_of(format::GROUP_SAMPLES.into()) {
        sample.drop_events(&training(at as f64 - 1.0));
    }
    sample
}

#[test]
fn a_recording_is_read_back() {
    let place = Place::new();
    let mut recording = Recording::open(&place.recorded(200)).unwrap();
    assert_eq!(recording.len(), 200);
    assert!(!recording.cut);
    assert_eq!(recording.span(), (Duration::ZERO, Duration::from_secs(199)));
    assert_eq!(recording.header.interval, Duration::from_secs(1));
    assert_eq!(all(&mut recording), expected(200));
    for number in [199, 0, 64, 63, 128, 5] {
        let (sample, _) = recording.read(number).unwrap();
        assert_eq!(sample.at.since_start, Duration::from_secs(number));
    }
    assert!(recording.read(200).is_err());
}

#[test]
fn a_time_is_found() {
    let place = Place::new();
    let mut recording = Recording::open(&place.recorded(200)).unwrap();
    for (seconds, number) in [
        (0.0, 0),
        (0.9, 0),
        (63.5, 63),
        (64.0, 64),
        (130.2, 130),
        (900.0, 199),
    ] {
        let time = Duration::try_from_secs_f64(seconds).unwrap();
        assert_eq!(recording.at(time).unwrap(), number, "{seconds}");
    }
}

#[test]
fn any_zstd_reads_the_samples() {
    let place = Place::new();
    let file = fs::File::open(place.recorded(70)).unwrap();
    let text = zstd::decode_all(file).unwrap();
    let lines: Vec<Sample> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines, expected(70));
}

#[test]
fn each_sample_is_in_the_file_at_once() {
    let place = Place::new();
    let options = place.options();
    let mut writer = Writer::create(&options).unwrap();
    assert!(matches!(
        Recording::open(&options.path),
        Err(RecordError::Empty { .. })
    ));
    for at in 0..70_u32 {
        writer.write(&training(f64::from(at))).unwrap();
        let mut recording = Recording::open(&options.path).unwrap();
        assert_eq!(recording.len(), u64::from(at) + 1);
        let (sample, _) = recording.read(u64::from(at)).unwrap();
        assert_eq!(sample, in_file(at.into()));
    }
}

#[test]
fn other_files_are_rejected() {
    let place = Place::new();
    let path = place.folder.path().join("other");
    let open = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        Recording::open(&path).unwrap_err()
    };
    assert!(matches!(open(b""), RecordError::Foreign { .. }));
    assert!(matches!(
        open(b"\x7fELF and more"),
        RecordError::Foreign { .. }
    ));
    assert!(matches!(
        open(&zstd::encode_all(&b"{}"[..], 1).unwrap()),
        RecordError::Foreign { .. }
    ));
    // Only the version of this header is wrong.
    let header = serde_json::to_string(&Header {
        pipetop: String::new(),
        interval: Duration::from_secs(1),
        command_lines: true,
    })
    .unwrap();
    let no_version = format::skippable(format!("pipetop-recording/0\n{header}").as_bytes());
    assert!(matches!(open(&no_version), RecordError::Foreign { .. }));
    let newer = format::skippable(b"pipetop-recording/3\n{}");
    assert!(matches!(
        open(&newer),
        RecordError::Newer { version: 3, .. }
    ));
    assert!(matches!(
        Recording::open(place.folder.path()),
        Err(RecordError::Read { .. })
    ));
    let missing = Recording::open(&place.folder.path().join("missing")).unwrap_err();
    assert!(matches!(missing, RecordError::Read { .. }));
}

#[test]
fn fields_of_later_versions_are_ignored() {
    let place = Place::new();
    let mut value = serde_json::to_value(training(1.0)).unwrap();
    value["later"] = serde_json::json!({"a": [1, 2]});
    value["host"]["also_later"] = 3.into();
    let mut line = serde_json::to_vec(&value).unwrap();
    line.push(b'\n');
    let header = format::Header {
        pipetop: "9.9".into(),
        interval: Duration::from_secs(1),
        command_lines: true,
    };
    let mut bytes = format::head(&header).unwrap();
    bytes.extend(zstd::encode_all(&line[..], 1).unwrap());
    let path = place.folder.path().join("later.rec");
    fs::write(&path, bytes).unwrap();
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!(recording.read(0).unwrap().0, training(1.0));
}

/// pipetop itself writes no such names, but a recording may come from anyone.
#[test]
fn names_in_a_foreign_recording_are_printable() {
    let place = Place::new();
    let path = place.recorded(1);
    let mut bytes = fs::read(&path).unwrap();
    let mut sample = training(1.0);
    sample.job.as_mut().unwrap().command = "train\u{1b}[2J\u{9b}m\u{202e}.py".into();
    let mut line = serde_json::to_vec(&sample).unwrap();
    line.push(b'\n');
    bytes.extend(zstd::encode_all(&line[..], 1).unwrap());
    fs::write(&path, bytes).unwrap();
    let mut recording = Recording::open(&path).unwrap();
    let (read, _) = recording.read(1).unwrap();
    let shown = "train\u{fffd}[2J\u{fffd}m\u{fffd}.py";
    assert_eq!(read.job.unwrap().command, shown);
}

#[test]
fn nothing_is_overwritten() {
    let place = Place::new();
    let path = place.recorded(3);
    let before = fs::read(&path).unwrap();
    assert!(matches!(
        Writer::create(&place.options()),
        Err(RecordError::Create { .. })
    ));
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::rename(&path, rotated(&path)).unwrap();
    assert!(matches!(
        Writer::create(&place.options()),
        Err(RecordError::Create { .. })
    ));
    assert!(!path.exists());
}

#[test]
fn a_full_file_is_rotated_and_both_are_readable() {
    let place = Place::new();
    let options = RecordOptions {
        size: 20_000,
        ..place.options()
    };
    let mut writer = Writer::create(&options).unwrap();
    let mut count = 0_u32;
    while !rotated(&options.path).exists() {
        writer.write(&training(f64::from(count))).unwrap();
        count += 1;
        assert!(count < 10_000, "it never rotates");
    }
    writer.finish().unwrap();
    let old = Recording::open(&rotated(&options.path)).unwrap();
    assert!(!old.cut);
    let size = fs::metadata(rotated(&options.path)).unwrap().len();
    assert!(size < 2 * options.size, "{size}");
    // Opening the new file reads both.
    let mut both = Recording::open(&options.path).unwrap();
    let times = |samples: Vec<Sample>| -> Vec<_> {
        let at = |sample: &Sample| sample.at.since_start;
        samples.iter().map(at).collect()
    };
    assert_eq!(times(all(&mut both)), times(expected(count as usize)));
    assert_eq!(
        both.read(old.len()).unwrap().0.at.since_start,
        both.span().1
    );
    assert_eq!(both.at(Duration::from_secs(1)).unwrap(), 1);
}

#[test]
fn files_of_another_run_are_not_its_past() {
    let place = Place::new();
    let path = place.recorded(3);
    let options = |name: &str| RecordOptions {
        path: path.with_file_name(name),
        ..place.options()
    };
    let mut later = Writer::create(&options("later.rec")).unwrap();
    for at in 10..15_u32 {
        let mut sample = training(f64::from(at));
        sample.at.wall += Duration::from_hours(1);
        later.write(&sample).unwrap();
    }
    later.finish().unwrap();
    let opened = |beside: &[u8]| {
        let path = options("later.rec").path;
        fs::write(rotated(&path), beside).unwrap();
        Recording::open(&path).unwrap().len()
    };
    assert_eq!(opened(&fs::read(&path).unwrap()), 5);
    assert_eq!(opened(b"no recording"), 5);
}

#[test]
fn command_lines_can_be_left_out() {
    let place = Place::new();
    let options = RecordOptions {
        command_lines: false,
        ..place.options()
    };
    let mut sample = training(1.0);
    sample.job.as_mut().unwrap().command = "python secret.py".into();
    sample.candidates = vec![JobCandidate {
        pid: Pid(7),
        command: "python secret.py".into(),
        ranks: 1,
        workers: 2,
    }];
    let mut writer = Writer::create(&options).unwrap();
    writer.write(&sample).unwrap();
    writer.finish().unwrap();
    let text = zstd::decode_all(fs::File::open(&options.path).unwrap()).unwrap();
    assert!(!String::from_utf8(text).unwrap().contains("secret"));
    let mut recording = Recording::open(&options.path).unwrap();
    let (read, _) = recording.read(0).unwrap();
    assert_eq!(read.job.unwrap().command, "(command line left out)");
    assert!(!recording.header.command_lines);
}

#[test]
fn a_device_is_not_to_be_removed() {
    let error = can_create(std::path::Path::new("/dev/null")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot record to /dev/null: not a regular file"
    );
    assert!(!error.hint().contains("remove"), "{}", error.hint());
}

#[test]
fn full_disk_stops_recording_with_gap() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: no /dev/full here");
        return;
    }
    let place = Place::new();
    let options = place.options();
    let mut writer = Writer::create(&options).unwrap();
    writer.set_file(fs::File::options().write(true).open("/dev/full").unwrap());
    let recorder = Recorder::run(writer).unwrap();
    let gap = (0..u32::MAX).find_map(|at| {
        std::thread::yield_now();
        recorder.take(&training(f64::from(at)))
    });
    let gap = gap.expect("it says so");
    assert_eq!(gap.source, SOURCE);
    assert!(gap.reason.contains("No space left"), "{}", gap.reason);
    assert!(Recording::open(&options.path).is_err());
}

#[test]
fn a_recording_that_another_program_removes_or_cuts_off_is_a_gap() {
    type Harm = fn(&std::path::Path) -> std::io::Result<()>;
    let harms: [Harm; 2] = [|path| fs::remove_file(path), |path| fs::write(path, "")];
    for harm in harms {
        let place = Place::new();
        let recorder = Recorder::start(&place.options()).unwrap();
        assert_eq!(recorder.take(&training(0.0)), None);
        harm(&place.options().path).unwrap();
        recorder.take(&training(1.0));
        let gap = recorder.finish().expect("it says so");
        assert!(gap.reason.contains("removed or cut off"), "{}", gap.reason);
        assert!(!gap.hint.contains("can be replayed"), "{}", gap.hint);
    }
}

#[test]
fn a_recorder_writes_all_until_it_is_dropped() {
    let place = Place::new();
    let options = place.options();
    let recorder = Recorder::start(&options).unwrap();
    for at in 0..5_u32 {
        assert_eq!(recorder.take(&training(f64::from(at))), None);
    }
    drop(recorder);
    let mut recording = Recording::open(&options.path).unwrap();
    assert!(!recording.cut);
    assert_eq!(all(&mut recording), expected(5));
}

#[test]
fn damage_loses_only_the_damaged_group() {
    let place = Place::new();
    let path = place.recorded(64 * 5);
    let whole = Recording::open(&path).unwrap();
    let marks: Vec<u64> = whole.group_starts().collect();
    assert_eq!(marks, [0, 64, 128, 192, 256]);
    let hurt = whole.group(2);
    drop(whole);
    let mut bytes = fs::read(&path).unwrap();
    for byte in &mut bytes[hurt] {
        *byte = 0xff;
    }
    fs::write(&path, &bytes).unwrap();
    let mut recording = Recording::open(&path).unwrap();
    assert!(recording.read(128).is_err());
    assert_eq!(recording.next_group_after(130), Some(192));
    assert_eq!(recording.read(192).unwrap().0, training(192.0));
    assert_eq!(recording.read(127).unwrap().0, in_file(127));
    // Without the last index and that of the block before, every other index is used.
    assert_eq!(recording.len(), 64 * 5);
}

#[test]
fn a_changed_figure_is_damage() {
    let place = Place::new();
    let path = place.recorded(64 * 2);
    let group = Recording::open(&path).unwrap().group(1);
    let whole = fs::read(&path).unwrap();
    let mut unnoticed = 0;
    for at in group.step_by(499) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut recording = Recording::open(&path).unwrap();
        let all: Result<Vec<_>, _> = (65..128).map(|number| recording.read(number)).collect();
        let same = |samples: &Vec<(Sample, usize)>| {
            let read = samples.iter().map(|(sample, _)| sample);
            read.zip(65..).all(|(sample, at)| *sample == in_file(at))
        };
        unnoticed += usize::from(all.is_ok_and(|samples| !same(&samples)));
    }
    assert_eq!(unnoticed, 0);
}

/// Returns the bytes of a recording of three groups and a part of a fourth, which was never closed.
fn unfinished() -> &'static (usize, Vec<u8>) {
    static BYTES: OnceLock<(usize, Vec<u8>)> = OnceLock::new();
    BYTES.get_or_init(|| {
        let place = Place::new();
        let options = place.options();
        let mut writer = Writer::create(&options).unwrap();
        let count = 3 * 64 + 20;
        for sample in expected(count) {
            writer.write(&sample).unwrap();
        }
        (count, fs::read(&options.path).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_prefix_can_be_opened_up_to_its_last_whole_sample(cut in 0.0..1.0_f64) {
        let (count, bytes) = unfinished();
        let place = Place::new();
        let path = place.folder.path().join("cut.rec");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a file")]
        let end = (bytes.len() as f64 * cut) as usize;
        fs::write(&path, &bytes[..end]).unwrap();
        match Recording::open(&path) {
            Ok(mut recording) => {
                let samples = all(&mut recording);
                prop_assert_eq!(&samples, &expected(samples.len()));
                let near = cut * *count as f64;
                prop_assert!((samples.len() as f64 - near).abs() < 12.0, "{} of {near}", samples.len());
            }
            Err(error) => prop_assert!(
                matches!(error, RecordError::Empty { .. } | RecordError::Foreign { .. }) && end < 3000,
                "{} at {}", error, end
            ),
        }
    }
}

/// Returns two nearly empty groups, so that most damaged bytes are neither compressed nor figures.
fn small() -> Vec<u8> {
    let place = Place::new();
    let options = place.options();
    let mut writer = Writer::create(&options).unwrap();
    for second in 0..66 {
        let at = Moment {
            since_start: Duration::from_secs(second),
            wall: SystemTime::UNIX_EPOCH,
        };
        writer.write(&Sample::new(at)).unwrap();
    }
    writer.finish().unwrap();
    fs::read(&options.path).unwrap()
}

fn head() -> Vec<u8> {
    let header = Header {
        pipetop: "0.1.0".to_owned(),
        interval: Duration::from_secs(1),
        command_lines: true,
    };
    format::head(&header).unwrap()
}

proptest! {
    #![proptest_config(fuzz::cases_or(400))]

    #[test]
    fn fuzzed_recordings(bytes in fuzz::bytes([small()])) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        if let Ok(mut recording) = Recording::open(file.path()) {
            for number in [0, 63, 64, recording.len() - 1] {
                let _ = recording.read(number);
            }
            let _ = (recording.span(), recording.at(Duration::from_secs(30)));
        }
    }

    #[test]
    fn fuzzed_heads(bytes in fuzz::bytes([head()])) {
        let _ = format::read_head(Path::new("x.rec"), &bytes);
    }

    #[test]
    fn fuzzed_samples(line in fuzz::bytes([serde_json::to_vec(&expected(1)[0]).unwrap()])) {
        let _ = samples::parse::<Sample>(&line);
    }
}

#[test]
fn a_head_that_says_it_is_shorter_than_its_mark_is_foreign() {
    for length in [0, 1, 17] {
        let mut bytes = head();
        bytes[4..8].copy_from_slice(&u32::to_le_bytes(length));
        let error = format::read_head(Path::new("x.rec"), &bytes).unwrap_err();
        assert!(matches!(error, RecordError::Foreign { .. }), "{error}");
    }
}

/// Tries the shortest prefixes one by one, up to a few kilobytes: the head, and the first sample.
#[test]
fn every_short_prefix_gives_a_precise_error() {
    let (_, bytes) = unfinished();
    let place = Place::new();
    let path = place.folder.path().join("cut.rec");
    let mut whole = None;
    for end in 0..3000 {
        fs::write(&path, &bytes[..end]).unwrap();
        match Recording::open(&path) {
            Ok(mut recording) => {
                whole.get_or_insert(end);
                assert!(recording.read(0).is_ok() && recording.cut);
            }
            Err(RecordError::Foreign { .. }) => assert_eq!(end, 0),
            Err(RecordError::Empty { .. }) => assert_eq!(whole, None, "at {end}"),
            Err(error) => panic!("{error} at {end}"),
        }
    }
    assert!(whole.is_some());
}
