//! `/proc/PID/mountinfo`: which file system is mounted where.
//!
//! Does not depend on the content of the file systems. Lines are parsed by `procfs`, one by one: it rejects a whole
//! table for one torn line, and keeps the kernel's escapes in the names.

use std::io;
use std::path::Path;

pub use procfs::process::MountInfo;

use crate::source::file;

/// Returns every mount that the process sees, in the table's order. Malformed lines are skipped.
///
/// `process` is the process's directory: `/proc/self`, `/proc/4242`.
pub fn read(process: &Path) -> io::Result<Vec<MountInfo>> {
    Ok(parse(&file::read(&process.join("mountinfo"))?))
}

/// Returns the mount that `path` is on: the deepest one, and of several on the same point the last one, which covers
/// the others.
pub fn covering<'a>(mounts: &'a [MountInfo], path: &Path) -> Option<&'a MountInfo> {
    // The table was read as text: if a name is not UTF-8, both sides have the same replacement.
    let path = path.to_string_lossy();
    mounts
        .iter()
        .filter(|mount| Path::new(&*path).starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().len())
}

/// Returns the value of an option of the file system itself; empty for one without a value.
pub fn option<'a>(mount: &'a MountInfo, name: &str) -> Option<&'a str> {
    let value = mount.super_options.get(name)?;
    Some(value.as_deref().unwrap_or_default())
}

pub fn parse(table: &str) -> Vec<MountInfo> {
    let lines = table.lines().map(MountInfo::from_line);
    lines.filter_map(Result::ok).map(without_escapes).collect()
}

fn without_escapes(mut mount: MountInfo) -> MountInfo {
    mount.root = plain(&mount.root);
    mount.mount_point = plain(&mount.mount_point.to_string_lossy()).into();
    mount.mount_source = mount.mount_source.as_deref().map(plain);
    for value in mount.super_options.values_mut().flatten() {
        *value = plain(value);
    }
    mount
}

/// Undoes the escapes of the table: space, tab, newline and backslash are `\040` and so on.
fn plain(name: &str) -> String {
    let mut parts = name.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let octal = part.get(..3).map(|digits| u8::from_str_radix(digits, 8));
        match octal {
            Some(Ok(byte)) if byte.is_ascii() => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            _ => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use support::fuzz;

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
    fn optional_fields_and_escapes_are_read_and_torn_lines_skipped() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 5);
        let mount = &mounts[2];
        assert_eq!((mount.mnt_id, &*mount.majmin), (99, "0:44"));
        assert_eq!(mount.root, "/sub");
        assert_eq!(mount.mount_point, Path::new("/mnt/my data"));
        assert_eq!(mount.fs_type, "nfs4");
        assert_eq!(mount.mount_source.as_deref(), Some("host:/x"));
        assert_eq!(option(mount, "vers"), Some("4.2"));
        assert_eq!((option(mount, "rw"), option(mount, "ro")), (Some(""), None));
    }

    #[test]
    fn escapes_are_undone_once_and_what_is_none_stays() {
        for (escaped, expected) in [
            ("/a\\040b\\011c\\012d", "/a b\tc\nd"),
            ("/a\\134040", "/a\\040"),
            ("/a\\9", "/a\\9"),
            ("/a\\0", "/a\\0"),
            ("/\\\u{e9}\\777", "/\\\u{e9}\\777"),
        ] {
            assert_eq!(plain(escaped), expected);
        }
    }

    #[test]
    fn the_deepest_and_last_mount_covers_a_path() {
        let mounts = parse(TABLE);
        let fs = |path: &str| covering(&mounts, Path::new(path))?.mount_source.as_deref();
        assert_eq!(fs("/mnt/my data/shard"), Some("host:/x"));
        assert_eq!(fs("/mnt/other"), Some("/dev/sdb1"));
        assert_eq!(fs("/mntx"), Some("/dev/vda"));
        assert_eq!(fs("pipe:[17]"), None);
    }

    #[test]
    fn a_mount_point_that_is_no_utf_8_covers_its_files() {
        let root = tempfile::tempdir().unwrap();
        let table =
            b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /caf\xe9 rw - xfs /dev/sdb1 rw\n";
        std::fs::write(root.path().join("mountinfo"), table).unwrap();
        let mounts = read(root.path()).unwrap();
        let path = Path::new(OsStr::from_bytes(b"/caf\xe9/shard"));
        assert_eq!(covering(&mounts, path).map(|mount| mount.mnt_id), Some(2));
    }

    proptest::proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_mounts(table in fuzz::text([TABLE])) {
            for mount in parse(&table) {
                let _ = covering(std::slice::from_ref(&mount), &mount.mount_point);
            }
        }
    }
}
