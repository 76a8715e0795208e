//! The report as JSON, as its derive writes it.
//!
//! Which keys there are and what they mean is the report's business.

use std::io::{self, Write};

use crate::report::Report;

/// Writes one document over many lines, with a line end.
///
/// # Errors
/// Where `out` cannot be written to.
pub(crate) fn page(out: &mut impl Write, report: &Report) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// Writes one document in one line.
///
/// # Errors
/// Where `out` cannot be written to.
pub(crate) fn line(out: &mut impl Write, report: &Report) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    writeln!(out)
}
