//! The report in Markdown, for an issue or a chat, with the figures in tables.

use super::format;
use crate::report::{GpuReport, RankReport, Report, WorkerReport};
use crate::units::known;

/// Returns a page that ends with a line end.
pub(crate) fn markdown(report: &Report) -> String {
    let mut lines = judgement(report);
    lines.push(String::new());
    if let Some(job) = &report.job {
        lines.push(format!(
            "{}, pid {}{}, access {}, the last {:.0} s{}",
            code(&job.command),
            job.pid,
            format::run(job).map_or_else(String::new, |run| format!(", {}", plain(run))),
            known(report.window.access.map(|access| format!("{access:?}"))),
            report.window.seconds,
            if job.ended { " before it ended" } else { "" },
        ));
        for (number, rank) in job.numbered_ranks() {
            self::rank(number, rank, &mut lines);
        }
    }
    machine(report, &mut lines);
    let unseen = format::unseen(report);
    if !unseen.is_empty() {
        heading("Not seen", &mut lines);
    }
    lines.extend(unseen.iter().map(|text| format!("- {}", plain(text))));
    lines.push(String::new());
    lines.push(format!("pipetop {}", report.version));
    lines.push(String::new());
    lines.join("\n")
}

fn heading(text: &str, lines: &mut Vec<String>) {
    lines.extend([String::new(), format!("## {text}"), String::new()]);
}

fn judgement(report: &Report) -> Vec<String> {
    let verdict = &report.verdict;
    let parts: Vec<String> = verdict.headline.parts().map(|part| plain(&part)).collect();
    let mut lines = vec![
        format!("# {}", verdict.headline.kind),
        String::new(),
        parts.join(", "),
        String::new(),
    ];
    let reasons = format::reasons(verdict);
    lines.extend(reasons.map(|(side, text)| format!("- **{side}** {}", plain(text))));
    lines
}

fn rank(number: Option<u32>, rank: &RankReport, lines: &mut Vec<String>) {
    let name = number.map_or_else(|| "Trainer".to_owned(), |number| format!("Rank {number}"));
    heading(&name, lines);
    let mut figures = format::rank(rank).to_vec();
    figures.push(format::queue(rank.queue.as_ref()));
    let names = ["waits", "step", "wait", "load", "rate", "queue"];
    table(&names, [figures], lines);
    if !rank.workers.is_empty() {
        lines.push(String::new());
        let names = ["worker", "pid", "CPU", "busy", "read", "rate", "load", "in"];
        table(&names, rank.workers.iter().map(worker), lines);
    }
}

fn worker(worker: &WorkerReport) -> Vec<String> {
    let hottest = worker.activity.first();
    let hottest = hottest.map(|hottest| format!("{} {}", code(&hottest.name), hottest.share));
    let mut cells = vec![worker.id.to_string(), worker.pid.to_string()];
    cells.extend(format::worker(worker));
    cells.push(hottest.unwrap_or_default());
    cells
}

fn machine(report: &Report, lines: &mut Vec<String>) {
    if !report.gpus.is_empty() {
        heading("GPUs", lines);
        let names = ["GPU", "name", "util", "memory", "power", "temperature", ""];
        table(&names, report.gpus.iter().map(gpu), lines);
    }
    let disks = format::disks(report).map(|disk| {
        let mut cells = vec![plain(&disk.device)];
        cells.extend(format::disk(disk));
        cells
    });
    let disks: Vec<Vec<String>> = disks.collect();
    if !disks.is_empty() {
        heading("Disks", lines);
        table(&["disk", "read", "write", "util", "wait"], disks, lines);
    }
    if let Some(cpus) = report.host.cpus {
        heading("Host", lines);
        let mut figures = vec![cpus.to_string()];
        figures.extend(format::host(&report.host));
        let names = ["CPUs", "busy", "pressure: CPU", "I/O", "memory"];
        table(&names, [figures], lines);
    }
}

fn gpu(gpu: &GpuReport) -> Vec<String> {
    let name = known(gpu.name.as_deref().map(plain));
    let mut cells = vec![gpu.index.to_string(), name];
    cells.extend(format::gpu(gpu));
    cells.push(gpu.gap.as_deref().map(plain).unwrap_or_default());
    cells
}

fn table(names: &[&str], rows: impl IntoIterator<Item = Vec<String>>, lines: &mut Vec<String>) {
    lines.push(format!("| {} |", names.join(" | ")));
    lines.push(format!("|{}", "---|".repeat(names.len())));
    lines.extend(
        rows.into_iter()
            .map(|row| format!("| {} |", row.join(" | "))),
    );
}

/// Escapes text for Markdown: names may contain anything.
fn plain(text: &str) -> String {
    let text = crate::units::printable(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_{}[]<>#|~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Formats text as code. A bar must be escaped: even in code it would end a table cell.
fn code(text: &str) -> String {
    let text = crate::units::printable(text);
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}
