//! Ranges of plausible values: a value outside them is an error of the driver and not reported. Pure.

use crate::units::Pid;

// Far above every product; the driver's usual wrong value is `u32::MAX`.
const MAX_WATTS: f64 = 10_000.0;
const MAX_DEGREES: f64 = 200.0;
const MAX_MHZ: f64 = 20_000.0;
/// `PID_MAX_LIMIT` of the kernel.
const LAST_PID: i32 = 1 << 22;

pub(super) fn percent(value: f64) -> Option<f64> {
    (0.0..=100.0).contains(&value).then_some(value)
}

pub(super) fn watts(milliwatts: u32) -> Option<f64> {
    Some(f64::from(milliwatts) / 1000.0).filter(|watts| *watts <= MAX_WATTS)
}

pub(super) fn celsius(degrees: u32) -> Option<f64> {
    Some(f64::from(degrees)).filter(|degrees| *degrees <= MAX_DEGREES)
}

pub(super) fn megahertz(clock: u32) -> Option<f64> {
    Some(f64::from(clock)).filter(|clock| *clock <= MAX_MHZ)
}

pub(super) fn pid(number: u32) -> Option<Pid> {
    let number = i32::try_from(number).ok()?;
    (1..=LAST_PID).contains(&number).then_some(Pid(number))
}

/// Removes control characters, which could control a terminal. `None` if nothing is left.
pub(super) fn text(raw: &str) -> Option<String> {
    let text: String = raw.chars().filter(|c| !c.is_control()).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
