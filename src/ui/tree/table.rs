//! The columns of the tree: as many as fit beside the names.

use ratatui::text::Line;

use super::branch::{Branch, TreeLine};
use super::state::{Node, Order};
use crate::config::Role::{self, Border, Cpu, Dim, Focus, Read, Runnable, Text};
use crate::model::processes::Figures;
use crate::ui::{View, format, table};

/// Least cells for the names.
const NAMES: usize = 22;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TreeColumn {
    Pid,
    Now,
    Cpu,
    Delay,
    Read,
    Memory,
    Threads,
}

impl TreeColumn {
    /// All columns, the most useful first.
    const BY_PRIORITY: [Self; 7] = [
        Self::Cpu,
        Self::Now,
        Self::Pid,
        Self::Memory,
        Self::Delay,
        Self::Read,
        Self::Threads,
    ];

    fn described(self) -> (table::TableColumn, Option<Order>) {
        let figures = table::TableColumn::figures;
        match self {
            Self::Pid => (figures("pid", 9), Some(Order::Number)),
            Self::Now => (table::TableColumn::words("now", 10), None),
            Self::Cpu => (figures("CPU", 8), Some(Order::Cpu)),
            Self::Delay => (figures("delay", 8), Some(Order::Delay)),
            Self::Read => (figures("read/s", 9), Some(Order::Read)),
            Self::Memory => (figures("memory", 9), Some(Order::Memory)),
            Self::Threads => (figures("threads", 8), None),
        }
    }
}

pub(super) struct Table<'a> {
    view: &'a View<'a>,
    width: u16,
    names: usize,
    columns: Vec<TreeColumn>,
}

impl<'a> Table<'a> {
    pub(super) fn new(view: &'a View<'a>, shown: &[TreeLine], width: u16) -> Self {
        let mut left = usize::from(width).saturating_sub(NAMES);
        let mut columns = Vec::new();
        for column in TreeColumn::BY_PRIORITY {
            let cells = column.described().0.cells();
            if cells > left {
                break;
            }
            left -= cells;
            columns.push(column);
        }
        columns.sort_unstable();
        let longest = shown
            .iter()
            .map(|shown| name_width(&shown.guides, &shown.branch));
        let longest = longest.max().unwrap_or(0);
        Self {
            view,
            width,
            names: longest.clamp(NAMES, NAMES + left),
            columns,
        }
    }

    pub(super) fn head(&self) -> Line<'static> {
        let mut row = self.view.row(self.width);
        let state = &self.view.state.tree;
        row.padded(Dim, "  name", self.names);
        let columns = self.columns.iter().map(|column| {
            let (column, order) = column.described();
            column.sorted(order == Some(state.order))
        });
        let columns: Vec<_> = columns.collect();
        let arrow = self.view.glyphs().order(state.reversed);
        table::head(&mut row, &columns, arrow);
        row.line()
    }

    pub(super) fn line(&self, guides: &str, branch: &Branch, marked: bool) -> Line<'static> {
        let mut row = self.view.row(self.width);
        let note = matches!(branch.node, Node::Note(_));
        row.text(Focus, if marked { self.view.glyphs().mark } else { " " });
        row.text(Border, guides);
        if !note {
            let sign = match (branch.toggle, branch.open) {
                (None, _) => " ",
                (Some(_), true) => "-",
                (Some(_), false) => "+",
            };
            row.text(Dim, sign);
        }
        let room = if note {
            usize::from(self.width)
        } else {
            self.names
        };
        let used = 1 + format::width(guides) + usize::from(!note);
        let ascii = self.view.config.ascii;
        let label = format::cut(
            &format::clean(&branch.label, ascii),
            room.saturating_sub(used),
            self.view.glyphs().more,
        );
        let paint = match (marked, note) {
            (true, _) => Focus,
            (false, true) => Dim,
            (false, false) => Text,
        };
        row.text(paint, &label);
        if note {
            return row.line();
        }
        let used = used + format::width(&label) + 1;
        let remark = format::cut(
            &format::clean(&branch.remark, ascii),
            room.saturating_sub(used),
            self.view.glyphs().more,
        );
        if !remark.is_empty() {
            row.space(1).text(Dim, &remark);
        }
        row.to(self.names);
        for column in &self.columns {
            let (paint, text) = cell(*column, branch);
            column.described().0.put(&mut row, paint, &text);
        }
        row.line()
    }
}

/// Returns the cells taken by mark, guides, sign, label and remark.
fn name_width(guides: &str, branch: &Branch) -> usize {
    if matches!(branch.node, Node::Note(_)) {
        return 0;
    }
    let remark = match format::width(&branch.remark) {
        0 => 0,
        width => width + 1,
    };
    2 + format::width(guides) + format::width(&branch.label) + remark
}

/// Returns the text of a cell: empty if the line has no such figure, `n/a` if it is unknown.
fn cell(column: TreeColumn, branch: &Branch) -> (Role, String) {
    let nothing = (Dim, String::new());
    match column {
        TreeColumn::Pid => {
            let pid = branch.pid.map(|pid| pid.to_string());
            return (Dim, pid.unwrap_or_default());
        }
        TreeColumn::Now => {
            let now = branch.now.map(|(paint, word)| (paint, word.to_owned()));
            return now.unwrap_or(nothing);
        }
        _ => {}
    }
    let Some(figures) = &branch.figures else {
        return nothing;
    };
    let is_process = matches!(branch.node, Node::Process(_));
    let is_sum = matches!(branch.node, Node::Job | Node::Loader(..));
    let has_one = match column {
        TreeColumn::Cpu => true,
        TreeColumn::Read => is_process || is_sum,
        TreeColumn::Delay => !is_sum,
        TreeColumn::Memory | TreeColumn::Threads => is_process,
        TreeColumn::Pid | TreeColumn::Now => false,
    };
    if !has_one {
        return nothing;
    }
    figure(column, figures)
}

fn figure(column: TreeColumn, figures: &Figures) -> (Role, String) {
    match column {
        TreeColumn::Cpu => (Cpu, format::cores(figures.cpu)),
        TreeColumn::Delay => (Runnable, format::percent(figures.delay)),
        TreeColumn::Read => (Read, format::bytes(figures.read.map(|rate| rate.0))),
        TreeColumn::Memory => (Text, format::bytes(figures.rss.map(|bytes| bytes.0 as f64))),
        TreeColumn::Threads => {
            let count = figures.threads.map(|count| count.to_string());
            (Dim, format::known(count))
        }
        TreeColumn::Pid | TreeColumn::Now => (Dim, String::new()),
    }
}
