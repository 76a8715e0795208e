//! The log file: what a bug report needs, off unless `--log-file` names a file.
//!
//! Decides where lines go and which levels are written; the modules choose what they log with `tracing`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use rustix::fs::OFlags;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{Explain as _, Hinted};

/// Environment variable with the level, or levels by module: `debug`, `info,pipetop::source=trace`.
pub(crate) const VARIABLE: &str = "PIPETOP_LOG";
const LEVEL: &str = "info";

/// The first error in writing a line. The code that logs a line cannot handle it.
static FAILED: OnceLock<Hinted> = OnceLock::new();

/// Appends log lines to `path` from now on. `filter` is the value of [`VARIABLE`].
///
/// # Errors
/// Returns an error if the file cannot be written to or the filter cannot be parsed.
pub(crate) fn start(path: &Path, filter: Option<&str>) -> Result<(), Hinted> {
    let filter = filter.filter(|filter| !filter.is_empty()).unwrap_or(LEVEL);
    let wrong = || {
        Hinted::new(
            format!("{VARIABLE}={filter} is not a level"),
            "the levels are off, error, warn, info, debug and trace; `info,pipetop::source=trace` also sets that of a module",
        )
    };
    let levels: Targets = filter.parse().map_err(|_| wrong())?;
    // The parser takes a word that is not a level for the name of a module, so a misspelt level would log nothing.
    let known = |word: &str| {
        word.contains('=') || word.starts_with("pipetop") || word.parse::<LevelFilter>().is_ok()
    };
    if !filter.split(',').all(|word| known(word.trim())) {
        return Err(wrong());
    }
    let file = open(path).explain(
        format_args!("cannot write to {}", path.display()),
        "--log-file needs a regular file in a writable directory",
    )?;
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(Mutex::new(LogFile(file)));
    // A second call, as in a test, keeps the first subscriber.
    let _ = tracing_subscriber::registry()
        .with(levels)
        .with(lines)
        .try_init();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "pipetop starts");
    Ok(())
}

/// Returns why lines are missing in the log. `None` if none are.
pub(crate) fn failure() -> Option<&'static Hinted> {
    FAILED.get()
}

struct LogFile(File);

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(line).inspect_err(|error| {
            let message = format!("the log file is incomplete: {error}");
            let hint = "free space there, or name another file with --log-file";
            let _ = FAILED.set(Hinted::new(message, hint));
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Opens the file, readable by its owner alone: it contains command lines. FIFOs and devices are rejected: they would
/// block, or lose the lines.
fn open(path: &Path) -> io::Result<File> {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(nonblocking)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a regular file"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_log_is_private_and_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for _ in 0..2 {
            open(&path).unwrap().write_all(b"line\n").unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "line\nline\n");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn invalid_log_files_and_levels_are_rejected() {
        assert!(open(Path::new("/dev/null")).is_err());
        let error = start(Path::new("/dev/null"), None).unwrap_err();
        assert!(error.message.contains("regular file"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for filter in ["pipetop=loud", "foo", "info,foo"] {
            let error = start(&path, Some(filter)).unwrap_err();
            assert_eq!(
                error.message,
                format!("PIPETOP_LOG={filter} is not a level")
            );
            assert!(
                error
                    .hint
                    .contains("off, error, warn, info, debug and trace")
            );
        }
        assert!(!path.exists());
    }
}
