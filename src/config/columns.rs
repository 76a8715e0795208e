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

/// Returns the columns in the order of the list; a duplicate is an error.
pub(super) fn each_once(list: Vec<Spanned<Column>>) -> Result<Vec<Column>, Clash> {
    let mut columns = Vec::with_capacity(list.len());
    for column in list {
        if columns.contains(column.get_ref()) {
            return Err(Clash {
                span: Some(column.span()),
                message: "duplicate column".to_owned(),
            });
        }
        columns.push(column.into_inner());
    }
    Ok(columns)
}
