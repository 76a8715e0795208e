//! Tests of the judge on tables.

mod scenarios;
