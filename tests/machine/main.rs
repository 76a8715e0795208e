//! Real time on this machine: what the built-in job, its devices and the experiments measure, and what pipetop costs.

mod allocated;
mod calibrate;
mod cuda;
mod demo_times;
mod experiment_times;
mod latency;
mod past;
mod rights;
mod soak;
