//! The columns of the tree: as many as there is room for beside the names.

use ratatui::text::Line;

use super::branch::{Branch, Shown};
use super::state::{Node, Order};
use crate::config::Role::{self, Border, Cpu, Dim, Focus, Read, Runnable, Text, Unknown};
use crate::model::processes::Figures;
use crate::ui::{View, format, table};

/// Cells that names have at least.
const NAMES: usize = 22;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Pid,
    Now,
    Cpu,
    Delay,
    Read,
    Memory,
    Threads,
}

impl Column {
    /// In the order of the screen.
    const ALL: [Self; 7] = [
        Self::Pid,
        Self::Now,
        Self::Cpu,
        Self::Delay,
        Self::Read,
        Self::Memory,
        Self::Threads,
    ];
    /// The one that is missed most comes first.
    const BY_NEED: [Self; 7] = [
        Self::Cpu,
        Self::Now,
        Self::Pid,
        Self::Memory,
        Self::Delay,
        Self::Read,
        Self::Threads,
    ];

    fn described(self) -> (table::Column, Option<Order>) {
        let figures = table::Column::figures;
        match self {
            Self::Pid => (figures("pid", 9), Some(Order::Number)),
            Self::Now => (table::Column::words("now", 10), None),
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
    columns: Vec<Column>,
}

impl<'a> Table<'a> {
    pub(super) fn new(view: &'a View<'a>, shown: &[Shown], width: u16) -> Self {
        let mut left = usize::from(width).saturating_sub(NAMES);
        let mut columns = Vec::new();
        for column in Column::BY_NEED {
            let cells = column.described().0.cells();
            if cells > left {
                break;
            }
            left -= cells;
            columns.push(column);
        }
        let longest = shown
            .iter()
            .map(|shown| name_width(&shown.guides, &shown.branch));
        let longest = longest.max().unwrap_or(0);
        Self {
            view,
            width,
            names: longest.clamp(NAMES, NAMES + left),
            columns: Column::ALL
                .into_iter()
                .filter(|column| columns.contains(column))
                .collect(),
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

/// Mark, guides, sign, label and remark.
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

/// What stands in a column: nothing where the line has no such figure, `n/a` where it is not known.
fn cell(column: Column, branch: &Branch) -> (Role, String) {
    let nothing = (Dim, String::new());
    match column {
        Column::Pid => {
            let pid = branch.pid.map(|pid| pid.to_string());
            return (Dim, pid.unwrap_or_default());
        }
        Column::Now => {
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
        Column::Cpu => true,
        Column::Read => is_process || is_sum,
        Column::Delay => !is_sum,
        Column::Memory | Column::Threads => is_process,
        Column::Pid | Column::Now => false,
    };
    if !has_one {
        return nothing;
    }
    let (paint, text) = figure(column, figures);
    if text == format::UNKNOWN {
        return (Unknown, text);
    }
    (paint, text)
}

fn figure(column: Column, figures: &Figures) -> (Role, String) {
    match column {
        Column::Cpu => {
            let cpu = figures
                .cpu
                .map(|cores| format::whole_percent(100.0 * cores));
            (Cpu, cpu.unwrap_or_else(|| format::UNKNOWN.to_owned()))
        }
        Column::Delay => (Runnable, format::percent(figures.delay)),
        Column::Read => (Read, format::bytes(figures.read.map(|rate| rate.0))),
        Column::Memory => (Text, format::bytes(figures.rss.map(|bytes| bytes.0 as f64))),
        Column::Threads => {
            let count = figures.threads.map(|count| count.to_string());
            (Dim, count.unwrap_or_else(|| format::UNKNOWN.to_owned()))
        }
        Column::Pid | Column::Now => (Dim, String::new()),
    }
}
