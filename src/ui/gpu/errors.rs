//! What is wrong with a GPU, in few words, the worst first: errors that the driver reported, failing memory, throttled
//! clocks.

use crate::model::rates::GpuRates;
use crate::sample::Xid;
use crate::ui::format;

/// Returns the errors of the card itself; empty if none is known.
pub(super) fn errors(gpu: &GpuRates) -> Vec<String> {
    let mut words = Vec::new();
    let newest = gpu.now.xids.iter().flatten().last();
    words.extend(newest.map(|xid| xid_words(gpu, xid)));
    let Some(health) = gpu.now.health else {
        return words;
    };
    if let Some(errors) = health.ecc_uncorrected.filter(|errors| *errors > 0) {
        words.push(format!("uncorrected memory errors: {errors}"));
    }
    if health.remapping_failed == Some(true) {
        words.push("a memory row cannot be remapped".to_owned());
    }
    if health.remapping_pending == Some(true) || health.retirement_pending == Some(true) {
        words.push("memory repair needs a GPU reset".to_owned());
    }
    words
}

/// Formats the newest Xid error: `Xid 79 (fell off the bus) 12 s ago`.
fn xid_words(gpu: &GpuRates, xid: &Xid) -> String {
    let what = meaning(xid.number).map_or_else(String::new, |meaning| format!(" ({meaning})"));
    let age = gpu.now.read_at.map(|now| now.seconds_since(&xid.at));
    let age = age.map_or_else(String::new, |age| format!(" {} ago", format::span(age)));
    format!("Xid {}{what}{age}", xid.number)
}

/// Returns the worst error for a line with many GPUs: `Xid 79`.
pub(super) fn short_error(gpu: &GpuRates) -> Option<String> {
    let newest = gpu.now.xids.iter().flatten().last();
    let newest = newest.map(|xid| format!("Xid {}", xid.number));
    newest.or_else(|| (!errors(gpu).is_empty()).then(|| "memory errors".to_owned()))
}

/// Returns the meaning of an Xid error, from NVIDIA's list.
fn meaning(number: u64) -> Option<&'static str> {
    Some(match number {
        13 => "a kernel failed",
        31 => "a kernel accessed invalid memory",
        43 | 45 => "the program was stopped",
        48 | 95 => "uncorrected memory error",
        63 | 64 => "memory is being repaired",
        74 => "NVLink",
        79 => "fell off the bus",
        94 => "contained memory error",
        119 | 120 => "its firmware is not responding",
        _ => return None,
    })
}

/// Returns why the clocks are throttled; `None` if they are not.
pub(super) fn throttle_reason(gpu: &GpuRates) -> Option<String> {
    let reasons = gpu.now.throttle.as_ref()?;
    (!reasons.is_empty()).then(|| reasons.join(", "))
}
