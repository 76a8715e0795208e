//! The verdict in one line of words: the start of the screen and of every report.
//!
//! Uses only what is in the verdict; does not depend on width, colour or layout.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge::NO_PROGRESS;
use super::waits::DATA_WAITS;
use super::{Interval, Kind, Verdict, WarmingUp};
use crate::model::rates::{RankRates, Rates};
use crate::units::{Share, span};

/// The verdict in words, as the screen and the reports show it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// `DATA-BOUND`
    pub kind: String,
    /// What is lost, or why there is no answer, in three lengths, longest first. The shortest may be empty.
    pub loss: [String; 3],
    /// `CPU preprocessing`. null: no cause found, or the kind has none.
    pub cause: Option<String>,
    /// `88 % sure`. null: there is no answer.
    pub certainty: Option<String>,
}

impl Headline {
    /// Returns the known parts behind the kind: what is lost, why, and how certain that is.
    pub(crate) fn parts(&self) -> impl Iterator<Item = String> {
        let [loss, ..] = &self.loss;
        let cause = self.cause.as_ref().map(|cause| format!("cause: {cause}"));
        let parts = [Some(loss.clone()), cause, self.certainty.clone()];
        parts.into_iter().flatten()
    }

    /// Returns all of it in one line.
    pub(crate) fn line(&self) -> String {
        let all = std::iter::once(self.kind.clone()).chain(self.parts());
        all.collect::<Vec<_>>().join("   ")
    }
}

impl Verdict {
    /// Returns the headline; `rates` are those that are shown with it.
    pub fn headline(&self, rates: Option<&Rates>) -> Headline {
        Headline {
            kind: self.kind.words().to_owned(),
            loss: self.loss(rates),
            cause: self.cause.map(|cause| cause.words().to_owned()),
            certainty: self.certainty(),
        }
    }

    fn certainty(&self) -> Option<String> {
        let answered = !matches!(self.kind, Kind::WarmingUp | Kind::Unknown);
        answered.then(|| format!("{} sure", self.confidence))
    }

    fn loss(&self, rates: Option<&Rates>) -> [String; 3] {
        let texts = match (self.kind, self.stall.or(self.wait)) {
            (Kind::WarmingUp, _) => self.so_far(),
            (Kind::Stalled, _) => {
                let mut facts = self.evidence.iter();
                let without = facts.find(|fact| fact.id == NO_PROGRESS);
                let seconds = without.map_or(self.seconds, |fact| fact.value);
                let text = format!("no batch in the last {}", span(seconds));
                [text.clone(), text.clone(), text]
            }
            (Kind::Unknown, _) if self.missing.iter().any(|it| it.id == DATA_WAITS) => [
                "waits for data cannot be seen",
                "waits for data not seen",
                "",
            ]
            .map(str::to_owned),
            (Kind::Unknown, _) => {
                ["the evidence is inconclusive", "not enough can be seen", ""].map(str::to_owned)
            }
            (Kind::HostBound, _) if self.gpu_idle.is_some() => self.idle_device(rates),
            (_, None) => ["the time lost is unknown", "time lost unknown", ""].map(str::to_owned),
            (_, Some(Interval { share, low, high })) => {
                let (low, high) = (low.percent(), high.percent());
                [
                    format!("{share} of the time is lost waiting for data ({low:.0}-{high:.0} %)"),
                    format!("{share} lost ({low:.0}-{high:.0})"),
                    format!("{share} lost"),
                ]
            }
        };
        let job = rates.and_then(|rates| rates.job.as_ref());
        let ranks = job.map_or(&[][..], |job| &job.ranks);
        let found = |rank: &&RankRates| Some(rank.key) == self.rank_key;
        let rank = ranks.iter().find(found).filter(|_| ranks.len() > 1);
        let Some(rank) = rank.map(|rank| rank.number) else {
            return texts;
        };
        texts.map(|text| match text.as_str() {
            "" => text,
            _ => format!("rank {rank}: {text}"),
        })
    }

    fn so_far(&self) -> [String; 3] {
        let Some(so_far) = self.warming_up else {
            return <[String; 3]>::default();
        };
        let progress = so_far.progress();
        if !so_far.unclear {
            let text = format!("collecting samples ({progress})");
            return [text.clone(), text, progress];
        }
        let waits = self.wait.map(|Interval { low, high, .. }| {
            let (low, high) = (low.percent(), high.percent());
            format!("{low:.0}-{high:.0} % of the time in waits, ")
        });
        [
            format!("not clear yet ({}{progress})", waits.unwrap_or_default()),
            format!("not clear yet ({progress})"),
            progress,
        ]
    }

    /// Returns the words for a device that is idle, but not for lack of data.
    fn idle_device(&self, rates: Option<&Rates>) -> [String; 3] {
        let percent = |share: Option<Share>| {
            share.map_or_else(|| "n/a".to_owned(), |share| share.to_string())
        };
        let idle = percent(self.gpu_idle);
        let waits = percent(self.wait.map(|wait| wait.share));
        let lost = percent(self.stall.or(self.wait).map(|lost| lost.share));
        let seen = rates.is_some_and(|rates| {
            let job = rates.job.as_ref();
            let rank = job.zip(self.rank_key).and_then(|(job, key)| job.rank(key));
            let other = rank.and_then(|rank| rank.device_beside(&rates.gpus));
            !rates.gpus.is_empty() && other.is_none()
        });
        let what = if seen { "GPU" } else { "device" };
        [
            format!(
                "the {what} is idle {idle} of the time, yet only {lost} is lost waiting for data"
            ),
            format!("{what} idle {idle}, waiting for data {waits}"),
            format!("{what} idle {idle}"),
        ]
    }
}

impl WarmingUp {
    /// Returns for example `4 of 10 s, 7 of 20 batches`, or only the seconds if batches are not counted.
    pub fn progress(&self) -> String {
        let needed = self.seconds_needed;
        let seconds = format!("{:.0} of {needed:.0} s", self.seconds.min(needed));
        let needed = self.batches_needed;
        match self.batches {
            Some(seen) => format!("{seconds}, {} of {needed} batches", seen.min(needed)),
            None => seconds,
        }
    }
}
