//! Defines the metrics and their sources: a job's report, and its totals since attaching.
//!
//! Built for each request, so that a job that has ended leaves nothing behind. Unknown figures are absent. A job's
//! identity is only in `pipetop_run_info`; all its other metrics have the labels `run` and `rank`. Does no I/O.

use std::time::SystemTime;

use super::exposition::{Labels, Values};
use super::job::{Job, Machine, of, rank_labels, ranks, with};
use crate::report::{RankReport, Report};
use crate::verdict::Kind;

/// Every metric, in the order of the text: its kind, its name without the `_total` of a counter, and its help.
pub(super) const METRICS: &str = "\
gauge pipetop_build_info Version of pipetop.
gauge pipetop_runs Training jobs watched on this machine.
gauge pipetop_gap 1 for each source that cannot be read.
gauge pipetop_last_sample_timestamp_seconds Time of the newest sample.
counter process_cpu_seconds CPU time of pipetop itself.
gauge process_resident_memory_bytes Memory of pipetop itself.
gauge pipetop_run_info Identity of a run.
gauge pipetop_job_cpus CPUs that the job may use.
counter pipetop_job_cpu_throttled_seconds Time without CPU because the job had used up its quota.
gauge pipetop_rank_info Process of a rank, and how much of it pipetop can see.
counter pipetop_rank_seconds Time of the main thread in which its waits could be seen, by what it did.
counter pipetop_rank_stall_seconds Time lost to data.
counter pipetop_rank_stall_uncertainty_seconds Half the width of the interval of the time lost to data.
counter pipetop_rank_batches Batches that the trainer took.
gauge pipetop_loader_info Settings of a rank's loader.
gauge pipetop_loader_workers Workers of the loader.
gauge pipetop_loader_prefetch_factor Batches that each worker makes ahead.
gauge pipetop_loader_queue_capacity Maximum number of ready batches.
gauge pipetop_loader_queue_ready Batches that are ready.
counter pipetop_loader_queue_empty_seconds Time in which no batch was ready.
counter pipetop_loader_worker_seconds Time of all workers of a rank together, by what they did.
counter pipetop_loader_load_seconds Time in which workers made batches; divided by the batches, the load time of one.
counter pipetop_loader_storage_read_bytes Bytes that workers fetched from block devices.
counter pipetop_loader_read_bytes Bytes that workers got from read calls, whatever the source.
gauge pipetop_verdict_state 1 for the kind of the verdict.
gauge pipetop_verdict_cause 1 for the cause of the verdict.
counter pipetop_verdict_seconds Time of each kind of verdict.
gauge pipetop_verdict_confidence_ratio Probability that the kind of the verdict is right.
gauge pipetop_verdict_speedup_max_ratio Upper bound of the speed-up if loading were free.
gauge pipetop_loader_workers_advised Workers that would match the step. Absent where another number would not help.
gauge pipetop_gpu_rank_info A GPU that a rank uses, to join with metrics of other exporters.
counter pipetop_gpu_busy_seconds Time in which a kernel ran.
counter pipetop_gpu_observed_seconds Time in which it could be seen whether a kernel ran.
gauge pipetop_gpu_sm_active_ratio Share of multiprocessors with work.
counter pipetop_gpu_energy_joules Energy that the GPU has used.
counter pipetop_gpu_held_back_seconds Time with a lowered clock, by reason.
";

/// Returns the value of every metric that is known.
pub(super) fn values(jobs: &[Job], machine: Option<&Machine>) -> Values {
    let mut values = Values::default();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    values.add("pipetop_build_info", vec![("version", version)], 1.0);
    values.add("pipetop_runs", vec![], jobs.len() as f64);
    for job in jobs {
        add_gaps(&mut values, &of(job), &job.report);
        add_job(&mut values, job);
        add_verdict(&mut values, job);
        for (labels, report) in ranks(job) {
            add_rank(&mut values, job, &labels, report);
        }
    }
    if let Some(machine) = machine {
        add_gaps(&mut values, &vec![], &machine.report);
        add_machine(&mut values, machine);
    }
    values
}

fn add_gaps(values: &mut Values, labels: &Labels, report: &Report) {
    for gap in &report.gaps {
        let about = [("source", &gap.source), ("reason", &gap.reason)];
        let about = about.map(|(name, text)| (name, Some(text.clone())));
        values.add("pipetop_gap", with(labels, about), 1.0);
    }
}

fn add_job(values: &mut Values, job: &Job) {
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
    values.add("pipetop_run_info", with(&of(job), who), 1.0);
    let host = &job.report.host;
    let cpus = [host.cpus_allowed.map(f64::from), host.cpu_quota];
    let cpus = cpus.into_iter().flatten().min_by(f64::total_cmp);
    values.add("pipetop_job_cpus", of(job), cpus);
    let throttled = job.totals.cpu_throttled;
    values.add("pipetop_job_cpu_throttled_seconds", of(job), throttled);
    for gpu in &job.report.gpus {
        for user in gpu.ranks.iter().flatten() {
            let labels = rank_labels(job, Some(user.pid));
            let gpu = [
                ("gpu", Some(gpu.index.to_string())),
                ("uuid", gpu.uuid.clone()),
            ];
            values.add("pipetop_gpu_rank_info", with(&labels, gpu), 1.0);
        }
    }
}

fn add_verdict(values: &mut Values, job: &Job) {
    let verdict = &job.report.verdict;
    let kind = verdict.kind.to_string();
    let labels = |name, what: &str| with(&of(job), [(name, Some(what.to_owned()))]);
    values.add("pipetop_verdict_state", labels("kind", &kind), 1.0);
    // The kinds of earlier verdicts are 0 now.
    for (known, seconds) in &job.totals.verdicts {
        let labels = labels("kind", known);
        let now = f64::from(u8::from(*known == kind));
        values.add("pipetop_verdict_state", labels.clone(), now);
        values.add("pipetop_verdict_seconds", labels, *seconds);
    }
    if let Some(cause) = verdict.cause {
        let labels = labels("cause", &cause.to_string());
        values.add("pipetop_verdict_cause", labels, 1.0);
    }
    let open = matches!(verdict.kind, Kind::WarmingUp | Kind::Unknown);
    let confidence = (!open).then_some(verdict.confidence.0);
    values.add("pipetop_verdict_confidence_ratio", of(job), confidence);
    let headspace = verdict.headspace.as_ref();
    let speedup = headspace.and_then(|headspace| headspace.speedup_max);
    values.add("pipetop_verdict_speedup_max_ratio", of(job), speedup);
    let workers = verdict.workers.as_ref();
    let advised = workers.and_then(|workers| workers.advised).map(f64::from);
    let labels = rank_labels(job, verdict.pid);
    values.add("pipetop_loader_workers_advised", labels, advised);
}

/// Adds the metrics of a rank: its main thread, its loader and that loader's workers.
fn add_rank(values: &mut Values, job: &Job, labels: &Labels, report: &RankReport) {
    let access = job.report.window.access.map(|tier| format!("{tier:?}"));
    let local_rank = report.local_rank.map(|rank| rank.to_string());
    let who = [
        ("pid", Some(report.pid.to_string())),
        ("local_rank", local_rank),
        ("access", access),
    ];
    values.add("pipetop_rank_info", with(labels, who), 1.0);
    let mut one = |name, value: Option<f64>| values.add(name, labels.clone(), value);
    let capacity = report.queue.as_ref().and_then(|queue| queue.capacity);
    one("pipetop_loader_queue_capacity", capacity.map(f64::from));
    if let Some(loader) = &report.loader {
        let settings = &loader.settings;
        one("pipetop_loader_workers", Some(report.workers.len() as f64));
        let prefetch_factor = settings.prefetch_factor.map(f64::from);
        one("pipetop_loader_prefetch_factor", prefetch_factor);
        let kind = serde_json::to_value(loader.kind).ok();
        let yes_or_no = |value: Option<bool>| value.map(|value| value.to_string());
        let settings = [
            (
                "kind",
                kind.and_then(|kind| Some(kind.as_str()?.to_owned())),
            ),
            ("start_method", settings.start_method.clone()),
            ("pin_memory", yes_or_no(settings.pin_memory)),
            ("in_order", yes_or_no(settings.in_order)),
        ];
        values.add("pipetop_loader_info", with(labels, settings), 1.0);
    }
    let mut totals = job.totals.ranks.iter();
    let Some((_, totals)) = totals.find(|(key, _)| key.pid == report.pid) else {
        return;
    };
    let uncertainty = "pipetop_rank_stall_uncertainty_seconds";
    let queue_ready = totals.queue_ready.map(f64::from);
    let storage_read = totals.storage_read.map(f64::round);
    for (name, value) in [
        (uncertainty, totals.stall_uncertainty),
        ("pipetop_rank_batches", totals.batches),
        ("pipetop_loader_queue_ready", queue_ready),
        ("pipetop_loader_queue_empty_seconds", totals.queue_empty),
        ("pipetop_loader_load_seconds", totals.load),
        ("pipetop_loader_storage_read_bytes", storage_read),
        ("pipetop_loader_read_bytes", totals.read.map(f64::round)),
    ] {
        values.add(name, labels.clone(), value);
    }
    for (name, label, seconds) in [
        ("pipetop_rank_seconds", "state", &totals.main),
        ("pipetop_rank_stall_seconds", "cause", &totals.stall),
        ("pipetop_loader_worker_seconds", "state", &totals.workers),
    ] {
        for (what, value) in seconds {
            values.add(name, with(labels, [(label, Some(what.clone()))]), *value);
        }
    }
}

fn add_machine(values: &mut Values, machine: &Machine) {
    let since = machine.at.duration_since(SystemTime::UNIX_EPOCH).ok();
    let since = since.map(|since| since.as_secs_f64());
    values.add("pipetop_last_sample_timestamp_seconds", vec![], since);
    let own = &machine.own;
    let cpu = own.cpu.map(|cpu| cpu.as_secs_f64());
    values.add("process_cpu_seconds", vec![], cpu);
    let memory = own.rss.map(|rss| rss.0 as f64);
    values.add("process_resident_memory_bytes", vec![], memory);
    for gpu in &machine.report.gpus {
        let index = vec![("gpu", gpu.index.to_string())];
        let labels = with(&index, [("uuid", gpu.uuid.clone())]);
        let active = gpu.sm_active_share.map(|share| share.0);
        values.add("pipetop_gpu_sm_active_ratio", labels.clone(), active);
        let Some(totals) = machine.gpus.get(&gpu.index) else {
            continue;
        };
        for (name, value) in [
            ("pipetop_gpu_busy_seconds", totals.busy),
            ("pipetop_gpu_observed_seconds", totals.observed),
            ("pipetop_gpu_energy_joules", totals.energy_joules),
        ] {
            values.add(name, labels.clone(), value);
        }
        for (reason, seconds) in &totals.held_back {
            let labels = with(&labels, [("reason", Some(reason.clone()))]);
            values.add("pipetop_gpu_held_back_seconds", labels, *seconds);
        }
    }
}
