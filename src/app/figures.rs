//! The figures of each job in the list of jobs.

use std::collections::BTreeMap;

use crate::engine::State;
use crate::report::GpuReport;
use crate::sample::RunSource;
use crate::ui::JobFigures;
use crate::units::Pid;
use crate::verdict::Kind;

/// The figures of each job, by the process that represents it.
pub type JobListFigures = BTreeMap<Pid, JobFigures>;

/// Returns the figures of a watched job.
pub(super) fn figures_of(state: &State) -> Option<(Pid, JobFigures)> {
    let report = state.report()?;
    let job = report.job?;
    let run = job.run.unwrap_or_default();
    let rates = job.ranks.iter().map(|rank| rank.step.batches_per_s);
    let uses = |gpu: &&GpuReport| gpu.ranks.iter().flatten().next().is_some();
    let gpus = report.gpus.iter().filter(uses).map(|gpu| gpu.index);
    let figures = JobFigures {
        user: run.user,
        run: (run.source != RunSource::Process).then_some(run.id),
        workers: job.ranks.iter().map(|rank| rank.workers.len()).sum(),
        kind: report.verdict.kind,
        cause: report.verdict.cause,
        lost: report.verdict.stall_share,
        batches_per_s: rates.sum(),
        gpus: gpus.collect(),
        up: state.uptime(),
        verdict: state
            .verdict()
            .filter(|verdict| verdict.kind != Kind::WarmingUp)
            .cloned(),
    };
    Some((job.pid, figures))
}
