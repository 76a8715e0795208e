//! Builds the tree from the job's ranks, loaders and workers, and from its other processes.
//!
//! Decides which process is below which, and in which order; does not depend on the screen size.

use std::cmp::Ordering;

use super::state::{Node, Toggle, TreeColumn};
use crate::config::Role;
use crate::job::script;
use crate::model::ProcessFigures;
use crate::model::processes::Figures;
use crate::model::rates::{JobRates, LoaderRates, RankRates, WorkerRates};
use crate::sample::{LoaderKind, ProcessRole, ProcessSeen, WorkerNow};
use crate::ui::glyphs::doing;
use crate::ui::{Attach, View};
use crate::units::{BytesPerSecond, Pid, ProcessKey, counted};

/// The thread in which PyTorch pins batches in memory.
const PIN_THREAD: &str = "pt_data_pin";

/// A line of the tree with everything below it.
#[derive(Debug, Clone)]
pub(super) struct Branch {
    pub(super) node: Node,
    /// The signs before it that lead from the lines above; set once it is a line.
    pub(super) guides: String,
    /// Its kind and number.
    pub(super) label: String,
    /// Additional text.
    pub(super) remark: String,
    pub(super) pid: Option<Pid>,
    pub(super) now: Option<(Role, &'static str)>,
    /// `None` = a line without figures.
    pub(super) figures: Option<Figures>,
    pub(super) toggle: Option<Toggle>,
    /// The lines below it are shown.
    pub(super) open: bool,
    pub(super) below: Vec<Self>,
    /// Siblings of a lower class come first; within a class the chosen order applies.
    class: u8,
}

impl Branch {
    fn new(node: Node, class: u8, label: impl Into<String>) -> Self {
        Self {
            node,
            guides: String::new(),
            label: label.into(),
            remark: String::new(),
            pid: None,
            now: None,
            figures: None,
            toggle: None,
            open: true,
            below: Vec::new(),
            class,
        }
    }

    fn note(process: Option<ProcessKey>, text: impl Into<String>) -> Self {
        Self::new(Node::Note(process), u8::MAX, text)
    }

    /// Sorts siblings at every depth. Equal lines keep their order.
    fn sort(&mut self, order: TreeColumn, reversed: bool) {
        self.below.sort_by(|a, b| {
            let by_figure = || most_first(a.steps(order), b.steps(order), reversed);
            a.class.cmp(&b.class).then_with(by_figure)
        });
        for branch in &mut self.below {
            branch.sort(order, reversed);
        }
    }

    /// Returns the sort figure, rounded so coarsely that the noise of a steady job does not change the order.
    #[expect(clippy::cast_possible_truncation, reason = "steps of figures are few")]
    fn steps(&self, order: TreeColumn) -> Option<i64> {
        let figures = self.figures?;
        let twentieths = |share: f64| (20.0 * share).round() as i64;
        let by_quarters = |bytes: f64| (bytes.max(1.0).ln() / 1.25_f64.ln()).round() as i64;
        match order {
            TreeColumn::Cpu => figures.cpu.map(twentieths),
            TreeColumn::Delay => figures.delay.map(|share| twentieths(share.0)),
            TreeColumn::Read => figures.read.map(|rate| by_quarters(rate.0)),
            TreeColumn::Memory => figures.rss.map(|bytes| by_quarters(bytes.0 as f64)),
            TreeColumn::Pid | TreeColumn::Now | TreeColumn::Threads => None,
        }
    }

    /// Keeps the lines that a filter matches, and those above them.
    fn keep(&mut self, finds: &impl Fn(&Self) -> bool) -> bool {
        self.below.retain_mut(|branch| branch.keep(finds));
        self.open |= !self.below.is_empty();
        finds(self) || !self.below.is_empty()
    }
}

/// Compares two figures; unknown ones come last in either direction.
fn most_first(a: Option<i64>, b: Option<i64>, reversed: bool) -> Ordering {
    let (of_known, both) = (a.is_none().cmp(&b.is_none()), b.cmp(&a));
    of_known.then(if reversed { both.reverse() } else { both })
}

/// Returns the whole tree in order, filtered. `None` while there is no job.
pub(super) fn build(view: &View<'_>) -> Option<Branch> {
    let job = view.latest?.job.as_ref()?;
    let builder = TreeBuilder {
        view,
        tree: view.processes,
        job,
    };
    let mut root = builder.job();
    let state = &view.state.tree;
    root.sort(state.order, state.reversed);
    if state.filter.is_set() {
        root.keep(&|branch| {
            let pid = branch.pid.map(|pid| pid.to_string()).unwrap_or_default();
            let now = branch.now.map_or("", |(_, now)| now);
            let text = format!("{} {} {now}", branch.label, branch.remark);
            state.filter.matches_line(&text, &pid)
        });
    }
    Some(root)
}

/// Builds the tree.
struct TreeBuilder<'a> {
    view: &'a View<'a>,
    tree: &'a ProcessFigures,
    job: &'a JobRates,
}

impl TreeBuilder<'_> {
    fn job(&self) -> Branch {
        let name = script(&self.job.command);
        let mut root = Branch::new(Node::Job, 0, "job");
        root.remark = name;
        let launchers = self.others(|seen| seen.role == ProcessRole::Launcher);
        root.below.extend(launchers.map(|seen| self.other(seen, 0)));
        root.below
            .extend(self.job.ranks.iter().map(|rank| self.rank(rank)));
        root.figures = Some(sum(&self.tree.figures.values()));
        root.below
            .extend(self.missing().map(|text| Branch::note(None, text)));
        self.fold(root)
    }

    /// Returns why processes other than ranks and workers are missing.
    fn missing(&self) -> Option<String> {
        let more = self.tree.left_out;
        if more > 0 {
            return Some(format!(
                "and at least {more} more processes, too many to read"
            ));
        }
        if !self.tree.others.is_empty() {
            return None;
        }
        Some(format!("other processes: {}", self.missing_reason()))
    }

    fn missing_reason(&self) -> &'static str {
        if self.view.state.replay.is_some() {
            "not recorded"
        } else if self.view.past.is_some() {
            "known only for now"
        } else if *self.view.attach == Attach::Ended {
            "the job has ended"
        } else {
            "read with the next sample"
        }
    }

    fn rank(&self, rank: &RankRates) -> Branch {
        let mut branch = self.process(rank.key, 1, format!("rank {}", rank.number));
        branch.now = Some(state(rank.state));
        let loaders = rank.loaders.iter().map(|loader| self.loader(rank, loader));
        branch.below.extend(loaders);
        self.add_children(branch, rank.key)
    }

    fn loader(&self, rank: &RankRates, loader: &LoaderRates) -> Branch {
        let mut branch = Branch::new(Node::Loader(rank.key, loader.id), 2, "loader");
        branch.remark = match loader.kind {
            LoaderKind::PytorchMain => "in the main thread".to_owned(),
            LoaderKind::Reported => "as the job reports".to_owned(),
            LoaderKind::Other if loader.workers.is_empty() => loader
                .name
                .clone()
                .unwrap_or_else(|| "the program's own".to_owned()),
            LoaderKind::PytorchProcesses
            | LoaderKind::Processes
            | LoaderKind::Builtin
            | LoaderKind::Other => counted(loader.workers.len(), "worker"),
        };
        branch.below = loader
            .workers
            .iter()
            .filter(|worker| !worker.thread)
            .map(|worker| self.worker(worker))
            .collect();
        if !branch.below.is_empty() {
            branch.figures = Some(sum(&branch
                .below
                .iter()
                .filter_map(|worker| worker.figures.as_ref())));
        }
        self.fold(branch)
    }

    fn worker(&self, worker: &WorkerRates) -> Branch {
        let mut branch = self.process(worker.key, 3, format!("worker {}", worker.id));
        let (paint, word, _) = doing(worker.now, self.view.glyphs());
        branch.now = Some((paint, word));
        if worker.now == WorkerNow::Unknown {
            let figures = self.figures(worker.key);
            branch.now = figures.map(|figures| state(figures.state));
        }
        self.add_children(branch, worker.key)
    }

    /// Returns the branch of a process that is neither a rank nor a worker.
    fn other(&self, seen: &ProcessSeen, class: u8) -> Branch {
        let label = match seen.role {
            ProcessRole::Launcher => "launcher",
            ProcessRole::ForkServer => "fork server",
            ProcessRole::ResourceTracker => "resource tracker",
            ProcessRole::Other => "process",
        };
        let mut branch = self.process(seen.key, class, label);
        branch.remark.clone_from(&seen.name);
        branch.now = Some(state(
            self.figures(seen.key).and_then(|figures| figures.state),
        ));
        if seen.role == ProcessRole::Launcher {
            // The processes it started are the ranks, which are beside it in the tree.
            return self.with_threads(branch, seen.key);
        }
        self.add_children(branch, seen.key)
    }

    fn process(&self, key: ProcessKey, class: u8, label: impl Into<String>) -> Branch {
        let mut branch = Branch::new(Node::Process(key), class, label);
        branch.pid = Some(key.pid);
        branch.figures = Some(self.figures(key).unwrap_or_default());
        branch
    }

    fn figures(&self, key: ProcessKey) -> Option<Figures> {
        self.tree.figures.get(&key).copied()
    }

    /// Returns the processes of this kind among those read for the tree.
    fn others(&self, which: impl Fn(&ProcessSeen) -> bool) -> impl Iterator<Item = &ProcessSeen> {
        let others = self.tree.others.iter();
        others.filter(move |seen| which(seen))
    }

    fn has_its_own_line(&self, key: ProcessKey) -> bool {
        let mut ranks = self.job.ranks.iter();
        ranks.any(|rank| rank.key == key || rank.workers().any(|worker| worker.key == key))
    }

    /// Adds the children of a process and its threads below it.
    fn add_children(&self, mut branch: Branch, key: ProcessKey) -> Branch {
        let children = self.others(|seen| {
            let below = seen.parent == key.pid && seen.key.pid != key.pid;
            below && seen.role != ProcessRole::Launcher && !self.has_its_own_line(seen.key)
        });
        branch
            .below
            .extend(children.map(|seen| self.other(seen, 4)));
        self.with_threads(branch, key)
    }

    /// Adds threads directly below a process that has no other lines there, otherwise in a branch of their own.
    fn with_threads(&self, mut branch: Branch, key: ProcessKey) -> Branch {
        let open = self.view.state.tree.opened.contains(&key);
        let threads = if open { self.threads(key) } else { Vec::new() };
        if branch.below.is_empty() {
            branch.toggle = Some(Toggle::Threads(key));
            (branch.open, branch.below) = (open, threads);
            return branch;
        }
        let mut group = Branch::new(Node::Threads(key), 5, "threads");
        group.toggle = Some(Toggle::Threads(key));
        (group.open, group.below) = (open, threads);
        let count = self.figures(key).and_then(|figures| figures.threads);
        group.remark = count.map(|count| count.to_string()).unwrap_or_default();
        branch.below.push(group);
        self.fold(branch)
    }

    fn threads(&self, key: ProcessKey) -> Vec<Branch> {
        let Some(read) = self.tree.threads.get(&key) else {
            return vec![Branch::note(
                Some(key),
                format!("threads: {}", self.missing_reason()),
            )];
        };
        let threads = read.threads.iter().map(|(thread, name, figures)| {
            let mut branch = Branch::new(Node::Thread(key, *thread), 6, name.as_str());
            branch.pid = Some(thread.pid);
            branch.now = Some(state(figures.state));
            branch.figures = Some(*figures);
            if thread.pid == key.pid {
                "main thread".clone_into(&mut branch.remark);
            } else if name == PIN_THREAD {
                "pins batches in memory".clone_into(&mut branch.remark);
            }
            branch
        });
        let mut threads: Vec<Branch> = threads.collect();
        if read.left_out > 0 {
            let text = format!("and {} more threads, too many to read", read.left_out);
            threads.push(Branch::note(Some(key), text));
        }
        threads
    }

    /// Makes a branch foldable if there is anything below it.
    fn fold(&self, mut branch: Branch) -> Branch {
        if !branch.below.is_empty() {
            branch.toggle = Some(Toggle::Fold(branch.node));
            branch.open = !self.view.state.tree.folded.contains(&branch.node);
        }
        branch
    }
}

/// Sums CPU and reads; `None` if one of them is unknown. Memory is not summed: processes share it.
fn sum<'a>(parts: &(impl Iterator<Item = &'a Figures> + Clone)) -> Figures {
    let all = |of: fn(&Figures) -> Option<f64>| {
        parts.clone().next()?;
        parts.clone().map(of).sum::<Option<f64>>()
    };
    Figures {
        cpu: all(|figures| figures.cpu),
        read: all(|figures| Some(figures.read?.0)).map(BytesPerSecond),
        ..Figures::default()
    }
}

/// Returns role and word for the kernel's state letter.
fn state(state: Option<char>) -> (Role, &'static str) {
    match state {
        Some('R') => (Role::Cpu, "active"),
        Some('S' | 'I') => (Role::Wait, "asleep"),
        Some('D') => (Role::Read, "blocked"),
        Some('T' | 't') => (Role::Trouble, "stopped"),
        Some('Z' | 'X') => (Role::Trouble, "ended"),
        Some(_) | None => (Role::Unknown, "n/a"),
    }
}
