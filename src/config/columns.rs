//! The columns of the worker table, as they are chosen.
//!
//! Knows their names; what stands in them is the table's business.

use serde::Deserialize;
use toml::Spanned;

use super::keymap::Clash;

/// One column, by its name in `columns`. The worker's number always stands before them.
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

/// In the order of the list, each once.
pub(super) fn each_once(list: Vec<Spanned<Column>>) -> Result<Vec<Column>, Clash> {
    let mut columns = Vec::with_capacity(list.len());
    for column in list {
        if columns.contains(column.get_ref()) {
            return Err(Clash {
                span: Some(column.span()),
                message: "this column is there already".to_owned(),
            });
        }
        columns.push(column.into_inner());
    }
    Ok(columns)
}
