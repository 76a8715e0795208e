//! The JSON report, schema `pipetop.report/1`: a contract that scripts rely on.
//!
//! Unknown is `null`, never 0; the unit is in the key; kinds and causes are kebab-case. The same is
//! written down for machines in `config/report.schema.json`.

mod gpu;

use serde_json::{Value, json};

use crate::model::rates::{
    Activity, DeviceRates, DiskRates, JobRates, LoadRates, LoaderRates, QueueRates, RankRates,
    Rates, StepRates, WorkerRates,
};
use crate::model::{self, Model};
use crate::sample::{BatchLoad, Gap};
use crate::units::{BytesPerSecond, Share};
use crate::verdict::{Expected, Headspace, Interval, Verdict, WorkerAdvice};

/// The whole report: of the verdict's window, or of the last interval where there is no window yet.
pub fn json(model: &Model, verdict: &Verdict) -> Value {
    let rates = model.window().or_else(|| model.latest());
    let sample = model.sample();
    let job = rates.and_then(|rates| rates.job.as_ref());
    let gpus = rates.map_or(&[][..], |rates| &rates.gpus);
    let disks = rates.map_or(&[][..], |rates| &rates.disks);
    let ended = job.is_some_and(|job| job.ended).then(|| Gap {
        source: "job".to_owned(),
        reason: "the job has ended; all that is said of it is from before".to_owned(),
        hint: String::new(),
    });
    let gaps = sample.iter().flat_map(|sample| &sample.gaps).chain(&ended);
    json!({
        "schema": "pipetop.report/1",
        "version": env!("CARGO_PKG_VERSION"),
        "window": {
            "seconds": rounded(verdict.seconds, 3),
            "batches": verdict.batches,
            "access": job.map(|job| format!("{:?}", job.access)),
            "own_cpu_percent": percent(rates.and_then(|rates| rates.own_cpu)),
        },
        "job": job.map(self::job),
        "gpus": gpus.iter().map(|gpu| gpu::row(gpu, sample.map(|sample| sample.at))).collect::<Vec<_>>(),
        "disks": disks.iter().map(disk).collect::<Vec<_>>(),
        "host": host(rates),
        "verdict": self::verdict(verdict),
        "gaps": gaps.collect::<Vec<_>>(),
    })
}

fn job(job: &JobRates) -> Value {
    json!({
        "pid": job.key.pid,
        "command": job.command,
        "ranks": job.ranks.iter().map(rank).collect::<Vec<_>>(),
    })
}

/// Of several loaders, the one that yields most.
fn rank(rank: &RankRates) -> Value {
    let loader = rank.busiest_loader();
    let workers = loader.map_or(&[][..], |loader| &loader.workers);
    json!({
        "rank": rank.rank,
        "pid": rank.key.pid,
        "loader": loader.map(self::loader),
        "workers": workers.iter().map(worker).collect::<Vec<_>>(),
        "queue": loader.and_then(|loader| loader.queue).map(queue),
        "step": step(&rank.step),
        "device": rank.device.as_ref().map(device),
    })
}

fn device(device: &DeviceRates) -> Value {
    json!({
        "name": device.name,
        "busy_share": share(device.busy),
        "copy_share": share(device.copying),
        "notice": device.notice,
    })
}

fn loader(loader: &LoaderRates) -> Value {
    let settings = &loader.settings;
    json!({
        "kind": loader.kind,
        "num_workers": settings.num_workers,
        "prefetch_factor": settings.prefetch_factor,
        "pin_memory": settings.pin_memory,
        "persistent_workers": settings.persistent_workers,
        "in_order": settings.in_order,
        "start_method": settings.start_method,
        "batch_size": settings.batch_size,
    })
}

fn worker(worker: &WorkerRates) -> Value {
    // Blocked on input of either kind; the verdict's cause tells them apart.
    let input = worker.disk.zip(worker.network);
    let input = input.map(|(disk, network)| Share(disk.0 + network.0).clamped());
    json!({
        "id": worker.id,
        "pid": worker.key.pid,
        "cpu_percent": number(worker.cpu.map(|cores| 100.0 * cores), 1),
        "state": worker.now,
        "busy_share": share(worker.busy),
        "run_delay_share": share(worker.run_delay),
        "io_wait_share": share(input),
        "read_bytes_per_s": bytes_per_s(worker.read),
        "rchar_bytes_per_s": bytes_per_s(worker.rchar),
        "batches_per_s": number(worker.batches_per_s, 3),
        "load_ms": number(worker.load_ms, 3),
        "last_loads_ms": worker.loads.as_ref().map(loads),
        "activity": worker.activity.iter().map(activity).collect::<Vec<_>>(),
    })
}

/// Newest first.
fn loads(loads: &LoadRates) -> Value {
    let row =
        |load: &BatchLoad| json!({ "batch": load.batch, "low": load.low_ms, "high": load.high_ms });
    loads.last.iter().map(row).collect()
}

fn activity(activity: &Activity) -> Value {
    json!({ "name": activity.name, "share": share(Some(activity.share)) })
}

fn queue(queue: QueueRates) -> Value {
    json!({
        "ready": rounded(queue.mean_ready, 2),
        "capacity": queue.capacity,
        "occupancy": share(queue.occupancy),
        "empty_share": share(Some(queue.empty)),
        "source": queue.source,
    })
}

fn step(step: &StepRates) -> Value {
    json!({
        "batches_per_s": number(step.batches_per_s, 3),
        "step_ms": number(step.step_ms, 3),
        "wait_ms": number(step.wait_ms, 3),
        "load_ms": number(step.load_ms, 3),
    })
}

fn disk(disk: &DiskRates) -> Value {
    json!({
        "device": disk.device,
        "read_bytes_per_s": bytes_per_s(Some(disk.read)),
        "write_bytes_per_s": bytes_per_s(Some(disk.write)),
        "util_percent": percent(Some(disk.util)),
        "await_ms": number(disk.await_ms, 3),
        "queue_depth": rounded(disk.queue_depth, 2),
    })
}

fn host(rates: Option<&Rates>) -> Value {
    let host = rates.map(|rates| &rates.host);
    let job = rates.and_then(|rates| rates.job.as_ref());
    let cgroup = job.and_then(|job| job.cgroup.as_ref());
    let of_host = |of: fn(&model::rates::HostRates) -> Option<Share>| host.and_then(of);
    json!({
        "cpus_allowed": job.and_then(|job| job.cpus_allowed),
        "cpu_quota": number(cgroup.and_then(|group| group.cpu_quota), 3),
        "cpu_percent": percent(of_host(|host| host.cpu)),
        "throttled_share": share(cgroup.and_then(|group| group.throttled_periods)),
        "psi": {
            "cpu": share(of_host(|host| host.pressure_cpu)),
            "io": share(of_host(|host| host.pressure_io)),
            "memory": share(of_host(|host| host.pressure_memory)),
        },
    })
}

fn verdict(verdict: &Verdict) -> Value {
    let evidence = verdict.evidence.iter().map(|fact| {
        json!({
            "id": fact.id,
            "supports": fact.supports,
            "value": rounded(fact.value, 4),
            "threshold": number(fact.threshold, 4),
            "text": fact.text,
        })
    });
    let missing = verdict
        .missing
        .iter()
        .map(|signal| json!({ "id": signal.id, "why": signal.why, "hint": signal.hint }));
    json!({
        "kind": verdict.kind,
        "cause": verdict.cause,
        "level": verdict.level,
        "wait_share": share(verdict.wait.map(|wait| wait.share)),
        "wait_interval": interval(verdict.wait),
        "gpu_idle_share": share(verdict.gpu_idle),
        "stall_share": share(verdict.stall.map(|stall| stall.share)),
        "stall_interval": interval(verdict.stall),
        "confidence": share(Some(verdict.confidence)),
        "headspace": verdict.headspace.map(headspace),
        "workers": verdict.workers.map(workers),
        "what_if": what_if(verdict),
        "period_batches": verdict.period_batches,
        "limit": verdict.limit,
        "rank": verdict.rank,
        "evidence": evidence.collect::<Vec<_>>(),
        "missing": missing.collect::<Vec<_>>(),
        "advice": verdict.advice,
    })
}

fn headspace(headspace: Headspace) -> Value {
    json!({
        "speedup_max": rounded(headspace.speedup_max, 2),
        "step_ms_now": number(headspace.step_ms_now, 3),
        "step_ms_free": number(headspace.step_ms_free, 3),
    })
}

fn workers(workers: WorkerAdvice) -> Value {
    json!({
        "now": workers.now,
        "match": workers.match_step,
        "cpu_allows": workers.cpu_allows,
        "advised": workers.advised,
    })
}

/// Rows, or why there are none.
fn what_if(verdict: &Verdict) -> Value {
    let row = |row: &Expected| {
        json!({
            "workers": row.workers,
            "wait_share": share(Some(row.wait.share)),
            "wait_interval": interval(Some(row.wait)),
            "batches_per_s": rounded(row.batches_per_s, 3),
        })
    };
    let (rows, gap) = match &verdict.what_if {
        Ok(rows) => (Some(rows.iter().map(row).collect::<Vec<_>>()), None),
        Err(reason) => (None, Some(reason)),
    };
    json!({ "rows": rows, "gap": gap })
}

fn interval(interval: Option<Interval>) -> Value {
    interval.map_or(Value::Null, |interval| {
        json!([share(Some(interval.low)), share(Some(interval.high))])
    })
}

fn share(share: Option<Share>) -> Value {
    number(share.map(|share| share.0), 4)
}

fn percent(share: Option<Share>) -> Value {
    number(share.map(Share::percent), 1)
}

/// Whole bytes a second.
fn bytes_per_s(rate: Option<BytesPerSecond>) -> Value {
    rate.map_or(Value::Null, |rate| rounded(rate.0, 0))
}

fn number(value: Option<f64>, decimals: i32) -> Value {
    value.map_or(Value::Null, |value| rounded(value, decimals))
}

/// As many decimals as mean something; without any a whole number. What is not finite is unknown.
fn rounded(value: f64, decimals: i32) -> Value {
    let scale = 10_f64.powi(decimals);
    let value = (value * scale).round() / scale;
    if !value.is_finite() {
        return Value::Null;
    }
    if decimals > 0 {
        return json!(value);
    }
    // Safe to print: `{:.0}` of a finite number is a whole number.
    format!("{value:.0}")
        .parse::<i64>()
        .map_or(Value::Null, Value::from)
}
