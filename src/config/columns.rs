//! The columns of the worker table, as chosen in the configuration.
//!
//! Holds their names; does not depend on their contents.

use serde::Deserialize;
use toml::Spanned;

use super::keymap::Clash;

/// One column, by its name in `columns`. The worker's number always comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    Pid,
    Now,
    Cpu,
    Delay,
    Read,
    Batches,
    Load,
    Past,
    In,
}

/// Returns the columns in the order of the list; an empty list or a duplicate is an error.
pub(super) fn each_once(list: Spanned<Vec<Spanned<Column>>>) -> Result<Vec<Column>, Clash> {
    let clash = |span, message: &str| (Some(span), message.to_owned());
    let span = list.span();
    let mut columns = Vec::new();
    for column in list.into_inner() {
        if columns.contains(column.get_ref()) {
            return Err(clash(column.span(), "duplicate column"));
        }
        columns.push(column.into_inner());
    }
    if columns.is_empty() {
        return Err(clash(span, "`columns` has no column"));
    }
    Ok(columns)
}
