//! Samples for the tests of all that reads them.

pub(crate) mod literals;
