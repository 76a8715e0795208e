//! Runs pipetop for hours while everything it watches changes (`tests/support/src/soak.rs`). Prints the resources that
//! it uses after each round, and their growth per hour. `cargo bench --bench soak [-- MINUTES]`.
//!
//! If an interpreter of `PIPETOP_TORCH_PYTHONS` has torch, half of the jobs use `PyTorch` with the first that has.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use support::machine::torches;
use support::soak::{Usage, soak};

/// Default length of the run.
const MINUTES: u32 = 120;
/// The first one in this many rounds does not count, as the history fills up in that part.
const WARM_UP: usize = 4;

fn main() {
    // Cargo adds a flag to the arguments, which is skipped.
    let asked = std::env::args().find_map(|word| word.parse().ok());
    let minutes: u32 = asked.unwrap_or(MINUTES);
    let python = torches().first().map(|python| python.path.as_str());
    println!("| minute | memory, MiB | descriptors | threads | CPU, % of a core |");
    println!("|---|---|---|---|---|");
    let mut seen = Vec::new();
    soak(minutes, python, |usage| {
        println!(
            "| {} | {:.2} | {} | {} | {:.2} |",
            usage.at.as_secs() / 60,
            memory(usage),
            usage.descriptors,
            usage.threads,
            100.0 * usage.cpu_share,
        );
        seen.push(*usage);
    });
    let kept = &seen[seen.len() / WARM_UP..];
    println!(
        "growth in an hour, of the last {} minutes: memory {:+.2} MiB, descriptors {:+.2}, threads {:+.2}, CPU {:+.2} %",
        kept.len(),
        growth(kept, memory),
        growth(kept, |usage| usage.descriptors as f64),
        growth(kept, |usage| usage.threads as f64),
        growth(kept, |usage| 100.0 * usage.cpu_share),
    );
}

fn memory(usage: &Usage) -> f64 {
    usage.resident as f64 / f64::from(1 << 20)
}

/// Returns the slope of the least-squares line through the rounds.
fn growth(rounds: &[Usage], figure: impl Fn(&Usage) -> f64) -> f64 {
    let count = rounds.len() as f64;
    let hours = |usage: &Usage| usage.at.as_secs_f64() / 3600.0;
    let mean = |of: &dyn Fn(&Usage) -> f64| rounds.iter().map(of).sum::<f64>() / count;
    let (time, level) = (mean(&hours), mean(&figure));
    let together: f64 = rounds
        .iter()
        .map(|usage| (hours(usage) - time) * (figure(usage) - level))
        .sum();
    let alone: f64 = rounds
        .iter()
        .map(|usage| (hours(usage) - time).powi(2))
        .sum();
    together / alone
}
