//! A GPU in the report: what was read, what came of it in the window, and why the rest is missing.

use serde_json::{Value, json};

use super::{bytes_per_s, number, rounded, share};
use crate::model::Swing;
use crate::model::rates::GpuRates;
use crate::sample::{Absent, GpuHealth, GpuInstance, GpuProcess, GpuSample, GpuUser, Link, Xid};
use crate::units::{Moment, Share};

/// `at` is the moment of the report, for ages.
pub(super) fn row(gpu: &GpuRates, at: Option<Moment>) -> Value {
    let stale = gpu
        .stale_seconds
        .map(|age| format!("no reading for {age:.0} s"));
    let mut row = json!({
        "index": gpu.now.index,
        "uuid": gpu.now.uuid,
        "name": gpu.now.name,
        "gap": gpu.now.gap.clone().or(stale),
    });
    let parts = [
        activity(gpu),
        memory_and_power(gpu),
        traffic(gpu),
        health(&gpu.now, at),
        users(gpu, at),
    ];
    for part in parts {
        if let (Value::Object(row), Value::Object(part)) = (&mut row, part) {
            row.extend(part);
        }
    }
    row
}

fn activity(gpu: &GpuRates) -> Value {
    json!({
        "util_percent": number(gpu.util_percent, 1),
        "busy_share": share(gpu.busy),
        "sm_active_share": share(gpu.counters.sm_active),
        "sm_occupancy_share": share(gpu.counters.sm_occupancy),
        "tensor_share": share(gpu.counters.tensor),
        "dram_share": share(gpu.counters.dram),
        "load_estimate_share": share(gpu.load_estimate),
        "swing": gpu.swing.map(swing),
    })
}

fn swing(swing: Swing) -> Value {
    json!({
        "period_seconds": rounded(swing.period, 2),
        "regular": swing.regular,
        "rest_share": share(Some(swing.resting)),
    })
}

fn memory_and_power(gpu: &GpuRates) -> Value {
    let now = &gpu.now;
    json!({
        "mem_used_bytes": now.mem_used,
        "mem_reserved_bytes": now.mem_reserved,
        "mem_total_bytes": now.mem_total,
        "power_watts": number(now.power_watts, 1),
        "power_instant_watts": number(now.power_instant_watts, 1),
        "power_limit_watts": number(now.power_limit_watts, 1),
        "energy_joules": number(gpu.energy_joules, 1),
        "temperature_c": number(now.temperature_c, 1),
        "mem_temperature_c": number(now.mem_temperature_c, 1),
        "sm_clock_mhz": number(now.sm_clock_mhz, 0),
        "mem_clock_mhz": number(now.mem_clock_mhz, 0),
        "throttle": now.throttle,
    })
}

fn traffic(gpu: &GpuRates) -> Value {
    json!({
        "pcie_link": gpu.now.health.and_then(|health| health.link).map(link),
        "pcie_rx_bytes_per_s": bytes_per_s(gpu.pcie_rx),
        "pcie_tx_bytes_per_s": bytes_per_s(gpu.pcie_tx),
        "pcie_age_seconds": number(gpu.pcie_age, 1),
        "nvlink_rx_bytes_per_s": bytes_per_s(gpu.nvlink_rx),
        "nvlink_tx_bytes_per_s": bytes_per_s(gpu.nvlink_tx),
    })
}

fn link(link: Link) -> Value {
    json!({
        "generation": link.generation,
        "width": link.width,
        "max_generation": link.max_generation,
        "max_width": link.max_width,
    })
}

fn health(now: &GpuSample, at: Option<Moment>) -> Value {
    let of = |of: fn(&GpuHealth) -> Value| now.health.as_ref().map_or(Value::Null, of);
    json!({
        "encoder_percent": of(|health| number(health.encoder_percent, 0)),
        "decoder_percent": of(|health| number(health.decoder_percent, 0)),
        "ecc_corrected": of(|health| json!(health.ecc_corrected)),
        "ecc_uncorrected": of(|health| json!(health.ecc_uncorrected)),
        "retired_pages": of(|health| json!(health.retired_pages)),
        "retirement_pending": of(|health| json!(health.retirement_pending)),
        "remapped_rows": of(|health| json!(health.remapped_rows)),
        "remapping_pending": of(|health| json!(health.remapping_pending)),
        "remapping_failed": of(|health| json!(health.remapping_failed)),
        "persistence": of(|health| json!(health.persistence)),
        "health_age_seconds": number(age(at, now.health.map(|health| health.read_at)), 1),
        "xids": now.xids.as_ref().map(|xids| {
            xids.iter().map(|error| xid(error, at)).collect::<Vec<_>>()
        }),
    })
}

fn xid(xid: &Xid, at: Option<Moment>) -> Value {
    json!({ "number": xid.number, "age_seconds": number(age(at, Some(xid.at)), 1) })
}

fn users(gpu: &GpuRates, at: Option<Moment>) -> Value {
    let now = &gpu.now;
    let instances = now.instances.iter().zip(&gpu.parts);
    let instances = instances.map(|(part, busy)| instance(part, *busy, at));
    json!({
        "processes": processes(now.processes.as_ref(), at),
        "instances": instances.collect::<Vec<_>>(),
        "visible_to_job": now.visible_to_job,
        "ranks": now.users.as_ref().map(|users| users.iter().map(rank).collect::<Vec<_>>()),
        "driver_ms_per_s": number(gpu.driver_time.map(|share| 1000.0 * share.0), 2),
        "absent": now.absent.iter().map(absent).collect::<Vec<_>>(),
    })
}

fn rank(user: &GpuUser) -> Value {
    json!({ "pid": user.pid, "by": user.by, "instance": user.instance })
}

fn absent(absent: &Absent) -> Value {
    json!({ "figure": absent.figure, "reason": absent.reason })
}

fn instance(part: &GpuInstance, busy: Option<Share>, at: Option<Moment>) -> Value {
    let counters = part.counters.as_ref();
    json!({
        "uuid": part.uuid,
        "gpu_instance": part.gpu_instance,
        "compute_instance": part.compute_instance,
        "busy_share": share(busy),
        "sm_active_share": share(counters.and_then(|counters| counters.sm_active)),
        "mem_used_bytes": part.mem_used,
        "mem_total_bytes": part.mem_total,
        "processes": processes(part.processes.as_ref(), at),
        "gap": part.gap,
    })
}

fn processes(list: Option<&Vec<GpuProcess>>, at: Option<Moment>) -> Option<Vec<Value>> {
    let process = |process: &GpuProcess| {
        let age = at.zip(process.sm_at);
        let age = age.map(|(at, taken)| at.since_start.saturating_sub(taken).as_secs_f64());
        json!({
            "pid": process.pid,
            "place": process.place,
            "mem_bytes": process.mem,
            "sm_percent": number(process.sm_percent, 1),
            "sm_age_seconds": number(age, 1),
        })
    };
    list.map(|list| list.iter().map(process).collect())
}

fn age(at: Option<Moment>, since: Option<Moment>) -> Option<f64> {
    Some(at?.seconds_since(&since?))
}
