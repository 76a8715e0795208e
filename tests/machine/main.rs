//! Real time on this machine: measurements of the built-in job, its devices and the experiments, and the cost of pipetop.

mod allocated;
mod calibrate;
mod cuda;
mod demo_times;
mod experiment_times;
mod latency;
mod past;
mod rights;
mod soak;
