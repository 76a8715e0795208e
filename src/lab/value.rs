//! Parsers for the values of the lab's options.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::error::Hinted;
use crate::options::value::{bytes, number};

/// Parses a time in milliseconds, with or without a fraction.
pub(in crate::lab) fn milliseconds(text: &str) -> Result<Duration, Hinted> {
    let hint = "use a number of milliseconds from 0 to 3600000, such as 40 or 0.5";
    let number = number(text, 0.0..=3_600_000.0, hint)?;
    Ok(Duration::try_from_secs_f64(number / 1000.0).unwrap_or_default())
}

/// Parses what one process of the built-in job passes to another.
pub(in crate::lab) fn json<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text)
}

/// Parses a number from 0 to 1000.
pub(in crate::lab) fn factor(text: &str) -> Result<f64, Hinted> {
    let hint = "use a number from 0 to 1000, such as 0.5";
    number(text, 0.0..=1000.0, hint)
}

/// Parses how many times slower a worker is.
pub(super) fn slowness(text: &str) -> Result<f64, Hinted> {
    let hint = "use a number from 1 (as fast as the others) to 1000, such as 6";
    number(text, 1.0..=1000.0, hint)
}

/// Parses the total size of the images to create. A limit keeps a typing error from filling the disk.
pub(in crate::lab) fn dataset_size(text: &str) -> Result<u64, Hinted> {
    let size = bytes(text)?;
    if size > 1 << 40 {
        return Err(Hinted::new(
            "out of range",
            "use at most 1TiB, such as 64MiB",
        ));
    }
    Ok(size)
}
