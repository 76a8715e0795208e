//! A sweep as text: a table with a bar for each row, and one sentence about it. Fits 80 columns.

use super::{Sweep, SweepRow};
use crate::units::{counted, known, whole};

/// Cells of the longest bar.
const BAR: usize = 16;
/// Other programs are mentioned if they use this share of the CPUs.
pub const BUSY: f64 = 0.2;

/// Returns the heading of the table.
pub fn head() -> String {
    format!(
        "{:>7}{:>9}{:>11}  {:<BAR$}{:>6}{:>10}{:>7}{:>9}\n",
        "WORKERS", "FIRST", "BATCHES/S", "", "WAIT", "STEP", "CORES", "SPEED-UP"
    )
}

/// Returns all rows so far, with bars in proportion to the best of them.
pub fn text(sweep: &Sweep, ascii: bool) -> String {
    sweep
        .rows
        .iter()
        .map(|row| line(sweep, row, ascii))
        .collect()
}

fn line(sweep: &Sweep, row: &SweepRow, ascii: bool) -> String {
    let rate = |row: &SweepRow| row.steady.map(|steady| steady.batches_per_s);
    let best = sweep.rows.iter().filter_map(rate).fold(0.0, f64::max);
    let bar = rate(row).map_or_else(String::new, |rate| bar(rate / best, ascii));
    let speedup = known(sweep.speedup(row).map(|speedup| format!("{speedup:.2}x")));
    let mark = match &row.not_set {
        Some(_) => " ?",
        None if sweep.is_above_cpus(row) => " !",
        None => "",
    };
    format!(
        "{:>7}{:>9}{:>11}  {bar:<BAR$}{:>6}{:>10}{:>7}{speedup:>9}{mark}\n",
        row.tried.workers,
        format!("{:.0} ms", row.first_batch.as_secs_f64() * 1000.0),
        known(rate(row).map(|rate| format!("{rate:.1}"))),
        known(row.steady.map(|steady| steady.wait)),
        known(
            row.steady
                .map(|steady| format!("{:.1} ms", steady.step.as_secs_f64() * 1000.0))
        ),
        known(row.worker_cpu.map(|cores| format!("{cores:.1}"))),
    )
}

fn bar(share: f64, ascii: bool) -> String {
    let cell = if ascii { "#" } else { "▇" };
    cell.repeat(whole((share.clamp(0.0, 1.0) * BAR as f64).round()))
}

/// Whether the trainer waits so little with this number of workers that more cannot gain much.
fn hardly_waits(sweep: &Sweep, workers: u32) -> bool {
    const LITTLE: f64 = 0.05;
    let with = |row: &&SweepRow| row.tried.workers == workers;
    let mut steady = sweep.rows.iter().filter(with).filter_map(|row| row.steady);
    steady.any(|steady| steady.wait.0 < LITTLE)
}

/// Returns the conclusion below the table.
pub fn conclusion(sweep: &Sweep) -> String {
    let cpus = sweep.cpus_allowed;
    let mut lines = vec![String::new()];
    match (sweep.knee(), sweep.enough()) {
        (Some(knee), _) => lines.push(format!(
            "knee at {}: more add less than 5 %",
            counted(knee, "worker")
        )),
        (None, Some(best)) if hardly_waits(sweep, best) => lines.push(format!(
            "no knee up to {}, and the trainer hardly waits: more gain little",
            counted(best, "worker")
        )),
        (None, Some(best)) if best >= cpus && fills_the_cpus(sweep, best) => lines.push(format!(
            "no knee up to {}, and the CPUs allow no more at full speed",
            counted(best, "worker")
        )),
        (None, Some(best)) => lines.push(format!(
            "no knee up to {}: try more",
            counted(best, "worker")
        )),
        (None, None) if sweep.rows.iter().all(|row| row.not_set.is_some()) => {
            lines.push("no number of workers took effect: put {workers} in the command".to_owned());
        }
        (None, None) => {
            lines.push("no steady state reached: use longer runs (--for)".to_owned());
        }
    }
    if sweep.rows.iter().any(|row| sweep.is_above_cpus(row)) {
        lines.push(format!(
            "! more workers than the {} they may use: PyTorch also warns about this",
            counted(cpus, "CPU")
        ));
    }
    let others = sweep.rows.iter().filter_map(|row| row.others_cpu);
    let others = others.fold(0.0, f64::max);
    if others >= BUSY * f64::from(cpus) {
        lines.push(format!(
            "other programs used up to {others:.1} CPUs: repeat on a quieter machine"
        ));
    }
    let not_set = sweep.rows.iter().filter_map(|row| {
        let why = row.not_set.as_ref()?;
        Some(format!("? {}: {why}", counted(row.tried.workers, "worker")))
    });
    lines.extend(not_set);
    lines
        .push("FIRST: wait for the first batch, a start-up cost not included elsewhere".to_owned());
    lines.join("\n") + "\n"
}

/// Whether this many workers use all CPUs. Workers that mostly sleep do not; if their CPU time is unknown, they do.
fn fills_the_cpus(sweep: &Sweep, count: u32) -> bool {
    let row = sweep.rows.iter().find(|row| row.tried.workers == count);
    let cores = row.and_then(|row| row.worker_cpu);
    cores.is_none_or(|cores| cores >= 0.5 * f64::from(sweep.cpus_allowed))
}

/// Returns the rows with other prefetch factors; empty if none was tried.
pub fn prefetch(sweep: &Sweep) -> String {
    let name = |row: &SweepRow| known(row.tried.prefetch_factor);
    table("PREFETCH", &sweep.prefetch, name)
}

/// Returns the rows with pageable and with pinned memory; empty if that was not tried.
pub fn memory(sweep: &Sweep) -> String {
    let name = |row: &SweepRow| match row.tried.pin_memory {
        Some(true) => "pinned".to_owned(),
        Some(false) => "pageable".to_owned(),
        None => "n/a".to_owned(),
    };
    table("MEMORY", &sweep.memory, name)
}

fn table(title: &str, rows: &[SweepRow], name: impl Fn(&SweepRow) -> String) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = format!(
        "\n{title:<10}{:>9}{:>11}{:>7}{:>9}{:>9}\n",
        "WORKERS", "BATCHES/S", "WAIT", "STEP", "COPY"
    );
    let line = |row: &SweepRow| {
        let steady = row.steady;
        let copy = steady.and_then(|steady| steady.copy);
        let mark = if row.not_set.is_some() { " ?" } else { "" };
        format!(
            "{:<10}{:>9}{:>11}{:>7}{:>9}{:>9}{mark}\n",
            name(row),
            row.tried.workers,
            known(steady.map(|steady| format!("{:.1}", steady.batches_per_s))),
            known(steady.map(|steady| steady.wait)),
            known(steady.map(|steady| format!("{:.1} ms", steady.step.as_secs_f64() * 1000.0))),
            known(copy.map(|copy| format!("{:.2} ms", copy.as_secs_f64() * 1000.0))),
        )
    };
    let not_set = rows.iter().filter_map(|row| {
        let why = row.not_set.as_ref()?;
        Some(format!("? {}: {why}\n", name(row)))
    });
    std::iter::once(head)
        .chain(rows.iter().map(line))
        .chain(not_set)
        .collect()
}
