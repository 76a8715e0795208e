//! Samples for the tests of all modules that use them.

pub(crate) mod literals;
