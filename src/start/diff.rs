//! `pipetop diff`: reads two recordings or reports, and prints the effect of the change between them.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::cli::DiffArgs;
use crate::diff::{BatchSlices, Comparison, Side, text};
use crate::engine::Engine;
use crate::error::{Explain as _, Hinted, write_error};
use crate::headless::no_time_between;
use crate::record::{RecordError, Recording};
use crate::regular_file;
use crate::report::{Report, UNWATCHED};
use crate::setup::{FAILED_IF, note_if_cut, print};
use crate::source::Source;
use crate::units::printable;
use crate::untrusted;

/// Maximum size of a report in bytes: one with a thousand workers takes less than a megabyte.
const MAX_REPORT: u64 = 16 << 20;

pub(super) fn run(args: &DiffArgs) -> Result<ExitCode, Hinted> {
    let comparison = Comparison::new(side(&args.before)?, side(&args.after)?);
    let page = if args.json {
        let json = serde_json::to_string_pretty(&comparison);
        let json = json.explain("cannot write JSON", "this is a bug in pipetop")?;
        format!("{json}\n")
    } else {
        text(&comparison)
    };
    let code = print(page)?;
    let Some(share) = args.fail_if_slower else {
        return Ok(code);
    };
    match comparison.is_slower_by(share) {
        Some(true) => Ok(ExitCode::from(FAILED_IF)),
        Some(false) => Ok(code),
        None => Err(Hinted::new(
            "cannot say whether it is slower",
            comparison.why.unwrap_or_default(),
        )),
    }
}

/// Reads a whole recording, or a report, and checks that it is of a job.
fn side(path: &Path) -> Result<Side, Hinted> {
    let file = printable(&path.display().to_string());
    let compared = |report: &Report, pace| match report.job {
        Some(_) => Ok(Side::new(file.clone(), report, pace)),
        None => Err(Hinted::new(
            format!("{file} contains no job to compare"),
            "record a job, or choose one in the list while recording",
        )),
    };
    let recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(RecordError::Foreign { .. } | RecordError::Read { .. }) => {
            let side = compared(&report(path)?, None)?;
            return match side.impossible() {
                Some(figure) => Err(Hinted::new(
                    format!("`{figure}` in {} is out of range", side.file),
                    "make the report anew with `pipetop --once --json`",
                )),
                None => Ok(side),
            };
        }
        Err(error) => return Err(Hinted::new(error.to_string(), error.hint())),
    };
    note_if_cut(&recording, path);
    let numbers = recording.first()..=recording.first() + recording.len().saturating_sub(1);
    let mut engine = Engine::new(Duration::MAX);
    let mut counts = BatchSlices::default();
    for sample in Source::part(recording, numbers) {
        let sample = sample.map_err(|error| {
            Hinted::new(
                format!("{file}: {error}"),
                "`pipetop replay` shows what is left of it, but a comparison needs all samples",
            )
        })?;
        let state = engine.push(sample);
        if let Some((seconds, batches)) = state.batches_taken() {
            counts.push(seconds, batches);
        }
    }
    let report = engine.state().report().ok_or_else(|| nothing(path))?;
    if !engine.state().has_figures() {
        let Hinted { message, hint, .. } = no_time_between();
        return Err(Hinted::new(format!("{file}: {message}"), hint));
    }
    for gap in report.gaps.iter().filter(|gap| gap.source == UNWATCHED) {
        write_error(format_args!("note: {file}: {} ({})", gap.reason, gap.hint));
    }
    compared(&report, counts.pace())
}

fn report(path: &Path) -> Result<Report, Hinted> {
    let mut text = vec![];
    regular_file::read(path, MAX_REPORT, &mut text).explain(
        format_args!("cannot read {}", path.display()),
        "use a recording, or a report made with --once --json",
    )?;
    untrusted::from_json(&text).map_err(|_| foreign(path, &text))
}

/// Returns the error for a file that is not a report of this version.
fn foreign(path: &Path, text: &[u8]) -> Hinted {
    let document: Option<serde_json::Value> = serde_json::from_slice(text).ok();
    let schema = document
        .as_ref()
        .and_then(|document| document["schema"].as_str());
    match schema.filter(|schema| schema.starts_with("pipetop.report/")) {
        Some(schema) => Hinted::new(
            format!(
                "{} is a report that this version cannot read ({})",
                path.display(),
                printable(schema)
            ),
            "use the version of pipetop that made it, or make it anew",
        ),
        None => nothing(path),
    }
}

fn nothing(path: &Path) -> Hinted {
    Hinted::new(
        format!(
            "{} is neither a recording nor a JSON report",
            path.display()
        ),
        "make them with `pipetop --record FILE`, or with `pipetop --once --json`",
    )
}
