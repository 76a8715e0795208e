//! The report as a page of text or of Markdown, as one line per interval, and as JSON.
//!
//! Each reads the [`Report`](crate::report::Report) and nothing else: what is not in it belongs there first.

mod format;
pub(crate) mod json;
mod line;
mod markdown;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use format::command;
pub(crate) use line::line;
pub(crate) use markdown::markdown;
pub(crate) use text::text;
