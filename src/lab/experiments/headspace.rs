//! Measures how much faster training would be if loading took no time: runs the same job normally and with a few
//! batches that are reused in turn, and compares the time of a step.
//!
//! The time of a step is the median over blocks of steps. Waits are periodic, so a block is long enough for a whole
//! turn of the workers. The confidence interval is that of the median and assumes no distribution.

pub mod command;

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::{milliseconds, rounded, taken};
use crate::error::Hinted;
use crate::options::value;
use crate::probe::Step;
use crate::units::{Share, sorted, whole, without_sign};

/// Blocks that the steps of one run are divided into.
const BLOCKS: usize = 10;
/// A gain below this is not worth a change of the loader.
const MIN_GAIN: f64 = 0.05;
/// An interval wider than this is reported as wide.
const WIDE: f64 = 0.1;

/// How to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Plan {
    /// Batches to cycle through in the cached run
    #[arg(long, value_name = "N", default_value = "10", value_parser = value::whole(1..=1000_u32))]
    pub cache_batches: u32,

    /// Warm-up steps before measuring, in both runs
    #[arg(long, value_name = "N", default_value = "100", value_parser = value::whole(1..=1_000_000_u64))]
    pub after: u64,

    /// Steps to measure in each run
    #[arg(long, value_name = "N", default_value = "100", value_parser = value::whole(10..=10_000_000_u64))]
    pub steps: u64,

    /// Pairs of runs, one normal and one with cached batches
    #[arg(long, value_name = "N", default_value = "3", value_parser = value::whole(1..=100_u32))]
    pub rounds: u32,

    /// Steps of your whole training, for the total saving
    #[arg(long, value_name = "N", default_value = "100000", value_parser = value::whole(1..=u64::MAX))]
    pub run_steps: u64,
}

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredHeadspace {
    /// Time from one step to the next, in normal runs and with cached batches.
    pub now: Duration,
    pub free: Duration,
    /// Interval of the gain's share at 95 %.
    pub low: f64,
    pub high: f64,
    /// Measured steps of each run.
    pub steps: u64,
    /// Steps of the user's whole training.
    pub run_steps: u64,
    /// Notes on what the figures cover, a sentence each. `None` = the built-in job.
    pub notes: Option<Vec<String>>,
}

impl MeasuredHeadspace {
    /// Returns the time that a step would save; negative if the cached run was slower.
    pub fn gain_ms(&self) -> f64 {
        (self.now.as_secs_f64() - self.free.as_secs_f64()) * 1000.0
    }

    pub fn gain_share(&self) -> f64 {
        self.gain_ms() / (self.now.as_secs_f64() * 1000.0).max(f64::MIN_POSITIVE)
    }

    /// Returns how many steps would show the smallest gain worth mentioning: four times as many halve the interval.
    /// `None` if it is already clear that there is a gain, a loss, or none worth mentioning.
    fn steps_needed(&self) -> Option<u64> {
        let unclear = self.low < 0.0 && self.high > MIN_GAIN;
        // The gain itself is not known, so the number must not depend on it.
        let times = (self.high - self.low) / 2.0 / MIN_GAIN;
        let needed = self.steps as f64 * times.clamp(1.5, 100.0).powi(2);
        // Rounded up to 1, 2 or 5 and zeros, so that the next try asks for about as many.
        let zeros = 10_f64.powf(needed.log10().floor());
        let first = [1.0, 2.0, 5.0, 10.0];
        let round = first.iter().find(|first| **first * zeros >= needed);
        unclear.then(|| whole(round.unwrap_or(&10.0) * zeros) as u64)
    }

    pub fn hours_saved(&self) -> f64 {
        self.gain_ms() / 1000.0 * self.run_steps as f64 / 3600.0
    }
}

/// Returns mean times of a step in equal blocks, in seconds. Each block has a multiple of `turn` steps.
fn blocks(steps: &[Step], turn: usize) -> Vec<f64> {
    let length = (steps.len() / BLOCKS).max(turn).next_multiple_of(turn);
    let blocks = steps.chunks_exact(length);
    blocks
        .map(|block| taken(block).as_secs_f64() / length as f64)
        .collect()
}

fn too_few() -> Hinted {
    Hinted::new(
        "too few steps to compare",
        "measure more steps, as in --steps 200",
    )
}

/// Returns medians, and the interval of their ratio. `None` if either side has no block.
fn judge(
    now: Vec<f64>,
    free: Vec<f64>,
    (steps, run_steps): (u64, u64),
) -> Option<MeasuredHeadspace> {
    let (now_low, now_median, now_high) = median(&sorted(now))?;
    let (free_low, free_median, free_high) = median(&sorted(free))?;
    let time = |seconds| Duration::try_from_secs_f64(seconds).ok();
    Some(MeasuredHeadspace {
        now: time(now_median)?,
        free: time(free_median)?,
        low: 1.0 - free_high / now_low,
        high: 1.0 - free_low / now_high,
        steps,
        run_steps,
        notes: None,
    })
}

/// Returns the median of sorted values, between the ends of its interval at 95 %: the values whose ranks are two
/// standard deviations of a binomial distribution from the middle.
fn median(sorted: &[f64]) -> Option<(f64, f64, f64)> {
    let count = sorted.len();
    let middle = *sorted.get(count / 2)?;
    let apart = whole((count as f64).sqrt().ceil());
    let low = (count / 2).saturating_sub(apart);
    let high = (count / 2 + apart).min(count - 1);
    Some((sorted[low], middle, sorted[high]))
}

/// Returns the result as text.
pub fn text(headspace: &MeasuredHeadspace) -> String {
    let ms = |time: Duration| (time.as_secs_f64() * 10_000.0).round() / 10.0;
    let (now, free) = (ms(headspace.now), ms(headspace.free));
    let advice = match headspace.steps_needed() {
        Some(steps) => format!(
            "{} steps are too few to tell if loading costs time: the range includes 0;\nuse --steps {steps}, or a quieter machine",
            headspace.steps
        ),
        None if headspace.gain_share() < MIN_GAIN => {
            "below 5 %: optimise the model, not the loader".to_owned()
        }
        None => "this is the most that a faster loader can gain".to_owned(),
    };
    let mut text = format!(
        "\
step now          {:>8.1} ms
instant loading   {:>8.1} ms
gain              {:>8.1} ms   {} of the time ({:.0} to {:.0} %)
                  {:>8.1} h    over {} steps
{advice}
",
        now,
        free,
        // Of the rounded figures above it, so that the lines add up.
        without_sign(now - free, 1),
        Share(headspace.gain_share()),
        without_sign(headspace.low * 100.0, 0),
        without_sign(headspace.high * 100.0, 0),
        without_sign(headspace.hours_saved(), 1),
        headspace.run_steps,
    );
    if headspace.steps_needed().is_none() && headspace.high - headspace.low > WIDE {
        text += "the range is wide: use more --steps, more --rounds or a quieter machine\n";
    }
    text += "in the cached run the loader uses no CPU time either: if CPUs are scarce,\nthat is part of the gain\n";
    for note in headspace.notes.iter().flatten() {
        text.extend([note, "\n"]);
    }
    if headspace.notes.is_some() {
        text += "each run was stopped after its measurement, the cached ones too, in which the\nmodel learns nothing\n";
    }
    text
}

/// Returns the document for `--json`.
pub fn json(headspace: &MeasuredHeadspace) -> Value {
    let mut document = json!({
        "step_ms_now": milliseconds(headspace.now),
        "step_ms_free": milliseconds(headspace.free),
        "gain_ms": rounded(headspace.gain_ms()),
        "gain_share": rounded(headspace.gain_share()),
        "interval": [rounded(headspace.low), rounded(headspace.high)],
        "hours_saved": rounded(headspace.hours_saved()),
        "run_steps": headspace.run_steps,
    });
    if let Some(notes) = &headspace.notes {
        let lines = notes.iter().map(|note| note.replace('\n', " "));
        document["notes"] = lines.collect();
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_figures() {
        // 230 ms a step of which 30 ms are waits, over 204,000 steps.
        let blocks = |ms: f64| {
            (0..10)
                .map(|at| (ms + f64::from(at % 3)) / 1000.0)
                .collect()
        };
        let found = judge(blocks(229.0), blocks(199.0), (200, 204_000)).unwrap();
        assert!((found.gain_ms() - 30.0).abs() < 1e-6);
        assert!((found.gain_share() - 0.13).abs() < 0.002);
        assert!((found.hours_saved() - 1.7).abs() < 0.01);
        assert!(found.low <= found.gain_share() && found.gain_share() <= found.high);
        assert!(text(&found).contains("13 %"));
        assert!(!text(&found).contains("the range is wide"));
        let noisy = MeasuredHeadspace { low: 0.01, ..found };
        assert!(text(&noisy).contains("the range is wide"));
    }

    #[test]
    fn too_few_steps_are_reported_with_the_number_needed() {
        let time = Duration::from_millis;
        let found = MeasuredHeadspace {
            now: time(44),
            free: time(51),
            low: -0.43,
            high: 0.11,
            steps: 20,
            run_steps: 1000,
            notes: None,
        };
        let said = text(&found);
        assert!(said.contains("20 steps are too few"), "{said}");
        assert!(said.contains("--steps 1000,"), "{said}");
        assert!(!said.contains("optimise the model"), "{said}");
        assert!(said.lines().all(|line| line.len() <= 80), "{said}");
        // The next try has another gain and about the same range.
        let next = MeasuredHeadspace {
            free: time(44),
            low: -0.28,
            high: 0.3,
            ..found.clone()
        };
        assert!(text(&next).contains("--steps 1000,"), "{}", text(&next));
        // Certainly no gain worth mentioning.
        let clear = MeasuredHeadspace {
            low: -0.02,
            high: 0.01,
            ..found
        };
        assert!(text(&clear).contains("optimise the model"));
    }

    #[test]
    fn the_gain_is_that_of_the_figures_above_it() {
        let time = Duration::from_micros;
        let found = MeasuredHeadspace {
            now: time(30_060),
            free: time(20_840),
            low: 0.28,
            high: 0.35,
            steps: 100,
            run_steps: 1000,
            notes: None,
        };
        let said = text(&found);
        for figure in ["30.1 ms", "20.8 ms", "9.3 ms"] {
            assert!(said.contains(figure), "{said}");
        }
    }

    #[test]
    fn a_negligible_gain_advises_the_model() {
        let found = judge(vec![0.102; 5], vec![0.1; 5], (200, 1000)).unwrap();
        assert!(text(&found).contains("optimise the model"));
        assert_eq!(judge(vec![], vec![0.1], (1, 1)), None);
    }
}
