//! Real Python and real `PyTorch`: jobs seen from outside, the reports of the hook in them, and experiments with them,
//! against each job's own figures.
//!
//! The tests run with every interpreter of `PIPETOP_TORCH_PYTHONS` (separated by colons; `python3` by default) that has
//! torch; those that do not depend on torch's version run with one. What cannot run says so; with
//! `PIPETOP_REQUIRE_ALL=1` it fails. Every test takes its place on the machine: up to eight jobs that sleep run at a
//! time, or three that compute half of the time, or two that keep a CPU busy, or one that needs all CPUs. The runner's
//! threads only wait for places, so there may be more of them than tests that run.

mod accuracy;
mod alone;
mod cgroup;
mod clock;
mod diff;
mod endurance;
mod experiments;
mod gil;
mod gpu;
mod hook;
mod job;
mod loaders;
mod loads;
mod marks;
mod nvml_binding;
mod probe;
mod prometheus;
mod python;
mod ranks;
mod report;
mod run;
mod side_by_side;
mod timeline;
mod trial;
mod truth;
mod two_loaders;
