//! Tests of the judge on tables.

pub(crate) mod scenarios;
