//! What a figure of the driver can be at all: the rest is its mistake and not reported. Pure.

use crate::units::Pid;

// No part comes near these; the driver's usual mistake is `u32::MAX`.
const MOST_WATTS: f64 = 10_000.0;
const MOST_DEGREES: f64 = 200.0;
const MOST_MHZ: f64 = 20_000.0;
/// `PID_MAX_LIMIT` of the kernel.
const LAST_PID: i32 = 1 << 22;

pub(super) fn percent(value: f64) -> Option<f64> {
    (0.0..=100.0).contains(&value).then_some(value)
}

pub(super) fn watts(milliwatts: u32) -> Option<f64> {
    Some(f64::from(milliwatts) / 1000.0).filter(|watts| *watts <= MOST_WATTS)
}

pub(super) fn celsius(degrees: u32) -> Option<f64> {
    Some(f64::from(degrees)).filter(|degrees| *degrees <= MOST_DEGREES)
}

pub(super) fn megahertz(clock: u32) -> Option<f64> {
    Some(f64::from(clock)).filter(|clock| *clock <= MOST_MHZ)
}

pub(super) fn pid(number: u32) -> Option<Pid> {
    let number = i32::try_from(number).ok()?;
    (1..=LAST_PID).contains(&number).then_some(Pid(number))
}

/// Without what would steer a terminal. `None` where nothing is left.
pub(super) fn text(raw: &str) -> Option<String> {
    let text: String = raw.chars().filter(|c| !c.is_control()).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
