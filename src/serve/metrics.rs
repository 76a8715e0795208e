//! Defines the metrics and their sources: a job's report, and its totals since attaching.
//!
//! Built for each request, so that a job that has ended leaves nothing behind. Unknown figures are absent. A job's
//! identity is only in `pipetop_run_info`; all its other metrics have the labels `run` and `rank`. Does no I/O.

use std::time::SystemTime;

use super::exposition::MetricFamily;
use super::exposition::Type::{Counter, Gauge};
use super::job::{Job, Machine, Rank, each, label, of, rank_labels, ranks, with};
use super::rank_metrics::{loaders, rank_times, workers};
use super::totals::GpuTotals;
use crate::report::GpuReport;
use crate::verdict::Kind;

/// Returns every metric, in a fixed order.
pub(super) fn families(jobs: &[Job], machine: Option<&Machine>) -> Vec<MetricFamily> {
    let mut all = about(jobs, machine);
    all.extend(runs(jobs));
    let ranks: Vec<Rank<'_>> = jobs.iter().flat_map(ranks).collect();
    all.extend(rank_times(&ranks));
    all.extend(loaders(&ranks));
    all.extend(workers(&ranks));
    all.extend(verdicts(jobs));
    all.push(gpus_of(jobs));
    all.extend(machine.map(gpus).into_iter().flatten());
    all
}

fn about(jobs: &[Job], machine: Option<&Machine>) -> Vec<MetricFamily> {
    let mut build = MetricFamily::new(Gauge, "pipetop_build_info", "Version of pipetop.");
    build.add(vec![label("version", &env!("CARGO_PKG_VERSION"))], 1.0);
    let mut count = MetricFamily::new(
        Gauge,
        "pipetop_runs",
        "Training jobs watched on this machine.",
    );
    count.add(vec![], jobs.len() as f64);
    let mut gaps = MetricFamily::new(
        Gauge,
        "pipetop_gap",
        "1 for each source that cannot be read.",
    );
    let reports = jobs.iter().map(|job| (of(job), &job.report));
    let reports = reports.chain(machine.map(|machine| (vec![], &machine.report)));
    for (labels, report) in reports {
        for gap in &report.gaps {
            let about = [("source", &gap.source), ("reason", &gap.reason)];
            let about = about.map(|(name, text)| (name, Some(text.clone())));
            gaps.add(with(&labels, about), 1.0);
        }
    }
    let mut at = MetricFamily::new(
        Gauge,
        "pipetop_last_sample_timestamp_seconds",
        "Time of the newest sample.",
    );
    let since = machine.and_then(|machine| machine.at.duration_since(SystemTime::UNIX_EPOCH).ok());
    at.add(vec![], since.map(|since| since.as_secs_f64()));
    let mut cpu = MetricFamily::new(
        Counter,
        "process_cpu_seconds",
        "CPU time of pipetop itself.",
    );
    let own = machine.map(|machine| &machine.own);
    cpu.add(vec![], own.and_then(|own| Some(own.cpu?.as_secs_f64())));
    let mut memory = MetricFamily::new(
        Gauge,
        "process_resident_memory_bytes",
        "Memory of pipetop itself.",
    );
    memory.add(vec![], own.and_then(|own| Some(own.rss?.0 as f64)));
    vec![build, count, gaps, at, cpu, memory]
}

fn runs(jobs: &[Job]) -> [MetricFamily; 3] {
    let info = (Gauge, "pipetop_run_info", "Identity of a run.");
    let info = each(info, jobs, |job| {
        let reported = job.report.job.as_ref();
        let run = reported
            .and_then(|reported| reported.run.clone())
            .unwrap_or_default();
        let world_size = reported.and_then(|reported| reported.world_size);
        let who = [
            ("source", Some(run.source.to_string())),
            ("user", run.user),
            ("slurm_job_id", run.slurm_job_id),
            ("slurm_step_id", run.slurm_step_id),
            ("k8s_pod_uid", run.k8s_pod_uid),
            ("k8s_pod_name", run.k8s_pod_name),
            ("k8s_namespace_name", run.k8s_namespace_name),
            ("world_size", world_size.map(|size| size.to_string())),
        ];
        (with(&of(job), who), Some(1.0))
    });
    let cpus = (Gauge, "pipetop_job_cpus", "CPUs that the job may use.");
    let cpus = each(cpus, jobs, |job| {
        let host = &job.report.host;
        let allowed = host.cpus_allowed.map(f64::from);
        let least = [allowed, host.cpu_quota];
        let least = least.into_iter().flatten().min_by(f64::total_cmp);
        (of(job), least)
    });
    let throttled = (
        Counter,
        "pipetop_job_cpu_throttled_seconds",
        "Time without CPU because the job had used up its quota.",
    );
    let throttled = each(throttled, jobs, |job| (of(job), job.totals.cpu_throttled));
    [info, cpus, throttled]
}

fn verdicts(jobs: &[Job]) -> [MetricFamily; 6] {
    let verdict = |job: &Job| job.report.verdict.clone();
    let mut state = MetricFamily::new(
        Gauge,
        "pipetop_verdict_state",
        "1 for the kind of the verdict.",
    );
    let mut cause = MetricFamily::new(
        Gauge,
        "pipetop_verdict_cause",
        "1 for the cause of the verdict.",
    );
    let mut times = MetricFamily::new(
        Counter,
        "pipetop_verdict_seconds",
        "Time of each kind of verdict.",
    );
    for job in jobs {
        let said = verdict(job);
        let kind = said.kind.to_string();
        state.add(with(&of(job), [("kind", Some(kind.clone()))]), 1.0);
        // A kind of an earlier verdict is 0 now.
        for (known, seconds) in &job.totals.verdicts {
            let labels = with(&of(job), [("kind", Some(known.clone()))]);
            state.add(labels.clone(), f64::from(u8::from(*known == kind)));
            times.add(labels, *seconds);
        }
        if let Some(why) = said.cause {
            cause.add(with(&of(job), [("cause", Some(why.to_string()))]), 1.0);
        }
    }
    let confidence = (
        Gauge,
        "pipetop_verdict_confidence_ratio",
        "Probability that the kind of the verdict is right.",
    );
    let speedup = (
        Gauge,
        "pipetop_verdict_speedup_max_ratio",
        "Upper bound of the speed-up if loading were free.",
    );
    let advised = (
        Gauge,
        "pipetop_loader_workers_advised",
        "Workers that would match the step. Absent where another number would not help.",
    );
    [
        state,
        cause,
        times,
        each(confidence, jobs, |job| {
            let said = verdict(job);
            let open = matches!(said.kind, Kind::WarmingUp | Kind::Unknown);
            (of(job), (!open).then_some(said.confidence.0))
        }),
        each(speedup, jobs, |job| {
            let headspace = verdict(job).headspace;
            (
                of(job),
                headspace.and_then(|headspace| headspace.speedup_max),
            )
        }),
        each(advised, jobs, |job| {
            let said = verdict(job);
            let advised = said.workers.and_then(|workers| workers.advised);
            (rank_labels(job, said.pid), advised.map(f64::from))
        }),
    ]
}

/// Returns which rank uses which GPU.
fn gpus_of(jobs: &[Job]) -> MetricFamily {
    let mut info = MetricFamily::new(
        Gauge,
        "pipetop_gpu_rank_info",
        "A GPU that a rank uses, to join with metrics of other exporters.",
    );
    for job in jobs {
        for gpu in &job.report.gpus {
            for user in gpu.ranks.iter().flatten() {
                let labels = rank_labels(job, Some(user.pid));
                let gpu = [
                    ("gpu", Some(gpu.index.to_string())),
                    ("uuid", gpu.uuid.clone()),
                ];
                info.add(with(&labels, gpu), 1.0);
            }
        }
    }
    info
}

fn gpus(machine: &Machine) -> Vec<MetricFamily> {
    type Value = fn(&GpuReport, Option<&GpuTotals>) -> Option<f64>;
    let who = |gpu: &GpuReport| {
        let index = [label("gpu", &gpu.index)];
        with(&index.into(), [("uuid", gpu.uuid.clone())])
    };
    let family = |metric, name, help, value: Value| {
        each((metric, name, help), &machine.report.gpus, |gpu| {
            (who(gpu), value(gpu, machine.gpus.get(&gpu.index)))
        })
    };
    let mut held_back = MetricFamily::new(
        Counter,
        "pipetop_gpu_held_back_seconds",
        "Time with a lowered clock, by reason.",
    );
    for gpu in &machine.report.gpus {
        let reasons = machine.gpus.get(&gpu.index).map(|total| &total.held_back);
        for (reason, seconds) in reasons.into_iter().flatten() {
            held_back.add(
                with(&who(gpu), [("reason", Some(reason.clone()))]),
                *seconds,
            );
        }
    }
    vec![
        family(
            Counter,
            "pipetop_gpu_busy_seconds",
            "Time in which a kernel ran.",
            |_, total| total?.busy,
        ),
        family(
            Counter,
            "pipetop_gpu_observed_seconds",
            "Time in which it could be seen whether a kernel ran.",
            |_, total| total?.observed,
        ),
        family(
            Gauge,
            "pipetop_gpu_sm_active_ratio",
            "Share of multiprocessors with work.",
            |gpu, _| Some(gpu.sm_active_share?.0),
        ),
        family(
            Counter,
            "pipetop_gpu_energy_joules",
            "Energy that the GPU has used.",
            |_, total| total?.energy_joules,
        ),
        held_back,
    ]
}
