//! The judge, on tables of what was seen.

mod scenarios;
