//! Samples by number and by time, in compressed groups: of a file or in memory, it makes no difference.
//!
//! Holds the places of the groups and one decoded group, however many there are.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use zstd::stream::read::Decoder;

use super::format::{GROUP_BYTES, LONGEST_LINE, RecordError};
use super::group::Group;
use crate::sample::Sample;
use crate::units::Moment;

/// What can be read of a recording, or of what is kept of a job that runs.
#[derive(Debug, Default)]
pub struct Samples {
    groups: Vec<Group>,
    /// Where each group is read from.
    bytes: Vec<Bytes>,
    decoded: Option<Decoded>,
}

/// What a group is read from.
#[derive(Debug)]
pub(super) enum Bytes {
    File(Arc<File>),
    Memory(Vec<u8>),
}

/// The lines of one group, each with its line end.
#[derive(Debug)]
struct Decoded {
    place: usize,
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
}

impl Decoded {
    fn line(&self, number: usize) -> Option<&[u8]> {
        let begin = match number.checked_sub(1) {
            None => 0,
            Some(before) => *self.ends.get(before)?,
        };
        self.text.get(begin..*self.ends.get(number)?)
    }
}

/// The part of a sample that says when it was taken.
#[derive(Deserialize)]
pub(super) struct Taken {
    pub(super) at: Moment,
}

impl Samples {
    /// The number of the first sample; of none, that of the next.
    pub fn first(&self) -> u64 {
        self.groups.first().map_or(0, |group| group.first)
    }

    /// One more than the number of the last sample.
    pub fn len(&self) -> u64 {
        self.groups
            .last()
            .map_or(0, |group| group.first + u64::from(group.count))
    }

    /// Never of a recording: without a sample it is not opened.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// When the first and the last sample were taken, since pipetop started.
    pub fn span(&self) -> (Duration, Duration) {
        let first = self.groups.first().map(|group| group.first_at);
        let last = self.groups.last().map(|group| group.last_at);
        (first.unwrap_or_default(), last.unwrap_or_default())
    }

    /// The numbers of the first samples of all groups, in order: reading one of them decodes no other.
    pub fn landmarks(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.groups.iter().map(|group| group.first)
    }

    /// The number of the last sample that was taken at `time` or before; that of the first where there is none.
    ///
    /// # Errors
    /// Where the file is damaged there.
    pub fn at(&mut self, time: Duration) -> Result<u64, RecordError> {
        let place = self.groups.partition_point(|group| group.first_at <= time);
        let Some(place) = place.checked_sub(1) else {
            return Ok(self.first());
        };
        let group = self.groups[place];
        if group.last_at <= time {
            return Ok(group.first + u64::from(group.count) - 1);
        }
        let (mut low, mut high) = (0, group.count as usize);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let taken: Taken = parse(self.line(place, middle)?)?;
            if taken.at.since_start <= time {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(group.first + low as u64)
    }

    /// The sample of this number, and the bytes that it takes as text.
    ///
    /// # Errors
    /// Where there is none of this number, or the file is damaged there.
    pub fn read(&mut self, number: u64) -> Result<(Sample, usize), RecordError> {
        let place = self.groups.partition_point(|group| group.first <= number);
        let place = place.checked_sub(1);
        let group = place.and_then(|place| Some((place, self.groups.get(place)?)));
        let (place, inside) = group
            .map(|(place, group)| (place, number - group.first))
            .filter(|(place, inside)| *inside < u64::from(self.groups[*place].count))
            .ok_or_else(|| damaged("there is no sample with this number"))?;
        let inside = usize::try_from(inside).unwrap_or(usize::MAX);
        let line = if inside == 0 && self.decoded.as_ref().is_none_or(|now| now.place != place) {
            // Of a landmark alone the rest of its group is not needed.
            let text = self.text(place, Some(1))?;
            return Ok((parse(&text)?, text.len()));
        } else {
            self.line(place, inside)?
        };
        Ok((parse(line)?, line.len()))
    }

    /// The number of the first sample behind the group of this one: where to go on behind damage.
    pub fn behind(&self, number: u64) -> Option<u64> {
        let place = self.groups.partition_point(|group| group.first <= number);
        self.groups.get(place).map(|group| group.first)
    }

    /// The text of a group: its whole lines, or as many as are wanted.
    pub(super) fn text(&self, place: usize, lines: Option<usize>) -> Result<Vec<u8>, RecordError> {
        let Group { from, to, .. } = self.groups[place];
        match &self.bytes[place] {
            Bytes::File(file) => text(Part { file, at: from, to }, lines),
            Bytes::Memory(bytes) => text(bytes.as_slice(), lines),
        }
    }

    /// Adds a group behind the others.
    pub(super) fn add(&mut self, group: Group, bytes: Bytes) {
        self.groups.push(group);
        self.bytes.push(bytes);
    }

    /// Adds what lies behind the last index of a file: the samples of a group that was never closed.
    pub(super) fn add_open(&mut self, file: Arc<File>, from: u64, to: u64) {
        let part = Part {
            file: &file,
            at: from,
            to,
        };
        let Ok(text) = text(part, None) else {
            return;
        };
        let decoded = Decoded {
            place: self.groups.len(),
            ends: ends(&text),
            text,
        };
        let taken = |number| -> Option<Duration> {
            let taken: Taken = serde_json::from_slice(decoded.line(number)?).ok()?;
            Some(taken.at.since_start)
        };
        let count = decoded.ends.len();
        let times = taken(0).zip(count.checked_sub(1).and_then(taken));
        if let (Some((first_at, last_at)), Ok(count)) = (times, u32::try_from(count)) {
            let group = Group {
                from,
                to,
                first: self.len(),
                count,
                first_at,
                last_at,
            };
            self.add(group, Bytes::File(file));
            self.decoded = Some(decoded);
        }
    }

    /// Adds all of `later`, numbered on.
    pub(super) fn append(&mut self, later: Self) {
        let samples = self.len();
        self.groups
            .extend(later.groups.into_iter().map(|group| Group {
                first: group.first + samples,
                ..group
            }));
        self.bytes.extend(later.bytes);
        self.decoded = None;
    }

    /// Adds bytes in memory: to the last group, or as the first of a new one.
    pub(super) fn write(&mut self, group: Group, bytes: &[u8]) {
        match (self.groups.last_mut(), self.bytes.last_mut()) {
            (Some(last), Some(Bytes::Memory(written))) if last.first == group.first => {
                *last = group;
                written.extend_from_slice(bytes);
                let place = self.groups.len() - 1;
                self.decoded.take_if(|decoded| decoded.place == place);
            }
            (_, before) => {
                if let Some(Bytes::Memory(whole)) = before {
                    whole.shrink_to_fit();
                }
                self.add(group, Bytes::Memory(bytes.to_vec()));
            }
        }
    }

    /// Forgets the first group, and gives what it took.
    pub(super) fn forget_oldest(&mut self) -> u64 {
        self.bytes.remove(0);
        self.decoded = None;
        let forgotten = self.groups.remove(0);
        forgotten.to - forgotten.from
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Where a group lies in the file.
    #[cfg(test)]
    pub(crate) fn group(&self, place: usize) -> std::ops::Range<usize> {
        let at = |byte| usize::try_from(byte).unwrap_or(usize::MAX);
        let Group { from, to, .. } = self.groups[place];
        at(from)..at(to)
    }

    fn line(&mut self, place: usize, number: usize) -> Result<&[u8], RecordError> {
        if self.decoded.as_ref().is_none_or(|now| now.place != place) {
            let text = self.text(place, None)?;
            self.decoded = Some(Decoded {
                place,
                ends: ends(&text),
                text,
            });
        }
        let line = self.decoded.as_ref().and_then(|now| now.line(number));
        line.ok_or_else(|| damaged("the sample is incomplete"))
    }
}

/// The whole lines of the frame that lies here, as many as can be decoded, or as many as are wanted; never more
/// than a writer puts into one.
fn text(part: impl Read, lines: Option<usize>) -> Result<Vec<u8>, RecordError> {
    let decoder = Decoder::new(part).map_err(|error| damaged(&error.to_string()))?;
    let mut decoder = BufReader::new(decoder.single_frame());
    let (mut text, mut whole, mut count) = (vec![], 0, 0);
    while lines.is_none_or(|lines| count < lines) && whole <= GROUP_BYTES {
        let room = LONGEST_LINE as u64;
        // What was decoded before an error stays.
        let read = (&mut decoder).take(room).read_until(b'\n', &mut text);
        if text.len() == whole || text.last() != Some(&b'\n') || read.is_err() {
            break;
        }
        whole = text.len();
        count += 1;
    }
    text.truncate(whole);
    if text.is_empty() {
        return Err(damaged("the sample cannot be decoded"));
    }
    Ok(text)
}

fn damaged(why: &str) -> RecordError {
    RecordError::Damaged {
        why: why.to_owned(),
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, RecordError> {
    serde_json::from_slice(line).map_err(|error| damaged(&error.to_string()))
}

fn ends(text: &[u8]) -> Vec<usize> {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1).collect()
}

/// A part of a file, read without moving anybody's place in it.
struct Part<'a> {
    file: &'a File,
    at: u64,
    to: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.to - self.at).unwrap_or(usize::MAX);
        let room = bytes.len().min(left);
        let count = self.file.read_at(&mut bytes[..room], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
