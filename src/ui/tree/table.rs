//! The columns of the tree: as many as fit beside the names.

use ratatui::text::Line;

use super::branch::Branch;
use super::state::{Node, TreeColumn};
use crate::config::Role::{self, Border, Cpu, Dim, Focus, Read, Runnable, Text};
use crate::model::processes::Figures;
use crate::ui::table::{self, TableColumn};
use crate::ui::{View, format};

/// Least cells for the names.
const NAMES: usize = 22;

/// All columns from the left, each with its turn: if not all fit, the lowest turn is dropped first.
const COLUMNS: [(TreeColumn, TableColumn, usize); 7] = [
    (TreeColumn::Pid, TableColumn::figures("pid", 9), 5),
    (TreeColumn::Now, TableColumn::words("now", 10), 6),
    (TreeColumn::Cpu, TableColumn::figures("CPU", 8), 7),
    (TreeColumn::Delay, TableColumn::figures("delay", 8), 3),
    (TreeColumn::Read, TableColumn::figures("read/s", 9), 2),
    (TreeColumn::Memory, TableColumn::figures("memory", 9), 4),
    (TreeColumn::Threads, TableColumn::figures("threads", 8), 1),
];

pub(super) struct Table<'a> {
    view: &'a View<'a>,
    width: u16,
    names: usize,
    columns: Vec<(TreeColumn, TableColumn)>,
}

impl<'a> Table<'a> {
    pub(super) fn new(view: &'a View<'a>, shown: &[Branch], width: u16) -> Self {
        let room = usize::from(width).saturating_sub(NAMES);
        let columns = COLUMNS.map(|(_, column, turn)| (column, turn));
        let columns = table::fitting(columns.to_vec(), room).into_iter();
        let columns = columns.map(|(place, column)| {
            let which = COLUMNS[place].0;
            (which, column.sorted(which == view.state.tree.order))
        });
        let columns: Vec<_> = columns.collect();
        let taken: usize = columns.iter().map(|(_, column)| column.cells()).sum();
        let longest = shown.iter().map(name_width).max().unwrap_or(0);
        Self {
            view,
            width,
            names: longest.clamp(NAMES, NAMES + room - taken),
            columns,
        }
    }

    pub(super) fn head(&self) -> Line<'static> {
        let mut row = self.view.row(self.width);
        row.padded(Dim, "  name", self.names);
        let columns = self.columns.iter().map(|(_, column)| column);
        let arrow = self.view.glyphs().order(self.view.state.tree.reversed);
        table::head(&mut row, columns, arrow);
        row.line()
    }

    pub(super) fn line(&self, branch: &Branch, marked: bool) -> Line<'static> {
        let mut row = self.view.row(self.width);
        let note = matches!(branch.node, Node::Note(_));
        let paint = match (marked, note) {
            (true, _) => Focus,
            (false, true) => Dim,
            (false, false) => Text,
        };
        row.text(Focus, if marked { self.view.glyphs().mark } else { " " });
        row.text(Border, &branch.guides);
        if note {
            return row.text(paint, &branch.label).line();
        }
        let sign = match (branch.toggle, branch.open) {
            (None, _) => " ",
            (Some(_), true) => "-",
            (Some(_), false) => "+",
        };
        row.text(Dim, sign).up_to(self.names, paint, &branch.label);
        let columns = usize::from(self.width).saturating_sub(self.names);
        if !branch.remark.is_empty() && row.left() > columns {
            row.space(1).up_to(self.names, Dim, &branch.remark);
        }
        row.to(self.names);
        for (which, column) in &self.columns {
            let (paint, text) = cell(*which, branch);
            column.put(&mut row, paint, &text);
        }
        row.line()
    }
}

/// Returns the cells taken by mark, guides, sign, label and remark.
fn name_width(branch: &Branch) -> usize {
    if matches!(branch.node, Node::Note(_)) {
        return 0;
    }
    let remark = match format::width(&branch.remark) {
        0 => 0,
        width => width + 1,
    };
    2 + format::width(&branch.guides) + format::width(&branch.label) + remark
}

/// Returns the text of a cell: empty if the line has no such figure, `n/a` if it is unknown.
fn cell(column: TreeColumn, branch: &Branch) -> (Role, String) {
    let is_process = matches!(branch.node, Node::Process(_));
    let is_sum = matches!(branch.node, Node::Job | Node::Loader(..));
    let figure = |paint, has_one: bool, text: fn(&Figures) -> String| {
        let figures = branch.figures.as_ref().filter(|_| has_one);
        (paint, figures.map(text).unwrap_or_default())
    };
    match column {
        TreeColumn::Pid => {
            let pid = branch.pid.map(|pid| pid.to_string());
            (Dim, pid.unwrap_or_default())
        }
        TreeColumn::Now => {
            let (paint, word) = branch.now.unwrap_or((Dim, ""));
            (paint, word.to_owned())
        }
        TreeColumn::Cpu => figure(Cpu, true, |of| format::cores(of.cpu)),
        TreeColumn::Delay => figure(Runnable, !is_sum, |of| format::percent(of.delay)),
        TreeColumn::Read => figure(Read, is_process || is_sum, |of| {
            format::bytes(of.read.map(|rate| rate.0))
        }),
        TreeColumn::Memory => figure(Text, is_process, |of| {
            format::bytes(of.rss.map(|bytes| bytes.0 as f64))
        }),
        TreeColumn::Threads => figure(Dim, is_process, |of| format::known(of.threads)),
    }
}
