//! `/proc/PID/mountinfo`: which file system stands where.
//!
//! Knows the table and nothing of what lies on the file systems.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One line of `mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What `mnt_id` of `/proc/PID/fdinfo/N` points at.
    pub id: u64,
    pub major: u32,
    pub minor: u32,
    /// The directory of the file system that is mounted: not `/` for a bind mount or in a container.
    pub root: PathBuf,
    pub point: PathBuf,
    /// `ext4`, `overlay`, `cgroup2`, `nfs4`, ...
    pub fs: String,
    /// The device where there is one, else whatever the mounter wrote.
    pub source: String,
    /// Options of the file system itself (the last column).
    pub options: String,
}

/// Every mount that the process sees, in the table's order. Lines that are not understood are left out.
///
/// `process` is the process's directory: `/proc/self`, `/proc/4242`.
pub fn read(process: &Path) -> io::Result<Vec<Mount>> {
    Ok(parse(&std::fs::read(process.join("mountinfo"))?))
}

/// The mount that `path` lies on: the deepest, of those on the same point the last (it covers the others).
pub fn covering<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.as_os_str().len())
}

pub fn parse(table: &[u8]) -> Vec<Mount> {
    table
        .split(|&byte| byte == b'\n')
        .filter_map(line)
        .collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn line(line: &[u8]) -> Option<Mount> {
    let mut columns = line.split(|&byte| byte == b' ');
    let mut text = || {
        columns
            .next()
            .map(|column| String::from_utf8_lossy(column).into_owned())
    };
    let id = text()?.parse().ok()?;
    let _parent = text()?;
    let device = text()?;
    let (major, minor) = device.split_once(':')?;
    let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
    let mut path = || columns.next().map(|column| PathBuf::from(plain(column)));
    let (root, point) = (path()?, path()?);
    columns.by_ref().find(|column| *column == b"-")?;
    let mut text = || {
        columns
            .next()
            .map(|column| plain(column).to_string_lossy().into_owned())
    };
    Some(Mount {
        id,
        major,
        minor,
        root,
        point,
        fs: text()?,
        source: text()?,
        options: text()?,
    })
}

/// Space, tab, newline and backslash stand in the table as `\040` and so on.
fn plain(column: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(column.len());
    let mut rest = column;
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| first == b'\\');
        let octal = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 27 0:21 / /proc rw - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
99 27 0:44 /sub /mnt/my\\040data rw shared:7 master:1 - nfs4 host:/x rw,vers=4.2
torn line
100 27 8:1 / /mnt rw - xfs /dev/sda1 rw
101 27 8:2 / /mnt rw - xfs /dev/sdb1 rw
";

    #[test]
    fn a_line_with_optional_fields_and_escapes_is_read_and_a_torn_one_left_out() {
        let mounts = parse(TABLE.as_bytes());
        assert_eq!(mounts.len(), 5);
        assert_eq!(
            mounts[2],
            Mount {
                id: 99,
                major: 0,
                minor: 44,
                root: "/sub".into(),
                point: "/mnt/my data".into(),
                fs: "nfs4".into(),
                source: "host:/x".into(),
                options: "rw,vers=4.2".into(),
            }
        );
    }

    #[test]
    fn the_deepest_and_last_mount_covers_a_path() {
        let mounts = parse(TABLE.as_bytes());
        let fs = |path: &str| covering(&mounts, Path::new(path)).map(|mount| &*mount.source);
        assert_eq!(fs("/mnt/my data/shard"), Some("host:/x"));
        assert_eq!(fs("/mnt/other"), Some("/dev/sdb1"));
        assert_eq!(fs("/mntx"), Some("/dev/vda"));
        assert_eq!(fs("pipe:[17]"), None);
    }
}
