//! What the driver's version tells: whether its two lists of processes carry numbers of one kind.
//!
//! The list of processes and the samples of single processes were translated into the numbers of the
//! caller's PID namespace in different releases (read in the open kernel modules of these releases).

use std::path::Path;

/// The list is translated from here on, the samples are not.
const LIST_TRANSLATED: [u32; 3] = [535, 113, 1];
/// Both are.
const BOTH_TRANSLATED: [u32; 3] = [570, 86, 15];
/// The first PID namespace of a machine has this number, whatever the machine.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether the driver's numbers of processes are those that `/proc` has here. `None` = not known.
pub(in crate::source) fn in_first_namespace() -> Option<bool> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(namespace == Path::new(FIRST_PID_NAMESPACE))
}

/// Whether a number in one list means the process that has it in the other.
pub(super) fn lists_agree(version: Option<&str>, first_namespace: Option<bool>) -> bool {
    if first_namespace == Some(true) {
        return true;
    }
    let Some(version) = version.and_then(parsed) else {
        return false;
    };
    version < LIST_TRANSLATED || version >= BOTH_TRANSLATED
}

fn parsed(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    Some([major, minor, parts.next().flatten().unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_container_some_drivers_number_the_lists_differently() {
        for (version, agree) in [
            ("525.60.13", true),
            ("535.104.05", true),
            ("535.113.01", false),
            ("550.54.15", false),
            ("565.57.01", false),
            ("570.86.15", true),
            ("580.95.05", true),
            ("575.57", true),
            ("new", false),
        ] {
            assert_eq!(lists_agree(Some(version), Some(false)), agree, "{version}");
            assert_eq!(lists_agree(Some(version), None), agree, "{version}");
            assert!(lists_agree(Some(version), Some(true)), "{version}");
        }
        assert!(!lists_agree(None, Some(false)));
    }
}
