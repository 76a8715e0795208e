//! The report in Markdown, for an issue or a chat: what the screen shows, in tables.

use crate::model::Rates;
use crate::model::rates::{DiskRates, GpuRates, LoaderRates, RankRates};
use crate::report::{certainty, loss, ms, or_unknown, per_second, queue, wait_share};
use crate::sample::Gap;
use crate::units::Share;
use crate::verdict::Verdict;

/// A page that ends with a line end. `rates` are those of the verdict's window.
pub fn markdown(rates: Option<&Rates>, verdict: Option<&Verdict>, gaps: &[Gap]) -> String {
    let mut lines = vec![];
    let job = rates.and_then(|rates| rates.job.as_ref());
    match verdict {
        Some(verdict) => judgement(verdict, &mut lines),
        None => lines.push("# No verdict yet".to_owned()),
    }
    lines.push(String::new());
    if let (Some(rates), Some(job)) = (rates, job) {
        lines.push(format!(
            "{}, pid {}, access {:?}, the last {:.0} s{}",
            code(&job.command),
            job.key.pid,
            job.access,
            rates.seconds,
            if job.ended { " before it ended" } else { "" },
        ));
        for rank in &job.ranks {
            self::rank(rank, &mut lines);
        }
    }
    if let Some(rates) = rates {
        machine(rates, &mut lines);
    }
    let missing = verdict.iter().flat_map(|verdict| &verdict.missing);
    let missing = missing.map(|signal| (&signal.id, &signal.why, &signal.hint));
    let known: Vec<&String> = missing.clone().map(|(id, ..)| id).collect();
    let gaps = gaps.iter().filter(|gap| !known.contains(&&gap.source));
    let gaps = gaps.map(|gap| (&gap.source, &gap.reason, &gap.hint));
    let unseen: Vec<_> = missing.chain(gaps).collect();
    if !unseen.is_empty() {
        heading("Not seen", &mut lines);
    }
    for (what, why, hint) in unseen {
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!(" ({})", plain(hint))
        };
        lines.push(format!("- {}: {}{hint}", plain(what), plain(why)));
    }
    lines.push(String::new());
    lines.push(format!("pipetop {}", env!("CARGO_PKG_VERSION")));
    lines.push(String::new());
    lines.join("\n")
}

fn heading(text: &str, lines: &mut Vec<String>) {
    lines.extend([String::new(), format!("## {text}"), String::new()]);
}

fn judgement(verdict: &Verdict, lines: &mut Vec<String>) {
    lines.push(format!("# {}", verdict.kind.words()));
    lines.push(String::new());
    let cause = verdict
        .cause
        .map(|cause| format!("cause: {}", cause.words()));
    let parts = [Some(loss(verdict)), cause, Some(certainty(verdict))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let parts = parts.iter().filter(|part| !part.is_empty());
    lines.push(parts.map(|part| plain(part)).collect::<Vec<_>>().join(", "));
    lines.push(String::new());
    let advice = verdict.advice.iter().map(|advice| ("do", advice));
    let evidence = verdict.evidence.iter();
    let evidence = evidence.map(|fact| (if fact.supports { "for" } else { "but" }, &fact.text));
    let facts = advice.chain(evidence);
    lines.extend(facts.map(|(side, text)| format!("- **{side}** {}", plain(text))));
}

fn rank(rank: &RankRates, lines: &mut Vec<String>) {
    let name = rank
        .rank
        .map_or_else(|| "Trainer".to_owned(), |rank| format!("Rank {rank}"));
    heading(&name, lines);
    let step = rank.step;
    table(
        &["waits", "step", "wait", "load", "rate", "queue"],
        [vec![
            or_unknown(wait_share(rank)),
            ms(step.step_ms),
            ms(step.wait_ms),
            ms(step.load_ms),
            per_second(step.batches_per_s, "batches"),
            queue(rank),
        ]],
        lines,
    );
    if let Some(loader) = rank
        .busiest_loader()
        .filter(|loader| !loader.workers.is_empty())
    {
        lines.push(String::new());
        workers(loader, lines);
    }
}

fn workers(loader: &LoaderRates, lines: &mut Vec<String>) {
    let rows = loader.workers.iter().map(|worker| {
        let hottest = worker.activity.first();
        vec![
            worker.id.to_string(),
            worker.key.pid.to_string(),
            or_unknown(worker.cpu.map(Share)),
            or_unknown(worker.busy),
            or_unknown(worker.read),
            per_second(worker.batches_per_s, "batches"),
            ms(worker.load_ms),
            hottest.map_or_else(String::new, |hottest| {
                format!("{} {}", code(&hottest.name), hottest.share)
            }),
        ]
    });
    let names = ["worker", "pid", "CPU", "busy", "read", "rate", "load", "in"];
    table(&names, rows, lines);
}

fn machine(rates: &Rates, lines: &mut Vec<String>) {
    if !rates.gpus.is_empty() {
        heading("GPUs", lines);
        let names = ["GPU", "name", "util", "memory", "power", "temperature", ""];
        table(&names, rates.gpus.iter().map(gpu), lines);
    }
    let disks = rates.disks.iter().filter(|disk| disk.holds_job_files);
    let disks: Vec<Vec<String>> = disks.map(disk).collect();
    if !disks.is_empty() {
        heading("Disks", lines);
        table(&["disk", "read", "write", "util", "wait"], disks, lines);
    }
    heading("Host", lines);
    let host = &rates.host;
    let figures = vec![
        host.cpus.to_string(),
        or_unknown(host.cpu),
        or_unknown(host.pressure_cpu),
        or_unknown(host.pressure_io),
        or_unknown(host.pressure_memory),
    ];
    let names = ["CPUs", "busy", "pressure: CPU", "I/O", "memory"];
    table(&names, [figures], lines);
}

fn gpu(gpu: &GpuRates) -> Vec<String> {
    let now = &gpu.now;
    let whole = |value: Option<f64>, unit: &str| {
        or_unknown(value.map(|value| format!("{value:.0} {unit}")))
    };
    vec![
        now.index.to_string(),
        or_unknown(now.name.as_deref().map(plain)),
        whole(gpu.util_percent, "%"),
        format!(
            "{} of {}",
            or_unknown(now.mem_used),
            or_unknown(now.mem_total)
        ),
        whole(now.power_watts, "W"),
        whole(now.temperature_c, "C"),
        now.gap.as_deref().map(plain).unwrap_or_default(),
    ]
}

fn disk(disk: &DiskRates) -> Vec<String> {
    vec![
        plain(&disk.device),
        disk.read.to_string(),
        disk.write.to_string(),
        disk.util.to_string(),
        ms(disk.await_ms),
    ]
}

fn table(names: &[&str], rows: impl IntoIterator<Item = Vec<String>>, lines: &mut Vec<String>) {
    lines.push(format!("| {} |", names.join(" | ")));
    lines.push(format!("|{}", "---|".repeat(names.len())));
    lines.extend(
        rows.into_iter()
            .map(|row| format!("| {} |", row.join(" | "))),
    );
}

/// Without what Markdown would take for its own: names are chosen by others.
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

/// As code; a bar would end the cell of a table even there.
fn code(text: &str) -> String {
    let text = crate::units::printable(text);
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}
