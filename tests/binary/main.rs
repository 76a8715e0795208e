//! The real program, mostly in a pseudo-terminal: what it prints, draws, saves, refuses and leaves behind.
//!
//! Nothing here measures time: every wait is for an event, and a deadline only ends a hang.

mod cli;
mod demo;
mod device;
mod experiments;
mod fleet;
mod full_terminal;
mod plain;
mod record;
mod run;
mod secrets;
mod serve;
mod session;
mod simulate;
mod terminal;
mod terminals;
mod watch;
