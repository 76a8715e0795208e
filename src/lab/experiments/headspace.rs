//! What would free loading bring? Runs the same job as it is and with batches that are handed over again and
//! again, in turn, and compares the time of a step.
//!
//! The time of a step is the median over blocks of steps, as waits come in a rhythm: a block is long enough to
//! hold a whole turn of the workers. Its interval is the one of the medians, free of assumptions.

pub mod command;

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::{milliseconds, rounded, taken};
use crate::error::Hinted;
use crate::launch::Cache;
use crate::probe::Step;
use crate::units::{Share, without_sign};

/// Blocks that the steps of one run are cut into.
const BLOCKS: usize = 10;
/// A gain below this is not worth a change of the loader.
const WORTH: f64 = 0.05;
/// Ends of an interval that are further apart leave much open.
const WIDE: f64 = 0.1;

/// How to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Batches that are handed over in turn, and those that are loaded before.
    pub cache: Cache,
    /// Steps of each run that are measured.
    pub steps: u64,
    /// Pairs of a run as it is and a run with cached batches.
    pub rounds: u32,
    /// Steps of the user's whole training.
    pub run_steps: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Headspace {
    /// Time from one step to the next, as it is and with loading for free.
    pub now: Duration,
    pub free: Duration,
    /// 95 % of the gain's share.
    pub low: f64,
    pub high: f64,
    /// Steps of each run that were measured.
    pub steps: u64,
    /// Steps of the user's whole training.
    pub run_steps: u64,
    /// What the figures are of, a sentence each. `None` = of the built-in job.
    pub notes: Option<Vec<String>>,
}

impl Headspace {
    /// Time that a step would save; negative where the cached run was slower.
    pub fn gain_ms(&self) -> f64 {
        (self.now.as_secs_f64() - self.free.as_secs_f64()) * 1000.0
    }

    pub fn gain_share(&self) -> f64 {
        self.gain_ms() / (self.now.as_secs_f64() * 1000.0).max(f64::MIN_POSITIVE)
    }

    /// Steps that would tell, where these do not: an interval is half as wide with four times as many. `None` where it
    /// is clear that there is a gain, a loss, or none worth mentioning.
    fn steps_needed(&self) -> Option<u64> {
        let unclear = self.low < 0.0 && self.high > WORTH;
        let apart = (self.high - self.low) / 2.0;
        let times = apart / self.gain_share().abs().max(WORTH);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive and bounded"
        )]
        let needed = (self.steps as f64 * times.clamp(1.5, 100.0).powi(2)) as u64;
        // A plan, not a measurement.
        unclear.then(|| needed.next_multiple_of(100))
    }

    pub fn hours_saved(&self) -> f64 {
        self.gain_ms() / 1000.0 * self.run_steps as f64 / 3600.0
    }
}

/// Mean times of a step in equal blocks, in seconds. Each block holds whole turns of so many steps.
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

/// Medians, and the interval of their ratio. `None` where either side has no block.
fn judge(
    mut now: Vec<f64>,
    mut free: Vec<f64>,
    (steps, run_steps): (u64, u64),
) -> Option<Headspace> {
    now.sort_by(f64::total_cmp);
    free.sort_by(f64::total_cmp);
    let (now_low, now_median, now_high) = median(&now)?;
    let (free_low, free_median, free_high) = median(&free)?;
    let time = |seconds| Duration::try_from_secs_f64(seconds).ok();
    Some(Headspace {
        now: time(now_median)?,
        free: time(free_median)?,
        low: 1.0 - free_high / now_low,
        high: 1.0 - free_low / now_high,
        steps,
        run_steps,
        notes: None,
    })
}

/// The middle of sorted values, between the ends of its interval at 95 %: those values whose ranks are two
/// standard deviations of a binomial from the middle.
fn median(sorted: &[f64]) -> Option<(f64, f64, f64)> {
    let count = sorted.len();
    let middle = *sorted.get(count / 2)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a root of a length"
    )]
    let apart = (count as f64).sqrt().ceil() as usize;
    let low = (count / 2).saturating_sub(apart);
    let high = (count / 2 + apart).min(count - 1);
    Some((sorted[low], middle, sorted[high]))
}

/// In words.
pub fn text(headspace: &Headspace) -> String {
    let ms = |time: Duration| format!("{:>8.1} ms", time.as_secs_f64() * 1000.0);
    let (low, high) = (headspace.low * 100.0, headspace.high * 100.0);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "step now          {}", ms(headspace.now));
    let _ = writeln!(text, "instant loading   {}", ms(headspace.free));
    let _ = writeln!(
        text,
        "gain              {:>8.1} ms   {} of the time ({:.0} to {:.0} %)",
        without_sign(headspace.gain_ms(), 1),
        Share(headspace.gain_share()),
        without_sign(low, 0),
        without_sign(high, 0),
    );
    let _ = writeln!(
        text,
        "                  {:>8.1} h    over {} steps",
        without_sign(headspace.hours_saved(), 1),
        headspace.run_steps
    );
    let advice = match headspace.steps_needed() {
        Some(steps) => format!(
            "{} steps cannot tell whether loading costs time, as the range holds 0:\nuse --steps {steps}, or a quieter machine",
            headspace.steps
        ),
        None if headspace.gain_share() < WORTH => {
            "below 5 %: optimise the model, not the loader".to_owned()
        }
        None => "this is the most that a faster loader can gain".to_owned(),
    };
    let _ = writeln!(text, "{advice}");
    if headspace.steps_needed().is_none() && headspace.high - headspace.low > WIDE {
        let _ = writeln!(
            text,
            "the range is wide: use more --steps, more --rounds or a quieter machine"
        );
    }
    let _ = writeln!(
        text,
        "in the cached run the loader uses no CPU time either: if CPUs are scarce,\nthat is part of the gain"
    );
    for note in headspace.notes.iter().flatten() {
        let _ = writeln!(text, "{note}");
    }
    if headspace.notes.is_some() {
        let _ = writeln!(
            text,
            "each run was stopped after its measurement, the cached ones too, in which the\nmodel learns nothing"
        );
    }
    text
}

/// The document of `--json`.
pub fn json(headspace: &Headspace) -> Value {
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
        let noisy = Headspace { low: 0.01, ..found };
        assert!(text(&noisy).contains("the range is wide"));
    }

    #[test]
    fn too_few_steps_to_tell_say_so_and_how_many_would() {
        let time = Duration::from_millis;
        let found = Headspace {
            now: time(44),
            free: time(51),
            low: -0.43,
            high: 0.11,
            steps: 20,
            run_steps: 1000,
            notes: None,
        };
        let said = text(&found);
        assert!(said.contains("20 steps cannot tell"), "{said}");
        assert!(said.contains("--steps 100,"), "{said}");
        assert!(!said.contains("optimise the model"), "{said}");
        assert!(said.lines().all(|line| line.len() <= 80), "{said}");
        // No gain worth mentioning, for sure.
        let clear = Headspace {
            low: -0.02,
            high: 0.01,
            ..found
        };
        assert!(text(&clear).contains("optimise the model"));
    }

    #[test]
    fn hardly_a_gain_sends_to_the_model() {
        let found = judge(vec![0.102; 5], vec![0.1; 5], (200, 1000)).unwrap();
        assert!(text(&found).contains("optimise the model"));
        assert_eq!(judge(vec![], vec![0.1], (1, 1)), None);
    }
}
