//! The report as a page of text or of Markdown, as one line per interval, and as JSON.
//!
//! Each uses only the [`Report`](crate::report::Report): what an output needs must be in the report.

mod format;
pub(crate) mod json;
mod line;
mod markdown;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use format::command;
pub(crate) use line::{line, time};
pub(crate) use markdown::markdown;
pub(crate) use text::text;
