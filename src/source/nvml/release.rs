//! Whether the driver's two lists of processes use the same PID namespace, from the driver's version.
//!
//! The list of processes and the samples of single processes were translated into PIDs of the caller's namespace in
//! different releases (read in the open kernel modules of these releases).

use std::path::Path;

/// First release in which the list of processes is translated, but the samples are not.
const LIST_TRANSLATED: [u32; 3] = [535, 113, 1];
/// First release in which both are translated.
const BOTH_TRANSLATED: [u32; 3] = [570, 86, 15];
/// The initial PID namespace has this number on every machine.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether this process is in the initial PID namespace, so that the driver's PIDs are those of `/proc`. `None` = not
/// known.
pub(crate) fn in_first_namespace(own: &Path) -> Option<bool> {
    let namespace = std::fs::read_link(own.join("ns/pid")).ok()?;
    Some(namespace == Path::new(FIRST_PID_NAMESPACE))
}

/// Whether the same number in both lists means the same process.
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
