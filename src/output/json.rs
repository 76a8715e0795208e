//! Writes the report as JSON, with its derived serialisation.
//!
//! The keys and their meaning are defined by the report.

use std::io::{self, Write};

use crate::report::Report;

/// Writes one pretty-printed document, with a line end.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub(crate) fn page(out: &mut impl Write, report: &Report) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// Writes one document in one line.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub(crate) fn line(out: &mut impl Write, report: &Report) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    writeln!(out)
}
