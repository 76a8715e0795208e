//! The device is idle while batches are copied to it.

use crate::sample::{COPIES, SYNCHRONIZE};
use crate::units::Share;
use crate::verdict::context::Context;
use crate::verdict::rule::{Picture, Resource, Rule, Situation};
use crate::verdict::{Evidence, Kind};

pub(super) const RULE: Rule = Rule {
    words: "copying batches to the device",
    checks: &[(Kind::HostBound, check)],
    resource: Resource::Other,
    picture: Picture::BusyWorkers,
    more_workers_help: false,
    what_if: true,
    advice,
};

/// Minimum share of the device's idle time.
const MIN_SHARE_OF_IDLE: f64 = 0.5;
/// Minimum share of the time that the main thread is seen in copies to the device.
const MIN_COPIES: f64 = 0.2;

/// Detects that most of the device's idle time is spent in copies that no computing hides.
fn check(context: &Context<'_>) -> Option<Evidence> {
    let device = context.rank.device.as_ref();
    if device.is_some_and(|device| device.copying.is_some()) {
        return reported(context);
    }
    counted(context).or_else(|| seen(context))
}

/// Detects by stacks that the main thread spends most of the device's idle time in copies. A copy also waits for work
/// that was queued on the device before it, so even by the lower bound of the overlap the device must be idle during
/// most of the copies.
fn seen(context: &Context<'_>) -> Option<Evidence> {
    const MAJORITY: f64 = 0.5;
    let copies = context.rank.time_not_for_data(COPIES);
    let synchronized = context.rank.time_not_for_data(SYNCHRONIZE);
    let idle = context.gpu_idle()?;
    let least = context.least_overlap(copies, synchronized, idle).0;
    let part = Share::of(f64::midpoint(least, copies.0.min(idle.0)), idle.0)?;
    let is_cause =
        copies.0 >= MIN_COPIES && least >= MAJORITY * copies.0 && part.0 >= MIN_SHARE_OF_IDLE;
    is_cause.then(|| {
        let text = format!("main thread in .to(), .cuda() or .copy_() {copies} of the time");
        Evidence::supporting("copying", part.0, MIN_SHARE_OF_IDLE, text)
    })
}

/// Detects the same by the GPU's own figures: its history counts the time in which it only copies, its counters do not.
fn counted(context: &Context<'_>) -> Option<Evidence> {
    let copies = context.gpu()?.copies_only?;
    let idle = context.gpu_idle()?.0;
    // Copies do not cause the idle time during the trainer's waits for data.
    let exposed = copies.0.min(idle - context.wait()?.share.0).max(0.0);
    let part = Share::of(exposed, idle)?;
    (part.0 >= MIN_SHARE_OF_IDLE).then(|| {
        let text = format!("the GPU only copies {copies} of the time");
        Evidence::supporting("copying", part.0, MIN_SHARE_OF_IDLE, text)
    })
}

/// Detects the same by the job's own reports. They hold only sums, so it is not known how much of the copies runs in
/// parallel with computing. Without pinned memory none does, since such copies block the trainer; with pinned memory,
/// as much as possible is assumed to.
fn reported(context: &Context<'_>) -> Option<Evidence> {
    let device = context.rank.device.as_ref()?;
    let (copying, busy) = (device.copying?, device.busy?);
    let waiting = context.wait()?.share.0;
    let idle = context.gpu_idle()?.0;
    let (exposed, bound) = match pinned(context) {
        Some(true) => (copying.0 - busy.0, "at least "),
        Some(false) => (copying.0, ""),
        None => (copying.0, "up to "),
    };
    // While the trainer waits for data, the device does not idle because of a copy.
    let exposed = exposed.min(idle - waiting).max(0.0);
    let part = Share::of(exposed, idle)?;
    (part.0 >= MIN_SHARE_OF_IDLE).then(|| {
        let text = format!(
            "copying batches takes {copying} of the time; the device idles {bound}{} for it",
            Share(exposed)
        );
        Evidence::supporting("copying", part.0, MIN_SHARE_OF_IDLE, text)
    })
}

fn pinned(context: &Context<'_>) -> Option<bool> {
    context.loader?.settings.pin_memory
}

/// Copies run in parallel with the step only from pinned memory; fewer bytes are always faster.
fn advice(situation: &Situation<'_>) -> Vec<String> {
    let overlap = match pinned(situation.context) {
        Some(false) => {
            "pin_memory=True (it is off), then .to(device, non_blocking=True) on a separate stream"
        }
        Some(true) => {
            "copy the next batch during the step: .to(device, non_blocking=True) on a separate stream"
        }
        None => "pin_memory=True and .to(device, non_blocking=True) on a separate stream",
    };
    let smaller = "send fewer bytes: uint8 or float16, converted on the device";
    vec![overlap.into(), smaller.into()]
}
