//! The state of a job and its machine at one moment: the value that every output reads.
//!
//! Its derive defines the JSON document, schema `pipetop.report/1`, and the schema itself: a contract that scripts rely
//! on. Keys are added, never renamed; an added key has a default, so that older reports can still be read. Unknown is
//! `null`, never 0; the unit is in the key; kinds and causes are kebab-case. The doc comments are the schema's
//! descriptions. Measures nothing and judges nothing: the figures are those of the model and the verdict, rounded to
//! their significant digits.

mod gpu;
mod job;
mod machine;
mod round;
#[cfg(test)]
pub(crate) mod tests;
mod verdict;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::model::rates::RankRates;
use crate::model::{Model, Rates};
pub use crate::sample::{Gap, JobCandidate, Tier};
use crate::units::{Moment, ProcessKey, Share};
use crate::verdict::Verdict;
use round::{bytes_per_s, number, percent, round, share};

pub use crate::sample::{
    Absent, GpuUser, Link, LoaderKind, LoaderSettings, ProcessPlace, QueueSource, Run, RunSource,
    UsedBy, WorkerNow,
};
pub use crate::verdict::{Cause, Headline, Kind, Level, Limit, Missing, WorkerAdvice};
pub use gpu::{GpuInstanceReport, GpuProcessReport, GpuReport, SwingReport, XidReport};
pub use job::{
    ActivityReport, DeviceReport, JobReport, LoadReport, LoaderReport, OtherLoaderReport,
    QueueReport, RankReport, StepReport, WorkerReport,
};
pub use machine::{DiskReport, HostReport, PressureReport};
pub use verdict::{
    EvidenceReport, ExpectedReport, HeadspaceReport, VerdictReport, WarmingUpReport, WhatIfReport,
};

/// What pipetop knows of a job. Unknown is null, never 0; the unit is in the key; a share is 0 to 1. Later
/// versions of pipetop may add keys; they rename none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "pipetop.report/1")]
pub struct Report {
    pub schema: Version,
    /// Version of pipetop.
    pub version: String,
    pub window: WindowReport,
    /// null: no job is watched.
    pub job: Option<JobReport>,
    /// All GPUs of the machine.
    pub gpus: Vec<GpuReport>,
    /// All disks of the machine.
    pub disks: Vec<DiskReport>,
    pub host: HostReport,
    pub verdict: VerdictReport,
    /// What could not be read, and why.
    pub gaps: Vec<Gap>,
    #[serde(default)]
    pub latest: LatestReport,
    /// Jobs to choose from, while there are several and none was selected.
    #[serde(default)]
    pub candidates: Vec<JobCandidate>,
}

/// Name and version of this document's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Version {
    #[serde(rename = "pipetop.report/1")]
    One,
}

/// The time that the report covers: of the verdict and of all figures outside `latest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowReport {
    /// Length of that time in seconds.
    #[schemars(range(min = 0.0))]
    pub seconds: f64,
    /// Batches that the trainer took while they were counted, which may be less than `seconds`: their rate is in
    /// `batches_per_s`. null: nothing counts them.
    pub batches: Option<u64>,
    /// Level of access to the job. null: no job is watched.
    pub access: Option<Tier>,
    /// CPU time of pipetop itself in percent of one core. null: not known.
    #[schemars(range(min = 0.0))]
    pub own_cpu_percent: Option<f64>,
}

/// The newest reading alone: figures of the time since the one before, for the rank that the verdict is about, or else
/// the first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatestReport {
    /// Seconds from the start of pipetop to this reading. null: no reading yet.
    #[schemars(range(min = 0.0))]
    pub at_seconds: Option<f64>,
    /// Share of the time that the main thread was blocked in the loader. null: not visible.
    pub wait_share: Option<Share>,
    /// Queue of ready batches. null: not visible.
    pub queue: Option<QueueReport>,
    pub step: StepReport,
    /// Mean utilisation of all GPUs in percent. null: no GPU figure.
    #[schemars(range(min = 0.0))]
    pub gpu_util_percent: Option<f64>,
    /// Bytes per second that all processes of the job read from block devices. null: no permission.
    pub read_bytes_per_s: Option<u64>,
}

impl Report {
    /// Returns the report on the window, or on the last interval if there is no window yet.
    pub fn new(model: &Model, verdict: &Verdict) -> Self {
        let sample = model.sample();
        let at = sample.map(|sample| sample.at);
        let gaps = sample.map_or(&[][..], |sample| &sample.gaps);
        let candidates = sample.map_or(&[][..], |sample| &sample.candidates);
        let rates = model.window().or(model.latest());
        let job = rates.and_then(|rates| rates.job.as_ref());
        let ended = job.is_some_and(|job| job.ended).then(|| {
            Gap::new(
                "job",
                "the job has ended; its figures are the last ones from before",
                "",
            )
        });
        let unwatched = rates.and_then(unwatched);
        let gpus = rates.map_or(&[][..], |rates| &rates.gpus);
        let disks = rates.map_or(&[][..], |rates| &rates.disks);
        Self {
            schema: Version::One,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            window: WindowReport {
                seconds: round(verdict.seconds, 3),
                batches: verdict.batches,
                access: job.map(|job| job.access),
                own_cpu_percent: percent(rates.and_then(|rates| rates.own_cpu)),
            },
            job: job.map(JobReport::new),
            gpus: gpus.iter().map(|gpu| GpuReport::new(gpu, at)).collect(),
            disks: disks.iter().map(DiskReport::new).collect(),
            host: rates.map(HostReport::new).unwrap_or_default(),
            verdict: VerdictReport::new(verdict, rates),
            gaps: gaps.iter().cloned().chain(ended).chain(unwatched).collect(),
            latest: LatestReport::new(at, model.latest(), verdict.rank_key),
            candidates: candidates.to_vec(),
        }
    }

    /// Returns the rank that the verdict is about, else the first.
    pub(crate) fn judged_rank(&self) -> Option<&RankReport> {
        let ranks = &self.job.as_ref()?.ranks;
        let judged = |rank: &&RankReport| Some(rank.pid) == self.verdict.pid;
        ranks.iter().find(judged).or(ranks.first())
    }
}

impl LatestReport {
    fn new(at: Option<Moment>, rates: Option<&Rates>, judged: Option<ProcessKey>) -> Self {
        let job = rates.and_then(|rates| rates.job.as_ref());
        let judged = judged.and_then(|key| job?.rank(key));
        let rank = judged.or_else(|| job?.ranks.first());
        let queue = rank.and_then(|rank| rank.main_loader()?.queue);
        let gpus = rates.map_or(&[][..], |rates| &rates.gpus);
        let util = crate::units::mean(gpus.iter().filter_map(|gpu| gpu.util_percent));
        Self {
            at_seconds: number(at.map(|at| at.since_start.as_secs_f64()), 3),
            wait_share: rank.and_then(RankRates::wait_share).map(share),
            queue: queue.as_ref().map(QueueReport::new),
            step: rank.map_or_else(StepReport::default, |rank| StepReport::new(&rank.step)),
            gpu_util_percent: number(util, 1),
            read_bytes_per_s: bytes_per_s(job.and_then(|job| job.read)),
        }
    }
}

/// Source of the gap for time without polls.
pub(crate) const UNWATCHED: &str = "polls";
/// Least share of the time that polls must cover: they are counted a little earlier or later than the sample is taken.
const MOSTLY_WATCHED: f64 = 0.5;

/// Returns a gap if most of the time passed without polls: pipetop was stopped then, or the recording lacks samples.
fn unwatched(rates: &Rates) -> Option<Gap> {
    let ranks = rates.ranks().iter();
    let polled = ranks.filter_map(|rank| Some(rank.polled?.0));
    let polled = polled.reduce(f64::max)?;
    (polled < MOSTLY_WATCHED).then(|| {
        let [seen, all] = [polled * rates.seconds, rates.seconds].map(f64::round);
        Gap::new(
            UNWATCHED,
            format!("the job was watched for only {seen} s of these {all} s"),
            "pipetop was stopped meanwhile, or samples are missing",
        )
    })
}

/// Returns the JSON schema of [`Report`], draft 2020-12. It allows no other keys: a document that has some is not of
/// this version.
pub fn schema() -> Schema {
    let close = RecursiveTransform(|schema: &mut Schema| {
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        // Drop the widths of Rust's numbers, and the defaults of keys that older reports lack: neither is part of the
        // contract.
        schema.remove("format");
        schema.remove("default");
    });
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(close)
        .into_generator()
        .into_root_schema_for::<Report>()
}
