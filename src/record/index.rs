//! Index of the groups of a recording: written after each group, and found again from the end of the file.
//!
//! The index after a group lists the groups of its block, up to [`BLOCK`], and the offset of the previous block's last
//! index. So a file that was cut off anywhere has an index up to its last whole group, and a long one is opened in few
//! reads. Works on bytes and offsets; decodes no sample.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::format::{FRAME, GROUP_SAMPLES, skippable, skippable_length};
use super::group::Group;
use crate::units::nanoseconds;

/// Maximum number of groups in one index.
const BLOCK: usize = 64;
/// Start of the content of an index.
const MAGIC: &[u8; 8] = b"ptindex1";
/// Bytes of magic, own offset, offset of the index before, number of groups.
const FIXED: usize = 8 + 8 + 8 + 4;
/// Bytes of one group's entry.
const ENTRY: usize = 8 + 8 + 8 + 4 + 8 + 8;
/// Bytes that are searched at a time.
const PIECE: usize = 1 << 16;

/// Builds the indices of a file that is being written.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The groups of the block that is being filled.
    block: Vec<Group>,
    /// Offset of the last index of the block before; 0 if there is none.
    before: u64,
    last: u64,
}

impl Index {
    /// Adds a group. Returns the frame to write after it, at offset `place`.
    pub(super) fn add(&mut self, group: Group, place: u64) -> Vec<u8> {
        if self.block.len() == BLOCK {
            self.block.clear();
            self.before = self.last;
        }
        self.block.push(group);
        self.last = place;
        let mut content = Vec::with_capacity(FIXED + ENTRY * self.block.len());
        content.extend_from_slice(MAGIC);
        content.extend_from_slice(&place.to_le_bytes());
        content.extend_from_slice(&self.before.to_le_bytes());
        let count = u32::try_from(self.block.len()).unwrap_or(u32::MAX);
        content.extend_from_slice(&count.to_le_bytes());
        for group in &self.block {
            content.extend_from_slice(&group.from.to_le_bytes());
            content.extend_from_slice(&group.to.to_le_bytes());
            content.extend_from_slice(&group.first.to_le_bytes());
            content.extend_from_slice(&group.count.to_le_bytes());
            content.extend_from_slice(&nanoseconds(group.first_at).to_le_bytes());
            content.extend_from_slice(&nanoseconds(group.last_at).to_le_bytes());
        }
        skippable(&content)
    }
}

/// An index that was read from a file.
struct FoundIndex {
    /// Offset of its end.
    end: u64,
    before: u64,
    groups: Vec<Group>,
}

/// Returns all groups in the indices, in order, and the end of the last index, or `start` if there is no index.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(super) fn find(file: &File, start: u64, length: u64) -> io::Result<(Vec<Group>, u64)> {
    let mut at = length;
    let mut last = None;
    while last.is_none() && at > start {
        let from = at.saturating_sub(PIECE as u64).max(start);
        last = in_piece(file, from, at, length)?.pop();
        at = from;
    }
    let Some(last) = last else {
        return Ok((vec![], start));
    };
    let end = last.end;
    let mut blocks = vec![];
    let mut next = Some(last);
    while let Some(found) = next {
        let before = found.before;
        let begin = found.groups.first().map_or(0, |group| group.from);
        blocks.push(found.groups);
        if before == 0 {
            let mut groups: Vec<Group> = blocks.into_iter().rev().flatten().collect();
            groups.dedup();
            return Ok((groups, end));
        }
        // An index only refers to what comes before it.
        next = (before < begin)
            .then(|| read(file, before, length))
            .flatten();
    }
    // The chain is broken, so the file is damaged: use every index that can be found.
    let mut groups = vec![];
    let mut at = start;
    while at < end {
        let to = (at + PIECE as u64).min(end);
        groups.extend(
            in_piece(file, at, to, length)?
                .into_iter()
                .flat_map(|found| found.groups),
        );
        at = to;
    }
    groups.sort_by_key(|group: &Group| group.from);
    groups.dedup();
    Ok((groups, end))
}

/// Returns the indices that start in a piece of the file, in order.
fn in_piece(file: &File, from: u64, to: u64, length: u64) -> io::Result<Vec<FoundIndex>> {
    // The magic of an index that starts at the end of the piece lies beyond the piece.
    let reach = (to + (FRAME + MAGIC.len()) as u64).min(length);
    let mut bytes = vec![0; usize::try_from(reach - from).unwrap_or(0)];
    file.read_exact_at(&mut bytes, from)?;
    let begins = bytes.windows(MAGIC.len()).enumerate();
    let begins = begins.filter(|(_, window)| window == MAGIC);
    let places = begins.filter_map(|(at, _)| Some(from + at.checked_sub(FRAME)? as u64));
    Ok(places
        .filter_map(|place| read(file, place, length))
        .collect())
}

/// Reads the index at this offset; `None` if there is none, or only a part of one.
fn read(file: &File, place: u64, length: u64) -> Option<FoundIndex> {
    let mut frame = [0; FRAME];
    file.read_exact_at(&mut frame, place).ok()?;
    let size = skippable_length(frame)?;
    if !(FIXED..=FIXED + BLOCK * ENTRY).contains(&size) {
        return None;
    }
    let mut content = vec![0; size];
    file.read_exact_at(&mut content, place + FRAME as u64)
        .ok()?;
    let mut rest = content.strip_prefix(MAGIC.as_slice())?;
    // Bytes that look like an index by chance do not contain their own offset.
    let own = take_u64(&mut rest)?;
    let before = take_u64(&mut rest)?;
    let count = take_u32(&mut rest)?;
    if own != place || rest.len() != count as usize * ENTRY {
        return None;
    }
    let mut groups = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let group = Group {
            from: take_u64(&mut rest)?,
            to: take_u64(&mut rest)?,
            first: take_u64(&mut rest)?,
            count: take_u32(&mut rest)?,
            first_at: Duration::from_nanos(take_u64(&mut rest)?),
            last_at: Duration::from_nanos(take_u64(&mut rest)?),
        };
        // A sample takes more than a byte, so its number is less than its offset.
        let sound = group.from < group.to
            && group.to <= place
            && (1..=GROUP_SAMPLES).contains(&group.count)
            && group.first <= group.from;
        groups.push(Some(group).filter(|_| sound)?);
    }
    let end = place + (FRAME + size) as u64;
    Some(FoundIndex {
        end,
        before,
        groups,
    })
    .filter(|found| found.end <= length)
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}
