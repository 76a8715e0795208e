//! Tests whether the verdict is right: runs presets of the built-in job, each watched in two ways at once, from outside
//! like any job, and through its own reports.
//!
//! The waits that the job measures itself are the truth.

use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::command::{LaunchedJob, TrialError};
use crate::engine::Engine;
use crate::error::Hinted;
use crate::lab::experiments::launched;
use crate::lab::workload::JobSettings;
use crate::lab::workload::presets::Preset;
use crate::launch::LoaderOverrides;
use crate::sample::{MAX_GAP, PollTrace, SLOT, Sample, Tail, Wait, slot};
use crate::setup::listen;
use crate::source::sampler::{Options, Sampler};
use crate::units::{Share, known};
use crate::verdict::{Cause, Kind};

/// Time from the start of a job: enough for a verdict, which needs ten seconds after the first batch in unclear cases.
pub const SPAN: Duration = Duration::from_secs(15);

/// Longest step of any preset on a slow machine: what is not reported by then will not be reported.
const MAX_STEP: Duration = Duration::from_secs(30);

/// Start and end by the wall clock, which both ways of watching share.
type Span = (SystemTime, SystemTime);

/// The result for one preset.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationRow {
    pub preset: &'static str,
    /// The kind that is right for this preset.
    pub expected: &'static str,
    /// The finding from the job's own reports.
    pub exact: Finding,
    /// The finding from outside.
    pub seen: Finding,
}

/// A verdict and its wait share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    pub kind: Kind,
    pub cause: Option<Cause>,
    /// The wait share. The exact one from the reports covers only the time that was polled from outside. `None` if it
    /// could not be observed.
    pub wait: Option<Share>,
}

impl CalibrationRow {
    /// Whether the verdict is the one that the preset is made for.
    pub fn is_right(&self) -> bool {
        self.exact.kind.to_string() == self.expected
    }

    /// Returns how far the wait share from outside is from the reported one. `None` if either is unknown.
    pub fn error(&self) -> Option<f64> {
        Some(self.seen.wait?.0 - self.exact.wait?.0)
    }
}

/// Runs one preset and watches it for `span`.
///
/// # Errors
/// Returns an error if the job cannot be started or ends by itself.
pub fn run(
    preset: &Preset,
    settings: &JobSettings,
    options: &Options,
    span: Duration,
) -> Result<CalibrationRow, TrialError> {
    let listener = Arc::new(listen("raise the open file limit (ulimit -n)")?);
    let address = Some(listener.address().to_owned());
    let mut job = LaunchedJob::start(settings.spec(LoaderOverrides::default(), address), None)?;
    let from_inside = Options {
        probe: Some(listener),
        ..options.clone()
    };
    let pid = job.pid();
    let (send, samples) = mpsc::channel();
    let mut samplers = vec![];
    for (which, options) in [from_inside, options.clone()].into_iter().enumerate() {
        let send = send.clone();
        let job = launched(&options.proc_root, pid);
        let sampler = Sampler::start(options, job, move |sample| {
            send.send((which, sample)).is_ok()
        });
        samplers.push(sampler.map_err(|error| Hinted::no_thread(&error))?);
    }
    drop(send);
    let longest = 2 * span + MAX_STEP;
    let mut watchers = [Watcher::new(longest), Watcher::new(longest)];
    let mut reports = ReportedWaits::default();
    let mut found = None;
    for (which, sample) in samples {
        if which == 0 {
            reports.apply(&sample);
        }
        if let Some(watcher) = watchers.get_mut(which) {
            watcher.apply(sample);
        }
        // A slow machine needs more time for the same number of batches.
        let enough = |watcher: &Watcher| {
            watcher.watched >= 2 * span || (watcher.watched >= span && !watcher.warms_up())
        };
        if found.is_none() && watchers.iter().all(enough) {
            let [exact, seen] = &watchers;
            found = Some((exact.finding(), seen.finding(), seen.window()));
        }
        // The last waits in the window are reported only with the step that is under way at its end.
        if let Some((.., window)) = found
            && window.is_none_or(|(_, to)| reports.reach(to))
        {
            break;
        }
        if job.has_ended() || watchers[0].watched >= longest {
            return Err(job.ended_early().into());
        }
    }
    drop(samplers);
    let (Some(exact), Some(seen), window) = found.unwrap_or_default() else {
        return Err(job.ended_early().into());
    };
    Ok(CalibrationRow {
        preset: preset.name,
        expected: preset.expected,
        exact: Finding {
            wait: window.and_then(|window| reports.waited(window, &watchers[1].unpolled())),
            ..exact
        },
        seen,
    })
}

/// One of the two ways of watching.
struct Watcher {
    engine: Engine,
    watched: Duration,
    polls: PollTrace,
    most_slots: usize,
    began: Option<SystemTime>,
}

impl Watcher {
    /// `longest` is the maximum time to watch.
    fn new(longest: Duration) -> Self {
        Self {
            engine: Engine::new(Duration::MAX),
            watched: Duration::ZERO,
            polls: PollTrace::default(),
            most_slots: usize::try_from(slot(longest)).unwrap_or_default(),
            began: None,
        }
    }

    fn apply(&mut self, sample: Sample) {
        self.watched = sample.at.since_start;
        self.began = sample.at.wall.checked_sub(self.watched);
        if let Some(rank) = sample.job.as_ref().and_then(|job| job.ranks.first()) {
            self.polls.append(&rank.polls, self.most_slots);
        }
        self.engine.push(sample);
    }

    /// Returns the spans without polls, which do not count: the machine stood still or gave pipetop no CPU.
    fn unpolled(&self) -> Vec<Span> {
        let at = |slot: u64| Some(self.began? + SLOT.mul_f64(slot as f64));
        let gaps = self.polls.gaps(slot(MAX_GAP)).into_iter();
        gaps.filter_map(|gap| Some((at(gap.start)?, at(gap.end)?)))
            .collect()
    }

    fn warms_up(&self) -> bool {
        self.engine.state().kind() == Some(Kind::WarmingUp)
    }

    /// Returns the span that its wait share covers, by the wall clock.
    fn window(&self) -> Option<Span> {
        let model = &self.engine.state().model;
        let seconds = Duration::try_from_secs_f64(model.window()?.seconds).ok()?;
        let to = model.sample()?.at.wall;
        Some((to.checked_sub(seconds)?, to))
    }

    fn finding(&self) -> Option<Finding> {
        let verdict = self.engine.state().verdict()?;
        Some(Finding {
            kind: verdict.kind,
            cause: verdict.cause,
            wait: verdict.wait.map(|wait| wait.share),
        })
    }
}

/// The waits that the job reported.
#[derive(Debug, Default)]
struct ReportedWaits {
    /// The waits in the last sample, to find the new ones in the next.
    newest: Tail<Wait>,
    waits: Vec<Span>,
    /// The end of the newest step: all earlier waits were reported or lost.
    to: Option<SystemTime>,
    lost: u64,
}

impl ReportedWaits {
    fn apply(&mut self, sample: &Sample) {
        let Some(rank) = sample.job.as_ref().and_then(|job| job.ranks.first()) else {
            return;
        };
        let before = std::mem::replace(&mut self.newest, rank.waits.clone());
        // Until the job reports, its waits come from polls.
        let Some((reported, began)) = rank
            .reported
            .as_ref()
            .zip(sample.at.wall.checked_sub(sample.at.since_start))
        else {
            return;
        };
        let new = rank.waits.since(Some(&before));
        self.waits
            .extend(new.map(|wait| (began + wait.from, began + wait.to)));
        self.to = Some(began + reported.last_to);
        self.lost = reported.lost;
    }

    fn reach(&self, to: SystemTime) -> bool {
        self.to.is_some_and(|exact| exact >= to)
    }

    /// Returns the share of `span`, not counting the spans in `without`, in which the job waited. The reports must
    /// reach the end of `span`. `None` if reports were lost.
    fn waited(&self, span: Span, without: &[Span]) -> Option<Share> {
        let counted = |of: Span| {
            let cut = |other: &Span| length(both(of, *other));
            length(of).saturating_sub(without.iter().map(cut).sum())
        };
        let waits = self.waits.iter().map(|wait| counted(both(*wait, span)));
        let waited: Duration = waits.sum();
        Share::of(waited.as_secs_f64(), counted(span).as_secs_f64()).filter(|_| self.lost == 0)
    }
}

/// Returns the time that two spans have in common; it ends before it starts if they have none.
fn both(one: Span, other: Span) -> Span {
    (one.0.max(other.0), one.1.min(other.1))
}

fn length((from, to): Span) -> Duration {
    to.duration_since(from).unwrap_or_default()
}

/// Returns the heading of the table.
pub fn head() -> String {
    line([
        "PRESET", "EXPECTED", "VERDICT", "CAUSE", "WAIT", "SEEN", "OFF", "SEEN AS",
    ])
}

/// Returns a line of the table.
pub fn text(row: &CalibrationRow) -> String {
    let cause = row
        .exact
        .cause
        .map_or("-".to_owned(), |cause| cause.to_string());
    let off = row.error().map(|error| format!("{:+.1}", error * 100.0));
    let verdict = row.exact.kind.to_string();
    line([
        row.preset,
        row.expected,
        if row.is_right() { &verdict } else { "WRONG" },
        &cause,
        &known(row.exact.wait),
        &known(row.seen.wait),
        off.as_deref().unwrap_or("n/a"),
        &row.seen.kind.to_string(),
    ])
}

/// Returns the summary below the table.
pub fn summary(rows: &[CalibrationRow]) -> String {
    let right = rows.iter().filter(|row| row.is_right()).count();
    let largest = rows
        .iter()
        .filter_map(CalibrationRow::error)
        .map(f64::abs)
        .fold(0.0, f64::max);
    format!(
        "{right} of {} verdicts are right; the wait share seen from outside is off by at most {:.1} points\n",
        rows.len(),
        largest * 100.0
    )
}

fn line(cells: [&str; 8]) -> String {
    let [preset, expected, verdict, cause, wait, seen, off, as_kind] = cells;
    let text = format!(
        "{preset:<15}{expected:<15}{verdict:<15}{cause:<20}{wait:>6}{seen:>7}{off:>7}  {as_kind}"
    );
    format!("{}\n", text.trim_end())
}

/// Returns the document for `--json`.
pub fn json(rows: &[CalibrationRow]) -> Value {
    let row = |row: &CalibrationRow| {
        json!({
            "preset": row.preset,
            "expected": row.expected,
            "kind": row.exact.kind,
            "cause": row.exact.cause,
            "wait_share": row.seen.wait,
            "wait_share_exact": row.exact.wait,
            "kind_from_outside": row.seen.kind,
            "cause_from_outside": row.seen.cause,
            "right": row.is_right(),
        })
    };
    json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::literals::{first_rank, secs, training, wait};
    use crate::sample::{Reported, TrainerNow};

    /// The second of a sample, the waits reported by then, and the end of the newest step.
    type Sampled<'a> = (f64, &'a [(f64, f64)], Option<f64>);

    /// Applies samples of these seconds, each with the waits reported by then and the end of the newest step.
    fn reports(samples: &[Sampled<'_>]) -> (ReportedWaits, SystemTime) {
        let mut reports = ReportedWaits::default();
        let mut began = SystemTime::UNIX_EPOCH;
        let mut count = 0;
        for (at, waits, last_to) in samples {
            let mut sample = training(*at);
            began = sample.at.wall - sample.at.since_start;
            let rank = first_rank(&mut sample);
            rank.waits = Tail::new(count, []);
            for (from, to) in *waits {
                count += 1;
                rank.waits.push(wait(*from, *to, Some(count)), 100);
            }
            rank.reported = last_to.map(|last_to| Reported {
                last_to: secs(last_to),
                ..Reported::default()
            });
            reports.apply(&sample);
        }
        (reports, began)
    }

    #[test]
    fn waits_are_clipped_to_the_time_and_the_time_is_not_cut_to_them() {
        let samples: [Sampled<'_>; 4] = [
            // This wait was polled before the job reported it, so it does not count.
            (1.0, &[(0.0, 0.9)], None),
            (2.0, &[(0.0, 1.0), (1.5, 1.75)], Some(2.0)),
            (3.0, &[(2.0, 2.25)], Some(2.5)),
            (6.0, &[(3.0, 5.0)], Some(5.5)),
        ];
        let (reports, began) = reports(&samples);
        let at = |seconds| began + secs(seconds);
        let waited = |from, to, expected: f64| {
            let share = reports.waited((at(from), at(to)), &[]).unwrap();
            assert!((share.0 - expected).abs() < 1e-6, "{share:?}");
        };
        // One wait begins before this span, one ends after it.
        waited(0.5, 4.5, (0.5 + 0.25 + 0.25 + 1.5) / 4.0);
        waited(2.25, 2.75, 0.0);
        // Half a second after the last wait also counts.
        waited(4.5, 5.5, 0.5);
        assert!(reports.reach(at(5.5)) && !reports.reach(at(5.6)));
    }

    #[test]
    fn time_without_polls_is_left_out() {
        let samples: [Sampled<'_>; 1] = [(6.0, &[(1.0, 2.0), (4.0, 5.0)], Some(6.0))];
        let (reports, began) = reports(&samples);
        let at = |seconds| began + secs(seconds);
        // One begins before the span, one cuts a wait.
        let without = [(at(0.0), at(0.5)), (at(1.5), at(3.5))];
        let share = reports.waited((at(0.25), at(6.0)), &without).unwrap();
        assert!((share.0 - 1.5 / 3.5).abs() < 1e-6, "{share:?}");
    }

    #[test]
    fn only_a_long_time_between_two_polls_is_left_out() {
        let mut watcher = Watcher::new(secs(60.0));
        let mut sample = training(6.0);
        let began = sample.at.wall - sample.at.since_start;
        let polls = &mut first_rank(&mut sample).polls;
        *polls = PollTrace::default();
        for at in [1.0, 1.9, 3.4, 3.5] {
            polls.record(secs(at), TrainerNow::Waiting, 1000);
        }
        watcher.apply(sample);
        // From the end of the slot of one poll to the beginning of that of the next.
        let left_out = (began + secs(1.925), began + secs(3.4));
        assert_eq!(watcher.unpolled(), [left_out]);
    }

    #[test]
    fn missing_or_lost_reports_give_no_share() {
        let (mut reports, began) = reports(&[(1.0, &[(0.0, 0.5)], None)]);
        assert!(!reports.reach(began));
        assert_eq!(reports.waits, []);
        reports.lost = 1;
        assert_eq!(reports.waited((began, began + secs(1.0)), &[]), None);
    }
}
